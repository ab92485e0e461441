"""docs/reports.md says which lists each kind of answer has, as the code has them."""

import re
from pathlib import Path

import pytest

from tonnage.api import Frontier
from tonnage.api_plan import Placed, ServingPlans, TrainingPlans

DOC = (Path(__file__).parents[1] / "docs" / "reports.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("verb", "kind"),
    [("plan_training", TrainingPlans), ("plan_serving", ServingPlans), ("place", Placed), ("frontier", Frontier)],
)
def test_every_list_of_an_answer_is_in_its_row_of_the_page_and_no_other_is(verb, kind):
    (row,) = [line for line in DOC.splitlines() if line.startswith(f"| `{verb}` |")]
    said = re.findall(r'rows\("(\w+)"\)', row)
    plain = {"plans"} if "`rows()`: the plans" in row else set()
    assert set(said) | plain == set(kind.listed)

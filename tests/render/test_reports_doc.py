"""docs/reports.md says which lists each kind of answer has, as the code has them."""

import re
from pathlib import Path

import pytest

import tonnage
from tonnage.api.answers import Frontier
from tonnage.api.planning import Placed, ServingPlans, TrainingPlans
from tonnage.kernel.errors import InvalidInput

DOC = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("verb", "kind"),
    [("plan_training", TrainingPlans), ("plan_serving", ServingPlans), ("place", Placed), ("frontier", Frontier)],
)
def test_every_list_of_an_answer_is_in_its_row_of_the_page_and_no_other_is(verb, kind):
    (row,) = [line for line in DOC.splitlines() if line.startswith(f"| `{verb}` |")]
    said = re.findall(r'rows\("(\w+)"\)', row)
    plain = {"plans"} if "`rows()`: the plans" in row else set()
    assert set(said) | plain == set(kind.listed)


def test_the_paths_that_the_page_shows_are_those_of_rows():
    answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=16384)
    (of_answer,) = re.findall(r"place in the document, `([^`]+)`", DOC)
    (of_term,) = re.findall(r"with the name of that:\n`([^`]+)`", DOC)
    assert of_answer in [row["path"] for row in answer.rows("memory")]
    assert of_term in [row["path"] for row in answer.memory.to_rows()]


def test_a_front_that_was_not_asked_for_is_no_empty_list():
    """Its option is named; with it the list is there."""
    served = {"on": "H100-SXM-80GB,L40S", "concurrency": 64, "max_accelerators": 2}
    trained = {"on": "1xh100,1xa100", "sequence_length": 2048, "runtime": "fsdp2"}
    for ask, name, model, options in (
        (tonnage.plan_serving, "pareto", "llama-3.1-8b", served),
        (tonnage.plan_training, "front", "llama-3.2-1b", trained),
    ):
        with pytest.raises(InvalidInput, match=f"{name} was not asked for.*ask with pareto=True"):
            ask(model, **options).rows(name)
        found = ask(model, **options, pareto=True)
        assert len(found.rows(name)) == len(found.to_dict()[name]) > 0
    none = tonnage.plan_serving("llama-3.1-70b", on="1xrtx-4090", pareto=True)
    assert none.rows("pareto") == [] == none.plans

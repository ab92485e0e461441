import pytest
import yaml

from published_plans import ROOT, compared

ROWS = yaml.safe_load((ROOT / "validation" / "published_plans.yaml").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_the_best_plan_is_within_a_twentieth_of_a_published_one_or_better(row):
    made = compared(row)
    best, published = (made[name].run.tokens_per_second.value for name in ("best", "published"))
    assert best >= 0.95 * published
    assert made["best"].fits
    assert made["rank"] >= 1 and (made["fits"] is False or best >= published * (1 - 2e-3))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_the_page_has_the_published_plan_and_its_source(row):
    page = (ROOT / "docs" / "plans.md").read_text()
    assert row["name"] in page and row["source"] in page

"""Times of serving beside what was measured: as near as docs/accuracy.md says, on the rows that the repository has."""

from functools import cache
from pathlib import Path
from statistics import mean, median

import pytest

from tonnage.documents.document import builtins
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.validation import read, validate

ROOT = Path(__file__).parents[2] / "validation"


@cache
def lines():
    rows = read([str(ROOT / "infer_speed.yaml")])
    models = {row.id: row.labels.get("model", "") for row in rows}
    return [
        (line, models[line["id"]]) for line in builtins(validate(rows))["rows"] if line["relative_error"] is not None
    ]


def errors(metric, word="", begins="aic-"):
    return [
        abs(line["relative_error"])
        for line, model in lines()
        if line["metric"] == metric
        and line["id"].startswith(begins)
        and word in model.lower()
        and not line["completeness"].startswith("indicative")
    ]


@pytest.mark.parametrize(
    ("metric", "word", "middle", "average"),
    [("TPOT", "", 0.12, 0.20), ("TPOT", "llama", 0.08, 0.16), ("TTFT", "", 0.26, 0.35)],
)
def test_times_of_the_silicon_sample_lie_as_near_as_the_page_says(metric, word, middle, average):
    found = errors(metric, word)
    assert len(found) > 150
    assert median(found) < middle and mean(found) < average


def test_no_prediction_beats_the_reading_of_what_is_measured_by_orders():
    """A figure that is off by ten times is a question that was not understood."""
    far = {
        line["id"]: line["relative_error"]
        for line, _ in lines()
        if line["completeness"].startswith("full") and abs(line["relative_error"]) > 9
    }
    assert far == {}


def test_bands_hold_nine_of_ten_figures():
    banded = [line for line, _ in lines() if line["band"]]
    assert len(banded) > 1000
    inside = sum(line["band"][0] <= line["measured"] <= line["band"][1] for line in banded)
    assert 0.85 < inside / len(banded) < 0.99


def test_the_rates_say_how_many_they_are_and_on_how_many_rows():
    count, _, rows = serving_rates().fitted.partition(" rates on ")
    assert int(count) < 60 and int(rows.split()[0]) > 1000

"""The pages on sweeps: their example is a sweep, and their figures follow from the measured ones."""

import re
from pathlib import Path

import pytest
import yaml

import _sweep_cost
from tonnage.search.sweep.spec import FIELDS, parse
from tonnage.search.sweep.tasks import Tasks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "commands" / "sweep.md").read_text()


def test_the_example_of_the_page_is_a_sweep():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)
    spec = parse({"on" if name is True else name: value for name, value in yaml.safe_load(text).items()})
    assert Tasks(spec).plans == 2 * 2 * 2 * 2 * 3 * 4 * 3 * 3


def test_every_field_of_the_file_is_on_the_page():
    assert {name for name in FIELDS if f"`{name}`" not in PAGE} == set()


def test_a_large_sweep_costs_its_plans_over_the_measured_rate():
    rates = {
        "Ray, two workers: plans a second of processor time in chunks": 250_000,
        "Parquet of a plan": 50,
        "Ray, two workers: time outside of chunks, of all workers' time": 0.2,
    }
    node = _sweep_cost.Node("n", 10, 3.0, "somebody")
    found = _sweep_cost.cost(10**10, 5, node, rates)
    assert found.core_hours == pytest.approx(10**10 / 200_000 / 3600)
    assert found.wall_seconds == pytest.approx(1000)
    assert found.usd == pytest.approx(5 * 1000 / 3600 * 3)
    assert found.bytes == 5e11
    assert _sweep_cost.cost(10**10, 50, node, rates).usd == pytest.approx(found.usd)

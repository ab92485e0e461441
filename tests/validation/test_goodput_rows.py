"""Goodput, energy and emissions of published runs against what `train` says of them."""

from pathlib import Path

import pytest

from tonnage.kernel.errors import InvalidInput
from tonnage.validation import Row, read, row_of, validate

RECENT = Path(__file__).parents[2] / "validation" / "recent"
BY_HAND = "goodput-opt-175b"  # people restarted it, for hours, and its loss diverged


def shown(name: str) -> list[Row]:
    """The rows that are not left out."""
    return [row for row in read([str(RECENT / name)]) if not row.left_out]


def errors(rows: list[Row]) -> dict[str, float]:
    lines = validate(rows).rows
    return {line.id: line.relative_error for line in lines if line.main and line.relative_error is not None}


def test_runs_that_restart_by_themselves_have_the_goodput_that_was_published():
    every = errors(shown("goodput.yaml"))
    assert len(every) >= 6
    assert all(abs(error) < 0.04 for name, error in every.items() if name != BY_HAND)


def test_a_run_that_people_restart_has_much_less():
    rows = [row for row in read([str(RECENT / "goodput.yaml")]) if row.id == BY_HAND]
    assert errors(rows)[BY_HAND] > 0.5


def test_energy_and_emissions_of_published_gpu_hours_are_theirs():
    every = errors(shown("energy.yaml"))
    assert len(every) >= 8
    assert all(abs(error) < 0.06 for error in every.values())


@pytest.mark.parametrize(
    ("question", "quantity", "unit", "reason"),
    [
        ({}, "run_energy", "MWh", "budget_accelerator_hours"),
        ({"budget_accelerator_hours": 1e6}, "run_carbon", "t", "grid"),
    ],
)
def test_a_row_that_says_too_little_is_not_compared(question, quantity, unit, reason):
    item = {
        "id": "a",
        "verb": "train",
        "question": {"model": "llama-3.1-8b", "on": "8xh100", **question},
        "measured": {"quantity": quantity, "value": 1, "unit": unit},
        "source": "nobody",
        "date": "2026-01-01",
        "completeness": "full",
    }
    (line,) = validate([row_of(item)]).rows
    assert line.predicted is None and reason in (line.skipped or "")


def test_an_unknown_unit_of_energy_is_refused():
    item = {"id": "a", "verb": "train", "measured": {"quantity": "run_energy", "value": 1, "unit": "cal"}}
    with pytest.raises(InvalidInput, match="MWh"):
        row_of(item)

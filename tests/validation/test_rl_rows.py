"""Published steps of reinforcement learning (validation/recent, kind rl_speed) beside their estimates."""

from pathlib import Path
from statistics import median

import pytest

from tonnage.validation import Row, read
from tonnage.validation.training import predict

RECENT = Path(__file__).parents[2] / "validation" / "recent"
GOAL = 0.25  # median error of whole steps that no constant has seen


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for row in read([str(RECENT)]) if row.kind == "rl_speed"]


@pytest.fixture(scope="module")
def errors(rows: list[Row]) -> list[tuple[Row, str, float]]:
    """Row, quantity and error of each figure that counts."""
    found = []
    for row in rows:
        if row.completeness_class == "indicative":
            continue
        for measured, predicted in zip((row.measured, *row.also), predict(row), strict=True):
            assert not predicted.skipped, (row.id, predicted.skipped)
            found.append((row, measured.quantity, abs(float(predicted.value) / float(measured.value) - 1)))
    return found


def test_there_are_ten_publications_of_steps_and_their_phases(rows: list[Row]):
    counted = [row for row in rows if row.completeness_class != "indicative"]
    assert len(counted) >= 50 and len({row.labels["publication"] for row in counted}) >= 10
    assert {row.question["rollout_engine"] for row in counted} == {"vllm", "sglang", "hf"}


@pytest.mark.parametrize("left_out", [False, True])
def test_whole_steps_are_off_by_less_than_a_quarter_in_the_median(errors, left_out: bool):
    of_steps = [error for row, quantity, error in errors if quantity == "rl_step_time" and row.left_out == left_out]
    assert len(of_steps) >= 12 and median(of_steps) < GOAL


@pytest.mark.parametrize(
    ("quantity", "most"),
    [("rollout_time", 0.1), ("update_time", 0.3), ("forward_time", 0.3), ("weight_sync_time", 0.5)],
)
def test_each_phase_of_a_step_is_estimated(errors, quantity: str, most: float):
    of_phase = [error for _, of, error in errors if of == quantity]
    assert len(of_phase) >= 10 and median(of_phase) < most


def test_slow_accelerators_need_no_factor_of_fast_ones(rows: list[Row]):
    """EasyR1's L20 and H100 train the same model with the same config; on the L20 no fit has read them."""
    errors = {}
    for row in rows:
        if row.id.startswith("easyr1-0.3.2-qwen2.5-vl-7b-l20"):
            for measured, predicted in zip(row.also, predict(row)[1:], strict=True):
                errors[measured.quantity] = float(predicted.value) / float(measured.value) - 1
    assert errors["update_time"] == pytest.approx(0, abs=0.15)

"""Sweeps of steps that generate: a row says what `train` says of its plan, with its rollouts and what they cost."""

import pytest

import tonnage
from tonnage.models import read
from tonnage.search.compare import compare
from tonnage.search.compare.axes import axis
from tonnage.search.removed import Tally
from tonnage.search.sweep import training
from tonnage.search.sweep.dataset import schema_of
from tonnage.search.sweep.spec import parse
from tonnage.search.sweep.tasks import Tasks

SAID = {"objective": "grpo", "mean_completion_length": 300, "max_completion_length": 600, "prompt_length": 100}
SWEEP = {
    "kind": "train",
    "models": ["qwen2.5-1.5b"],
    "on": ["4xH100-SXM-80GB"],
    "options": SAID,
    "vary": {"rollout_accelerators": [0, 2], "micro_batch_size": [1, 4]},
}


def rows_of(fields):
    spec, found = parse(fields), []
    tasks = Tasks(spec)
    for number in range(tasks.count):
        for part in tasks.parts(number):
            columns = training.rows(spec, tasks, part, Tally())
            names = list(columns)
            found += [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return found


@pytest.fixture(scope="module")
def rows():
    return rows_of(SWEEP)


def test_each_row_is_what_train_says_of_its_plan(rows):
    assert len(rows) == 4
    for row in rows:
        answer = tonnage.train(
            "qwen2.5-1.5b",
            "4xH100-SXM-80GB",
            **SAID,
            rollout_accelerators=int(row["rollout_accelerators"]),
            micro_batch_size=int(row["micro_batch_size"]),
            advice=False,
        )
        assert row["step_seconds"] == pytest.approx(answer.step_time.value)
        assert row["tokens_per_second"] == pytest.approx(answer.run.tokens_per_second.value)
        assert row["rollout_share"] == pytest.approx(answer.run.rollout_share.value)
        assert row["step_usd"] == pytest.approx(answer.bill.cost.value)
        assert row["needed_bytes"] == answer.needed_bytes


def test_a_row_counts_the_accelerators_that_generate(rows):
    assert {(row["rollout_accelerators"], row["accelerators"]) for row in rows} == {(0, 4), (2, 6)}


def test_the_sequence_is_what_prompt_and_longest_completion_make(rows):
    assert {int(row["sequence_length"]) for row in rows} == {700}


def test_only_a_sweep_that_generates_has_the_share_of_rollouts():
    assert "rollout_share" in schema_of(parse(SWEEP)).names
    assert "rollout_share" not in schema_of(parse({**SWEEP, "options": {"objective": "dpo"}, "vary": {}})).names


def test_preference_training_has_a_time_without_rollouts():
    [row] = rows_of({**SWEEP, "options": {"objective": "dpo"}, "vary": {}})
    answer = tonnage.train("qwen2.5-1.5b", "4xH100-SXM-80GB", objective="dpo", advice=False)
    assert row["step_seconds"] == pytest.approx(answer.step_time.value)


def compared(**axes):
    every = [axis("model", ["qwen2.5-1.5b"]), axis("on", ["4xH100-SXM-80GB"])]
    every += [axis(name, values) for name, values in {"objective": ["grpo"], **axes}.items()]
    return compare("train", every, lambda name, _: read(name), of_model=set(), sort="", show=[])


def test_a_comparison_pays_for_the_accelerators_that_generate():
    cells = compared(rollout_accelerators=[0, 4], price_per_accelerator_hour=[2.0]).cells
    assert [cell.row["accelerators"] for cell in cells] == [4, 8]
    assert [cell.row["usd_per_hour"] for cell in cells] == pytest.approx([8, 16])


def test_tools_of_reinforcement_learning_are_compared_with_times():
    cells = compared(runtime=["verl", "openrlhf", "nemo-rl"]).cells
    assert all(cell.row["step_seconds"] > 0 and cell.row["usd_per_step"] > 0 for cell in cells)

"""The picture of a pipeline: when each stage works on what, against the closed form."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tonnage
from tonnage.estimate.plan.pipeline_boxes import (
    AGAIN,
    BACKWARD,
    FORWARD,
    SENDING,
    StageSeconds,
    StepSeconds,
    pipeline_boxes,
)
from tonnage.formulas.pipeline import bubble_seconds

STAGE = StageSeconds(1.0, 0.5, 1.75, forward_sent=0.125, backward_sent=0.25)
EVERY = 10**9  # micro-batches to show: all


def step(stages=4, chunks=1, count=8, stage=STAGE, **more):
    return StepSeconds(stages=(stage,) * stages, num_microbatches=count, chunks=chunks, between=0.0625, **more)


def closed(asked):
    each = [stage.there + stage.back for stage in asked.stages]
    bubble = bubble_seconds.evaluate(tau=sum(each), tau_step=max(each), v=asked.chunks)
    return asked.num_microbatches * asked.slowest + bubble


@given(stages=st.integers(1, 8), chunks=st.integers(1, 4), groups=st.integers(1, 6))
def test_even_stages_end_when_the_closed_form_says(stages, chunks, groups):
    asked = step(stages, chunks if stages > 1 else 1, stages * groups)
    assert pipeline_boxes(asked, EVERY).pipeline == pytest.approx(closed(asked))


@given(stages=st.integers(1, 8), count=st.integers(1, 40))
def test_without_chunks_any_number_of_micro_batches_does(stages, count):
    asked = step(stages, 1, count)
    assert pipeline_boxes(asked, EVERY).pipeline == pytest.approx(closed(asked))


def takes(stages, chunks, count):
    """Whether some runtime takes so many micro-batches: interleaving needs equal rounds of them."""
    return chunks == 1 or count % max(count // stages, 1) == 0


@given(stages=st.integers(1, 6), chunks=st.integers(1, 3), count=st.integers(1, 60))
def test_what_is_left_out_changes_no_box_that_is_shown(stages, chunks, count):
    assume(takes(stages, chunks, count))
    asked = step(stages, chunks if stages > 1 else 1, count)
    whole, shown = pipeline_boxes(asked, EVERY), pipeline_boxes(asked)
    assert whole.skipped == 0 and shown.pipeline == pytest.approx(whole.pipeline)
    starts = {(box.stage, box.kind, box.microbatch, box.chunk, box.seconds): box.start for box in whole.boxes}
    for box in shown.boxes:
        assert box.start == pytest.approx(starts[box.stage, box.kind, box.microbatch, box.chunk, box.seconds])
    assert len(starts) == len(shown.boxes) * count / (count - shown.skipped)


@given(seconds=st.lists(st.floats(0.5, 2), min_size=2, max_size=8), chunks=st.integers(1, 3), count=st.integers(1, 60))
def test_a_stage_does_one_thing_at_a_time_and_every_micro_batch_once(seconds, chunks, count):
    assume(takes(len(seconds), chunks, count))
    stages = tuple(StageSeconds(each, 0.0, 2 * each) for each in seconds)
    asked = StepSeconds(stages=stages, num_microbatches=count, chunks=chunks, between=0.01)
    made = pipeline_boxes(asked, EVERY)
    for rank in range(len(stages)):
        row = sorted((box for box in made.boxes if box.stage == rank), key=lambda box: box.start)
        assert all(box.end <= after.start + 1e-9 for box, after in pairwise(row))
        for kind in (FORWARD, BACKWARD):
            done = sorted((box.microbatch, box.chunk) for box in row if box.kind == kind)
            assert done == [(batch, chunk) for batch in range(count) for chunk in range(chunks)]
    assert made.pipeline >= count * asked.slowest - 1e-9


def test_a_micro_batch_goes_down_the_stages_and_its_gradient_comes_back():
    made = pipeline_boxes(step(3, 2, 6), EVERY)
    start = {(box.stage, box.kind, box.microbatch, box.chunk): box.start for box in made.boxes}
    way = [start[rank, FORWARD, 5, chunk] for chunk in range(2) for rank in range(3)]
    back = [start[rank, BACKWARD, 5, chunk] for chunk in (1, 0) for rank in (2, 1, 0)]
    assert [*way, *back] == sorted([*way, *back])


def test_the_first_stage_runs_as_many_forwards_ahead_as_there_are_stages():
    row = sorted(
        (box for box in pipeline_boxes(step(4)).boxes if box.stage == 0 and box.kind != AGAIN),
        key=lambda box: box.start,
    )
    assert [box.kind for box in row[:6]] == [FORWARD] * 4 + [BACKWARD, FORWARD]


def test_without_a_pipeline_communication_has_boxes_of_its_own():
    row = [box.kind for box in pipeline_boxes(step(1, 1, 1)).boxes]
    assert row == [FORWARD, SENDING, AGAIN, BACKWARD, SENDING]
    assert SENDING not in {box.kind for box in pipeline_boxes(step(2)).boxes}


def test_what_follows_the_pipeline_is_on_every_stage():
    made = pipeline_boxes(step(2, after=(("optimizer", 0.5), ("fixed", 0.25), ("nothing", 0.0))))
    after = [(box.stage, box.kind, box.start - made.pipeline) for box in made.boxes if box.microbatch < 0]
    assert after == [(0, "optimizer", 0.0), (0, "fixed", 0.5), (1, "optimizer", 0.0), (1, "fixed", 0.5)]
    assert made.seconds == made.pipeline + 0.75


def test_a_long_step_shows_few_boxes_and_keeps_its_time():
    asked = step(16, 4, 4096)
    made = pipeline_boxes(asked)
    assert made.skipped == 4096 - 48 and made.pipeline == pytest.approx(closed(asked))
    assert {box.microbatch for box in made.boxes} >= {0, 4095}


@pytest.mark.parametrize(
    ("model", "on", "options"),
    [
        ("llama-3.1-8b", "8xH100-SXM-80GB", {"recompute": "full", "global_batch_size": 32}),
        ("llama-3.1-8b", "8xH100-SXM-80GB", {"runtime": "deepspeed"}),
        (
            "llama-3.1-8b",
            "8xH100-SXM-80GB",
            {"runtime": "deepspeed", "offload_optimizer": "cpu", "host_update_bandwidth": 30e9},
        ),
        ("llama-3.1-8b", "8xH100-SXM-80GB", {"offload_activations": "cpu", "sequence_length": 8192}),
        (
            "llama-3.1-8b",
            "4x8xH100-SXM-80GB",
            {"runtime": "megatron", "pipeline_parallel_size": 4, "global_batch_size": 64},
        ),
        (
            "mixtral-8x7b",
            "4x8xH100-SXM-80GB",
            {
                "runtime": "megatron",
                "pipeline_parallel_size": 2,
                "expert_parallel_size": 4,
                "virtual_pipeline_size": 2,
                "global_batch_size": 128,
            },
        ),
        (
            "llama-3.1-8b",
            "8xH100-SXM-80GB",
            {"sequence_length": 8192, "offload_activations": "cpu", "straggler_slowdown": 1.25, "straggler_share": 0.5},
        ),
    ],
    ids=str,
)
def test_the_pieces_of_an_answer_add_up_to_its_time(model, on, options):
    answer = tonnage.train(model, on=on, **options)
    seconds = answer.step_time.value
    assert sum(work.seconds for work in answer.pieces.work) == pytest.approx(seconds)
    assert pipeline_boxes(answer.pieces).seconds == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize("name", ["gpipe", "interleaved-zero-bubble", "zbv", "dualpipev"])
def test_the_pieces_of_a_step_whose_schedule_is_not_drawn_add_up_to_its_time(name):
    answer = tonnage.train(
        "llama-3.1-8b", "8xH100-SXM-80GB", pipeline_parallel_size=4, num_microbatches=16, pipeline_schedule=name
    )
    assert sum(work.seconds for work in answer.pieces.work) == pytest.approx(answer.step_time.value)
    assert answer.pieces.schedule == name

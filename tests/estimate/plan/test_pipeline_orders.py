"""Schedules that are no 1F1B, played out: the orders are PyTorch's, and end when the closed form says."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tonnage.estimate.plan.pipeline_boxes import BACKWARD, FORWARD, StageSeconds, StepSeconds
from tonnage.estimate.plan.pipeline_orders import (
    INPUTS,
    ORDERS,
    WEIGHTS,
    dualpipev,
    gpipe,
    interleaved_zero_bubble,
    played,
    zbv,
)
from tonnage.formulas.pipeline import dualpipev_bubble_seconds, gpipe_bubble_seconds, zbv_bubble_seconds
from tonnage.runtimes import training_runtime, training_runtimes

LETTERS = {FORWARD: "F", BACKWARD: "B", INPUTS: "I", WEIGHTS: "W"}
TORCH = {"FORWARD": "F", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W", "FULL_BACKWARD": "B"}
STAGE = StageSeconds(1.0, 0.0, 2.0, weights=1.0)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(1, 4))
def test_the_order_of_gpipe_is_pytorchs(stages, rounds):
    count = stages * rounds
    for rank, theirs in enumerate(torch_order("GPipe", stages, count, 1)):
        assert [(LETTERS[kind], part, number) for kind, part, number in gpipe(rank, stages, 1, count)] == theirs


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(2, 3))
def test_the_order_of_interleaved_zero_bubble_is_pytorchs(stages, rounds, chunks):
    count = stages * rounds
    for rank, theirs in enumerate(torch_order("InterleavedZeroBubble", stages, count, chunks)):
        assert [
            (LETTERS[kind], part, number) for kind, part, number in interleaved_zero_bubble(rank, stages, chunks, count)
        ] == theirs


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 7), st.integers(1, 30))
def test_the_order_of_zbv_is_pytorchs_also_of_fewer_micro_batches_than_fill_the_v(stages, count):
    for rank, theirs in enumerate(torch_together("ZBVZeroBubble", stages, count, 2)):
        assert lettered(zbv(rank, stages, 2, count)) == theirs


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 7), st.integers(0, 20))
def test_the_order_of_dualpipev_is_pytorchs_with_what_it_runs_together(stages, more):
    count = 2 * stages + more
    for rank, theirs in enumerate(torch_together("DualPipeV", stages, count, 2)):
        assert lettered(dualpipev(rank, stages, 2, count)) == theirs


def lettered(order):
    return [[(LETTERS[kind], part, number) for kind, part, number in together] for together in order]


def torch_order(name, stages, count, chunks):
    return [
        [each for together in row for each in together if each[0]]
        for row in torch_together(name, stages, count, chunks)
    ]


def torch_together(name, stages, count, chunks):
    """What each rank does, as lists of what it runs together."""
    visualizer = pytest.importorskip(
        "torch.distributed.pipelining._schedule_visualizer", reason="the orders are compared with PyTorch's"
    )
    ranks = visualizer.get_schedule_ops(name, stages, count, chunks)
    made = [
        [
            [
                (TORCH.get(part.computation_type.name), part.stage_index, part.microbatch_index)
                for part in each.sub_actions or (each,)
            ]
            for each in row
            if each is not None
        ]
        for row in ranks
    ]
    return [[together for together in row if all(each[0] for each in together)] for row in made]


@given(st.integers(2, 8), st.integers(1, 8))
def test_gpipe_ends_when_the_closed_form_says(stages, count):
    made, fewer = played(StepSeconds(stages=(STAGE,) * stages, num_microbatches=count, schedule="gpipe"))
    assert not fewer
    bubble = gpipe_bubble_seconds(tau=3.0 * stages, tau_f=1.0, tau_b=2.0, tau_step=3.0, m=count)
    assert made.pipeline == pytest.approx(3.0 * count + bubble)


def test_weights_are_made_where_others_would_wait():
    step = StepSeconds(stages=(STAGE,) * 4, num_microbatches=8, chunks=2, schedule="interleaved-zero-bubble")
    zero, _ = played(step)
    usual, _ = played(StepSeconds(stages=(STAGE,) * 4, num_microbatches=8, chunks=2, schedule="interleaved-1f1b"))
    assert zero.pipeline < usual.pipeline
    for rank in range(4):
        row = sorted((box for box in zero.boxes if box.stage == rank), key=lambda box: box.start)
        assert all(box.end <= after.start + 1e-9 for box, after in itertools.pairwise(row))
        assert sum(box.seconds for box in row) == pytest.approx(3.0 * 8)


def test_a_long_step_is_drawn_as_one_of_fewer_micro_batches_and_says_so():
    made, fewer = played(StepSeconds(stages=(STAGE,) * 4, num_microbatches=64, schedule="gpipe"))
    assert fewer and made.skipped == 56


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 8),
    st.integers(0, 8),
    st.sampled_from([(1, 1, 1), (1, 1.2, 0.8), (1, 1.6, 0.9), (1, 2.2, 0.3), (1, 1.5, 1.2)]),
)
def test_orders_in_a_v_end_when_the_closed_forms_say(stages, more, times):
    forward, inputs, weights = times
    stage = StageSeconds(forward, 0.0, inputs + weights, weights=weights)
    others = {"tau_f": (stages - 1) * forward, "tau_b": (stages - 1) * inputs, "tau_w": (stages - 1) * weights}
    for name, bubble, early in (("zbv", zbv_bubble_seconds, 0.0), ("dualpipev", dualpipev_bubble_seconds, forward / 2)):
        step = StepSeconds(stages=(stage,) * stages, num_microbatches=2 * stages + more, chunks=2, schedule=name)
        made, _ = played(step)
        said = step.num_microbatches * sum(times) + bubble(**others)
        # DualPipeV's own formula leaves out that the first pair of passes is not run together
        assert made.pipeline - 1e-9 <= said <= made.pipeline + early + 1e-9


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 9), st.integers(1, 40), st.sampled_from(ORDERS))
def test_every_stage_does_all_its_work_and_one_thing_at_a_time(stages, rounds, name):
    chunks = 1 if name in ("1f1b", "gpipe", "zb-h1", "zb-h2") else 2
    step = StepSeconds(stages=(STAGE,) * stages, num_microbatches=2 * stages * rounds, chunks=chunks, schedule=name)
    made, _ = played(step)
    shown = step.num_microbatches - made.skipped / step.directions
    for rank in range(step.directions * stages):
        row = sorted((box for box in made.boxes if box.stage == rank), key=lambda box: box.start)
        assert all(box.end <= after.start + 1e-9 for box, after in itertools.pairwise(row))
        assert sum(box.seconds for box in row) == pytest.approx(3.0 * shown)
        assert {(box.microbatch, box.chunk) for box in row if box.kind == FORWARD} >= {
            (each * step.num_microbatches * (step.directions - 1), each) for each in range(chunks)
        }


def test_every_schedule_that_a_runtime_has_is_played_out():
    assert {name for runtime in training_runtimes() for name in training_runtime(runtime).schedules} == set(ORDERS)

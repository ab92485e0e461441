"""Steps of uneven ranks under schedules that split the backward pass: what PyTorch's own orders take, run by
themselves.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_schedules import orders_of_torch, plan_of, run, step

import tonnage
from tonnage.estimate.plan import schedule
from tonnage.estimate.plan.pipeline_boxes import StageSeconds, StepSeconds
from tonnage.estimate.plan.pipeline_orders import (
    _simulated,
    enough,
    periodic_seconds,
    pipeline_seconds,
    played,
)
from tonnage.estimate.plan.schedule import Times

# interleaved 1F1B over uneven ranks has the closed form of even ones, as Megatron's authors give it; only its
# remainders are played out. Those that PyTorch has no order of are in test_zero_bubble_and_dualpipe.
NAMES = ["dualpipev", "interleaved-zero-bubble", "zbv"]
SECONDS = st.floats(0.2, 3)
RANK = st.tuples(SECONDS, SECONDS, SECONDS)


def fitting(name, stages, count):
    """The next larger number of micro-batches that PyTorch takes."""
    if name == "dualpipev":
        return max(count, 2 * stages)
    return next(m for m in itertools.count(count) if name == "zbv" or not m % max(1, m // stages))


def halves(times, which, stages):
    """By stage of the model what its rank takes for one of two chunks; a V's second chunks come in the opposite
    order.
    """
    back = range(stages) if which == "interleaved-zero-bubble" else range(stages - 1, -1, -1)
    return [[each[kind] / 2 for each in (*times, *(times[rank] for rank in back))] for kind in range(3)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(st.lists(RANK, min_size=2, max_size=6), st.integers(1, 32))
def test_uneven_ranks_take_what_their_order_takes(name, times, count):
    count = fitting(name, len(times), count)
    while enough(name, len(times), count) < count:
        count = fitting(name, len(times), count // 2)
    taken = run(orders_of_torch(name, len(times), count, 2), *halves(times, name, len(times)))
    assert step(name, [Times(*each) for each in times], count, 2) == pytest.approx(taken)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("stages", [4, 8])
def test_fewer_micro_batches_than_fill_the_v_wait_for_each_other(stages, count):
    """The closed form is of a V that is full: of one micro-batch of 8 ranks it says less than half."""
    times = [(1.0, 1.0, 1.0)] * stages
    taken = run(orders_of_torch("zbv", stages, count, 2), *halves(times, "zbv", stages))
    assert step("zbv", [Times(*each) for each in times], count, 2) == pytest.approx(taken)
    assert count > 1 or taken == pytest.approx(2 * stages + 1)  # forward, back, and the first rank's weights


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(
    st.integers(2, 8),
    st.integers(1, 12),
    st.floats(1, 2.5),
    st.floats(0.3, 1.3),
    st.just(1.0) | st.floats(1.1, 1.5),
    st.data(),
)
def test_of_ranks_alike_or_one_slower_by_a_tenth_any_number_of_micro_batches_is_exact(
    name, stages, more, inputs, weights, slower, data
):
    times = [(1.0, inputs, weights)] * stages
    times[data.draw(st.integers(0, stages - 1))] = (slower, slower * inputs, slower * weights)
    count = enough(name, stages, 10_000 * stages) + stages * more
    count += -count % stages
    assert periodic_seconds(name, 2, count, times) == pytest.approx(pipeline_seconds(name, 2, count, times))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(st.lists(st.tuples(*[st.floats(0.8, 1.2)] * 3), min_size=2, max_size=8), st.integers(1, 8))
def test_ranks_that_are_nearly_the_slowest_come_out_too_long_by_less_than_two_percent(name, times, more):
    stages = len(times)
    count = enough(name, stages, 10_000 * stages) + stages * more
    count += -count % stages
    taken = pipeline_seconds(name, 2, count, times)
    assert taken * (1 - 1e-9) <= periodic_seconds(name, 2, count, times) <= taken * 1.02


@pytest.mark.parametrize("name", ["zbv", "dualpipev"])
@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_first_rank_whose_second_chunk_takes_longer_is_within_a_percent(name, stages, share):
    """The head is on the way up: a rank's chunks are taken to be alike."""
    count, times = 2 * stages, [(1.0, 1.6, 0.9)] * stages
    parts = halves(times, name, stages)
    for each in parts:
        each[0], each[-1] = each[0] * (1 - share), each[-1] * (1 + share)
    taken = run(orders_of_torch(name, stages, count, 2), *parts)
    assert step(name, [Times(*each) for each in times], count, 2) == pytest.approx(taken, rel=0.011)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 2**32))
@settings(max_examples=15)
def test_arrays_of_plans_of_uneven_ranks_give_what_each_plan_gives(name, seed):
    rng = np.random.default_rng(seed)
    stages = int(rng.integers(2, 6))
    sizes = [fitting(name, stages, int(count)) for count in (1, stages, 2 * stages, 3 * stages, 40 * stages)]
    counts = rng.choice(sizes, (12, 1)).astype(float)  # on one of two axes, as in a search of several machines
    times = rng.uniform(0.5, 1.5, (stages, 3, 12, 3))
    plan = replace(plan_of(name, stages, 1, 2), num_microbatches=counts)
    found = schedule.bubble(plan, [Times(*each) for each in times]).value
    assert found.shape == (12, 3)
    for row, column in np.ndindex(found.shape):
        alone = replace(plan, num_microbatches=int(counts[row, 0]))
        one = schedule.bubble(alone, [Times(*map(float, each[:, row, column])) for each in times]).value
        assert found[row, column] == pytest.approx(one, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(
    st.integers(2, 6),
    st.integers(1, 60),
    st.sampled_from([(1, 1, 1), (1, 1.6, 0.9), (1, 2.2, 0.3), (1, 1.3, 0), (1, 0.8, 1.5)]),
)
def test_what_is_left_out_of_the_picture_changes_no_box_that_is_shown(name, stages, count, times):
    count, stage = fitting(name, stages, count), StageSeconds(times[0], 0.0, times[1] + times[2], weights=times[2])
    asked = StepSeconds(stages=(stage,) * stages, num_microbatches=count, chunks=2, schedule=name)
    made, fewer = played(asked)
    whole = _simulated(asked)
    ends = {(box.stage, box.kind, box.microbatch, box.chunk): box.end for box in whole}
    assert not fewer and made.pipeline == pytest.approx(max(ends.values()))
    assert (
        len(ends) * (count - made.skipped) == len(made.boxes) * count or name == "dualpipev"
    )  # whose passes in the middle are not split
    for box in made.boxes:
        assert box.end == pytest.approx(ends[box.stage, box.kind, box.microbatch, box.chunk])


@pytest.mark.parametrize("count", [8, 16, 64])
@pytest.mark.parametrize("name", NAMES)
def test_the_picture_of_a_model_with_both_ends_on_one_rank_ends_with_the_step(name, count):
    """Handing on is in the passes of the picture, and beside them in the step: a thousandth."""
    answer = tonnage.train(
        "llama-3.1-8b", "8xH100-SXM-80GB", pipeline_parallel_size=4, num_microbatches=count, pipeline_schedule=name
    )
    made, fewer = played(answer.pieces)
    assert not fewer and made.seconds == pytest.approx(answer.step_time.value, rel=0.002)
    assert count - made.skipped == min(count, 12)

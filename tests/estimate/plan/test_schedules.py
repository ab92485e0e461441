"""Schedules of a pipeline: closed forms against the papers' figures and against the orders themselves, run with
times of their own.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import tonnage
from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step, training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan import schedule
from tonnage.estimate.plan.schedule import Times
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.formulas import pipeline as f
from tonnage.kernel.errors import InvalidPlan, MissingDatum, UnknownName
from tonnage.ops import Embedding, Head
from tonnage.spec import TrainingPlan

H100 = "8xH100-SXM-80GB"
TORCH = {
    "interleaved-1f1b": "Interleaved1F1B",
    "interleaved-zero-bubble": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
}
PASSES = {"FORWARD": "F", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W", "FULL_BACKWARD": "B"}


# ---- orders, run ----


def orders_of_1f1b(stages, count):
    """Of each rank what it does, one after the other: sets of (pass, stage, micro-batch)."""
    made = []
    for rank in range(stages):
        ahead = min(stages - 1 - rank, count)
        row = [("F", rank, number) for number in range(ahead)]
        for number in range(count):
            row += [("F", rank, ahead + number)] if ahead + number < count else []
            row.append(("B", rank, number))
        made.append([[each] for each in row])
    return made


def orders_of_gpipe(stages, count):
    return [[[(what, rank, number)] for what in "FB" for number in range(count)] for rank in range(stages)]


def orders_of_torch(name, stages, count, chunks):
    """What torch.distributed.pipelining makes: F forward, I and W the halves of backward, B both."""
    visualizer = pytest.importorskip("torch.distributed.pipelining._schedule_visualizer")
    ranks = visualizer.get_schedule_ops(TORCH[name], stages, count, chunks)
    return [
        [
            [
                (PASSES.get(part.computation_type.name, ""), part.stage_index, part.microbatch_index)
                for part in action.sub_actions or (action,)
            ]
            for action in rank
            if action is not None
        ]
        for rank in ranks
    ]


def run(orders, forward, inputs, weights):
    """Seconds until all is done, each list by stage; a pass begins when the rank is free and what it needs has come."""
    last, ended, clock, at = len(forward) - 1, {}, [0.0] * len(orders), [0] * len(orders)
    moved = True
    while moved:
        moved = False
        for rank, row in enumerate(orders):
            while at[rank] < len(row):
                now, made = clock[rank], []
                for what, stage, number in row[at[rank]]:
                    needs = {"F": ("F", stage - 1, number) if stage else None, "W": None}.get(
                        what, ("I", stage + 1, number) if stage < last else None
                    )
                    if needs is not None and needs not in ended:
                        break
                    took = {
                        "F": forward[stage],
                        "I": inputs[stage],
                        "W": weights[stage],
                        "B": inputs[stage] + weights[stage],
                    }[what]
                    now = max(now, ended.get(needs, 0)) + took
                    made.append(("I" if what == "B" else what, stage, number))
                if len(made) < len(row[at[rank]]):
                    break
                ended.update(dict.fromkeys(made, now))
                clock[rank], at[rank], moved = now, at[rank] + 1, True
    assert all(place == len(row) for place, row in zip(at, orders, strict=True))
    return max(clock)


def most_held(orders, rank):
    """Forward passes without their weight gradients at the most, and input gradients without them."""
    held = waiting = 0
    most, longest = 0, 0
    for action in orders[rank]:
        for what, _stage, _number in action:
            held += {"F": 1, "W": -1, "B": -1}.get(what, 0)
            waiting += {"I": 1, "W": -1}.get(what, 0)
            most, longest = max(most, held), max(longest, waiting)
    return most, longest


def plan_of(name, stages, count, chunks):
    return TrainingPlan(
        sequence_length=1,
        pipeline_parallel_size=stages,
        virtual_pipeline_size=chunks,
        num_microbatches=count,
        pipeline_schedule=name,
    )


def step(name, times, count, chunks=1):
    """Seconds of the pipeline by the closed form."""
    plan = plan_of(name, len(times), count, chunks)
    return count * max(each.all for each in times) + schedule.bubble(plan, times).value


SECONDS = st.floats(0.2, 3)


@settings(max_examples=60)
@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=2, max_size=6), st.integers(1, 14))
def test_gpipe_of_uneven_stages_takes_what_its_order_takes(times, count):
    forward, inputs, weights = map(list, zip(*times, strict=True))
    taken = run(orders_of_gpipe(len(times), count), forward, inputs, weights)
    assert step("gpipe", [Times(*each) for each in times], count) == pytest.approx(taken)


@settings(max_examples=100)
@given(st.lists(st.floats(0.5, 1.5), min_size=2, max_size=6), st.integers(1, 16), st.floats(1, 2.5))
def test_1f1b_of_uneven_stages_takes_what_its_order_takes(forward, count, ratio):
    """Backward in a like proportion to forward on every stage."""
    times = [Times(each, ratio * each / 2, ratio * each / 2) for each in forward]
    taken = run(
        orders_of_1f1b(len(times), count), forward, [each.inputs for each in times], [each.weights for each in times]
    )
    found = step("1f1b", times, count)
    assert 0.9 * taken <= found <= taken * (1 + 1e-9)
    # the sum of all stages and m - 1 times the slowest one is a bound, which stages with a slow first one stay far
    # below
    assert found <= sum(each.all for each in times) + (count - 1) * max(each.all for each in times) + 1e-9


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(1, 16), st.floats(1, 3), st.sampled_from([0, -1]))
def test_1f1b_with_a_slow_first_or_last_stage_is_exact(stages, count, more, which):
    forward = [1.0] * stages
    forward[which] = more
    times = [Times(each, each, each) for each in forward]
    taken = run(orders_of_1f1b(stages, count), forward, forward, forward)
    assert step("1f1b", times, count) == pytest.approx(taken)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize(
    ("name", "chunks"),
    [
        ("interleaved-1f1b", 2),
        ("interleaved-1f1b", 4),
        ("interleaved-zero-bubble", 2),
        ("interleaved-zero-bubble", 3),
        ("zbv", 2),
        ("dualpipev", 2),
    ],
)
@pytest.mark.parametrize(
    "times",
    [(1, 1, 1), (1, 1.2, 0.8), (1, 1, 0.8), (1, 1.6, 0.9), (1, 2, 1), (1, 1.3, 0), (1, 2.2, 0.3), (1, 1.5, 1.2)],
)
def test_torchs_orders_of_even_stages_take_what_the_closed_forms_say(name, chunks, stages, times):
    count = 4 * stages
    parts = [[each / chunks] * (chunks * stages) for each in times]
    taken = run(orders_of_torch(name, stages, count, chunks), *parts)
    found = step(name, [Times(*times)] * stages, count, chunks)
    # DualPipeV's own formula leaves out that the first pair of passes is not overlapped: half a forward pass of a rank
    # at most
    assert taken - 1e-9 <= found <= taken + (times[0] / 2 if name == "dualpipev" else 0) + 1e-9


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize(
    ("name", "chunks"),
    [
        ("interleaved-1f1b", 2),
        ("interleaved-zero-bubble", 2),
        ("interleaved-zero-bubble", 3),
        ("zbv", 2),
        ("dualpipev", 2),
    ],
)
def test_torchs_orders_hold_as_many_micro_batches_as_the_closed_forms_say(name, chunks, stages):
    count = 3 * stages
    orders, plan = orders_of_torch(name, stages, count, chunks), plan_of(name, stages, count, chunks)
    for rank in range(stages):
        most, longest = most_held(orders, rank)
        assert schedule.in_flight(plan, rank).value == pytest.approx(most / chunks)
        waits = schedule.waiting_for_weights(plan, rank)
        if waits is None:
            assert longest == 0
        elif name != "dualpipev":  # there those that wait in the end meet half the micro-batches
            assert waits.value == pytest.approx(longest / chunks)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 6), st.integers(2, 4), st.integers(1, 30), st.floats(1, 2.5), st.integers(0, 2**30))
def test_interleaved_1f1b_of_any_number_of_micro_batches_takes_what_its_order_takes(stages, chunks, count, ratio, seed):
    """Also of fewer than stages, and of rounds that the stages do not divide: stages alike, and one that is slower."""
    if count % max(count // stages, 1):
        return
    forward = [1.0] * stages
    forward[seed % stages] += (seed % 3) / 4 if count % stages else 0.0
    times = [Times(each, ratio * each / 2, ratio * each / 2) for each in forward]
    parts = [[getattr(each, name) / chunks for each in times] * chunks for name in ("forward", "inputs", "weights")]
    orders = orders_of_torch("interleaved-1f1b", stages, count, chunks)
    taken, found = run(orders, *parts), step("interleaved-1f1b", times, count, chunks)
    # of many micro-batches a few are played out: never too short
    assert taken - 1e-9 <= found <= taken * 1.02 + 1e-9
    plan = plan_of("interleaved-1f1b", stages, count, chunks)
    for rank in range(stages):
        assert schedule.in_flight(plan, rank).value == pytest.approx(most_held(orders, rank)[0] / chunks)


def test_interleaved_seconds_of_arrays_are_those_of_each_plan():
    counts = np.array([1.0, 3.0, 4.0, 10.0, 16.0])
    times = [Times(1.0, 1.5, 0.5), Times(1.2, 1.7, 0.6), Times(1.0, 1.5, 0.5), Times(1.1, 1.5, 0.5)]
    wide = [
        Times(*(np.broadcast_to(each, counts.shape) for each in (one.forward, one.inputs, one.weights)))
        for one in times
    ]
    found = schedule.bubble(plan_of("interleaved-1f1b", 4, counts, 2), wide).value
    each = [schedule.bubble(plan_of("interleaved-1f1b", 4, int(count), 2), times).value for count in counts]
    assert found == pytest.approx(each)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved-1f1b", "interleaved-zero-bubble", "zbv"])
@pytest.mark.parametrize("stages", [2, 4, 8])
def test_one_micro_batch_passes_all_stages_one_after_the_other(name, stages):
    times = [Times(1.0, 1.5, 0.5)] * stages
    chunks = schedule.SCHEDULES[name].chunks[0]
    weights = 0.5 * (stages - 1) if schedule.SCHEDULES[name].splits else 0  # made beside what other stages do
    assert step(name, times, 1, chunks) == pytest.approx(3.0 * stages - weights, rel=0.05)


# ---- the papers' figures ----


@given(st.integers(2, 32))
def test_zero_bubble_with_equal_passes_waits_a_third_of_what_1f1b_does(stages):
    """Qi2024: (p - 1)(T_F + T_B - T_W) for ZB-H1, (p - 1)(T_F + T_B + T_W) for 1F1B."""
    one = Times(1.0, 1.0, 1.0)
    plain = schedule.bubble(plan_of("1f1b", stages, 2 * stages, 1), [one] * stages).value
    assert plain == pytest.approx(3 * (stages - 1))
    assert schedule.bubble(plan_of("zb-h1", stages, 2 * stages, 1), [one] * stages).value == pytest.approx(plain / 3)


@given(st.integers(1, 32), SECONDS, SECONDS, SECONDS)
def test_dualpipe_is_as_its_table_has_it(half, forward, inputs, weights):
    stages, back = 2 * half, inputs + weights
    expected = (stages / 2 - 1) * ((forward + back) + back - 3 * weights)
    assert f.dualpipe_bubble_seconds(p=stages, tau_f=forward, tau_b=inputs, tau_w=weights) == pytest.approx(expected)


def test_activations_are_those_of_dualpipes_readme():
    """1F1B and ZB1P: PP; DualPipeV: PP + 1 stages on PP / 2 devices."""
    plans = {name: plan_of(name, 8, 64, chunks) for name, chunks in (("1f1b", 1), ("zb-h1", 1), ("dualpipev", 2))}
    assert schedule.in_flight(plans["1f1b"], 0).value == 8
    assert {schedule.in_flight(plans["zb-h1"], rank).value for rank in range(8)} == {8}
    assert schedule.in_flight(plans["dualpipev"], 0).value * 2 == 2 * 8 + 1


# ---- in a run ----


def of(**options):
    made, where = read("llama-3.1-8b", offline=True), cluster(H100)
    options = {"pipeline_parallel_size": 4, "num_microbatches": 16, **options}
    return made, training_plan(made, where, TrainingOptions(**options), Question()), where


@pytest.mark.parametrize("said", ["ZBVZeroBubble", "zbv", "ZB-V"])
def test_schedules_have_the_names_that_frameworks_give_them(said):
    assert of(pipeline_schedule=said)[1].pipeline_schedule == "zbv"
    with pytest.raises(UnknownName):
        of(pipeline_schedule="zigzag")


def test_several_chunks_are_interleaved_and_schedules_of_several_have_two():
    assert of(virtual_pipeline_size=2)[1].pipeline_schedule == "interleaved-1f1b"
    assert of(pipeline_schedule="Interleaved1F1B")[1].virtual_pipeline_size == 2
    assert of(runtime="megatron", virtual_pipeline_size=4)[1].pipeline_schedule == "interleaved-1f1b"
    assert of()[1].pipeline_schedule == "1f1b"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runtime": "megatron", "pipeline_schedule": "zbv"}, "fsdp2"),
        ({"pipeline_schedule": "dualpipe"}, "hai-llm"),
        ({"pipeline_schedule": "zb-h2"}, "zero-bubble"),
        ({"pipeline_schedule": "zbv", "virtual_pipeline_size": 4}, "must be 2"),
        ({"pipeline_schedule": "gpipe", "virtual_pipeline_size": 2}, "must be 1"),
        ({"pipeline_schedule": "dualpipev", "num_microbatches": 7}, "Nearest: 8"),
        ({"pipeline_schedule": "zbv", "compile": True}, "compile"),
        ({"pipeline_schedule": "gpipe", "pipeline_parallel_size": 1}, "above 1"),
        ({"pipeline_schedule": "interleaved-zero-bubble", "num_microbatches": 11}, "10 or 12"),
        ({"num_microbatches": 3}, "Nearest: 4"),
        ({"runtime": "nanotron", "num_microbatches": 2}, "Nearest: 3"),
        ({"runtime": "nanotron", "virtual_pipeline_size": 2}, "no pipeline_schedule"),
        ({"runtime": "megatron", "virtual_pipeline_size": 2, "num_microbatches": 1}, "Nearest: 4"),
        ({"runtime": "megatron", "virtual_pipeline_size": 2, "num_microbatches": 6}, "4 or 8"),
    ],
)
def test_what_a_schedule_cannot_do_is_refused_with_what_can(options, words):
    with pytest.raises(InvalidPlan, match=words):
        of(**options)


def test_recomputation_under_a_split_backward_is_not_known():
    with pytest.raises(MissingDatum, match="recompute must be none"):
        of(pipeline_schedule="zbv", recompute="full")


@pytest.mark.parametrize("name", ["zbv", "interleaved-1f1b"])
def test_frozen_layers_between_chunks_are_not_estimated(name):
    with pytest.raises(MissingDatum, match="in the midst"):
        of(pipeline_schedule=name, method="freeze", trainable_layers=4)


def test_the_first_rank_of_a_v_has_both_ends_of_the_model():
    model, plan, where = of(pipeline_schedule="zbv")
    stages = Step(model, plan, where).stages
    assert [stage.is_last for stage in stages] == [True, False, False, False]
    assert any(isinstance(op, Embedding) for op in stages[0].before) and any(
        isinstance(op, Head) for op in stages[0].after
    )
    assert sum(count for stage in stages for _, count in stage.layers) == model.num_layers
    held = {stage.rank: sum(count for _, count in stage.layers) for stage in stages}
    assert held[0] <= min(held.values())


def test_chunks_of_torchtitan_need_not_divide_the_layers_and_ends_weigh_one_each():
    """34 of 32 layers, table and head over 12 chunks: 3 for the first ten, 2 for the others, less the ends."""
    model, plan, where = of(pipeline_schedule="Interleaved1F1B", virtual_pipeline_size=3)
    held = [sum(count for _, count in stage.layers) for stage in Step(model, plan, where).stages]
    assert sum(held) == model.num_layers and held == [8, 9, 8, 7]
    with pytest.raises(InvalidPlan, match="must divide"):
        of(runtime="megatron", virtual_pipeline_size=3)


def test_a_tied_table_of_a_v_is_there_once():
    model, where = read("llama-3.2-1b", offline=True), cluster(H100)
    asked = TrainingOptions(pipeline_parallel_size=4, num_microbatches=16, pipeline_schedule="zbv")
    stages = Step(model, training_plan(model, where, asked, Question()), where).stages
    assert stages[0].table and not any(isinstance(op, Embedding) for op in stages[0].after)


def test_gpipe_holds_all_micro_batches_and_waits_as_long_as_1f1b():
    model, plan, where = of()
    other = replace(plan, pipeline_schedule="gpipe")
    last = [training_memory(model, each, where).ranks[-1].needed for each in (plan, other)]
    assert last[1] > last[0]
    more = [training_memory(model, replace(each, num_microbatches=32), where).needed for each in (plan, other)]
    assert (
        more[0] < training_memory(model, plan, where).needed * 1.05
        and more[1] > 1.5 * training_memory(model, other, where).needed
    )
    plain, all_forward = (Timing(model, each, where).walk.seconds() for each in (plan, other))
    assert all_forward == pytest.approx(plain, rel=0.01)


def test_zero_bubbles_wait_less_than_interleaving_and_that_less_than_1f1b():
    waits = {}
    for name in ("1f1b", "interleaved-1f1b", "interleaved-zero-bubble", "zbv"):
        model, plan, where = of(pipeline_schedule=name)
        made = Timing(model, plan, where)
        waits[name] = made.walk.bubble
        assert made.seconds == pytest.approx(sum(made.spent.values()))
    assert waits["zbv"] < waits["interleaved-zero-bubble"] < waits["interleaved-1f1b"] < waits["1f1b"]


@pytest.mark.parametrize("name", ["1f1b", "gpipe", "interleaved-1f1b", "interleaved-zero-bubble", "zbv", "dualpipev"])
@pytest.mark.parametrize("stages", [2, 4, 8])
def test_the_fullest_rank_needs_no_less_than_any_other(name, stages):
    """Ranks that are alike are not all looked at: under a split backward the last of them holds most, else the
    first.
    """
    made = training_memory(*of(pipeline_schedule=name, pipeline_parallel_size=stages))
    assert made.needed == made.fullest.needed == max(rank.needed for rank in made.ranks)


@pytest.mark.parametrize("name", ["1f1b", "gpipe", "interleaved-1f1b", "interleaved-zero-bubble", "zbv", "dualpipev"])
def test_arrays_of_plans_give_what_each_plan_gives(name):
    import numpy as np

    model, plan, where = of(pipeline_schedule=name)
    counts = np.array([8, 16, 64])
    many = replace(plan, num_microbatches=counts)
    alone = [replace(plan, num_microbatches=int(count)) for count in counts]
    assert Timing(model, many, where).walk.seconds() == pytest.approx(
        [Timing(model, each, where).walk.seconds() for each in alone]
    )
    assert training_memory(model, many, where).needed == pytest.approx(
        [training_memory(model, each, where).needed for each in alone]
    )


def test_the_tree_of_memory_adds_up_to_the_number():
    for name in ("gpipe", "zbv", "interleaved-zero-bubble", "dualpipev"):
        made = tonnage.train(
            "llama-3.1-8b", H100, pipeline_parallel_size=4, num_microbatches=16, pipeline_schedule=name, as_is=True
        )
        model, plan, where = of(pipeline_schedule=name)
        assert made.memory.value == pytest.approx(training_memory(model, plan, where).needed)
        assert (name != "gpipe") == any(
            "wait for those of weights" in term.name for rank in made.ranks for _, term in rank.walk()
        )

"""ZB-H1 and ZB-H2 on the authors' Megatron-LM, DualPipe on HAI-LLM: the papers' tables, and orders run with times of
their own.

Sources: Qi et al., Zero Bubble Pipeline Parallelism, sec. 2: bubbles (p - 1)(T_F + T_B + T_W) of 1F1B,
(p - 1)(T_F + T_B - T_W) of ZB-H1 and (p - 1)(T_F + T_B - 2 T_W) of ZB-H2, activations of p, p and 2p - 1 micro-batches;
DeepSeek-V3's report, table 2: (PP/2 - 1)(F&B + B - 3W), parameters twice, activations PP + 1; DualPipe,
dualpipe/dualpipe.py: DualPipe.step.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_schedules import most_held, plan_of, run, step

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan import schedule
from tonnage.estimate.plan.pipeline_boxes import BACKWARD, FORWARD, StageSeconds, StepSeconds
from tonnage.estimate.plan.pipeline_orders import (
    INPUTS,
    WEIGHTS,
    interleaved_zero_bubble,
    played,
    zb_h1,
    zb_h2,
)
from tonnage.estimate.plan.schedule import Times, as_walked
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.models import read
from tonnage.runtimes import training_runtimes
from tonnage.search.training.launch.settings import launch_settings
from tonnage.web.timeline import drawn

LETTERS = {FORWARD: "F", BACKWARD: "B", INPUTS: "I", WEIGHTS: "W"}
NODE = "8xH100-SXM-80GB"
MODEL = read("llama-3.1-8b")
ORDERS = {"zb-h1": zb_h1, "zb-h2": zb_h2}
TIMES = [(1, 1, 1), (1, 1.2, 0.8), (1, 1.6, 0.9), (1, 2.2, 0.3), (1, 1, 0.3)]


def orders(name, stages, count):
    """As `run` of test_schedules takes them."""
    order = ORDERS[name]
    return [
        [[(LETTERS[kind], part, number)] for kind, part, number in order(rank, stages, 1, count)]
        for rank in range(stages)
    ]


def spans(name, stages, count, times):
    """Seconds of each rank from its first pass to its last, by a simulation of its own."""
    ended, rows, at = {}, orders(name, stages, count), [0] * stages
    clock, begun = [0.0] * stages, [None] * stages
    while any(at[rank] < len(rows[rank]) for rank in range(stages)):
        for rank, row in enumerate(rows):
            while at[rank] < len(row):
                ((what, part, number),) = row[at[rank]]
                needs = {"F": ("F", part - 1, number) if part else None, "W": None}.get(
                    what, ("I", part + 1, number) if part < stages - 1 else None
                )
                if needs is not None and needs not in ended:
                    break
                start = max(clock[rank], ended.get(needs, 0))
                begun[rank] = start if begun[rank] is None else begun[rank]
                clock[rank] = ended[what, part, number] = start + times["FIW".index(what)]
                at[rank] += 1
    return [end - start for start, end in zip(begun, clock, strict=True)]


# ---- ZB-H1 and ZB-H2 ----


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 6), st.integers(1, 4))
def test_the_order_of_zb_h1_is_that_of_pytorch_with_one_chunk(stages, rounds):
    """ScheduleInterleavedZeroBubble "is implementing the ZB1P schedule"; its order is held to ours by
    test_pipeline_orders.
    """
    for rank in range(stages):
        theirs = interleaved_zero_bubble(rank, stages, 1, stages * rounds)
        assert list(zb_h1(rank, stages, 1, stages * rounds)) == list(theirs)


@pytest.mark.parametrize("stages", [2, 4, 8, 16])
@pytest.mark.parametrize("times", TIMES)
def test_bubbles_are_those_of_the_papers_table(stages, times):
    forward, inputs, weights = times
    for name, fills in (("zb-h1", 1), ("zb-h2", 2)):
        count = 4 * stages
        expected = (stages - 1) * (forward + inputs - fills * weights)
        found = schedule.bubble(plan_of(name, stages, count, 1), [Times(*times)] * stages)
        assert found.value == pytest.approx(expected)
        rows = orders(name, stages, count)
        # under ZB-H1 all wait for the first rank's last pass; under ZB-H2 none does
        taken = max(spans(name, stages, count, times)) if name == "zb-h2" else run(rows, *([x] * stages for x in times))
        assert found.value == pytest.approx(taken - count * sum(times), abs=1e-6)


def test_with_equal_passes_zb_h2_has_no_bubble_and_zb_h1_a_third_of_1f1bs():
    """README.md of the authors: (p-1)/m, (p-1)/3m, 0."""
    for stages in (4, 8, 16):
        one = [Times(1.0, 1.0, 1.0)] * stages
        plain, first, second = (
            schedule.bubble(plan_of(name, stages, 4 * stages, 1), one).value for name in ("1f1b", "zb-h1", "zb-h2")
        )
        assert (plain, first, second) == pytest.approx((3 * (stages - 1), stages - 1, 0))


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize(("name", "held"), [("zb-h1", lambda p: p), ("zb-h2", lambda p: 2 * p - 1)])
def test_as_many_micro_batches_are_in_flight_as_the_table_says(name, held, stages):
    rows = orders(name, stages, 4 * stages)
    plan = plan_of(name, stages, 4 * stages, 1)
    for rank in range(stages):
        most, longest = most_held(rows, rank)
        assert schedule.in_flight(plan, rank).value == most == held(stages)
        assert schedule.waiting_for_weights(plan, rank).value == longest


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["zb-h1", "zb-h2"]),
    st.lists(st.tuples(*[st.floats(0.5, 2)] * 3), min_size=2, max_size=6),
    st.integers(1, 60),
)
def test_uneven_stages_take_no_less_than_their_order_and_at_most_two_percent_more(name, times, count):
    parts = [[each[kind] for each in times] for kind in range(3)]
    taken = run(orders(name, len(times), count), *parts)
    found = step(name, [Times(*each) for each in times], count, 1)
    if name == "zb-h1":
        assert taken * (1 - 1e-9) <= found <= taken * 1.02
    assert found <= taken * 1.02


def test_one_more_weight_gradient_that_waits_is_one_more_micro_batch():
    few, many = (of("zero-bubble", pipeline_schedule=name, pipeline_parallel_size=4) for name in ("zb-h1", "zb-h2"))
    held = [max(rank.needed for rank in training_memory(*each).ranks) for each in (few, many)]
    assert held[1] > held[0]
    times = [Timing(*each).seconds for each in (few, many)]
    assert times[1] < times[0]


# ---- DualPipe ----


def orders_of_dualpipe(ranks, count):
    """What each rank does in DualPipe.step, with its sends left out; numbers of the reverse direction follow those of
    the forward one.
    """
    half, chunks = ranks // 2, count // 2
    rows = []
    for rank in range(ranks):
        near, second = min(rank, ranks - 1 - rank), rank >= half
        done, row = {}, []

        def do(what, phase, row=row, done=done, rank=rank, second=second):
            direction = phase ^ second
            stage = rank if direction == 0 else ranks - 1 - rank
            kind = "I" if what in "IB" else what
            number = done[kind, direction] = done.get((kind, direction), -1) + 1
            return (what, stage, direction * chunks + number)

        waiting = []

        def zero_bubble(phase, do=do, waiting=waiting, row=row):
            what = do("I", phase)
            waiting.append(what)
            row.append([what])

        def weights(waiting=waiting, row=row):
            _, stage, number = waiting.pop(0)
            row.append([("W", stage, number)])

        for _ in range((half - near - 1) * 2):
            row.append([do("F", 0)])
        for _ in range(near + 1):
            row += [[do("F", 0)], [do("F", 1)]]
        for _ in range(half - near - 1):
            zero_bubble(1)
            weights()
            row.append([do("F", 1)])
        for turn in range(chunks - ranks + near + 1):
            if turn == 0 and near == half - 1:
                row += [[do("F", 0)], [do("B", 1)]]
            else:
                row.append([do("F", 0), do("B", 1)])
            row.append([do("F", 1), do("B", 0)])
        for _ in range(half - near - 1):
            row += [[do("B", 1)], [do("F", 1), do("B", 0)]]
        splits = False
        for turn in range(near + 1):
            for phase in (1, 0):
                if turn == (near + 1) // 2 and phase == near % 2:
                    splits = True
                if splits:
                    zero_bubble(phase)
                else:
                    row.append([do("B", phase)])
        for _ in range(half - near - 1):
            weights()
            zero_bubble(0)
        for _ in range(near + 1):
            weights()
        assert not waiting
        rows.append(row)
    return rows


@pytest.mark.parametrize(("ranks", "count"), [(4, 8), (8, 16), (8, 20), (16, 40)])
@pytest.mark.parametrize("times", [(1, 1, 1), (1, 1.2, 0.8), (1, 1.6, 0.9)])
def test_the_boxes_of_dualpipe_are_those_of_its_own_code(ranks, count, times):
    """The readme's picture has 8 ranks and 20 micro-batches. Both halves are played as one V."""
    half, (forward, inputs, weights) = ranks // 2, times
    rows = orders_of_dualpipe(ranks, count)
    stage = StageSeconds(2 * forward, 0.0, 2 * (inputs + weights), weights=2 * weights)
    made, fewer = played(
        StepSeconds(stages=(stage,) * half, num_microbatches=count // 2, chunks=2, schedule="dualpipe")
    )
    assert not fewer
    assert made.pipeline == pytest.approx(run(rows, *([each] * ranks for each in times)))
    if made.skipped:
        return
    for rank, row in enumerate(rows):
        boxes = sorted((box for box in made.boxes if box.stage == rank), key=lambda box: box.start)
        stages = [rank if box.chunk == 0 else ranks - 1 - rank for box in boxes]
        found = [(LETTERS[box.kind], at, box.microbatch) for box, at in zip(boxes, stages, strict=True)]
        assert found == [each for together in row for each in together]


@given(st.integers(2, 16), st.sampled_from(TIMES[:3]))
def test_the_bubble_of_dualpipe_is_that_of_table_2(half, times):
    """But for the first pair of passes, which its code does not overlap: half of a rank's forward pass less."""
    ranks, (forward, inputs, weights) = 2 * half, times
    back = inputs + weights
    table = (ranks / 2 - 1) * ((forward + back) + back - 3 * weights)
    plan = as_walked(plan_of("dualpipe", ranks, 4 * ranks, 1))
    two_stages = Times(2 * forward, 2 * inputs, 2 * weights)
    found = schedule.bubble(plan, [two_stages] * half).value
    assert table - forward - 1e-9 <= found <= table + 1e-9


def test_dualpipe_holds_two_stages_and_activations_of_one_more():
    """Table 2: parameters 2x, activations PP + 1."""
    plain, dual = (
        of(name, pipeline_schedule=kind, pipeline_parallel_size=8)
        for name, kind in (("megatron", "1f1b"), ("hai-llm", "dualpipe"))
    )
    held = [training_memory(*each) for each in (plain, dual)]
    weights = [sum(rank.peak.child("weights").value for rank in each.ranks) for each in held]
    assert len(held[1].ranks) == 4  # rank i and rank 7 - i are alike
    assert 2 * weights[1] == pytest.approx(2 * weights[0])
    assert 2 * schedule.in_flight(held[1].step.plan, 0).value == 9
    assert schedule.in_flight(held[0].step.plan, 0).value == 8


def test_dualpipe_is_two_pipelines_of_dualpipev_with_half_of_the_ranks():
    """README.md: DualPipeV is DualPipe cut in half."""
    model, dual, where = of("hai-llm", pipeline_schedule="dualpipe", pipeline_parallel_size=8)
    halves = replace(
        dual,
        pipeline_schedule="dualpipev",
        pipeline_parallel_size=4,
        virtual_pipeline_size=2,
        data_parallel_size=2 * dual.data_parallel_size,
        num_microbatches=dual.num_microbatches // 2,
    )
    assert (halves.world_size, halves.tokens_per_step) == (dual.world_size, dual.tokens_per_step)
    assert training_memory(model, dual, where).needed == training_memory(model, halves, where).needed
    assert Timing(model, dual, where).seconds == pytest.approx(Timing(model, halves, where).seconds)


def test_layers_made_again_stay_for_gradients_of_weights():
    of_recompute = {
        recompute: training_memory(
            *of("hai-llm", pipeline_schedule="dualpipe", pipeline_parallel_size=4, recompute=recompute)
        )
        for recompute in ("none", "full")
    }
    names = [str(term.name) for term in of_recompute["full"].memory.child("activations").children]
    assert of_recompute["full"].needed < of_recompute["none"].needed
    assert any("made again" in name for name in names) or "backward" not in str(of_recompute["full"].memory.name)


# ---- in a run ----


def of(runtime, **options):
    where = cluster(NODE)
    options = {"runtime": runtime, "num_microbatches": 32, **options}
    return MODEL, training_plan(MODEL, where, TrainingOptions(**options), Question()), where


@pytest.mark.parametrize(
    ("runtime", "options", "words"),
    [
        ("megatron", {"pipeline_schedule": "dualpipe"}, "Runtimes that have it: hai-llm"),
        ("fsdp2", {"pipeline_schedule": "zb-h2"}, "Runtimes that have it: zero-bubble"),
        ("hai-llm", {"pipeline_schedule": "1f1b"}, "it must be dualpipe"),
        ("hai-llm", {"pipeline_schedule": "dualpipe", "num_microbatches": 7}, "Nearest: 8"),
        ("hai-llm", {"pipeline_schedule": "dualpipe", "num_microbatches": 4}, "Nearest: 8"),
        ("hai-llm", {"pipeline_schedule": "dualpipe", "pipeline_parallel_size": 2}, "Nearest: 4"),
        ("hai-llm", {"pipeline_schedule": "dualpipe", "virtual_pipeline_size": 2}, "must be 1"),
        ("zero-bubble", {"pipeline_schedule": "zb-h1", "virtual_pipeline_size": 2}, "must be 1"),
    ],
)
def test_what_a_runtime_cannot_do_is_refused_with_those_that_can(runtime, options, words):
    with pytest.raises(InvalidPlan, match=words):
        of(runtime, **({"pipeline_parallel_size": 4} | options))


@pytest.mark.parametrize(
    ("runtime", "options"), [("hai-llm", {}), ("fsdp2", {"pipeline_schedule": "dualpipev", "model_code": "torchtitan"})]
)
def test_a_schedule_in_two_directions_has_two_micro_batches_a_stage_where_none_are_said(runtime, options):
    said = TrainingOptions(runtime=runtime, pipeline_parallel_size=4, **options)
    question = Question()
    plan = training_plan(read("llama-3.1-8b"), cluster("8xH100-SXM-80GB"), said, question)
    assert plan.num_microbatches == 8 and plan.pipeline_schedule in ("dualpipe", "dualpipev")
    origin = question.entries["pipeline_schedule"].origin
    assert origin == ("given" if options else "runtime")


def test_recomputation_between_split_passes_is_known_of_dualpipe_alone():
    with pytest.raises(MissingDatum, match="must be none"):
        of("zero-bubble", pipeline_schedule="zb-h1", pipeline_parallel_size=4, recompute="full")
    assert {"zero-bubble", "hai-llm"} <= set(training_runtimes())


@pytest.mark.parametrize(
    ("said", "name"), [("ZB1P", "zb-h1"), ("zb-2p", "zb-h2"), ("ZB-H2", "zb-h2"), ("DualPipe", "dualpipe")]
)
def test_schedules_have_the_names_of_their_authors(said, name):
    runtime = "hai-llm" if name == "dualpipe" else "zero-bubble"
    assert of(runtime, pipeline_schedule=said, pipeline_parallel_size=4)[1].pipeline_schedule == name


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("1f1b", []),
        ("zb-h1", ["--enable-zero-bubble", "--zero-bubble-max-pending-backward 4"]),
        (
            "zb-h2",
            [
                "--enable-zero-bubble",
                "--zero-bubble-max-pending-backward 8",
                "--enable-optimizer-post-validation",
            ],
        ),
        ("zbv", ["--zero-bubble-v-schedule", "--enable-optimizer-post-validation"]),
    ],
)
def test_the_authors_megatron_is_started_with_their_options(name, flags):
    model, plan, _ = of("zero-bubble", pipeline_schedule=name, pipeline_parallel_size=4)
    assert [flag for flag in launch_settings(model, plan) if "zero-bubble" in flag or "post" in flag] == flags


@pytest.mark.parametrize(
    ("runtime", "name"), [("zero-bubble", "zb-h1"), ("zero-bubble", "zb-h2"), ("hai-llm", "dualpipe")]
)
def test_arrays_of_plans_give_what_each_plan_gives(runtime, name):
    model, plan, where = of(runtime, pipeline_schedule=name, pipeline_parallel_size=4)
    counts = np.array([8, 16, 64])
    many = replace(plan, num_microbatches=counts)
    alone = [replace(plan, num_microbatches=int(count)) for count in counts]
    assert Timing(model, many, where).walk.seconds() == pytest.approx(
        [Timing(model, each, where).walk.seconds() for each in alone]
    )
    needed = np.broadcast_to(training_memory(model, many, where).needed, counts.shape)
    assert needed == pytest.approx([training_memory(model, each, where).needed for each in alone])


@pytest.mark.parametrize(
    ("runtime", "name"), [("zero-bubble", "zb-h1"), ("zero-bubble", "zb-h2"), ("hai-llm", "dualpipe")]
)
def test_a_step_is_drawn_in_its_order(runtime, name):
    document = drawn(
        {
            "model": "llama-3.1-8b",
            "on": NODE,
            "runtime": runtime,
            "pipeline_parallel_size": 8,
            "global_batch_size": 64,
            "pipeline_schedule": name,
        }
    ).document
    assert (document.schedule, document.stages, document.num_microbatches) == (name, 8, 64)
    assert {box.stage for box in document.boxes} == set(range(8))
    assert max(box.microbatch for box in document.boxes) == 63
    assert document.played_seconds == pytest.approx(document.step_seconds, rel=0.1)


def test_deepseek_v3s_own_plan_takes_about_the_hours_that_it_reports():
    """DeepSeek-V3's report, sec. 1 and 3.2: 180K H800 hours for each trillion tokens, PP 16, EP 64, ZeRO-1."""
    seconds = tonnage.train(
        "deepseek-v3",
        on="256x8xH800-SXM-80GB",
        runtime="hai-llm",
        pipeline_schedule="dualpipe",
        pipeline_parallel_size=16,
        expert_parallel_size=64,
        global_batch_size=15360,
        precision="fp8-te",
        recompute="selective",
        recompute_modules="layernorm,mla_up_proj,moe_act",
        moe_token_dispatcher_type="flex",
        overlap_moe_expert_parallel_comm=True,
        as_is=True,
        advice=False,
    ).step_time.value
    hours = seconds * 2048 / 3600 * 1e12 / (15360 * 4096)
    assert hours == pytest.approx(180_000, rel=0.2)

"""Rows of a sweep are the answers that `tonnage train` and `serve --frontier` give, plan by plan."""

from itertools import product
from math import ceil, isnan
from operator import attrgetter, itemgetter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import train
from tonnage.estimate.answer.frontier import frontier
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.step_time.time import seconds_of
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable, TonnageError
from tonnage.models import read
from tonnage.search.removed import Tally
from tonnage.search.sweep import serving, training
from tonnage.search.sweep.spec import Axis, Spec, parse
from tonnage.search.sweep.tasks import Tasks
from tonnage.search.training import walk
from tonnage.search.training.space import Space
from tonnage.search.training.validity import columns_of, holding

SIZES = (
    "sequence_length",
    "micro_batch_size",
    "num_microbatches",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "virtual_pipeline_size",
    "context_parallel_size",
    "expert_parallel_size",
    "expert_tensor_parallel_size",
    "data_parallel_size",
)


def rows_of(spec):
    """(rows, tally) of a whole sweep, computed here."""
    tasks, tally, found = Tasks(spec), Tally(), {}
    make = training.rows if spec.kind == "train" else serving.rows
    for number in range(tasks.count):
        for part in tasks.parts(number):
            columns = make(spec, tasks, part, tally)
            names = list(columns)
            for values in zip(*(column.tolist() for column in columns.values()), strict=True):
                row = dict(zip(names, values, strict=True))
                found[(row["plan"], row.get("point"))] = row
    return found, tally


def every_plan(spec):
    """(number, model, cluster, options) of every combination, by nothing but nested loops."""
    axes = [spec.models, spec.clusters, *(axis.values for axis in spec.axes)]
    for number, (model, on, *values) in enumerate(product(*axes)):
        yield (
            number,
            model,
            on,
            spec.options | {axis.name: value for axis, value in zip(spec.axes, values, strict=True)},
        )


def one_by_one(model, machine, said, spec):
    """What a single answer says: its plan, bytes and seconds; None where it is refused. An option that does not
    apply beside a value of what varies is left out, once.
    """
    varied = [axis.name for axis in spec.axes if len(axis.values) > 1] + ["model"] * (len(spec.models) > 1)
    while True:
        try:
            plan = training_plan(model, machine, TrainingOptions(**said), Question())
            break
        except NotApplicable as error:
            is_first = all(said[axis.name] == axis.values[0] for axis in spec.axes if axis.name == error.option)
            if not (is_first and set(error.owners) & set(varied)):
                return None
            said = {name: value for name, value in said.items() if name != error.option}
        except (InvalidPlan, MissingDatum):
            return None
    try:
        needed = training_memory(model, plan, machine).needed
    except (InvalidPlan, MissingDatum):
        return None
    return plan, needed, seconds_of(model, plan, machine)


def runs_evenly(plan):
    """What an answer leaves to the user and a search does not: equal pieces of sequences."""
    pieces = 2 * plan.context_parallel_size if plan.context_parallel_size > 1 else 1
    pieces *= plan.tensor_parallel_size if plan.sequence_parallel else 1
    return plan.sequence_length % pieces == 0


def some(*values, most=3):
    return st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True)


AXES = {
    "tensor_parallel_size": some(1, 2, 3, 4, 8),
    "pipeline_parallel_size": some(1, 2, 4, most=2),
    "context_parallel_size": some(1, 2, 4, most=2),
    "expert_parallel_size": some(1, 2, 8, most=2),
    "expert_tensor_parallel_size": some(1, 2, most=2),
    "data_parallel_size": some(1, 2, 4, 8),
    "sequence_length": some(510, 2048, 4096, 300_000),
    "micro_batch_size": some(1, 2),
    "num_microbatches": some(1, 2, 3, 8),
    "recompute": some("none", "selective", "full", most=2),
    "zero_stage": some(0, 1, 2, 3, most=2),
    "precision": some("bf16-mixed", "fp32", "bf16", most=2),
    "optimizer": some("adamw", "sgd", "muon", most=2),
    "runtime": some("megatron", "fsdp2", "deepspeed", "transformers", most=2),
    "virtual_pipeline_size": some(1, 2, most=2),
    "pipeline_schedule": some("1f1b", "gpipe", "zbv", "dualpipev", most=2),
    "loss": some("full", "chunked", most=2),
    "sequence_parallel": st.just([True, False]),
    "packing": st.just([True, False]),
    "replicate_size": some(1, 2, most=2),
}


@st.composite
def sweeps(draw):
    names = draw(st.lists(st.sampled_from(sorted(AXES)), min_size=1, max_size=4, unique=True))
    fields = {
        "models": draw(some("llama-3.1-8b", "mixtral-8x7b", "gpt2", "deepseek-v2-lite", "mistral-7b-v0.1", most=2)),
        "on": draw(some("h100", "8xh100", "2x8xa100-sxm-80gb", "8xmi300x", most=2)),
        "vary": {name: draw(AXES[name]) for name in names},
    }
    if draw(st.booleans()) and "num_microbatches" not in names:
        fields["vary"]["global_batch_size"] = draw(some(6, 8, 16))
    return parse(fields)


def test_a_schedule_of_two_chunks_is_left_out_where_a_sweep_has_one_stage():
    """Its two chunks were kept, so that the plan of one stage had no row."""
    axis = Axis(name="pipeline_parallel_size", values=(1, 2))
    spec = Spec(
        kind="train",
        models=("llama-3.1-8b",),
        clusters=("h100",),
        outer=(axis,),
        inner=(),
        options={"pipeline_schedule": "zbv"},
        keep="all",
        best=10,
        money={},
        points=24,
        chunk_plans=65536,
        left_out=(),
    )
    rows, _ = rows_of(spec)
    assert [plan for plan, _ in rows] == [0]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(sweeps())
def test_a_sweep_has_a_row_for_each_plan_that_is_no_error_alone_and_runs_evenly_and_the_same_figures(spec):
    rows, tally = rows_of(spec)
    expected = set()
    for number, name, on, said in every_plan(spec):
        model, machine = read(name), cluster(on)
        alone = one_by_one(model, machine, said, spec)
        if alone is None or not runs_evenly(alone[0]):
            assert (number, None) not in rows, (name, on, said)
            continue
        expected.add((number, None))
        plan, needed, seconds = alone
        assert (number, None) in rows, (name, on, said, spec, tally.without, [*tally])
        row = rows[(number, None)]
        assert {size: row[size] for size in SIZES} == {size: getattr(plan, size) for size in SIZES}
        assert (row["runtime"], row["zero_stage"], row["precision"]) == (plan.runtime, plan.zero_stage, plan.precision)
        assert row["needed_bytes"] == pytest.approx(ceil(needed), rel=1e-9, abs=1)
        assert (
            isnan(row["step_seconds"]) if seconds is None else row["step_seconds"] == pytest.approx(seconds, rel=1e-9)
        )
    assert set(rows) == expected
    assert tally.considered == Tasks(spec).plans and tally.left == len(rows)


SEARCHED = [
    (
        "llama-3.2-1b",
        {"runtime": "megatron", "recompute": "none"},
        {"virtual_pipeline_size": [1, 2], "global_batch_size": [8, 12, 24]},
    ),
    (
        "llama-3.2-1b",
        {"runtime": "fsdp2", "recompute": "full", "zero_stage": 3},
        {"virtual_pipeline_size": [1], "sequence_parallel": [True, False], "global_batch_size": [8, 12]},
    ),
    (
        "qwen3-30b-a3b",
        {"runtime": "megatron", "recompute": "full"},
        {
            "virtual_pipeline_size": [1],
            "expert_parallel_size": [1, 2, 3],
            "expert_tensor_parallel_size": [1, 2],
            "global_batch_size": [8],
        },
    ),
]


@pytest.mark.parametrize(("name", "options", "vary"), SEARCHED)
def test_a_sweep_and_a_search_take_the_same_plans(name, options, vary):
    options = {"zero_stage": 0, **options, "loss": "full"}
    vary = {
        "sequence_length": [1020, 1022, 1024],
        "tensor_parallel_size": [1, 2, 3, 4],
        "pipeline_parallel_size": [1, 2, 4],
        "context_parallel_size": [1, 2],
        "micro_batch_size": [1, 2],
    } | vary
    told = [*SIZES, *(each for each in vary if each == "sequence_parallel")]
    rows, _ = rows_of(parse({"models": [name], "on": ["8xh100"], "options": options, "vary": vary}))
    space, found = Space(read(name), [cluster("8xh100")], TrainingOptions(**options), vary), set()
    for group in space.groups():
        columns = columns_of(space, group)
        left = holding(space, group, columns, Tally())
        if not left.any():
            continue
        try:
            walk.template(space, group, columns, left)
        except walk.REFUSALS:
            continue
        plans = (walk.said(space, group, columns, row, 0) for row in np.flatnonzero(left[:, 0]))
        found |= {tuple(plan[each] for each in told) for plan in plans}
    assert {tuple(row[each] for each in told) for row in rows.values()} == found
    assert {each[told.index("sequence_length")] for each in found} == {1020, 1022, 1024}


def test_verdict_and_money_are_those_of_an_answer():
    spec = parse(
        {
            "models": ["llama-3.1-8b"],
            "on": ["8xh100"],
            "options": {"runtime": "megatron"},
            "vary": {"micro_batch_size": [1, 2, 4, 8], "tensor_parallel_size": [1, 2]},
        }
    )
    rows, _ = rows_of(spec)
    seen = set()
    for number, name, on, said in every_plan(spec):
        answer, row = train(read(name), cluster(on), TrainingOptions(**said)), rows[(number, None)]
        assert {1: True, 0: False, -1: None}[row["fits"]] is answer.fits
        assert row["step_usd"] == pytest.approx(answer.bill.cost.value) and row["usable_bytes"] == answer.usable_bytes
        rate = answer.run.tokens_per_second.value
        assert row["tokens_per_second"] == pytest.approx(rate)
        assert row["usd_per_million_tokens"] == pytest.approx(row["step_usd"] / (rate * answer.step_time.value) * 1e6)
        seen.add(answer.fits)
    assert seen >= {True, False}


def test_a_price_or_a_time_that_nobody_knows_is_no_number():
    spec = parse(
        {
            "models": ["llama-3.1-8b"],
            "on": ["8xascend-910a", "4xapple-m4-pro-64gb"],
            "options": {"objective": "dpo"},
            "vary": {"micro_batch_size": [1]},
        }
    )
    rows, _ = rows_of(spec)
    assert {row["cluster"] for row in rows.values()} == {0, 1}
    assert all(isnan(row["step_usd"]) and row["needed_bytes"] > 0 for row in rows.values())
    assert [isnan(row["step_seconds"]) for row in rows.values()] == [False, True]


def test_plans_that_are_left_out_are_counted_by_what_they_break():
    spec = parse(
        {
            "models": ["llama-3.1-8b"],
            "on": ["8xh100"],
            "vary": {"tensor_parallel_size": [1, 3, 8], "global_batch_size": [8, 12]},
        }
    )
    rows, tally = rows_of(spec)
    removed = {each.constraint: each.plans for each in tally if each.plans}
    assert removed == {
        "tensor x pipeline x context parallel sizes divide the accelerators": 2,
        "micro_batch_size x data_parallel_size divides global_batch_size": 1,
    }
    assert len(rows) == 3 and tally.considered == 6


def test_plans_that_break_the_same_rule_are_counted_together_whatever_the_model():
    spec = parse({"models": ["gpt2", "bert-base-uncased"], "on": ["8xh100"], "vary": {"sequence_length": [4096, 8192]}})
    assert {each.constraint: each.plans for each in rows_of(spec)[1] if each.plans} == {
        "sequence_length may be at most N for the model: its learned table wpe has no more positions": 2,
        (
            "sequence_length may be at most N for the model: its learned table embeddings.position_embeddings "
            "has no more positions"
        ): 2,
    }


def test_rows_of_serving_are_the_points_of_frontiers():
    spec = parse(
        {
            "kind": "serve",
            "models": ["llama-3.1-8b", "deepseek-v3"],
            "on": ["8xh100"],
            "points": 5,
            "vary": {"input_tokens": [1000, "4k"], "engine": ["vllm", "sglang"]},
        }
    )
    rows, tally = rows_of(spec)
    for number, name, on, said in every_plan(spec):
        load = LoadOptions(input_tokens=said["input_tokens"])
        try:
            alone = frontier(read(name), cluster(on), ServingOptions(engine=said["engine"]), load, points=5)
        except TonnageError:
            alone = None
        points = list(alone.points()) if alone is not None else []
        mine = [row for (plan, _), row in rows.items() if plan == number]
        assert len(mine) == len(points)
        key = itemgetter("tensor_parallel_size", "weights", "concurrency")
        place = attrgetter("tensor_parallel_size", "weights", "concurrency")
        for row, point in zip(sorted(mine, key=key), sorted(points, key=place), strict=True):
            assert row["tpot_seconds"] == point.tpot_seconds and row["engine"] == said["engine"]
            assert row["tokens_per_second_per_accelerator"] == point.tokens_per_second_per_gpu
            assert row["usd_per_million_output_tokens"] == pytest.approx(point.cost_per_million_output_tokens_all)
    assert tally.considered == 8 and tally.left == len({plan for plan, _ in rows})

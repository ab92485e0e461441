"""Layers over unlike accelerators: the best there is, as a walk through all of them finds it, and as the estimator
has it.
"""

from itertools import combinations, product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import tonnage
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.units import human
from tonnage.models import read
from tonnage.search.pool.highs import Effort
from tonnage.search.pool.inventory import inventory_of
from tonnage.search.pool.parts import Pool
from tonnage.search.pool.pipelines.costs import Costs, StageLayers
from tonnage.search.pool.pipelines.pipeline import StageCount, solve
from tonnage.search.pool.pipelines.programs import cut
from tonnage.search.pool.pipelines.uneven import Pipe
from tonnage.search.pool.place import place
from tonnage.search.pool.serving import Width
from tonnage.search.pool.training import Group

A100, H100, L40S = "A100-SXM-80GB", "H100-SXM-80GB", "L40S"
MIXED = {
    "nodes": [
        {"name": "a", "accelerator": A100, "count": 8, "nodes": 2},
        {"name": "h", "accelerator": H100, "count": 8},
        {"name": "l", "accelerator": L40S, "count": 8, "nodes": 2},
    ]
}


def every_pipeline(pipe: Pipe):
    """All orders of kinds with all ways to cut the layers."""
    for kinds in product(range(len(pipe.costs)), repeat=pipe.stages):
        if any(kinds.count(kind) > cost.most for kind, cost in enumerate(pipe.costs)):
            continue
        for ends in combinations(range(1, pipe.layers), pipe.stages - 1):
            bounds = (0, *ends, pipe.layers)
            yield [StageLayers(kind, bounds[place], bounds[place + 1]) for place, kind in enumerate(kinds)]


def best_of_all(pipe: Pipe, value) -> float:
    found = (pipe.seconds_of(runs) for runs in every_pipeline(pipe))
    return min((value(sum(seconds), max(seconds)) for seconds in found if max(seconds) < inf), default=inf)


@st.composite
def pipes(draw, *, alike: bool) -> Pipe:
    layers, kinds = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    number = st.integers(1, 9)

    def row() -> tuple[float, ...]:
        if alike:
            return (float(draw(number)),) * layers
        return tuple(float(draw(number)) for _ in range(layers))

    costs = []
    for _ in range(kinds):
        held = row()
        host = draw(st.sampled_from([0.0, 0.0, 6.0]))
        costs.append(
            Costs(
                seconds=row(),
                bytes=held,
                kept=tuple(0.25 * each for each in held),
                weights=held,
                usable=float(draw(st.integers(2, 24))),
                most=draw(st.integers(0, 2)),
                fixed_seconds=draw(st.sampled_from([0.0, 0.5])),
                fixed_bytes=draw(st.sampled_from([0.0, 1.0])),
                first_seconds=draw(st.sampled_from([0.0, 2.0])),
                last_seconds=draw(st.sampled_from([0.0, 3.0])),
                last_bytes=draw(st.sampled_from([0.0, 2.0])),
                host_bytes=host,
                host_rate=2.0,
            )
        )
    stages = draw(st.integers(1, min(layers, 4)))
    trains = draw(st.booleans())
    return Pipe(costs, stages, lambda place: float(min(stages - place, 3)) if trains else 0.0)


VALUES = {
    "latency": lambda total, slowest: total,
    "round": lambda total, slowest: max(total, 3 * slowest),
    "step": lambda total, slowest: total + 6 * slowest,
}


@pytest.mark.parametrize("goal", VALUES)
@given(pipe=st.one_of(pipes(alike=True), pipes(alike=False)))
@settings(max_examples=40)
def test_the_pipeline_is_the_best_of_all_that_there_are(goal, pipe):
    value = VALUES[goal]
    tried = StageCount(shape=None, pipe=pipe, value=value, lower=0.0, slowest=pipe.slowest())
    if tried.slowest < inf:
        solve(tried, Effort())
    assert tried.best == pytest.approx(best_of_all(pipe, value))


@given(pipe=st.one_of(pipes(alike=True), pipes(alike=False)))
@settings(max_examples=60)
def test_what_is_known_before_a_program_is_never_above_the_best(pipe):
    slowest = best_of_all(pipe, lambda total, slowest: slowest)
    assert pipe.slowest() == pytest.approx(slowest)
    assert pipe.lowest() <= slowest * (1 + 1e-9)
    assert pipe.least_sum() <= best_of_all(pipe, VALUES["latency"]) * (1 + 1e-9)


def test_a_kind_that_holds_one_small_layer_alone_is_given_that_layer():
    """The first stage could have two layers; the small card must then have one that is too large for it."""
    layers = (5.0, 1.0, 5.0, 5.0)
    small = Costs(seconds=(1.0,) * 4, bytes=layers, usable=2.0, most=1)
    large = Costs(seconds=(1.0,) * 4, bytes=layers, usable=20.0, most=2)
    pipe = Pipe([small, large], 3)
    assert pipe.slowest() == pytest.approx(best_of_all(pipe, lambda total, slowest: slowest)) == pytest.approx(2.0)


def test_the_bound_counts_later_stages_that_keep_fewer_micro_batches():
    """Each kind holds one layer with three micro-batches in flight, two layers with one."""
    kind = Costs(seconds=(1.0,) * 5, bytes=(1.0,) * 5, kept=(1.0,) * 5, usable=4.0, last_bytes=2.0, most=4)
    pipe = Pipe([kind], 4, lambda place: (3.0, 3.0, 1.0, 1.0)[place])
    assert pipe.lowest() <= best_of_all(pipe, lambda total, slowest: slowest) == pytest.approx(2.0)


@given(pipe=pipes(alike=False))
@settings(max_examples=40)
def test_runs_as_a_program_and_by_counts_of_stages_are_as_good(pipe):
    walked, solved = pipe.walked(inf), cut(pipe, inf, Effort())
    assert (walked is None) == (solved is None)
    if walked and solved:
        assert walked[1] == pytest.approx(sum(pipe.seconds_of(solved[0])))


@given(pipe=st.one_of(pipes(alike=True), pipes(alike=False)))
@settings(max_examples=30)
def test_a_run_that_was_refused_does_not_come_back(pipe):
    value = VALUES["step"]
    for _ in range(3):
        tried = StageCount(shape=None, pipe=pipe, value=value, lower=0.0, slowest=pipe.slowest())
        if tried.slowest == inf:
            return
        solve(tried, Effort())
        assert tried.best == pytest.approx(best_of_all(pipe, value))
        run = tried.runs[0]
        pipe.forbid(run, 0)
        assert pipe.seconds(run.kind, 0, run.start, run.stop) == inf


@pytest.mark.parametrize("name", ["llama-3.1-70b", "deepseek-v2", "gemma-3-27b"])
def test_every_stage_of_a_placement_fits_by_the_estimator(name):
    model = read(name)
    found = place(MIXED, model, ServingOptions(context=4096, concurrency=64), split="pipeline", stages=4)
    rows = found.document.stages
    assert found.placed and len(rows) == 4 and sum(row.layers for row in rows) == model.num_layers
    chunks = tuple(row.layers for row in rows)
    for row in rows:
        chip = tonnage.accelerator(row.accelerator)
        shape = Width(
            Pool(inventory_of(MIXED)),
            model,
            ServingOptions(context=4096, concurrency=64),
            tonnage.LoadOptions(),
            row.accelerators,
            offload=False,
        )
        plan = replace(shape.plans[0], pipeline_parallel_size=4, chunk_layers=chunks)
        needed = serving_memory(model, plan, chip).ranks[row.stage].memory.value
        assert row.needed_bytes == pytest.approx(needed, rel=1e-6)
        assert needed <= row.usable_bytes == chip.memory.usable_bytes


def test_equal_accelerators_give_the_pipeline_that_serve_has():
    """Within what the head adds to the last stage, for which the others wait."""
    equal = {"nodes": [{"name": "h", "accelerator": H100, "count": 8, "nodes": 4}]}
    found = tonnage.place(
        equal, "llama-3.1-70b", split="pipeline", stages=4, tensor_parallel_size=8, concurrency=64, context=8192
    )
    plain = tonnage.serve(
        "llama-3.1-70b", on="4x8xh100", pipeline_parallel_size=4, tensor_parallel_size=8, concurrency=64, context=8192
    )
    layers = [row.layers for row in found.document.stages]
    assert max(layers) - min(layers) <= 2 and sum(layers) == 80
    assert found.document.figures["tokens_per_second"] == pytest.approx(plain.serving.tokens_per_second.value, rel=0.03)
    assert max(row.needed_bytes for row in found.document.stages) == pytest.approx(plain.needed_bytes, rel=0.05)


def test_equal_accelerators_give_the_step_that_train_has():
    model = read("llama-3.1-8b")
    pool = Pool(inventory_of({"nodes": [{"name": "h", "accelerator": H100, "count": 8, "nodes": 4}]}))
    group = Group(pool, model, TrainingOptions(runtime="megatron", recompute="full", global_batch_size=64), 8, 1)
    runs = [StageLayers(0, start, start + 8) for start in range(0, 32, 8)]
    plain = tonnage.train(
        "llama-3.1-8b",
        on="4x8xh100",
        runtime="megatron",
        recompute="full",
        global_batch_size=64,
        tensor_parallel_size=8,
        pipeline_parallel_size=4,
    )
    assert group.step_seconds(runs) == pytest.approx(plain.step_time.value, rel=1e-9)
    assert max(each.needed for each in group.check(runs)) == pytest.approx(plain.needed_bytes, rel=1e-6)


@pytest.mark.parametrize("kind", ["serve", "train"])
def test_more_accelerators_never_make_it_worse(kind):
    options = {
        "serve": {"concurrency": 64, "context": 8192, "split": "pipeline"},
        "train": {"runtime": "megatron", "recompute": "full"},
    }[kind]
    values = []
    for nodes in (1, 2, 3):
        pool = {"nodes": [*MIXED["nodes"][:2], {"name": "l", "accelerator": L40S, "count": 8, "nodes": nodes}]}
        values.append(tonnage.place(pool, "llama-3.1-8b", verb=kind, **options).document.search.value)
    assert values == sorted(values, reverse=True)


def test_a_pipeline_that_trains_has_room_on_every_stage():
    found = tonnage.place(MIXED, "mixtral-8x7b", verb="train", runtime="megatron", recompute="selective")
    assert found.placed and found.document.verdict.optimal
    assert all(row.needed_bytes <= row.usable_bytes for row in found.document.stages)
    assert sum(row.layers for row in found.document.stages) == 32


def test_the_pool_that_is_too_small_says_by_how_much():
    small = {"nodes": [{"name": "l", "accelerator": L40S, "count": 4}]}
    found = tonnage.place(small, "llama-3.1-405b", split="pipeline", concurrency=1, context=2048)
    assert not found.placed and found.status == 3
    assert "memory of the whole pool" in found.document.binding and "short by" in found.document.nearest_miss


def test_no_node_for_one_layer_is_said_so():
    tiny = {
        "nodes": [
            {"name": "t", "accelerator": "rtx-4090", "count": 1, "nodes": 4, "outside": "10GB/s", "free_memory": "2GiB"}
        ]
    }
    found = tonnage.place(tiny, "llama-3.1-405b", split="pipeline", concurrency=1, context=2048)
    assert not found.placed and "no node is large enough for a stage" in found.document.binding


def test_host_memory_holds_what_accelerators_do_not():
    pool = {"nodes": [{"name": "h", "accelerator": H100, "count": 8, "host_memory": "2TiB"}]}
    options = {"split": "pipeline", "concurrency": 4, "context": 2048, "weights": "bf16"}
    without = tonnage.place(pool, "llama-3.1-405b", **options)
    helped = tonnage.place(pool, "llama-3.1-405b", offload=True, **options)
    assert not without.placed and helped.placed
    row = helped.document.stages[0]
    assert row.on_host_bytes > 0 and row.needed_bytes <= row.usable_bytes
    fits = {"nodes": [{"name": "h", "accelerator": "H200-SXM-141GB", "count": 8, "host_memory": "2TiB"}]}
    fast = tonnage.place(fits, "llama-3.1-405b", offload=True, **options)
    assert fast.document.stages[0].on_host_bytes == 0
    assert fast.document.figures["tpot_seconds"] < helped.document.figures["tpot_seconds"] / 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tensor_parallel_size": 8, "stages": 6}, "the pool makes at most 5 of these widths, and 6 are asked for"),
        ({"tensor_parallel_size": 16}, "no node has room for such a stage: the largest has 8 free"),
    ],
)
def test_what_cannot_be_is_named(options, words):
    found = tonnage.place(MIXED, "llama-3.1-405b", split="pipeline", concurrency=4, context=4096, **options)
    assert not found.placed and words in found.document.binding


def test_a_search_that_is_stopped_keeps_a_bound_below_its_value():
    pipe = Pipe([Costs(seconds=(1.0,) * 6, bytes=(1.0,) * 6, usable=4.0, most=3)], 3)
    effort = Effort(1e-9)
    tried = StageCount(shape=None, pipe=pipe, value=VALUES["step"], lower=0.0, slowest=pipe.slowest())
    assert not solve(tried, effort) or tried.best == best_of_all(pipe, VALUES["step"])


def test_a_service_level_that_the_best_pipeline_misses_is_said():
    options = {"split": "pipeline", "concurrency": 64, "context": 8192}
    missed = tonnage.place(MIXED, "llama-3.1-405b", tpot="50ms", **options)
    assert missed.status == 3 and missed.document.stages and "50.00 ms is asked for" in missed.document.nearest_miss
    assert tonnage.place(MIXED, "llama-3.1-405b", tpot="120ms", **options).status == 0


def test_a_kind_without_a_known_link_holds_a_model_alone_or_not_at_all():
    unlinked = {"name": "p", "accelerator": "rtx-5090", "count": 2, "price": 0.5}
    pair = {
        "nodes": [unlinked, {"name": "q", "accelerator": "rtx-4090", "count": 2, "price": 0.4, "outside": "1.25GB/s"}]
    }
    options = {"split": "pipeline", "concurrency": 1, "context": 4096}
    alone = tonnage.place(pair, "qwen3-8b", **options).document
    assert [row.accelerator for row in alone.stages] == ["RTX-5090"]
    both = tonnage.place(pair, "llama-3.1-70b", **options).document
    assert not both.verdict.placed or {row.accelerator for row in both.stages} == {"RTX-4090"}
    linked = {"nodes": [unlinked | {"outside": "1.25GB/s"}, pair["nodes"][1]]}
    whole = tonnage.place(linked, "llama-3.1-70b", weights="awq", **options).document
    assert whole.verdict.placed


def test_stages_of_one_pipeline_run_one_engine():
    home = {
        "nodes": [
            {"name": "m", "accelerator": "apple-m4-max-128gb", "outside": "1GB/s"},
            {"name": "g", "accelerator": "L40S", "count": 4, "outside": "10GB/s"},
        ]
    }
    found = tonnage.place(
        home, "llama-3.1-70b", split="pipeline", tensor_parallel_size=1, concurrency=1, context=4096
    ).document
    assert {row.accelerator for row in found.stages} == {"L40S"}
    assert any("Apple" in each for each in found.warnings)


def test_latency_is_that_of_one_user_with_room_for_all():
    options = {"split": "pipeline", "concurrency": 64, "context": 8192}
    quick = tonnage.place(MIXED, "deepseek-v3", goal="latency", **options).document
    busy = tonnage.place(MIXED, "deepseek-v3", **options).document
    assert quick.figures["token_alone_seconds"] < busy.figures["tpot_seconds"]
    assert quick.figures["tokens_per_second"] < busy.figures["tokens_per_second"]
    assert len(quick.stages) < len(busy.stages)


@pytest.mark.parametrize(
    "options",
    [
        {"simulate": True},
        {"percentile": "p99", "tpot": "50ms"},
        {"price_per_accelerator_hour": 2.0},
        {"request_rate": 1.0},
        {"draft_tokens": 3},
    ],
)
def test_what_a_placement_does_not_answer_is_refused(options):
    with pytest.raises(InvalidInput):
        tonnage.place(MIXED, "llama-3.1-8b", split="pipeline", **options)


def test_stages_may_be_said_as_pipeline_parallel_size():
    found = tonnage.place(MIXED, "llama-3.1-8b", pipeline_parallel_size=3, concurrency=64, context=4096).document
    assert len(found.stages) == 3
    with pytest.raises(InvalidInput, match="are the same here"):
        tonnage.place(MIXED, "llama-3.1-8b", pipeline_parallel_size=3, stages=2, concurrency=64, context=4096)


def test_accelerators_of_one_type_are_not_counted_of_all_types():
    text = tonnage.place(
        MIXED, "llama-3.1-8b", split="pipeline", concurrency=1, tensor_parallel_size=8
    ).document.verdict.text
    assert text.startswith("8 H100-SXM-80GB of the pool's 40 accelerators hold llama-3.1-8b: 1 stage,")


def test_latency_is_said_to_be_of_one_user_alone():
    document = tonnage.place(MIXED, "llama-3.1-8b", goal="latency", concurrency=64, context=2048).document
    assert f"{human(document.search.value, 'seconds')} a token to one user alone" in document.verdict.text
    assert "to 64 users" in document.verdict.text


def test_a_bound_of_a_search_whose_time_is_up_has_a_unit():
    text = str(Effort().spent(0.07049, "seconds of a round of tokens"))
    assert "no placement is below 70.49 ms (a round of tokens)" in text


@pytest.mark.parametrize(
    ("outside", "why"), [({}, "RTX-4090 has 1 in a node, and a stage takes 4"), ({"outside": "10GB/s"}, None)]
)
def test_a_pool_without_room_names_all_kinds_that_it_looked_at(outside, why):
    nodes = [
        {"name": "a", "accelerator": "RTX-3080", "count": 4, **outside},
        {"name": "b", "accelerator": "RTX-4090", **outside},
    ]
    document = tonnage.place({"nodes": nodes}, "llama-3.1-70b", concurrency=4, context=4096).document
    assert not document.verdict.placed
    assert why in document.binding if why else document.binding.startswith("the memory of the whole pool")
    if why:
        assert any("say `outside` of b" in each for each in document.warnings)

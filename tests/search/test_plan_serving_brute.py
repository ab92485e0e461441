"""The search against brute force: every plan of a small space by the path of one answer, and with and without
bounds.
"""

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.models import read
from tonnage.search.serving import ServingPlanOptions, plan_serving
from tonnage.search.serving.machines import machine_named, named

LENGTHS = {"input_tokens": 900, "output_tokens": 120}
MACHINES = {"l40s": 8, "h100-pcie-80gb": 8, "rtx-4090": 8}  # accelerators of a machine
SHOWN = 2e-4  # an answer's times are sums of parts, and parts below a ten-thousandth are left out
FEW = settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])


def divisors(number):
    return [size for size in range(1, number + 1) if number % size == 0]


def spaces(name, most):
    """(cluster, tensor, pipeline, expert, groups) of every plan, written anew."""
    for total in range(1, most + 1):
        for nodes in divisors(total):
            each = total // nodes
            if each > MACHINES[name]:
                continue
            machine = cluster(f"{nodes}x{each}x{name}" if nodes > 1 else f"{each}x{name}")
            for tensor, groups in product(divisors(MACHINES[name]), divisors(MACHINES[name])):
                for pipeline in range(1, most + 1):
                    ranks = tensor * groups * pipeline
                    if ranks <= each and each % ranks == 0 and MACHINES[name] % (tensor * groups) == 0:
                        for expert in {1, tensor * groups}:
                            yield machine, tensor, pipeline, expert, groups


def brute(model, name, most, users, weights, limits):
    """(objective values, answer) of every plan that holds."""
    is_mixture = any(
        "Mixture" in type(op).__name__ or type(op).__name__ == "MoE"
        for block in model.decoder.blocks
        for op in block.ops
    )
    for machine, tensor, pipeline, expert, groups in spaces(name, most):
        ranks = tensor * pipeline * groups
        if (not is_mixture and (groups > 1 or expert > 1)) or machine.size // ranks > users:
            continue
        for precision in weights:
            options = ServingOptions(
                tensor_parallel_size=tensor,
                pipeline_parallel_size=pipeline,
                expert_parallel_size=expert,
                weights=precision,
                concurrency=users,
                attention_data_parallel_size=groups if groups > 1 else None,
            )
            try:
                answer = serve(model, machine, options, LoadOptions(**LENGTHS, **limits), BillOptions(), advise=False)
            except (InvalidPlan, MissingDatum):
                continue
            if answer.status == 0 and answer.serving.ttft_seconds:
                replicas = machine.size // ranks  # times are of the fullest replica, rates of the mean
                even = replace(options, concurrency=-(-users // replicas) * replicas)
                times = (
                    answer
                    if even.concurrency == users
                    else serve(model, machine, even, LoadOptions(**LENGTHS), BillOptions(), advise=False)
                ).serving
                yield {
                    "accelerators": machine.size,
                    "cost": answer.bill.cost.value if answer.bill.cost else None,
                    "tpot": times.itl_seconds.value,
                    "ttft": times.ttft_seconds.value,
                    "end-to-end": times.end_to_end_seconds.value,
                    "goodput": -answer.serving.requests_per_second.value,
                }


@FEW
@given(
    name=st.sampled_from(sorted(MACHINES)),
    most=st.integers(1, 3),
    users=st.integers(1, 60),
    model=st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "qwen3-4b"]),
    precision=st.sampled_from(["bf16", "fp8", "awq"]),
    objective=st.sampled_from(["cost", "accelerators", "tpot", "ttft", "end-to-end", "goodput"]),
    tpot=st.sampled_from([None, 0.005, 0.012, 0.03]),
    ttft=st.sampled_from([None, 0.05, 0.4]),
)
def test_the_best_plan_is_the_best_of_all_that_serve_answers(
    name, most, users, model, precision, objective, tpot, ttft
):
    limits = {key: value for key, value in (("tpot", tpot), ("ttft", ttft)) if value is not None}
    every = list(brute(read(model), name, most, users, [precision], limits))
    try:
        found = tonnage.plan_serving(
            model,
            on=name,
            max_accelerators=most,
            concurrency=users,
            weights=precision,
            goal=objective,
            **LENGTHS,
            **limits,
        )
    except MissingDatum:
        assert not every or objective == "cost"
        return
    assert bool(found.plans) == bool(every)
    if every:
        close = SHOWN if objective in ("ttft", "end-to-end") else 1e-9
        assert found.plans[0].value == pytest.approx(min(each[objective] for each in every), rel=close)


@FEW
@given(
    on=st.sampled_from(["l40s,rtx-4090", "h100", "mi300x", "2xH100-SXM-80GB"]),
    users=st.integers(1, 90),
    model=st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "qwen3-14b"]),
    objective=st.sampled_from(["cost", "accelerators", "tpot", "end-to-end", "ttft", "goodput", "token-cost"]),
    tpot=st.sampled_from([None, 0.008, 0.02]),
    budget=st.sampled_from([None, 3.0, 15.0]),
    vary=st.sampled_from([None, "engine", "kv-cache", "batch", "disaggregation"]),
    top=st.integers(1, 4),
)
def test_bounds_change_no_answer(on, users, model, objective, tpot, budget, vary, top):
    said = ServingPlanOptions(goal=objective, max_accelerators=2, budget=budget, vary=vary, top=top)
    load = LoadOptions(**LENGTHS, tpot=tpot)
    both = []
    for prunes in (True, False):
        try:
            found = plan_serving(read(model), named(on), said, ServingOptions(concurrency=users), load, prunes=prunes)
        except MissingDatum as error:
            both.append(str(error)[:40])
            continue
        own = found.search.board.own
        assert prunes or not found.search.pruned
        both.append(([plan.order for plan in found.plans], own and own.order, found.search.tally.considered))
    assert both[0] == both[1]


SPLIT = [
    # what is best, users, TTFT and TPOT limits, plans shown
    ("tpot", 60, 0.5, 0.02, 2),
    ("tpot", 200, 0.5, None, 1),
    ("ttft", 120, None, 0.012, 1),
    ("ttft", 300, 1.0, 0.03, 3),
    ("end-to-end", 90, 2.0, 0.02, 1),
    ("goodput", 150, None, 0.015, 2),
    ("goodput", 40, 0.2, 0.01, 1),
    ("token-cost", 100, 1.0, 0.02, 1),
]


@pytest.mark.parametrize(("objective", "users", "ttft", "tpot", "top"), SPLIT)
def test_ways_to_split_prefill_and_decode_that_a_bound_rules_out_are_not_among_the_best(
    objective, users, ttft, tpot, top
):
    said = ServingPlanOptions(goal=objective, vary="disaggregation", top=top)
    options, load = ServingOptions(concurrency=users, weights="bf16"), LoadOptions(**LENGTHS, ttft=ttft, tpot=tpot)
    machine = named("8xH100-SXM-80GB")
    fast, slow = (
        plan_serving(read("qwen3-4b"), machine, said, options, load, prunes=prunes) for prunes in (True, False)
    )
    own = [found.search.board.own and found.search.board.own.order for found in (fast, slow)]
    assert [plan.order for plan in fast.plans] == [plan.order for plan in slow.plans]
    assert own[0] == own[1]
    assert fast.search.tally.considered == slow.search.tally.considered
    assert fast.search.tally.left <= slow.search.tally.left


@pytest.mark.parametrize(("ttft", "tpot"), [(0.05, 0.004), (0.2, 0.002), (0.01, 0.03)])
def test_where_no_split_keeps_both_limits_the_nearest_plans_are_those_of_the_whole_walk(ttft, tpot):
    said = ServingPlanOptions(vary="disaggregation")
    options, load = ServingOptions(concurrency=150, weights="bf16"), LoadOptions(**LENGTHS, ttft=ttft, tpot=tpot)
    machine = named("8xH100-SXM-80GB")
    found = plan_serving(read("qwen3-4b"), machine, said, options, load)
    assert not found.plans
    for near in found.nearest:
        limits = {"ttft": ttft, "tpot": tpot, near.without: None}
        if near.without not in ("ttft", "tpot"):
            continue
        goal = ServingPlanOptions(vary="disaggregation", goal=near.without)
        whole = plan_serving(read("qwen3-4b"), machine, goal, options, LoadOptions(**LENGTHS, **limits), prunes=False)
        assert near.plan.order == whole.plans[0].order


@FEW
@given(
    name=st.sampled_from(["h100", "l4", "mi300x"]),
    model=st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite"]),
    users=st.integers(1, 64),
    vary=st.sampled_from([None, "engine"]),
)
def test_no_plan_is_below_its_bounds(name, model, users, vary):
    from tonnage.search.serving.rows import blocks, least_token_seconds

    found = tonnage.plan_serving(model, on=name, max_accelerators=2, concurrency=users, vary=vary, **LENGTHS)
    search, walked = found.search, 0
    for config in search._configurations():
        layouts = search.layouts(config.kind.machine, config.sizes.ranks)
        try:
            for rows in blocks(search.space, config, layouts):
                assert search.bounds.weights_bytes(config) <= rows.needed.min()
                if rows.known.any():
                    walked += 1
                    assert search.bounds.token_seconds(config) <= rows.tpot[rows.known].min()
                    assert 0.999999 * least_token_seconds(search.space, config, layouts) <= rows.tpot[rows.known].min()
        except (InvalidPlan, MissingDatum):
            continue
    assert walked


def test_a_replica_of_several_machines_fills_them():
    machine = machine_named("h100")
    assert {each.name for _, found in machine.layouts(16, 64) for each in found} == {
        f"{count}x8xH100-SXM-80GB" for count in (2, 4, 6, 8)
    }

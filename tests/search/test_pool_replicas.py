"""Replicas on unlike nodes: the cheapest that hold a demand, or the most that a pool answers."""

from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tonnage
from tonnage.catalogue import accelerator
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.units import human
from tonnage.search.pool.candidates import Candidate, Demand, most_users
from tonnage.search.pool.highs import Effort
from tonnage.search.pool.parts import Kind
from tonnage.search.pool.placement import Seats
from tonnage.search.pool.replicas import choose_counts, hourly_cost
from tonnage.spec import Node

POOL = {
    "nodes": [
        {"name": "a", "accelerator": "A100-SXM-80GB", "count": 4, "price": 1.6},
        {"name": "h", "accelerator": "H100-SXM-80GB", "count": 2, "price": 2.4},
        {"name": "l", "accelerator": "L40S", "count": 4, "nodes": 2, "price": 0.9},
    ]
}
SERVED = {"context": 4096, "input_tokens": 1024, "output_tokens": 256}


@st.composite
def candidates(draw) -> list[Candidate]:
    found = []
    for number in range(draw(st.integers(1, 2))):
        each, nodes = draw(st.integers(1, 6)), tuple(f"{number}-{at}" for at in range(draw(st.integers(1, 2))))
        kind = Kind(
            group="g",
            accelerator=accelerator("L40S"),
            each=each,
            free=1,
            node=Node(name="n", accelerator="L40S", accelerators=each),
            price=float(draw(st.integers(1, 5))),
            parts=nodes,
            nodes=nodes,
        )
        for width in (1, 2, 4):
            if width <= each and draw(st.booleans()):
                found.append(
                    Candidate(
                        kind=kind,
                        width=width,
                        options=None,
                        capacity=float(draw(st.integers(1, 9))),
                        answer=None,
                        model=None,
                    )
                )
    return found


def sits(found: list[Candidate], counts: list[int]) -> bool:
    """Whether replicas, the widest first, find a place on the nodes."""
    seats = Seats({id(each.kind): each.kind for each in found}.values())
    for each, count in sorted(zip(found, counts, strict=True), key=lambda pair: -pair[0].width):
        for _ in range(count):
            if not any(seats.free[part] >= each.width for part in each.kind.parts):
                return False
            seats.take(each.kind, each.width)
    return True


def every_count(found: list[Candidate]):
    for counts in product(*(range(len(each.kind.parts) * (each.kind.each // each.width) + 1) for each in found)):
        if sits(found, list(counts)):
            yield counts


@given(found=candidates(), amount=st.integers(1, 30))
@settings(max_examples=40)
def test_a_demand_is_held_at_least_cost_and_every_replica_finds_a_node(found, amount):
    assume(found)
    costs = [
        sum(hourly_cost(found, each) * count for each, count in zip(found, counts, strict=True))
        for counts in every_count(found)
        if sum(each.capacity * count for each, count in zip(found, counts, strict=True)) >= amount
    ]
    counts, (value, bound) = choose_counts(found, Demand(is_open=True, amount=float(amount)), Effort())
    assert (counts is None) == (not costs)
    if counts is not None:
        assert value == pytest.approx(min(costs)) and bound == pytest.approx(value) and sits(found, counts)


@given(found=candidates())
@settings(max_examples=40)
def test_without_a_demand_the_pool_answers_the_most_that_it_can(found):
    assume(found)
    best = max(
        sum(each.capacity * count for each, count in zip(found, counts, strict=True)) for counts in every_count(found)
    )
    counts, (value, _) = choose_counts(found, Demand(is_open=True, amount=None), Effort())
    assert value == pytest.approx(best) and sits(found, counts)
    assert sum(each.capacity * count for each, count in zip(found, counts, strict=True)) == pytest.approx(
        best, rel=1e-5
    )


def test_the_replicas_of_a_demand_answer_it_within_the_service_level():
    found = tonnage.place(POOL, "llama-3.1-8b", request_rate=12.0, ttft="500ms", tpot="40ms", **SERVED).document
    assert found.verdict.placed and found.placed_as == "replicas" and found.verdict.optimal
    assert found.figures["requests_per_second"] >= 12
    for row in found.replicas:
        answer = tonnage.serve(
            "llama-3.1-8b",
            on=f"{row.accelerators}x{row.accelerator}",
            request_rate=row.capacity * 0.999,
            ttft="500ms",
            tpot="40ms",
            tensor_parallel_size=row.accelerators,
            **SERVED,
        )
        assert answer.status == 0 and row.requests <= answer.serving.concurrency.value
        held = tonnage.serve(
            "llama-3.1-8b",
            on=f"{row.accelerators}x{row.accelerator}",
            concurrency=row.requests,
            tensor_parallel_size=row.accelerators,
            **SERVED,
        )
        assert held.fits and held.needed_bytes == row.needed_bytes


def test_more_than_the_pool_answers_says_the_most_and_what_would_do():
    found = tonnage.place(POOL, "llama-3.1-8b", request_rate=5000.0, **SERVED).document
    assert not found.verdict.placed and "proven optimal" in found.verdict.text
    assert "would do" in found.nearest_miss and "accelerators of the pool" in found.binding


def test_a_service_level_that_nothing_meets_binds():
    found = tonnage.place(POOL, "llama-3.1-8b", split="replicas", request_rate=1.0, tpot="0.1ms", **SERVED).document
    assert not found.verdict.placed and found.binding.startswith("the service level: tpot is ")


def test_more_nodes_never_cost_more():
    small = tonnage.place(POOL, "llama-3.1-8b", request_rate=12.0, **SERVED).document
    more = POOL | {"nodes": [*POOL["nodes"], {"name": "b", "accelerator": "H200-SXM-141GB", "count": 2, "price": 2.0}]}
    assert tonnage.place(more, "llama-3.1-8b", request_rate=12.0, **SERVED).document.usd_per_hour <= small.usd_per_hour


def test_without_a_price_accelerators_are_counted_and_it_is_said():
    nodes = [
        {"name": "v", "accelerator": "V100-SXM2-32GB", "count": 4},
        {"name": "w", "accelerator": "A100-SXM-80GB", "count": 4, "price": 1.6},
    ]
    found = tonnage.place({"nodes": nodes}, "llama-3.1-8b", request_rate=1.0, **SERVED).document
    assert found.verdict.placed
    if found.usd_per_hour is None:
        assert any("no price" in each for each in found.warnings)


def test_users_may_be_the_demand():
    found = tonnage.place(POOL, "llama-3.1-8b", concurrency=100, tpot="40ms", **SERVED).document
    assert found.verdict.placed and found.figures["users"] >= 100


def test_users_with_a_context_are_as_many_as_serve_says_fit():
    """Requests that run hold the whole context, though the requests of the steady state are shorter."""
    found = tonnage.place(POOL, "qwen3-32b", concurrency=40, context=8192, weights="fp8", tpot="80ms").document
    assert found.verdict.placed and found.replicas
    for row in found.replicas:
        on = f"{row.accelerators}x{row.accelerator}"
        asked = {
            "context": 8192,
            "weights": "fp8",
            "tpot": "80ms",
            "as_is": True,
            "tensor_parallel_size": row.accelerators,
        }
        answer = tonnage.serve("qwen3-32b", on=on, concurrency=int(row.capacity), **asked)
        assert answer.status == 0 and answer.needed_bytes == row.needed_bytes and row.requests == row.capacity
        more = tonnage.serve("qwen3-32b", on=on, concurrency=int(row.capacity) + 1, **asked)
        over = more.band[1] > more.usable_bytes  # perhaps inside the error band
        assert more.status == 3 or (more.status == 2 and over)


@given(most=st.integers(1, 60), true=st.integers(0, 60))
def test_users_that_serve_refuses_are_cut_to_the_most_that_it_takes(most, true):
    def at(users: int) -> SimpleNamespace:
        return SimpleNamespace(fits=users <= true, unserved="", users=users)

    users, answer = most_users(at, most, SimpleNamespace(users=0))
    assert users == answer.users == min(most, true)


@pytest.mark.parametrize("split", ["replicas", "pipeline"])
def test_lengths_that_nobody_says_are_those_of_plan_serve_and_are_shown(split):
    question = tonnage.place(POOL, "llama-3.1-8b", split=split, concurrency=4).document.question
    shown = {
        name: (question[name].value, question[name].origin) for name in ("context", "input_tokens", "output_tokens")
    }
    assert shown == {
        "context": (2048, "default"),
        "input_tokens": (1024, "default"),
        "output_tokens": (1024, "default"),
    }
    said = tonnage.place(POOL, "llama-3.1-8b", split=split, concurrency=4, context=8192).document.question
    assert said["context"].value == 8192 and said["input_tokens"].value == 1024


@pytest.mark.parametrize("split", ["auto", "replicas", "pipeline"])
def test_a_model_that_makes_no_tokens_is_not_placed(split):
    with pytest.raises(MissingDatum, match="bert-base-uncased makes no tokens"):
        tonnage.place(POOL, "bert-base-uncased", split=split, concurrency=4)


@pytest.mark.parametrize("demand", [{"request_rate": 1.0}, {"concurrency": 4}])
def test_a_limit_that_nothing_keeps_is_named_with_the_least_that_there_is(demand):
    found = tonnage.place(POOL, "llama-3.1-8b", tpot="0.1ms", **demand, **SERVED)
    document = found.document
    least = min(
        tonnage.serve(
            "llama-3.1-8b", on=on, concurrency=1, tensor_parallel_size=int(on[0]), **SERVED
        ).serving.tpot_seconds.value
        for on in ("4xA100-SXM-80GB", "2xH100-SXM-80GB", "2xL40S")
    )
    assert found.status == 3 and f"tpot is {human(least, 'seconds')}" in document.nearest_miss
    assert "100.00 us is asked for" in document.nearest_miss and "tpot" in document.verdict.text
    assert len([each for each in document.warnings if "tpot" in each]) == 3  # one of each type, not of each width


def test_a_verdict_says_what_was_asked_for_and_what_there_is_room_for():
    text = tonnage.place(POOL, "llama-3.1-8b", concurrency=1, **SERVED).document.verdict.text
    assert ": 1 user (room for " in text
    most = tonnage.place(POOL, "llama-3.1-8b", request_rate=40000.0, **SERVED).document
    assert "of 40,000 requests a second" in most.verdict.text and "e+" not in most.nearest_miss

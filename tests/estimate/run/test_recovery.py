"""Spare nodes, fewer replicas, and checkpoints in host memory or on local drives."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonnage
from tonnage.catalogue.failures import failure_rate
from tonnage.formulas import failures as f
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName
from tonnage.kernel.formula import erlang_b, poisson_excess

HOUR, DAY = 3600, 86400
LLAMA = {"model": "llama-3.1-405b", "on": "2048x8xh100", "tokens": "15T", "recompute": "full"}


def run_of(**options):
    return tonnage.train(**{**LLAMA, **options}).to_dict()["run"]


def goodput(**options):
    return run_of(**options)["goodput"]["value"]


def children(term):
    return {child["name"]: child["value"] for child in term["children"]}


@pytest.mark.parametrize(("servers", "load"), [(1, 2.5), (5, 2.5), (8, 2.5), (16, 20.0)])
def test_erlangs_formula_is_its_sum(servers, load):
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    assert erlang_b(servers, load) == pytest.approx(terms[-1] / sum(terms))


@pytest.mark.parametrize(("limit", "mean"), [(0, 3.0), (2, 0.5), (5, 5.0), (3, 900.0)])
def test_the_excess_of_a_poisson_number_is_its_sum(limit, mean):
    if mean > 500:
        assert poisson_excess(limit, mean) == pytest.approx(mean - limit)
        return
    chances = [math.exp(-mean) * mean**k / math.factorial(k) for k in range(100)]
    assert poisson_excess(limit, mean) == pytest.approx(sum(max(k - limit, 0) * p for k, p in enumerate(chances)))


def test_the_time_with_nodes_is_that_of_a_cluster_played_through():
    """Nodes fail while training runs; it waits while more are in repair than there are spares."""
    chance, spares, mtbf, repair = random.Random(1917), 2, 10.0, 15.0
    clock, running, back = 0.0, 0.0, []
    for _failure in range(40_000):
        left = chance.expovariate(1 / mtbf)
        clock, running = clock + left, running + left
        back = [*(end for end in back if end > clock), clock + chance.uniform(0, 2 * repair)]
        if len(back) > spares:
            clock = min(back)
            back.remove(clock)
    assert running / clock == pytest.approx(f.time_with_nodes(n_spare=spares, n_rep=repair / mtbf), rel=0.01)


mean_numbers = st.floats(1e-6, 1e4)


@given(spares=st.integers(0, 60), repairs=mean_numbers, gone=st.integers(1, 8), replicas=st.integers(8, 512))
def test_more_spares_and_fewer_failures_never_hurt(spares, repairs, gone, replicas):
    def elastic(n_spare, n_rep):
        return f.speed_with_replicas_left(n_spare=n_spare, n_rep=n_rep, n_gone=gone, d=replicas)

    def waiting(n_spare, n_rep):
        return f.time_with_nodes(n_spare=n_spare, n_rep=n_rep)

    for share in (elastic, waiting):
        now = share(spares, repairs)
        assert 0 < now <= 1
        assert share(spares + 1, repairs) >= now * (1 - 1e-9)
        assert share(spares, repairs / 2) >= now * (1 - 1e-9)
    assert elastic(spares, repairs) >= waiting(spares, repairs)


@settings(max_examples=8, deadline=None)
@given(
    years=st.floats(0.8, 50),
    tier=st.sampled_from(["remote", "local", "memory"]),
    spares=st.integers(0, 40),
    elastic=st.booleans(),
)
def test_the_goodput_of_a_run_is_a_share_that_fewer_failures_and_more_spares_raise(years, tier, spares, elastic):
    asked = {"checkpoint_tier": tier, "elastic": elastic, "repair_seconds": "4h", "summary": True}

    def share(years, spares):
        answer = tonnage.train(
            "llama-3.1-8b",
            on="64x8xh100",
            tokens="1T",
            accelerator_mtbf=f"{years}y",
            spares=spares,
            **{key: value for key, value in asked.items() if key != "summary"},
        )
        return answer.to_dict()["run"]["goodput"]["value"]

    now = share(years, spares)
    assert 0 < now <= 1
    assert share(years, spares + 1) >= now * (1 - 1e-9)
    assert share(2 * years, spares) >= now * (1 - 1e-3), "Daly's interval is near the best one, not the best"


def test_spares_are_paid_for():
    without, with_them = run_of(), run_of(spares=64)
    per_day = [each["accelerator_hours"]["value"] / each["seconds"]["value"] for each in (without, with_them)]
    assert per_day[1] / per_day[0] == pytest.approx((2048 + 64) / 2048)


def test_a_bill_has_the_spares():
    asked = {**LLAMA, "price_per_accelerator_hour": 2.0}
    costs = [tonnage.train(**asked, **more).to_dict() for more in ({}, {"spares": 64})]
    usd = [each["cost"]["value"] / each["run"]["seconds"]["value"] for each in costs]
    assert usd[1] / usd[0] == pytest.approx((2048 + 64) / 2048)


def test_without_spares_a_large_run_waits_most_of_its_time_and_replicas_less_help():
    waits, goes_on = goodput(spares=0, repair_seconds="8h"), goodput(spares=0, repair_seconds="8h", elastic=True)
    assert waits < 0.4
    assert 0.85 < goes_on < goodput()


def test_host_memory_beats_slow_remote_storage():
    slow = {"storage_bandwidth": "20GB/s"}
    remote, local, memory = (goodput(**slow, checkpoint_tier=tier) for tier in ("remote", "local", "memory"))
    assert remote < local < memory < 1


def test_what_loses_host_memory_is_read_from_remote_storage():
    run = run_of(checkpoint_tier="memory", storage_bandwidth="20GB/s")
    parts = children(run["goodput"])
    assert set(parts) == {"with the nearest checkpoint", "with remote storage"}
    remote = next(child for child in run["goodput"]["children"] if child["name"] == "with remote storage")
    share = failure_rate("llama-3").share("several nodes")
    assert remote["inputs"]["MTBF"] == pytest.approx(run["time_between_failures"]["value"] / share)
    assert remote["inputs"]["tau_c"] > 200, "one copy after another, as fast as the storage takes them"


def test_a_checkpoint_in_memory_takes_its_part_of_the_bytes_over_each_host_link():
    run = run_of(checkpoint_tier="memory")
    per_gpu = 405.85e9 * 12 / 16384
    assert run["checkpoint_seconds"]["value"] == pytest.approx(per_gpu / 64e9, rel=0.05)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"failures": "rsc-1", "accelerator_mtbf": "5y"}, InvalidInput, "give one of them"),
        ({"failures": "rsc-7"}, UnknownName, "rsc-1"),
        ({"checkpoint_tier": "tape"}, UnknownName, "memory"),
        ({"repair_seconds": "8h"}, InvalidInput, "spares"),
        ({"spares": -1}, InvalidInput, "from 0 to"),
        ({"on": "64x8xmi300x", "checkpoint_tier": "local"}, MissingDatum, "drives"),
    ],
)
def test_what_cannot_be_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        run_of(**options)


def test_the_rate_of_the_generation_is_taken_and_said():
    question = tonnage.train("opt-175b", on="124x8xa100", tokens="300B").to_dict()["question"]
    assert question["failures"]["value"] == "rsc-1"
    assert "Kokolis2024" in question["failures"]["why"]
    assert "failures" not in tonnage.train("llama-3.1-8b", on="8xh100", tokens="1B").to_dict()["question"]


def test_nothing_fails_while_training_waits_for_a_node():
    run = run_of(spares=2)
    share = children(run["goodput"])["time with enough nodes"]
    assert share < 0.6
    expected = run["seconds"]["value"] * share / run["time_between_failures"]["value"]
    assert run["failures"]["value"] == pytest.approx(expected)


def test_a_long_run_says_its_computing_its_goodput_and_whose_rate_of_failures():
    text = " ".join(tonnage.train(**LLAMA).text().split())
    assert "(94.1 d of computing, goodput 93 %, 787 failures at the rate of llama-3)" in text
    assert "of computing" not in tonnage.train("llama-3.1-8b", on="8xh100", tokens="1B").text()

"""Ranks that have more to do than others, or are slower."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from tonnage.formulas.time import straggler_factor
from tonnage.kernel.errors import InvalidPlan

MIXTURE = {"runtime": "megatron", "expert_parallel_size": 8}


def of(**options):
    return tonnage.train("mixtral-8x7b", "8x8xH100-SXM-80GB", as_is=True, **{**MIXTURE, **options})


def spent_on_experts(answer):
    return sum(term.value for _, term in answer.step_time.walk() if term.name == "products of experts")


def test_balance_is_assumed_and_said():
    entry = of().question["expert_imbalance"]
    assert entry.value == 1 and entry.origin == "default" and "assumed" in entry.why


def test_the_fullest_rank_takes_longer_and_holds_more():
    plain, fuller, twice = of(), of(expert_imbalance=1.5), of(expert_imbalance=2.0)
    for less, more in ((plain, fuller), (fuller, twice)):
        assert less.memory.value < more.memory.value
        assert less.step_time.value < more.step_time.value
        assert spent_on_experts(more) > 1.2 * spent_on_experts(less)
    assert fuller.flops.value == plain.flops.value
    for made in (plain, fuller, twice):
        assert made.run.mfu.value <= made.run.hfu.value
    assert twice.run.hfu.value < plain.run.hfu.value


@pytest.mark.parametrize(
    "options",
    [
        {"expert_imbalance": 0.9},
        {"expert_imbalance": 9.0},
        {"expert_imbalance": 1.2, "expert_parallel_size": 1},
        {"expert_imbalance": 1.2, "runtime": "fsdp2"},
        {"expert_imbalance": 1.2, "expert_capacity_factor": 1.0},
        {"straggler_slowdown": 0.5},
        {"straggler_share": 0.1},
        {"straggler_slowdown": 1.1, "straggler_share": 1.5},
    ],
)
def test_what_cannot_be_is_refused(options):
    with pytest.raises(InvalidPlan, match=r"expert_imbalance|straggler"):
        of(**options)


@given(st.floats(1, 3), st.floats(0, 1), st.integers(1, 4096))
def test_the_more_nodes_the_longer_and_never_longer_than_the_slow_one(slow, share, nodes):
    one, more = (straggler_factor(kappa=slow, q_slow=share, nodes=count) for count in (nodes, nodes + 1))
    assert 1 <= one <= more * (1 + 1e-12) <= slow * (1 + 1e-9)
    assert straggler_factor(kappa=slow, q_slow=1, nodes=nodes) == pytest.approx(slow)


def test_one_slow_node_of_two_hundred_is_felt_by_those_who_have_many():
    few, many = (straggler_factor(kappa=1.1, q_slow=0.005, nodes=nodes) for nodes in (1, 1000))
    assert few == pytest.approx(1.0005) and many == pytest.approx(1.0993, abs=1e-4)


def test_a_step_waits_for_its_slowest_node():
    plain, slow, rare = of(), of(straggler_slowdown=1.34), of(straggler_slowdown=1.34, straggler_share=0.01)
    assert slow.step_time.value == pytest.approx(1.34 * plain.step_time.value)
    assert rare.step_time.value == pytest.approx(plain.step_time.value * (1 + 0.34 * (1 - 0.99**8)))
    assert slow.run.mfu.value == pytest.approx(plain.run.mfu.value / 1.34)
    assert slow.memory.value == plain.memory.value
    assert "straggler_slowdown" not in plain.question and slow.question["straggler_share"].value == 1

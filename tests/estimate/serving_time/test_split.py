"""Prefill and decode on replicas of their own: the answer is of these replicas, not of replicas that do both."""

import pytest

import tonnage
from tonnage.cli import main
from tonnage.kernel.errors import InvalidPlan

SHARED = {"on": "8xh100", "tensor_parallel_size": 1, "input_tokens": 4096, "output_tokens": 300, "advice": False}


def served(**more: object) -> tonnage.Answer:
    return tonnage.serve("llama-3.1-8b", **{**SHARED, "concurrency": 100, "prefill_replicas": 4, **more})


def test_the_times_of_an_answer_are_those_of_the_replicas_that_were_asked_for():
    apart, both = served().serving, served(prefill_replicas=None).serving
    for name in ("ttft_seconds", "tpot_seconds", "end_to_end_seconds", "requests_per_second", "largest_rate"):
        assert getattr(apart, name).value == pytest.approx(getattr(apart.split, name).value)
        assert getattr(apart, name).value != pytest.approx(getattr(both, name).value)
    assert apart.tpot_seconds.value < both.tpot_seconds.value, "no prompts come between the tokens"
    low, high = apart.ttft_band
    assert low < apart.ttft_seconds.value < high
    assert apart.cost_per_million_tokens.value * apart.total_tokens_per_second.value == pytest.approx(
        both.cost_per_million_tokens.value * both.total_tokens_per_second.value
    ), "the same machines for an hour"


@pytest.mark.parametrize("load", [{"concurrency": 100}, {"concurrency": None, "request_rate": 20.0}])
def test_targets_are_held_against_the_replicas_that_were_asked_for(load):
    serving = served(**load).serving
    ttft, tpot = serving.ttft_seconds.value, serving.tpot_seconds.value
    met = served(**load, ttft=ttft * 1.01, tpot=tpot * 1.01)
    assert met.serving.service_level.met and met.serving.service_level.ttft_seconds == pytest.approx(ttft)
    missed = served(**load, tpot=tpot * 0.99)
    assert not missed.serving.service_level.met and missed.serving.service_level.bound_by == "tpot"
    assert missed.status == 3 and any("is not met" in str(warning) for warning in missed.warnings)


def test_the_most_users_within_the_targets_keep_them_and_a_tenth_more_do_not():
    serving = served(ttft=0.5, tpot=0.03).serving
    users = int(serving.users_at_service_level.value)
    assert served(ttft=0.5, tpot=0.03, concurrency=users).serving.service_level.met
    assert not served(ttft=0.5, tpot=0.03, concurrency=users * 11 // 10).serving.service_level.met


def test_more_requests_than_the_prefill_replicas_compute_are_an_overload():
    answer = served(concurrency=None, request_rate=500.0)
    serving = answer.serving
    assert serving.ttft_seconds is None and answer.status == 3
    assert serving.requests_per_second.value == pytest.approx(serving.largest_rate.value)


def test_no_suggestion_is_timed_for_replicas_that_do_both():
    assert served(advice=True).advice == ()
    unfit = served(advice=True, concurrency=100_000)
    assert unfit.advice and all(not move.ttft_seconds and not move.tpot_seconds for move in unfit.advice)


@pytest.mark.parametrize("more", [{"simulate": True}, {"ttft": 1.0, "percentile": "p99"}])
def test_a_simulation_of_them_is_refused_since_it_would_be_of_replicas_that_do_both(more):
    with pytest.raises(InvalidPlan, match="leave out"):
        served(**more)


def test_the_text_names_the_replicas_and_says_that_the_command_starts_them_otherwise(capsys):
    words = "serve llama-3.1-8b --on 8xh100 --tp 1 --users 100 --input 4k --output 300 --prefill-replicas 4"
    assert main(words.split()) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "for 13 requests of 4,396 tokens on each replica" in text
    assert "replicas: 4 prefill, 4 decode" in text
    assert "KV cache where answers are decoded for 1.80 M tokens" in text
    assert "start 4 prefill and 4 decode replicas as servers of their own" in text


def test_what_is_suggested_leaves_a_replica_to_decode():
    unfit = served(advice=True, concurrency=100_000, tpot=0.02)
    assert unfit.advice
    for move in unfit.advice:
        change = dict(move.change)
        again = served(**{"concurrency": 100_000, **change, "advice": False})
        assert again.serving.split.decode_replicas >= 1

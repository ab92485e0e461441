"""Where limits were asked and are kept, fewer accelerators that keep them are proposed, and what they cost is what they
are let for.
"""

import pytest

import tonnage

LOAD = {"model": "llama-3.1-70b", "on": "8xH100", "input_tokens": 1024, "output_tokens": 1024, "concurrency": 64}


def fewer(answer):
    return [move for move in answer.document.advice if "on" in move.change]


def again(move):
    return tonnage.serve(**{**LOAD, **move.change, "ttft": "2s", "tpot": "50ms"})


def test_the_fewest_accelerators_that_keep_the_limits_at_the_high_end_come_first():
    move = fewer(tonnage.serve(**LOAD, ttft="2s", tpot="50ms"))[0]
    serving = again(move).document.serving
    assert serving.service_level.met
    assert serving.ttft_band[1] <= 2 and serving.tpot_band[1] <= 0.05
    assert serving.tpot_seconds.value == pytest.approx(move.tpot_seconds, rel=1e-12)


def test_half_of_them_would_keep_the_limits_no_more_or_not_surely():
    assert fewer(tonnage.serve(**LOAD, ttft="2s", tpot="50ms"))[0].change["on"] == "4xH100-SXM-80GB"
    half = tonnage.serve(**{**LOAD, "on": "2xH100", "ttft": "2s", "tpot": "50ms"}).document
    assert half.verdict.fits is not True or half.serving.ttft_band[1] > 2 or half.serving.tpot_band[1] > 0.05


def test_without_limits_no_fewer_are_proposed():
    assert fewer(tonnage.serve(**LOAD)) == []


def test_a_machine_that_is_let_only_as_a_whole_is_not_paid_for_by_a_part_of_it():
    found = tonnage.serve(**LOAD, ttft="2s", tpot="50ms")
    move = fewer(found)[0]
    assert move.usd_per_million_tokens == pytest.approx(
        again(move).document.serving.cost_per_million_tokens.value, rel=1e-9
    )
    assert move.provider


def test_a_price_that_was_given_holds_for_each_accelerator():
    found = tonnage.serve(**LOAD, ttft="2s", tpot="50ms", price_per_accelerator_hour=2)
    move = fewer(found)[0]
    assert move.usd_change == pytest.approx((1 + move.time_change) * 4 / 8 - 1, rel=1e-9)

"""What a stranger found that contradicted itself in one answer of `serve`."""

import pytest

import tonnage

ON = "h100-sxm-80gb"


def warned(answer, words):
    return any(words in each for each in answer.warnings)


def test_one_user_alone_waits_as_long_in_the_simulation_as_in_the_steady_state():
    answer = tonnage.serve("llama-3.1-8b", on=ON, context=8192, concurrency=1, simulate=True)
    steady, simulated = answer.serving["ttft_seconds"].value, answer.serving["simulated"]["ttft"]
    assert simulated["mean"].value == pytest.approx(steady, rel=1e-4)
    assert simulated["p99"].value == pytest.approx(steady, rel=1e-4)
    parts = [each.name for each in answer.serving["ttft_seconds"].children]
    assert "into the engine and back" in parts and "waiting, and what shares its passes" not in parts


def test_a_limit_between_the_parts_of_a_first_token_is_unmet_by_mean_and_by_percentile():
    for way in ("mean", "p99"):
        answer = tonnage.serve("llama-3.1-8b", on=ON, context=8192, concurrency=1, ttft="55ms", percentile=way)
        assert answer.serving["service_level"]["met"] is False


def test_next_moves_hold_the_context_of_the_load_that_was_asked_about():
    answer = tonnage.serve("llama-3.1-8b", on=ON, concurrency=512, input_tokens=1024, output_tokens=256)
    fewer = [move for move in answer.advice if "concurrency" in move["change"]]
    assert fewer and fewer[0]["change"]["concurrency"] > 300
    assert not any(move["change"].get("context", 1280) < 1280 for move in answer.advice)


def test_eager_engines_say_that_nobody_measured_them():
    assert warned(tonnage.serve("llama-3.2-1b", on=ON, context=4096, enforce_eager=True), "without captured graphs")
    assert not warned(tonnage.serve("llama-3.2-1b", on=ON, context=4096), "without captured graphs")


def test_times_of_what_does_not_fit_are_said_to_be_so():
    answer = tonnage.serve("llama-3.1-70b", on="rtx-4090", weights="q4_k_m", context=4096)
    assert answer.fits is False and warned(answer, "it does not fit")


@pytest.mark.parametrize(("on", "has_rows"), [("rtx-4090", True), (ON, True), ("mi300x", False)])
def test_times_have_a_band_where_machines_like_these_were_measured_and_a_note_where_none_was(on, has_rows):
    answer = tonnage.serve("llama-3.1-8b", on=on, context=4096, concurrency=4, weights="fp8")
    assert ("tpot_band" in answer.serving) is has_rows
    assert warned(answer, "nobody published runs") is not has_rows
    if has_rows:
        low, high = answer.serving["tpot_band"]
        assert low < answer.serving["tpot_seconds"].value < high

"""What a stranger found that contradicted itself in one answer of `serve`."""

import pytest

import tonnage
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.kernel.errors import TonnageError

ON = "h100-sxm-80gb"


def warned(answer, words):
    return any(words in each for each in answer.warnings)


def test_one_user_alone_waits_as_long_in_the_simulation_as_in_the_steady_state():
    answer = tonnage.serve("llama-3.1-8b", on=ON, context=8192, concurrency=1, simulate=True)
    steady, simulated = answer.serving.ttft_seconds.value, answer.serving.simulated.ttft
    assert simulated.mean.value == pytest.approx(steady, rel=1e-4)
    assert simulated.p99.value == pytest.approx(steady, rel=1e-4)
    parts = [each.name for each in answer.serving.ttft_seconds.children]
    assert "request overhead" in parts and "queueing and batching" not in parts


def test_a_limit_between_the_parts_of_a_first_token_is_unmet_by_mean_and_by_percentile():
    for way in ("mean", "p99"):
        answer = tonnage.serve("llama-3.1-8b", on=ON, context=8192, concurrency=1, ttft="45ms", percentile=way)
        assert answer.serving.service_level.met is False


def test_next_moves_hold_the_context_of_the_load_that_was_asked_about():
    answer = tonnage.serve("llama-3.1-8b", on=ON, concurrency=512, input_tokens=1024, output_tokens=256)
    fewer = [move for move in answer.advice if "concurrency" in move.change]
    assert fewer and fewer[0].change["concurrency"] > 300
    assert not any(move.change.get("context", 1280) < 1280 for move in answer.advice)


def test_eager_engines_say_that_nobody_measured_them():
    assert warned(tonnage.serve("llama-3.2-1b", on=ON, context=4096, enforce_eager=True), "without CUDA graphs")
    assert not warned(tonnage.serve("llama-3.2-1b", on=ON, context=4096), "without CUDA graphs")


def test_times_of_what_does_not_fit_are_said_to_be_so():
    answer = tonnage.serve("llama-3.1-70b", on="rtx-4090", weights="q4_k_m", context=4096)
    assert answer.fits is False and warned(answer, "it does not fit")


@pytest.mark.parametrize(("on", "has_rows"), [("rtx-4090", True), (ON, True), ("mi300x", False)])
def test_times_have_a_band_and_a_wider_one_with_a_note_where_no_machines_like_these_were_measured(on, has_rows):
    answer = tonnage.serve("llama-3.1-8b", on=on, context=4096, concurrency=4, weights="fp8")
    assert warned(answer, "no published runs") is not has_rows
    low, high = answer.serving.tpot_band
    assert low < answer.serving.tpot_seconds.value < high
    measured = serving_rates().bands["tpot_seconds"]
    assert (high / low > 1.01 * measured.high / measured.low) is not has_rows


def test_prompts_on_replicas_of_their_own_stand_beside_replicas_that_do_both():
    said = {"on": "4x8xH100-SXM-80GB", "weights": "fp8", "input_tokens": 6000, "output_tokens": 200, "request_rate": 8}
    answer = tonnage.serve("llama-3.1-70b", tensor_parallel_size=8, prefill_replicas=2, **said)
    split = answer.serving.split
    assert (split.prefill_replicas, split.decode_replicas) == (2, 2)
    both = tonnage.serve("llama-3.1-70b", tensor_parallel_size=8, **said)
    assert split.tpot_seconds.value == answer.serving.tpot_seconds.value < both.serving.tpot_seconds.value
    assert 0 < split.transfer_seconds.value < split.ttft_seconds.value
    assert split.requests_per_second.value == pytest.approx(8)
    full = tonnage.serve("llama-3.1-70b", tensor_parallel_size=8, prefill_replicas=1, **{**said, "request_rate": 1e4})
    assert full.serving.split.ttft_seconds is None and full.serving.split.largest_rate.value < 1e4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prefill_replicas": 2}, "needs two replicas"),
        ({"prefill_replicas": 4, "tensor_parallel_size": 2}, "from 1 to 3"),
        ({"prefill_replicas": 0}, "prefill_replicas must be from 1"),
        (
            {"prefill_replicas": 1, "tensor_parallel_size": 2, "draft_tokens": 2, "acceptance": 0.5},
            "draft_tokens together",
        ),
        (
            {"prefill_replicas": 1, "tensor_parallel_size": 1, "engine": "llama.cpp", "weights": "q8_0"},
            "does not hand caches on",
        ),
    ],
)
def test_replicas_of_prompts_that_cannot_be_are_refused(options, words):
    with pytest.raises(TonnageError, match=words):
        tonnage.serve("llama-3.1-8b", on="8xH100-SXM-80GB", context=4096, **options)


def test_a_move_to_other_replicas_keeps_the_requests_that_are_held():
    """Two replicas have a default of two requests, four of four: what is faster with more of them is another
    workload.
    """
    answer = tonnage.serve("qwen2-7b", on="8xH100-SXM-80GB")
    held = answer.question["concurrency"].value
    for move in answer.advice:
        again = tonnage.serve("qwen2-7b", on="8xH100-SXM-80GB", **move.change)
        assert again.question["concurrency"].value == held, move.text


def test_a_simulation_of_more_users_than_it_can_take_names_the_most_that_it_takes():
    """Ten requests of each of a million users were ten million: two minutes, and no answer."""
    with pytest.raises(TonnageError, match=r"at most 100,000 users of a replica.*Got 1,000,000 users of a replica"):
        tonnage.serve("pythia-70m", on=ON, input_tokens=64, concurrency=1_000_000, tpot="50ms", percentile="p90")

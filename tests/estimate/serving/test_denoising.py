"""Diffusion language models: exact sizes, passes that denoise, caches, and engines that do so."""

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.serving_time.encoding import eager_seconds
from tonnage.kernel.errors import InvalidInput, InvalidPlan, NotApplicable
from tonnage.models import read


def serve(model="llada-8b-instruct", on="a100-sxm-80gb", **options):
    return tonnage.serve(model, on=on, advice=False, **{"input_tokens": 140, "output_tokens": 256, **options})


def test_models_are_counted_exactly():
    # Nie2025: 8.02 B, of which 6.98 B are no embeddings; Dream has Qwen2.5-7B's tensors
    llada = read("llada-8b-instruct")
    assert llada.num_parameters() == 8_015_581_184
    assert round((llada.num_parameters() - llada.num_embedding_parameters()) / 1e9, 2) == 6.98
    assert read("dream-v0-instruct-7b").num_parameters() == read("qwen2.5-7b").num_parameters()
    assert read("llada2.0-mini").num_parameters() == 16_255_643_392


def test_a_model_that_denoises_everything_keeps_no_cache():
    answer = serve()
    assert answer.question["engine"].value == "transformers"
    assert next(term for _, term in answer.memory.walk() if term.name == "kv cache").value == 0


def test_the_time_of_an_answer_is_its_passes():
    # ML-GSAI/LLaDA issue 88: 1,319 questions of GSM8K, each 256 passes, take two A100 six hours
    asked = serve(input_tokens=1000)
    assert asked.serving.end_to_end_seconds.value == pytest.approx(6 * 3600 * 2 / 1319, rel=0.15)


def test_a_pass_of_kernels_that_are_not_fused_moves_hidden_states_and_logits_of_all_its_tokens():
    model, card = read("llada-8b-instruct"), cluster("a100-sxm-80gb").accelerator
    moved = 200 * model.hidden_size * model.decoder.num_layers + 60 * model.vocab_size
    assert eager_seconds(model, card, 396) == pytest.approx(396 * moved / card.memory.bytes_per_second)
    walk = serve().serving.tpot_seconds.walk()
    between = next(term for _, term in walk if term.name == "activations, norms and residuals")
    assert between.value == pytest.approx(eager_seconds(model, card, 396), rel=0.01)


def test_half_the_steps_take_half_the_time():
    whole, half = serve().serving, serve(denoising_steps=128).serving
    assert half.end_to_end_seconds.value == pytest.approx(whole.end_to_end_seconds.value / 2, rel=0.02)
    assert whole.ttft_seconds.value == pytest.approx(whole.end_to_end_seconds.value, rel=0.02)  # all at once


def test_fast_dllm_caches_take_memory_and_save_time():
    plain, dual = serve(), serve(denoising_cache="dual", block_length=32)
    assert dual.needed_bytes > plain.needed_bytes
    assert dual.serving.tokens_per_second.value > 1.5 * plain.serving.tokens_per_second.value


def test_sglang_denoises_block_by_block_beside_a_cache():
    answer = serve("llada2.0-mini", on="h100")
    assert answer.question["engine"].value == "sglang"
    assert answer.question["block_length"].value == 32
    assert answer.question["max_num_seqs"].value == 1
    assert "--dllm-algorithm LowConfidence" in answer.serving.launch
    assert answer.serving.ttft_seconds.value < answer.serving.end_to_end_seconds.value / 4


def test_engines_that_do_not_denoise_are_refused_with_those_that_do():
    with pytest.raises(InvalidPlan, match="must be one of transformers"):
        serve(engine="vllm")


@pytest.mark.parametrize(
    ("options", "nearest"), [({"denoising_steps": 5000}, "256"), ({"denoising_steps": 3, "block_length": 32}, "8")]
)
def test_steps_are_at_least_one_a_block_and_at_most_one_a_token(options, nearest):
    with pytest.raises(InvalidInput, match=f"Nearest: {nearest}"):
        serve(**options)


def test_other_models_have_no_steps():
    with pytest.raises(NotApplicable, match="diffusion language models"):
        serve("llama-3.1-8b", denoising_steps=8)


def test_caches_that_an_engine_does_not_have_are_refused():
    with pytest.raises(InvalidPlan, match="Nearest: block"):
        serve("llada2.0-mini", on="h100", denoising_cache="dual")


def test_a_model_that_denoises_drafts_no_tokens():
    with pytest.raises(NotApplicable, match="speculative is of models that write one token after another"):
        serve(speculative="ngram")

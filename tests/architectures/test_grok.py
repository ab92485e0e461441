"""Grok 1: published 314B of which a token uses a quarter; Grok 2: 270B. Their structure: sglang and vLLM."""

from architectures.reading import billions, cache_bytes, model, ops
from tonnage.ops import MLP

ONE = "hpcai-tech/grok-1"
TWO = "xai-org/grok-2"


def test_grok_1_has_about_314_billion_parameters_of_which_a_quarter_is_active():
    made = model(ONE, tie_word_embeddings=True)
    assert made.num_parameters() == 315_684_820_992
    experts = sum(w.num_parameters * n for w, n in made.decoder.weighted() if w.part == "experts")
    active = sum(w.num_active_parameters * n for w, n in made.decoder.weighted() if w.part == "experts")
    assert active * 4 == experts


def test_grok_2_has_about_270_billion_parameters():
    made = model(TWO)
    assert billions(made.num_parameters()) == 270
    assert made.num_parameters() == 269_515_497_472


def test_grok_2_runs_a_dense_feed_forward_beside_the_experts():
    dense = next(op for op, _ in ops(model(TWO)) if isinstance(op, MLP))
    assert sum(weight.num_parameters for weight in dense.weights()) == 3 * 8192 * 32_768
    assert not [op for op, _ in ops(model(ONE)) if isinstance(op, MLP)]


def test_a_token_keeps_256_kib():
    assert cache_bytes(model(ONE), 1) == cache_bytes(model(TWO), 1) == 64 * 2 * 8 * 128 * 2


def test_the_two_have_names_of_their_own():
    def names(name: str) -> set[str]:
        return {weight.name for op, _ in ops(model(name)) for weight in op.weights()}

    assert {"attn.q_proj.weight", "moe_block.gate.weight", "pre_moe_norm.weight"} <= names(ONE)
    assert {"self_attn.q_proj.weight", "block_sparse_moe.gate.weight", "mlp.gate_proj.weight"} <= names(TWO)

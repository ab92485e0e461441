"""Counts: transformers' class with the config of MiniMax-M3, and for its draft layer vLLM's.

Published: about 428B with about 23B active.
"""

import pytest

from architectures.modern_b_configs import CONFIGS
from architectures.reading import cache_bytes, model, ops
from tonnage.architectures import build
from tonnage.ops import BlockSparseAttention, MoE

M3 = "MiniMaxAI/MiniMax-M3"
TEXT = CONFIGS[M3]["text_config"]
KEYS = 2 * 4 * 128 * 2


def test_m3_has_the_parameters_of_its_class_and_its_draft_layer():
    made = model(M3)
    assert made.num_parameters() == 427_040_140_160
    assert made.num_parameters(drafts=True) == 434_531_722_752
    assert made.num_active_parameters() == 25_962_473_856


def test_the_text_model_builds_alone_too():
    made = build(TEXT, "m3")
    assert made.num_parameters() == 426_174_572_928
    assert made.branch("minimax m3 vision tower") is None


def test_57_layers_of_60_read_blocks_of_keys_and_have_experts():
    kinds = {type(op): count for op, count in ops(model(M3)) if isinstance(op, BlockSparseAttention | MoE)}
    assert kinds == {BlockSparseAttention: 57, MoE: 57}


def test_a_token_leaves_one_index_key_beside_keys_and_values_of_all_layers():
    made = model(M3)
    assert cache_bytes(made, 131_072) == 131_072 * (60 * KEYS + 57 * 128 * 2)
    assert cache_bytes(made, 131_072, name="index") == 131_072 * 57 * 128 * 2


def test_a_query_sees_17_blocks_of_128_keys():
    sparse = next(op for op, _ in ops(model(M3)) if isinstance(op, BlockSparseAttention))
    attention = next(core for core in sparse.core() if core.name == "attention scores and values")
    index = next(core for core in sparse.core() if core.name == "index scores")
    assert (attention.window, index.window) == (17 * 128, None)
    assert index.flops == 2 * 4 * 128


def test_the_draft_layer_is_a_sparse_mixture_layer_with_four_parts_more():
    draft = model(M3).branch("multi-token prediction")
    assert draft is not None and draft.num_layers == 1
    names = [weight.name for weight, _ in draft.weighted()]
    assert names[:3] == ["enorm.weight", "hnorm.weight", "eh_proj.weight"] and names[-1] == "final_layernorm.weight"
    main = next(block for block in model(M3).decoder.blocks if "sparse attention, mixture" in block.name)
    more = 2 * 6144 * 6144 + 3 * 6144
    assert sum(weight.num_parameters for weight in draft.blocks[0].weights()) == more + sum(
        weight.num_parameters for weight in main.weights()
    )


def test_layers_may_be_named():
    kinds = ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57
    feeds = ["dense"] * 3 + ["sparse"] * 57
    named = {key: value for key, value in TEXT.items() if key != "moe_layer_freq"}
    named |= {"layer_types": kinds, "mlp_layer_types": feeds}
    assert build(named, "m3").num_parameters() == build(TEXT, "m3").num_parameters()


@pytest.mark.parametrize("kind", ["MiniMaxM3SparseForCausalLM", "MiniMaxM3VLForCausalLM"])
def test_what_the_config_leaves_out_is_what_the_class_has(kind: str):
    fields = {"architectures": [kind], "sparse_attention_config": TEXT["sparse_attention_config"]}
    made = build(fields | {"moe_layer_freq": TEXT["moe_layer_freq"]}, "m3")
    assert made.num_parameters() == 426_174_572_928

"""Counts: the Hub's safetensors totals as llmfit 1.1.17 records them, for Kimi-Linear-48B-A3B (and the class of
transformers 5.23)
and for Kimi K3: 2,779,931,837,184 weights in all. Of these the vision tower has 401,214,464, as its config says
(27 layers of 4 * 1024 * 1536 + 2 * 1024 * 4096 + 2 * 1024, patches 3 * 14 * 14 * 1024, positions 64 * 64 * 1024, a last
norm), and the projector 46,144,512 (4096 * 4096 + 4096 * 7168 and one vector of 7168).
"""

import pytest

from architectures.reading import billions, cache_bytes, model, ops, without_table
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import KimiDeltaAttention, LatentAttention, MoE, StateCache, TokenCache

LINEAR, K3 = "moonshotai/Kimi-Linear-48B-A3B", "moonshotai/Kimi-K3 text"


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [(LINEAR, 49_122_681_728, 3.1), (K3, 2_779_931_837_184 - 401_214_464 - 46_144_512, 104.2)],
)
def test_kimi_has_the_published_parameters(name: str, count: int, active: float):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(without_table(made), 1) == active


def test_the_routed_experts_of_k3_are_those_that_its_headers_count():
    experts = sum(weight.num_parameters * count for weight, count in model(K3).weighted() if weight.part == "experts")
    assert experts == 2_722_740_830_208


def test_linear_attn_config_lists_layers_from_one_on():
    kinds = {type(op): count for op, count in ops(model(LINEAR)) if isinstance(op, LatentAttention)}
    assert kinds == {LatentAttention: 7}
    assert sum(count for op, count in ops(model(K3)) if isinstance(op, KimiDeltaAttention)) == 69


def test_latents_grow_with_the_context_and_states_do_not():
    made = model(K3)
    assert cache_bytes(made, 1000, TokenCache) == 24 * 576 * 2 * 1000
    assert cache_bytes(made, 1000, StateCache) == 69 * (96 * 128 * 128 * 4 + 3 * 96 * 128 * 3 * 2)


def test_k3_gates_latent_attention_and_puts_its_experts_into_a_smaller_width():
    mixer = next(op for op, _ in ops(model(K3)) if isinstance(op, LatentAttention))
    experts = next(op for op, _ in ops(model(K3)) if isinstance(op, MoE))
    assert mixer.gate and not next(op for op, _ in ops(model(LINEAR)) if isinstance(op, LatentAttention)).gate
    names = {weight.name for weight in experts.weights()}
    assert {"block_sparse_moe.routed_expert_down_proj.weight", "block_sparse_moe.routed_expert_norm.weight"} <= names


def test_the_gates_of_kimi_linear_are_narrow_and_those_of_k3_are_not():
    def gate(name: str) -> set[str]:
        mixer = next(op for op, _ in ops(model(name)) if isinstance(op, KimiDeltaAttention))
        return {weight.name for weight in mixer.weights() if "g_" in weight.name}

    assert gate(LINEAR) == {"self_attn.g_a_proj.weight", "self_attn.g_b_proj.weight"}
    assert gate(K3) == {"self_attn.g_proj.weight"}


def test_a_file_that_transformers_saved_names_the_sizes_of_its_linear_layers_apart():
    kinds = ["full_attention" if layer in (3, 7, 11, 15, 19, 23, 26) else "linear_attention" for layer in range(27)]
    saved = {"linear_num_heads": 32, "linear_head_dim": 128, "linear_conv_kernel_dim": 4, "layer_types": kinds}
    assert model(LINEAR, linear_attn_config=None, **saved).num_parameters() == model(LINEAR).num_parameters()


def test_layers_are_listed_by_number():
    with pytest.raises(InvalidInput, match="full_attn_layers"):
        model(LINEAR, linear_attn_config={"full_attn_layers": ["last"], "head_dim": 128, "num_heads": 32})

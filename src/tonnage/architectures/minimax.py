"""MiniMax-Text-01 and M1 (lightning attention with softmax attention every eighth layer), M2 to M2.7, and M3.

Structure: transformers 5.23, models/minimax, minimax_m2 and minimax_m3_vl; the names are those of the checkpoints
(block_sparse_moe, conversion_mapping.py). transformers' own class MiniMaxForCausalLM keeps tables of decays as buffers,
which MiniMaxText01ForCausalLM computes. The lightning layers have as many heads as the softmax layers have queries.

Multi-token prediction: M2's configs announce it, and its checkpoints have no weights of it (MiniMax-AI/MiniMax-M2.7
issue 16), so it is left out here. M3's have num_mtp_modules mixture layers that share embedding and head
(vllm-project/vllm, MiniMaxM3MultiTokenPredictor), which transformers does not load.
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind, layer_kinds, moe
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, head_dim, model, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import LightningAttention, MoE, Op

MATRICES = ("w1", "w3", "w2")
MIXERS = ("linear_attention", "full_attention")


@architecture(
    "MiniMaxText01ForCausalLM",
    "MiniMaxM1ForCausalLM",
    model_types=("minimax_text_01", "minimax_m1", "MiniMaxText01", "MiniMaxM1"),
)
def minimax_01(c: Config) -> Model:
    return lightning_stack(c, decays=0)


@architecture("MiniMaxForCausalLM", model_types=("minimax",))
def minimax(c: Config) -> Model:
    c = c.with_defaults({"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "block_size": 256})
    return lightning_stack(c, decays=c.size("block_size"))


@architecture("MiniMaxM2ForCausalLM", model_types=("minimax_m2",))
def minimax_m2(c: Config) -> Model:
    kind = c.one_of("qk_norm_type", ("per_layer", "per_head"), default="per_layer")
    norms = ("full" if kind == "per_layer" else "head") if c.flag("use_qk_norm", default=True) else ""
    feed = mixture(c, correction_bias=c.flag("use_routing_bias", default=True))
    layer = pre_norm("mixture layer", attention(c, qk_norm=norms), feed, c.size("hidden_size"))
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "minimax", decoder(c, [layer], tied=tied), tied=tied)


def lightning_stack(c: Config, decays: int) -> Model:
    if c.size("shared_intermediate_size", default=0, smallest=0):
        raise InvalidInput(
            "{where}: shared_intermediate_size must be 0: no MiniMax-01 has a shared expert.", where=c.where
        )
    blocks, layers = by_kind(kinds(c), lambda kind: lightning_layer(c, kind, decays))
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "minimax", decoder(c, blocks, layers, tied=tied), tied=tied)


def lightning_layer(c: Config, kind: str, decays: int) -> Block:
    h = c.size("hidden_size")
    mixer: Op = attention(c, window=c.size("sliding_window", default=None))
    if kind == "linear_attention":
        heads = c.size("num_attention_heads")
        mixer = LightningAttention(hidden_size=h, heads=heads, head_dim=head_dim(c), decays=decays)
    return pre_norm(Message("{kind} layer", kind=kind), mixer, mixture(c), h)


def mixture(c: Config, **options: Any) -> MoE:
    return moe(
        c,
        name="block_sparse_moe",
        expert_names=MATRICES,
        intermediate_size=c.size("intermediate_size"),
        correction_name="e_score_correction_bias",
        **options,
    )


def kinds(c: Config) -> list[str]:
    """attn_type_list (0 lightning, 1 softmax), else layer_types, else every second layer (the class's rule)."""
    listed_kinds = c.items("attn_type_list", default=None, length=num_layers(c))
    if listed_kinds is None:
        return layer_kinds(c, lambda i: MIXERS[(i + 1) % 2], MIXERS)
    if any(kind not in (0, 1) for kind in listed_kinds):
        raise InvalidInput(
            "{where}: attn_type_list may hold 0 (lightning) and 1 (softmax). Got {given}.",
            where=c.where,
            given=shown(listed_kinds),
        )
    return [MIXERS[kind] for kind in listed_kinds]

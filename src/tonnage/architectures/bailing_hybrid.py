"""Ling 3.0: five layers of Kimi delta attention with full-rank gates, then one of latent attention with a gate a
head; experts.

Structure: transformers 5.23, models/bailing_hybrid/modeling_bailing_hybrid.py and configuration_bailing_hybrid.py. The
checkpoint holds a draft layer with latent attention, which transformers ignores; with it the Hub counts
127,486,405,600 weights in Ling-3.0-flash, as is counted here.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, layer_kinds, moe, stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import latent_attention, mlp, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import draft_layers
from tonnage.kernel.message import Message
from tonnage.ops import KimiDeltaAttention, LatentAttention, MoE

KINDS = ("linear_attention", "full_attention")
DEFAULTS = {"first_k_dense_replace": 2, "layer_group_size": 6, "short_conv_kernel_size": 4, "head_dim": 128}


@architecture("BailingHybridForCausalLM", model_types=("bailing_hybrid",))
def bailing_hybrid(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    group = c.size("layer_group_size")
    kinds = layer_kinds(c, lambda layer: "linear_attention" if (layer + 1) % group else "full_attention", KINDS)

    def layer(kind: tuple[str, str]) -> Block:
        mixer = _delta_attention(c) if kind[0] == "linear_attention" else _latent_attention(c)
        return pre_norm(
            Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]),
            mixer,
            mlp(c) if kind[1] == "dense" else _mixture(c),
            c.size("hidden_size"),
        )

    drafts = draft_layers(c, layer(("full_attention", "sparse")), table=False, head=False)
    return stack(c, "bailing_hybrid", list(zip(kinds, feed_kinds(c), strict=True)), layer, drafts=drafts)


def _delta_attention(c: Config) -> KimiDeltaAttention:
    return KimiDeltaAttention(
        hidden_size=c.size("hidden_size"),
        heads=c.size("num_attention_heads"),
        head_dim=c.size("linear_head_dim", "head_dim"),
        conv_kernel=c.size("short_conv_kernel_size"),
        forget_rank=None,
        gate_rank=None,
    )


def _latent_attention(c: Config) -> LatentAttention:
    heads = c.size("num_attention_heads")
    return latent_attention(c, q_lora_rank=None, gate=True, gate_width=heads)


def _mixture(c: Config) -> MoE:
    width = c.size("moe_intermediate_size")
    shared = c.depth("n_shared_experts", "num_shared_experts", default=1, smallest=0)
    return moe(
        c,
        num_experts=c.depth("num_local_experts", "num_experts"),
        intermediate_size=width,
        shared_size=width * shared,
        correction_bias=True,
    )

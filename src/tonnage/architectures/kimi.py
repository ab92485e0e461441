"""Kimi-Linear and the language model of Kimi K3: three layers of Kimi delta attention, then one of latent
attention; experts.

Structure: transformers 5.23, models/kimi_linear/modeling_kimi_linear.py, for Kimi-Linear-48B-A3B; its checkpoint's
names (block_sparse_moe, three convolutions) from moonshotai/Kimi-Linear-48B-A3B-Instruct modeling_kimi.py. What Kimi
K3 adds is in sgl-project/sglang python/sglang/srt/models/kimi_k3.py: gates of full rank, a gate on latent attention,
experts in a smaller width with a norm, residuals of attention over blocks of attn_res_block_size layers. Kimi K3
stores head_dim numbers in A_log, of which the first num_heads are read.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, layer_kinds, moe, stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import latent_attention, mlp, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import KimiDeltaAttention, LatentAttention, Linear, MoE, Op

KINDS = ("linear_attention", "full_attention")


@architecture("KimiLinearForCausalLM", model_types=("kimi_linear",))
def kimi_linear(c: Config) -> Model:
    h, residuals = c.size("hidden_size"), c.depth("attn_res_block_size", default=None) is not None

    def layer(kind: tuple[str, str]) -> Block:
        mixer = delta_attention(c) if kind[0] == "linear_attention" else _latent_attention(c)
        block = pre_norm(
            Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]),
            mixer,
            mlp(c) if kind[1] == "dense" else _mixture(c),
            h,
        )
        extra = _residual("self_attention_res", h) + _residual("mlp_res", h) if residuals else ()
        return Block(block.name, (*extra, *block.ops))

    kinds = list(zip(_mixer_kinds(c), _feed_kinds(c), strict=True))
    return stack(
        c,
        "kimi_linear",
        kinds,
        layer,
        after=_residual("output_attn_res", h) if residuals else (),
        context=c.size("model_max_length", "max_position_embeddings", default=None),
    )


def _residual(name: str, width: int) -> tuple[Op, ...]:
    """A weight for each earlier block of layers: norm, then one number."""
    return norm(f"{name}_norm", width), Linear(name=f"{name}_proj", in_features=width, out_features=1, part="router")


def _mixer_kinds(c: Config) -> list[str]:
    """layer_types, or linear_attn_config's lists of layers, which count from one."""
    linear = _linear(c)
    if linear is None or "full_attn_layers" not in linear:
        return layer_kinds(c, lambda layer: "full_attention" if layer and layer % 4 == 0 else "linear_attention", KINDS)
    full = linear.layers("full_attn_layers")
    return ["full_attention" if layer + 1 in full else "linear_attention" for layer in range(num_layers(c))]


def _feed_kinds(c: Config) -> list[str]:
    return feed_kinds(c.with_defaults({"first_k_dense_replace": 1}))


def _linear(c: Config) -> Config | None:
    return c.section("linear_attn_config", required=False)


def delta_attention(c: Config) -> KimiDeltaAttention:
    """Sizes from linear_attn_config, or from the fields that transformers saves in its place."""
    linear, full_rank = _linear(c), False
    if linear is None:
        heads, width, kernel = (c.size(f"linear_{name}") for name in ("num_heads", "head_dim", "conv_kernel_dim"))
    else:
        heads, width, kernel = (linear.size(name) for name in ("num_heads", "head_dim", "short_conv_kernel_size"))
        full_rank = linear.flag("use_full_rank_gate", default=False)
    return KimiDeltaAttention(
        hidden_size=c.size("hidden_size"),
        heads=heads,
        head_dim=width,
        conv_kernel=kernel,
        forget_rank=width,
        gate_rank=None if full_rank else width,
        decays=width if full_rank else None,
    )


def _latent_attention(c: Config) -> LatentAttention:
    return latent_attention(c, gate=c.flag("mla_use_output_gate", default=False))


def _mixture(c: Config) -> MoE:
    width = c.size("moe_intermediate_size")
    latent = c.size("routed_expert_hidden_size", default=None)
    return moe(
        c,
        name="block_sparse_moe",
        expert_names=("w1", "w3", "w2"),
        correction_bias=True,
        shared_size=width * c.depth("num_shared_experts", "n_shared_experts", default=0, smallest=0),
        latent_size=latent,
        latent_names=("routed_expert_down_proj", "routed_expert_up_proj"),
        latent_norm="routed_expert_norm" if latent and c.flag("latent_moe_use_norm", default=False) else "",
    )

"""A decoder from neutral dimensions, for models that have no config.json: sizes given on the command line, published
tables.

Its class name is "GenericDecoder" and its model type "generic". The field names are Hugging Face's. The defaults are a
decoder like Llama: RMSNorm before each sublayer, a gated feed-forward, rotary positions, no biases, an untied head.
With `state_size` the layers are Mamba mixers, with `kv_lora_rank` attention is latent, with `num_experts` the
feed-forward is a mixture.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, head_dim, latent_attention, mlp, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import step_rank
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, joined
from tonnage.kernel.registry import unknown
from tonnage.ops import MLP, Attention, LatentAttention, Mamba, MoE, Norm, Op

# Defaults of absent fields; None: derived from others, or the model has no such part.
FIELDS: Mapping[str, Any] = {
    # sizes
    "hidden_size": None,
    "num_hidden_layers": None,
    "num_attention_heads": None,
    "num_key_value_heads": None,
    "head_dim": None,
    "intermediate_size": None,
    "vocab_size": None,
    "max_position_embeddings": None,
    "tie_word_embeddings": False,
    # norms
    "norm": "rms",
    "norm_bias": None,
    "pre_norms": True,
    "post_norms": False,
    "shared_attention_norm": False,
    "qk_norm": "none",
    "embedding_norm": False,
    # feed-forward, biases, positions
    "mlp": "gated",
    "mlp_bias": False,
    "attention_bias": False,
    "attention_out_bias": False,
    "lm_head_bias": False,
    "position_embeddings": "rotary",
    "position_offset": 0,
    "sliding_window": None,
    "sliding_layers": None,
    # mixture of experts
    "num_experts": None,
    "num_experts_per_tok": 1,
    "moe_intermediate_size": None,
    "n_shared_experts": 0,
    "first_k_dense_replace": 0,
    "router_correction_bias": False,
    # latent attention
    "q_lora_rank": None,
    "kv_lora_rank": None,
    "qk_nope_head_dim": None,
    "qk_rope_head_dim": None,
    "v_head_dim": None,
    # Mamba 1
    "state_size": None,
    "conv_kernel": 4,
    "expand": 2,
    "inner_size": None,
    "time_step_rank": "auto",
    "use_conv_bias": True,
}
# Fields that every config.json may have and that decide no size.
ACCOMPANYING = frozenset(
    {"architectures", "model_type", "dtype", "torch_dtype", "quantization_config", "name", "transformers_version"}
)
QK_NORMS = (
    "none",
    "head",
    "full",
    "layer-head",
    "layer-full",
)  # as ops.Attention has them; an empty text is "none" too
# Llama makes 2/3 of 4 * hidden_size a multiple of this, as its sizes show: 4096 -> 11008, 5120 -> 13824, 8192 -> 22016.
ROUNDED_TO = 256


@architecture("GenericDecoder", model_types=("generic",))
def generic(c: Config) -> Model:
    for name in c.fields:
        if name not in FIELDS and name not in ACCOMPANYING:
            raise InvalidInput(joined(": ", (c.where, unknown("field of a generic decoder", name, FIELDS))))
    c = c.with_defaults({name: value for name, value in FIELDS.items() if value is not None} | _inner_default(c))
    blocks, layers = _layers(c)
    tied = c.flag("tie_word_embeddings")
    kind, options = _norm_kind(c)
    learned = c.one_of("position_embeddings", ("rotary", "learned", "alibi", "none")) == "learned"
    positions = c.size("max_position_embeddings") + c.size("position_offset", smallest=0) if learned else 0
    before = (_norm(c, "embed_norm"),) if c.flag("embedding_norm") else ()
    branch = decoder(
        c,
        blocks,
        layers,
        norm_kind=kind,
        norm_options=options,
        tied=tied,
        head_bias=c.flag("lm_head_bias"),
        positions=positions,
        before=before,
    )
    return model(c, "generic", branch, tied=tied)


def _inner_default(c: Config) -> dict[str, int]:
    """The default inner width: 4 * hidden_size, or LLaMA's two thirds of that for a gated feed-forward."""
    h = c.size("hidden_size")
    if c.text("mlp", default="gated") == "plain":
        return {"intermediate_size": 4 * h}
    return {"intermediate_size": -(-8 * h // (3 * ROUNDED_TO)) * ROUNDED_TO}


def _norm_kind(c: Config) -> tuple[Any, dict[str, Any]]:
    kind = c.one_of("norm", ("rms", "layer"))
    return kind, {"bias": c.flag("norm_bias", default=kind == "layer")}


def _norm(c: Config, name: str) -> Norm:
    kind, options = _norm_kind(c)
    return norm(name, c.size("hidden_size"), kind, **options)


def _layers(c: Config) -> tuple[list[Block], list[int]]:
    """The kinds of layers in use, and the kind of each layer."""
    count = num_layers(c)
    if "state_size" in c:
        return [Block("Mamba layer", (_norm(c, "norm"), _mamba(c)))], [0] * count
    dense = c.depth("first_k_dense_replace", smallest=0) if "num_experts" in c else count
    keys = list(zip(_windows(c, count), (i < dense for i in range(count)), strict=True))
    used = sorted(set(keys), key=keys.index)
    return [_block(c, *key) for key in used], [used.index(key) for key in keys]


def _windows(c: Config, count: int) -> list[int | None]:
    """The window of each layer; full layers are spread evenly, the last layer among them."""
    window = c.size("sliding_window", default=None)
    windowed = c.depth("sliding_layers", default=0 if window is None else count, smallest=0)
    if windowed > count or (windowed and window is None):
        wanted = Message("at most {@num_hidden_layers} ({count}), beside a sliding_window", count=count)
        raise InvalidInput(
            "{where}: sliding_layers must be {wanted}. Got {windowed}.",
            where=c.where,
            wanted=wanted,
            windowed=windowed,
        )
    full = count - windowed
    return [None if (i + 1) * full // count > i * full // count else window for i in range(count)]


def _block(c: Config, window: int | None, dense: bool) -> Block:
    name = ("dense" if dense else "mixture") + (" layer" if window is None else " windowed layer")
    mixer = _latent(c) if "kv_lora_rank" in c else _attention(c, window)
    return Block(name, _with_norms(c, mixer, _feed(c) if dense else _mixture(c)))


def _with_norms(c: Config, mixer: Op, feed: Op) -> tuple[Op, ...]:
    """The sublayers with their norms: before, after, both, or one before a parallel attention and feed-forward."""
    pre, post, shared = c.flag("pre_norms"), c.flag("post_norms"), c.flag("shared_attention_norm")
    ops: tuple[Op, ...] = (_norm(c, "input_layernorm"), mixer) if pre or shared else (mixer,)
    if post:
        ops += (_norm(c, "post_attention_layernorm"),)
    if pre and not shared:
        ops += (_norm(c, "pre_feedforward_layernorm" if post else "post_attention_layernorm"),)
    return (*ops, feed, _norm(c, "post_feedforward_layernorm")) if post else (*ops, feed)


def _attention(c: Config, window: int | None) -> Attention:
    kind = c.one_of("qk_norm", QK_NORMS) if c.raw("qk_norm") else "none"
    return attention(
        c,
        window=window,
        bias=c.flag("attention_bias"),
        out_bias=c.flag("attention_out_bias"),
        qk_norm="" if kind == "none" else kind,
    )


def _latent(c: Config) -> LatentAttention:
    return latent_attention(c, v_head_dim=c.size("v_head_dim", default=None) or head_dim(c))


def _feed(c: Config) -> MLP:
    return mlp(c, gated=_gated(c), bias=c.flag("mlp_bias"), keeps_input=not c.flag("shared_attention_norm"))


def _gated(c: Config) -> bool:
    return c.one_of("mlp", ("gated", "plain")) == "gated"


def _mixture(c: Config) -> MoE:
    experts, chosen = c.depth("num_experts"), c.depth("num_experts_per_tok")
    if chosen > experts:
        raise InvalidInput(
            "{where}: {@num_experts_per_tok} ({chosen}) exceeds {@num_experts} ({experts}).",
            where=c.where,
            chosen=chosen,
            experts=experts,
        )
    inner = c.size("moe_intermediate_size", default=None) or c.size("intermediate_size")
    return MoE(
        hidden_size=c.size("hidden_size"),
        num_experts=experts,
        top_k=chosen,
        intermediate_size=inner,
        gated=_gated(c),
        bias=c.flag("mlp_bias"),
        shared_size=inner * c.depth("n_shared_experts", smallest=0),
        correction_bias=c.flag("router_correction_bias"),
    )


def _mamba(c: Config) -> Mamba:
    h = c.size("hidden_size")
    return Mamba(
        hidden_size=h,
        inner_size=c.size("inner_size", default=None) or h * c.size("expand"),
        state_size=c.size("state_size"),
        conv_kernel=c.size("conv_kernel"),
        dt_rank=step_rank(c, "time_step_rank"),
        conv_bias=c.flag("use_conv_bias"),
    )

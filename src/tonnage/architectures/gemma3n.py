"""Gemma 3n, its language model alone: four streams (AltUp), low-rank side paths (LAuReL), an embedding for every
layer.

Structure: transformers 5.23, models/gemma3n/modeling_gemma3n.py and configuration_gemma3n.py. The last
num_kv_shared_layers layers read the cache of the last layer of their kind before them and have no keys and values of
their own; the released checkpoints still hold k_proj, v_proj and k_norm of those layers, which transformers ignores.
The table of per-layer embeddings (vocab_size_per_layer_input x layers x hidden_size_per_layer_input) may stay in host
memory.
"""

from collections.abc import Sequence

from tonnage.architectures._config import Config
from tonnage.architectures._layers import every_nth_full, layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import Embedding, Linear, Op, Parameter

DEFAULTS = {
    "vocab_size": 262_400,
    "hidden_size": 2048,
    "intermediate_size": 16_384,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "max_position_embeddings": 32_768,
    "sliding_window": 512,
    "vocab_size_per_layer_input": 262_144,
    "hidden_size_per_layer_input": 256,
    "altup_num_inputs": 4,
    "num_kv_shared_layers": 15,
    "laurel_rank": 64,
}


@architecture("Gemma3nForCausalLM", model_types=("gemma3n_text",))
def gemma3n(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    kinds = list(zip(layer_kinds(c, every_nth_full(5)), shared_layers(c), _widths(c), strict=True))
    return stack(
        c,
        "gemma3n",
        kinds,
        lambda kind: _layer(c, *kind),
        tied=True,
        before=per_layer_inputs(c) + _streams(c, "altup_projections"),
        after=_streams(c, "altup_unembed_projections"),
    )


def shared_layers(c: Config) -> list[bool]:
    """Whether each layer reads an earlier layer's cache: the last num_kv_shared_layers do."""
    count, shared = num_layers(c), c.depth("num_kv_shared_layers", smallest=0)
    if shared >= count and shared:
        raise InvalidInput(
            "{where}: num_kv_shared_layers must be less than {@num_hidden_layers} ({count}). Got {shared}.",
            where=c.where,
            count=count,
            shared=shared,
        )
    return [layer >= count - shared for layer in range(count)]


def per_layer_inputs(c: Config) -> tuple[Op, ...]:
    """The table of per-layer embeddings, and the projection of the token embedding that is added to it."""
    h, width = c.size("hidden_size"), c.size("hidden_size_per_layer_input", smallest=0)
    if not width:
        return ()
    rows, all_layers = c.size("vocab_size_per_layer_input"), width * num_layers(c)
    return (
        Embedding(name="embed_tokens_per_layer", num_embeddings=rows, width=all_layers),
        Linear(name="per_layer_model_projection", in_features=h, out_features=all_layers),
        norm("per_layer_projection_norm", width),
    )


def per_layer_gate(c: Config) -> tuple[Op, ...]:
    """The operations that add a layer's own embedding: gate, projection to the hidden size, norm."""
    h, width = c.size("hidden_size"), c.size("hidden_size_per_layer_input", smallest=0)
    if not width:
        return ()
    return (
        Linear(name="per_layer_input_gate", in_features=h, out_features=width, part="mlp"),
        Linear(name="per_layer_projection", in_features=width, out_features=h, part="mlp"),
        norm("post_per_layer_input_norm", h),
    )


def sandwich_norms(c: Config) -> tuple[Op, Op, Op, Op]:
    h = c.size("hidden_size")
    return (
        norm("input_layernorm", h),
        norm("post_attention_layernorm", h),
        norm("pre_feedforward_layernorm", h),
        norm("post_feedforward_layernorm", h),
    )


def _layer(c: Config, kind: str, shared: bool, width: int) -> Block:
    mixer = attention(
        c,
        bias=c.flag("attention_bias", default=False),
        qk_norm="head",
        window=window_of(c, kind),
        has_kv=not shared,
        shares_cache=shared,
    )
    first, second, third, fourth = sandwich_norms(c)
    feed = mlp(c, intermediate_size=width)
    ops = (*_altup(c), first, mixer, *_laurel(c), second, third, feed, fourth, *per_layer_gate(c))
    name = (
        Message("{kind} layer that reads another's cache", kind=kind) if shared else Message("{kind} layer", kind=kind)
    )
    return Block(name, ops)


def _altup(c: Config) -> Sequence[Op]:
    """Four streams predicted from one another, of which one runs through the layer and corrects the others."""
    h, streams = c.size("hidden_size"), c.size("altup_num_inputs", largest=1024)
    return (
        Parameter(name="altup.correct_output_scale", elements=h),
        Linear(name="altup.correction_coefs", in_features=streams, out_features=streams),
        Linear(name="altup.prediction_coefs", in_features=streams, out_features=streams**2),
        Linear(name="altup.modality_router", in_features=h, out_features=streams, part="router"),
        norm("altup.router_norm", h),
    )


def _laurel(c: Config) -> Sequence[Op]:
    h, rank = c.size("hidden_size"), c.size("laurel_rank")
    return (
        Linear(name="laurel.linear_left", in_features=h, out_features=rank, part="mlp"),
        Linear(name="laurel.linear_right", in_features=rank, out_features=h, part="mlp"),
        norm("laurel.post_laurel_norm", h),
    )


def _streams(c: Config, name: str) -> tuple[Op, ...]:
    h, streams = c.size("hidden_size"), c.size("altup_num_inputs", largest=1024)
    return tuple(Linear(name=f"{name}.{i}", in_features=h, out_features=h) for i in range(streams - 1))


def _widths(c: Config) -> list[int]:
    """The feed-forward width of each layer: one for all, or a list."""
    if not isinstance(c.raw("intermediate_size"), list | tuple):
        return [c.size("intermediate_size")] * num_layers(c)
    widths = c.items("intermediate_size", length=num_layers(c))
    if any(isinstance(width, bool) or not isinstance(width, int) or width < 1 for width in widths):
        raise InvalidInput(
            "{where}: {@intermediate_size} must be a positive whole number, or one for each layer. Got {widths}.",
            where=c.where,
            widths=shown(widths),
        )
    return widths

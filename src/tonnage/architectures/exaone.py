"""EXAONE 4 (norms behind the sublayers, every fourth layer full) and K-EXAONE (norms before them, experts).

Structure: transformers 5.23, models/exaone4 and models/exaone_moe. sliding_window_pattern is a number, or letters that
repeat (L for a local layer, G for a global one): LGAI-EXAONE/EXAONE-4.0-32B config.json. K-EXAONE's checkpoint holds a
draft layer (`mtp.`), which transformers ignores.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, norm, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import MoE


@architecture("Exaone4ForCausalLM", model_types=("exaone4", "exaone4_5_text"))
def exaone4(c: Config) -> Model:
    h = c.size("hidden_size")

    def layer(kind: str) -> Block:
        mixer = attention(c, qk_norm="head", window=window_of(c, kind))
        return Block(
            Message("{kind} layer", kind=kind),
            (mixer, norm("post_attention_layernorm", h), mlp(c), norm("post_feedforward_layernorm", h)),
        )

    return stack(c, "exaone", _window_kinds(c), layer)


@architecture("ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM", model_types=("exaone_moe",))
def exaone_moe(c: Config) -> Model:
    c = c.with_defaults({"first_k_dense_replace": 1})

    def layer(kind: tuple[str, str]) -> Block:
        mixer = attention(c, qk_norm="head", window=window_of(c, kind[0]))
        return pre_norm(
            Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]),
            mixer,
            mlp(c) if kind[1] == "dense" else _mixture(c),
            c.size("hidden_size"),
        )

    return stack(c, "exaone", list(zip(_window_kinds(c), feed_kinds(c), strict=True)), layer)


def _mixture(c: Config) -> MoE:
    width = c.size("moe_intermediate_size")
    shared = c.depth("num_shared_experts", default=1, smallest=0)
    return moe(c, intermediate_size=width, shared_size=width * shared, correction_bias=True)


def _window_kinds(c: Config) -> list[str]:
    """The kind of each layer: sliding except every n-th layer, or a pattern of letters."""
    slides, pattern = c.raw("sliding_window") is not None, c.raw("sliding_window_pattern")
    if isinstance(pattern, str):
        if not pattern or set(pattern) - set("LG"):
            raise InvalidInput(
                "{where}: sliding_window_pattern must be a number or letters L and G. Got {pattern}.",
                where=c.where,
                pattern=shown(pattern),
            )
        return layer_kinds(
            c, lambda i: "sliding_attention" if slides and pattern[i % len(pattern)] == "L" else "full_attention"
        )
    every = c.size("sliding_window_pattern", default=4)
    return layer_kinds(c, lambda i: "sliding_attention" if slides and (i + 1) % every else "full_attention")

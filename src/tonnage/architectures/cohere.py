"""Command R, R+, R7B and A, Aya, and Cohere 2 with experts: attention and feed-forward beside each other, tied
embedding.

Structure and defaults: huggingface/transformers src/transformers/models/cohere, cohere2 and cohere2_moe (v5.23). A
layer has one LayerNorm without bias. Command R+ normalises queries and keys with a vector for each head; Cohere 2
alternates windows with full attention, three to one by default; with experts, the first layers may be dense, and
rms_norm_eps chooses RMSNorm.
"""

from tonnage.architectures._classic import parallel_block
from tonnage.architectures._config import Config
from tonnage.architectures._layers import every_nth_full, feed_kinds, layer_kinds, moe, stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import NormKind, attention, head_dim, mlp, norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import Attention, Norm

DEFAULTS = {"sliding_window": 4096, "sliding_window_pattern": 4}
MOE_DEFAULTS = DEFAULTS | {"head_dim": 128, "num_shared_experts": 0, "prefix_dense_sliding_window_pattern": 1}
WITHOUT_BIAS = {"bias": False}


@architecture("CohereForCausalLM", model_types=("cohere",))
def cohere(c: Config) -> Model:
    mixer = _attention(c, None, head_dim(c), normalised=c.flag("use_qk_norm", default=False))
    layer = parallel_block("decoder layer", _norm(c), mixer, mlp(c))
    kinds = layer_kinds(c, lambda _: "full_attention")
    return stack(c, "cohere", kinds, lambda _: layer, tied=True, norm_kind="layer", norm_options=WITHOUT_BIAS)


@architecture("Cohere2ForCausalLM", model_types=("cohere2",))
def cohere2(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    kinds = layer_kinds(c, every_nth_full(c.size("sliding_window_pattern")))

    def layer(kind: str) -> Block:
        return parallel_block(kind, _norm(c), _attention(c, _window(c, kind), head_dim(c)), mlp(c))

    return stack(c, "cohere2", kinds, layer, tied=True, norm_kind="layer", norm_options=WITHOUT_BIAS)


@architecture("Cohere2MoeForCausalLM", model_types=("cohere2_moe",))
def cohere2_moe(c: Config) -> Model:
    c = c.with_defaults(MOE_DEFAULTS)
    kinds = list(zip(_moe_kinds(c), feed_kinds(c), strict=True))

    def layer(kind: tuple[str, str]) -> Block:
        mixer = _attention(c, _window(c, kind[0]), c.size("head_dim"))
        if kind[1] == "dense":
            inner = c.size("prefix_dense_intermediate_size", default=None) or c.size("intermediate_size")
            return parallel_block(
                Message("dense {kind}", kind=kind[0]), _norm(c), mixer, mlp(c, intermediate_size=inner)
            )
        inner = c.size("intermediate_size")
        shared = inner * c.depth("num_shared_experts", smallest=0)
        return Block(kind[0], (_norm(c), mixer, moe(c, intermediate_size=inner, shared_size=shared)))

    options = WITHOUT_BIAS if _kind(c) == "layer" else {}
    return stack(c, "cohere2_moe", kinds, layer, tied=True, norm_kind=_kind(c), norm_options=options)


def _moe_kinds(c: Config) -> list[str]:
    """The dense layers before the mixtures follow a pattern of their own, and the mixtures' pattern begins after
    them.
    """
    dense = c.depth("first_k_dense_replace", default=0, smallest=0)
    before = every_nth_full(c.size("prefix_dense_sliding_window_pattern"))
    after = every_nth_full(c.size("sliding_window_pattern"))
    return layer_kinds(c, lambda layer: before(layer) if layer < dense else after(layer - dense))


def _attention(c: Config, window: int | None, width: int, normalised: bool = False) -> Attention:
    bias = c.flag("attention_bias", default=False)
    return attention(c, bias=bias, window=window, head_dim=width, qk_norm="full" if normalised else "")


def _window(c: Config, kind: str) -> int | None:
    return None if kind == "full_attention" else c.size("sliding_window")


def _kind(c: Config) -> NormKind:
    return "rms" if "rms_norm_eps" in c and "num_experts" in c else "layer"


def _norm(c: Config) -> Norm:
    kind = _kind(c)
    return norm("input_layernorm", c.size("hidden_size"), kind, **(WITHOUT_BIAS if kind == "layer" else {}))

"""Qwen1.5-MoE and Qwen2-MoE: Qwen2's attention, routed experts beside a shared one that a learned scalar scales.

Structure: transformers 5.23, models/qwen2_moe/modeling_qwen2_moe.py (Qwen2MoeSparseMoeBlock, Qwen2MoeDecoderLayer) and
configuration_qwen2_moe.py: with use_sliding_window, every other of the first max_window_layers slides.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import MLP, MoE


@architecture("Qwen2MoeForCausalLM", model_types=("qwen2_moe",))
def qwen2_moe(c: Config) -> Model:
    bias = c.flag("qkv_bias", default=True)

    def layer(kind: tuple[str, str]) -> Block:
        mixer = attention(c, bias=bias, out_bias=False, window=window_of(c, kind[0]))
        return pre_norm(
            Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]),
            mixer,
            feed_forward(c, kind[1]),
            c.size("hidden_size"),
        )

    return stack(c, "qwen2_moe", list(zip(_window_kinds(c), mixture_kinds(c), strict=True)), layer)


def feed_forward(c: Config, kind: str) -> MLP | MoE:
    """The dense layer, or the mixture with Qwen's shared expert where the config has one."""
    if kind == "dense":
        return mlp(c)
    shared = c.size("shared_expert_intermediate_size", default=0, smallest=0)
    return moe(c, shared_size=shared, shared_gate=bool(shared), shared_name="shared_expert")


def mixture_kinds(c: Config) -> list[str]:
    """The kind of each layer: every decoder_sparse_step-th is a mixture, unless mlp_only_layers lists it."""
    dense, step = c.layers("mlp_only_layers", default=[]), c.size("decoder_sparse_step", default=1)
    return ["dense" if layer in dense or (layer + 1) % step else "sparse" for layer in range(num_layers(c))]


def _window_kinds(c: Config) -> list[str]:
    slides = c.flag("use_sliding_window", default=False)
    last = c.depth("max_window_layers", smallest=0) if slides else 0
    return layer_kinds(c, lambda i: "sliding_attention" if slides and i % 2 == 0 and i < last else "full_attention")

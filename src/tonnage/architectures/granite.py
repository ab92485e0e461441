"""Granite 3: dense, mixtures of experts (GraniteMoe, PowerMoE), those with a shared expert, and the sliding ones.

Structure and defaults: transformers 5.23, models/granite, granitemoe, granitemoeshared, granite_swa and granitemoe_swa.
The multipliers of embeddings, attention, residuals and logits hold no weights. Names of the experts are those of the
checkpoints: one tensor for gate and up of all experts (conversion_mapping.py, "granitemoe").
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import MoE, Op

FUSED = ("input_linear", "input_linear", "output_linear")  # gate and up in one, and down
MOE_DEFAULTS = {"num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 0}


@architecture("GraniteForCausalLM", model_types=("granite",))
def granite(c: Config) -> Model:
    return granite_stack(c, "granite", feed_forward(c))


@architecture("GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM", model_types=("granitemoe", "granitemoeshared"))
def granite_moe(c: Config) -> Model:
    c = c.with_defaults(MOE_DEFAULTS)
    return granite_stack(c, "granite", mixture(c))


@architecture("GraniteSWAForCausalLM", model_types=("granite_swa",))
def granite_swa(c: Config) -> Model:
    c = c.with_defaults({"sliding_window": 128, "tie_word_embeddings": True})
    return granite_stack(c, "granite", feed_forward(c), sliding=True)


@architecture("GraniteMoeSWAForCausalLM", model_types=("granitemoe_swa",))
def granite_moe_swa(c: Config) -> Model:
    c = c.with_defaults({**MOE_DEFAULTS, "sliding_window": 128})
    return granite_stack(c, "granite", mixture(c), sliding=True)


def granite_stack(c: Config, family: str, feed: Op, sliding: bool = False) -> Model:
    """Llama's layer; `sliding`: three layers of four see a window, and every head has a sink."""
    bias = c.flag("attention_bias", default=False)

    def layer(kind: str) -> Block:
        window = window_of(c, kind) if sliding else None
        mixer = attention(c, bias=bias, window=window, sinks=sliding)
        return pre_norm(Message("{kind} layer", kind=kind), mixer, feed, c.size("hidden_size"))

    def usual(i: int) -> str:
        return "sliding_attention" if sliding and i % 4 else "full_attention"

    return stack(c, family, layer_kinds(c, usual), layer)


def feed_forward(c: Config) -> Op:
    return mlp(c, bias=c.flag("mlp_bias", default=False))


def mixture(c: Config, **options: Any) -> MoE:
    """Experts and a shared expert, each only where the config has it."""
    return moe(
        c,
        name="",
        router_name="block_sparse_moe.router.layer",
        experts_name="block_sparse_moe",
        expert_names=FUSED,
        intermediate_size=c.size("intermediate_size"),
        shared_size=c.size("shared_intermediate_size", smallest=0),
        shared_name="shared_mlp",
        shared_names=FUSED,
        **options,
    )

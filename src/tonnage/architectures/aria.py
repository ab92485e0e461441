"""Aria: SigLIP's layers, learned queries, and a decoder whose every layer is a mixture with shared experts.

Structure: transformers 5.24, models/aria.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe, stack
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, linear, projected, table, text_section, tower
from tonnage.kernel.errors import MissingDatum
from tonnage.ops import Attention, Op

DEFAULTS = {"moe_num_experts": 8, "moe_topk": 2, "moe_num_shared_experts": 2}


@architecture("AriaForConditionalGeneration", model_types=("aria",))
def aria(c: Config) -> Model:
    text, vision = aria_text(text_section(c, "aria_text")), tower(c, "idefics3_vision")
    return joined(text, "aria", projected(vision, *projector(c, vision.hidden_size, text.hidden_size)))


@architecture("AriaTextForCausalLM", model_types=("aria_text",))
def aria_text(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    width = c.size("intermediate_size")
    mixture = moe(c, intermediate_size=width, shared_size=width * c.depth("moe_num_shared_experts", smallest=0))
    layer = pre_norm("mixture layer", attention(c), mixture, c.size("hidden_size"))
    return stack(c, "aria", [0] * num_layers(c), lambda _: layer)


def projector(c: Config, inputs: int, outputs: int) -> tuple[Op, ...]:
    """Queries attend to the patches through a matrix before and one within the attention; two matrices follow."""
    counts = c.section("projector_patch_to_query_dict").fields.values()
    queries = max((count for count in counts if isinstance(count, int)), default=0)
    if queries < 1:
        raise MissingDatum("{where}: projector_patch_to_query_dict says no number of queries.", where=c.where)
    heads = 16
    name = "multi_modal_projector.cross_attn"
    mixer = Attention(
        name=f"{name}.multihead_attn",
        hidden_size=inputs,
        heads=heads,
        kv_heads=heads,
        head_dim=inputs // heads,
        bias=True,
        causal=False,
        fused="in_proj",
        names=("q", "k", "v", "out_proj"),
    )
    return (
        table("multi_modal_projector.query", queries, inputs),
        *(linear(f"{name}.{one}_proj", inputs, inputs, bias=False) for one in "qkv"),
        mixer,
        linear(f"{name}.linear", inputs, inputs),
        *(norm(f"{name}.{one}", inputs, "layer") for one in ("layer_norm", "layer_norm_kv")),
        norm("multi_modal_projector.layer_norm", inputs, "layer"),
        linear("multi_modal_projector.feed_forward.linear_in", inputs, outputs, bias=False),
        linear("multi_modal_projector.feed_forward.linear_out", outputs, outputs, bias=False),
    )

"""Idefics 2 (perceiver), Idefics 3 and SmolVLM 1 and 2 (pixel shuffle) with SigLIP's tower.

Structure: transformers 5.23, models/{idefics2,idefics3,smolvlm}.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, linear, projected, table, text_section, tower
from tonnage.ops import MLP, Attention, Op

PERCEIVER = {
    "resampler_n_latents": 64,
    "resampler_depth": 3,
    "resampler_n_heads": 16,
    "resampler_head_dim": 96,
    "num_key_value_heads": 4,
    "hidden_size": 4096,
}


@architecture(
    "Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration", model_types=("idefics3", "smolvlm")
)
def idefics3(c: Config) -> Model:
    text, vision = language_model(c, "llama"), tower(c, "idefics3_vision")
    inputs = vision.hidden_size * c.size("scale_factor", default=2) ** 2
    projector = linear("connector.modality_projection.proj", inputs, text.hidden_size, bias=False)
    return joined(text, "idefics", projected(vision, projector))


@architecture("Idefics2ForConditionalGeneration", model_types=("idefics2",))
def idefics2(c: Config) -> Model:
    """A gated projection to the text's width, then learned queries that gather an image into 64 tokens."""
    text, vision = language_model(c, "mistral"), tower(c, "idefics2_vision")
    inner = text_section(c, "mistral").size("intermediate_size")
    name = "connector.modality_projection"
    ops: tuple[Op, ...] = (
        linear(f"{name}.gate_proj", vision.hidden_size, inner, bias=False),
        linear(f"{name}.up_proj", vision.hidden_size, inner, bias=False),
        linear(f"{name}.down_proj", inner, text.hidden_size, bias=False),
    )
    return joined(text, "idefics", projected(vision, *ops, *perceiver(c)))


def perceiver(c: Config) -> tuple[Op, ...]:
    part = c.section("perceiver_config", required=False) or c.absent_section("perceiver_config")
    part = part.with_defaults(PERCEIVER)
    width, name = part.size("hidden_size"), "connector.perceiver_resampler"
    ops: tuple[Op, ...] = (table(f"{name}.latents", part.size("resampler_n_latents"), width),)
    for i in range(part.size("resampler_depth", largest=1024)):
        ops += perceiver_layer(part, f"{name}.layers.{i}", width)
    return (*ops, norm(f"{name}.norm", width))


def perceiver_layer(c: Config, name: str, width: int) -> tuple[Op, ...]:
    mixer = Attention(
        name=f"{name}.self_attn",
        hidden_size=width,
        heads=c.size("resampler_n_heads"),
        kv_heads=c.size("num_key_value_heads"),
        head_dim=c.size("resampler_head_dim"),
        causal=False,
    )
    return (
        norm(f"{name}.input_latents_norm", width),
        norm(f"{name}.input_context_norm", width),
        mixer,
        norm(f"{name}.post_attention_layernorm", width),
        MLP(name=f"{name}.mlp", hidden_size=width, intermediate_size=4 * width),
    )

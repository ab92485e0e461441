"""Llama 4 with its tower, and Llama 3.2 Vision (mllama), whose text attends to the image in layers of its own.

Structure: transformers 5.23, models/{llama4,mllama}.
"""

from msgspec.structs import replace

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import grid, joined, language_model, linear, projected, text_section, tower
from tonnage.architectures.towers_llama import MLLAMA
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.ops import Attention, Head, Op, Parameter

# The tower of meta-llama/Llama-4-Scout-17B-16E-Instruct and of Maverick, equal in both config.json files. Copies of
# these files without it are in use, and Llama4VisionConfig's defaults are those of no released model.
RELEASED = {
    "model_type": "llama4_vision_model",
    "hidden_size": 1408,
    "intermediate_size": 5632,
    "num_hidden_layers": 34,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
    "vision_output_dim": 4096,
}
ABSENT = "The config has no vision_config: the tower counted is that of the released Llama 4 models."
EXTRA_TOKENS = 8  # MllamaTextModel's embedding has rows for the image token; its head has not
MLLAMA_TEXT = {
    "vocab_size": 128_256, "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8, "max_position_embeddings": 131_072,
    "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
}  # fmt: skip


@architecture("Llama4ForConditionalGeneration", model_types=("llama4",))
def llama4(c: Config) -> Model:
    notes: tuple[str, ...] = ()
    if "vision_config" not in c:
        c.assumed["vision_config"] = RELEASED
        c, notes = c.with_fields({**c.fields, "vision_config": RELEASED}), (ABSENT,)
    text, vision = language_model(c, "llama4_text"), tower(c, "llama4_vision_model")
    inputs = c.section("vision_config").size("vision_output_dim", default=7680)
    projector = linear("multi_modal_projector.linear_1", inputs, text.hidden_size, bias=False)
    return joined(text, "llama4", projected(vision, projector), notes=notes)


@architecture("MllamaForConditionalGeneration", model_types=("mllama",))
def mllama(c: Config) -> Model:
    """The cross-attention layers keep one image's keys and values, whatever the length of the text.

    Their tokens do not grow with the text, so they are a state of the request and no cache of its tokens; further
    images add as much each.
    """
    part = c.section("vision_config").with_defaults(MLLAMA)
    tokens = part.size("max_num_tiles") * (grid(part) + 1)
    text, vision = mllama_text(text_section(c, "mllama_text_model"), tokens), tower(c, "mllama_vision_model")
    projector = linear("multi_modal_projector", part.size("vision_output_dim"), text.hidden_size)
    return joined(text, "mllama", projected(vision, projector))


@architecture("MllamaForCausalLM", model_types=("mllama_text_model",))
def mllama_alone(c: Config) -> Model:
    return mllama_text(c, None)


def mllama_text(c: Config, image_tokens: int | None) -> Model:
    """Llama 3.1 with gated cross-attention layers; `image_tokens`: of one image, None where there is none."""
    c = c.with_defaults(MLLAMA_TEXT)
    h, layers = c.size("hidden_size"), num_layers(c)
    crossed = c.layers("cross_attention_layers")
    if not all(0 <= layer < layers for layer in crossed):
        raise InvalidInput(
            "{where}: cross_attention_layers must be layers from 0 to {layers}. Got {crossed}.",
            where=c.where,
            layers=layers - 1,
            crossed=shown(sorted(crossed)),
        )
    blocks = [pre_norm("decoder layer", attention(c), mlp(c), h), cross_layer(c, image_tokens)]
    kinds = [1 if layer in crossed else 0 for layer in range(layers)]
    vocabulary, tied = c.size("vocab_size"), c.flag("tie_word_embeddings", default=False)
    after: tuple[Op, ...] = (Head(width=h, vocab_size=vocabulary, tied=tied),)
    branch = decoder(c, blocks, kinds, head=False, after=after, vocab_size=vocabulary + EXTRA_TOKENS)
    return replace(model(c, "mllama", branch, tied=tied), vocab_size=vocabulary)


def cross_layer(c: Config, image_tokens: int | None) -> Block:
    mixer: Attention = attention(c, name="cross_attn", qk_norm="head", causal=False, memory_tokens=image_tokens)
    gates = tuple(Parameter(name=name, elements=1) for name in ("cross_attn_attn_gate", "cross_attn_mlp_gate"))
    h = c.size("hidden_size")
    return Block(
        "cross-attention layer",
        (norm("input_layernorm", h), mixer, norm("post_attention_layernorm", h), mlp(c), *gates),
    )

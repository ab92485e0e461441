"""PaliGemma 1 and 2, ShieldGemma 2 and Gemma 3 with SigLIP, the towers of Gemma 3n and 4, and Gemma 4 12B without any.

Structure: transformers 5.24, models/{paligemma,gemma3,gemma3n,gemma4,gemma4_unified}. The language models are those of
gemma, gemma2, gemma3, gemma3n and gemma4.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch, Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import (
    joined,
    language_model,
    linear,
    projected,
    stack,
    table,
    tower,
    tower_if_any,
)
from tonnage.ops import Op

HARD_TOKENS = 128  # Gemma3nVisionConfig's and Gemma3nAudioConfig's vocab_size: delimiters with vectors of their own

PLAIN4 = {"hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0}  # what the unified class has none of
EYE4 = {"patch_size": 16, "pooling_kernel_size": 3, "mm_embed_dim": 3840, "mm_posemb_size": 1120}
EAR4 = {"audio_embed_dim": 640}


@architecture("PaliGemmaForConditionalGeneration", model_types=("paligemma",))
def paligemma(c: Config) -> Model:
    text, vision = language_model(c, "gemma"), tower(c, "siglip_vision_model")
    outputs = c.size("projection_dim", default=text.hidden_size)
    return joined(
        text, "paligemma", projected(vision, linear("multi_modal_projector.linear", vision.hidden_size, outputs))
    )


@architecture("Gemma3ForConditionalGeneration", model_types=("gemma3",))
def gemma3(c: Config) -> Model:
    """The patches are averaged to mm_tokens_per_image tokens, normalised and multiplied by one matrix."""
    text, vision = language_model(c, "gemma3_text"), tower(c, "siglip_vision_model")
    name, width = "multi_modal_projector", vision.hidden_size
    ops = (
        norm(f"{name}.mm_soft_emb_norm", width),
        linear(f"{name}.mm_input_projection", width, text.hidden_size, bias=False),
    )
    return joined(text, "gemma3", projected(vision, *ops))


@architecture("Gemma4ForConditionalGeneration", model_types=("gemma4",))
def gemma4(c: Config) -> Model:
    """Small sizes have an audio tower too; a null audio_config means that there is none."""
    text = language_model(c, "gemma4_text")
    vision, audio = tower_if_any(c, "gemma4_vision"), tower_if_any(c, "gemma4_audio", "audio_config")
    if vision is not None:
        vision = projected(
            vision, linear("embed_vision.embedding_projection", vision.hidden_size, text.hidden_size, bias=False)
        )
    if audio is not None:
        inputs = c.section("audio_config").size("output_proj_dims", default=1536)
        audio = projected(audio, linear("embed_audio.embedding_projection", inputs, text.hidden_size, bias=False))
    return joined(text, "gemma4", vision, audio)


@architecture("Gemma4UnifiedForConditionalGeneration", model_types=("gemma4_unified",))
def gemma4_unified(c: Config) -> Model:
    """Gemma 4 12B has no towers: a patch of 48 x 48 pixels, or 640 samples of sound, is one token after a matrix."""
    section = c.section("text_config")
    text = language_model(
        c.with_fields({**c.fields, "text_config": {**section.fields, "model_type": "gemma4_text", **PLAIN4}}), ""
    )
    part = (c.section("vision_config", required=False) or c.absent_section("vision_config")).with_defaults(EYE4)
    side = part.size("patch_size") * part.size("pooling_kernel_size")
    pixels, width, h = 3 * side**2, part.size("mm_embed_dim"), text.hidden_size
    eye = (
        norm("embed_vision.patch_ln1", pixels, "layer"),
        linear("embed_vision.patch_dense", pixels, width),
        norm("embed_vision.patch_ln2", width, "layer"),
        table("embed_vision.pos_embedding", 2 * part.size("mm_posemb_size"), width),
        norm("embed_vision.pos_norm", width, "layer"),
        linear("embed_vision.embedding_projection", width, h, bias=False),
    )
    heard = (c.section("audio_config", required=False) or c.absent_section("audio_config")).with_defaults(EAR4)
    samples = heard.size("audio_embed_dim")
    ear = (linear("embed_audio.embedding_projection", samples, h, bias=False),)
    return joined(
        text,
        "gemma4",
        stack("gemma 4 image embedder", width, (), (), eye),
        stack("gemma 4 sound embedder", samples, (), (), ear, kind="audio"),
    )


@architecture("Gemma3nForConditionalGeneration", model_types=("gemma3n",))
def gemma3n(c: Config) -> Model:
    text = language_model(c, "gemma3n_text")
    vision, audio = tower(c, "gemma3n_vision"), tower(c, "gemma3n_audio", "audio_config")
    return joined(
        text,
        "gemma3n",
        projected(vision, *embedder(c.section("vision_config"), "embed_vision", vision, text)),
        projected(audio, *embedder(c.section("audio_config"), "embed_audio", audio, text)),
    )


def embedder(c: Config, name: str, branch: Branch, text: Model) -> tuple[Op, ...]:
    """A small vocabulary of its own, norms for its tokens and for the tower's, and a matrix to the text's width."""
    width = branch.hidden_size
    return (
        table(f"{name}.embedding.weight", c.size("vocab_size", default=HARD_TOKENS), width),
        norm(f"{name}.hard_embedding_norm", width),
        norm(f"{name}.soft_embedding_norm", width),
        linear(f"{name}.embedding_projection", width, text.hidden_size, bias=False),
    )

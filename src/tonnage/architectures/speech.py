"""Language models that hear: Qwen3-ASR, GLM-ASR, Audio Flamingo 3, Ultravox, Kimi-Audio, Voxtral Realtime, Granite
Speech.

Structure: transformers 5.24, models/{qwen3_asr,glmasr,audioflamingo3,voxtral_realtime,granite_speech,blip_2}; Ultravox:
vllm-project/vllm vllm/model_executor/models/ultravox.py and vllm/transformers_utils/configs/ultravox.py; Kimi-Audio:
moonshotai/Kimi-Audio-7B-Instruct modeling_moonshot_kimia.py.
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._layers import stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, norm, num_layers
from tonnage.architectures._registry import MODEL_TYPES, TOWERS, architecture, find
from tonnage.architectures._towers import joined, language_model, linear, projected, table, tower_or
from tonnage.architectures.llava import two_layers
from tonnage.architectures.towers_whisper import LARGE, VOXTRAL
from tonnage.ops import Attention, Linear, Op

PROJECTOR = "multi_modal_projector"
REALTIME_TEXT = {
    "vocab_size": 131_072,
    "hidden_size": 3072,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 131_072,
    "sliding_window": 8192,
}
QFORMER = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "cross_attention_frequency": 2,
    "encoder_hidden_size": 1408,
}
DELAY_WIDTH = 32  # VoxtralRealtimeTextAdaRmsNorm's inner width
SPEAKS = "Only what writes text is counted: the layers and the head that write speech, and the vocoder, are not."
NO_ADAPTER = "The adapter that is switched on for sounds is loaded apart and is not counted."


@architecture("Qwen3ASRForConditionalGeneration", model_types=("qwen3_asr",))
def qwen3_asr(c: Config) -> Model:
    """Qwen's own files nest the sections in thinker_config, transformers' do not."""
    c = c.section("thinker_config", required=False) or c
    return joined(language_model(c, "qwen3"), "speech", tower_or(c, "qwen3_asr_encoder", "audio_config"))


@architecture("GlmAsrForConditionalGeneration", model_types=("glmasr",))
def glm_asr(c: Config) -> Model:
    """Four positions are merged to one token."""
    text, audio = language_model(c, "llama"), tower_or(c, "glmasr_encoder", "audio_config")
    inputs = _audio(c).with_defaults(VOXTRAL).size("intermediate_size")
    inner = 2 * text.hidden_size
    ops = linear(f"{PROJECTOR}.linear_1", inputs, inner), linear(f"{PROJECTOR}.linear_2", inner, text.hidden_size)
    return joined(text, "speech", projected(audio, *ops))


@architecture("AudioFlamingo3ForConditionalGeneration", model_types=("audioflamingo3",))
def audio_flamingo(c: Config) -> Model:
    text, audio = language_model(c, "qwen2"), tower_or(c, "audioflamingo3_encoder", "audio_config")
    bias = c.flag("projector_bias", default=True)
    ops = two_layers(PROJECTOR, audio.hidden_size, text.hidden_size, bias=bias)
    return joined(text, "speech", projected(audio, *ops))


@architecture("UltravoxModel", "UltravoxForConditionalGeneration", model_types=("ultravox",))
def ultravox(c: Config) -> Model:
    """Whisper's encoder, eight positions stacked to one token, two matrices with a product of halves between."""
    text, audio = language_model(c, "llama"), tower_or(c, "whisper", "audio_config")
    stacked = audio.hidden_size * c.size("stack_factor", default=8)
    inner = c.size("hidden_size", default=4096)
    middle = inner // 2 if (c.text("projector_act", default="swiglu")) == "swiglu" else inner
    normed_mid = c.flag("projector_ln_mid", default=False)
    ops: tuple[Op, ...] = (
        norm(f"{PROJECTOR}.ln_pre", stacked),
        linear(f"{PROJECTOR}.linear_1", stacked, inner, bias=False),
        linear(f"{PROJECTOR}.linear_2", middle, text.hidden_size, bias=False),
        norm(f"{PROJECTOR}.ln_mid", middle) if normed_mid else norm(f"{PROJECTOR}.ln_post", text.hidden_size),
    )
    return joined(text, "speech", projected(audio, *ops))


@architecture("MoonshotKimiaForCausalLM", model_types=("kimi_audio",))
def kimi_audio(c: Config) -> Model:
    """Kimi-Audio: Qwen2, to whose embeddings four stacked positions of Whisper's large encoder are added."""
    fields = {**c.fields, "model_type": "qwen2", "tie_word_embeddings": False}
    text = find(MODEL_TYPES, "qwen2")(c.with_fields(fields))
    audio, h = find(TOWERS, "whisper")(Config(LARGE, c.where)), text.hidden_size
    ops = (
        linear("vq_adaptor.layers.0", c.size("kimia_adaptor_input_dim", default=4 * audio.hidden_size), h),
        linear("vq_adaptor.layers.3", h, h),
        norm("vq_adaptor.layers.4", h, "layer"),
    )
    return joined(text, "speech", projected(audio, *ops), notes=(SPEAKS,))


@architecture("VoxtralRealtimeForConditionalGeneration", model_types=("voxtral_realtime",))
def voxtral_realtime(c: Config) -> Model:
    """The sound is added to the tokens' embeddings, a token for each 80 ms; the delay scales every layer's norm."""
    section = c.section("text_config", required=False) or c.absent_section("text_config")
    fields = {"tie_word_embeddings": c.flag("tie_word_embeddings", default=True), **section.fields}
    text = section.with_fields(fields).with_defaults(REALTIME_TEXT)
    language, audio = _realtime_text(text), tower_or(c, "voxtral_realtime_encoder", "audio_config")
    inputs = audio.hidden_size * c.size("downsample_factor", default=4)
    return joined(
        language, "speech", projected(audio, *two_layers(PROJECTOR, inputs, language.hidden_size, bias=False))
    )


def _realtime_text(c: Config) -> Model:
    h = c.size("hidden_size")
    delay = (
        Linear(name="ada_rms_norm.linear1", in_features=h, out_features=DELAY_WIDTH),
        Linear(name="ada_rms_norm.linear2", in_features=DELAY_WIDTH, out_features=h),
    )
    mixer = attention(c, window=c.size("sliding_window"))
    ops: tuple[Op, ...] = (norm("input_layernorm", h), mixer, norm("post_attention_layernorm", h), *delay, mlp(c))
    return stack(c, "speech", [0] * num_layers(c), lambda _: Block("decoder layer", ops), tied=True)


@architecture("GraniteSpeechForConditionalGeneration", model_types=("granite_speech",))
def granite_speech(c: Config) -> Model:
    """A query transformer makes window_size // downsample_rate tokens of each window of the encoder's positions."""
    text, audio = language_model(c, "granite"), tower_or(c, "granite_speech_encoder", "encoder_config")
    part = c.section("projector_config", required=False) or c.absent_section("projector_config")
    part = part.with_defaults(QFORMER)
    queries = c.size("window_size", default=15) // c.size("downsample_rate", default=5)
    width = part.size("hidden_size")
    ops: tuple[Op, ...] = (
        table("projector.query", queries, width),
        norm("projector.qformer.layernorm", width, "layer"),
    )
    for i in range(part.size("num_hidden_layers", largest=1024)):
        ops += _query_layer(part, f"projector.qformer.encoder.layer.{i}", i)
    ops += (linear("projector.linear", width, text.hidden_size),)
    notes = (NO_ADAPTER,) if c.flag("has_lora_adapter", default=True) else ()
    return joined(text, "speech", projected(audio, *ops), notes=notes)


def _query_layer(c: Config, name: str, index: int) -> tuple[Op, ...]:
    """Self-attention of the queries, cross-attention to the window in every n-th layer, a feed-forward."""
    width, heads, inner = c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    shape: dict[str, Any] = {"hidden_size": width, "heads": heads, "kv_heads": heads, "head_dim": width // heads}
    names = ("query", "key", "value", "dense")
    kinds: dict[str, int | None] = {"attention": None}
    if index % c.size("cross_attention_frequency") == 0:
        kinds["crossattention"] = c.size("encoder_hidden_size")
    ops: tuple[Op, ...] = ()
    for kind, memory in kinds.items():
        ops += (
            Attention(name=f"{name}.{kind}", bias=True, causal=False, memory_width=memory, names=names, **shape),
            norm(f"{name}.{kind}.output.LayerNorm", width, "layer"),
        )
    return (
        *ops,
        linear(f"{name}.intermediate_query.dense", width, inner),
        linear(f"{name}.output_query.dense", inner, width),
        norm(f"{name}.output_query.LayerNorm", width, "layer"),
    )


def _audio(c: Config) -> Config:
    return c.section("audio_config", required=False) or c.absent_section("audio_config")

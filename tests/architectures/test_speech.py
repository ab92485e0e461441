"""Language models that hear, beside those of the catalogue: forms of config that the catalogue does not have."""

import pytest

from architectures.seeing import of_kind, size
from tonnage.architectures import build
from tonnage.catalogue import toml_files
from tonnage.catalogue.models import load


def fields(name):
    return load(toml_files.HERE / "models" / f"{name}.toml").config


def test_ultravox_is_its_language_model_whispers_encoder_and_a_gated_projector():
    """vllm-project/vllm, vllm/model_executor/models/ultravox.py: 8 x 1280 -> 4096, halves multiplied, 2048 -> 4096."""
    made = build(fields("ultravox-v0-5-llama-3-1-8b"), "ultravox")
    turbo = build(fields("whisper-large-v3-turbo"), "whisper")
    projector = 10_240 + 10_240 * 4096 + 2048 + 2048 * 4096
    assert size(made.decoder) == 8_030_261_248  # Llama-3.1-8B
    assert size(of_kind(made, "audio")) == size(of_kind(turbo, "audio")) + projector


def test_before_version_0_5_the_norm_stands_behind_ultravoxs_projector():
    new = fields("ultravox-v0-5-llama-3-1-8b")
    old = {**new, "projector_ln_mid": False}
    assert build(old, "old").num_parameters() - build(new, "new").num_parameters() == 4096 - 2048


def test_qwen3_asr_is_read_from_qwens_own_form_too():
    flat = fields("qwen3-asr-1.7b")
    thinker = {key: value for key, value in flat.items() if key != "architectures"}
    nested = {"architectures": ["Qwen3ASRForConditionalGeneration"], "model_type": "qwen3_asr"}
    nested["thinker_config"] = thinker
    assert build(nested, "nested").num_parameters() == build(flat, "flat").num_parameters()


@pytest.mark.parametrize("name", ["granite-speech-3.3-8b", "granite-speech-3.3-2b"])
def test_granite_speech_says_that_its_adapter_is_not_counted(name):
    assert any("adapter" in note for note in build(fields(name), name).notes)


def test_the_query_transformer_makes_three_tokens_of_a_window_of_15():
    part = build(fields("granite-speech-3.3-8b"), "granite")
    queries = next(op for op in of_kind(part, "audio").after if op.name == "projector.query")
    assert queries.elements == 3 * 1024


def test_kimi_audio_without_what_writes_speech_is_the_hubs_count_less_six_layers_a_head_and_buffers():
    """The Hub's safetensors.total: 9,766,336,640, without Whisper's encoder."""
    made = build(fields("kimi-audio-7b-instruct"), "kimi")
    layer = 2 * 3584 * 3584 + 2 * 3584 * 512 + 3584 + 2 * 512 + 3 * 3584 * 18_944 + 2 * 3584
    adaptor = 5120 * 3584 + 3584 + 3584 * 3584 + 3584 + 2 * 3584
    speaks = 6 * layer + 168_448 * 3584 + 3584  # layers, head and norm
    buffers = 34 * 64
    assert size(made.decoder) + adaptor + speaks + buffers == 9_766_336_640

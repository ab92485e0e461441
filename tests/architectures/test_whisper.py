"""Whisper and the models that hear: exact counts, and what a request keeps of 30 seconds of sound."""

import pytest

from architectures.multimodal_more import HEARING
from architectures.seeing import misses, of_kind, read, size
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import StateCache, TokenCache

LARGE = "openai/whisper-large-v3"


def test_every_size_has_its_exact_count():
    assert misses(HEARING) == {}


def test_a_decoder_layer_keeps_a_token_of_text_and_the_whole_sound():
    caches = [cache for op in read(LARGE).decoder.blocks[0].ops for cache in op.caches()]
    text, sound = (next(cache for cache in caches if isinstance(cache, kind)) for kind in (TokenCache, StateCache))
    assert text.elements == 2 * 1280
    assert sound.elements == 2 * 1280 * 1500


def test_the_head_is_the_table():
    model = read(LARGE)
    assert model.tied
    assert model.num_embedding_parameters() == (51_866 + 448) * 1280


def test_the_encoder_is_the_audio_branch():
    assert size(of_kind(read(LARGE), "audio")) == 636_968_960


def test_an_omni_model_is_counted_by_its_thinker_and_says_so():
    name = "Qwen/Qwen2.5-Omni-7B thinker"
    whole = read(
        name, architectures=["Qwen2_5OmniModel"], model_type="qwen2_5_omni", thinker_config=HEARING[name].fields
    )
    assert whole.num_parameters() == HEARING[name].parameters
    assert any("thinker" in note for note in whole.notes)


def test_adapters_of_phi_4_multimodal_are_in_microsofts_checkpoint_and_not_in_transformers_class():
    both, alone = (
        read("microsoft/Phi-4-multimodal-instruct"),
        read("microsoft/Phi-4-multimodal-instruct in transformers"),
    )
    each = 3072 + 5120 + 3072 + 3072 + 3072 + 16_384 + 8192 + 3072
    assert both.num_parameters() - alone.num_parameters() == 32 * (256 + 320) * each


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(InvalidInput, match=r"decoder_attention_heads \(19\) must divide d_model \(1280\)"):
        read(LARGE, decoder_attention_heads=19)

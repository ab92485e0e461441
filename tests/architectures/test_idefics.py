"""Idefics 2 and 3 and SmolVLM: exact counts, and the perceiver."""

from architectures.multimodal_more import IDEFICS
from architectures.seeing import misses, of_kind, read, size


def test_every_size_has_its_exact_count():
    assert misses(IDEFICS) == {}


def test_a_perceiver_layer_more_adds_its_norms_attention_and_feed_forward():
    name = "HuggingFaceM4/idefics2-8b"
    deeper = read(name, perceiver_config={"model_type": "idefics2_perceiver", "resampler_depth": 4})
    layer = 3 * 4096 + 2 * 4096 * 1536 + 2 * 4096 * 384 + 3 * 4096 * 16_384
    assert size(of_kind(deeper, "vision")) - size(of_kind(read(name), "vision")) == layer

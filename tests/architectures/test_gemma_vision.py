"""PaliGemma and the multimodal Gemma 3, 3n and 4: exact counts, and what the checkpoints hold unused."""

import pytest

from architectures.multimodal_configs import GEMMA, gemma3n
from architectures.seeing import misses, of_kind, read, size
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput

BOUNDS = (
    16 * 7 * 4 + 12 * 10 * 4
)  # four of each clipped linear of the small Gemma 4's towers: buffers, which the Hub leaves out


def test_every_size_has_its_exact_count():
    assert misses(GEMMA) == {}


def test_gemma_3_4b_is_a_text_of_3_88_billion_and_a_tower_with_its_projector():
    model = read("google/gemma-3-4b-it")
    assert (
        size(model.decoder) == 3_880_263_168
    )  # keras-hub's gemma3_4b_text preset has the table 64 rows shorter: 3_880_099_328
    assert size(of_kind(model, "vision")) == 4_300_079_472 - 3_880_263_168


def test_a_table_of_positions_is_no_embedding_of_the_vocabulary():
    assert read("google/gemma-3-4b-it").num_embedding_parameters() == 262_208 * 2560


@pytest.mark.parametrize(
    ("name", "published", "sliding", "full", "hidden", "groups"),
    [
        ("google/gemma-4-E2B-it", 5_123_178_051, 16, 4, 1536, 1),
        ("google/gemma-4-E4B-it", 7_996_156_490, 15, 3, 2560, 2),
    ],
)
def test_small_gemma_4_checkpoints_also_hold_keys_and_values_of_layers_that_share(
    name, published, sliding, full, hidden, groups
):
    unused = sum(layers * (2 * hidden * groups * width + width) for layers, width in ((sliding, 256), (full, 512)))
    assert read(name).num_parameters() - BOUNDS + unused == published


def test_a_large_gemma_4_has_eyes_and_no_ears():
    assert [branch.kind for branch in read("google/gemma-4-26B-A4B").branches] == ["decoder", "vision"]


@pytest.mark.parametrize(
    ("published", "shared", "text"),
    [
        (7_849_978_192, 15, {}),
        (5_439_438_272, 10, {"num_hidden_layers": 30, "intermediate_size": 8192, "num_kv_shared_layers": 10}),
    ],
    ids=["E4B", "E2B"],
)
def test_gemma_3n_checkpoints_also_hold_keys_and_values_of_layers_that_share(published, shared, text):
    unused = shared * (2 * 2048 * 512 + 256)
    assert build(gemma3n(**text), "gemma-3n").num_parameters() + unused == published


def test_gemma_3n_has_an_eye_and_an_ear_each_with_a_small_vocabulary_of_its_own():
    model = build(gemma3n(), "google/gemma-3n-E4B-it")
    assert (
        size(of_kind(model, "vision")) == 294_126_912 + 128 * 2048 + 2 * 2048 + 2048 * 2048
    )  # MobileNetV5 as timm counts it, embedder
    assert size(of_kind(model, "audio")) == 681_348_640 + 128 * 1536 + 2 * 1536 + 1536 * 2048


def test_another_network_for_gemma_3n_is_refused():
    fields = {**gemma3n(), "vision_config": {"model_type": "gemma3n_vision", "architecture": "resnet50"}}
    with pytest.raises(InvalidInput, match=r"architecture must be one of mobilenetv5_300m_enc\. Got 'resnet50'"):
        build(fields, "other")

"""InternVL 2.5 and 3: exact counts of all seven released sizes, with both towers and both families of text."""

import pytest

from architectures.multimodal_more import INTERNVIT_300M, INTERNVL
from architectures.seeing import misses, read
from tonnage.kernel.errors import InvalidInput


def test_every_size_has_its_exact_count():
    assert misses(INTERNVL) == {}


def test_the_first_releases_names_and_transformers_names_are_the_same_model():
    assert read("OpenGVLab/InternVL2_5-1B").num_parameters() == read("OpenGVLab/InternVL3-1B-hf").num_parameters()


def test_an_unknown_norm_is_refused():
    with pytest.raises(InvalidInput, match=r"norm_type must be one of layer_norm, rms_norm\. Got 'batch_norm'"):
        read("OpenGVLab/InternVL2_5-1B", vision_config=INTERNVIT_300M | {"norm_type": "batch_norm"})

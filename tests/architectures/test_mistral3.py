"""Mistral Small 3.1, Devstral 2 and Pixtral 12B: exact counts."""

from architectures.multimodal_more import MISTRAL
from architectures.seeing import misses, read


def test_every_size_has_its_exact_count():
    assert misses(MISTRAL) == {}


def test_a_file_that_says_nothing_of_ties_is_untied_as_the_checkpoint_is():
    assert not read("mistralai/Mistral-Small-3.1-24B-Instruct-2503").tied

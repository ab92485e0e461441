"""GLM-4.1V and GLM-4.5V: exact counts."""

from architectures.multimodal_more import GLM
from architectures.seeing import misses, of_kind, read


def test_every_size_has_its_exact_count():
    assert misses(GLM) == {}


def test_the_towers_layers_are_as_wide_as_the_text_inside():
    tower = of_kind(read("zai-org/GLM-4.5V"), "vision")
    assert tower.blocks[0].ops[3].intermediate_size == 4096

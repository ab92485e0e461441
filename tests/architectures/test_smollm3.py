"""Count: the Hub's for SmolLM3-3B (3,075,098,624)."""

from architectures.reading import cache_bytes, model

NAME = "HuggingFaceTB/SmolLM3-3B"
KEYS = 2 * 4 * 128 * 2


def test_smollm3_has_the_published_parameters():
    assert model(NAME).num_parameters() == 3_075_098_624


def test_layers_without_positions_are_as_large_and_keep_as_much():
    assert cache_bytes(model(NAME), 65_536) == 36 * KEYS * 65_536
    assert model(NAME, no_rope_layers=[1] * 36).num_parameters() == 3_075_098_624


def test_layers_without_positions_slide_only_where_the_config_says_so():
    made = model(NAME, use_sliding_window=True, sliding_window=4096)
    assert cache_bytes(made, 65_536) == KEYS * (27 * 65_536 + 9 * 4096)


def test_the_head_is_the_table_also_where_the_config_does_not_say_so():
    assert model(NAME, tie_word_embeddings=None).num_parameters() == 3_075_098_624

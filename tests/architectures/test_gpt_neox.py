"""GPT-NeoX and Pythia: counts and what a token keeps."""

import pytest

from architectures.classic_configs import GPT_NEOX
from architectures.reading import cache_bytes
from tonnage.architectures import build


@pytest.mark.parametrize("name", GPT_NEOX)
def test_a_released_gpt_neox_counts_exactly(name: str):
    assert build(GPT_NEOX[name].fields, name).num_parameters() == GPT_NEOX[name].parameters


def test_a_token_keeps_keys_and_values_of_every_head():
    made = build(GPT_NEOX["EleutherAI/gpt-neox-20b"].fields, "gpt-neox-20b")
    assert cache_bytes(made, 1) == 44 * 2 * 6144 * 2
    assert made.context == 2048


def test_pythia_without_its_tables_has_the_count_of_the_paper():
    # Biderman2023, table 1: 6,444,163,072 non-embedding parameters
    made = build(GPT_NEOX["EleutherAI/pythia-6.9b"].fields, "pythia")
    assert made.num_parameters() - made.num_embedding_parameters() == 6_444_163_072

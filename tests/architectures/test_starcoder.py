"""StarCoder 1 and 2: counts, one key/value head, windows."""

import pytest

from architectures.classic_configs import STARCODER
from architectures.reading import cache_bytes
from tonnage.architectures import build


@pytest.mark.parametrize("name", STARCODER)
def test_a_released_starcoder_counts_exactly(name: str):
    assert build(STARCODER[name].fields, name).num_parameters() == STARCODER[name].parameters


def test_starcoder_keeps_one_head():
    assert cache_bytes(build(STARCODER["bigcode/starcoderbase"].fields, "starcoder"), 1) == 40 * 2 * 128 * 2


def test_starcoder2_keeps_no_more_than_its_window():
    made = build(STARCODER["bigcode/starcoder2-7b"].fields, "starcoder2")
    assert cache_bytes(made, 16384) == 32 * 2 * 4 * 128 * 2 * 4096

"""Counts: the Hub's for Mamba-Codestral (7,285,403,648), transformers' class for mamba2-2.7b."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Mamba2, StateCache

CODESTRAL = "mistralai/Mamba-Codestral-7B-v0.1"


@pytest.mark.parametrize(("name", "count"), [(CODESTRAL, 7_285_403_648), ("state-spaces/mamba2-2.7b", 2_702_599_680)])
def test_mamba_2_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


@pytest.mark.parametrize(("kind", "width"), [("float32", 4), (None, 2)])
def test_codestral_mamba_keeps_a_state_and_the_last_three_columns(kind: str | None, width: int):
    state = cache_bytes(model(CODESTRAL, mamba_ssm_cache_dtype=kind), 1, StateCache)
    assert state == 64 * (128 * 64 * 128 * width + (8192 + 2 * 8 * 128) * 3 * 2)


def test_b_and_c_are_cut_by_groups_and_the_rest_by_heads():
    mixer = next(op for op, _ in ops(model(CODESTRAL)) if isinstance(op, Mamba2))
    projection = [weight for weight in mixer.weights() if weight.name == "mixer.in_proj.weight"]
    assert [(weight.rows, weight.split, weight.heads) for weight in projection] == [
        (2 * 8192 + 128, "tensor", 0),
        (2 * 8 * 128, "kv", 8),
    ]
    assert [cache.heads for cache in mixer.caches()] == [128, 128, 8]


def test_heads_must_make_the_inner_size():
    with pytest.raises(
        InvalidInput, match=r"num_heads \(100\) \* head_dim \(64\) must be expand \* hidden_size \(8192\)"
    ):
        model(CODESTRAL, num_heads=100)

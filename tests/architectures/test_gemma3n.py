"""Counts: Gemma3nForCausalLM of transformers 5.23; the released checkpoints also hold unused k_proj, v_proj and
k_norm.
"""

import pytest

from architectures.reading import model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, Embedding


@pytest.mark.parametrize(
    ("name", "count"), [("google/gemma-3n-E2B text", 4_435_182_688), ("google/gemma-3n-E4B text", 6_835_235_568)]
)
def test_gemma_3n_has_the_parameters_of_the_class(name: str, count: int):
    assert model(name).num_parameters() == count


def test_the_last_layers_have_no_keys_of_their_own():
    mixers = [(op, count) for op, count in ops(model("google/gemma-3n-E4B text")) if isinstance(op, Attention)]
    assert sum(count for op, count in mixers if op.shares_cache) == 15
    assert all(
        not op.caches() and not any("k_proj" in weight.name for weight in op.weights())
        for op, _ in mixers
        if op.shares_cache
    )


def test_a_table_holds_an_embedding_for_every_layer():
    tables = [op for op in model("google/gemma-3n-E2B text").decoder.before if isinstance(op, Embedding)]
    assert [(table.num_embeddings, table.width) for table in tables] == [(262_400, 2048), (262_144, 30 * 256)]


def test_layers_may_have_feed_forwards_of_different_widths():
    same = model("google/gemma-3n-E2B text").num_parameters()
    wider = model("google/gemma-3n-E2B text", intermediate_size=[8192] * 29 + [16_384]).num_parameters()
    assert wider - same == 3 * 2048 * 8192


def test_widths_that_are_no_numbers_are_refused():
    with pytest.raises(InvalidInput, match="intermediate_size"):
        model("google/gemma-3n-E2B text", intermediate_size=[8192] * 29 + ["wide"])


def test_not_all_layers_can_read_another_layers_cache():
    with pytest.raises(InvalidInput, match="num_kv_shared_layers"):
        model("google/gemma-3n-E2B text", num_kv_shared_layers=30)

"""Counts: transformers' classes with the configs of Zamba2 1.2B, 2.7B, 7B and of Zamba 7B."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Reused, StateCache

ONE = "Zyphra/Zamba2-1.2B"
THREE = "Zyphra/Zamba2-2.7B"
SEVEN = "Zyphra/Zamba2-7B"


@pytest.mark.parametrize(
    ("name", "count"),
    [(ONE, 1_215_064_704), (THREE, 2_662_214_560), (SEVEN, 7_356_749_648), ("Zyphra/Zamba-7B-v1", 7_232_490_496)],
)
def test_zamba_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_a_shared_block_is_stored_once_and_keeps_keys_wherever_it_runs():
    made = model(SEVEN)
    assert cache_bytes(made, 4096) == 13 * 2 * 32 * 224 * 2 * 4096
    assert cache_bytes(made, 4096, StateCache) == 81 * (7168 * 64 + (7168 + 2 * 2 * 64) * 3) * 2


def test_the_shared_block_is_reused_but_not_the_adapters():
    again = [op for op, count in ops(model(ONE)) if isinstance(op, Reused)]
    assert len(again) == 5
    adapters = [
        (weight.num_parameters, count)
        for op, count in ops(model(ONE))
        for weight in op.weights()
        if "adapter" in weight.name
    ]
    assert sum(count for _, count in adapters) == 6 * 8


def test_the_model_has_as_many_shared_blocks_as_the_config_says():
    one, two = (model(SEVEN, num_mem_blocks=blocks).num_parameters() for blocks in (1, 2))
    block = 4 * 7168 * 32 * 224 - 7168 * (7168 - 3584) + 3 * 3584 * 14_336 + 7168 + 3584
    assert two - one == block


def test_zyphras_first_names_of_the_fields_are_read_too():
    fields = {
        "architectures": ["Zamba2ForCausalLM"],
        "hidden_size": 3584,
        "ffn_hidden_size": 14_336,
        "num_hidden_layers": 81,
        "num_attention_heads": 32,
        "num_query_groups": 32,
        "vocab_size": 32_000,
        "state_size": 64,
        "conv_dimension": 4,
        "expansion_factor": 2,
        "mamba_headdim": 64,
        "mamba_ngroups": 2,
        "num_mem_blocks": 2,
        "lora_rank": 128,
        "layers_block_type": ["g" if i == 6 or (i >= 11 and (i - 11) % 6 == 0) else "m" for i in range(81)],
    }
    assert build(fields, "zamba2").num_parameters() == 7_356_749_648


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers_block_type": ["mamba"] * 80}, "layers_block_type must have 81 items, one a layer. Got 80"),
        ({"layers_block_type": ["mamba"] * 80 + ["moe"]}, "layers_block_type may hold .*Got 'moe'"),
        ({"n_mamba_heads": 100}, r"n_mamba_heads \(100\) must divide mamba_expand \* hidden_size \(7168\)"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(changes: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        model(SEVEN, **changes)

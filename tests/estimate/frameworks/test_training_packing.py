"""Sequences packed into rows: nothing for a kernel that is told where they begin, a mask of the rows joined for one
that is not.
"""

import pytest

import tonnage
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.units import GIB

S = 4096
PAIRS = S * S
LAYERS = 16


def tensors(machine="H100-SXM-80GB", **options):
    """Bytes of the fullest moment, without what the allocator keeps beside them."""
    made = tonnage.train("llama-3.2-1b", machine, **({"sequence_length": S, "precision": "bf16"} | options))
    return max(
        sum(float(part.value) for part in phase.children if part.name != "runtime overhead") for phase in made.phases
    )


def more(**options):
    """What packing adds."""
    return tensors(packing=True, **options) - tensors(**options)


def test_a_kernel_that_takes_the_lengths_of_sequences_holds_nothing_more():
    assert more(runtime="transformers", attention="flash") == 0


def test_without_such_a_kernel_every_layer_keeps_the_mask_in_16_bit_and_heads_that_were_shared():
    shown = (
        2 * (2048 - 512) * 2 * S
    )  # keys and values of a layer, which kernels take shared where there is no mask (use_gqa_in_sdpa)
    assert more(runtime="transformers", attention="sdpa") == pytest.approx(LAYERS * (2 * PAIRS + shown))


def test_the_rows_of_a_micro_batch_are_one_so_the_mask_grows_with_its_square():
    first, second = (more(runtime="transformers", attention="sdpa", micro_batch_size=count) for count in (1, 2))
    assert second - 2 * first == pytest.approx(LAYERS * 2 * 2 * PAIRS, rel=0.001)


def test_layers_that_run_again_keep_one_mask_of_a_byte_a_pair_between_them():
    kept = more(runtime="transformers", attention="sdpa", recompute="full", micro_batch_size=4)
    positions = 2 * 64 * 2 * 3 * S  # cosines and sines of four rows joined, in 16 bit, not of one
    assert kept == pytest.approx(16 * PAIRS + positions)


def test_torchtunes_mask_is_one_of_blocks_and_its_positions_are_picked_for_each_layer():
    positions = LAYERS * 2 * 64 * 4 * S
    blocks = 16 * PAIRS / 128**2 + 8 * S
    assert more(runtime="torchtune") == pytest.approx(positions + blocks)
    assert more(runtime="torchtune", compile=True) == pytest.approx(blocks)


@pytest.mark.parametrize("runtime", ["megatron", "nanotron", "unsloth", "litgpt"])
def test_runtimes_whose_packing_nobody_read_refuse_it_and_name_those_that_have_it(runtime):
    with pytest.raises(InvalidPlan, match=r"transformers, ddp, deepspeed, torchtune"):
        tensors(runtime=runtime, packing=True)
    assert tensors(runtime=runtime, packing=False) > GIB


def test_packing_goes_with_the_code_of_the_layers_not_with_the_runtime():
    assert tensors("8xH100-SXM-80GB", runtime="fsdp2", model_code="transformers", packing=True) > 0
    with pytest.raises(InvalidPlan, match="that of torchtitan on fsdp2"):
        tensors("8xH100-SXM-80GB", runtime="fsdp2", packing=True)


def test_packing_is_of_plain_texts_on_whole_sequences():
    with pytest.raises(InvalidPlan, match="objective sft"):
        tensors(objective="grpo", packing=True)
    with pytest.raises(InvalidPlan, match="context_parallel_size 1"):
        tensors("8xH100-SXM-80GB", runtime="fsdp2", model_code="transformers", context_parallel_size=2, packing=True)

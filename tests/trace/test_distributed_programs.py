"""FSDP2 and tensor parallelism, rank by rank, against bytes counted by hand from the weights' shapes."""

from functools import cache

import pytest
import torch
import torch.distributed as dist
from distributed_programs import ENDS, LAYER, LLAMA, PROFILE, SHAPES, elements, live, own, padded

from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.trace.distributed import Distributed
from tonnage.trace.profiles import profile
from tonnage.trace.record.distributed import distributed

SMALL = {"sequence_length": 32, "steps": 2}


def run(kind, config=LLAMA, **options):
    return distributed(config, Distributed(kind=kind, **{**SMALL, **options}), PROFILE)


@cache
def sharded(rank, ranks, **options):
    return run("fsdp2", world_size=ranks, rank=rank, **options).events


@pytest.mark.parametrize(("ranks", "rank"), [(2, 0), (8, 5), (5, 0), (5, 4), (48, 47)])
def test_fsdp2_keeps_padded_shares_of_weights_and_gradients_and_true_shares_of_states(ranks, rank):
    events = sharded(rank, ranks)
    assert live(events, "Initial", "parameter") == sum(4 * padded(shape, ranks) for shape in SHAPES)
    assert live(events, "After backward", "gradient") == sum(4 * padded(shape, ranks) for shape in SHAPES)
    assert live(events, "After optimizer step", "optimizer") == sum(8 * own(shape, ranks, rank) for shape in SHAPES)


def test_states_of_all_ranks_together_are_those_of_the_whole_model():
    states = [live(sharded(rank, 5, steps=1), "After optimizer step", "optimizer") for rank in range(5)]
    assert len(set(states)) > 1  # shares are uneven
    assert sum(states) == sum(8 * elements(shape) for shape in SHAPES)


def test_weights_of_all_ranks_together_are_the_whole_model_where_ranks_divide_it():
    weights = [live(sharded(rank, 4, steps=1), "Initial", "parameter") for rank in range(4)]
    assert sum(weights) == sum(4 * elements(shape) for shape in SHAPES)


def test_a_unit_is_gathered_into_one_buffer_on_a_stream_of_its_own():
    made = [(each.bytes, each.stream) for each in sharded(0, 8).allocations]
    for unit in (ENDS, LAYER):
        size = 2 * sum(8 * padded(shape, 8) for shape in unit)
        assert {stream for bytes_, stream in made if bytes_ == size} - {0}


def test_a_units_gradients_are_reduced_from_one_buffer_of_their_dtype():
    for name, width in (("fp32", 4), ("bf16", 2)):
        reduced = {each.bytes for each in sharded(0, 8, reduce_dtype=name).allocations}
        assert width * sum(8 * padded(shape, 8) for shape in LAYER) in reduced


def test_unsharded_layers_stay_after_forward_unless_resharded():
    kept, freed = sharded(0, 8, reshard_after_forward=False), sharded(0, 8)
    layers = 2 * 3 * sum(elements(shape) for shape in LAYER)

    def after_forward(events):
        return sum(live(events, "After forward", each) for each in ("activation", "temporary", "buffer", "parameter"))

    assert after_forward(kept) - after_forward(freed) == layers


def test_a_thousand_ranks_take_as_many_events_as_four():
    counts = {ranks: len(sharded(0, ranks, steps=1)) for ranks in (4, 64, 1024)}
    assert len(set(counts.values())) == 1, counts
    widths = {
        ranks: len(run("tp+fsdp2", world_size=ranks, tensor_parallel_size=2, steps=1).events) for ranks in (4, 1024)
    }
    assert len(set(widths.values())) == 1, widths


def test_the_same_program_has_the_same_events_and_streams_each_time():
    first, second = (run("fsdp2", world_size=8, rank=3).events for _ in range(2))
    assert list(first.sequence()) == list(second.sequence())
    assert [each.stream for each in first.allocations] == [each.stream for each in second.allocations]


def test_a_rank_does_not_inherit_what_dtensor_learned_on_another():
    fresh = run("tp+fsdp2", world_size=8, tensor_parallel_size=2, rank=7).events
    run("tp+fsdp2", world_size=8, tensor_parallel_size=2, rank=0)
    assert list(run("tp+fsdp2", world_size=8, tensor_parallel_size=2, rank=7).events.sequence()) == list(
        fresh.sequence()
    )


def test_tied_tables_are_one_weight():
    tied = {**LLAMA, "tie_word_embeddings": True}
    whole = sum(elements(shape) for shape in SHAPES) - 136 * 64
    assert live(run("fsdp2", tied, world_size=4).events, "Initial", "parameter") == whole
    rest = 3 * (2 * 64) + 64
    assert live(run("tp", tied, world_size=2).events, "Initial", "parameter") == 4 * ((whole - rest) // 2 + rest)


@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_tensor_parallel_ranks_share_matrices_and_copy_norms(sequence_parallel):
    norms = sum(elements(shape) for shape in SHAPES if len(shape) == 1)
    matrices = sum(elements(shape) for shape in SHAPES if len(shape) == 2)
    events = run("tp", world_size=2, rank=1, sequence_parallel=sequence_parallel).events
    assert live(events, "Initial", "parameter") == 4 * (matrices // 2 + norms)
    assert live(events, "After optimizer step", "optimizer") == 8 * (matrices // 2 + norms)
    # The table's gradient is whole on every rank until the optimizer reduces it: its placement is partial.
    assert live(events, "After backward", "gradient") == 4 * (matrices // 2 + norms + 136 * 64 // 2)


def test_tensor_parallel_ranks_are_sharded_further_on_a_mesh_of_two_dimensions():
    events = run("tp+fsdp2", world_size=8, tensor_parallel_size=2, rank=3).events
    # Columns share a weight's rows among tensor ranks before FSDP2 shares them, rows its columns; either way it divides
    # here.
    norms = sum(padded(shape, 4) for shape in SHAPES if len(shape) == 1)
    matrices = sum(elements(shape) for shape in SHAPES if len(shape) == 2)
    assert live(events, "Initial", "parameter") == 4 * (matrices // 8 + norms)


def test_sequence_parallel_ranks_keep_less_of_what_lies_between_blocks():
    whole, shared = (
        run("tp", world_size=2, sequence_parallel=each, sequence_length=128).events for each in (False, True)
    )
    assert live(shared, "After forward", "activation") < live(whole, "After forward", "activation")


def test_recomputation_keeps_less_and_ends_the_same():
    plain, full = sharded(0, 8), sharded(0, 8, recompute="full")
    assert live(full, "After forward", "activation") < live(plain, "After forward", "activation")
    for stage, category in (("After backward", "gradient"), ("After optimizer step", "optimizer")):
        assert live(full, stage, category) == live(plain, stage, category)


@pytest.mark.parametrize(
    ("changed", "ranks", "said"),
    [
        ({}, 8, "must divide num_attention_heads 4. Got 8"),
        ({}, 4, "must divide num_key_value_heads 2. Got 4"),
        ({"vocab_size": 135}, 2, "vocab_size 135"),
    ],
)
def test_tensor_parallelism_that_does_not_divide_is_refused(changed, ranks, said):
    with pytest.raises(InvalidPlan, match=said):
        run("tp", {**LLAMA, **changed}, world_size=ranks)
    assert not dist.is_initialized()


def test_a_model_without_a_plan_of_tensor_parallelism_is_refused():
    gpt2 = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 32,
        "n_layer": 1,
        "n_head": 2,
        "vocab_size": 64,
    }
    with pytest.raises(MissingDatum, match="no plan of tensor parallelism for GPT2LMHeadModel"):
        run("tp", gpt2, world_size=2)


def test_fsdp2_is_refused_for_a_pytorch_that_had_none():
    with pytest.raises(InvalidPlan, match=r"FSDP2 came with torch 2\.4\. Got the profile torch-2.0-a100"):
        distributed(LLAMA, Distributed(world_size=2), profile("torch-2.0-a100"))


def test_nothing_stays_behind_after_an_error():
    before = (
        dist.init_process_group,
        dist.Reducer,
        torch.cuda.Stream,
        dist.device_mesh.DeviceMesh.__init__,
        torch.UntypedStorage.resize_,
    )

    def broken(_):
        raise RuntimeError("no such optimizer")

    with pytest.raises(RuntimeError, match="no such optimizer"):
        distributed(LLAMA, Distributed(world_size=4, **SMALL), PROFILE, broken)
    after = (
        dist.init_process_group,
        dist.Reducer,
        torch.cuda.Stream,
        dist.device_mesh.DeviceMesh.__init__,
        torch.UntypedStorage.resize_,
    )
    assert after == before
    assert not dist.is_initialized()


def test_sequence_parallelism_is_refused_for_layers_that_are_not_llamas():
    gemma = {**LLAMA, "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "head_dim": 16}
    with pytest.raises(MissingDatum, match=r"Gemma3ForCausalLM has model\.layers\.0\.\w+_feedforward_layernorm"):
        run("tp", gemma, world_size=2, sequence_parallel=True)


def test_norms_inside_attention_are_copied_to_all_tensor_parallel_ranks():
    qwen = {**LLAMA, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 16}
    for sequence_parallel in (False, True):
        more = live(run("tp", qwen, world_size=2, sequence_parallel=sequence_parallel).events, "Initial", "parameter")
        assert more - live(run("tp", world_size=2).events, "Initial", "parameter") == 3 * 2 * 16 * 4

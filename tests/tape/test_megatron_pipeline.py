"""Stages, passes in flight, buffers and states of Megatron-core."""

import pytest

from tape.megatron_rank import Run, setting_of
from tonnage.kernel.errors import InvalidPlan
from tonnage.runtimes.parts.megatron import buffers, pipeline
from tonnage.runtimes.parts.megatron.pipeline import offloadable
from tonnage.runtimes.parts.megatron.states import MegatronStates
from tonnage.tape.megatron import Shape

MIB = 2**20
LLAMA = Run(model="llama-3.1-70b", layers=1)


def test_one_forward_one_backward_holds_as_many_microbatches_as_stages_follow():
    assert [pipeline.chunks_in_flight(rank, 4, 8) for rank in range(4)] == [4, 3, 2, 1]
    assert pipeline.chunks_in_flight(0, 4, 2) == 2


def test_interleaving_holds_a_part_of_a_pass_more():
    assert pipeline.chunks_in_flight(0, 8, 64, virtual=3) == 14 + 2 * 8 + 1
    assert pipeline.passes_in_flight(0, 4, 64, virtual=2) == (7, 4)


def test_the_schedule_names_shards_of_the_stream_that_are_done_with():
    assert pipeline.stale(0, 1) == pipeline.Stale(0, 0)
    assert [pipeline.stale(rank, 3) for rank in range(3)] == [
        pipeline.Stale(1, 0),
        pipeline.Stale(3, 1),
        pipeline.Stale(2, 1),
    ]


def test_layers_of_the_first_and_last_stage_can_be_fixed():
    assert [row[0].layers for row in pipeline.even_layout(60, 4, first=13, last=15)] == [13, 16, 16, 15]
    assert [row[0].layers for row in pipeline.even_layout(30, 4, with_embedding=True, with_loss=True)] == [7, 8, 8, 7]


def test_layers_that_do_not_divide_are_refused():
    with pytest.raises(InvalidPlan, match="evenly"):
        pipeline.even_layout(61, 4)


def test_a_layout_says_what_each_virtual_stage_runs():
    rows = pipeline.parsed_layout("Et*3|(tt|)*29,m|L", 16)
    assert len(rows) == 16
    assert rows[0] == (pipeline.Chunk(0, 3, embedding=True), pipeline.Chunk(33, 2))
    assert rows[15][1] == pipeline.Chunk(61, 0, loss=True)
    assert rows[14][1] == pipeline.Chunk(61, 0, draft_layers=1)
    assert sum(chunk.layers for row in rows for chunk in row) == 61


def test_a_layout_with_other_letters_is_refused():
    with pytest.raises(InvalidPlan, match="layout"):
        pipeline.parsed_layout("Exx|L", 2)


def test_the_vocabulary_is_padded_for_every_tensor_rank():
    assert buffers.padded_vocabulary(128256, 8) == 129024
    assert buffers.padded_vocabulary(128256, 1) == 128256
    assert buffers.padded_vocabulary(128256, 1, null_tokenizer=True) == 128384


def test_one_dummy_gradient_serves_all_weights_of_a_shape():
    shapes = [Shape(4096, 1024, "rows"), Shape(1024, 2048, "columns"), Shape(2048, 1024)]
    setting = setting_of(LLAMA)
    assert buffers.dummy_weight_gradients(shapes, setting, 2) == 2 * (2048 * 1024 + 1024 * 1024)
    assert buffers.dummy_weight_gradients(shapes, setting_of(LLAMA, gradient_accumulation_fusion=False), 2) == 0
    assert buffers.dummy_weight_gradients(shapes, setting_of(LLAMA, engine=(2, 2)), 1) == 2 * 4096 * 1024


def test_workspaces_follow_the_accelerator_and_the_release():
    setting = setting_of(LLAMA)
    assert buffers.matmul_workspace(90, setting, has_experts=False) == 32 * MIB + 1024
    assert buffers.matmul_workspace(80, setting_of(LLAMA, engine=(2, 7)), has_experts=True) == 5 * 4 * MIB
    assert buffers.torch_workspace(100, blackwell_is_large=False) == 2 * 8.125 * MIB
    assert buffers.multiplies_in_torch(setting_of(LLAMA, core=(0, 14)), is_last=False, has_experts=True)
    assert not buffers.multiplies_in_torch(setting, is_last=False, has_experts=True)


def test_states_take_18_bytes_or_what_their_types_say():
    plain = MegatronStates()
    assert (plain.weight_bytes, plain.gradient_bytes, plain.sharded_bytes) == (2, 4, 12)
    aware = MegatronStates(precision_aware=True, main_grads="bf16", exp_avg="bf16", exp_avg_sq="bf16")
    assert (aware.gradient_bytes, aware.sharded_bytes, aware.step_bytes) == (2, 6, 8)
    assert MegatronStates(offload_fraction=1).sharded_bytes == 0
    assert plain.shards(4, 2, 2, 8) == (8, 2)


def test_modules_send_away_what_they_keep():
    from tape.megatron_rank import model_of

    block = model_of("deepseek-v2").decoder.blocks[1]
    assert sum(size for size, _ in offloadable(block, ("core_attn", "attn_proj"))) == 128 * (192 + 192 + 128 + 128)
    assert [size for size, _ in offloadable(block, ("expert_fc1", "moe_act"))] == [5120, 3072]

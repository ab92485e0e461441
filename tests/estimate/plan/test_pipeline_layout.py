"""Chunks of an interleaved pipeline that are not alike: as Megatron's options and torchtitan's loops make them."""

import numpy as np
import pytest

import tonnage
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import bytes_and_seconds
from tonnage.estimate.step.rank import stages
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read
from tonnage.spec import TrainingPlan

ENDS = {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}


def planned(model: str, on: str, **options: object):
    options = {"runtime": "megatron", **options}
    return training_plan(
        read(model, offline=True), tonnage.catalogue.cluster(on), TrainingOptions(**options), Question()
    )  # type: ignore[arg-type]


def held(model: str, on: str, **options: object) -> list[int]:
    """Layers of each rank."""
    made = Step(read(model, offline=True), planned(model, on, **options), tonnage.catalogue.cluster(on))
    return [sum(count for block, count in stage.layers if "norm" not in block.name) for stage in made.stages]


def test_embedding_and_loss_count_as_a_layer_each():
    plan = planned("llama-3.1-405b", "8x8xh100", pipeline_parallel_size=8, virtual_pipeline_size=8, **ENDS)
    assert plan.layout.chunk_layers == (1, *[2] * 62, 1)
    found = held("llama-3.1-405b", "8x8xh100", pipeline_parallel_size=8, virtual_pipeline_size=8, **ENDS)
    assert found == [15, *[16] * 6, 15]


def test_a_rank_has_every_pth_chunk_of_a_layout_and_of_each_kind_of_layer_those_that_fall_there():
    layout = "Et|(tt|)*30L"
    options = {"pipeline_parallel_size": 8, "virtual_pipeline_size": 4, "pipeline_layout": layout}
    plan = planned("deepseek-v3", "128x8xh100", **options)
    assert plan.layout.chunk_layers == (1, *[2] * 30, 0)
    step = Step(read("deepseek-v3", offline=True), plan, tonnage.catalogue.cluster("128x8xh100"))
    assert [sum(count for _, count in stage.layers) for stage in step.stages] == [7, *[8] * 6, 6]
    # the first three layers are dense: one on the first rank, two on the second
    assert [len(stage.layers) for stage in step.stages] == [2, 2, 1, 1, 1, 1, 1, 1]
    assert step.stages[0].order[0] is not step.stages[0].order[1]


def kinds(model: str, on: str, **options: object) -> list[dict[str, int]]:
    """Layers of each rank by kind."""
    made = Step(read(model, offline=True), planned(model, on, **options), tonnage.catalogue.cluster(on))
    return [{block.name: count for block, count in stage.layers} for stage in made.stages]


def test_chunks_of_an_even_split_are_dealt_round_so_that_first_layers_of_another_kind_stand_on_several_ranks():
    """Megatron-core, transformer_layer.py, get_transformer_layer_offset: chunk c of rank r begins at (c p + r)
    layers of a chunk.
    """
    # of 92 layers the first three are dense
    found = kinds("glm-4.5", "4x8xh100", pipeline_parallel_size=4, virtual_pipeline_size=23, expert_parallel_size=8)
    assert found == [{"dense layer": 1, "sparse layer": 22}] * 3 + [{"sparse layer": 23}]
    whole = kinds("glm-4.5", "4x8xh100", pipeline_parallel_size=4, expert_parallel_size=8)
    assert whole == [{"dense layer": 3, "sparse layer": 20}] + [{"sparse layer": 23}] * 3


@pytest.mark.parametrize(
    ("model", "virtual", "layout"),
    [("glm-4.5", 23, "E(t|)*91tL"), ("jamba-1.5-mini", 2, "E(tttt|)*7ttttL")],
    ids=["first layers dense", "hybrid"],
)
def test_an_even_split_takes_the_memory_and_the_time_of_the_layout_that_says_the_same(model, virtual, layout):
    common = {"runtime": "megatron", "pipeline_parallel_size": 4, "virtual_pipeline_size": virtual}
    even, said = (tonnage.train(model, "4x8xh100", **common, **more) for more in ({}, {"pipeline_layout": layout}))
    assert even.memory.value == said.memory.value
    assert even.step_time.value == said.step_time.value
    assert [rank.value for rank in even.ranks] == [rank.value for rank in said.ranks]


@pytest.mark.parametrize("model", ["glm-4.5", "jamba-1.5-mini"])
def test_columns_of_plans_deal_chunks_as_one_plan_does(model):
    where = tonnage.catalogue.cluster("4x8xh100")
    virtual = {"glm-4.5": 23, "jamba-1.5-mini": 8}[model]
    columns = {
        "virtual_pipeline_size": np.array([1, virtual]),
        "pipeline_parallel_size": 4,
        "data_parallel_size": 8,
        "num_microbatches": 8,
        "sequence_length": 4096,
    }
    names = {"runtime": "megatron", "zero_stage": 1}
    needed, taken = bytes_and_seconds(read(model, offline=True), columns, where, **names)
    for index, chunks in enumerate((1, virtual)):
        one = {**columns, "virtual_pipeline_size": chunks}
        plan = TrainingPlan.of_fields(**one, **names)
        made = Step(read(model, offline=True), plan, where)
        assert needed[index] == pytest.approx(made.walk().needed, rel=1e-12)
        assert taken[index] == pytest.approx(Timing(made.model, plan, where).seconds, rel=1e-12)
    assert taken[0] != taken[1]


def test_layers_of_the_first_and_the_last_rank_are_those_of_all_its_chunks():
    """Megatron-core, transformer_block.py: get_num_layers_to_build."""
    ends = {"pipeline_parallel_size": 3, "virtual_pipeline_size": 2, "first_stage_layers": 10, "last_stage_layers": 10}
    assert planned("llama-3.1-8b", "6xh100", **ends).layout.chunk_layers == (5, 6, 5, 5, 6, 5)
    assert held("llama-3.1-8b", "6xh100", **ends) == [10, 12, 10]


def test_torchtitans_looped_stages_are_split_as_if_each_were_a_rank():
    options = {"runtime": "fsdp2", "pipeline_parallel_size": 8, "virtual_pipeline_size": 2, "tensor_parallel_size": 8}
    plan = planned("llama-3.1-405b", "64x8xh100", **options)
    step = Step(read("llama-3.1-405b", offline=True), plan, tonnage.catalogue.cluster("64x8xh100"))
    # sixteen chunks of eight, table and head count as a layer each
    assert [len(stage.order) for stage in step.stages] == [7 + 8, *[8 + 8] * 6, 8 + 7]
    assert [stage.first_layer for stage in step.stages] == [0, 7, 15, 23, 31, 39, 47, 55]


def test_chunks_are_dealt_round_or_in_a_v():
    model, chunks = read("llama-3.2-1b", offline=True), (1, 2, 4, 0, 3, 6)
    looped, in_v = stages(model, 3, chunks), stages(model, 3, chunks, v_shaped=True)
    assert [len(stage.order) for stage in looped] == [1 + 0, 2 + 3, 4 + 6]
    assert [len(stage.order) for stage in in_v] == [1 + 6, 2 + 3, 4 + 0]
    assert [(bool(stage.before), bool(stage.after)) for stage in looped] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert [(bool(stage.before), bool(stage.after)) for stage in in_v] == [(True, True), (False, False), (False, False)]


def test_what_a_stage_needs_is_that_of_the_sum_of_its_chunks():
    """Splits whose ranks come out alike need the same, however they are said."""
    common = {
        "pipeline_parallel_size": 4,
        "virtual_pipeline_size": 2,
        "tensor_parallel_size": 8,
        "runtime": "megatron",
        "micro_batch_size": 1,
    }
    even = tonnage.train("llama-3.1-8b", "4x8xh100", **common)
    said = tonnage.train("llama-3.1-8b", "4x8xh100", **common, pipeline_layout="E(tttt|)*7ttttL")
    assert float(even.memory.value) == float(said.memory.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pipeline_layout": "Et|tL", "pipeline_parallel_size": 2}, "must have the 32 layers"),
        (
            {"pipeline_layout": "E(tttttttt|)*3ttttttttL", "pipeline_parallel_size": 2},
            "virtual_pipeline_size must be 2",
        ),
        ({"pipeline_layout": "Et*16|t*16L"}, "pipeline_parallel_size must be above 1"),
        ({"pipeline_layout": "t*16|t*16L", "pipeline_parallel_size": 2}, "begin with the embedding"),
        ({"pipeline_layout": "Et*16m|t*16L", "pipeline_parallel_size": 2}, "an m for each"),
        ({"pipeline_layout": "Et*16|t*16L", "pipeline_parallel_size": 2, "runtime": "fsdp2"}, "has no pipeline_layout"),
        ({"pipeline_layout": "Et*999999999|t*16L", "pipeline_parallel_size": 2}, "at most"),
        ({"virtual_pipeline_size": 3, "pipeline_parallel_size": 4}, "must divide"),
        ({"account_for_loss_in_pipeline_split": True, "pipeline_parallel_size": 2}, "cannot be split"),
        (
            {"first_stage_layers": 7, "virtual_pipeline_size": 2, "pipeline_parallel_size": 4},
            "25 layers cannot be split evenly over 3",
        ),
        (
            {"first_stage_layers": 5, "last_stage_layers": 3, "virtual_pipeline_size": 2, "pipeline_parallel_size": 4},
            "a multiple of virtual_pipeline_size 2",
        ),
    ],
)
def test_layouts_that_cannot_be_say_why(options: dict, message: str):
    with pytest.raises(InvalidPlan, match=message):
        planned("llama-3.1-8b", "8xh100", **options)


@pytest.mark.parametrize("name", ["mxfp8-te", "mxfp8-te-primary", "nvfp4-te", "fp8-te-primary"])
def test_narrow_recipes_with_gradients_in_16_bits_differ_in_these_alone(name: str):
    from msgspec.structs import asdict

    from tonnage.numerics.precisions import TRAINING_RECIPES

    plain, narrow = asdict(TRAINING_RECIPES[name]), asdict(TRAINING_RECIPES[f"{name}-16bit-gradients"])
    changed = {key for key in plain if plain[key] != narrow[key]}
    assert changed == {"name", "source", "note", "main_gradient_bytes", "reduce_bytes"}


def test_a_scale_for_32_or_16_numbers_makes_a_copy_that_much_wider():
    from tonnage.numerics.precisions import TRAINING_RECIPES

    assert TRAINING_RECIPES["mxfp8-te"].cast_bytes == 2 * (1 + 1 / 32)
    assert TRAINING_RECIPES["nvfp4-te"].cast_bytes == 2 * (1 / 2 + 1 / 16)
    assert TRAINING_RECIPES["mxfp8-te-primary"].gathered_bytes == 2

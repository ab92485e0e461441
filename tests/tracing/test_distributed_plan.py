"""A distributed program's sizes are checked before torch is asked for."""

import pytest

from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.trace.distributed import Distributed, World, world_of


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"world_size": 8, "rank": 8}, InvalidPlan, "rank must be from 0 to 7"),
        ({"world_size": 8, "rank": -1}, InvalidPlan, "rank must be from 0 to 7"),
        ({"world_size": 0}, InvalidPlan, "world_size must be at least 1. Got 0"),
        ({"kind": "zero3"}, InvalidInput, "kind must be one of fsdp2, ddp, tp, tp\\+fsdp2. Got 'zero3'"),
        (
            {"kind": "tp+fsdp2", "world_size": 8, "tensor_parallel_size": 3},
            InvalidPlan,
            "must divide world_size 8. Got 3",
        ),
        ({"kind": "ddp", "tensor_parallel_size": 2}, InvalidPlan, "needs kind tp or tp\\+fsdp2"),
        ({"kind": "tp", "world_size": 8, "tensor_parallel_size": 4}, InvalidPlan, "tp\\+fsdp2 shards the rest"),
        ({"kind": "fsdp2", "sequence_parallel": True}, InvalidPlan, "sequence_parallel needs kind tp"),
        (
            {"kind": "tp", "sequence_parallel": True, "sequence_length": 100},
            InvalidPlan,
            "multiple of tensor_parallel_size 8",
        ),
        ({"sequence_length": 0}, InvalidInput, "sequence_length must be at least 1"),
        ({"param_dtype": "fp8"}, InvalidInput, "param_dtype must be one of fp32, bf16, fp16. Got 'fp8'"),
        ({"recompute": "selective"}, InvalidInput, "what is traced is none or full. Got 'selective'"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_its_field_and_value(asked, error, said):
    with pytest.raises(error, match=said):
        Distributed(**asked)


def test_tensor_parallelism_alone_takes_every_rank():
    assert Distributed(kind="tp", world_size=8).tensor_width == 8
    assert Distributed(kind="tp+fsdp2", world_size=64, tensor_parallel_size=8).tensor_width == 8
    assert Distributed(kind="fsdp2", world_size=64).tensor_width == 1


def test_a_programs_own_world_comes_before_the_launchers():
    told = {"WORLD_SIZE": "16", "RANK": "3"}
    assert world_of(told) == World(size=16, rank=3)
    assert world_of(told, size=4, rank=1) == World(size=4, rank=1)
    assert world_of({}) == World(size=1, rank=0)


def test_a_launchers_word_that_is_no_number_is_named():
    with pytest.raises(InvalidInput, match=r"WORLD_SIZE must be a whole number\. Got 'many'"):
        world_of({"WORLD_SIZE": "many"})

"""Optimizers under the recorder: states as the registry counts them, and what a step takes meanwhile."""

import pytest
import torch
from torch import nn

from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName
from tonnage.numerics.optimizers import OPTIMIZERS
from tonnage.trace.profiles import profile
from tonnage.trace.program import Program
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.record.optimizers import factory, names, notes
from tonnage.trace.record.train import train
from tonnage.trace.replay import replay

ROWS, COLUMNS, VECTOR = 512, 256, 300
MAP = 256 * 4  # a map of quantiles of bitsandbytes, once for all parameters


class Two(nn.Module):
    """A matrix and a vector that is used with it."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(ROWS, COLUMNS, dtype=dtype))
        self.vector = nn.Parameter(torch.empty(VECTOR, dtype=dtype))

    def forward(self, x):
        return (x @ self.matrix).sum() + self.vector.sum()


def trained(name, implementation="default", dtype=torch.float32, model=None, x=None):
    with recording("meta", profile("h100")) as recorder:
        made = Two(dtype) if model is None else model()
        inputs = torch.empty(1, ROWS, dtype=dtype) if x is None else x()
        train(recorder, Program(model=made, inputs=inputs, optimizer=factory(name, implementation, made)))
    return recorder


def held(recorder, category="optimizer"):
    made = recorder.events.allocations
    alive = [made[i] for i in recorder.events.live_at(len(recorder.events))]
    return sum(each.bytes for each in alive if each.category == category and each.bytes > 4)  # scalars aside


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", names())
def test_a_traced_optimizer_holds_what_the_registry_counts(name, dtype):
    registered = OPTIMIZERS[name]
    counted = 0
    for shape in ((ROWS, COLUMNS), (VECTOR,)):
        if not (registered.paged and (len(shape) > 1)):
            counted += registered.total_bytes(*shape, update_bytes=dtype.itemsize)
        elif registered.matrix[0].block:  # in managed memory but for the absmaxes
            counted += len(registered.matrix) * ROWS * COLUMNS // 256 * 4
    maps = len(registered.matrix) * MAP if name.endswith("8bit") else 0
    assert held(trained(name, dtype=dtype)) == counted + maps


def step_peak(implementation):
    """The most of the second optimizer step, above what is allocated after it."""
    stages = replay(trained("adamw", implementation).events).stages
    return stages[-1].peak_allocated_bytes - stages[-1].allocated_bytes


def test_foreach_takes_a_copy_of_all_parameters_fused_none_and_the_loop_two_of_one():
    matrix, vector = ROWS * COLUMNS * 4, 512 * 3
    assert step_peak("fused") == 0
    assert step_peak("loop") == 2 * matrix
    assert step_peak("foreach") == step_peak("default") == matrix + vector


def test_the_embedding_keeps_fp32_states_under_8_bit_as_transformers_trainer_asks():
    def model():
        return nn.Sequential(nn.Embedding(256, 64), nn.Linear(64, 256, bias=False))

    recorder = trained("adamw-8bit", model=model, x=lambda: torch.zeros(1, 8, dtype=torch.long))
    weights = 256 * 64
    assert held(recorder) == 2 * weights * 4 + 2 * (weights + weights // 256 * 4) + 2 * MAP


def test_an_optimizer_without_a_class_names_those_that_have_one():
    with pytest.raises(MissingDatum, match=r"'soap' cannot be traced yet.*adamw-8bit"):
        factory("soap")
    with pytest.raises(UnknownName, match="adamw"):
        factory("adanw")
    with pytest.raises(InvalidInput, match="'fused' is of sgd"):
        factory("muon", "fused")
    with pytest.raises(InvalidInput, match="foreach"):
        factory("adamw", "fast")


def test_a_recording_says_that_paged_states_are_elsewhere():
    assert "outside of PyTorch's allocator" in notes("paged-adamw-8bit")[0]
    assert notes("adamw") == notes("adamw-8bit") == ()

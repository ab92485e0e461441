"""State bytes of the real optimizers of PyTorch and transformers against the registry."""

import pytest
import torch
from transformers.optimization import Adafactor as TransformersAdafactor

from tonnage.numerics.optimizers import OPTIMIZERS

SHAPES = [(48, 64), (64, 48), (300,)]
MAKERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "sgd-momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "amsgrad": lambda parameters: torch.optim.AdamW(parameters, amsgrad=True),
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
}


def state_bytes(make, shape, dtype=torch.float32):
    weight = torch.nn.Parameter(torch.ones(shape, dtype=dtype))
    weight.grad = torch.full(shape, 0.5, dtype=dtype)
    optimizer = make([weight])
    optimizer.step()
    kept = {name: value for name, value in optimizer.state[weight].items() if name != "step" and torch.is_tensor(value)}
    return sum(value.numel() * value.element_size() for value in kept.values() if value.ndim)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_torch_allocates_the_states_that_we_count(name, shape, dtype):
    counted = OPTIMIZERS[name].total_bytes(*shape, update_bytes=dtype.itemsize)
    assert state_bytes(MAKERS[name], shape, dtype) == counted


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_torch_muon_keeps_one_momentum_for_a_matrix(dtype):
    counted = OPTIMIZERS["muon"].total_bytes(48, 64, update_bytes=dtype.itemsize)
    assert state_bytes(torch.optim.Muon, (48, 64), dtype) == counted


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_torch_adafactor_keeps_a_row_and_a_column(shape):
    assert state_bytes(torch.optim.Adafactor, shape) == OPTIMIZERS["adafactor"].total_bytes(*shape)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "beta1"), [("adafactor", None), ("adafactor-momentum", 0.9)])
def test_transformers_adafactor_keeps_fp32_factors_whatever_the_weights(name, beta1, shape, dtype):
    def make(parameters):
        return TransformersAdafactor(parameters, lr=0.1, relative_step=False, scale_parameter=False, beta1=beta1)

    assert state_bytes(make, shape, dtype) == OPTIMIZERS[name].total_bytes(*shape, update_bytes=dtype.itemsize)

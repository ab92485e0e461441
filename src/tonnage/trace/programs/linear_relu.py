"""The program of rule E5: linear layers with ReLU between, whose forward also returns every activation."""

from typing import Any

import torch
from torch import nn


class LinearRelu(nn.Module):
    """`depth` times Linear(width, width) and ReLU; x: batch x width."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        activations = []
        for layer in self.layers:
            x = self.relu(layer(x))
            activations.append(x)
        return x, activations


def program(width: int = 1024, depth: int = 12, batch: int = 32, dtype: str = "float32") -> dict[str, Any]:
    """One step with Adam and MSELoss. `dtype`: of weights and inputs, as torch calls it."""
    number_format = getattr(torch, dtype)
    model = LinearRelu(width, depth).to(number_format)
    inputs = torch.randn(batch, width, dtype=number_format)
    target = torch.randn(batch, width, dtype=number_format)
    criterion = nn.MSELoss()
    return {
        "model": model,
        "inputs": inputs,
        "loss": lambda output: criterion(output[0], target),
        "optimizer": torch.optim.Adam,
    }

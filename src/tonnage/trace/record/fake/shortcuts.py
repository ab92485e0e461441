"""Computes once what PyTorch computes for every rank, or again for every parameter, with the same results.

Without this, 1024 ranks take 30 times as long to shard as one does, and the time of an optimizer's first step grows
with the square of its parameters.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from tonnage.trace.record.fake.patch import patch


def enter(stack: ExitStack) -> None:
    """Install the shortcuts until the stack closes."""
    from torch.distributed.fsdp._fully_shard import _fsdp_param as parameters
    from torch.distributed.tensor import _sharding_prop as sharding

    patch(stack, parameters, "_chunk_with_empty", Chunks)
    if hasattr(sharding, "_propagate_use_strided_shard_flag"):
        patch(stack, sharding, "_propagate_use_strided_shard_flag", _Flags(sharding._propagate_use_strided_shard_flag))


class Chunks(Sequence[torch.Tensor]):
    """torch.chunk, padded with empty pieces; FSDP2 uses only its own and the first."""

    def __init__(self, tensor: torch.Tensor, num_chunks: int, dim: int):
        self.tensor, self.num_chunks, self.dim = tensor, num_chunks, dim
        self.step = -(-tensor.size(dim) // num_chunks)

    def __len__(self) -> int:
        return self.num_chunks

    def __getitem__(self, index: Any) -> Any:
        start = index * self.step
        length = min(self.step, self.tensor.size(self.dim) - start)
        return self.tensor.narrow(self.dim, start, length) if length > 0 else self.tensor.new_empty(0)


class _Flags:
    """Checks all parameters of an operation once instead of once for each; without strided sharding there is nothing
    to do.
    """

    def __init__(self, original: Any):
        self.original = original
        self.schema: Any = None
        self.strided = False

    def __call__(self, strategy: Any, schema: Any) -> None:
        if schema is not self.schema:
            from torch.distributed.tensor.placement_types import _StridedShard

            self.schema = schema
            self.strided = any(
                isinstance(placement, _StridedShard) for spec in schema.args_spec for placement in spec.placements
            )
        if self.strided:
            self.original(strategy, schema)

"""Buckets of gradients, and the reducer's queries of tensors and graphs."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

Tensor = torch.Tensor


class Bucket:
    """Gradients of some parameters in one buffer; communication hooks receive it too."""

    def __init__(self, index: int, indices: Sequence[int], parameters: Sequence[Tensor], dtype: torch.dtype | None):
        self.at, self.indices, self._parameters = index, list(indices), list(parameters)
        first = parameters[0]
        total = sum(parameter.numel() for parameter in parameters)
        self.contents = torch.empty(total, dtype=dtype or first.dtype, device=first.device)
        self.views = list(views_of(self.contents, parameters))
        self.pending = len(self.indices)
        self.last = False
        self.future: Any = None

    def index(self) -> int:
        return self.at

    def buffer(self) -> Tensor:
        return self.contents

    def set_buffer(self, tensor: Tensor) -> None:
        self.contents = tensor

    def gradients(self) -> list[Tensor]:
        return self.views

    def parameters(self) -> list[Tensor]:
        return self._parameters

    def is_last(self) -> bool:
        return self.last


def views_of(contents: Tensor, parameters: Sequence[Tensor]) -> Iterator[Tensor]:
    offset = 0
    for parameter in parameters:
        yield contents.as_strided(parameter.size(), parameter.stride(), offset)
        offset += parameter.numel()


def same_storage(first: Tensor, second: Tensor) -> bool:
    return first.untyped_storage()._cdata == second.untyped_storage()._cdata


def leaves(outputs: Sequence[Tensor]) -> Iterator[int]:
    """Ids of the parameters that a backward from `outputs` reaches."""
    seen: set[Any] = set()
    waiting = [output.grad_fn for output in outputs if output.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            yield id(variable)
        waiting.extend(next_node for next_node, _ in node.next_functions if next_node is not None)

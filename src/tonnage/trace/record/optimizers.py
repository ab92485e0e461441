"""Optimizers by tonnage's names, as the classes that a program would use: what they hold, and what a step takes
meanwhile.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import Message, listed
from tonnage.numerics.optimizers import optimizer as known
from tonnage.trace.record.fake import bitsandbytes as bnb

Implementation = Literal["default", "foreach", "fused", "loop"]
Make = Callable[[Iterable[Any]], Any]
_FLAGS: dict[str, dict[str, bool]] = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True},
                                      "loop": {"foreach": False, "fused": False}}  # fmt: skip
# Name: (class of torch.optim, its options). These know foreach, and those of _FUSED also fused.
_TORCH: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}), "sgd-momentum": ("SGD", {"momentum": 0.9}), "adam": ("Adam", {}), "adamw": ("AdamW", {}),
    "amsgrad": ("AdamW", {"amsgrad": True}), "adagrad": ("Adagrad", {}), "rmsprop": ("RMSprop", {}),
}  # fmt: skip
_FUSED = ("sgd", "sgd-momentum", "adam", "adamw", "amsgrad", "adagrad")
_BITSANDBYTES: dict[str, dict[str, Any]] = {
    "adamw-8bit": {"states": 2, "bits": 8}, "paged-adamw": {"states": 2, "bits": 32, "paged": True},
    "paged-adamw-8bit": {"states": 2, "bits": 8, "paged": True}, "lion-fp32": {"states": 1, "bits": 32},
    "lion-8bit": {"states": 1, "bits": 8}, "paged-lion": {"states": 1, "bits": 32, "paged": True},
    "paged-lion-8bit": {"states": 1, "bits": 8, "paged": True},
}  # fmt: skip
_ADAFACTOR = {"adafactor": None, "adafactor-momentum": 0.9}  # beta1


def names() -> tuple[str, ...]:
    """The optimizers that can be traced."""
    return (*_TORCH, *_BITSANDBYTES, *_ADAFACTOR, "muon")


def notes(name: str) -> tuple[str, ...]:
    """What a reader of a recording with this optimizer must know."""
    if _BITSANDBYTES.get(known(name).name, {}).get("paged"):
        return ("paged states of 100 000 elements or more are in managed memory, outside of PyTorch's allocator.",)
    return ()


def factory(name: str, implementation: Implementation = "default", model: nn.Module | None = None) -> Make:
    """What makes this optimizer of parameters. `implementation`: of PyTorch's own; `model` tells embedding and head
    from matrices.

    Raises UnknownName, MissingDatum for one that has no class here, InvalidInput for an implementation that it has not.
    """
    asked = known(name).name
    if implementation not in _FLAGS:
        raise InvalidInput(
            Message(
                "implementation must be one of {flags}. Got {implementation!r}.",
                flags=listed(_FLAGS),
                implementation=implementation,
            )
        )
    if asked not in names():
        raise MissingDatum(
            Message(
                "the optimizer {asked!r} cannot be traced yet. These can: {names}.",
                asked=asked,
                names=listed(sorted(names())),
            )
        )
    if implementation != "default" and (asked not in _TORCH or (implementation == "fused" and asked not in _FUSED)):
        able = [each for each in _TORCH if implementation != "fused" or each in _FUSED]
        raise InvalidInput(
            Message(
                "implementation {implementation!r} is of {able}. Got {asked!r}.",
                implementation=implementation,
                able=listed(able),
                asked=asked,
            )
        )
    if asked in _TORCH:
        kind, options = _TORCH[asked]
        return partial(getattr(torch.optim, kind), lr=1e-4, **options, **_FLAGS[implementation])
    if asked in _BITSANDBYTES:
        return partial(bnb.Optimizer, **_BITSANDBYTES[asked], full_precision=_embeddings(model))
    return (
        partial(_muon, tables=_embeddings(model) | _head(model))
        if asked == "muon"
        else partial(_adafactor, beta1=_ADAFACTOR[asked])
    )


def _embeddings(model: nn.Module | None) -> frozenset[int]:
    """Ids of the weights of embeddings."""
    modules = model.modules() if model is not None else ()
    return frozenset(id(each.weight) for each in modules if isinstance(each, nn.Embedding))


def _head(model: Any) -> frozenset[int]:
    """Id of the weight of the head, where a model says which it is."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    return frozenset() if head is None else frozenset({id(head.weight)})


def _adafactor(parameters: Iterable[Any], beta1: float | None) -> Any:
    from transformers.optimization import Adafactor

    return Adafactor(list(parameters), lr=1e-4, relative_step=False, scale_parameter=False, beta1=beta1)


def _muon(parameters: Iterable[Any], tables: frozenset[int]) -> Any:
    if not hasattr(torch.optim, "Muon"):
        raise MissingDatum(Message("PyTorch {version} has no Muon; 2.9 and later have.", version=torch.__version__))
    every = list(parameters)
    matrices = [each for each in every if each.dim() == 2 and id(each) not in tables]
    rest = [each for each in every if each.dim() != 2 or id(each) in tables]
    made = [torch.optim.Muon(matrices, lr=1e-4)] if matrices else []
    return Several([*made, *([torch.optim.AdamW(rest, lr=1e-4)] if rest else [])])


class Several:
    """Optimizers of different parameters, as one."""

    def __init__(self, optimizers: list[Any]):
        self.optimizers = optimizers

    @property
    def state(self) -> dict[Any, Any]:
        return {key: value for each in self.optimizers for key, value in each.state.items()}

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for each in self.optimizers for group in each.param_groups]

    def step(self) -> None:
        for each in self.optimizers:
            each.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for each in self.optimizers:
            each.zero_grad(set_to_none)

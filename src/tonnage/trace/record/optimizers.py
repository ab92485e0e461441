"""Optimizers by tonnage's names, as the classes that a program would use, with their states and temporaries."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import listed
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
    """The names of the optimizers that can be traced."""
    return (*_TORCH, *_BITSANDBYTES, *_ADAFACTOR, "muon")


def notes(name: str) -> tuple[str, ...]:
    """Notes on the limits of a recording with this optimizer."""
    if _BITSANDBYTES.get(known(name).name, {}).get("paged"):
        return ("paged states of 100 000 elements or more are in managed memory, outside of PyTorch's allocator.",)
    return ()


def factory(name: str, implementation: Implementation = "default", model: nn.Module | None = None) -> Make:
    """A function from parameters to this optimizer. `implementation`: of PyTorch's own; `model` distinguishes embedding
    and head from matrices.

    Raises UnknownName, MissingDatum for one that has no class here, InvalidInput for an implementation that it has not.
    """
    canonical = known(name).name
    if implementation not in _FLAGS:
        raise InvalidInput(
            "implementation must be one of {flags}. Got {implementation!r}.",
            flags=listed(_FLAGS),
            implementation=implementation,
        )
    if canonical not in names():
        raise MissingDatum(
            "the optimizer {asked!r} cannot be traced yet. These can: {names}.",
            asked=canonical,
            names=listed(sorted(names())),
        )
    if implementation != "default" and (
        canonical not in _TORCH or (implementation == "fused" and canonical not in _FUSED)
    ):
        able = [torch_name for torch_name in _TORCH if implementation != "fused" or torch_name in _FUSED]
        raise InvalidInput(
            "implementation {implementation!r} is of {able}. Got {asked!r}.",
            implementation=implementation,
            able=listed(able),
            asked=canonical,
        )
    if canonical in _TORCH:
        kind, options = _TORCH[canonical]
        return partial(getattr(torch.optim, kind), lr=1e-4, **options, **_FLAGS[implementation])
    if canonical in _BITSANDBYTES:
        return partial(bnb.Optimizer, **_BITSANDBYTES[canonical], full_precision=_embeddings(model))
    return (
        partial(_muon, tables=_embeddings(model) | _head(model))
        if canonical == "muon"
        else partial(_adafactor, beta1=_ADAFACTOR[canonical])
    )


def _embeddings(model: nn.Module | None) -> frozenset[int]:
    """Ids of the embeddings' weights."""
    modules = model.modules() if model is not None else ()
    return frozenset(id(module.weight) for module in modules if isinstance(module, nn.Embedding))


def _head(model: Any) -> frozenset[int]:
    """Id of the head's weight, if the model names its head."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    return frozenset() if head is None else frozenset({id(head.weight)})


def _adafactor(parameters: Iterable[Any], beta1: float | None) -> Any:
    from transformers.optimization import Adafactor

    return Adafactor(list(parameters), lr=1e-4, relative_step=False, scale_parameter=False, beta1=beta1)


def _muon(parameters: Iterable[Any], tables: frozenset[int]) -> Any:
    if not hasattr(torch.optim, "Muon"):
        raise MissingDatum("PyTorch {version} has no Muon; 2.9 and later have.", version=torch.__version__)
    every = list(parameters)
    matrices = [parameter for parameter in every if parameter.dim() == 2 and id(parameter) not in tables]
    rest = [parameter for parameter in every if parameter.dim() != 2 or id(parameter) in tables]
    muons = [torch.optim.Muon(matrices, lr=1e-4)] if matrices else []
    return Several([*muons, *([torch.optim.AdamW(rest, lr=1e-4)] if rest else [])])


class Several:
    """Several optimizers of different parameters, as one."""

    def __init__(self, optimizers: list[Any]):
        self.optimizers = optimizers

    @property
    def state(self) -> dict[Any, Any]:
        return {key: value for optimizer in self.optimizers for key, value in optimizer.state.items()}

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none)

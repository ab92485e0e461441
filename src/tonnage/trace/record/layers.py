"""The kind of each layer of a model: layers of one kind do the same, so that a program can be folded over them."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from torch import nn

Kind = frozenset[Hashable]
_SCALARS = (bool, int, float, str, type(None))


def kinds(model: nn.Module, num_layers: int) -> list[Kind] | None:
    """Facts of each layer: the structure of its modules, from lists with one module per layer, and its entries in lists
    of the model's config. None if the model has no such list of modules.
    """
    lists = list(_lists(model, num_layers))
    if not lists:
        return None
    facts_of_layers: list[set[Hashable]] = [set() for _ in range(num_layers)]
    for name, values in _listed(model, num_layers):
        for facts, value in zip(facts_of_layers, values, strict=True):
            facts.add((name, repr(value)))
    for path, layers in lists:
        for facts, described in zip(
            facts_of_layers, _without_numbers([_described(layer) for layer in layers]), strict=True
        ):
            facts.update((path, *fact) for fact in described.items())
    return [frozenset(facts) for facts in facts_of_layers]


def begins_with(full: Sequence[Kind], short: Sequence[Kind] | None) -> bool:
    """Whether a shorter model's layers are as the first of the full one. It may match further lists by chance."""
    return short is not None and all(facts <= known for facts, known in zip(full, short, strict=False))


def _lists(model: nn.Module, num_layers: int) -> Iterator[tuple[str, list[nn.Module]]]:
    """The outermost lists of as many modules: experts may be as many as layers."""
    outer: list[str] = []
    for path, module in model.named_modules():
        listed = isinstance(module, nn.ModuleList | nn.Sequential) and len(module) == num_layers
        if listed and not path.startswith(tuple(f"{prefix}." if prefix else "" for prefix in outer)):
            outer.append(path)
            yield path, list(module.children())


def _listed(model: nn.Module, num_layers: int) -> Iterator[tuple[tuple[str, ...], Sequence[Any]]]:
    """The lists with an entry for each layer, in a model's config and its sections."""
    config = getattr(model, "config", None)
    inner = (
        [(name, section) for name, section in vars(config).items() if hasattr(section, "to_dict")]
        if config is not None
        else []
    )
    for holder, section in [("", config), *inner]:
        for name, value in vars(section).items() if hasattr(section, "to_dict") else ():
            if isinstance(value, list | tuple) and len(value) == num_layers:
                yield (holder, name), value


def _described(layer: nn.Module) -> dict[tuple[str, str], Hashable]:
    """A layer's modules by place, plain attributes, and shapes of parameters and buffers."""
    facts: dict[tuple[str, str], Hashable] = {}
    for path, module in layer.named_modules():
        facts[path, ""] = type(module).__qualname__
        for name, value in vars(module).items():
            if isinstance(value, _SCALARS):
                facts[path, name] = value
            elif isinstance(value, list | tuple) and all(isinstance(item, _SCALARS) for item in value):
                facts[path, name] = tuple(value)
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None:
                facts[path, name] = (tuple(tensor.shape), tensor.dtype, tensor.requires_grad)
    return facts


def _without_numbers(layers: list[dict[tuple[str, str], Hashable]]) -> list[dict[tuple[str, str], Hashable]]:
    """The descriptions without a layer's own number, counted from 0 or 1, which is no difference of kind."""
    for name in {name for layer in layers for name in layer}:
        values = [(i, layer[name]) for i, layer in enumerate(layers) if name in layer]
        if len(values) > 1 and any(
            all(type(value) is int and value == i + first for i, value in values) for first in (0, 1)
        ):
            for layer in layers:
                layer.pop(name, None)
    return layers

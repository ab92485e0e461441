"""A model and a machine of tonnage as a row writes them: by name where the catalogue has them, else by what differs."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from tonnage.architectures import Model
from tonnage.catalogue import accelerator, accelerator_names, node, node_names
from tonnage.catalogue.clusters import cluster as cluster_named
from tonnage.kernel.errors import TonnageError
from tonnage.models import read
from tonnage.spec import Accelerator, Cluster, Node


def model(made: Model) -> Any:
    """What `question.model` says of this model."""
    base = _catalogued(made.name) or _catalogued(str(made.name).partition(",")[0])
    own = {"name": made.name} if base is None or made.name != base.name else {}
    if base is None:
        return {**own, "config": dict(made.config), **_kept(made, made.config)}
    if made.config == base.config and made.tensors == base.tensors:
        changes = {
            name: getattr(made, name)
            for name in ("dtype", "quantization")
            if getattr(made, name) != getattr(base, name)
        }
        return {"like": base.name, **own, **changes} if changes or own else base.name
    differing = {
        name: value for name, value in made.config.items() if name not in base.config or base.config[name] != value
    }
    if len(differing) < len(made.config) // 2 and set(base.config) <= set(made.config):
        return {"like": base.name, **own, "config": differing}
    return {"name": made.name, "config": dict(made.config), **_kept(made, made.config)}


def _kept(made: Model, config: Mapping[str, Any]) -> dict[str, Any]:
    """The type of the weights where it was set beside the config."""
    said = config.get("dtype") or config.get("torch_dtype")
    return {"dtype": made.dtype} if made.dtype is not None and made.dtype != said else {}


@cache
def _catalogued(name: str) -> Model | None:
    try:
        return read(name, offline=True)
    except TonnageError:
        return None


def machine(made: Cluster, is_known: bool = True, any_node: bool = False) -> Any:
    """What `question.on` says of this cluster. `any_node`: whatever joins the accelerators changes nothing that was
    measured."""
    counts = {"nodes": made.num_nodes, "per_node": made.accelerators_per_node}
    if not is_known:
        return counts
    chip = _accelerator(made.accelerator)
    if isinstance(chip, str):
        named = _short(chip, made, any_node)
        if named:
            return named
    joined = {} if made.node is None or any_node else {"node": _node(made.node)}
    return {"accelerator": chip, **counts, **joined}


def _short(chip: str, made: Cluster, any_node: bool) -> str:
    """The cluster in the words of `--on`; empty where they would give another one."""
    for text in (f"{made.size}x{chip}", f"{made.num_nodes}x{made.accelerators_per_node}x{chip}"):
        try:
            found = cluster_named(text)
        except TonnageError:
            continue
        same = (found.num_nodes, found.accelerators_per_node) == (made.num_nodes, made.accelerators_per_node)
        if same and found.accelerator == made.accelerator and (any_node or found.node == made.node):
            return text.removeprefix("1x") if text.startswith("1x") and text.count("x") else text
    return ""


def _accelerator(made: Accelerator) -> Any:
    base = _beginning(made.name, accelerator_names(), accelerator)
    return base.name if base == made else _differences(made, base)


def _node(made: Node) -> Any:
    base = _beginning(made.name, node_names(), node)
    return base.name if base == made else _differences(made, base)


def _beginning(name: str, known: Iterable[str], named: Callable[[str], Any]) -> Any:
    """The one of the catalogue whose name this one is, or begins with ("H100-SXM-80GB of 96 GB"); None where there is
    none."""
    fitting = [each for each in known if name.lower() == each.lower() or name.lower().startswith(f"{each.lower()} ")]
    return named(max(fitting, key=len)) if fitting else None


def _differences(made: Any, base: Any) -> dict[str, Any]:
    fields = msgspec.to_builtins(made)
    own = msgspec.to_builtins(base) if base is not None else {}
    defaults = _defaults(type(made))
    changed = {
        name: value
        for name, value in fields.items()
        if (value != own[name] if own else value != defaults.get(name, ...))
    }
    return {**({"like": base.name} if base is not None else {}), **_trimmed(changed)}


def _trimmed(value: Any) -> Any:
    """Without what is None inside."""
    if isinstance(value, dict):
        return {name: _trimmed(inner) for name, inner in value.items() if inner is not None or name in ("scale_up",)}
    return value


def _defaults(form: type[msgspec.Struct]) -> dict[str, Any]:
    return {
        field.name: msgspec.to_builtins(field.default)
        for field in msgspec.structs.fields(form)
        if field.default is not msgspec.NODEFAULT
    }

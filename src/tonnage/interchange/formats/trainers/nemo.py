"""NeMo: recipes of NeMo 2 and of Megatron-Bridge, in Python or YAML, and NeMo Automodel's YAML."""

from collections.abc import Iterable
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.megatron.effects import KNOWN
from tonnage.interchange.parts.nemo import automodel, megatron
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput


def recognises(source: Source) -> int:
    if source.kind in ("yaml", "json"):
        return 10 * (automodel.is_tree(source.tree) or megatron.is_tree(source.tree))
    return 10 * megatron.is_recipe(source)


def values(source: Source) -> dict[str, Any]:
    if source.kind not in ("yaml", "json"):
        return megatron.recipe_values(source)
    if not source.tree:
        raise InvalidInput("{file} has no fields: it must be a mapping.", file=source.name)
    return automodel.tree_of(source) if automodel.is_tree(source.tree) else megatron.tree_of(source)


def read(r: Reading) -> None:
    r.verb = "train"
    if r.source.kind in ("yaml", "json") and automodel.is_tree(r.source.tree):
        r.tool, r.version = "NeMo Automodel", r.asker.version or "0.7"
        automodel.read_config(r)
    else:
        r.tool, r.version = "Megatron-Bridge", r.asker.version or "0.6"
        megatron.read_recipe(r)
    r.forget_unused()


def known() -> Iterable[str]:
    """The names of Megatron's arguments, as fields have them."""
    return (name.replace("-", "_") for name in KNOWN)


FORMATS.add(
    "nemo",
    Format(
        name="nemo",
        tool="NeMo",
        version="Megatron-Bridge 0.6, Automodel 0.7",
        source="megatron-bridge 0.6.2, megatron/bridge/training/config.py; nemo-automodel 0.7, nemo_automodel/recipes",
        recognises=recognises,
        values=values,
        read=read,
        known=known,
        verbs=("train",),
    ),
)

"""The models and clusters of a sweep, each read once beforehand: a name that is wrong is said before anything runs."""

import glob
from collections.abc import Mapping
from typing import Any

from tonnage.catalogue import accelerator_names, cluster, model_names
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.models import read

COUNTS = (1, 8)  # accelerators, where nobody says how many


def models_of(fields: Mapping[Any, Any]) -> tuple[str, ...]:
    """Names, ids and paths of models; `all`: the catalogue's; a pattern of paths stands for the files that it finds."""
    said = fields.get("models")
    if said == "all":
        return tuple(model_names())
    found: dict[str, None] = {}
    for text in _texts("models", said):
        names = sorted(glob.glob(text)) if "*" in text else [text]  # noqa: PTH207 (the pattern may be absolute)
        if not names:
            raise InvalidInput("models: no file matches {text}.", text=shown(text))
        for name in names:
            if name in found:
                raise InvalidInput("models: {name} is there twice.", name=shown(name))
            found[name] = None
    for name in found:
        read(name)
    return tuple(found)


def clusters_of(fields: Mapping[Any, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Clusters as --on takes them, or accelerators times counts; and the accelerators of `all` of which there is no
    such cluster.
    """
    if ("on" in fields) == ("accelerators" in fields):
        raise InvalidInput(
            "a sweep names its machines by `on`, or by `accelerators` and `counts`: give one of the two."
        )
    if "on" in fields:
        if "counts" in fields:
            raise InvalidInput(
                "counts are of accelerators: leave them out beside `on`, whose clusters have their sizes."
            )
        names = tuple(dict.fromkeys(_texts("on", fields["on"])))
        for name in names:
            cluster(name)
        return names, ()
    counts = fields.get("counts", list(COUNTS))
    if (
        not isinstance(counts, list)
        or not counts
        or any(isinstance(each, bool) or not isinstance(each, int) or each < 1 for each in counts)
    ):
        raise InvalidInput("counts must be whole numbers from 1 on. Got {counts}.", counts=shown(counts))
    every = fields["accelerators"] == "all"
    chips = accelerator_names() if every else _texts("accelerators", fields["accelerators"])
    made, left_out = [], []
    for chip in chips:
        for count in dict.fromkeys(counts):
            name = f"{count}x{chip}"
            try:
                cluster(name)
            except TonnageError:
                if not every:
                    raise
                left_out.append(name)
            else:
                made.append(name)
    return tuple(made), tuple(left_out)


def _texts(name: str, said: Any) -> list[str]:
    if not isinstance(said, list) or not said:
        raise InvalidInput(
            "{name} takes a list of names, or all. Got {said}."
            if name != "on"
            else "{name} takes a list of names. Got {said}.",
            name=name,
            said=shown(said),
        )
    for each in said:
        if isinstance(each, bool) or not isinstance(each, str | int) or not str(each).strip():
            raise InvalidInput("{name} takes names. Got {each}.", name=name, each=shown(each))
    return [str(each).strip() for each in said]

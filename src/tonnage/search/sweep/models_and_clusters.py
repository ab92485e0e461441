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
    listed_models = fields.get("models")
    if listed_models == "all":
        return tuple(model_names())
    names_found: dict[str, None] = {}
    for text in _texts("models", listed_models):
        names = sorted(glob.glob(text)) if "*" in text else [text]  # noqa: PTH207 (the pattern may be absolute)
        if not names:
            raise InvalidInput("models: no file matches {text}.", text=shown(text))
        for name in names:
            if name in names_found:
                raise InvalidInput("models: {name} is there twice.", name=shown(name))
            names_found[name] = None
    for name in names_found:
        read(name)
    return tuple(names_found)


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
        or any(isinstance(entry, bool) or not isinstance(entry, int) or entry < 1 for entry in counts)
    ):
        raise InvalidInput("counts must be whole numbers from 1 on. Got {counts}.", counts=shown(counts))
    every = fields["accelerators"] == "all"
    chips = accelerator_names() if every else _texts("accelerators", fields["accelerators"])
    clusters, left_out = [], []
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
                clusters.append(name)
    return tuple(clusters), tuple(left_out)


def _texts(name: str, texts: Any) -> list[str]:
    if isinstance(texts, str) and texts.strip():
        raise InvalidInput(
            "{name} takes a list of names: write {name}: [{text}]. Got {said}.",
            name=name,
            text=texts.strip()[:80],
            said=shown(texts),
        )
    if not isinstance(texts, list) or not texts:
        raise InvalidInput(
            "{name} takes a list of names, or all. Got {said}."
            if name != "on"
            else "{name} takes a list of names. Got {said}.",
            name=name,
            said=shown(texts),
        )
    for text in texts:
        if isinstance(text, bool) or not isinstance(text, str | int) or not str(text).strip():
            raise InvalidInput("{name} takes names. Got {each}.", name=name, each=shown(text))
    return [str(text).strip() for text in texts]

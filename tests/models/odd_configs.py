"""Configs of models that are wrong in one number: real ones, one of each family of the catalogue."""

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from tonnage.catalogue import model_names
from tonnage.models import read

ODD: tuple[Any, ...] = (
    0,
    -1,
    1,
    3,
    0.5,
    -0.5,
    1e-300,
    1e30,
    1e308,
    -1e308,
    2**31,
    2**53 + 1,
    2**63,
    10**30,
    10**308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "x",
    "1",
    "",
    None,
    True,
    [],
    [1e308],
    {},
    {"a": 1},
)


@cache
def configs() -> tuple[tuple[str, dict[str, Any]], ...]:
    """One config of each architecture of the catalogue, with its name."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in model_names():
        model = read(name)
        found.setdefault(model.architecture, (name, dict(model.config)))
    return tuple(found.values())


def numbers_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each number of a config; of a list of many, of its first."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from numbers_of(inner, (*path, name))
    elif isinstance(value, list) and value:
        yield from numbers_of(value[0], (*path, 0))
    elif type(value) in (int, float):
        yield path


# Numbers that estimates read and many configs leave out.
ADDED = (
    ("partial_rotary_factor",),
    ("rotary_pct",),
    ("rotary_dim",),
    ("rope_scaling", "factor"),
    ("rope_scaling", "original_max_position_embeddings"),
    ("rope_parameters", "partial_rotary_factor"),
    ("rope_theta",),
    ("head_dim",),
    ("sliding_window",),
    ("attention_dropout",),
    ("num_nextn_predict_layers",),
    ("tie_word_embeddings",),
    ("n_group",),
    ("residual_multiplier",),
)


def changed(config: Mapping[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of the config with another value at a path."""
    made: Any = deepcopy(dict(config))
    inner = made
    for name in path[:-1]:
        if isinstance(inner, dict) and not isinstance(inner.get(name), dict | list):
            inner[name] = {"rope_type": "yarn"}
        inner = inner[name]
    inner[path[-1]] = value
    return made


def odd_configs(
    seed: int, values: int, most: int | None = None, only: str | None = None
) -> Iterator[tuple[str, tuple[Any, ...], Any, dict[str, Any]]]:
    """Name, path, value and config: each number of each config, or of the one called `only`, with `values` odd
    values; `most` of them, drawn by the seed.
    """
    draw = random.Random(seed)
    cases = [
        (name, path, value, config)
        for name, config in configs()
        if only in (None, name)
        for path in dict.fromkeys((*numbers_of(config), *ADDED))
        for value in draw.sample(ODD, values)
    ]
    if most is not None:
        cases = draw.sample(cases, min(most, len(cases)))
    for name, path, value, config in cases:
        yield name, path, value, changed(config, path, value)

"""Rows of measurements that are wrong in some way: real ones with a field that is changed, added or left out."""

import random
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

from tonnage.user_files.yaml_text import load

ROWS = Path(__file__).parents[2] / "validation"
SOURCES = ROWS / "sources"
FILES = ("params", "train_memory", "train_speed", "infer_memory", "infer_speed", "collectives")
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    0.5,
    -0.5,
    10**6,
    10**9,
    2**31,
    2**63,
    2**64,
    10**18,
    10**30,
    10**40,
    1e-300,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    " ",
    "x",
    "0",
    "-1",
    "1e308",
    "9" * 300,
    "9" * 5000,
    "1/0",
    "8-0",
    "0-8",
    "NaN",
    "\0",
    "\ud7ff",
    "é" * 50,
    "a" * 4001,
    "fp8",
    "bf16",
    "cpu",
    "adamw",
    "none",
    "100 GB",
    "-5 GiB",
    "1" + "0" * 60 + " GB",
    [],
    [0],
    [None],
    ["a", 1],
    [[1]],
    [[[[1]]]],
    list(range(50)),
    {},
    {"a": 1},
    {"value": 1},
    {"a": {"b": [1]}},
    {1: 2},
)


# Parts of a row whose fields are changed: of rows in the words of their sources, and of rows in tonnage's own form.
OF_SOURCES = ("config", "config", "config", "model", "measured", "")
OWN = ("question", "question", "question", "on", "measured", "")


def real_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows that ship, by their kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in FILES:
        for row in load(folder / f"{name}.yaml"):
            found.setdefault(row["kind"], []).append(row)
    return found


def fields_of(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The names that rows use in each of their mappings."""
    parts = ("config", "model", "measured", "question")
    return {
        part: sorted({str(name) for row in rows if isinstance(row.get(part), dict) for name in row[part]})
        for part in parts
    }


def changed(
    row: dict[str, Any], names: dict[str, list[str]], draw: random.Random, others: list[Any], parts: tuple[str, ...]
) -> dict[str, Any]:
    """A copy of a row with one to three fields changed. `others`: values of other rows, which are right elsewhere."""
    made = deepcopy(row)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        part = draw.choice(parts)
        inner = (
            made["question"].get("on")
            if part == "on" and isinstance(made.get("question"), dict)
            else made.get(part)
            if part
            else made
        )
        if not isinstance(inner, dict):
            continue
        known = names.get(part) or sorted(map(str, inner))
        hparams = inner.get("hparams")
        if part == "model" and isinstance(hparams, dict) and draw.random() < 0.6:
            inner, known = hparams, sorted(map(str, hparams))
        if not known:
            continue
        name = draw.choice(known) if draw.random() < 0.5 or not inner else draw.choice(sorted(map(str, inner)))
        how = draw.random()
        if how < 0.15:
            inner.pop(name, None)
        elif how < 0.35 and isinstance(inner.get(name), str):
            number = draw.choice(("0", "00", "1", "7", "9" * 30, "9" * 400, "9" * 3000, "-3", "1.5", "1.5.5", "1e9"))
            inner[name] = re.sub(r"\d+(\.\d+)?", number, inner[name], count=draw.choice((1, 0)))
        else:
            inner[name] = deepcopy(draw.choice(ODD) if how < 0.75 else draw.choice(others))
    return made


def values_of(rows: list[dict[str, Any]]) -> list[Any]:
    """Values that rows have in their configs or questions."""
    asked = [row.get("config", row.get("question")) for row in rows]
    return [value for fields in asked if isinstance(fields, dict) for value in fields.values()]


def odd_rows(
    kind: str, rows: list[dict[str, Any]], count: int, seed: int, parts: tuple[str, ...] = OWN
) -> list[dict[str, Any]]:
    """`count` odd rows of a kind, each with an id of its own."""
    draw = random.Random(seed)
    names, others = fields_of(rows), values_of(rows)
    made = [changed(draw.choice(rows), names, draw, others, parts) for _ in range(count)]
    return [{**row, "id": f"{kind}-{number}"} if draw.random() < 0.97 else row for number, row in enumerate(made)]

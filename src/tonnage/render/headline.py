"""Any document in one line: the first line of the text that its verb prints, or what stands for it."""

from collections.abc import Mapping
from typing import Any

from tonnage.language import say, worded
from tonnage.render import frontier
from tonnage.render.brief import maximum as brief_maximum
from tonnage.render.brief import plan_serving, plan_training, verdict
from tonnage.render.plans import pool
from tonnage.render.reconciled import reconciled_lines


def headline(document: Mapping[str, Any]) -> str:
    """What a document says first.

    >>> headline({"schema": "tonnage/2", "kind": "symbol", "name": "k", "unit": "heads", "meaning": "key/value heads"})
    'k (symbol) [heads]: key/value heads'
    """
    if "kind" in document:
        return _word(document)
    if "evidence" in document:
        return worded(document["text"])
    if "figures" in document:
        return reconciled_lines(document)[0]
    if "cells" in document:
        return _comparison(document)
    if "pool" in document:
        return pool.pool_lines(document)[0]
    if "runs" in document:
        models = {run["model"] for run in document["runs"]}
        return say(
            "{found} of {tried} models run on {on}",
            found=f"{len(models):,}",
            tried=f"{document['models_tried']:,}",
            on=document["question"]["on"]["value"],
        )
    if "points" in document:
        return frontier.frontier_lines(document)[0]
    if "means" in document:
        return plan_serving.verdict_line(document)
    if "plans" in document:
        return plan_training.verdict_line(document)
    if "limit" in document:
        return brief_maximum.verdict_line(document)
    if "verdict" in document:
        return verdict.verdict_line(document)
    return _names(document)


def _word(document: Mapping[str, Any]) -> str:
    unit = f" [{document['unit']}]" if document.get("unit") else ""
    title = document.get("text") or document.get("title") or ""
    meaning = "; ".join(filter(None, (title, document.get("meaning", ""))))
    return f"{document['name']} ({document['kind']}){unit}: {meaning}"


def _comparison(document: Mapping[str, Any]) -> str:
    counts = say(", ").join(f"{number:,} {say(verdict)}" for verdict, number in document["counts"].items())
    return say(
        "{cells} cells of {axes} axes: {counts}",
        cells=f"{len(document['cells']):,}",
        axes=len(document["axes"]),
        counts=counts,
    )


def _names(document: Mapping[str, Any]) -> str:
    """Lists of names: rules, models, formulas."""
    rules = document.get("rules", ())
    if len(rules) == 1:
        return f"{rules[0]['name']}: {rules[0]['title']}"
    return ", ".join(
        f"{len(entries):,} {name}" for name, entries in document.items() if isinstance(entries, list | tuple | dict)
    )

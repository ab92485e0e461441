"""The most of something, as lines of text: the verdict, what decided it, the breakdown there, what would let it be
more.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.language.quantities import human
from tonnage.render.brief.maximum import amount_text, verdict_line
from tonnage.render.prompts import both_limits, with_prompts
from tonnage.render.text import inputs_lines, tree_lines

BINDS = {
    "memory": "memory",
    "service level": "the service level",
    "model": "the model, not memory",
    "engine": "the engine, not memory",
    "rule": "a rule, not memory",
    "options": "another option, not memory",
    "nothing": "nothing",
}
TEXT_WIDTH = 60
SPEEDS = (("ttft_seconds", "the first token takes"), ("tpot_seconds", "each later one"))


def maximum_lines(document: Mapping[str, Any], memory: Term, *, formulas: bool = False) -> list[str]:
    """`memory`: the breakdown at the largest value, or at the least where none fits."""
    lines = [verdict_line(document), "", *_decided(document), "", *inputs_lines(document["question"])]
    lines += ["", *tree_lines(memory, depth=99 if formulas else 2, formulas=formulas)]
    if document["speed"]:
        lines += ["", speed_text(document)]
    if document["advice"]:
        lines += [
            "",
            say("what would raise it, each searched again:")
            if document["value"] is not None
            else say("what would let it, each searched again:"),
        ]
        lines += [_raise(document, move) for move in document["advice"]]
    return lines + [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]


def _decided(document: Mapping[str, Any]) -> list[str]:
    """What binds; where the error band begins and ends; what memory alone would let be; the options that say the
    value.
    """
    limit, unit = document["limit"], document["unit"]
    lines = [say("bound by {name}: {what}", name=say(BINDS[limit["by"]]), what=worded(limit["text"]))]
    if document["estimate_value"] is not None and document["value"] is not None:
        lines.append(both_limits(amount_text(document["estimate_value"], unit), amount_text(document["value"], unit)))
    if document["tight_value"] is not None:
        lines.append(
            say(
                "tight up to {amount}: what is usable lies inside the error band; more does not fit for sure",
                amount=amount_text(document["tight_value"], unit),
            )
        )
    if document["memory_value"] is not None:
        lines.append(say("memory alone would do for {amount}", amount=amount_text(document["memory_value"], unit)))
    if document["at"] is not None and document["text"] and limit["by"] != "nothing":
        lines.append(say("say it with {what}", what=document["text"]))
    return lines


def speed_text(document: Mapping[str, Any]) -> str:
    speed = document["speed"]
    if "step_seconds" in speed:
        return say("a step then takes {step_seconds}", step_seconds=human(speed["step_seconds"], "seconds"))
    parts = [f"{say(name)} {human(speed[key], 'seconds')}" for key, name in SPEEDS if key in speed]
    if "ttft_seconds" in speed:
        parts[0] = with_prompts(parts[0], document["question"])
    rate = (
        say("{tokens_per_second} in all", tokens_per_second=human(speed["tokens_per_second"], "tokens/s"))
        if "tokens_per_second" in speed
        else ""
    )
    return say(", ").join([*parts, *([rate] if rate else [])])


def _raise(document: Mapping[str, Any], move: Mapping[str, Any]) -> str:
    what = (
        f"{move['model']}, {human(move['value'], 'parameters')}"
        if move.get("model")
        else amount_text(move["value"], document["unit"])
    )
    before = document["value"]
    times = (
        say(" ({move} times)", move=f"{move['value'] / before:.3g}")
        if before and move["value"] >= 1.05 * before
        else ""
    )
    also = "" if move["changes"] == "nothing" else say(", changes the {name}", name=say(move["changes"]))
    bound = "" if move["limit"] == "memory" else say(", then bound by {name}", name=say(BINDS[move["limit"]]))
    return f"  {left(worded(move['text']), TEXT_WIDTH)} {what}{times}{bound}{also}"

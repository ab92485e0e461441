"""The most of something, as lines of text: the verdict, what decided it, the breakdown there, what would let it be
more.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.language.quantities import counted, human
from tonnage.render.prompts import both_limits, with_prompts
from tonnage.render.text import inputs_lines, tree_lines
from tonnage.render.tone import Toned

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


def verdict_line(document: Mapping[str, Any]) -> str:
    at, beyond, unit = document["at"], document["beyond"], document["unit"]
    subject = _subject(document)
    if at is None:
        what = f"{subject} {_not_even(document)}"
        if beyond["refused"] is not None:
            return say("not served: {what}", what=what)
        if document["tight_value"] is not None:
            return Toned(say("tight: {what}", what=what), "warn")
        return Toned(say("does not fit: {what}", what=what), "bad")
    sizes = say(
        "{needed_bytes} of {usable_bytes}",
        needed_bytes=human(at["needed_bytes"], "bytes"),
        usable_bytes=human(at["usable_bytes"], "bytes"),
    )
    first = say("{subject} {phrase}: {sizes}", subject=subject, phrase=_phrase(document, at["value"]), sizes=sizes)
    if document["limit"]["by"] == "nothing":
        return say(
            "{subject} {phrase}: {sizes}; no limit was found",
            subject=subject,
            phrase=_phrase(document, at["value"], say("as much as")),
            sizes=sizes,
        )
    if beyond is None:
        return first
    if document["what"] == "model":
        return say(
            "{first}; {model} with {beyond}, the next larger, {does}",
            first=first,
            model=beyond["model"],
            beyond=human(beyond["value"], "parameters"),
            does=_does(beyond),
        )
    if document["limit"]["by"] in ("model", "options"):
        return first
    if document["limit"]["by"] == "service level":
        return say("{first}; {beyond} would not keep within it", first=first, beyond=counted(beyond["value"], unit))
    if document["limit"]["by"] == "engine":
        return say("{first}; {beyond} would not all run at once", first=first, beyond=counted(beyond["value"], unit))
    what, does = amount_text(beyond["value"], unit), _does(beyond, beyond["value"] if unit != "rank" else 1)
    return say("{first}; {what} {does}", first=first, what=what, does=does)


def amount_text(value: int, unit: str) -> str:
    return say("rank {value}", value=f"{value:,}") if unit == "rank" else counted(value, unit)


def _subject(document: Mapping[str, Any]) -> str:
    question = document["question"]
    on = question["on"]["value"]
    return str(on) if document["what"] == "model" else say("{model} on {on}", model=question["model"]["value"], on=on)


def _does(beyond: Mapping[str, Any], number: int = 1) -> str:
    plural = number != 1
    if beyond["refused"] is not None:
        return say("are refused") if plural else say("is refused")
    if beyond["fits"] is None:
        return say("fit perhaps (tight)") if plural else say("fits perhaps (tight)")
    return say("do not fit") if plural else say("does not fit")


def _phrase(document: Mapping[str, Any], value: int, most: str = "") -> str:
    """What it does at most, with what it was asked beside."""
    inputs = {name: entry["value"] for name, entry in document["question"].items()}
    most = most or say("at most")
    much = f"{most} {counted(value, document['unit'])}"
    match document["what"]:
        case "context":
            return say(
                "serves a context of {much} for {concurrency}",
                much=much,
                concurrency=counted(inputs["concurrency"], "requests"),
            )
        case "input":
            return say(
                "serves prompts of {much} with answers of {output_tokens}, {concurrency} at a time",
                much=much,
                output_tokens=counted(inputs["output_tokens"], "tokens"),
                concurrency=counted(inputs["concurrency"], "requests"),
            )
        case "users":
            return say(
                "serves {much} of {context} at the same time{within}",
                much=much,
                context=counted(inputs["context"], "tokens"),
                within=_within(inputs),
            )
        case "expert-layers":
            return say("holds the experts of {much} on the accelerator", much=much)
        case "adapters":
            return say("serves with {much} of rank {lora_rank}", much=much, lora_rank=inputs["lora_rank"])
        case "sequence":
            return say(
                "trains on sequences of {much}, {micro_batch_size} in a micro-batch",
                much=much,
                micro_batch_size=f"{inputs['micro_batch_size']:,}",
            )
        case "micro-batch":
            return say(
                "trains with {much} of {sequence_length} in a micro-batch",
                much=much,
                sequence_length=counted(inputs["sequence_length"], "tokens"),
            )
        case "lora-rank":
            return say(
                "trains adapters ({method}) of {most} rank {value}",
                method=inputs["method"],
                most=most,
                value=f"{value:,}",
            )
        case "layers" if document["verb"] == "train":
            return say("trains {most} its last {value}", most=most, value=counted(value, document["unit"]))
        case "layers":
            return say("holds {much}, the head counted as one, on the accelerator", much=much)
    return _largest_model(document, most, value, inputs)


def _largest_model(document: Mapping[str, Any], most: str, value: int, inputs: Mapping[str, Any]) -> str:
    """The largest model, with its precision where the search chose it."""
    size = f"{most} {document['model']}, {human(value, 'parameters')}"
    if "weights" in document["options"]:
        size = say("{size} in {weights}", size=size, weights=document["options"]["weights"])
    if document["verb"] == "train":
        return say(
            "trains {size}, on sequences of {sequence_length}",
            size=size,
            sequence_length=counted(inputs["sequence_length"], "tokens"),
        )
    return say("serves {size}, with a context of {context}", size=size, context=counted(inputs["context"], "tokens"))


def _within(inputs: Mapping[str, Any]) -> str:
    limits = [f"{name.upper()} {human(inputs[name], 'seconds')}" for name in ("ttft", "tpot") if name in inputs]
    return say(" within {limits}", limits=say(" and ").join(limits)) if limits else ""


def _not_even(document: Mapping[str, Any]) -> str:
    least = document["beyond"]
    if document["what"] == "model":
        limit = worded(document["limit"]["text"])
        if document["verb"] == "serve":
            return say("serves no model of the catalogue; {limit}", limit=limit)
        return say("trains no model of the catalogue; {limit}", limit=limit)
    what = amount_text(least["value"], document["unit"])
    if least["refused"] is not None:
        return say("with no more than {what}: {refused}", what=what, refused=worded(least["refused"]))
    over = human(max(least["needed_bytes"] - least["usable_bytes"], 0), "bytes")
    sizes = say(
        "{needed_bytes} of {usable_bytes}",
        needed_bytes=human(least["needed_bytes"], "bytes"),
        usable_bytes=human(least["usable_bytes"], "bytes"),
    )
    if document["tight_value"] is not None:
        low, high = least["band"]
        return say(
            "needs about {sizes} with {what}: inside the error band, {low} to {high}",
            sizes=sizes,
            what=what,
            low=human(low, "bytes"),
            high=human(high, "bytes"),
        )
    return say("needs {sizes} with no more than {what} ({over} too much)", sizes=sizes, what=what, over=over)


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

"""The most of something, as lines of text: the verdict, what decided it, the breakdown there, what would let it be more."""

from collections.abc import Mapping
from typing import Any

from tonnage.breakdown import Term
from tonnage.render.text import inputs_lines, tree_lines
from tonnage.units import counted, human

BINDS = {"memory": "memory", "service level": "the service level", "model": "the model, not memory", "engine": "the engine, not memory",
         "rule": "a rule, not memory", "options": "another option, not memory", "nothing": "nothing"}  # fmt: skip
TEXT_WIDTH = 60


def maximum_lines(document: Mapping[str, Any], memory: Term, *, formulas: bool = False) -> list[str]:
    """`memory`: the breakdown at the largest value, or at the least where none fits."""
    lines = [_verdict(document), "", *_decided(document), "", *inputs_lines(document["question"])]
    lines += ["", *tree_lines(memory, depth=99 if formulas else 2, formulas=formulas)]
    if document["speed"]:
        lines += ["", _speed(document)]
    if document["advice"]:
        lines += [
            "",
            "what would raise it, each searched again:"
            if document["value"] is not None
            else "what would let it, each searched again:",
        ]
        lines += [_raise(document, move) for move in document["advice"]]
    return lines + [f"note: {warning}" for warning in document["warnings"]]


def _verdict(document: Mapping[str, Any]) -> str:
    at, beyond, unit = document["at"], document["beyond"], document["unit"]
    subject = _subject(document)
    if at is None:
        late = beyond["refused"] is not None
        return f"{'not served' if late else 'tight' if document['tight_value'] is not None else 'does not fit'}: {subject} {_not_even(document)}"
    sizes = f"{human(at['needed_bytes'], 'bytes')} of {human(at['usable_bytes'], 'bytes')}"
    first = f"{subject} {_phrase(document, at['value'])}: {sizes}"
    if document["limit"]["by"] == "nothing":
        return (
            f"{subject} {_phrase(document, at['value']).replace('at most', 'as much as')}: {sizes}; no limit was found"
        )
    if beyond is None:
        return first
    if document["what"] == "model":
        return (
            f"{first}; {beyond['model']} with {human(beyond['value'], 'parameters')}, the next larger, {_does(beyond)}"
        )
    if document["limit"]["by"] in ("model", "options"):
        return first
    if document["limit"]["by"] == "service level":
        return f"{first}; {counted(beyond['value'], unit)} would not keep within it"
    if document["limit"]["by"] == "engine":
        return f"{first}; {counted(beyond['value'], unit)} would not all run at once"
    return f"{first}; {_amount(beyond['value'], unit)} {_does(beyond, beyond['value'] if unit != 'rank' else 1)}"


def _amount(value: int, unit: str) -> str:
    return f"rank {value:,}" if unit == "rank" else counted(value, unit)


def _subject(document: Mapping[str, Any]) -> str:
    question = document["question"]
    on = question["on"]["value"]
    return str(on) if document["what"] == "model" else f"{question['model']['value']} on {on}"


def _does(beyond: Mapping[str, Any], number: int = 1) -> str:
    plural = number != 1
    if beyond["refused"] is not None:
        return "are refused" if plural else "is refused"
    if beyond["fits"] is None:
        return "fit perhaps (tight)" if plural else "fits perhaps (tight)"
    return "do not fit" if plural else "does not fit"


def _phrase(document: Mapping[str, Any], value: int) -> str:
    """What it does at most, with what it was asked beside."""
    asked = {name: entry["value"] for name, entry in document["question"].items()}
    much = counted(value, document["unit"])
    match document["what"]:
        case "context":
            return f"serves a context of at most {much} for {counted(asked['concurrency'], 'requests')}"
        case "input":
            return f"serves prompts of at most {much} with answers of {counted(asked['output_tokens'], 'tokens')}, {counted(asked['concurrency'], 'requests')} at a time"
        case "users":
            return f"serves at most {much} of {counted(asked['context'], 'tokens')} at the same time{_within(asked)}"
        case "expert-layers":
            return f"holds the experts of at most {much} on the accelerator"
        case "adapters":
            return f"serves with at most {much} of rank {asked['lora_rank']}"
        case "sequence":
            return f"trains on sequences of at most {much}, {asked['micro_batch_size']:,} in a micro-batch"
        case "micro-batch":
            return f"trains with at most {much} of {counted(asked['sequence_length'], 'tokens')} in a micro-batch"
        case "lora-rank":
            return f"trains adapters ({asked['method']}) of at most rank {value:,}"
        case "layers" if document["verb"] == "train":
            return f"trains at most its last {much}"
        case "layers":
            return f"holds at most {much}, the head counted as one, on the accelerator"
    size = f"{document['model']}, {human(value, 'parameters')}"
    if document["verb"] == "train":
        return f"trains at most {size}, on sequences of {counted(asked['sequence_length'], 'tokens')}"
    return f"serves at most {size}, with a context of {counted(asked['context'], 'tokens')}"


def _within(asked: Mapping[str, Any]) -> str:
    limits = [f"{name.upper()} {human(asked[name], 'seconds')}" for name in ("ttft", "tpot") if name in asked]
    return f" within {' and '.join(limits)}" if limits else ""


def _not_even(document: Mapping[str, Any]) -> str:
    least = document["beyond"]
    if document["what"] == "model":
        verb = "serves" if document["verb"] == "serve" else "trains"
        return f"{verb} no model of the catalogue; {document['limit']['text']}"
    what = _amount(least["value"], document["unit"])
    if least["refused"] is not None:
        return f"with no more than {what}: {least['refused']}"
    over = human(max(least["needed_bytes"] - least["usable_bytes"], 0), "bytes")
    sizes = f"{human(least['needed_bytes'], 'bytes')} of {human(least['usable_bytes'], 'bytes')}"
    if document["tight_value"] is not None:
        low, high = least["band"]
        return (
            f"needs about {sizes} with {what}: inside the error band, {human(low, 'bytes')} to {human(high, 'bytes')}"
        )
    return f"needs {sizes} with no more than {what} ({over} too much)"


def _decided(document: Mapping[str, Any]) -> list[str]:
    """What binds; where the error band begins and ends; what memory alone would let be; the options that say the value."""
    limit, unit = document["limit"], document["unit"]
    lines = [f"bound by {BINDS[limit['by']]}: {limit['text']}"]
    if document["tight_value"] is not None:
        lines.append(
            f"tight up to {_amount(document['tight_value'], unit)}: what is usable lies inside the error band; more does not fit for sure"
        )
    if document["memory_value"] is not None:
        lines.append(f"memory alone would do for {_amount(document['memory_value'], unit)}")
    if document["at"] is not None and document["text"] and limit["by"] != "nothing":
        lines.append(f"say it with {document['text']}")
    return lines


def _speed(document: Mapping[str, Any]) -> str:
    speed = document["speed"]
    if "step_seconds" in speed:
        return f"a step then takes {human(speed['step_seconds'], 'seconds')}"
    parts = [
        f"{name} {human(speed[key], 'seconds')}"
        for key, name in (("ttft_seconds", "the first token takes"), ("tpot_seconds", "each later one"))
        if key in speed
    ]
    rate = f"{human(speed['tokens_per_second'], 'tokens/s')} in all" if "tokens_per_second" in speed else ""
    return ", ".join([*parts, *([rate] if rate else [])])


def _raise(document: Mapping[str, Any], move: Mapping[str, Any]) -> str:
    what = (
        f"{move['model']}, {human(move['value'], 'parameters')}"
        if move.get("model")
        else _amount(move["value"], document["unit"])
    )
    before = document["value"]
    times = f" ({move['value'] / before:.3g} times)" if before and move["value"] >= 1.05 * before else ""
    also = "" if move["changes"] == "nothing" else f", changes the {move['changes']}"
    bound = "" if move["limit"] == "memory" else f", then bound by {BINDS[move['limit']]}"
    return f"  {move['text']:<{TEXT_WIDTH}} {what}{times}{bound}{also}"

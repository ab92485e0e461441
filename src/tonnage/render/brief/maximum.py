"""The short text of the most that fits."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.units import significant
from tonnage.language import say, say_as, worded
from tonnage.language.quantities import counted, human
from tonnage.render.brief.bar import add_bar, memory_parts, peak_of
from tonnage.render.brief.layout import MAX_LINES, Column, Page, Runs
from tonnage.render.brief.numbers import count, many, seconds
from tonnage.render.brief.serving import engine_of, runner_of
from tonnage.render.brief.training import runtime_of
from tonnage.render.brief.words import (
    ASSUMED,
    FEWER_ASSUMED,
    NEXT,
    ONE_ROW,
    THREE_ROWS,
    add_more,
    add_notes,
    asked_again,
    assumed,
    at_load,
    changed,
    flag,
    flags_of,
    named_model,
    users_text,
    value_of,
)
from tonnage.render.prompts import both_limits, with_prompts
from tonnage.render.tone import Toned

LIMITS = {
    "memory": "memory is the limit",
    "service level": "the targets are the limit",
    "model": "the model is the limit",
    "engine": "the engine is the limit",
    "rule": "a rule is the limit",
    "options": "another option is the limit",
    "nothing": "no limit was found",
}
SERVING = ("concurrency", "context", "weights", "kv_cache", "gpu_memory_utilization", "max_num_batched_tokens")
TRAINING = ("sequence_length", "micro_batch_size", "method", "precision", "optimizer", "recompute")
MAX_ROWS = 5


def maximum_text(maximum: Any, width: int) -> list[Runs]:
    """The lines of a maximum, at most 24."""
    return maximum_page(maximum.without_trees(), maximum.answer, width).lines(MAX_LINES)


def maximum_page(document: Mapping[str, Any], answer: Any, width: int) -> Page:
    """`answer`: the estimate at the largest value, or at the least where none fits."""
    page = Page(width)
    line = verdict_line(document)
    page.verdict(line, line.tone)
    page.dim(_subject(document))
    page.blank()
    at = document["at"] or document["beyond"]
    question = document["question"]
    if at["needed_bytes"]:
        serves = document["verb"] == "serve"
        peak = "" if serves else peak_of(answer.memory)
        add_bar(page, memory_parts(answer.memory), at["usable_bytes"], at["band"], peak, engine_of(question))
    _add_room(page, document)
    if document["speed"]:
        page.field("speed", _speed(document))
    names = [name for name in (SERVING if document["verb"] == "serve" else TRAINING) if name not in document["options"]]
    page.options("assumed", assumed(question, names), fewer=FEWER_ASSUMED, drop=ASSUMED)
    moves = document["advice"][:MAX_ROWS]
    if moves:
        page.blank()
        tables = [_table(page, document, moves[:most]) for most in (MAX_ROWS, 3, 1)]
        page.block(tables[0], (THREE_ROWS, tables[1]), (ONE_ROW, tables[2]))
    add_notes(page, document["warnings"], most=1)
    page.blank()
    launch = answer.serving.launch if document["verb"] == "serve" and document["at"] else None
    if launch:
        first, *notes = worded(launch).splitlines()
        page.command("start", first)
        for note in notes:
            page.field("", note.strip())
    page.command("next", _next(document), drop=NEXT)
    add_more(page)
    return page


def verdict_line(document: Mapping[str, Any]) -> Toned:
    """The largest value and of what it is; or that not even the least fits."""
    at = document["at"]
    if at is None:
        what = say("{subject} {what}", subject=_where(document), what=_not_even(document))
        if document["beyond"]["refused"] is not None:
            return Toned(say("not served: {what}", what=what), "bad")
        if document["tight_value"] is not None:
            return Toned(say("tight: {what}", what=what), "warn")
        return Toned(_with_more(document, say("does not fit: {what}", what=what)), "bad")
    if document["what"] == "model":
        amount = say("{model}, {size}", model=document["model"], size=human(at["value"], "parameters"))
        if "weights" in document["options"]:
            amount = say("{amount} in {weights}", amount=amount, weights=document["options"]["weights"])
    elif document["what"] == "users":
        amount = users_text(at["value"])
    else:
        amount = amount_text(at["value"], document["unit"])
    if document["limit"]["by"] == "nothing":
        amount = say("at least {amount}", amount=amount)
    return Toned(_with_more(document, say("{amount}: {what}", amount=amount, what=_title(document))), "good")


def _with_more(document: Mapping[str, Any], line: str) -> str:
    """The line, with how much more a change of a training run allows that keeps workload, numerics and machine."""
    before = document["value"] or 0
    move = next(
        (move for move in document["advice"] if move["changes"] == "nothing" and "on" not in move["change"]), None
    )
    if document["verb"] != "train" or move is None or move["value"] < MUCH_MORE * before:
        return line
    amount = str(move.get("model") or amount_text(move["value"], document["unit"]))
    return say("{line}; {amount} with {option}", line=line, amount=amount, option=flags_of(move))


MUCH_MORE = 1.5  # times the largest value: what the first line says of a change


def amount_text(value: int, unit: str) -> str:
    """A value with its unit; of a rank the unit stands first."""
    return say("rank {value}", value=f"{value:,}") if unit == "rank" else counted(value, unit)


def _where(document: Mapping[str, Any]) -> str:
    question = document["question"]
    on = str(value_of(question, "on"))
    if document["what"] == "model":
        return on
    return say("{model} on {on}", model=value_of(question, "model"), on=on)


def _title(document: Mapping[str, Any]) -> str:
    """What the largest value is of."""
    question, where = document["question"], _where(document)

    def number(name: str) -> str:
        return count(value_of(question, name, 0))

    match document["what"]:
        case "context":
            users = value_of(question, "concurrency", 1)
            load = say("1 request") if users == 1 else say("{count} requests", count=count(users))
            return say("the longest context of {where} for {load}", where=where, load=load)
        case "input":
            users = users_text(value_of(question, "concurrency", 1))
            return say("the longest input of {where} for {users}", where=where, users=users)
        case "users":
            return say("the most users of {where}, {context} tokens each", where=where, context=number("context"))
        case "expert-layers":
            return say("the most layers of {where} whose experts the accelerator holds", where=where)
        case "adapters":
            return say("the most LoRA adapters of {where}, rank {rank}", where=where, rank=number("lora_rank"))
        case "sequence":
            return say(
                "the longest sequence of {where}, micro-batch {size}", where=where, size=number("micro_batch_size")
            )
        case "micro-batch":
            length = number("sequence_length")
            return say("the largest micro-batch of {where}, sequences of {tokens} tokens", where=where, tokens=length)
        case "lora-rank":
            return say("the largest LoRA rank of {where}", where=where)
        case "layers" if document["verb"] == "train":
            return say("the most layers of {where} that can be trained", where=where)
        case "layers":
            return say("the most layers of {where} on the accelerator, the head counted as one", where=where)
    if document["verb"] == "train":
        return say(
            "the largest model that {where} trains, sequences of {tokens} tokens",
            where=where,
            tokens=number("sequence_length"),
        )
    return say(
        "the largest model that {where} serves, context of {tokens} tokens", where=where, tokens=number("context")
    )


def _subject(document: Mapping[str, Any]) -> str:
    """Precision, machine, engine, and what the limit is."""
    question = document["question"]
    runner = runner_of(question) if document["verb"] == "serve" else runtime_of(question)
    what = (
        f"{value_of(question, 'model', '')} {value_of(question, 'weights', '')}".strip()
        if document["what"] != "model"
        else ""
    )
    first = say(", ").join(filter(None, (what, str(value_of(question, "on")), runner)))
    limit = say(LIMITS[document["limit"]["by"]])
    return say("{what}; {limit}: {why}", what=first, limit=limit, why=worded(document["limit"]["text"]))


def _add_room(page: Page, document: Mapping[str, Any]) -> None:
    """Where the error band begins and ends, and what memory alone would let be."""
    unit, texts = document["unit"], []
    if document["estimate_value"] is not None and document["value"] is not None:
        estimate, safe = (amount_text(document[name], unit) for name in ("estimate_value", "value"))
        texts.append(both_limits(estimate, safe))
    if document["tight_value"] is not None:
        texts.append(say("tight up to {amount}", amount=amount_text(document["tight_value"], unit)))
    if document["memory_value"] is not None:
        texts.append(say("memory alone: {amount}", amount=amount_text(document["memory_value"], unit)))
    if texts:
        page.field("room", say("; ").join(texts))


def _speed(document: Mapping[str, Any]) -> str:
    speed, question = document["speed"], document["question"]
    if "step_seconds" in speed:
        return say("{time} per step", time=seconds(speed["step_seconds"]))
    parts = [
        f"{name} {seconds(speed[key])}"
        for key, name in (("ttft_seconds", "TTFT"), ("tpot_seconds", "TPOT"))
        if speed.get(key)
    ]
    if speed.get("tokens_per_second"):
        parts.append(say("{rate} output tokens/s", rate=significant(speed["tokens_per_second"])))
    text, load = say(", ").join(parts), at_load(question)
    text = with_prompts(text, question)
    return say("{times} {load}", times=text, load=load) if load else text


def _table(page: Page, document: Mapping[str, Any], moves: list[Mapping[str, Any]]) -> list[Runs]:
    """What raises it, or lets it be."""
    before = document["value"]
    title = say("to raise it") if before is not None else say("to make it fit")
    header = [
        Column(title, "l"),
        Column(say(document["unit"])),
        Column("", keep=2),
        Column(say_as("column", "changes"), "l", keep=5),
    ]
    rows = []
    for move in moves:
        value = f"{move['model']} {many(move['value'])}" if move.get("model") else f"{move['value']:,}"
        times = f"{move['value'] / before:.2f}x" if before else ""
        what = changed(move) or say("nothing")
        if move["limit"] != "memory":
            what = say("{what}; then {limit}", what=what, limit=say(LIMITS[move["limit"]]))
        rows.append([f"`{flags_of(move)}`", value, times, what])
    return page.table_lines(header, rows, bold=None)


def _next(document: Mapping[str, Any]) -> str:
    """The answer of `serve` or `train` at the largest value; where not even the least fits, at the value that the first
    suggestion makes fit.
    """
    question = document["question"]
    chosen = document["options"] if document["at"] else {}
    if document["at"] is None and document["advice"]:
        chosen = document["advice"][0]["options"]
    kept = asked_again(question, ("advice", *document["options"], *chosen))
    own = "".join(f" {flag(name, value)}" for name, value in chosen.items() if name not in ("model", "on"))
    model = document["model"] if document["what"] == "model" and document["model"] else named_model(question)
    machine = chosen.get("on", document["options"].get("on", value_of(question, "on")))
    return f"tonnage {document['verb']} {model} --on {machine}{kept}{own}"


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

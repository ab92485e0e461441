"""The short text of an answer of `train` or `serve`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.json import decode, encode

from tonnage.kernel.term import Term
from tonnage.language import say, say_as, worded
from tonnage.render.brief.bar import add_bar, memory_parts, peak_of
from tonnage.render.brief.layout import MAX_LINES, Column, Page, Runs
from tonnage.render.brief.numbers import gib, money_column, seconds, seconds_column
from tonnage.render.brief.read import NO_FILES, add_read, is_unnamed
from tonnage.render.brief.run import change_that_keeps
from tonnage.render.brief.serving import add_serving, engine_of, serving_change, serving_next, serving_subject
from tonnage.render.brief.training import (
    add_training,
    training_change,
    training_next,
    training_start,
    training_subject,
)
from tonnage.render.brief.verdict import first_fix, recommended_move, verdict_line
from tonnage.render.brief.words import (
    ASSUMED,
    BETTER,
    CHOSEN,
    FEWER_ASSUMED,
    FEWER_ROWS,
    LAUNCH_NOTE,
    NEXT,
    NOTE,
    ONE_FIX,
    ROUTER,
    TWO_FIXES,
    add_more,
    add_notes,
    asked_again,
    assumed,
    changed,
    flag,
    flags_of,
    named_model,
    quoted,
    value_of,
)

MAX_FIXES = 4
TRAINING = (
    *("prompts_per_step", "num_generations", "mean_completion_length"),
    *("sequence_length", "micro_batch_size", "zero_stage", "precision", "optimizer", "recompute", "loss", "attention"),
    *("tensor_parallel_size", "model_code"),
)
SERVING = (
    *("concurrency", "context", "input_tokens", "output_tokens", "tensor_parallel_size", "kv_cache"),
    *("gpu_memory_utilization", "max_num_batched_tokens", "enforce_eager"),
)


def answer_page(document: Mapping[str, Any], memory: Term, opened: Sequence[Term], width: int) -> Page:
    """`memory`: the breakdown at the peak; `opened`: breakdowns of TTFT and TPOT, where there are any."""
    page = Page(width)
    question, verdict = document["question"], document["verdict"]
    serves = "serving" in document
    line = verdict_line(document)
    page.verdict(line, line.tone)
    page.dim(serving_subject(document) if serves else training_subject(document))
    if read := document.get("read"):
        add_read(page, read)
    page.blank()
    if serves:
        add_serving(page, document, opened, only="target")
    add_bar(page, memory_parts(memory), verdict["usable_bytes"], _band(document), peak_of(memory), engine_of(question))
    fits = verdict["fits"] is not False
    if serves:
        add_serving(page, document, opened, only="figures" if fits else "room")
    elif fits:
        add_training(page, document)
    _add_chosen(page, document)
    names = SERVING[1:] if "request_rate" in question or "trace" in question else SERVING
    flags = assumed(question, names if serves else TRAINING)
    page.options("assumed", flags, fewer=FEWER_ASSUMED, drop=ASSUMED)
    moves = [move for move in document.get("advice", ()) if move["fits"]]
    if fits:
        _add_better(page, document)
    elif moves:
        page.blank()
        fixes = [_fixes(page, moves[:most], serves=serves) for most in (MAX_FIXES, MAX_FIXES - 1, 2, 1)]
        page.block(fixes[0], (FEWER_ROWS, fixes[1]), (TWO_FIXES, fixes[2]), (ONE_FIX, fixes[3]))
    add_notes(page, document["warnings"])
    _add_nearest(page, document)
    page.blank()
    _add_commands(page, document, fits=fits, serves=serves)
    return page


def answer_text(answer: Any, width: int) -> list[Runs]:
    """The lines of an answer, at most 24."""
    return answer_page(answer.without_trees(), answer.memory, answer.opened, width).lines(MAX_LINES)


def _band(document: Mapping[str, Any]) -> Sequence[float] | None:
    band = document["verdict"]["band"]
    return band if band and gib(band[0]) != gib(band[1]) else None


def _add_chosen(page: Page, document: Mapping[str, Any]) -> None:
    """What was chosen so that it fits, and what the runtime's defaults would have needed."""
    chosen = document.get("chosen")
    if not chosen:
        return
    usable = document["verdict"]["usable_bytes"]
    without = say(
        "`{option}`: without it {needed} GiB, {over} too much",
        option=worded(str(chosen["text"])),
        needed=gib(chosen["needed_bytes"]),
        over=gib(max(chosen["needed_bytes"] - usable, 0)),
    )
    before, after = chosen.get("step_seconds"), document.get("step_time")
    if before and after:
        without = say(
            "{text}; a step takes {after} instead of {before}",
            text=without,
            after=seconds(after["value"]),
            before=seconds(before),
        )
    page.field("chosen", without, drop=CHOSEN)


def _add_better(page: Page, document: Mapping[str, Any]) -> None:
    best, state = recommended_move(document)
    if best is None:
        return
    text = serving_change(document, best, state) if "serving" in document else training_change(document, best, state)
    page.field("better", text, drop=BETTER)


def _fixes(page: Page, shown: Sequence[Mapping[str, Any]], *, serves: bool) -> list[Runs]:
    """What makes it fit, a line each: memory, speed, money, and what else it changes."""
    header = [Column(say_as("column", "add"), "l"), Column("GiB")]
    cells = [[f"`{flags_of(move)}`", gib(move["needed_bytes"])] for move in shown]
    columns: list[tuple[str, int, list[str]]] = []
    if serves:
        for key, name, keep in (("ttft_seconds", "TTFT", 3), ("tpot_seconds", "TPOT", 4)):
            columns.append((name, keep, seconds_column([move.get(key) or None for move in shown])))
    else:
        columns.append((say_as("column", "step"), 4, seconds_column([move.get("step_seconds") for move in shown])))
    columns.append(("USD/M tokens", 2, money_column([move.get("usd_per_million_tokens") for move in shown])))
    for name, keep, column in columns:
        if any(cell != "-" for cell in column):
            header.append(Column(name, keep=keep))
            for row, cell in zip(cells, column, strict=True):
                row.append(cell)
    header.append(Column(say_as("column", "changes"), "l", keep=5))
    for row, move in zip(cells, shown, strict=True):
        row.append(changed(move) or say("nothing"))
    return page.table_lines(header, cells)


def _add_nearest(page: Page, document: Mapping[str, Any]) -> None:
    near = document.get("nearest_miss")
    if near:
        text = say(
            "nearest: `{option}` still misses {missing} GiB",
            option=worded(near["text"]),
            missing=gib(near["missing_bytes"]),
        )
        page.field("note", text, drop=NOTE)


# An option with an address that ends in -1, and the same with the numbers that follow.
NUMBERED = re.compile(r" (--[a-z-]+) (\S+)-1(:\d+)(?: \1 \2-\d+\3)+")


def add_launch(page: Page, launch: str, drop: int = 0) -> None:
    """The command that starts it; of servers of another role what differs, and the router's command; notes, which may
    be left out.
    """
    first, *others = worded(launch).splitlines()
    if any("  # " in line for line in others):
        first, *others = [line for line in (first, *others) if "  # " in line or line.startswith("# ")]
    page.command("start", first.partition("  # ")[0])
    for line in others:
        command, mark, role = line.partition("  # ")
        if not mark:
            page.field("", line.strip(), drop=drop)
        elif differing := _differing(first, command):
            page.field("", say("# {role}: the same with `{options}`", role=role, options=differing))
        else:
            page.command("", shortened(command), drop=ROUTER)


def shortened(command: str) -> str:
    """A command whose option is given once for each of several servers, by the number in their addresses, as a shell
    expands it.

    >>> shortened("router --decode http://DECODE-1:8000 --decode http://DECODE-2:8000")
    'router --decode=http://DECODE-{1..2}:8000'
    """
    return NUMBERED.sub(lambda found: f" {found[1]}={found[2]}-{{1..{found[0].count(found[1])}}}{found[3]}", command)


def _differing(first: str, command: str) -> str:
    """Options of a command that the first one does not have, of JSON the keys whose values differ; "" where another
    program is started.
    """
    (known_program, *known), (program, *options) = _options(first), _options(command)
    if program != known_program:
        return ""
    values = dict(option.partition(" ")[::2] for option in known)
    differing = [option for option in options if option not in known]
    return " ".join(_differing_keys(values, option) or f"--{option}" for option in differing)


def _differing_keys(known: Mapping[str, str], option: str) -> str:
    """Keys of an option's JSON, with their values, that the option does not have so in `known`; "" of another value."""
    name, _, value = option.partition(" ")
    before, now = (_json(text) for text in (known.get(name, ""), value))
    if not before or not now or not before.keys() <= now.keys():
        return ""
    return ",".join(encode({key: now[key]}).decode()[1:-1] for key in now if before.get(key) != now[key])


def _json(text: str) -> dict[str, Any]:
    """The object in a quoted word of a shell; empty for another word."""
    return decode(text[1:-1]) if text.startswith("'{") and text.endswith("}'") else {}


def _options(command: str) -> list[str]:
    """The program, and each option with its value, of a command without the comment on its role."""
    return [option.strip() for option in command.partition("  # ")[0].split(" --")]


def _add_commands(page: Page, document: Mapping[str, Any], *, fits: bool, serves: bool) -> None:
    """The command that starts it, or the best fix to try; the following question; where to look further."""
    launch = document.get("serving", {}).get("launch")
    near = document.get("nearest_miss")
    missed = fits and bool(document["verdict"].get("missed"))
    if fits and launch and not missed:
        add_launch(page, launch, drop=LAUNCH_NOTE)
    elif fits and not serves and not missed and not document.get("read") and (start := training_start(document)):
        page.command("start", start)
    change: Mapping[str, Any] | None = None
    if not fits and (fix := first_fix(document)):
        change = fix["change"]
    elif not fits and near and near["smallest_machine"]:
        change = {"on": near["smallest_machine"]}
    elif missed and not serves:
        change = change_that_keeps(document)
    if is_unnamed(document):
        if change is not None and document["read"]["file"] not in NO_FILES:
            page.command("try", _tried_in_file(document, change, serves=serves))
        add_more(page)
        return
    if change is not None:
        page.command("try", _tried(document, change, serves=serves))
    following = serving_next(document, fits=fits) if serves else training_next(document, fits=fits)
    if following:
        is_only = missed and change is None
        page.command("try" if is_only else "next", following, drop=0 if is_only else NEXT)
    add_more(page)


def _tried_in_file(document: Mapping[str, Any], change: Mapping[str, Any], *, serves: bool) -> str:
    """The question of another tool's file again, with a change, where the file alone has the model."""
    machine = change.get("on", value_of(document["question"], "on"))
    flags = "".join(f" {flag(name, value)}" for name, value in change.items() if name != "on")
    file = quoted(document["read"]["file"])
    return f"tonnage {'serve' if serves else 'train'} --config {file} --on {machine} --as-is{flags}"


def _tried(document: Mapping[str, Any], change: Mapping[str, Any], *, serves: bool) -> str:
    """The question again, with a change."""
    question = document["question"]
    machine = change.get("on", value_of(question, "on"))
    options = asked_again(question, ("advice", *change))
    flags = "".join(f" {flag(name, value)}" for name, value in change.items() if name != "on")
    return f"tonnage {'serve' if serves else 'train'} {named_model(question)} --on {machine}{options}{flags}"

"""What several short texts share: names of machines, flags of a question, prices, suggestions, notes, commands."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tonnage.documents.question import ASKED
from tonnage.kernel.message import Message, Series
from tonnage.kernel.units import DAY, HOUR, human, money
from tonnage.language import say, worded
from tonnage.render.brief.layout import Page, Runs
from tonnage.render.brief.numbers import count

if TYPE_CHECKING:
    from tonnage.runtimes.parts.tool import NamedTool, Tool

CHIPS = ("TPU", "Trainium", "Inferentia")  # accelerators that are no GPUs
# The name of an option that people know better, or that the question has under another name.
FLAGS = {"concurrency": "users", "deadline_seconds": "deadline", "reserve_bytes": "reserve"}
SET = (*ASKED, "chosen")  # origins of inputs that are no assumption
TIMES = ("ttft", "tpot")
AMOUNTS = ("tokens", "dataset_tokens")
# What is said of a change of the workload, by the option that moves; of others the global batch follows.
WORKLOADS = {"sequence_length": "sequence length", "context": "context", "concurrency": "number of users"}
BATCH, SPEED = "batch size", "speed"
# Beginnings of options that free memory for time, with the same results.
SLOWER = ("offload_", "recompute", "enforce_eager", "expert_layers_on_host", "layers_on_accelerator")
_COUNTS = re.compile(r"^(?:\d+x)+")
_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
# Notes that the first or the second line, or the table of targets, says already.
SAID = (
    "'{name}' is ambiguous; assuming {taken}, not {others}.",
    "--{bound} {limit} is not met: the {names} ({percentile}) {is_now}. ",
    "{said}{what} are served within the limits.",
    "this cluster needs {seconds}, and the deadline is in {deadline}.",
    "the run takes {used}, and the budget buys {hours}.",
)
# Notes that come first: an assumed input decides the figures (nobody published the acceptance of this model's drafts),
# or the machine cannot meet one.
DECISIVE = (
    "acceptance {value:.2f} is {why}; there is one publication. {--acceptance} says that of your load.",
    (
        "acceptance {value:.2f} is {why}; publications differ from {low:.2f} to {high:.2f}. {--acceptance} says that "
        "of your load."
    ),
    (
        "acceptance {value:.2f} is {why}; publications differ from {low:.2f} to {high:.2f}, and where no text "
        "repeats itself none is accepted: TPOT's band reaches that far. {--acceptance} says that of your load."
    ),
    (
        "the tier of a replica holds the cached tokens of {held:,} of its {users:,} users: such a hit rate needs "
        "prefixes that users share, or a larger {@kv_offload_size}."
    ),
)
# In which order parts of the text are left out, the highest first (the peak of the bar is before all).
FEWER_ROWS, MORE_NOTES, FEWER_ASSUMED, TWO_FIXES, PLAN_NOTE, NEXT = 88, 85, 80, 75, 72, 70
PROGRAM, NOTE, THREE_ROWS, ASSUMED, ONE_FIX, ONE_ROW, BETTER, ROOM, COUNTS = 65, 60, 55, 50, 45, 42, 40, 30, 20
LAUNCH_NOTE, COST = 20, 10
ROUTER, SOURCES, WAITS, CHOSEN = COST - 5, COST + 5, LAUNCH_NOTE + 2, COST + 2
DECISIVE_NOTE = ROOM + 5

Question = Mapping[str, Mapping[str, Any]]


def value_of(question: Question, name: str, default: Any = None) -> Any:
    """The value of an input; the default where the question does not have it."""
    entry = question.get(name)
    return default if entry is None else entry["value"]


def carbon_text(document: Mapping[str, Any]) -> str:
    """Emissions on the grid that was asked for; empty where none was."""
    carbon = document.get("carbon")
    if not carbon:
        return ""
    amount = human(carbon["value"], carbon["unit"])
    if "serving" in document:
        return say("{carbon} per hour", carbon=amount)
    is_whole = "seconds" in document.get("run", {})
    return say("{carbon} for the run", carbon=amount) if is_whole else say("{carbon} per step", carbon=amount)


def gpus(machine: str, number: int) -> str:
    """A number of accelerators."""
    if any(name in machine for name in CHIPS):
        return say("1 chip") if number == 1 else say("{count} chips", count=f"{number:,}")
    return say("1 GPU") if number == 1 else say("{count} GPUs", count=f"{number:,}")


def accelerator_of(machine: str) -> str:
    """The name of a machine's accelerator: 8x8xH100-SXM-80GB is of H100-SXM-80GB."""
    return _COUNTS.sub("", machine)


def accelerators_in(machine: str) -> int:
    """How many accelerators the name of a machine counts: 8x8xH100-SXM-80GB has 64, H100 one."""
    counts = _COUNTS.match(machine)
    return prod(map(int, counts[0].rstrip("x").split("x"))) if counts else 1


def flag(name: str, value: Any) -> str:
    """An input as people type it."""
    option = FLAGS.get(name, name).replace("_", "-")
    if isinstance(value, bool):
        return f"--{option}" if value else f"--no-{option}"
    if name == "deadline_seconds":
        return f"--{option} {_time_left(value)}"
    if name in AMOUNTS and isinstance(value, int):
        return f"--{option} {_amount(value)}"
    if name in TIMES and isinstance(value, float | int):
        return f"--{option} {value * 1e3:g}ms" if value < 1 else f"--{option} {value:g}s"
    return f"--{option} {quoted(f'{value:.12g}' if isinstance(value, float) else str(value))}"


def _amount(value: int) -> str:
    """A number of tokens as it is typed: 15T, 2B, 1500000001."""
    scales = ((10**12, "T"), (10**9, "B"), (10**6, "M"))
    size, letter = next(
        ((size, letter) for size, letter in scales if value >= size and value % (size // 1000) == 0), (1, "")
    )
    return f"{value / size:.12g}{letter}" if letter else str(value)


def _time_left(value: float) -> str:
    """Seconds as a deadline is typed."""
    size, unit = next(((size, unit) for size, unit in ((DAY, "d"), (HOUR, "h")) if value % size == 0), (1, "s"))
    return f"{value / size:.12g}{unit}"


def quoted(word: str) -> str:
    """A word as a shell takes it."""
    return word if word and _SAFE.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"


def assumed(question: Question, names: Iterable[str]) -> list[str]:
    """Inputs that were not given, as flags, in the order of `names`."""
    return [
        flag(name, entry["value"])
        for name in names
        if (entry := question.get(name)) and entry["from"] not in SET and entry["value"] is not None
    ]


def given(question: Question, names: Iterable[str], origins: Collection[str] = SET) -> str:
    """Inputs that were given or chosen, as flags with a blank before each."""
    return "".join(
        f" {flag(name, _tool_name(question, name) or entry['value'])}"
        for name in names
        if (entry := question.get(name)) and entry["from"] in origins and entry["value"] is not None
    )


def tool_of(question: Question) -> "Tool | None":
    """The tool that was asked for, such as axolotl, where the question names the runtime that it runs on."""
    name = _tool_name(question, "runtime")
    if not name:
        return None
    from tonnage.runtimes.parts.tools import TOOLS

    return TOOLS[name]


def engine_tool_of(question: Question) -> "NamedTool | None":
    """The tool that was asked for, such as vllm-ascend, where the question names the engine that it runs on."""
    name = _tool_name(question, "engine")
    if not name:
        return None
    from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS

    return ENGINE_TOOLS[name]


def _tool_name(question: Question, option: str) -> str:
    entry = question.get(option)
    return str(entry.get("tool", "")) if isinstance(entry, Mapping) else ""


def asked_again(question: Question, without: Collection[str] = (), origins: Collection[str] = SET) -> str:
    """Every input that was given or chosen and can be typed, but model and machine and those of `without`, as flags
    with a blank before each.
    """
    names = (name for name, entry in question.items() if not isinstance(entry["value"], list | dict))
    return given(question, (name for name in names if name not in ("model", "on", *without)), origins)


def flags_of(move: Mapping[str, Any]) -> str:
    """A change as it is typed, under another tool's file as it is written there."""
    return str(move.get("in_tool") or "") or " ".join(flag(name, value) for name, value in move["change"].items())


def named_model(question: Question) -> str:
    """MODEL as it is typed."""
    return quoted(str(value_of(question, "model")))


# ---- the load


def users_text(users: float | None) -> str:
    """A number of users; nothing where it is not known."""
    if not users:
        return ""
    return say("1 user") if users == 1 else say("{users} users", users=count(users))


def at_load(question: Question) -> str:
    """At which load the times hold."""
    if "trace" in question:
        return say("in the trace's mean")
    if "request_rate" in question:
        return say("at {rate} requests/s", rate=rate_text(question))
    users = users_text(value_of(question, "concurrency"))
    return say("at {users}", users=users) if users else ""


def rate_text(question: Question) -> str:
    """Requests a second, as they were asked for."""
    return f"{value_of(question, 'request_rate'):,.10g}"


def is_load_given(question: Question) -> bool:
    """Whether users, a rate or a trace were given."""
    if "trace" in question or "request_rate" in question:
        return True
    return question.get("concurrency", {}).get("from") in SET


# ---- prices


def usd_per_hour(document: Mapping[str, Any]) -> str:
    """Whose price it is, and when it was looked up; nothing where nobody says."""
    entry = document["question"].get("price")
    if entry is None:
        return ""
    facts = dict(_facts(entry.get("why", "")))
    where = str(entry["value"]).removesuffix(", all")
    kind = say(str(facts["kind"])) if "kind" in facts else ""
    return say(", ").join(filter(None, (where, kind, str(facts.get("as_of", "")))))


def _facts(text: Any) -> Iterator[tuple[str, Any]]:
    """Values of a message, and of the messages in it."""
    if isinstance(text, Series):
        for item in text.items:
            yield from _facts(item)
    elif isinstance(text, Message):
        for name, value in text.values.items():
            yield name, value
            yield from _facts(value)


# ---- suggestions, notes, commands


def changed(move: Mapping[str, Any]) -> str:
    """What a move changes beside memory; nothing where it changes nothing."""
    change = move["change"]
    if move["changes"] == "workload":
        return say(next((word for name, word in WORKLOADS.items() if name in change), BATCH))
    if move["changes"] == "nothing":
        return say(SPEED) if any(name.startswith(SLOWER) for name in change) else ""
    return say(move["changes"])


def with_changes(parts: Iterable[str], move: Mapping[str, Any]) -> str:
    """`--flag: one thing, another; changes the numerics`."""
    text = say("`{option}`: {what}", option=flags_of(move), what=say(", ").join(filter(None, parts)))
    provider = move.get("provider")  # where it is not the provider of the machine that was asked about
    text = say("{text}; price of {provider}", text=text, provider=provider) if provider else text
    change = changed(move)
    return say("{text}; changes {what}", text=text, what=change) if change else text


def money_change(before: float | None, after: float | None) -> str:
    """USD per million tokens, before and after, where that is known and not the same."""
    if before is None or after is None or money(before) == money(after):
        return ""
    return say("{before} -> {after} USD/M tokens", before=money(before), after=money(after))


def add_notes(page: Page, warnings: Sequence[str], most: int = 2, drop: int = NOTE) -> None:
    """Notes of an answer, a few of them, without those that other lines say already."""
    notes = sorted(
        (warning for warning in warnings if not _is(SAID, warning)), key=lambda note: not _is(DECISIVE, note)
    )
    if not notes:
        return
    if _is(DECISIVE, notes[0]):
        drop = min(drop, DECISIVE_NOTE)

    def lines(number: int, *, counted: bool = True) -> list[Runs]:
        left = [say("+{count} with `-v`", count=len(notes) - number)] if counted and len(notes) > number else []
        return page.field_lines("note", *map(worded, notes[:number]), *left)

    forms = [lines(most), lines(1), lines(1, counted=False)]
    fewer = [(MORE_NOTES - at, form) for at, form in enumerate(forms[1:]) if len(form) < len(forms[0])]
    page.block(forms[0], *fewer, (drop, []))


def _is(templates: Collection[str], warning: str) -> bool:
    if isinstance(warning, Series):
        return bool(warning.items) and _is(templates, warning.items[0])
    return isinstance(warning, Message) and warning.template in templates


def add_more(page: Page, *, html: bool = True) -> None:
    """Where to look further."""
    page.more(say("`-v` all figures"), say("`--formulas` how"), "`--json`", *(["`--html FILE`"] if html else []))

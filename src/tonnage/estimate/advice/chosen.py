"""What was not given, chosen so that it fits: which options may move, and how the question and the document say it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tonnage.documents.advice import Advice, Chosen
from tonnage.estimate.advice.moves import Ladder, flags_of, ordered
from tonnage.estimate.inputs import Question
from tonnage.kernel.message import Message
from tonnage.kernel.units import human


def given_options(options: Struct) -> dict[str, Any]:
    """The options that were given, by name."""
    values = ((name, getattr(options, name)) for name in options.__struct_fields__)
    return {name: value for name, value in values if value is not None}


def free_ladders(ladders: Iterable[Ladder], given: Mapping[str, Any], never: Collection[str] = ()) -> Iterator[Ladder]:
    """The ladders that keep workload and numerics and move no option that was given. `never`: options that are only
    suggested, never chosen.
    """
    for ladder in ladders:
        if ladder.changes != "nothing" or not ladder.steps:
            continue
        step = ladder.steps[0]
        if not any(name in never or (name in given and given[name] != value) for name, value in step.items()):
            yield ladder


def chosen_of(change: dict[str, Any], needed_bytes: int, step_seconds: float | UnsetType | None = UNSET) -> Chosen:
    """The change as the document has it. `needed_bytes`, `step_seconds`: with the defaults."""
    return Chosen(change=change, text=flags_of(change), needed_bytes=needed_bytes, step_seconds=step_seconds)


def beside_chosen(moves: Iterable[Advice], chosen: Chosen, form: type[Struct]) -> Iterator[Advice]:
    """The moves with the flags of what was chosen: added to those that were given they give the move's figures."""
    for move in moves:
        change = ordered({**chosen.change, **move.change}, form)
        yield replace(move, change=change, text=flags_of(change))


def mark_chosen(question: Question, chosen: Chosen, usable: int) -> None:
    """Say of every option that was chosen why it is what it is."""
    why = Message(
        "the defaults need {needed} of {usable}",
        needed=human(chosen.needed_bytes, "bytes"),
        usable=human(usable, "bytes"),
    )
    entries = question.entries
    for name in chosen.change:
        if name in entries:
            question.put(name, entries[name].value, "chosen", why)

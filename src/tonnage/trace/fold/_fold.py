"""Folding: align three traces, learn their rules, and write the events of the program with more layers."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.trace.events import Events, Mark, check
from tonnage.trace.fold._align import Piece, pieces
from tonnage.trace.fold._errors import DoesNotFold
from tonnage.trace.fold._rules import FreeRule, Loop, Point, looped, once
from tonnage.trace.recording import Answered, Fired, Recording

Key = TypeVar("Key")


def fold(traces: Sequence[Events], layers: Sequence[int], num_layers: int) -> Events:
    """The events of the program with `num_layers` layers, from traces of it with the three `layers`, a period apart.

    Raises DoesNotFold where the traces do not repeat, InvalidInput for numbers of layers that are not a period apart.
    """
    more = _more(layers, num_layers)
    for trace in traces:
        check(trace)
    parts = pieces(traces)
    rules = _rules(traces, parts, layers[1] - layers[0])
    for index, trace in enumerate(traces):
        _same(_expanded(parts, rules, trace, index), trace)
    folded = _expanded(parts, rules, traces[0], more)
    try:
        check(folded)
    except InvalidInput as error:
        raise DoesNotFold(parts[-1].stage, str(error)) from None
    return folded


def fold_recordings(recordings: Sequence[Recording], layers: Sequence[int], num_layers: int) -> Recording:
    """The recording of the program with `num_layers` layers, with events folded and counts continued. Raises as
    `fold`.
    """
    more = _more(layers, num_layers)
    first = recordings[0]
    events = fold([recording.events for recording in recordings], layers, num_layers)
    answers = _continued(
        [{(a.operation, a.dtype, a.answer): a.times for a in recording.answers} for recording in recordings], more
    )
    return Recording(
        events=events,
        profile=first.profile,
        front_end=first.front_end,
        program=first.program,
        torch=first.torch,
        operations=_continued([{"operations": recording.operations} for recording in recordings], more)["operations"],
        overlays=_overlays(recordings, more),
        answers=tuple(Answered(*key, times) for key, times in answers.items()),
        attention=_continued([recording.attention for recording in recordings], more),
        unmodelled=_continued([recording.unmodelled for recording in recordings], more),
        notes=first.notes,
    )


def _overlays(recordings: Sequence[Recording], more: int) -> tuple[Fired, ...]:
    calls = _continued([{fired.name: fired.calls for fired in one.overlays} for one in recordings], more)
    sizes = _continued([{fired.name: fired.bytes for fired in one.overlays} for one in recordings], more)
    last = {fired.name: fired for fired in recordings[-1].overlays}
    return tuple(Fired(name, calls[name], sizes[name], last[name].exact, last[name].source) for name in calls)


def _continued(counts: Sequence[Mapping[Key, int]], more: int) -> dict[Key, int]:
    """Counts, continued by the same step for each period."""
    counted = {}
    for key in counts[-1]:
        first, second, third = (count.get(key, 0) for count in counts)
        if third - second != second - first:
            raise DoesNotFold(
                "counts",
                Message(
                    "{key} is counted {first}, {second} and {third} times in three traces.",
                    key=key,
                    first=first,
                    second=second,
                    third=third,
                ),
            )
        counted[key] = first + more * (second - first)
    return counted


def _more(layers: Sequence[int], num_layers: int) -> int:
    """Number of periods more than in the first trace."""
    if len(layers) != 3 or not 0 < layers[0] < layers[1] or layers[2] - layers[1] != layers[1] - layers[0]:
        raise InvalidInput(
            "layers: folding needs three traces, each with a period more. Got {layers}.", layers=tuple(layers)
        )
    period = layers[1] - layers[0]
    if num_layers < layers[0] or (num_layers - layers[0]) % period:
        raise InvalidInput(
            "num_layers must be {layers} and a multiple of {period}. Got {num_layers}.",
            layers=layers[0],
            period=period,
            num_layers=num_layers,
        )
    return (num_layers - layers[0]) // period


Spot = tuple[int, int, int]  # piece, place in it, repetition


def _spots(parts: Sequence[Piece], more: int) -> list[Spot]:
    """The spot of each event, in order."""
    return [
        (number, place, i)
        for number, part in enumerate(parts)
        for i in range(part.times(more))
        for place in range(part.length)
    ]


def _begun(parts: Sequence[Piece], spot: Spot) -> Spot:
    """The spot; the end of a repetition without its beginning is repetition -1 of its loop."""
    piece, place, i = spot
    if not parts[piece].begun:
        return spot
    return piece + 1, parts[piece + 1].length - parts[piece].length + place, i - 1


def _rules(traces: Sequence[Events], parts: Sequence[Piece], step: int) -> list[list[Loop]]:
    """The rules by piece and place."""
    seen: list[list[list[Point]]] = [[[] for _ in range(part.length)] for part in parts]
    for more, trace in enumerate(traces):
        spots = _spots(parts, more)
        made_at: dict[int, Spot] = {}
        for event, spot in zip(trace.order, spots, strict=True):
            piece, place, i = spot
            if event >= 0:
                made_at[event] = _begun(parts, spot)
                point = Point(i, more, trace.allocations[event], spot)
            else:
                point = Point(i, more, None, made_at[~event])
            seen[piece][place].append(point)
    return [[_learned(part, points, step) for points in places] for part, places in zip(parts, seen, strict=True)]


def _learned(part: Piece, points: Sequence[Point], step: int) -> Loop:
    rule = once(points, step) if part.count is None else looped(points, part.count, step)
    if rule is None:
        shown = points[-1].allocation
        what = (
            "a free"
            if shown is None
            else Message("an allocation by {operation}", operation=shown.operation or "no operation")
        )
        raise DoesNotFold(part.stage, Message("{what} follows no rule from layer to layer.", what=what))
    return rule


def _expanded(parts: Sequence[Piece], rules: Sequence[Sequence[Loop]], like: Events, more: int) -> Events:
    """The events with `more` periods than in the first trace; marks are named as in `like`."""
    events = Events()
    numbers: list[list[int]] = [[] for _ in parts]  # each piece's allocations, by its events in order; -1: a free
    names = [mark.name for mark in like.marks]
    for index, part in enumerate(parts):
        here, times = numbers[index], part.times(more)
        for i in range(times):
            for loop in rules[index]:
                rule = loop.at(i, times)
                if isinstance(rule, FreeRule):
                    events.free(_number(numbers, parts, rule, i, more, part.stage))
                    here.append(-1)
                else:
                    here.append(events.allocate(rule.at(i, more)))
        if part.ends and len(events.marks) < len(names):
            events.marks.append(Mark(len(events.order), names[len(events.marks)]))
    return events


def _number(
    numbers: Sequence[Sequence[int]], parts: Sequence[Piece], rule: FreeRule, i: int, more: int, stage: str
) -> int:
    """The allocation that a free refers to."""
    piece, place, repetition = rule.piece, rule.place, rule.repetition.at(i, more)
    if repetition == -1 and parts[piece - 1].begun:
        piece, place, repetition = piece - 1, place - parts[piece].length + parts[piece - 1].length, 0
    at = repetition * parts[piece].length + place
    if min(repetition, place) < 0 or at >= len(numbers[piece]) or numbers[piece][at] < 0:
        raise DoesNotFold(stage, "a free would come before its allocation.")
    return numbers[piece][at]


def _same(folded: Events, trace: Events) -> None:
    """Check that the rules reproduce every trace that they were learned from."""
    for position, (here, there) in enumerate(zip(folded.order, trace.order, strict=True)):
        if here != there or (here >= 0 and folded.allocations[here] != trace.allocations[there]):
            raise DoesNotFold(_stage_at(trace, position), "its rules do not give back the trace.")
    if folded.marks != trace.marks:
        raise DoesNotFold(trace.marks[0].name, "its rules do not give back the marks.")


def _stage_at(events: Events, position: int) -> str:
    return next((mark.name for mark in events.marks if position < mark.position), "after the last mark")

"""What would let it be more: changes that estimates advise just beyond the answer, with each of which the whole
search is run again.
"""

from collections.abc import Iterable

from tonnage.documents.advice import ORDER, ChangeDocument
from tonnage.documents.max import RaiseDocument
from tonnage.kernel.errors import TonnageError
from tonnage.search.maximum.answer import flags
from tonnage.search.maximum.case import Case
from tonnage.search.maximum.search import SearchResult, search
from tonnage.search.maximum.serving import ServingRow

AHEAD = 2  # moves are asked for at half as much again
TRIED, SHOWN, OF_A_KIND = 10, 6, 2  # moves
RAISED = ("memory", "service level", "engine")  # what another plan changes


def raises(case: Case, result: SearchResult) -> list[RaiseDocument]:
    """Changes with their new largest value, those that change least first; each is a gain."""
    if result.limit.by not in RAISED:
        return []
    advice = []
    for move in _moves(case, result):
        try:
            other = case.changed(move.change)
            again = search(other, quick=True)
        except TonnageError:
            continue
        if again.at is not None and again.at.value > (result.value or 0):
            options = {**move.change, **other.said(again.at.value)}
            advice.append(
                RaiseDocument(
                    change=move.change,
                    text=move.text,
                    changes=move.changes,
                    value=again.at.value,
                    options=options,
                    needed_bytes=again.at.needed or 0,
                    limit="memory" if result.limit.by == "engine" else again.limit.by,
                )
            )
    return _best(advice)


def _moves(case: Case, result: SearchResult) -> list[ChangeDocument]:
    """The suggestions of the estimates that leave the value itself alone."""
    if isinstance(case, ServingRow) and result.limit.by == "engine" and result.by_memory is not None:
        options = case.running_all().said(result.by_memory)
        change = {name: value for name, value in options.items() if name != case.what.option}
        return [ChangeDocument(change=change, text=flags(change), changes="nothing")]
    far = _value_ahead(case, result)
    near = far if result.beyond is None else result.beyond.value
    moves = [
        *case.moves(far),
        *(case.moves(near) if near != far else ()),
    ]  # what brings less than half as much again is worth saying too
    distinct: dict[frozenset[str], ChangeDocument] = {}
    for move in moves:
        if case.what.option not in move.change and "layers_on_accelerator" not in move.change:
            kind = frozenset({"on"} if "on" in move.change else move.change)  # one machine is enough
            distinct.setdefault(kind, move)
    return list(distinct.values())[:TRIED]


def _value_ahead(case: Case, result: SearchResult) -> int:
    """A value that does not fit, some way beyond the largest, so that a change that is asked for brings more than
    one step.
    """
    if result.limit.by == "service level" and result.by_estimate is not None:
        following = case.values.index(result.by_estimate) + 1  # the first that the estimate itself finds too slow
        return case.values[min(following, len(case.values) - 1)]
    if result.beyond is not None and (result.at is None or result.limit.by == "service level"):
        return result.beyond.value
    if result.at is None:
        return case.values[0]
    values = case.values
    place = values.index(result.at.value)
    further = min(place + max(1, place // AHEAD), len(values) - 1)
    outcome = case.ask(values[further])
    return values[further] if outcome.limit is None else values[min(place + 1, len(values) - 1)]


def _best(moves: Iterable[RaiseDocument]) -> list[RaiseDocument]:
    ranked = sorted(moves, key=lambda move: (ORDER.index(move.changes), -move.value))
    few = [
        move
        for i, move in enumerate(ranked)
        if sum(earlier.changes == move.changes for earlier in ranked[:i]) < OF_A_KIND
    ]
    return few[:SHOWN]

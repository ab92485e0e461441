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


def raises(case: Case, found: SearchResult) -> list[RaiseDocument]:
    """Changes with their new largest value, those that change least first; each is a gain."""
    if found.limit.by not in RAISED:
        return []
    made = []
    for move in _moves(case, found):
        try:
            other = case.changed(move.change)
            again = search(other, quick=True)
        except TonnageError:
            continue
        if again.at is not None and again.at.value > (found.value or 0):
            said = {**move.change, **other.said(again.at.value)}
            made.append(
                RaiseDocument(
                    change=move.change,
                    text=move.text,
                    changes=move.changes,
                    value=again.at.value,
                    options=said,
                    needed_bytes=again.at.needed or 0,
                    limit="memory" if found.limit.by == "engine" else again.limit.by,
                )
            )
    return _best(made)


def _moves(case: Case, found: SearchResult) -> list[ChangeDocument]:
    """The suggestions of the estimates that leave the value itself alone."""
    if isinstance(case, ServingRow) and found.limit.by == "engine" and found.by_memory is not None:
        said = case.running_all().said(found.by_memory)
        change = {name: value for name, value in said.items() if name != case.what.option}
        return [ChangeDocument(change=change, text=flags(change), changes="nothing")]
    far = _ahead(case, found)
    near = far if found.beyond is None else found.beyond.value
    moves = [
        *case.moves(far),
        *(case.moves(near) if near != far else ()),
    ]  # what brings less than half as much again is worth saying too
    kept: dict[frozenset[str], ChangeDocument] = {}
    for move in moves:
        if case.what.option not in move.change and "layers_on_accelerator" not in move.change:
            kept.setdefault(frozenset(move.change), move)
    return list(kept.values())[:TRIED]


def _ahead(case: Case, found: SearchResult) -> int:
    """A value that does not fit, some way beyond the largest, so that a change that is asked for brings more than
    one step.
    """
    if found.beyond is not None and (found.at is None or found.limit.by == "service level"):
        return found.beyond.value
    if found.at is None:
        return case.values[0]
    values = case.values
    place = values.index(found.at.value)
    further = min(place + max(1, place // AHEAD), len(values) - 1)
    outcome = case.ask(values[further])
    return values[further] if outcome.refused is None else values[min(place + 1, len(values) - 1)]


def _best(moves: Iterable[RaiseDocument]) -> list[RaiseDocument]:
    ranked = sorted(moves, key=lambda move: (ORDER.index(move.changes), -move.value))
    few = [
        move
        for i, move in enumerate(ranked)
        if sum(earlier.changes == move.changes for earlier in ranked[:i]) < OF_A_KIND
    ]
    return few[:SHOWN]

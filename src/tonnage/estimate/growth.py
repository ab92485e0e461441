"""What of a plan grows with its sequence length, and how: found once with a polynomial for the length, known from then
on for all questions that differ in nothing else.

People and programs ask about one run again and again and change one size, and each answer that looks for what fits asks
dozens of plans. Bytes are those of a walk but for the order of its sums, so they decide what is clearly larger or
smaller, and nothing else.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import ge, gt, le, lt
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.memory import Step
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.polynomial import Coefficients, Condition, NotPolynomial, Polynomial, value_of
from tonnage.spec import Cluster, TrainingPlan

MOST = 4096  # things that are known, those that were asked for last
PIECES = 6  # of one of them: for each range of lengths the moment that needs most is another
TRIES = 1  # of what was no polynomial once: at another length it may be
ORDERED = (lt, le, gt, ge)


class Piece(Struct, frozen=True):
    """What was found, for lengths at which these conditions hold."""

    conditions: tuple[Condition, ...]
    found: Any


class Known(Struct):
    """What is known of one thing. `cluster`: the machine that it is on; `asker`: whose question it was first."""

    cluster: Cluster
    asker: object
    pieces: list[Piece]
    failures: int = 0


_KNOWN: dict[Hashable, Known] = {}


def grown_bytes(model: Model, plan: TrainingPlan, cluster: Cluster, asker: object) -> float | None:
    """Bytes of the fullest accelerator, but for the order of sums; None where they are not known without a walk.
    `asker`: what stands for the question.
    """

    def walked(length: Polynomial) -> Coefficients:
        needed = Step(model, replace(plan, sequence_length=length), cluster).walk().needed
        return needed.coefficients if isinstance(needed, Polynomial) else (needed,)

    length = plan.sequence_length
    piece = growing((model, replace(plan, sequence_length=0)), cluster, length, asker, walked)
    return None if piece is None else value_of(piece.found, length)


def growing(
    key: Hashable, cluster: Cluster, length: int, asker: object, find: Callable[[Polynomial], Any]
) -> Piece | None:
    """What `find` finds for sequences around so long; None where that is not known yet, or is no polynomial.

    It is looked for when a second question asks. `key`: all that it depends on, beside the length and the machine.
    """
    key = (key, cluster.num_nodes, cluster.accelerators_per_node)
    known = _KNOWN.pop(key, None)
    if known is None or known.cluster != cluster:
        known = Known(cluster, asker, [])
    _KNOWN[key] = known  # as the last one
    if len(_KNOWN) > MOST:  # a part at once: a list of all is made in one piece, whatever other threads do
        for oldest in list(_KNOWN)[: len(_KNOWN) - MOST * 7 // 8]:
            _KNOWN.pop(oldest, None)
    for piece in known.pieces:
        for condition in piece.conditions:
            if not condition.holds(length):
                break
        else:
            return piece
    if known.failures > TRIES or known.asker is asker:
        return None
    found = _piece(length, find)
    if found is None:
        known.failures += 1
    else:
        known.pieces = [found, *known.pieces[: PIECES - 1]]
    return found


def _piece(length: int, find: Callable[[Polynomial], Any]) -> Piece | None:
    unknown = Polynomial.unknown(length)
    try:
        found = find(unknown)
    except (NotPolynomial, TypeError, TonnageError):  # TypeError: somebody looks it up, or makes an array of it
        return None
    return Piece(tuple(_tightest(unknown.asked, length)), found)


def _tightest(asked: Iterable[Condition], at: float) -> Iterator[Condition]:
    """Of conditions that hold up to some length, or from one on, those that end first; and all others."""
    ends: dict[bool, list[tuple[float, Condition]]] = {False: [], True: []}  # whether it holds beyond its end
    for condition in asked:
        constant, *powers = condition.difference
        if len(powers) == 1 and condition.compare in ORDERED:
            end = -constant / powers[0]
            ends[condition.holds(end + 1)].append((abs(end - at), condition))
        else:
            yield condition
    for of_side in ends.values():
        first = min((distance for distance, _ in of_side), default=0.0)
        yield from (condition for distance, condition in of_side if distance <= first + 1)

"""A machine of larger cards as a suggestion, where its tokens cost less than those of more of the same."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from tonnage.catalogue import cluster as cluster_named
from tonnage.documents.advice import ORDER
from tonnage.estimate.advice.moves import Outcome, Paid, Suggestions, can_be_said, move_of, paid_of
from tonnage.estimate.money.bill import Rent
from tonnage.spec import Cluster

MAX_OTHERS = 2  # larger cards on which it fits whose prices are compared


def with_cheaper_machine(
    advice: Suggestions,
    others: Iterable[Sequence[Cluster]],
    ask: Callable[[Cluster], Outcome | None],
    rent: Callable[[Cluster], Rent | None],
    needed: int,
    reserve: int,
    now: Paid | None = None,
) -> Suggestions:
    """The suggestions with a machine of larger cards instead of more of the same, where a million tokens cost less on
    it; where nobody knows that, where an hour costs less; where a price is not known, where it has fewer accelerators.
    `others`: machines of one card each, fewer cards first.
    """
    at = next((place for place, move in enumerate(advice.moves) if "on" in move.change), None)
    if at is None:
        return advice
    before = advice.moves[at]
    same = cluster_named(before.change["on"])
    fitting = _fitting_machines(others, ask, reserve)
    candidates = list(islice(fitting, MAX_OTHERS))
    of_tokens, an_hour = before.usd_per_million_tokens or None, rent(same)
    cheaper = []
    for place, (machine, outcome) in enumerate(candidates):
        million = paid_of(outcome).usd if of_tokens and outcome.pace else None
        cost = rent(machine) if an_hour else None
        if of_tokens and million:
            is_cheaper, usd = million < of_tokens, million
        elif an_hour and cost:
            is_cheaper, usd = cost.usd < an_hour.usd, cost.usd
        else:
            is_cheaper, usd = machine.size < same.size, 0.0
        if is_cheaper:
            cheaper.append((usd, machine.size, place))
    for _, _, place in sorted(cheaper):
        machine, outcome = candidates[place]
        usable = machine.accelerator.memory.usable_bytes - reserve
        changes = max(outcome.changes, "machine", key=ORDER.index)
        move = move_of(outcome, changes, needed, usable, None, now)
        if move.serves is not False or before.serves is False:
            moves = [*advice.moves[:at], move, *advice.moves[at + 1 :]]
            moves.sort(key=lambda move: (move.serves is False, ORDER.index(move.changes)))
            return replace(advice, moves=moves)
    return advice


def _fitting_machines(
    others: Iterable[Sequence[Cluster]], ask: Callable[[Cluster], Outcome | None], reserve: int
) -> Iterator[tuple[Cluster, Outcome]]:
    """Of each card the first machine on which it fits."""
    for machines in others:
        for machine in machines:
            outcome = ask(machine)
            usable = machine.accelerator.memory.usable_bytes - reserve
            if outcome is not None and outcome.fits(usable) and can_be_said(outcome):
                yield machine, outcome
                break

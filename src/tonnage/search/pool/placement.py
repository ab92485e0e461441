"""The answer of a placement, and what all kinds of them share: whom a stage is put on, what it costs, what is
proven.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from tonnage.documents.document import builtins
from tonnage.documents.pool import (
    JobRow,
    MoveRow,
    PoolDocument,
    PoolShown,
    PoolVerdict,
    ReplicaRow,
    SearchShown,
    StageRow,
)
from tonnage.documents.question import Entry
from tonnage.kernel.message import Message, listed
from tonnage.kernel.units import counted
from tonnage.search.pool.highs import Effort
from tonnage.search.pool.parts import Kind, Pool

OPTIMAL = 1e-6  # a gap that only rounding leaves


class Placement(Struct, frozen=True, kw_only=True, eq=False):
    """What is placed where. `document`: all of it; `status`: 0 all is placed, 3 it does not fit."""

    document: PoolDocument

    @property
    def placed(self) -> bool:
        return self.document.verdict.placed

    @property
    def status(self) -> int:
        return 0 if self.placed else 3

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)

    def __repr__(self) -> str:
        return f"<Placement {self.document.verdict.text}>"


def shown(pool: Pool) -> PoolShown:
    """The pool in the form that documents show."""
    types: dict[str, int] = {}
    for kind in pool.kinds:
        types[kind.name] = types.get(kind.name, 0) + kind.size
    return PoolShown(
        name=pool.inventory.pool,
        accelerators=pool.size,
        types=types,
        free_bytes=pool.free_bytes,
        left=sorted(pool.left),
        joined=sorted(pool.joined),
    )


def searched(
    effort: Effort, objective: str, unit: str, considered: int, value: float | None, bound: float | None
) -> SearchShown:
    """What the search proved, and its effort."""
    gap = None
    if value is not None and bound is not None:
        gap = abs(value - bound) / abs(value) if value else 0.0
        gap = 0.0 if gap <= OPTIMAL else gap
    return SearchShown(
        objective=objective,
        unit=unit,
        value=value,
        bound=bound,
        gap=gap,
        considered=considered,
        programs=effort.programs,
        nodes=effort.nodes,
        cuts=effort.cuts,
        seconds=effort.seconds,
    )


def proof(search: SearchShown) -> str:
    """The sentence that says how far the answer is proven optimal."""
    if search.gap is None:
        return "nothing is proven"
    return (
        "proven optimal (gap 0 %)"
        if search.gap == 0
        else Message("within {gap:.2g} % of the best that there can be", gap=100 * search.gap)
    )


def document(
    pool: Pool,
    effort_shown: SearchShown,
    placed_as: Any,
    *,
    placed: bool,
    text: str,
    question: dict[str, Entry],
    stages: Sequence[StageRow] = (),
    replicas: Sequence[ReplicaRow] = (),
    jobs: Sequence[JobRow] = (),
    moves: Sequence[MoveRow] = (),
    figures: dict[str, float | None] | None = None,
    usd: float | None = None,
    binding: str = "",
    nearest_miss: str = "",
    warnings: Iterable[str] = (),
) -> Placement:
    """The answer as a document."""
    optimal = (
        effort_shown.gap == 0
    )  # as `proof` says it; a placement that leaves jobs out may still be the best there is
    return Placement(
        document=PoolDocument(
            question=question,
            pool=shown(pool),
            verdict=PoolVerdict(placed=placed, optimal=optimal, text=text),
            placed_as=placed_as,
            search=effort_shown,
            stages=list(stages),
            replicas=list(replicas),
            jobs=list(jobs),
            moves=list(moves),
            figures=figures or {},
            usd_per_hour=usd,
            binding=binding,
            nearest_miss=nearest_miss,
            warnings=list(dict.fromkeys(warnings)),
        )
    )


def asked_of(pool: Pool, effort: Effort, **options: Any) -> dict[str, Entry]:
    """The question of a placement: the inventory, the options that were given and the limits of the search."""
    entries = {"inventory": Entry(pool.inventory.pool, "given")}
    for name, value in options.items():
        if value not in (None, "", (), []):
            entries[name] = Entry(value, "given")
    entries["time_limit"] = Entry(effort.limit, "default" if effort.limit == Effort.USUAL else "given", "seconds")
    why = "of the value, that may be left unproven"
    entries["gap"] = Entry(effort.gap, "default" if effort.gap == 0 else "given", why)
    return entries


class Seats:
    """Accelerators of a pool as they are handed out, part by part."""

    def __init__(self, kinds: Iterable[Kind]):
        self.free = {part: kind.each for kind in kinds for part in kind.parts}
        self.node_of = {part: node for kind in kinds for part, node in zip(kind.parts, kind.nodes, strict=True)}

    def take(self, kind: Kind, width: int) -> list[str]:
        """Nodes of the next `width` accelerators of a kind: of one part where it holds them, else of as many whole
        ones.
        """
        if width <= kind.each:
            part = next(part for part in kind.parts if self.free[part] >= width)
            self.free[part] -= width
            return [self.node_of[part]]
        parts = [part for part in kind.parts if self.free[part] == kind.each][: width // kind.each]
        for part in parts:
            self.free[part] = 0
        return [self.node_of[part] for part in parts]


def hourly(counts: Iterable[tuple[Kind, int]]) -> tuple[float | None, list[str]]:
    """US dollars an hour of so many accelerators of each kind; None, and a word, where a price is not known."""
    total, missing = 0.0, []
    for kind, count in counts:
        if kind.price is None:
            missing.append(kind.name)
        else:
            total += kind.price * count
    if missing:
        return None, [
            (
                Message(
                    "no price of {fromkeys} is known: what it costs an hour is not known. Say `price` in the "
                    "inventory.",
                    fromkeys=listed(dict.fromkeys(missing)),
                )
            )
        ]
    return total, []


def plain(value: float) -> str:
    """A number as people write it: "40,000", "39.89", never "4e+04"."""
    return f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else f"{value:.4g}"


def of_types(counts: dict[str, int]) -> str:
    """How many accelerators of which types: "40 accelerators of 3 types"."""
    total = sum(counts.values())
    if len(counts) == 1:
        return counted(total, Message("{counts} accelerators", counts=next(iter(counts)))).replace(
            Message("{counts} accelerators", counts=next(iter(counts))), f"{next(iter(counts))}"
        )
    return Message("{total} of {count} types", total=counted(total, "accelerators"), count=len(counts))

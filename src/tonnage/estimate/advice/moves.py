"""The search for the next best moves: ladders of changes, each step estimated again, alone and then together.

A move holds explicit values for everything that it changes, so its flags added to the user's own give exactly its
figure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.documents.advice import ORDER, Advice, Changes, NearestMiss
from tonnage.estimate.money.bill import Rent
from tonnage.estimate.run.larger_machines import doublings
from tonnage.formulas import service as h
from tonnage.kernel.errors import TonnageError

MAX_MOVES = {"nothing": 4, "machine": 1, "workload": 2, "numerics": 2, "method": 1}  # moves of a kind that are shown
# The runtime and what goes with it are said before the options from this one on: what trains, and how.
BEFORE = "objective"
RUNTIME = ("runtime", "replicate_size", "compile", "float8", "liger", "packing", "expandable_segments", "model_code")
SCANNED = 8  # a longer ladder is bisected


class Ladder(Struct, frozen=True, eq=False):
    """Changes of one kind, the mildest first; each step needs no more memory than the one before it."""

    steps: Sequence[dict[str, Any]]
    changes: Changes = "nothing"


class Values(Sequence[dict[str, Any]]):
    """Steps that set one option, made when they are asked for: there may be as many as requests."""

    def __init__(self, name: str, values: Sequence[Any]):
        self.name, self.values = name, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, step: Any) -> Any:
        return {self.name: self.values[step]}


class Settled(Struct, frozen=True, eq=False):
    """A change with every option that it moves, and what the plan then needs. `changes`: what settling it changed as
    well.

    `high`: the high end of the error band, where there is one. What fits must fit with it. `seconds`: of a step then,
    `pace`: tokens a second of all machines then, `rent`: USD that they cost an hour, `times`: other figures of the move
    by their names in the document; each asked of moves that fit. `sequences`: of a step then. `serves`: whether it then
    serves the load as it was asked, None where nobody asked.
    """

    change: dict[str, Any]
    needed: int
    changes: Changes = "nothing"
    high: int = 0
    seconds: Callable[[], float | None] | None = None
    sequences: int = 1
    pace: Callable[[], float | None] | None = None
    rent: Callable[[], Rent | None] | None = None
    times: Callable[[], dict[str, Any]] | None = None
    serves: Callable[[], bool | None] | None = None

    @property
    def most(self) -> int:
        return max(self.high, self.needed)

    @property
    def paid(self) -> "Paid":
        """What it costs in time and money."""
        return paid(self.pace() if self.pace else None, self.rent)


class Paid(Struct, frozen=True):
    """Tokens a second of all machines, and USD of a million; None where nobody knows. `provider`: whose prices,
    where they are not those of the machine that was asked about.
    """

    pace: float | None = None
    usd: float | None = None
    provider: str = ""


def paid(pace: float | None, rent: Callable[[], Rent | None] | None) -> Paid:
    """Of so many tokens a second on machines that cost so many USD an hour."""
    an_hour = rent() if pace and rent else None
    if an_hour is None:
        return Paid(pace or None)
    return Paid(pace or None, float(h.usd_per_million_tokens.evaluate(USD_all=an_hour.usd, tps=pace)), an_hour.provider)


class Suggestions(Struct, frozen=True, kw_only=True):
    """`moves` that fit, the best first. Where there is none `nearest`: the change that comes closest, and the bytes
    still missing.
    """

    moves: list[Advice]
    nearest: NearestMiss | None = None


Ask = Callable[[dict[str, Any]], Settled | None]
Picks = tuple[tuple[int, int], ...]  # (ladder, step)


def best_moves(
    ladders: Iterable[Ladder], ask: Ask, needed: int, usable: int, high: int = 0, now: Paid | None = None
) -> Suggestions:
    """Moves with which it fits: what changes nothing else first; of each kind what costs least money, or time; where no
    single one does, a combination.

    `high`: the high end of what is needed now, where an error band is known. `now`: what the run costs as it was asked
    about.
    """
    search = _Search([ladder for ladder in ladders if ladder.steps], ask, needed, usable)
    settled_picks = [(picks, settled) for picks in search.singles() if (settled := search.ask(picks))]
    settled_picks = [*search.combined(settled_picks), *settled_picks]
    fitting = [(picks, settled, settled.paid) for picks, settled in settled_picks if settled.most <= usable]
    fitting.sort(key=lambda fit: search.rank(*fit))
    moves = [
        move_of(settled, search.changes(picks, settled), needed, usable, cost, now) for picks, settled, cost in fitting
    ]
    moves = [
        move
        for i, move in enumerate(moves)
        if sum(earlier.changes == move.changes for earlier in moves[:i]) < MAX_MOVES[move.changes]
    ]
    return Suggestions(moves=moves, nearest=None if moves else search.nearest(max(high, needed)))


def move_of(
    settled: Settled, changes: Changes, needed: int, usable: int, cost: Paid | None = None, now: Paid | None = None
) -> Advice:
    """The move as the document shows it. `cost`: of it, where that is known already."""
    move = Advice(
        change=settled.change,
        text=flags_of(settled.change),
        changes=changes,
        needed_bytes=settled.needed,
        freed_bytes=needed - settled.needed,
        fits=settled.most <= usable,
        step_seconds=settled.seconds() if settled.seconds is not None else UNSET,
        serves=settled.serves() if settled.serves is not None else UNSET,
        **(settled.times() if settled.times is not None else {}),
    )
    return move if settled.pace is None else _paid(move, cost or settled.paid, now or Paid())


def _paid(move: Advice, then: Paid, now: Paid) -> Advice:
    """With the money of a move, and how much more or less than now it and the time of a token are, as a part of what
    they are now.
    """
    return replace(
        move,
        usd_per_million_tokens=then.usd,
        time_change=_relative(now.pace, then.pace),
        usd_change=_relative(then.usd, now.usd),
        provider=then.provider or UNSET,
    )


def _relative(then: float | None, now: float | None) -> float | None:
    return None if then is None or not now else then / now - 1


def flags_of(change: Mapping[str, Any]) -> str:
    """The change as flags of the command line."""
    return " ".join(_flag(name, value) for name, value in change.items())


def ordered(change: dict[str, Any], form: type[Struct]) -> dict[str, Any]:
    """The change in the order of the options of the command line; the runtime comes before what trains."""
    names = ["on", *form.__struct_fields__]
    if BEFORE in names:
        names = [name for name in names if name not in RUNTIME]
        at = names.index(BEFORE)
        names[at:at] = RUNTIME
    return {name: change[name] for name in names if name in change}


def bare(change: dict[str, Any], now: Struct, plan_of: Callable[[dict[str, Any]], Struct]) -> dict[str, Any]:
    """The change without what is so now and stays so by itself. `plan_of`: the plan that a change gives, or
    TonnageError.
    """
    for name, value in tuple(change.items()):
        rest = {other: said for other, said in change.items() if other != name}
        if name in now.__struct_fields__ and getattr(now, name) == value and _alike(plan_of, rest, change):
            change = rest
    return change


def _alike(plan_of: Callable[[dict[str, Any]], Struct], one: dict[str, Any], other: dict[str, Any]) -> bool:
    try:
        return plan_of(one) == plan_of(other)
    except TonnageError:
        return False


def _flag(name: str, value: Any) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {value}"


class _Search:
    def __init__(self, ladders: list[Ladder], ask: Ask, needed: int, usable: int):
        self.ladders, self._ask, self.needed, self.usable = ladders, ask, needed, usable
        self._known: dict[Picks, Settled | None] = {}

    def ask(self, picks: Picks) -> Settled | None:
        """The settled union of the picked steps; None if there are none, if it is no plan, or if two set the same
        option.
        """
        picks = tuple(sorted(picks))
        if picks not in self._known:
            change: dict[str, Any] = {}
            for ladder, step in picks:
                change |= self.ladders[ladder].steps[step]
            is_distinct = sum(len(self.ladders[ladder].steps[step]) for ladder, step in picks) == len(change)
            self._known[picks] = self._ask(change) if change and is_distinct else None
        return self._known[picks]

    def fits(self, picks: Picks) -> bool:
        settled = self.ask(picks)
        return settled is not None and settled.most <= self.usable

    def changes(self, picks: Picks, settled: Settled) -> Changes:
        return max(settled.changes, self.kind(picks), key=ORDER.index)

    def kind(self, picks: Picks) -> Changes:
        """What the picked ladders change, before they are settled."""
        return max((self.ladders[ladder].changes for ladder, _ in picks), key=ORDER.index)

    def rank(self, picks: Picks, settled: Settled, cost: Paid) -> tuple[bool, int, int, bool, float, float, int]:
        """What serves the load as it was asked first; then what changes least; on the fewest machines; what costs
        least money, or else time; in the order of the ladders. What nobody knows the time of comes after what
        somebody does.
        """
        machines = sum(step for ladder, step in picks if self.ladders[ladder].changes == "machine")
        price, pace = cost.usd or 0.0, cost.pace or 0.0
        late = settled.serves is not None and settled.serves() is False
        return late, ORDER.index(self.changes(picks, settled)), machines, cost.pace is None, price, -pace, max(picks)[0]

    def nearest(self, now: int) -> NearestMiss | None:
        """Of all that was tried what comes closest; nothing where nothing frees anything."""
        tried = [
            (settled.most, len(picks), picks, settled) for picks, settled in self._known.items() if settled is not None
        ]
        most, _, picks, settled = min(tried, key=lambda result: result[:2], default=(now, 0, (), None))
        if settled is None or most >= now:
            return None
        return NearestMiss(
            change=settled.change,
            text=flags_of(settled.change),
            changes=self.changes(picks, settled),
            needed_bytes=settled.needed,
            missing_bytes=most - self.usable,
            smallest_machine=None,
        )

    def singles(self) -> list[Picks]:
        """Of each ladder the mildest step that fits, and serves the load as it was asked where one does, or else the
        one that needs least.
        """
        picks: list[Picks] = []
        for ladder in range(len(self.ladders)):
            if (step := self.mildest((), ladder)) is not None:
                step = self._serving(ladder, step)
            else:
                settled = [
                    (answer.needed, at) for at in self._strongest(ladder) if (answer := self.ask(((ladder, at),)))
                ]
                step = min(settled)[1] if settled else None
            if step is not None and (answer := self.ask(((ladder, step),))) and answer.needed < self.needed:
                picks.append(((ladder, step),))
        return picks

    def _serving(self, ladder: int, first: int) -> int:
        """The first step of a short ladder, from one that fits on, with which the load is served as it was asked;
        that one where none is.
        """
        last = len(self.ladders[ladder].steps) - 1
        for step in range(first, last + 1) if last < SCANNED else (first,):
            settled = self.ask(((ladder, step),))
            if settled is None or settled.most > self.usable:
                continue
            if settled.serves is None or (serves := settled.serves()):
                return step
            if serves is None:
                break
        return first

    def _strongest(self, ladder: int) -> Iterable[int]:
        last = len(self.ladders[ladder].steps) - 1
        return range(last + 1) if last < SCANNED else self._leaps(ladder)[-1:]

    def _leaps(self, ladder: int) -> list[int]:
        """Steps of a long ladder, further and further apart, as far as there are plans: its end may be none."""
        last = len(self.ladders[ladder].steps) - 1
        steps = [*(leap - 1 for leap in doublings(1, last)), last]
        return [step for step in steps if self.ask(((ladder, step),))]

    def mildest(self, others: Picks, ladder: int) -> int | None:
        """The first step of the ladder that fits beside the other picks."""
        last = len(self.ladders[ladder].steps) - 1
        if last < SCANNED:
            return next((step for step in range(last + 1) if self.fits((*others, (ladder, step)))), None)
        leaps = self._leaps(ladder)
        high = next((step for step in leaps if self.fits((*others, (ladder, step)))), -1)
        if high < 0:
            return None
        low = max((step for step in leaps if step < high), default=-1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fits((*others, (ladder, middle))) else (middle, high)
        return high

    def combined(self, singles: list[tuple[Picks, Settled]]) -> list[tuple[Picks, Settled]]:
        """Where no single move fits: moves together, of those that change nothing, or else with another kind as
        well.
        """
        fitting = {self.kind(picks) for picks, settled in singles if settled.most <= self.usable}
        if "nothing" in fitting:
            return []
        pool: dict[Changes, list[tuple[int, int]]] = {kind: [] for kind in ORDER}
        for picks, _ in singles:
            pool[self.kind(picks)].append(picks[0])
        base = self._grown((), pool["nothing"])
        if self.fits(base):
            return self._answer(base)
        combinations = []
        if "machine" not in fitting:
            combinations += self._on_more_machines()
        if not fitting - {"machine"}:
            here = [
                *self._answer(self._grown(base, pool["workload"])),
                *self._answer(self._grown(base, pool["numerics"])),
            ]
            both = [*pool["workload"], *pool["numerics"]]
            combinations += (
                here
                or self._answer(self._grown(base, both))
                or self._answer(self._grown(base, [*both, *pool["method"]]))
            )
        return combinations

    def _on_more_machines(self) -> list[tuple[Picks, Settled]]:
        """The largest machine, with what changes nothing else until it fits; then fewer accelerators."""
        kinds = [(ladder, self.ladders[ladder].changes) for ladder in range(len(self.ladders))]
        strongest = [(ladder, len(self.ladders[ladder].steps) - 1) for ladder, kind in kinds if kind == "nothing"]
        results: list[tuple[Picks, Settled]] = []
        for ladder, kind in kinds:
            if kind == "machine" and (leaps := self._leaps(ladder)):
                results += self._answer(self._grown(((ladder, leaps[-1]),), strongest))
        return results

    def _answer(self, picks: Picks) -> list[tuple[Picks, Settled]]:
        if len(picks) < 2 or not self.fits(picks):
            return []
        picks = self._relaxed(self._fewest(picks))
        settled = self.ask(picks)
        return [(picks, settled)] if settled else []

    def _grown(self, picks: Picks, pool: list[tuple[int, int]]) -> Picks:
        """Add moves until they fit: the first pair that does, else from the best pair on always the one that frees
        most.
        """
        if not picks:
            tried = []
            for first, second in sorted(combinations(pool, 2), key=max):
                if pair := self._valid((first,), second):
                    tried.append(pair)
                    if self.fits(pair):
                        return pair
            picks = min(tried, key=self._needed, default=tuple(pool[:1]))
        while not self.fits(picks):
            held = {ladder for ladder, _ in picks}
            wider = [wider_picks for pick in pool if pick[0] not in held and (wider_picks := self._valid(picks, pick))]
            best = min(wider, key=self._needed, default=picks)
            if self._needed(best) >= self._needed(picks):
                return picks
            picks = best
        return picks

    def _valid(self, picks: Picks, pick: tuple[int, int]) -> Picks | None:
        """The picks and the strongest step up to this one that goes together with them."""
        ladder, step = pick
        for milder in range(step, max(step - SCANNED, -1), -1):
            if self.ask((*picks, (ladder, milder))):
                return (*picks, (ladder, milder))
        return None

    def _fewest(self, picks: Picks) -> Picks:
        """The smallest part of the picks that fits, of those the one that changes least and costs least speed."""
        inside = sorted(picks, key=lambda pick: (ORDER.index(self.ladders[pick[0]].changes), pick[0]))
        parts = (part for size in range(1, len(inside)) for part in combinations(inside, size))
        return next((part for part in parts if self.fits(part)), picks)

    def _relaxed(self, picks: Picks) -> Picks:
        """The mildest steps that still fit, of what changes most first."""
        for ladder, _ in sorted(picks, key=lambda pick: (-ORDER.index(self.ladders[pick[0]].changes), -pick[0])):
            others = tuple(pick for pick in picks if pick[0] != ladder)
            if (step := self.mildest(others, ladder)) is not None:
                picks = (*others, (ladder, step))
        return picks

    def _needed(self, picks: Picks) -> int:
        settled = self.ask(picks) if picks else None
        return settled.needed if settled else self.needed

"""The search for the next best moves: ladders of changes, each step estimated again, alone and then together.

A move holds explicit values for everything that it changes, so its flags added to the user's own give exactly its
figure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Protocol, TypeVar, cast

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


class Outcome(Protocol):
    """What a change of the plan leads to. Most are only asked whether they fit, so the rest may be found when it is
    asked for.
    """

    @property
    def change(self) -> dict[str, Any]:
        """Every option that it moves; TonnageError where they cannot be said."""

    @property
    def changes(self) -> Changes:
        """What it changes beside the options that were asked for."""

    @property
    def needed(self) -> int:
        """Bytes of the fullest GPU."""

    @property
    def most(self) -> int:
        """The same at the high end of the error band, where there is one. What fits must fit with it."""

    @property
    def seconds(self) -> Callable[[], float | None] | None:
        """Of a step then."""

    @property
    def pace(self) -> Callable[[], float | None] | None:
        """Tokens a second of all machines then."""

    @property
    def rent(self) -> Callable[[], Rent | None] | None:
        """USD that the machines cost an hour."""

    @property
    def times(self) -> Callable[[], dict[str, Any]] | None:
        """Other figures of the move by their names in the document."""

    @property
    def serves(self) -> Callable[[], bool | None] | None:
        """Whether it then serves the load as it was asked, None where nobody asked."""

    def fits(self, usable: int) -> bool:
        """Whether `most` is at most so many bytes."""

    def exceeds(self, needed: int) -> bool:
        """Whether it needs more bytes than these."""

    @property
    def at_least(self) -> float:
        """Bytes that it needs at least, as far as that is known already: in what order outcomes are compared."""

    def is_lighter(self, other: Any, *, or_alike: bool = False) -> bool:
        """Whether it needs fewer bytes than another, or as many."""


class Settled(Struct, frozen=True, eq=False):
    """An outcome whose bytes are known. `high`: the high end of the error band, where there is one."""

    change: dict[str, Any]
    needed: int
    changes: Changes = "nothing"
    high: int = 0
    seconds: Callable[[], float | None] | None = None
    pace: Callable[[], float | None] | None = None
    rent: Callable[[], Rent | None] | None = None
    times: Callable[[], dict[str, Any]] | None = None
    serves: Callable[[], bool | None] | None = None

    @property
    def most(self) -> int:
        return max(self.high, self.needed)

    def fits(self, usable: int) -> bool:
        return self.most <= usable

    def exceeds(self, needed: int) -> bool:
        return self.needed > needed

    @property
    def at_least(self) -> float:
        return self.needed

    def is_lighter(self, other: Outcome, *, or_alike: bool = False) -> bool:
        return self.needed <= other.needed if or_alike else self.needed < other.needed


def paid_of(outcome: Outcome) -> "Paid":
    """What it costs in time and money."""
    return paid(outcome.pace() if outcome.pace else None, outcome.rent)


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


Found = TypeVar("Found", bound=Outcome)
Ask = Callable[[dict[str, Any]], Outcome | None]
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
    fitting = search.fitting()
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


def cheapest(
    ladders: Iterable[Ladder], ask: Callable[[dict[str, Any]], Found | None], needed: int, usable: int
) -> Found | None:
    """The change with which it fits that `best_moves` would name first; None where none does."""
    search = _Search([ladder for ladder in ladders if ladder.steps], ask, needed, usable)
    fitting = search.fitting()
    return cast("Found", min(fitting, key=lambda fit: search.rank(*fit))[1]) if fitting else None


def move_of(
    settled: Outcome, changes: Changes, needed: int, usable: int, cost: Paid | None = None, now: Paid | None = None
) -> Advice:
    """The move as the document shows it. `cost`: of it, where that is known already."""
    move = Advice(
        change=settled.change,
        text=flags_of(settled.change),
        changes=changes,
        needed_bytes=settled.needed,
        freed_bytes=needed - settled.needed,
        fits=settled.fits(usable),
        step_seconds=settled.seconds() if settled.seconds is not None else UNSET,
        serves=settled.serves() if settled.serves is not None else UNSET,
        **(settled.times() if settled.times is not None else {}),
    )
    return move if settled.pace is None else _paid(move, cost or paid_of(settled), now or Paid())


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


def can_be_said(outcome: Outcome) -> bool:
    """Whether there are options that lead to it."""
    try:
        return bool(outcome.change)
    except TonnageError:
        return False


class _Search:
    def __init__(self, ladders: list[Ladder], ask: Ask, needed: int, usable: int):
        self.ladders, self._ask, self.needed, self.usable = ladders, ask, needed, usable
        self._known: dict[Picks, Outcome | None] = {}

    def ask(self, picks: Picks) -> Outcome | None:
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

    def fitting(self) -> list[tuple[Picks, Outcome, Paid]]:
        """The moves that fit, with what they cost."""
        while True:
            singles = self.singles()
            fitting = [*self.combined({self.kind(picks) for picks, _ in singles}), *singles]
            unsaid = [picks for picks, settled in fitting if not can_be_said(settled)]
            if not unsaid:
                return [(picks, settled, paid_of(settled)) for picks, settled in fitting]
            self._known |= dict.fromkeys(unsaid)  # they are no moves: others may be

    def fits(self, picks: Picks) -> bool:
        settled = self.ask(picks)
        return settled is not None and settled.fits(self.usable)

    def changes(self, picks: Picks, settled: Outcome) -> Changes:
        return max(settled.changes, self.kind(picks), key=ORDER.index)

    def kind(self, picks: Picks) -> Changes:
        """What the picked ladders change, before they are settled."""
        return max((self.ladders[ladder].changes for ladder, _ in picks), key=ORDER.index)

    def rank(self, picks: Picks, settled: Outcome, cost: Paid) -> tuple[bool, int, int, bool, float, float, int]:
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
        most, _, picks, settled = min(tried, key=lambda result: result[:3], default=(now, 0, (), None))
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

    def singles(self) -> list[tuple[Picks, Outcome]]:
        """Of each ladder that has one the mildest step that fits, and serves the load as asked where one does."""
        steps = [(ladder, self._fitting_step(ladder)) for ladder in range(len(self.ladders))]
        freeing = [((ladder, step), self._freeing(ladder, step)) for ladder, step in steps if step is not None]
        return [((pick,), settled) for pick, settled in freeing if settled]

    def pool(self, kind: Changes) -> list[tuple[int, int]]:
        """Moves of a kind to combine: of each ladder the step that fits, or else the one that needs least."""
        ladders = [ladder for ladder in range(len(self.ladders)) if self.ladders[ladder].changes == kind]
        steps = [(ladder, self._fitting_step(ladder)) for ladder in ladders]
        picks = [(ladder, self._least(ladder) if step is None else step) for ladder, step in steps]
        return [(ladder, step) for ladder, step in picks if step is not None and self._freeing(ladder, step)]

    def _fitting_step(self, ladder: int) -> int | None:
        step = self.mildest((), ladder)
        return None if step is None else self._serving(ladder, step)

    def _freeing(self, ladder: int, step: int) -> Outcome | None:
        """The outcome of a step that needs less than is needed now."""
        settled = self.ask(((ladder, step),))
        return settled if settled and not settled.exceeds(self.needed - 1) else None

    def _least(self, ladder: int) -> int | None:
        """The step that needs least, of several alike the mildest; None where none is a plan."""
        found = self._last(ladder, (), self._steps(ladder))
        if found is None:
            return None
        least, lightest = found
        for step in range(least - 1, -1, -1) if self._is_short(ladder) else ():
            settled = self.ask(((ladder, step),))
            if settled is not None and not settled.is_lighter(lightest, or_alike=True):
                break
            if settled is not None:
                least, lightest = step, settled
        return least

    def _serving(self, ladder: int, first: int) -> int:
        """The first step of a short ladder, from one that fits on, with which the load is served as it was asked;
        that one where none is.
        """
        last = len(self.ladders[ladder].steps) - 1
        for step in range(first, last + 1) if self._is_short(ladder) else (first,):
            settled = self.ask(((ladder, step),))
            if settled is None or not settled.fits(self.usable):
                continue
            if settled.serves is None or (serves := settled.serves()):
                return step
            if serves is None:
                break
        return first

    def _is_short(self, ladder: int) -> bool:
        return len(self.ladders[ladder].steps) <= SCANNED

    def _steps(self, ladder: int) -> list[int]:
        """Every step of a short ladder; of a long one steps further and further apart, and the last."""
        last = len(self.ladders[ladder].steps) - 1
        return list(range(last + 1)) if self._is_short(ladder) else [*(leap - 1 for leap in doublings(1, last)), last]

    def _is_plan(self, ladder: int, step: int) -> bool:
        """Whether a step of a long ladder is a plan by itself: its end may be none."""
        return self._is_short(ladder) or self.ask(((ladder, step),)) is not None

    def _last(self, ladder: int, others: Picks, steps: list[int]) -> tuple[int, Outcome] | None:
        """The last of the steps that is a plan beside the other picks."""
        for step in reversed(steps):
            if self._is_plan(ladder, step) and (settled := self.ask((*others, (ladder, step)))):
                return step, settled
        return None

    def mildest(self, others: Picks, ladder: int) -> int | None:
        """The first step of the ladder that fits beside the other picks: none does where the last one does not."""
        steps = self._steps(ladder)
        last = self._last(ladder, others, steps)
        if last is None or not last[1].fits(self.usable):
            return None
        high = next(step for step in steps if self._is_plan(ladder, step) and self.fits((*others, (ladder, step))))
        if self._is_short(ladder):
            return high
        low = max((step for step in steps if step < high and self._is_plan(ladder, step)), default=-1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fits((*others, (ladder, middle))) else (middle, high)
        return high

    def combined(self, fitting: set[Changes]) -> list[tuple[Picks, Outcome]]:
        """Where no single move fits: moves together, of those that change nothing, or else with another kind as
        well. `fitting`: the kinds of single moves that fit.
        """
        if "nothing" in fitting:
            return []
        base = self._grown((), self.pool("nothing"))
        if self.fits(base):
            return self._answer(base)
        combinations = []
        if "machine" not in fitting:
            combinations += self._on_more_machines()
        if not fitting - {"machine"}:
            workload, numerics = self.pool("workload"), self.pool("numerics")
            here = [*self._answer(self._grown(base, workload)), *self._answer(self._grown(base, numerics))]
            both = [*workload, *numerics]
            combinations += (
                here
                or self._answer(self._grown(base, both))
                or self._answer(self._grown(base, [*both, *self.pool("method")]))
            )
        return combinations

    def _on_more_machines(self) -> list[tuple[Picks, Outcome]]:
        """The largest machine, with what changes nothing else until it fits; then fewer accelerators."""
        kinds = [(ladder, self.ladders[ladder].changes) for ladder in range(len(self.ladders))]
        strongest = [(ladder, len(self.ladders[ladder].steps) - 1) for ladder, kind in kinds if kind == "nothing"]
        results: list[tuple[Picks, Outcome]] = []
        for ladder, kind in kinds:
            if kind == "machine" and (last := self._last(ladder, (), self._steps(ladder))):
                results += self._answer(self._grown(((ladder, last[0]),), strongest))
        return results

    def _answer(self, picks: Picks) -> list[tuple[Picks, Outcome]]:
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
            picks = self._lightest(tried) if tried else tuple(pool[:1])
        while not self.fits(picks):
            held = {ladder for ladder, _ in picks}
            wider = [wider_picks for pick in pool if pick[0] not in held and (wider_picks := self._valid(picks, pick))]
            best = self._lightest(wider) if wider else None
            if best is None or not self._is_lighter(best, picks):
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

    def _lightest(self, tried: list[Picks]) -> Picks:
        """Of picks that are plans those that need least, of several alike the first. What may need least is asked
        first, so that of most it is known early that they need more.
        """
        outcomes = [settled for picks in tried if (settled := self.ask(picks))]
        first, *others = sorted(range(len(tried)), key=lambda at: outcomes[at].at_least)
        for at in others:
            if outcomes[at].is_lighter(outcomes[first], or_alike=at < first):
                first = at
        return tried[first]

    def _is_lighter(self, picks: Picks, other: Picks) -> bool:
        """Whether picks that are a plan need fewer bytes than others, or than what is there now."""
        one, another = self.ask(picks), self.ask(other) if other else None
        if one is None:
            return False
        return one.is_lighter(another) if another else not one.exceeds(self.needed - 1)

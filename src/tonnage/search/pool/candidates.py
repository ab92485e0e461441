"""Configurations of one replica on the nodes of a pool: what each answers at most, by the same verdict as `tonnage
serve`, and why others do not.
"""

from collections.abc import Callable
from math import ceil, inf

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.answer.form import Answer
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.units import human
from tonnage.search.pool.offload import served_from_host
from tonnage.search.pool.parts import Kind, Pool

LITTLE = 1e-3  # requests a second: a rate that any replica answers, of which the largest is asked
MARGIN = 1e-6  # of an optimum that a second program keeps


class Candidate(Struct, frozen=True, kw_only=True, eq=False):
    """A configuration of one replica: `width` accelerators of a kind. `capacity`: requests a second, or users,
    within the limits; `requests`: that run at once then, with `needed` bytes of each accelerator.
    """

    kind: Kind
    width: int
    options: ServingOptions
    capacity: float
    answer: Answer
    model: Model
    on_host: int = 0
    requests: int = 1
    needed: int = 0

    @property
    def weights(self) -> str:
        return str(self.answer.question["weights"].value)


class Demand(Struct, frozen=True, kw_only=True):
    """The load that is asked for: requests a second or users; `amount` None: as many as the pool answers."""

    is_open: bool
    amount: float | None

    @property
    def unit(self) -> str:
        return "requests/s" if self.is_open else "users"


class Level(Struct, frozen=True, kw_only=True):
    """A limit on what users wait that is not kept, and the seconds that it is of."""

    name: str
    now: float
    limit: float

    def __str__(self) -> str:
        return self.said()

    def said(self, load: str = "") -> str:
        """The missed limit as a sentence. `load`: the load with which it is missed."""
        now = "without end" if self.now == inf else human(self.now, "seconds")
        return Message(
            "{name} is {now}{load}, and {limit} is asked for",
            name=self.name,
            now=now,
            load=load,
            limit=human(self.limit, "seconds"),
        )

    @property
    def nearness(self) -> float:
        """How far the limit is missed: from 0, nearly kept, to 1."""
        return 1 - self.limit / self.now


class Refusal(Struct, frozen=True, kw_only=True, eq=False):
    """Why a configuration is none: `over` bytes too much of an accelerator, or a limit that one request alone does
    not keep, or a rule.
    """

    kind: Kind
    width: int
    why: str
    over: float | None = None
    level: Level | None = None

    @property
    def on(self) -> str:
        return f"{self.width}x{self.kind.name}"

    def __str__(self) -> str:
        return joined(": ", (self.on, self.why))


def missed_level(answer: Answer) -> Level | None:
    """The limit that an answer exceeds most; None where it keeps them all."""
    level = answer.serving.service_level
    if not level or level.met or not level.bound_by:
        return None
    now, limit = (getattr(level, f"{level.bound_by}_{kind}") for kind in ("seconds", "limit_seconds"))
    return Level(name=level.bound_by, now=inf if now is UNSET else now, limit=limit)


def holds_one(pool: Pool, model: Model, options: ServingOptions, load: LoadOptions) -> bool:
    """Whether some node holds a whole replica, of which the times are known."""
    for kind, settings in _configurations(pool, options):
        try:
            answer = _serve_again(model, kind, settings, replace(load, request_rate=LITTLE))
        except (InvalidPlan, MissingDatum):
            continue
        if answer.fits and answer.serving.largest_rate:
            return True
    return False


def candidates(
    pool: Pool, model: Model, options: ServingOptions, load: LoadOptions, demand: Demand, *, offload: bool
) -> tuple[list[Candidate], list[Refusal]]:
    """Every configuration of a replica that fits on one node, as the estimator has it; and why others do not."""
    fitting: list[Candidate] = []
    refused: list[Refusal] = []
    for kind, settings in _configurations(pool, options):
        outcome = _candidate(kind, model, settings, load, demand, offload=offload)
        if isinstance(outcome, Candidate):
            fitting.append(outcome)
        else:
            refused.append(outcome)
    return fitting, refused


def _configurations(pool: Pool, options: ServingOptions) -> list[tuple[Kind, ServingOptions]]:
    configurations = []
    for kind in pool.kinds:
        fixed_width = options.tensor_parallel_size
        for weights in (options.weights or "").split(","):
            for width in [fixed_width] if fixed_width else [1 << bit for bit in range(kind.each.bit_length())]:
                if width <= kind.each:
                    settings = replace(
                        options, weights=weights.strip() or None, tensor_parallel_size=width, concurrency=None
                    )
                    configurations.append((kind, settings))
    return configurations


def _candidate(
    kind: Kind, model: Model, settings: ServingOptions, load: LoadOptions, demand: Demand, *, offload: bool
) -> Candidate | Refusal:
    width = settings.tensor_parallel_size or 1
    replica_load = replace(load, request_rate=LITTLE if demand.is_open else None)
    on_host = 0
    try:
        answer = _serve_again(model, kind, settings, replica_load)
        if not answer.fits and offload:
            helped = served_from_host(model, kind, width, settings, replica_load, answer)
            if helped is not None:
                answer, settings, on_host = helped
    except (InvalidPlan, MissingDatum) as error:
        return Refusal(kind=kind, width=width, why=str(error))
    if not answer.fits:
        over = answer.needed_bytes - answer.usable_bytes
        why: str = Message(
            "short by {over} an accelerator ({needed_bytes} needed)",
            over=human(over, "bytes"),
            needed_bytes=human(answer.needed_bytes, "bytes"),
        )
        return Refusal(kind=kind, width=width, why=why, over=over)
    level = missed_level(answer)
    if level is not None:
        return Refusal(kind=kind, width=width, why=level.said(" with one request at a time"), level=level)
    capacity = _capacity(answer, demand)
    requests, at = _most_held(model, kind, settings, replica_load, capacity, answer, demand)
    if not capacity or not requests:
        why = (
            "no load is within the service level"
            if replica_load.ttft or replica_load.tpot
            else "its times are not known"
        )
        return Refusal(kind=kind, width=width, why=why)
    return Candidate(
        kind=kind,
        width=width,
        options=settings,
        capacity=capacity if demand.is_open else float(requests),
        answer=answer,
        model=model,
        on_host=on_host,
        requests=requests,
        needed=at.needed_bytes,
    )


def _serve_again(model: Model, kind: Kind, settings: ServingOptions, load: LoadOptions, width: int = 0) -> Answer:
    width = width or settings.tensor_parallel_size or 1
    return serve(model, kind.cluster(1, width), settings, load, reserve_bytes=kind.reserve, advise=False)


def _capacity(answer: Answer, demand: Demand) -> float:
    """The load that one replica answers at most within its limits. Users: no more than memory holds, each at the whole
    context.
    """
    figures = answer.serving
    if figures.service_level:
        term = figures.rate_at_service_level if demand.is_open else figures.users_at_service_level
    else:
        term = figures.largest_rate if demand.is_open else figures.concurrency
    most = float(term.value) if term else 0.0
    return most if demand.is_open else min(most, _room(answer))


def _room(answer: Answer) -> float:
    """Requests that memory holds at the whole context; no limit where a request takes none."""
    room = answer.serving.concurrency
    return float(room.value) if room else inf


def _most_held(
    model: Model,
    kind: Kind,
    settings: ServingOptions,
    replica_load: LoadOptions,
    capacity: float,
    one: Answer,
    demand: Demand,
) -> tuple[int, Answer]:
    """The requests that run at once at this capacity, and the answer of `serve` for so many users: the most of them
    that it agrees to.

    Of a rate: as many as the steady state has, as far as memory holds them at the whole context; the others wait.
    """
    if demand.is_open:
        rate = replace(replica_load, request_rate=max(capacity * (1 - MARGIN), LITTLE))
        return at_rate(
            model, kind, settings.tensor_parallel_size or 1, settings, rate, _serve_again(model, kind, settings, rate)
        )
    return most_users(
        lambda users: _serve_again(model, kind, replace(settings, concurrency=users), replica_load), int(capacity), one
    )


def at_rate(
    model: Model, kind: Kind, width: int, settings: ServingOptions, load: LoadOptions, answer: Answer
) -> tuple[int, Answer]:
    """The requests that run at once at the rate of an answer, as far as memory holds them, and what `serve` says of
    so many users.
    """
    running = answer.serving.running
    most = int(min(max(ceil(running.value if running else 1), 1), max(_room(answer), 1)))
    users = replace(load, request_rate=None, burstiness=None, ttft=None, tpot=None, percentile=None)
    return most_users(
        lambda number: _serve_again(model, kind, replace(settings, concurrency=number), users, width), most, answer
    )


def most_users(at: Callable[[int], Answer], most: int, one: Answer) -> tuple[int, Answer]:
    """The most users, and the answer for them, that `serve` says are held and answered as asked: all, or found by
    halving.
    """
    low, high, best = 0, most + 1, one
    middle = most
    while high - low > 1:
        answer = at(middle)
        if answer.fits and not answer.unserved:
            low, best = middle, answer
        else:
            high = middle
        middle = (low + high) // 2
    return low, best


# ---- words of what is not used ----


def nearest(refused: list[Refusal]) -> Refusal | None:
    """The configuration that came nearest: one that misses a limit least, then one that lacks the fewest bytes in
    all.
    """
    levels = [refusal for refusal in refused if refusal.level is not None]
    if levels:
        return min(levels, key=lambda refusal: refusal.level.nearness if refusal.level else inf)
    short = [refusal for refusal in refused if refusal.over is not None]
    return (
        min(short, key=lambda refusal: (refusal.over or 0) * refusal.width)
        if short
        else (refused[-1] if refused else None)
    )


def merged(refused: list[Refusal]) -> list[str]:
    """One note for each accelerator and reason: of the configuration that came nearest."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in refused:
        reason = "level" if refusal.level else "bytes" if refusal.over is not None else refusal.why
        groups.setdefault((refusal.kind.name, reason), []).append(refusal)
    notes = []
    for (name, _), group in groups.items():
        widths = sorted({refusal.width for refusal in group})
        best = nearest(group) or group[0]
        if len(widths) == 1:
            notes.append(str(best))
        elif best.level is None and best.over is None:
            notes.append(f"{', '.join(map(str, widths))}x{name}: {best.why}")
        else:
            notes.append(
                Message(
                    "{widths}x{name}: nearest is {on}: {why}",
                    widths=listed(map(str, widths)),
                    name=name,
                    on=best.on,
                    why=best.why,
                )
            )
    return notes

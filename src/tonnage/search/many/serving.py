"""Many questions of serving at once. The steady states of loads that the same passes answer are found together, as
arrays; what they need of memory is walked once for each plan.
"""

from collections.abc import Hashable, Sequence
from math import ceil
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.answer.form import Answer, usable_bytes
from tonnage.estimate.answer.served import OF_LATER_TOKENS, hour, prices
from tonnage.estimate.answer.serving import serve
from tonnage.estimate.bands import serving_band
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.media import with_load
from tonnage.estimate.load.options import LoadOptions, ReplicaLoad, asked, lengths
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.limits import refused_by
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_figures, serving_plan
from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.estimate.serving_time.speed import Replica, replica_of, speed_of
from tonnage.estimate.serving_time.times import Drafted, ServingTimes, times
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.models.purpose import purpose
from tonnage.runtimes import serving_runtime
from tonnage.search.many.columns import SERVING, Columns, Figures, answered, column_of, refused, value_of
from tonnage.spec import Cluster, Load, ServingPlan

SHORT = 3  # loads of a group up to which each is timed by itself: an array costs as much as three
# Column -> the figure of the block `serving` that it has.
FIGURES = {
    "kv_bytes_per_token": "kv_bytes_per_token",
    "kv_bytes_per_request": "kv_bytes_per_request",
    "max_concurrency": "concurrency",
    "max_safe_concurrency": "safe_concurrency",
    "kv_capacity_tokens": "kv_capacity_tokens",
    "ttft_seconds": "ttft_seconds",
    "tpot_seconds": "tpot_seconds",
    "end_to_end_seconds": "end_to_end_seconds",
    "tokens_per_second_per_user": "tokens_per_second_per_user",
    "output_tokens_per_second": "tokens_per_second",
    "total_tokens_per_second": "total_tokens_per_second",
    "requests_per_second": "requests_per_second",
    "largest_rate": "largest_rate",
    "usd_per_million_tokens": "cost_per_million_tokens",
    "usd_per_million_output_tokens": "cost_per_million_output_tokens_all",
}
# Of the load: what is judged by a service level, or played out request by request.
JUDGED = ("trace", "ttft", "tpot", "percentile", "simulate", "num_requests", "seed", "prefill_replicas")
MEANS = ("input_tokens", "output_tokens", "concurrency", "requests_per_second")


class ServingRow(Struct, frozen=True, eq=False):
    """One model that is served, which is asked about."""

    model: Model
    cluster: Cluster
    options: ServingOptions
    load: LoadOptions
    money: BillOptions
    reserve_bytes: int = 0

    @property
    def key(self) -> Hashable:
        """Equal for rows that ask the same."""
        return (id(self.model), id(self.cluster), self.options, self.load, self.money, self.reserve_bytes)

    @property
    def is_alone(self) -> bool:
        """Whether it asks what arrays do not answer: within a service level, request by request, about machines
        that are bought, or about models that write no text.
        """
        judged = any(getattr(self.load, name) not in (None, False) for name in JUDGED)
        speaks = self.model.family != "tensors" and purpose(self.model) == "generate"
        return judged or self.money.compares or not speaks


class _Prepared(Struct, eq=False):
    """A row whose plan and memory are known. `replica`: None where nobody can say its times, or it has no room."""

    row: ServingRow
    plan: ServingPlan
    wanted: ReplicaLoad
    usable: int
    memory: ServingMemory
    held: dict[str, Any]
    replica: Replica | None
    times: ServingTimes | None = None
    error: TonnageError | None = None

    @property
    def served(self) -> Replica:
        assert self.replica is not None
        return self.replica


def serve_rows(rows: Sequence[ServingRow | TonnageError]) -> Columns:
    """The figures of each row, by the names of SERVING; of a row that is an error, or has no answer, the error."""
    return answered(rows, lambda row: row.key, _answer, SERVING)


def figures_alone(row: ServingRow) -> Figures:
    """The figures of one row, out of the answer of `serve`."""
    answer = serve(
        row.model, row.cluster, row.options, row.load, row.money, reserve_bytes=row.reserve_bytes, advise=False
    )
    return _of_answer(answer)


def _of_answer(answer: Answer) -> Figures:
    low, high = answer.band or (None, None)
    figures: Figures = {
        "fits": answer.fits,
        "status": answer.status,
        "needed_bytes": answer.needed_bytes,
        "usable_bytes": answer.usable_bytes,
        "band_low_bytes": low,
        "band_high_bytes": high,
        **{column_of(part): part.value for part in answer.memory.children},
        **{column: value_of(getattr(answer.serving, name)) for column, name in FIGURES.items()},
        "usd_per_hour": value_of(answer.bill.cost) if answer.bill else None,
    }
    return {name: value for name, value in figures.items() if value is not None}


# ---- Rows in groups, of which each is timed once.


def _answer(rows: list[ServingRow]) -> list[Figures]:
    found: list[Figures | None] = [None] * len(rows)
    walked = _Walked()
    groups: dict[Hashable, list[tuple[int, _Prepared]]] = {}
    prepared: list[tuple[int, _Prepared]] = []
    for number, row in enumerate(rows):
        try:
            if row.is_alone:
                found[number] = figures_alone(row)
                continue
            one = walked.prepare(row)
        except TonnageError as error:
            found[number] = refused(error)
            continue
        prepared.append((number, one))
        if one.replica is not None:
            groups.setdefault(_passes(one.replica, one.wanted.load), []).append((number, one))
    for members in groups.values():
        _time([one for _, one in members])
    for number, one in prepared:
        try:
            found[number] = refused(one.error) if one.error else _figures(one)
        except TonnageError as error:  # of its price
            found[number] = refused(error)
    return [figures for figures in found if figures is not None]


class _Walked:
    """What rows share: the memory of a plan, and the passes of plans that take as much into one."""

    def __init__(self) -> None:
        self._memories: dict[Hashable, tuple[ServingMemory, dict[str, Any]]] = {}
        self._passes: dict[Hashable, PassTime | Drafted] = {}

    def prepare(self, row: ServingRow) -> _Prepared:
        """The plan, the load and the memory of a row, as `serve` makes them."""
        question = Question()
        options = with_load(row.model, replace(row.options, reserve_bytes=row.reserve_bytes), row.load)
        given = lengths(row.model, options, row.load)
        in_context = options if given.context is None else replace(options, context=given.context)
        plan = serving_plan(row.model, row.cluster, in_context, question)
        wanted = asked(plan, options, row.load, given, question)
        usable = usable_bytes(row.cluster, row.reserve_bytes, question)
        key = (id(row.model), id(row.cluster), plan, usable)
        if key not in self._memories:
            memory = serving_memory(row.model, plan, row.cluster.accelerator)
            self._memories[key] = memory, serving_figures(row.model, memory, plan, row.cluster, usable)
        memory, held = self._memories[key]
        replica = self._replica(row, plan, memory, usable, wanted.load)
        return _Prepared(row, plan, wanted, usable, memory, held, replica)

    def _replica(
        self, row: ServingRow, plan: ServingPlan, memory: ServingMemory, usable: int, load: Load
    ) -> Replica | None:
        key = self._key(row, plan)
        try:
            replica = replica_of(row.model, plan, row.cluster, memory, usable, load, self._passes.get(key))
        except MissingDatum:
            return None
        self._passes[key] = replica.clock
        has_room = replica.pool is None or replica.pool >= load.input_tokens + load.output_tokens
        return replica if has_room else None

    def _key(self, row: ServingRow, plan: ServingPlan) -> Hashable:
        """Equal for plans with the same passes: a context decides no more of them than how many tokens one takes."""
        one = replace(plan, concurrency=1)
        if plan.drafting.draft_tokens:
            return (id(row.model), id(row.cluster), one)
        engine = serving_runtime(plan.engine, plan.engine_version)
        limits = batch_limits(engine, one, row.cluster.accelerator)
        return (id(row.model), id(row.cluster), replace(one, context=1), limits)


def _passes(replica: Replica, load: Load) -> Hashable:
    """Equal for loads whose steady states can be found together."""
    rules = replace(replica.policy, pool_tokens=None)
    is_open = load.requests_per_second is not None
    same = (load.cached_tokens, load.spread, load.in_step, load.burstiness, is_open)
    return (id(replica.clock), rules, replica.policy.pool_tokens is None, same)


def _time(members: list[_Prepared]) -> None:
    """Give each of the members its times; none where nobody can say them."""
    if len(members) > SHORT:
        try:
            together = _times_together([one.served for one in members], [one.wanted.load for one in members])
        except TonnageError:  # of some of them: each by itself says of which
            pass
        else:
            for place, one in enumerate(members):
                one.times = _entry(together, place)
            return
    for one in members:
        replica = one.served
        try:
            one.times = times(replica.clock, replica.policy, one.wanted.load)
        except MissingDatum:
            one.times = None
        except TonnageError as error:
            one.error = error


def _times_together(replicas: Sequence[Replica], loads: Sequence[Load]) -> ServingTimes:
    first = replicas[0]
    pools = None if first.pool is None else np.array([replica.policy.pool_tokens for replica in replicas])
    arrays = {
        name: None if getattr(loads[0], name) is None else np.array([getattr(load, name) for load in loads])
        for name in MEANS
    }
    return times(first.clock, replace(first.policy, pool_tokens=pools), replace(loads[0], **arrays))


def _entry(together: ServingTimes, place: int) -> ServingTimes:
    """The times of one load of an array."""

    def one(value: Any) -> Any:
        if isinstance(value, Spent):
            return Spent._make(map(one, value))
        if isinstance(value, Struct):
            return replace(value, **{name: one(getattr(value, name)) for name in value.__struct_fields__})
        return value[place].item() if getattr(value, "ndim", 0) else value

    entry: ServingTimes = one(together)
    return entry


def _figures(one: _Prepared) -> Figures:
    """The figures of a row; those of `Answer` without its breakdowns."""
    total = one.memory.memory
    needed = ceil(total.value)
    band = serving_band(one.plan.engine, one.row.cluster.accelerator)
    low, high = band.around(total.value) if band else (needed, needed)
    served = _served(one)
    fits = True if high <= one.usable else (False if low > one.usable else None)
    is_unserved = served.get("is_late") or refused_by(one.row.model, one.plan)
    figures: Figures = {
        "fits": fits,
        "status": {True: 3 if is_unserved else 0, False: 3, None: 2}[fits],
        "needed_bytes": needed,
        "usable_bytes": one.usable,
        **{column_of(part): part.value for part in total.children},
        **{column: value_of(one.held.get(name, served.get(name))) for column, name in FIGURES.items()},
        "usd_per_hour": served.get("usd_per_hour"),
    }
    if band:
        figures |= {"band_low_bytes": low, "band_high_bytes": high}
    return {name: value for name, value in figures.items() if value is not None}


def _served(one: _Prepared) -> dict[str, Any]:
    """Figures of the block `serving` that come of times; `is_late`: the queue grows without end."""
    if one.replica is None or one.times is None:
        return {}
    row, load = one.row, one.wanted.load
    speed = speed_of(one.replica, one.plan, row.cluster, one.times, one.wanted)
    figures: dict[str, Any] = {name: getattr(speed.figures, name) for name in set(FIGURES.values())}
    if load.output_tokens <= 1:
        figures |= dict.fromkeys(OF_LATER_TOKENS)
    figures["is_late"] = load.requests_per_second is not None and figures["ttft_seconds"] is None
    if not one.replica.clock.knows_prompts:
        return figures
    billed = hour(row.cluster, row.money, row.load.price_per_accelerator_hour, Question())
    return figures | prices(billed, row.cluster, speed) | {"usd_per_hour": value_of(billed.cost)}

"""Plans of one replica configuration as arrays: memory, times, rates and money of every number of replicas and of
users.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.bands import safe_bytes
from tonnage.estimate.inputs import Question
from tonnage.estimate.load import mean_lengths
from tonnage.estimate.load.options import ReplicaLoad, asked, lengths
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving_time.speed import Replica, clock, replica_of
from tonnage.estimate.serving_time.times import ServingTimes, times
from tonnage.formulas import service as h
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message
from tonnage.runtimes import serving_runtime
from tonnage.search.serving.machines import wires
from tonnage.search.serving.space import Batch, Kind, Sizes, Space
from tonnage.spec import Cluster, Load, ServingPlan

BLOCK = 65_536  # plans that are held at once
USERS = np.arange(1, 1025)  # of a replica, where they are searched
FEW = np.array(
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
)  # of an engine without a queue, which sets itself up anew for each
RATES = np.append(np.arange(1, 500) / 500, 1 - 1e-6)  # of the most that a replica answers, where rates are searched
LEAST_RATE = 1e-9  # requests a second
NAN = float("nan")


class Config(NamedTuple):
    """One replica configuration. `engine`, `stored`: the names that the kind comes to."""

    kind: Kind
    engine: str
    stored: str
    sizes: Sizes
    batch: Batch

    def options(self, space: Space) -> ServingOptions:
        """The options of `tonnage serve` for this configuration, without the users."""
        o, s = space.options, self.sizes
        groups = s.groups if s.groups > 1 or o.attention_data_parallel_size else None
        return replace(
            o,
            engine=self.kind.engine,
            weights=self.kind.weights,
            kv_cache=self.kind.kv_cache,
            tensor_parallel_size=s.tensor,
            pipeline_parallel_size=s.pipeline,
            expert_parallel_size=s.expert,
            attention_data_parallel_size=groups,
            max_num_batched_tokens=self.batch.tokens,
            max_num_seqs=self.batch.requests,
        )


class Layout(NamedTuple):
    """A number of replicas and the cluster that they fill. `prefill`: of them compute prompts alone, 0: all do both.
    `usd`: an hour, NaN where no price is known.
    """

    replicas: int
    cluster: Cluster
    usd: float
    prefill: int = 0


class Rows(Struct, frozen=True, kw_only=True, eq=False):
    """Arrays of shape (layouts, users), or of one that becomes it. NaN where it was not computed, for what it says
    before did not hold.

    `each`: users of a replica, or requests a second, the mean; `fullest`: requests of the replica that has most of
    them, whose `ttft` and `tpot` these
    are: replicas do not share all numbers of users evenly. `requests` are of the mean. `users`: of all replicas;
    `room`: the cache holds a request; `unknown`: why some have no times;
    `safe`: the largest need with which a plan fits at the high end of the error band; `near`: as of the space; `whole`:
    seconds of a whole answer, where prompts have replicas of their own.
    """

    plan: ServingPlan
    replica: Replica | None
    layouts: Sequence[Layout]
    load: Load
    usable: int
    safe: float
    needed: Any
    known: Any
    room: Any
    each: Any
    fullest: Any
    users: Any
    ttft: Any
    tpot: Any
    requests: Any
    prompt: float
    answer: float
    unknown: str = ""
    whole: Any = None
    near: tuple[float, float] | None = None

    @property
    def accelerators(self) -> Any:
        return np.array([layout.cluster.size for layout in self.layouts])[:, None]

    @property
    def usd(self) -> Any:
        return np.array([layout.usd for layout in self.layouts])[:, None]

    @property
    def end_to_end(self) -> Any:
        if self.whole is not None:
            return self.whole
        return self.ttft + h.later_tokens_seconds.evaluate(O=self.answer, tau=self.tpot)

    @property
    def past(self) -> Any:
        """The most that a time is, of what was asked for."""
        ttft, tpot = self.near or (NAN, NAN)
        return np.maximum(self.ttft / ttft, self.tpot / tpot)

    @property
    def tokens(self) -> Any:
        """Output tokens a second of all replicas together."""
        return h.answered_tokens_per_second.evaluate(X=self.requests, O=self.answer)

    @property
    def usd_per_million(self) -> Any:
        """USD per million tokens of prompts and answers."""
        everything = h.all_tokens_per_second.evaluate(X=self.requests, s=self.prompt, O=self.answer)
        return h.usd_per_million_tokens.evaluate(USD_all=self.usd, tps=everything)


def users_searched(engine: str, version: str, asks_queue: bool = True) -> Any:
    """The numbers of users per replica that are tried."""
    return USERS if serving_runtime(engine, version).queues and asks_queue else FEW


def blocks(space: Space, config: Config, layouts: Sequence[Layout]) -> Iterator[Rows]:
    """All plans of a configuration, so many at once. InvalidPlan or MissingDatum where it is none."""
    question = Question()
    options = config.options(space)
    plan = serving_plan(space.model, layouts[0].cluster, replace(options, concurrency=None), question)
    usual_lengths = lengths(space.model, options, space.load)
    wanted = asked(plan, replace(options, concurrency=None), space.load, usual_lengths, question)
    users = users_searched(config.engine, plan.engine_version) if space.searches_users else np.ones(1)
    users = RATES if space.searches_rates else users
    step = max(BLOCK // len(users), 1)
    for start in range(0, len(layouts), step):
        yield _Block(space, plan, wanted, layouts[start : start + step]).rows()


def least_token_seconds(space: Space, config: Config, layouts: Sequence[Layout]) -> float:
    """The time of a pass with nothing in it, which no token is faster than: of all these layouts the least."""
    options = config.options(space)
    plan = serving_plan(space.model, layouts[0].cluster, replace(options, concurrency=None), Question())
    kinds: dict[Any, Cluster] = {}
    for layout in layouts:
        with suppress(MissingDatum):
            kinds.setdefault(wires(layout.cluster, config.sizes.ranks), layout.cluster)
    clocks = [clock(space.model, replace(plan, concurrency=1), cluster) for cluster in kinds.values()]
    return min(
        (float(clock_of_cluster.seconds(0, 0, 0, 0) / clock_of_cluster.tokens_each) for clock_of_cluster in clocks),
        default=0.0,
    )


class _Block:
    """One block; arrays are filled in as plans turn out to be possible."""

    def __init__(self, space: Space, plan: ServingPlan, wanted: ReplicaLoad, layouts: Sequence[Layout]):
        self.space, self.plan, self.layouts = space, plan, layouts
        self.load = wanted.load
        self.chip = layouts[0].cluster.accelerator
        self.usable = self.chip.memory.usable_bytes - space.options.reserve_bytes
        self.safe = safe_bytes(plan.engine, self.chip, self.usable)
        self.replicas = np.array([layout.replicas for layout in layouts])[:, None]
        self.each, self.requests_of = self._shared()
        self.shape = np.broadcast_shapes(self.replicas.shape, self.each.shape)
        self.out = {name: np.full(self.shape, NAN) for name in ("ttft", "tpot", "requests")}
        self.known, self.room = np.zeros(self.shape, dtype=bool), np.zeros(self.shape, dtype=bool)
        self.replica: Replica | None = None
        self.unknown = ""

    def _shared(self) -> tuple[Any, Any]:
        """(users, or requests a second, of each replica that has any; requests that each must have room for)."""
        space, replicas = self.space, self.replicas
        if space.load.request_rate is not None:
            rates = (
                np.full((len(replicas), len(RATES)), NAN)
                if space.searches_rates
                else space.load.request_rate / replicas
            )
            return rates, np.ones_like(replicas)
        if space.users is None:
            users = users_searched(self.plan.engine, self.plan.engine_version)[None, :]
            return users, users
        return space.users / np.minimum(replicas, space.users), -(-space.users // replicas)

    def rows(self) -> Rows:
        needed = np.full(self.requests_of.shape, NAN)
        for plan, memory, mask in self._memory():
            bytes_needed = _fullest(memory, int(np.count_nonzero(mask)))
            needed[mask] = bytes_needed
            fits = np.broadcast_to(mask & (needed <= self.safe), self.shape)
            if fits.any():
                self._time(plan, memory, fits)
        busy = self.replicas if self.space.users is None else np.minimum(self.replicas, self.space.users)
        prompt, answer = mean_lengths(self.load)
        users = self.each * self.replicas if self.space.searches_users else self.space.users or 0
        return Rows(
            plan=self.plan,
            replica=self.replica,
            load=self.load,
            layouts=self.layouts,
            usable=self.usable,
            safe=self.safe,
            needed=needed,
            known=self.known,
            room=self.room,
            each=self.each,
            fullest=self.requests_of,
            users=users,
            ttft=self.out["ttft"],
            tpot=self.out["tpot"],
            requests=self.out["requests"] * busy,
            prompt=prompt,
            answer=answer,
            unknown=self.unknown,
            near=self.space.near,
        )

    # ---- memory ----

    def _memory(self) -> Iterator[tuple[ServingPlan, ServingMemory, Any]]:
        """A plan with its memory, and of which entries: all at once where an engine's settings do not depend on the
        requests.
        """
        model, plan, chip = self.space.model, self.plan, self.chip
        if not self._depends():
            many = replace(plan, concurrency=self.requests_of.reshape(-1))
            memory = serving_memory(model, many, chip)
            if not any(getattr(rank.besides_cache.value, "ndim", 0) for rank in memory.ranks):
                yield plan, memory, np.ones(self.requests_of.shape, dtype=bool)
                return
        for number in np.unique(self.requests_of).tolist():
            one = replace(plan, concurrency=int(number))
            yield one, serving_memory(model, one, chip), self.requests_of == number

    def _depends(self) -> bool:
        """Whether the engine's limits come from the requests that there are."""
        engine = serving_runtime(self.plan.engine, self.plan.engine_version)
        few, many = (batch_limits(engine, replace(self.plan, concurrency=number), self.chip) for number in (1, 1000))
        return not engine.queues or few != many

    # ---- time ----

    def _time(self, plan: ServingPlan, memory: ServingMemory, fits: Any) -> None:
        for rows, cluster in self._alike(fits):
            try:
                replica = replica_of(self.space.model, plan, cluster, memory, self.usable, self.load)
            except MissingDatum as error:
                self.unknown = str(error)
                continue
            if not replica.clock.knows_prompts:
                self.unknown = Message(
                    "no source gives a bf16, fp16 or fp32 peak of {chip}: how long prompts take is not known.",
                    chip=self.chip.name,
                )
                continue
            self.replica = replica
            here = np.zeros(self.shape, dtype=bool)
            here[rows] = fits[rows]
            self.known |= here
            if replica.pool is not None and replica.pool < self.load.input_tokens + self.load.output_tokens:
                continue
            self.room |= here
            self._fill(replica, rows, here)

    def _alike(self, fits: Any) -> Iterator[tuple[Any, Cluster]]:
        """Layouts in which a replica is as fast, with one of their clusters."""
        ranks = self.plan.world_size // self.plan.data_parallel_size
        rows_by_wires: dict[Any, list[int]] = {}
        for row in np.flatnonzero(fits.any(axis=1)).tolist():
            try:
                key = wires(self.layouts[row].cluster, int(ranks))
            except MissingDatum as error:
                self.unknown = str(error)
                continue
            rows_by_wires.setdefault(key, []).append(row)
        for rows in rows_by_wires.values():
            yield np.array(rows), self.layouts[rows[0]].cluster

    def _fill(self, replica: Replica, rows: Any, here: Any) -> None:
        """Each load is timed once, and stands for all layouts that have it."""
        columns = np.flatnonzero(here.any(axis=0))
        is_open, by_users = self.space.load.request_rate is not None, self.each.shape[0] == 1
        if self.space.searches_rates:
            most = self._times(replica, np.full(1, LEAST_RATE)).largest_rate
            self.each[rows] = RATES * np.max(most)
            by_users = True
        loads = self.each[rows[0] if self.space.searches_rates else 0, columns] if by_users else self.each[rows, 0]
        most = loads if by_users or is_open else self.requests_of[rows, 0]
        times = mean = self._times(replica, most)
        if (most > loads).any():
            mean = self._times(replica, loads)
        for name, value in (
            ("ttft", times.ttft_seconds),
            ("tpot", times.tpot_seconds),
            ("requests", mean.requests_per_second),
        ):
            figure = np.broadcast_to(np.asarray(value), loads.shape)
            self.out[name][np.ix_(rows, columns)] = figure[None, :] if by_users else figure[:, None]

    def _times(self, replica: Replica, loads: Any) -> ServingTimes:
        """Times of a replica at these loads: users, or requests a second."""
        if self.space.load.request_rate is not None:
            load = replace(self.load, requests_per_second=loads)
        else:
            load = replace(self.load, concurrency=loads, requests_per_second=None)
        return times(replica.clock, replica.policy, load)


def _fullest(memory: ServingMemory, number: int) -> Any:
    values = [np.broadcast_to(np.asarray(rank.memory.value, dtype=float), (number,)) for rank in memory.ranks]
    return np.max(values, axis=0)

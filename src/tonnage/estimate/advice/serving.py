"""The next best moves of a serving replica: changes of its plan, each estimated again."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.advice import Chosen
from tonnage.estimate.advice.chosen import chosen_of, free_ladders, given_options
from tonnage.estimate.advice.larger_cards import with_cheaper_machine
from tonnage.estimate.advice.moves import (
    Changes,
    Ladder,
    Suggestions,
    Values,
    bare,
    best_moves,
    cheapest,
    ordered,
    paid,
)
from tonnage.estimate.bands import serving_highest
from tonnage.estimate.inputs import Unread
from tonnage.estimate.load.options import USUAL, LoadOptions, ReplicaLoad, is_stated
from tonnage.estimate.money.bill import Rent
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.run.larger_machines import Machines, doublings, elsewhere, other_machines
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import serving_memory, serving_needed
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.overhead import memory_share
from tonnage.estimate.serving.placement import has_host
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving.weights.formats import narrower_weights
from tonnage.estimate.serving_time.pace import Pace, keep_context, pace_of
from tonnage.kernel.errors import TonnageError
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Cluster, ServingPlan

LEAST_PART = 0.8  # of the bytes that are needed now, what other machines hold at least to be tried
FILES = ("q8_0", "q4_k_m")  # the same as files of llama.cpp
SHARES = (0.95, 0.97)  # of an accelerator's memory, where its context has room beside them
# Shares that users of SGLang state, and the least of its own rule that is taken as meant: it subtracts memory for
# graphs of every group of attention, so that of 64 groups less than nothing is left (overhead.py: static_share).
USUAL_SHARES, LEAST_SHARE = (0.8, 0.85, 0.9), 0.5
BLOCK = 1024  # tokens: a shorter context is proposed in steps of this, below it in single tokens
LAYOUT = frozenset({"tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size"})
ON_HOST = frozenset({"expert_layers_on_host", "layers_on_accelerator"})
MANY = 8  # times the machine: no larger one is proposed


RentOf = Callable[[Cluster], Rent | None]  # what a cluster costs an hour; None where no price is known


class Unfit(Struct, frozen=True, kw_only=True, eq=False):
    """What was asked of replicas that do not fit. `reserve`: bytes that are left free; `least_context`: tokens of
    the requests that were asked about; `high`: the high end of the error band; `now`: tokens a second of all
    machines, None where none are answered.
    """

    model: Model
    cluster: Cluster
    options: ServingOptions
    plan: ServingPlan
    needed: int
    high: int
    usable: int
    least_context: int
    load: LoadOptions
    wanted: ReplicaLoad
    rent: RentOf
    now: float | None


def serving_advice(case: Unfit) -> Suggestions:
    """Changes with which it would fit."""
    replicas = _Replicas(case)
    now = paid(case.now, lambda: case.rent(case.cluster))
    moves = best_moves(_ladders(replicas, case.least_context), replicas.ask, case.needed, case.usable, case.high, now)
    reserve = case.cluster.accelerator.memory.usable_bytes - case.usable
    least = case.needed * LEAST_PART * case.cluster.size
    if moves.moves or moves.nearest is None:
        others = other_machines(case.cluster, least)
        return with_cheaper_machine(moves, others, replicas.on, case.rent, case.needed, reserve, now)
    smallest = next((other.name for other in elsewhere(case.cluster, least) if replicas.fits_on(other, reserve)), None)
    return Suggestions(moves=[], nearest=replace(moves.nearest, smallest_machine=smallest))


def chosen_change(case: Unfit) -> Chosen | None:
    """The cheapest change that makes replicas fit, of options that were not given; None where none does.

    Load, numerics and machine stay, and nothing is left to the host. The layout is tried first; then a shorter context
    too, where neither a context nor a load was given; then settings of the engine.
    """
    replicas = _Replicas(case, holds_users=False)
    stated = is_stated(case.options, case.load)
    never = ON_HOST if stated else ON_HOST | {"max_num_seqs"}  # of one user nothing would be left of it
    free = list(free_ladders(_ladders(replicas, 0), given_options(case.options), never))
    layout = [ladder for ladder in free if ladder.steps[0].keys() <= LAYOUT]
    shorter: list[Ladder] = []
    if case.options.context is None and not stated:
        contexts = range((case.plan.context - 1) // BLOCK * BLOCK, 2 * USUAL - 1, -BLOCK)
        shorter = [_ladder("context", contexts)] if contexts else []
    for ladders in (layout, [*layout, *shorter], [*free, *shorter]):
        if outcome := cheapest(ladders, replicas.ask, case.needed, case.usable):
            return chosen_of(outcome.change, case.needed)
    return None


class _Replicas:
    """The user's replicas, and changes of them that hold the requests of all together. `holds_users`: also where
    nobody said how many there are.
    """

    def __init__(self, case: Unfit, holds_users: bool = True):
        self.case, self.model, self.cluster, self.plan = case, case.model, case.cluster, case.plan
        self.machines = Machines(case.cluster)
        self.options = replace(case.options, context=int(case.plan.context))  # a default may be the load's own
        self.has_users = (
            holds_users and not case.wanted.is_open
        )  # of requests that come by themselves nobody says how many are held
        self.requests = case.options.concurrency or case.plan.data_parallel_size * case.plan.concurrency

    def ask(self, change: dict[str, Any]) -> "ChangedReplicas | None":
        """The change and its bytes; None if it is no plan."""
        cluster = self.machines.of(change.get("on"))
        fields = {name: value for name, value in change.items() if name != "on"}
        try:
            plan = self._plan(cluster, fields)
            if (
                self.has_users
                and "concurrency" not in fields
                and not self.options.concurrency
                and plan.data_parallel_size != self.requests
            ):
                fields["concurrency"] = self.requests
                plan = self._plan(cluster, fields)
            if plan.data_parallel_size <= (self.case.wanted.prefill_replicas or 0):
                return None  # no replica would be left to decode
            needed = serving_needed(self.model, plan, cluster.accelerator)
        except TonnageError:
            return None
        return ChangedReplicas(self, cluster, fields, "on" in change, plan, needed)

    def on(self, machine: Cluster) -> "ChangedReplicas | None":
        """The replicas on other accelerators, all of them in one."""
        return self.ask({"on": machine, "tensor_parallel_size": machine.size, "pipeline_parallel_size": 1})

    def said(self, cluster: Cluster, fields: dict[str, Any], has_machine: bool, plan: ServingPlan) -> dict[str, Any]:
        """Every option that the user has to give for this plan."""
        case = self.case
        said = bare(fields, self.plan, lambda rest: self._plan(cluster, rest))
        said = keep_context(self.model, cluster, case.options, case.load, plan, said)
        return ordered(said | ({"on": cluster.name} if has_machine else {}), ServingOptions)

    def _plan(self, cluster: Cluster, fields: dict[str, Any]) -> ServingPlan:
        return serving_plan(self.model, cluster, replace(self.options, **fields), Unread())

    def pace(self, cluster: Cluster, fields: dict[str, Any], plan: ServingPlan) -> Pace | None:
        """What it then answers; None where nobody can say."""
        case, options = self.case, replace(self.options, **fields)
        try:
            memory = serving_memory(self.model, plan, cluster.accelerator)
            larger = cluster.accelerator.memory.usable_bytes - self.cluster.accelerator.memory.usable_bytes
            return pace_of(self.model, cluster, options, plan, memory, case.usable + larger, case.load, case.wanted)
        except TonnageError:
            return None

    def fits_on(self, machine: Cluster, reserve: int) -> bool:
        """Whether the replicas as they were asked about fit on other accelerators."""
        try:
            plan = serving_plan(self.model, machine, self.options, Unread())
            needed = serving_needed(self.model, plan, machine.accelerator)
        except TonnageError:
            return False
        return (
            serving_highest(plan.engine, machine.accelerator, needed)
            <= machine.accelerator.memory.usable_bytes - reserve
        )


class ChangedReplicas:
    """An outcome of a change of replicas: its options and times are found when they are asked for."""

    changes: Changes = "nothing"
    seconds = None

    def __init__(
        self,
        replicas: _Replicas,
        cluster: Cluster,
        fields: dict[str, Any],
        has_machine: bool,
        plan: ServingPlan,
        needed: float,
    ):
        self.replicas, self.cluster, self.fields, self.has_machine = replicas, cluster, fields, has_machine
        self.plan, self.needed = plan, ceil(needed)
        self.most = max(self.needed, serving_highest(plan.engine, cluster.accelerator, needed))

    @cached_property
    def change(self) -> dict[str, Any]:
        return self.replicas.said(self.cluster, self.fields, self.has_machine, self.plan)

    def fits(self, usable: int) -> bool:
        return self.most <= usable

    def exceeds(self, needed: int) -> bool:
        return self.needed > needed

    @property
    def at_least(self) -> float:
        return self.needed

    def is_lighter(self, other: "ChangedReplicas", *, or_alike: bool = False) -> bool:
        return self.needed <= other.needed if or_alike else self.needed < other.needed

    @cached_property
    def _pace(self) -> Pace | None:
        return self.replicas.pace(self.cluster, self.fields, self.plan)

    def pace(self) -> float | None:
        """Tokens a second of all machines."""
        return self._pace.everything if self._pace else None

    def times(self) -> dict[str, Any]:
        """Its times by their names in the document."""
        return self._pace.figures if self._pace else {}

    def serves(self) -> bool | None:
        """Whether it serves the load as it was asked; None where nobody asked."""
        return self._pace.serves if self._pace else None

    def rent(self) -> Rent | None:
        """USD that its machines cost an hour."""
        return self.replicas.case.rent(self.cluster)


def _ladders(replicas: _Replicas, least_context: int) -> Iterator[Ladder]:
    """Kinds of changes that free memory, what costs least speed first."""
    model, cluster, plan = replicas.model, replicas.cluster, replicas.plan
    t, p = plan.tensor_parallel_size, plan.pipeline_parallel_size
    engine = serving_runtime(plan.engine, plan.engine_version)
    limits = batch_limits(engine, plan, cluster.accelerator)
    yield _ladder("max_num_seqs", _halves(limits.requests, plan.concurrency) if engine.queues else ())
    yield _ladder("tensor_parallel_size", doublings(2 * t, cluster.size // p))
    if expert_counts(model):
        yield _ladder("expert_parallel_size", doublings(2 * plan.expert_parallel_size, t))
    yield _ladder("pipeline_parallel_size", doublings(2 * p, cluster.size // t))
    least = min(limit.tokens for limit in engine.limits if not limit.kind) if not engine.cells else 0
    yield _ladder("max_num_batched_tokens", _halves(limits.tokens, least) if least else ())
    graphs = engine.graphs[0] and not plan.enforce_eager and cluster.accelerator.kind == "gpu"
    yield _ladder("enforce_eager", (True,) if graphs else ())
    yield from _to_host(model, plan, engine, cluster)
    yield _ladder("gpu_memory_utilization", _shares(engine, plan, model, cluster))
    yield from _more(replicas)
    yield _ladder("concurrency", range(replicas.requests - 1, 0, -1) if replicas.has_users else (), "workload")
    least = max(least_context, 1) - 1
    contexts = range((plan.context - 1) // BLOCK * BLOCK, least, -BLOCK)
    yield _ladder("context", contexts if contexts else range(plan.context - 1, least, -1), "workload")
    yield _ladder("kv_cache", ("q8_0",) if engine.gguf else ("fp8",), "numerics")
    old = "fp16" in cluster.accelerator.dense_flops and "bf16" not in cluster.accelerator.dense_flops
    # fp8 needs what has bf16 too
    narrower = tuple(name for name in engine.narrower_weights if name != "fp8" or not old)
    choices = FILES if engine.gguf else narrower
    yield _ladder("weights", narrower_weights(model, plan.weights, engine, cluster.accelerator, choices), "numerics")


def _to_host(model: Model, plan: ServingPlan, engine: ServingRuntime, cluster: Cluster) -> Iterator[Ladder]:
    """Of llama.cpp's layers some stay in host memory: experts first, which a token seldom asks for, then whole
    layers. Of an engine that keeps experts there, more of each layer.
    """
    if engine.host_experts is not None:
        yield _ladder("gpu_experts", range(plan.host.gpu_experts - 1, -1, -1))
        return
    if (
        "expert_layers_on_host" not in engine.settings
        or not has_host(engine, cluster.accelerator)
        or cluster.accelerator.memory.unified
    ):
        return
    if expert_counts(model) and not plan.host.expert_layers_on_host:
        yield _ladder("expert_layers_on_host", range(1, model.num_layers + 1))
    if plan.host.layers_on_accelerator is None:
        yield _ladder("layers_on_accelerator", range(model.num_layers, plan.pipeline_parallel_size - 1, -1))


def _shares(engine: ServingRuntime, plan: ServingPlan, model: Model, cluster: Cluster) -> tuple[float, ...]:
    """Larger parts of the memory for the engine, which leave its context room; usual ones where the engine's own rule
    reserves so much that little is left, as SGLang's does for graphs of many groups of attention.
    """
    if engine.reserve is not None and plan.gpu_memory_utilization is None:
        now = memory_share(engine, plan, model, cluster.accelerator)
        return USUAL_SHARES if now is not None and now < LEAST_SHARE else ()
    if engine.memory_share is None or engine.share_of != "total" or plan.gpu_memory_utilization is not None:
        return ()
    usable = cluster.accelerator.memory.usable_bytes
    return tuple(share for share in SHARES if usable * (1 - share) >= engine.context + plan.reserve_bytes)


def _halves(now: int, least: int) -> list[int]:
    """Halves of what one forward pass takes now, down to what it needs."""
    return [now // cut for cut in doublings(2, now // max(least, 1))]


def _more(replicas: _Replicas) -> Iterator[Ladder]:
    """More accelerators: more replicas that share the requests, or larger ones: tensor ranks in a node, stages over
    nodes.

    The same step of both ladders is the same machine.
    """
    machines, plan = replicas.machines, replicas.plan
    counts = machines.larger(MANY)
    engine = serving_runtime(plan.engine, plan.engine_version)
    if engine.cells is not None and engine.cells.by_layers:
        most = min(machines.node_size, replicas.model.num_layers)
        layers = [{"on": n, "tensor_parallel_size": 1, "pipeline_parallel_size": min(n, most)} for n in counts]
        yield Ladder(tuple(layers), "machine")
        return
    tensor = {"tensor_parallel_size": plan.tensor_parallel_size}
    if plan.concurrency > 1:
        yield Ladder(tuple({"on": count, **tensor} for count in counts), "machine")
    steps = []
    for count in counts:
        per_node = min(count, machines.node_size)
        steps.append({"on": count, "tensor_parallel_size": per_node, "pipeline_parallel_size": count // per_node})
    yield Ladder(tuple(steps), "machine")


def _ladder(name: str, values: Sequence[Any], changes: Changes = "nothing") -> Ladder:
    return Ladder(Values(name, values), changes)

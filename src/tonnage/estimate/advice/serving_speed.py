"""The next best moves of a replica that fits: changes of its plan that make a token, or all of them, faster, each
estimated again. Where the load is not served as it was asked (within its limits, or at all), moves that serve it, on
more accelerators too; where it is, none that ends that.
"""

from collections.abc import Callable, Iterator
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.advice import ORDER, Advice, Changes
from tonnage.estimate.advice.moves import Settled, bare, move_of, ordered, paid
from tonnage.estimate.bands import serving_highest
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions, ReplicaLoad
from tonnage.estimate.money.bill import Rent
from tonnage.estimate.run.larger_machines import Machines, doublings
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving.weights.formats import narrower_weights
from tonnage.estimate.serving_time.pace import Pace, keep_context, pace_of
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.speed import Speed
from tonnage.kernel.errors import TonnageError
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

NUMERICS = ("weights", "kv_cache")
WORTH = 1.05  # times faster than now, a token or all of them
MAX_MOVES = 4
MACHINES = 2  # of them on more accelerators
MANY = 8  # times the machine, where the requests of a file say nothing about how many are needed


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """What was asked and found. `an_hour`: USD that all machines cost an hour, None where no price is known; `rent`:
    the same of other machines.
    `is_late`: the load is not served as it was asked. `accelerators_needed`: that serve it, in replicas as they are;
    0 where none do.
    """

    model: Model
    cluster: Cluster
    options: ServingOptions
    load: LoadOptions
    plan: ServingPlan
    made: ServingMemory
    usable: int
    wanted: ReplicaLoad
    speed: Speed
    an_hour: float | None
    rent: Callable[[Cluster], Rent | None]
    is_late: bool
    accelerators_needed: int

    @property
    def own_rent(self) -> Rent | None:
        """Of the machines that were asked about."""
        return None if self.an_hour is None else Rent(self.an_hour)

    @property
    def ranks(self) -> int:
        """Accelerators of a replica for each tensor rank."""
        return int(self.plan.pipeline_parallel_size * self.plan.attention_data_parallel_size)


class _Changed(Struct, frozen=True, eq=False):
    """A plan that fits: the change with everything that it moves, its machine, bytes and times."""

    change: dict[str, Any]
    cluster: Cluster
    made: ServingMemory
    pace: Pace


def speed_moves(case: Case) -> list[Advice]:
    """The moves with which a token, or all tokens together, come faster; those that change no numbers first. Where
    limits were asked and are kept, the fewest accelerators that keep them come before. Of a load that is not served
    those that serve it, what changes least first, then the fewest accelerators; where none does, those that are faster.
    """
    moves = [move for change in _changes(case) if (move := _move(case, _changed(case, change)))]
    if not case.is_late:
        moves.sort(key=lambda move: (move.changes == "numerics", move.tpot_seconds))
        return [*_fewer(case), *moves][:MAX_MOVES]
    moves.sort(key=lambda move: (ORDER.index(move.changes), move.tpot_seconds))
    larger = [_move(case, changed) for changed in _larger(case)]
    first = [move for move in moves if move.serves and move.changes == "nothing"]
    serving = [
        *first,
        *filter(None, larger),
        *(move for move in moves if move.serves and move.changes != "nothing"),
    ]
    return (serving or moves)[:MAX_MOVES]


def _changes(case: Case) -> Iterator[dict[str, Any]]:
    plan = case.plan
    runtime = serving_runtime(plan.engine, plan.engine_version)
    t = int(plan.tensor_parallel_size)
    widths = doublings(2 * t, case.cluster.size // case.ranks) if case.is_late else (2 * t,)
    yield from ({"tensor_parallel_size": width} for width in widths)
    if t > 1:
        yield {"tensor_parallel_size": t // 2}
    groups, users = int(plan.attention_data_parallel_size), ceil(case.wanted.load.concurrency or 0)
    if runtime.queues and users > batch_limits(runtime, plan, case.cluster.accelerator).requests * groups:
        yield {"max_num_seqs": -(-users // groups)}  # then nobody waits for a place
    if plan.enforce_eager:
        yield {"enforce_eager": False}
    for weights in narrower_weights(
        case.model, plan.weights, runtime, case.cluster.accelerator, runtime.faster_weights
    ):
        yield {"weights": weights}
    if runtime.reads_faster_cache and not (plan.kv_cache or "").startswith("fp8"):
        yield {"kv_cache": "fp8"}


def _larger(case: Case) -> list[_Changed]:
    """More accelerators of the same kind on which the load is served, the fewest first: as many replicas as it
    takes, as they are or of more tensor ranks.
    """
    machines, t = Machines(case.cluster), int(case.plan.tensor_parallel_size)
    sizes = {"tensor_parallel_size": t, "pipeline_parallel_size": int(case.plan.pipeline_parallel_size)}
    changes: list[dict[str, Any]] = []
    if case.wanted.requests is not None:
        changes += [sizes | {"on": count} for count in machines.larger(MANY)]
    elif case.accelerators_needed:
        changes.append(sizes | {"on": machines.holding(case.accelerators_needed)})
    wider = (
        doublings(2 * t, machines.node_size // case.ranks)
        if case.wanted.percentile == "mean" and case.wanted.requests is None
        else ()
    )
    for width in wider:
        least = machines.holding(width * case.ranks)
        one = None if least is None else _changed(case, sizes | {"on": least, "tensor_parallel_size": width})
        if one and (needed := one.pace.replicas_needed):
            changes.append(sizes | {"on": machines.holding(needed * width * case.ranks), "tensor_parallel_size": width})
    larger = [_changed(case, change) for change in changes if (change["on"] or 0) > case.cluster.size]
    serving = [changed for changed in larger if changed and changed.pace.serves]
    return sorted(serving, key=lambda changed: (changed.cluster.size, changed.pace.found.tpot_seconds))[:MACHINES]


def _fewer(case: Case) -> list[Advice]:
    """Fewer accelerators of the same kind that keep within the limits, where there are limits: the fewest that do so
    at the high end of the error band, then the fewest that do so by the estimate.
    """
    machines, size = Machines(case.cluster), case.cluster.size
    if not case.wanted.limited or case.wanted.requests is not None or machines.holding(size) is None:
        return []
    t, p = int(case.plan.tensor_parallel_size), int(case.plan.pipeline_parallel_size)
    sure, served = None, None
    for count in reversed(doublings(1, size // 2)):
        if size % count or machines.holding(count) != count:
            continue
        stages = max(p * count // size, 1)
        change = {"on": count, "tensor_parallel_size": min(t, count // stages), "pipeline_parallel_size": stages}
        changed = _changed(case, change)
        if changed is None or not changed.pace.serves:
            break  # fewer still need more of each and take longer
        served = changed
        sure = changed if _is_sure(case, changed) else sure
    found = [changed for changed in (sure, served) if changed is not None]
    return [_described(case, changed) for changed in (found[:1] if sure is served else found)]


def _is_sure(case: Case, changed: _Changed) -> bool:
    """Whether the limits are kept at the high end of the error bands too; of a percentile as far above the mean as it
    is now, which the band of the answer says.
    """
    rates, chip, found = serving_rates(), case.cluster.accelerator, changed.pace.found
    compared = serving_runtime(case.plan.engine, case.plan.engine_version).is_compared
    for name, limit in (("ttft_seconds", case.wanted.ttft), ("tpot_seconds", case.wanted.tpot)):
        value = getattr(found, name)
        is_asked = limit is not None and value is not None
        band = rates.around(name, value, chip, is_compared=compared) if is_asked else None
        if limit is not None and (value is None or max(value, band[1] if band else value) > limit):
            return False
    return True


def _requests(plan: ServingPlan) -> int:
    """Held at the same time, by all replicas together."""
    return int(plan.data_parallel_size * plan.concurrency)


def _changed(case: Case, change: dict[str, Any]) -> _Changed | None:
    """None where it is no plan, or does not fit. `on`: accelerators of the same kind, as many as there are where it
    is not there.
    """
    on = change.get("on")
    cluster = Machines(case.cluster).of(on)
    fields = {name: value for name, value in change.items() if name != "on"}

    def planned(more: dict[str, Any]) -> ServingPlan:
        options = replace(case.options, **{"context": int(case.plan.context), **more})
        return serving_plan(case.model, cluster, options, Question())

    try:
        plan = planned(fields)
        if not (case.options.concurrency or case.wanted.is_open) and _requests(plan) != _requests(case.plan):
            fields["concurrency"] = _requests(case.plan)  # the default follows the replicas: another workload
            plan = planned(fields)
        memory = serving_memory(case.model, plan, cluster.accelerator)
        if serving_highest(plan.engine, cluster.accelerator, memory.memory.value) > case.usable:
            return None
        options = replace(case.options, **{"context": int(case.plan.context), **fields})
        pace = pace_of(case.model, cluster, options, plan, memory, case.usable, case.load, case.wanted)
    except TonnageError:
        return None
    if pace is None:
        return None
    if on is not None:
        fields = {**bare(fields, case.plan, planned), "on": cluster.name}
    fields = keep_context(case.model, cluster, case.options, case.load, plan, fields)
    return _Changed(ordered(fields, ServingOptions), cluster, memory, pace)


def _move(case: Case, changed: _Changed | None) -> Advice | None:
    """None where it makes nothing faster, or where a load that is served would be no more; what serves one that is
    not need not be faster.
    """
    if changed is None:
        return None
    pace = changed.pace
    now, before = case.speed.times.tpot_seconds, case.speed.tokens_per_second
    is_faster = now >= WORTH * pace.found.tpot_seconds or pace.answers >= WORTH * before
    if not is_faster and not case.is_late:
        return None
    serves = pace.serves
    if (serves is False and not case.is_late) or not (is_faster or serves):
        return None
    return _described(case, changed)


def _described(case: Case, changed: _Changed) -> Advice:
    """The move as the document has it."""
    pace, cluster = changed.pace, changed.cluster
    serves, is_here = pace.serves, "on" not in changed.change
    settled = Settled(
        changed.change,
        ceil(changed.made.memory.value),
        pace=lambda: pace.everything,
        rent=lambda: case.own_rent if is_here else case.rent(cluster),
        serves=lambda: serves,
    )
    kind: Changes = "nothing" if is_here else "machine"
    kind = "numerics" if any(name in NUMERICS for name in changed.change) else kind
    asked_about = paid(case.speed.all_tokens_per_second, lambda: case.own_rent)
    move = move_of(settled, kind, ceil(case.made.memory.value), case.usable, now=asked_about)
    return replace(move, **pace.figures)

"""Rows of training: a part of a block as columns of arrays, from the sizes that were asked for to bytes, seconds and
dollars.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from tonnage.architectures import Model
from tonnage.catalogue import cluster as cluster_named
from tonnage.estimate.bands import training_band
from tonnage.estimate.frameworks.base import rules_of
from tonnage.estimate.inputs import Question
from tonnage.estimate.money.bill import BillOptions, usd_per_hour
from tonnage.estimate.options.parallel import facts_of
from tonnage.estimate.options.plans import training_plan, usual_runtime
from tonnage.estimate.plan.rule import expert_counts, reasons
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import COLUMNS, bytes_and_seconds, needed_bytes
from tonnage.estimate.post_training.rollout import whole_cluster
from tonnage.formulas.cost import rent_usd
from tonnage.formulas.run import tokens_per_step
from tonnage.formulas.service import usd_per_million_tokens
from tonnage.formulas.time import tokens_per_second
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.models import read
from tonnage.runtimes import TrainingRuntime, training_runtime
from tonnage.search.removed import Tally
from tonnage.search.sweep import post_training
from tonnage.search.sweep.companions import Companions, column_of, size_of_experts
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.tasks import Part, Tasks
from tonnage.spec import Cluster, TrainingPlan

# Sizes that decide how a plan is laid out: the rules of a runtime are asked once for each combination of them.
LAYOUT = (
    "tensor_parallel_size",
    "context_parallel_size",
    "expert_parallel_size",
    "expert_tensor_parallel_size",
    "data_parallel_size",
)
BATCH = ("sequence_length", "micro_batch_size", "num_microbatches")
CHOSEN = ("runtime", "precision", "optimizer", "recompute", "zero_stage")
NUMBER = re.compile(r"(?<![\w.-])\d[\d,.]*(?![\w-])")  # one that stands alone
HELD = 16  # models and clusters that a worker keeps: chunks come in their order

Columns = dict[str, np.ndarray]


class PricedCluster(Struct, frozen=True, eq=False):
    """A cluster, what its memory holds, and its price: dollars of an accelerator and hour, None where nobody knows.
    `money`: how it is paid.
    """

    name: str
    cluster: Cluster
    usable: int
    usd: float | None
    money: BillOptions


@lru_cache(HELD)
def model_of(name: str) -> Model:
    """The model of this name, read once in each worker."""
    return read(name)


@lru_cache(HELD)
def place_of(name: str, money: tuple[tuple[str, Any], ...]) -> PricedCluster:
    """The cluster of this name with its price, read once in each worker."""
    cluster = cluster_named(name)
    options = BillOptions(**dict(money))
    usable = cluster.accelerator.memory.usable_bytes
    return PricedCluster(name, cluster, usable, usd_per_hour(cluster, options), options)


def rows(spec: Spec, tasks: Tasks, part: Part, tally: Tally) -> Columns:
    """The valid plans of a part, one row each; `tally` counts the others by what they break."""
    model = model_of(spec.models[part.digits[0]])
    place = place_of(spec.clusters[part.digits[1]], tuple(sorted(spec.money.items())))
    choices = {axis.name: axis.values[digit] for axis, digit in zip(spec.outer, part.digits[2:], strict=True)}
    options = spec.options | choices
    columns: Columns = {
        axis.name: np.asarray(axis.values, dtype=np.int64)[digit]
        for axis, digit in zip(spec.inner, tasks.sizes(part), strict=True)
    }
    count = len(part)
    tally.consider(count)
    columns = size_of_experts(spec, model, columns, tally)
    try:
        columns = complete(model, place.cluster, options, columns, count)
    except TonnageError as error:
        tally.remove(why(error, model, place.cluster), count)
        return {}
    runtime = training_runtime(options.get("runtime") or usual_runtime(place.cluster))
    left = _valid(model, place.cluster, runtime, options, columns, tally)
    numbers = tasks.numbers(part)
    parts = []
    companions = Companions(spec, choices)
    for chosen, names, left_out in _laid_out(model, place.cluster, options, runtime, columns, left, tally, companions):
        sizes = {name: values[chosen] for name, values in columns.items()}
        estimated = _estimated(model, place, sizes, names, tally)
        if estimated is not None:
            varied = {
                axis.name: column_of(choices[axis.name], len(chosen), is_left_out=axis.name in left_out)
                for axis in spec.outer
                if axis.name not in (*COLUMNS, *CHOSEN)
            }
            named = {name: np.full(len(chosen), names[name]) for name in CHOSEN}
            parts.append({"plan": numbers[chosen], **named, **varied, **estimated})
    if not parts:
        return {}
    joined = {name: np.concatenate([part_columns[name] for part_columns in parts]) for name in parts[0]}
    order = np.argsort(joined["plan"], kind="stable")  # runs that are in order are merged
    ends = {"model": np.full(len(order), part.digits[0]), "cluster": np.full(len(order), part.digits[1])}
    return ends | {name: values[order] for name, values in joined.items()}


def _valid(
    model: Model,
    cluster: Cluster,
    runtime: TrainingRuntime,
    options: Mapping[str, Any],
    columns: Columns,
    tally: Tally,
) -> np.ndarray:
    """Which plans hold what is asked of their sizes: shape (plans,). `columns` are complete; `tally` counts what each
    rule takes away.
    """
    facts = facts_of(model, runtime, TrainingOptions(**options)).with_options(
        data_parallel_size=columns["data_parallel_size"]
    )
    left = np.ones(len(columns["data_parallel_size"]), dtype=bool)
    for reason, holds in reasons(facts, columns | {"accelerators": np.array(cluster.size)}, rules_of(runtime)):
        left = tally.hold(_without_names(reason, model, cluster), left, np.broadcast_to(holds, left.shape))
    return left


def complete(
    model: Model, cluster: Cluster, options: Mapping[str, Any], columns: Mapping[str, np.ndarray], count: int
) -> Columns:
    """All sizes of `count` plans, with the defaults of estimate.options.plans where nobody said any."""

    def size(name: str, default: Any) -> np.ndarray:
        given_size = columns.get(name, options.get(name))
        return np.broadcast_to(np.asarray(default if given_size is None else given_size, dtype=np.int64), (count,))

    defaults = _defaults(model, options)
    completed = {"pipeline_parallel_size": size("pipeline_parallel_size", 1)}
    # A schedule that has two chunks on each rank does not apply to one stage, and is left out there.
    chunks = np.where(completed["pipeline_parallel_size"] == 1, 1, defaults["virtual_pipeline_size"])
    completed["virtual_pipeline_size"] = size("virtual_pipeline_size", chunks)
    for name in ("tensor_parallel_size", "context_parallel_size", "expert_parallel_size"):
        completed[name] = size(name, 1)
    used = completed["tensor_parallel_size"] * completed["pipeline_parallel_size"] * completed["context_parallel_size"]
    completed["data_parallel_size"] = size("data_parallel_size", cluster.size // used)
    alone = completed["expert_parallel_size"] == 1
    experts = np.where(alone, completed["tensor_parallel_size"], 1) if expert_counts(model) else 1
    completed["expert_tensor_parallel_size"] = size("expert_tensor_parallel_size", experts)
    completed["sequence_length"] = size("sequence_length", defaults["sequence_length"])
    completed["micro_batch_size"] = size("micro_batch_size", 1)
    if "global_batch_size" in columns:
        completed["global_batch_size"] = size("global_batch_size", 0)
        sequences_of_ranks = np.maximum(completed["micro_batch_size"] * completed["data_parallel_size"], 1)
        completed["num_microbatches"] = completed["global_batch_size"] // sequences_of_ranks
    else:
        rows, stages = (
            completed["micro_batch_size"] * completed["data_parallel_size"],
            completed["pipeline_parallel_size"],
        )
        completed["num_microbatches"] = size(
            "num_microbatches", post_training.usual_microbatches(options, rows, stages)
        )
    return completed


def _defaults(model: Model, options: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that the model and the options decide, whatever the axes are."""
    from tonnage.estimate.options.plans import DEFAULT_SEQUENCE_LENGTH
    from tonnage.estimate.plan.schedule import default_chunks

    return {
        "virtual_pipeline_size": default_chunks(TrainingOptions(pipeline_schedule=options.get("pipeline_schedule"))),
        "sequence_length": post_training.usual_length(model, options)
        or min(model.context or DEFAULT_SEQUENCE_LENGTH, DEFAULT_SEQUENCE_LENGTH),
    }


def _laid_out(
    model: Model,
    cluster: Cluster,
    fixed: Mapping[str, Any],
    runtime: TrainingRuntime,
    columns: Columns,
    left: np.ndarray,
    tally: Tally,
    companions: Companions,
) -> Iterator[tuple[np.ndarray, dict[str, Any], frozenset[str]]]:
    """Plans that agree in all that is no size, these choices, and the options that do not apply to them: each layout
    is asked of estimate.options.plans, as a single answer asks it.
    """
    rows = np.flatnonzero(left)
    if not len(rows):
        return
    rows_of_plans: dict[tuple[TrainingPlan, frozenset[str]], list[np.ndarray]] = {}
    facts = [*(columns[name] for name in LAYOUT), *_batch_facts(model, fixed, runtime, columns)]
    for chosen in _grouped(rows, facts):
        first = chosen[0]
        sizes = {name: int(columns[name][first]) for name in (*COLUMNS,)}
        try:
            plan, left_out = companions.ask(
                lambda options: training_plan(model, cluster, TrainingOptions(**options), Question()),
                dict(fixed) | sizes,
            )
        except TonnageError as error:
            tally.remove(why(error, model, cluster), len(chosen))
            continue
        tally.leave_out(left_out, len(chosen))
        rows_of_plans.setdefault((_without_sizes(plan), left_out), []).append(chosen)
    for (plan, left_out), parts in rows_of_plans.items():
        plan_fields = {name: plan.field(name) for name in plan.field_names() if name not in COLUMNS}
        yield np.sort(np.concatenate(parts)), plan_fields, left_out


def _batch_facts(
    model: Model, options: Mapping[str, Any], runtime: TrainingRuntime, columns: Columns
) -> Iterator[np.ndarray]:
    """Facts of the batch on which rules depend: parts of a chunked loss, positions that a model has."""
    length = columns["sequence_length"]
    yield (length > (model.context or np.inf)).astype(np.int64)
    if runtime.equal_chunks and runtime.loss_chunks:
        yield (length // columns["context_parallel_size"] % runtime.loss_chunks > 0).astype(np.int64)
    yield from post_training.facts_of_batch(options, columns)


def _grouped(rows: np.ndarray, columns: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The rows that agree in all columns, together."""
    keys, most = np.zeros(len(rows), dtype=np.int64), 1
    for column in columns:
        values = column[rows]
        least, span = int(values.min()), int(values.max() - values.min()) + 1
        if most * span >= 2**62:  # what was met so far as numbers from 0 on
            met, keys = np.unique(keys, return_inverse=True)
            keys, most = keys.reshape(-1), len(met)
            met, values = np.unique(values, return_inverse=True)
            values, least, span = values.reshape(-1), 0, len(met)
        if span > 1:
            keys, most = keys * span + (values - least), most * span
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order])) + 1
    yield from np.split(rows[order], edges)


def _without_sizes(plan: TrainingPlan) -> TrainingPlan:
    from msgspec.structs import replace

    return replace(plan, **dict.fromkeys(COLUMNS, 1))


def _estimated(
    model: Model, place: PricedCluster, sizes: Columns, names: Mapping[str, Any], tally: Tally
) -> Columns | None:
    """The columns of plans with their memory, time and cost; None where the memory is not known."""
    arrays = {name: sizes[name] for name in COLUMNS}
    count = len(arrays["sequence_length"])
    ones: dict[str, Any] = dict.fromkeys(COLUMNS, 1)
    plan = TrainingPlan.of_fields(**ones, **names)
    steps = None
    try:
        if plan.post_training.objective != "sft":
            needed = needed_bytes(model, arrays, place.cluster, **names)
            steps = post_training.Steps(model, place.cluster, arrays, names)
            seconds = steps.seconds
        else:
            needed, seconds = _bytes_and_seconds(model, arrays, place.cluster, names)
    except MissingDatum as error:
        tally.remove(why(error, model, place.cluster), count)
        return None
    low, high = np.floor(needed), np.ceil(needed)
    if band := training_band(plan, place.cluster):
        low, high = np.floor(needed * band.low), np.ceil(needed * band.high)
    tokens = tokens_per_step.evaluate(
        s=arrays["sequence_length"],
        b=arrays["micro_batch_size"],
        m=arrays["num_microbatches"],
        d=arrays["data_parallel_size"],
    )
    tokens = tokens if steps is None else steps.tokens
    rate = tokens_per_second.evaluate(D=tokens, tau=seconds)
    size, usd = _paid(place, plan)
    return arrays | {
        "accelerators": np.full(count, place.cluster.size + plan.rollout.rollout_accelerators),
        "global_batch_size": arrays["micro_batch_size"] * arrays["num_microbatches"] * arrays["data_parallel_size"],
        "needed_bytes": np.ceil(needed),
        "usable_bytes": np.full(count, place.usable),
        "fits": np.where(low > place.usable, 0, np.where(high > place.usable, -1, 1)).astype(np.int8),
        "step_seconds": seconds,
        "tokens_per_second": rate,
        "step_usd": rent_usd.evaluate(nodes=size, tau=seconds, USD_hour=usd),
        "usd_per_million_tokens": usd_per_million_tokens.evaluate(USD_all=usd * size, tps=rate),
        post_training.SHARE: np.full(count, np.nan) if steps is None else steps.shares,
    }


def _bytes_and_seconds(
    model: Model, arrays: Columns, cluster: Cluster, names: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Bytes and seconds of supervised training; no seconds where nobody knows the time."""
    try:
        return bytes_and_seconds(model, arrays, cluster, **names)
    except MissingDatum:  # of the time, or of the memory too
        return needed_bytes(model, arrays, cluster, **names), np.full(len(arrays["sequence_length"]), np.nan)


def _paid(place: PricedCluster, plan: TrainingPlan) -> tuple[int, float]:
    """Accelerators that are paid, whole nodes of those that generate alone too, and USD of one of them and hour, where
    it is known.
    """
    if not plan.rollout.rollout_accelerators:
        return place.cluster.size, np.nan if place.usd is None else place.usd
    paid = whole_cluster(plan.rollout, place.cluster)
    usd = usd_per_hour(paid, place.money)
    return paid.size, np.nan if usd is None else usd


def why(error: TonnageError, model: Model, cluster: Cluster) -> str:
    """The rule that was broken, without the names and numbers that broke it: so plans that break the same are
    counted together.
    """
    return _without_names(str(error).partition(" Got ")[0].rstrip("."), model, cluster)


def _without_names(rule: str, model: Model, cluster: Cluster) -> str:
    for name, kind in ((model.name, "the model"), (cluster.accelerator.name, "the accelerator")):
        rule = rule.replace(name, kind)
    return NUMBER.sub("N", rule)

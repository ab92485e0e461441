"""Speed for a user against throughput of an accelerator, over tensor sizes, precisions and numbers of users: as
arrays, one pass a plan.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.document import builtins
from tonnage.documents.question import Entry
from tonnage.documents.serving import FrontierDocument, FrontierPoint
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.media import with_load
from tonnage.estimate.load.options import LoadOptions, asked, lengths
from tonnage.estimate.money.bill import BillOptions, usd_per_hour
from tonnage.estimate.serving.engine_checks import check_answers
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving.weights.formats import narrower_weights
from tonnage.estimate.serving_time.speed import replica_of
from tonnage.estimate.serving_time.times import times
from tonnage.formulas import service as h
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, TonnageError
from tonnage.kernel.message import option_name
from tonnage.runtimes import USUAL_ENGINE, serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan

POINTS = 24  # numbers of users of a plan, each larger than the one before it by the same share
MOST_POINTS = 100_000
NO_SERVING, NO_LOAD, NO_BILL = ServingOptions(), LoadOptions(), BillOptions()


class Curve(Struct, frozen=True, kw_only=True, eq=False):
    """One plan under more and more users: arrays with one entry for each number of them (of one replica). `pareto`:
    no other configuration is as fast for a user and makes more of an accelerator.
    """

    weights: str
    plan: ServingPlan
    concurrency: Any
    tokens_per_second_per_user: Any
    tokens_per_second_per_gpu: Any
    ttft_seconds: Any
    tpot_seconds: Any
    pareto: Any = None


class Frontier(Struct, frozen=True, kw_only=True, eq=False):
    """`usd_per_hour`: of an accelerator, None where no price is known."""

    question: dict[str, Entry]
    curves: tuple[Curve, ...]
    usd_per_hour: float | None
    warnings: tuple[str, ...]

    @property
    def status(self) -> int:
        return 0 if self.curves else 3

    def points(self, *, pareto: bool = False) -> Iterator[FrontierPoint]:
        """Every configuration, or the best alone, the fastest for a user first."""
        rows = [row for curve in self.curves for row in _rows(curve, self.usd_per_hour)]
        points = [row for row in rows if row.pareto] if pareto else rows
        return iter(sorted(points, key=lambda row: -row.tokens_per_second_per_user))

    @property
    def document(self) -> FrontierDocument:
        """What every face shows."""
        return FrontierDocument(
            question=self.question,
            configurations=sum(len(curve.concurrency) for curve in self.curves),
            points=list(self.points()),
            warnings=list(self.warnings),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)


def frontier(
    model: Model,
    cluster: Cluster,
    options: ServingOptions = NO_SERVING,
    load: LoadOptions = NO_LOAD,
    money: BillOptions = NO_BILL,
    *,
    points: int = POINTS,
) -> Frontier:
    """Tensor sizes and precisions are varied where they are not given."""
    check_answers(model)
    for name in ("request_rate", "trace", "ttft", "tpot", "simulate"):
        if getattr(load, name):
            raise InvalidInput(
                "a frontier goes over numbers of users: leave out {name}. Got {value}.",
                name=option_name(name),
                value=getattr(load, name),
            )
    if options.concurrency is not None:
        raise InvalidInput(
            "a frontier goes over numbers of users: leave out {@concurrency}. Got {concurrency}.",
            concurrency=options.concurrency,
        )
    if not 2 <= points <= MOST_POINTS:
        raise InvalidInput(
            "{@points} must be from 2 to {most_points:,}. Got {points:,}.", most_points=MOST_POINTS, points=points
        )
    options = with_load(model, options, load)
    lengths_given = lengths(model, options, load)
    options = options if lengths_given.context is None else replace(options, context=lengths_given.context)
    question = Question()
    curves: list[Curve] = []
    refused: list[TonnageError] = []
    for weights in _precisions(model, cluster, options):
        for tensor in _tensor_sizes(cluster, options):
            try:
                asked_for = replace(options, weights=weights, tensor_parallel_size=tensor)
                curve, question = _curve(model, cluster, asked_for, load, points)
            except TonnageError as error:
                refused.append(error)
                continue
            if curve is not None and not any(_is_same(curve, other) for other in curves):
                curves.append(curve)
    if not curves and refused and all(isinstance(error, InvalidPlan | MissingDatum) for error in refused):
        raise refused[0]
    if lengths_given.context is not None:
        question.put("context", lengths_given.context, "default", lengths_given.why)
    return Frontier(
        question=_shown(question, model, cluster),
        curves=tuple(_marked(curves)),
        usd_per_hour=_price(cluster, load, money),
        warnings=() if curves else ("no tensor size and precision leaves room for the cache of one request.",),
    )


def _price(cluster: Cluster, load: LoadOptions, money: BillOptions) -> float | None:
    return (
        load.price_per_accelerator_hour if load.price_per_accelerator_hour is not None else usd_per_hour(cluster, money)
    )


def _precisions(model: Model, cluster: Cluster, options: ServingOptions) -> tuple[str | None, ...]:
    if options.weights:
        return (options.weights,)
    engine = serving_runtime(options.engine or USUAL_ENGINE, options.engine_version or "" if options.engine else "")
    return (None, *narrower_weights(model, None, engine, cluster.accelerator, engine.faster_weights))


def _tensor_sizes(cluster: Cluster, options: ServingOptions) -> Sequence[int]:
    if options.tensor_parallel_size is not None:
        return (options.tensor_parallel_size,)
    return [size for size in range(1, cluster.accelerators_per_node + 1) if cluster.accelerators_per_node % size == 0]


def _curve(
    model: Model, cluster: Cluster, options: ServingOptions, load: LoadOptions, points: int
) -> tuple[Curve | None, Question]:
    """None where a replica has no room for one request."""
    import numpy as np

    question = Question()
    plan = serving_plan(model, cluster, options, question)
    lengths_given = lengths(model, options, load)
    wanted = asked(plan, options, load, lengths_given, question).load
    usable = cluster.accelerator.memory.usable_bytes - options.reserve_bytes
    memory = serving_memory(model, plan, cluster.accelerator)
    replica = replica_of(model, plan, cluster, memory, usable, wanted)
    if not replica.clock.knows_prompts:
        raise MissingDatum(
            "no source gives a peak of {accelerator}: how long prompts take is not known, so there is no frontier.",
            accelerator=cluster.accelerator.name,
        )
    room = (
        replica.policy.max_num_seqs
        if replica.pool is None
        else replica.pool // (wanted.input_tokens + wanted.output_tokens)
    )
    most = int(min(room, replica.policy.max_num_seqs))
    if most < 1 or (replica.pool is None and memory.memory.value > usable):
        return None, question
    users = np.unique(np.rint(np.geomspace(1, most, points)).astype(int)) if points < most else np.arange(1, most + 1)
    array: Load = replace(wanted, concurrency=users, requests_per_second=None)
    curve_times = times(replica.clock, replica.policy, array)
    ranks = plan.world_size // plan.data_parallel_size
    return Curve(
        weights=memory.stored.name,
        plan=plan,
        concurrency=users,
        ttft_seconds=curve_times.ttft_seconds,
        tpot_seconds=curve_times.tpot_seconds,
        tokens_per_second_per_user=h.user_tokens_per_second.evaluate(tau=curve_times.tpot_seconds),
        tokens_per_second_per_gpu=h.accelerator_tokens_per_second.evaluate(
            tps=curve_times.output_tokens_per_second, n=ranks
        ),
    ), question


def _is_same(one: Curve, other: Curve) -> bool:
    """The checkpoint's own precision may be one of the narrower ones."""
    return one.weights == other.weights and one.plan.tensor_parallel_size == other.plan.tensor_parallel_size


def _marked(curves: list[Curve]) -> Iterator[Curve]:
    """Which are the best: walked from the fastest for a user on, each that makes more of an accelerator than all
    before it.
    """
    import numpy as np

    if not curves:
        return
    users = np.concatenate([curve.tokens_per_second_per_user for curve in curves])
    rates = np.concatenate([curve.tokens_per_second_per_gpu for curve in curves])
    order = np.lexsort((-rates, -users))
    best = np.maximum.accumulate(rates[order])
    marks = np.zeros(len(users), dtype=bool)
    marks[order] = rates[order] > np.concatenate([[0.0], best[:-1]])
    parts = np.split(marks, np.cumsum([len(curve.concurrency) for curve in curves])[:-1])
    for curve, part in zip(curves, parts, strict=True):
        yield replace(curve, pareto=part)


def _rows(curve: Curve, usd: float | None) -> Iterator[FrontierPoint]:
    names = (
        "concurrency",
        "tokens_per_second_per_user",
        "tokens_per_second_per_gpu",
        "ttft_seconds",
        "tpot_seconds",
        "pareto",
    )
    columns = [getattr(curve, name).tolist() for name in names]
    for values in zip(*columns, strict=True):
        row = dict(zip(names, values, strict=True))
        rate = row["tokens_per_second_per_gpu"]
        yield FrontierPoint(
            tensor_parallel_size=int(curve.plan.tensor_parallel_size),
            weights=curve.weights,
            cost_per_million_output_tokens_all=(
                None if usd is None else h.usd_per_million_tokens.evaluate(USD_all=usd, tps=rate)
            ),
            **row,
        )


def _shown(question: Question, model: Model, cluster: Cluster) -> dict[str, Entry]:
    """What all configurations share."""
    varied = ("tensor_parallel_size", "concurrency", "concurrency_per_replica", "replicas", "weights")
    shared = {name: entry for name, entry in question.entries.items() if name not in varied}
    return {"model": Entry(model.name, "given"), "on": Entry(cluster.name, "given"), **shared}

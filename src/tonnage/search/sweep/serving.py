"""Rows of serving: each question is a frontier, over tensor sizes, precisions and numbers of users; each of its
points is a row.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tonnage.estimate.answer.frontier import Curve, Frontier, frontier
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.formulas.service import usd_per_million_tokens
from tonnage.kernel.errors import TonnageError
from tonnage.search.removed import Tally
from tonnage.search.sweep.companions import Companions, column_of
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.tasks import Part, Tasks
from tonnage.search.sweep.training import model_of, place_of, why

Columns = dict[str, np.ndarray]
POINTS = {
    "concurrency": "concurrency",
    "tokens_per_second_per_user": "tokens_per_second_per_user",
    "tokens_per_second_per_accelerator": "tokens_per_second_per_gpu",
    "ttft_seconds": "ttft_seconds",
    "tpot_seconds": "tpot_seconds",
    "pareto": "pareto",
}
OF_PLAN = ("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "engine")


def rows(spec: Spec, tasks: Tasks, part: Part, tally: Tally) -> Columns:
    """The points of one question; `tally` counts questions that have none by what they break."""
    tally.consider(1)
    place = place_of(spec.clusters[part.digits[1]], tuple(sorted(spec.money.items())))
    choices = {axis.name: axis.values[digit] for axis, digit in zip(spec.outer, part.digits[2:], strict=True)}
    chosen = spec.options | choices
    model = model_of(spec.models[part.digits[0]])

    def ask(applied: dict[str, Any]) -> Frontier:
        load = {name: value for name, value in applied.items() if name in LoadOptions.__struct_fields__}
        options = {name: value for name, value in applied.items() if name not in load}
        money = BillOptions(**spec.money)
        return frontier(model, place.cluster, ServingOptions(**options), LoadOptions(**load), money, points=spec.points)

    try:
        answer, left_out = Companions(spec, choices).ask(ask, chosen)
    except TonnageError as error:
        tally.remove(why(error, model, place.cluster), 1)
        return {}
    if not answer.curves:
        tally.remove("some tensor size and precision leaves room for the cache of one request", 1)
        return {}
    tally.leave_out(left_out, 1)
    columns_of_curves = [_points(curve, answer.usd_per_hour) for curve in answer.curves]
    joined = {
        name: np.concatenate([curve_columns[name] for curve_columns in columns_of_curves])
        for name in columns_of_curves[0]
    }
    count = len(joined["concurrency"])
    facts: Mapping[str, Any] = {
        "plan": part.block,
        "model": part.digits[0],
        "cluster": part.digits[1],
        "accelerators": place.cluster.size,
    }
    varied = {name: value for name, value in choices.items() if name not in joined}
    return (
        {name: np.full(count, value) for name, value in facts.items()}
        | {"point": np.arange(count)}
        | {name: column_of(value, count, is_left_out=name in left_out) for name, value in varied.items()}
        | joined
    )


def _points(curve: Curve, usd: float | None) -> Columns:
    count = len(curve.concurrency)
    columns = {name: np.asarray(getattr(curve, field)) for name, field in POINTS.items()}
    columns |= {name: np.full(count, getattr(curve.plan, name)) for name in OF_PLAN}
    price = np.nan if usd is None else usd
    rate = columns["tokens_per_second_per_accelerator"]
    return columns | {
        "weights": np.full(count, curve.weights),
        "usd_per_million_output_tokens": usd_per_million_tokens.evaluate(USD_all=price, tps=rate),
    }

"""Steps of objectives that generate, or run other models, before they train: each plan of a sweep is estimated whole,
as `train` does, in tens of milliseconds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tonnage.architectures import Model
from tonnage.estimate.options.plans import rollout_length
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.post_training.rollout import Rollouts
from tonnage.estimate.post_training.step import PostTrainingStep
from tonnage.estimate.step.rollout_options import generates, takes_usual_rollout, usual_rollout
from tonnage.kernel.errors import MissingDatum
from tonnage.search.sweep.spec import Spec
from tonnage.spec import Cluster, TrainingPlan

SHARE = "rollout_share"  # a column of a sweep of objectives that generate


def objectives(spec: Spec) -> tuple[str, ...]:
    """What the plans of a sweep are trained for."""
    for axis in spec.outer:
        if axis.name == "objective":
            return tuple(str(value) for value in axis.values)
    return (str(spec.options.get("objective") or "sft"),)


def is_generating(spec: Spec) -> bool:
    """Whether one of the objectives generates, so that rows have the share of their rollouts."""
    return any(map(generates, objectives(spec)))


def usual_length(model: Model, options: Mapping[str, Any]) -> int | None:
    """Tokens of a sequence where prompt and longest completion say them."""
    return rollout_length(model, TrainingOptions(**options))


def facts_of_batch(options: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
    """Sizes that decide what is no size of a plan of an objective that generates: its prompts and their lengths."""
    if generates(str(options.get("objective") or "sft")):
        yield from (columns[name] for name in ("sequence_length", "micro_batch_size", "num_microbatches"))


def usual_microbatches(options: Mapping[str, Any], rows: np.ndarray, stages: np.ndarray) -> np.ndarray:
    """Micro-batches of a step where nobody says its batch: shape (plans,). `rows`: of a micro-batch of all."""
    o = TrainingOptions(**options)
    if not takes_usual_rollout(o):
        return stages
    pairs, places = np.unique(np.stack([np.maximum(rows, 1), stages]), axis=1, return_inverse=True)
    counts = [usual_rollout(o, some, least) // some for some, least in pairs.T.tolist()]
    return np.array(counts, dtype=np.int64)[places.reshape(-1)]


class Steps:
    """Seconds and tokens of the steps of plans that agree in `names`, and the shares of their rollouts: each of shape
    (plans,); not a number where nobody knows the time.
    """

    def __init__(self, model: Model, cluster: Cluster, arrays: Mapping[str, np.ndarray], names: Mapping[str, Any]):
        count = len(arrays["sequence_length"])
        self.seconds, self.tokens, self.shares = np.full((3, count), np.nan)
        engine_rollouts: Rollouts | None = None
        for number in range(count):
            plan = TrainingPlan.of_fields(**{name: int(values[number]) for name, values in arrays.items()}, **names)
            try:
                step = PostTrainingStep(model, plan, cluster)
                if engine_rollouts is not None:
                    step.rollouts = engine_rollouts
                figures = step.figures()
            except MissingDatum:
                continue
            if step.generates:
                self.shares[number] = figures.rollout_share.value if figures.rollout_share else np.nan
                if plan.rollout.rollout_accelerators:  # no plan of training changes an engine that is elsewhere
                    engine_rollouts = step.rollouts
            self.seconds[number] = step.seconds
            self.tokens[number] = figures.tokens_per_second.value * step.seconds

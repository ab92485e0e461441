"""Seconds of a step: the one place where rows meet the estimator of time."""

from tonnage.architectures import Model
from tonnage.estimate.hardware.rates import Rates, rates
from tonnage.estimate.memory import Step
from tonnage.estimate.step_time.step import StepTime
from tonnage.spec import Cluster, TrainingPlan


def predict_step_seconds(model: Model, plan: TrainingPlan, cluster: Cluster, with_rates: Rates | None = None) -> float:
    """Seconds of one optimizer step of a checked plan. `with_rates`: others than those that ship."""
    return float(StepTime(Step(model, plan, cluster), with_rates or rates()).seconds())

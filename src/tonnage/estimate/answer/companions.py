"""Companion options: options that apply only beside some values of another option, such as host_update_bandwidth beside
offload_optimizer cpu.

The check that refuses an option beside a value raises NotApplicable and names both. Where that other option is varied,
a search asks the question of this value without the companion, instead of ruling the value out: `plan`, `sweep`,
`compare` and `max` all call `ask_applicable`.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.kernel.errors import NotApplicable, TonnageError
from tonnage.spec import Cluster

T = TypeVar("T")
O = TypeVar("O", bound=Struct)
Refusals = dict[str, NotApplicable]


def ask_applicable(
    ask: Callable[[dict[str, Any]], T],
    given: Mapping[str, Any],
    varied: Collection[str],
    keep: Collection[str] = (),
    left_out: Refusals | None = None,
) -> tuple[T, Refusals]:
    """The answer of `ask`, and the options that it was asked without, each with the refusal that says why.

    `given`: values of options by name. `varied`: names of the options that a search varies; an option that does not
    apply because of one of these is set to None. `keep`: names of options that are refused all the same. `left_out` is
    filled, also where another error ends it.
    """
    options, left_out = dict(given), {} if left_out is None else left_out
    while True:
        try:
            return ask(options), left_out
        except NotApplicable as error:
            name = error.option
            if options.get(name) is None or name in keep or not set(error.owners) & set(varied):
                raise
            options[name], left_out[name] = None, error


def serving_without_companions(model: Model, cluster: Cluster, options: ServingOptions) -> ServingOptions:
    """The options without those that do not apply to this model, or to the engine of its precision: of many models,
    and of their precisions.
    """
    varied = ("model",) if options.engine else ("model", "engine")
    return _settled(lambda fields: serving_plan(model, cluster, ServingOptions(**fields), Question()), options, varied)


def training_without_companions(model: Model, cluster: Cluster, options: TrainingOptions) -> TrainingOptions:
    """The options without those that do not apply to this model: of many models."""
    return _settled(
        lambda fields: training_plan(model, cluster, TrainingOptions(**fields), Question()), options, ("model",)
    )


def _settled(ask: Callable[[dict[str, Any]], object], options: O, varied: tuple[str, ...]) -> O:
    fields = {name: getattr(options, name) for name in options.__struct_fields__}
    try:
        _, left_out = ask_applicable(ask, fields, varied)
    except TonnageError:
        return options  # what asks next says why
    return replace(options, **dict.fromkeys(left_out))

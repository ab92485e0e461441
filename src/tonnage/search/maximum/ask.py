"""From what was asked to the search that answers it."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import InvalidInput, shown
from tonnage.estimate._larger import Machines
from tonnage.estimate.bill import BillOptions
from tonnage.estimate.load_options import LoadOptions
from tonnage.estimate.my_machine import CONTEXT
from tonnage.estimate.plans import DEFAULT_SEQUENCE_LENGTH
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.training_options import TrainingOptions
from tonnage.models.catalogued import every
from tonnage.search.maximum.advice import raises
from tonnage.search.maximum.answer import Maximum, of_case
from tonnage.search.maximum.case import Case
from tonnage.search.maximum.models import CaseOf, model_maximum
from tonnage.search.maximum.search import search
from tonnage.search.maximum.serving import ServingCase
from tonnage.search.maximum.training import TrainingCase
from tonnage.search.maximum.whats import What, what_of
from tonnage.spec import Cluster

NO_SERVING, NO_LOAD, NO_TRAINING, NO_RUN, NO_BILL = ServingOptions(), LoadOptions(), TrainingOptions(), RunOptions(), BillOptions()


def serving_maximum(what: What, model: Model | None, cluster: Cluster, options: ServingOptions = NO_SERVING, load: LoadOptions = NO_LOAD,
                    money: BillOptions = NO_BILL, *, reserve_bytes: int = 0, advise: bool = True) -> Maximum:  # fmt: skip
    """The most of a served model. `model`: None where models are what is looked for; `advise`: with what would let it be more."""
    _check(what, model, options, load)
    if model is not None:
        return _maximum(ServingCase(what, model, cluster, options, load, money, reserve_bytes), advise=advise)

    def case_with(change: dict[str, Any]) -> CaseOf:
        machine, said = _changed(cluster, options, change)

        def case_of(each: Model) -> tuple[Case, int]:
            context = said.context or min(CONTEXT, each.context or CONTEXT)
            if each.context and context > each.context:
                raise InvalidInput(f"{each.name} was made for {each.context:,} tokens. Got context {context:,}.")
            if not any(branch.kind == "decoder" for branch in each.branches):
                raise InvalidInput(f"{each.name} makes no tokens.")
            case = ServingCase(what_of("context"), each, machine, replace(said, context=None), load, money, reserve_bytes)
            return case, context

        return case_of

    changes = [({"weights": name}, "numerics") for name in ("fp8", "awq", "q4_k_m") if options.weights is None]
    return model_maximum(what, list(every()), case_with({}), [*_larger(cluster), *changes] if advise else [], case_with)


def training_maximum(what: What, model: Model | None, cluster: Cluster, options: TrainingOptions = NO_TRAINING, run: RunOptions = NO_RUN,
                     money: BillOptions = NO_BILL, *, reserve_bytes: int = 0, advise: bool = True) -> Maximum:  # fmt: skip
    """The most of a training run, as `serving_maximum`."""
    _check(what, model, options, run)
    if model is not None:
        return _maximum(TrainingCase(what, model, cluster, options, run, money, reserve_bytes), advise=advise)

    def case_with(change: dict[str, Any]) -> CaseOf:
        machine, said = _changed(cluster, options, change)

        def case_of(each: Model) -> tuple[Case, int]:
            length = said.sequence_length or min(DEFAULT_SEQUENCE_LENGTH, each.context or DEFAULT_SEQUENCE_LENGTH)
            if each.context and length > each.context:
                raise InvalidInput(f"{each.name} was made for {each.context:,} tokens. Got sequence_length {length:,}.")
            case = TrainingCase(what_of("sequence"), each, machine, replace(said, sequence_length=None), run, money, reserve_bytes)
            return case, length

        return case_of

    changes: list[tuple[dict[str, Any], str]] = [] if options.recompute else [({"recompute": "full"}, "nothing")]
    fewer = [] if options.method else [({"method": name}, "method") for name in ("lora", "qlora")]
    return model_maximum(what, list(every()), case_with({}), [*changes, *_larger(cluster), *fewer] if advise else [], case_with)


def _maximum(case: Case, *, advise: bool) -> Maximum:
    found = search(case)
    return of_case(case, found, raises(case, found) if advise else [])


def _check(what: What, model: Model | None, *given: Struct) -> None:
    """What is looked for cannot be given."""
    for options in given:
        if (value := getattr(options, what.option, None)) is not None:
            flag = f"--{what.option.replace('_', '-')}"
            raise InvalidInput(f"max {what.name} looks for {what.option}: leave out {flag}, or ask `tonnage {what.verb}` about it. Got {value:,}.")
    if what.option == "model" and model is not None:
        raise InvalidInput(f"max model looks at every model of the catalogue: leave out MODEL. Got {shown(model.name)}.")
    if what.option != "model" and model is None:
        raise InvalidInput(f"max {what.name} is of one model: name it, as `tonnage {what.verb}` takes it.")


def _changed(cluster: Cluster, options: Any, change: dict[str, Any]) -> tuple[Cluster, Any]:
    from tonnage.catalogue import cluster as cluster_named

    machine = cluster_named(change["on"]) if "on" in change else cluster
    return machine, replace(options, **{name: value for name, value in change.items() if name != "on"})


def _larger(cluster: Cluster) -> list[tuple[dict[str, Any], str]]:
    """The next larger machine of the same kind."""
    machines = Machines(cluster)
    counts = machines.larger(2)
    return [({"on": machines.of(counts[0]).name}, "machine")] if counts else []

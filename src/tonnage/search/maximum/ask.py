"""From what was asked to the search that answers it."""

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.machine import check_uncalibrated
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.options.tools import divided
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.engine_checks import check_answers
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import option_name
from tonnage.models.catalogued import every
from tonnage.question.subjects.maximum import What
from tonnage.search.maximum.advice import raises
from tonnage.search.maximum.answer import Maximum, of_case
from tonnage.search.maximum.case import Case
from tonnage.search.maximum.catalogue import ServedCatalogue, TrainedCatalogue
from tonnage.search.maximum.models import model_maximum
from tonnage.search.maximum.search import search
from tonnage.search.maximum.serving import ServingRow
from tonnage.search.maximum.training import TrainingRow
from tonnage.spec import Cluster

NO_SERVING, NO_LOAD, NO_TRAINING, NO_RUN, NO_BILL = (
    ServingOptions(),
    LoadOptions(),
    TrainingOptions(),
    RunOptions(),
    BillOptions(),
)


def serving_maximum(
    what: What,
    model: Model | None,
    cluster: Cluster,
    options: ServingOptions = NO_SERVING,
    load: LoadOptions = NO_LOAD,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
    advise: bool = True,
) -> Maximum:
    """The most of a served model. `model`: None where models are what is looked for; `advise`: with what would let
    it be more.
    """
    check_uncalibrated(options.calibrated)
    _check(what, model, options, load)
    if model is not None:
        check_answers(model)
        return _maximum(ServingRow(what, model, cluster, options, load, money, reserve_bytes), advise=advise)
    question = ServedCatalogue(cluster=cluster, options=options, load=load, money=money, reserve=reserve_bytes)
    return model_maximum(what, list(every()), question, advise=advise)


def training_maximum(
    what: What,
    model: Model | None,
    cluster: Cluster,
    options: TrainingOptions = NO_TRAINING,
    run: RunOptions = NO_RUN,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
    advise: bool = True,
) -> Maximum:
    """The largest value of one option of a training run, as `serving_maximum` for serving."""
    check_uncalibrated(options.calibrated)
    _check(what, model, options, run)
    cluster, options = divided(cluster, options)
    if model is not None:
        return _maximum(TrainingRow(what, model, cluster, options, run, money, reserve_bytes), advise=advise)
    question = TrainedCatalogue(cluster=cluster, options=options, run=run, money=money, reserve=reserve_bytes)
    return model_maximum(what, list(every()), question, advise=advise)


def _maximum(case: Case, *, advise: bool) -> Maximum:
    result = search(case)
    return of_case(case, result, raises(case, result) if advise else [])


def _check(what: What, model: Model | None, *forms: Struct) -> None:
    """Raise InvalidInput where an option gives what is to be found."""
    for options in forms:
        if (value := getattr(options, what.option, None)) is not None:
            raise InvalidInput(
                "max {what} looks for {option}: leave it out, or ask `tonnage {verb}` about it. Got {value:,}.",
                what=what.name,
                option=option_name(what.option),
                verb=what.verb,
                value=value,
            )
    if what.option == "model" and model is not None:
        raise InvalidInput(
            "max model looks at every model of the catalogue: leave out MODEL. Got {model}.", model=shown(model.name)
        )
    if what.option != "model" and model is None:
        raise InvalidInput(
            "max {what} is of one model: name it, as `tonnage {verb}` takes it.", what=what.name, verb=what.verb
        )

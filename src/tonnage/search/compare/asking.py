"""One cell: its question, put to the estimate, and what came back. A refusal is an answer too."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.answer import answers
from tonnage.estimate.answer.answers import Answer
from tonnage.estimate.answer.companions import ask_applicable
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import MissingDatum, NotApplicable, TonnageError
from tonnage.question.subjects.serving import OF_LOAD
from tonnage.spec import Cluster

FORMS: dict[str, tuple[type[Struct], ...]] = {
    "serve": (ServingOptions, LoadOptions, BillOptions),
    "train": (TrainingOptions, RunOptions, BillOptions),
}
ESTIMATES: dict[str, Callable[..., Answer]] = {"serve": answers.serve, "train": answers.train}
RESERVE = "reserve_bytes"
OF_PRICE = ("provider", "price_kind", "region")  # what an accelerator may have no offer of


class Outcome(Struct, frozen=True, kw_only=True, eq=False):
    """What a question came to: an answer, or why there is none. `said`: the options that it was asked with;
    `left_out`: those that do not apply beside its values of what is compared, each with the refusal. `unpriced`: why
    its price is not known.
    """

    cluster: Cluster
    said: Mapping[str, Any]
    answer: Answer | None = None
    refusal: TonnageError | None = None
    unpriced: str = ""
    left_out: Mapping[str, NotApplicable] = {}

    @property
    def holds(self) -> bool:
        """Whether the model fits, and answers as it was asked to."""
        return self.answer is not None and self.answer.status == 0

    @property
    def verdict(self) -> str:
        """The verdict of this answer: one of comparison.VERDICTS."""
        if self.answer is None:
            return "not known" if isinstance(self.refusal, MissingDatum) else "cannot be"
        if self.answer.tight:
            return "tight"
        if self.answer.fits is None:
            return "not known"
        if self.answer.fits:
            return "not served" if self.answer.unserved else "fits"
        return "does not fit"

    @property
    def reason(self) -> str:
        """Why it is not so, in words; of what does not fit, its bytes say it."""
        if self.answer is None:
            return str(self.refusal)
        return (self.answer.unserved if self.answer.fits else self.answer.unknown) or self.unpriced


def ask(
    verb: str, model: Model, cluster: Cluster, options: Mapping[str, Any], compared: Collection[str] = ()
) -> Outcome:
    """The estimate's answer. `compared`: names of the axes with several values: an option that does not apply beside
    one of these is left out. Where only the price that was asked for is not known, everything else still is.
    """
    try:
        return _answered(verb, model, cluster, options, compared)
    except MissingDatum as error:
        anywhere = {name: value for name, value in options.items() if name not in OF_PRICE}
        if len(anywhere) < len(options):
            try:
                return _answered(verb, model, cluster, anywhere, compared, unpriced=str(error))
            except TonnageError:
                pass
        return Outcome(cluster=cluster, said=options, refusal=error)
    except TonnageError as error:
        return Outcome(cluster=cluster, said=options, refusal=error)


def _answered(
    verb: str,
    model: Model,
    cluster: Cluster,
    asked_options: Mapping[str, Any],
    compared: Collection[str],
    unpriced: str = "",
) -> Outcome:
    answer, left_out = ask_applicable(lambda options: _answer(verb, model, cluster, options), asked_options, compared)
    applied = {name: value for name, value in asked_options.items() if name not in left_out}
    return Outcome(cluster=cluster, said=applied, answer=answer, unpriced=unpriced, left_out=left_out)


def options_of(verb: str) -> tuple[str, ...]:
    """Names of everything that can be said about a cell, beside the model and the machine."""
    return (*(name for form in FORMS[verb] for name in _own_fields(form)), RESERVE)


def _own_fields(form: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name in form.__struct_fields__ if name not in (RESERVE, *OF_LOAD))


def _answer(verb: str, model: Model, cluster: Cluster, options: Mapping[str, Any]) -> Answer:
    parts = [form(**{name: options[name] for name in _own_fields(form) if name in options}) for form in FORMS[verb]]
    return ESTIMATES[verb](model, cluster, *parts, reserve_bytes=options.get(RESERVE, 0), advise=False)

"""The largest model of the catalogue that is served, or trains, on a machine."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.advice import Changes
from tonnage.documents.max import RaiseDocument
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message
from tonnage.kernel.units import counted, human
from tonnage.question.subjects.maximum import What
from tonnage.search.maximum.answer import Maximum, flags
from tonnage.search.maximum.case import Case, Limit, Outcome
from tonnage.search.maximum.search import SearchResult

WIDEST = "the widest precision in which it fits, of those that are searched"
NARROWEST = "needs least of the precisions that are searched"
REFUSED: Final = "refused"  # no estimate takes the model
LARGER = 24  # models beyond those that halving looked at
Models = Sequence[tuple[str, str, Model]]  # (name, id on the Hub, model)


class Question(Protocol):
    """The question that is asked of every model."""

    def cases(self, model: Model) -> Iterable[tuple[Case, int]]:
        """Cases of the model, the one that is wanted most first, and the value that each is estimated at;
        TonnageError where the question is none of it.
        """
        ...

    def chosen(self, case: Case) -> dict[str, str]:
        """Options of a case that nobody said and that the search chose."""
        ...

    def is_too_large(self, case: Case, value: int) -> bool:
        """Whether its weights alone are more than all accelerators have: then nothing else is estimated."""
        ...

    def changed(self, change: dict[str, Any]) -> "Question": ...

    @property
    def is_quick(self) -> bool:
        """Whether all of the catalogue is estimated in a moment."""
        ...

    @property
    def assumed(self) -> dict[str, str]:
        """Options that nobody said, each with why it is what it is."""
        ...

    def changes(self) -> Iterable[tuple[dict[str, Any], Changes]]:
        """The changes that let a larger model fit, each with what else it changes."""
        ...


class Tried(Struct, frozen=True, kw_only=True, eq=False):
    """A model that was estimated."""

    name: str
    model: Model
    case: Case
    outcome: Outcome

    @property
    def parameters(self) -> int:
        return self.model.num_parameters()

    @property
    def sized(self) -> Outcome:
        """Its outcome by its parameters."""
        return replace(self.outcome, value=self.parameters)


class Ranked(Struct, frozen=True, kw_only=True, eq=False):
    """`largest`: the model with most parameters that fits; `beyond`: the next larger one that does not, or the smallest
    where none fits.
    `refused`: models that are larger than the answer and that no estimate takes with these options."""

    largest: Tried | None
    beyond: Tried | None
    refused: int = 0


def largest_model(models: Models, question: Question) -> Ranked:
    """From the largest on until one fits, for parameters do not order memory: every larger one was estimated, or its
    weights alone are too much.
    """
    ranked = sorted(models, key=lambda entry: (-entry[2].num_parameters(), entry[0]))
    refused, last = 0, None
    for place, (name, _, model) in enumerate(ranked):
        try:
            tried = _tried(name, model, question)
        except TonnageError as error:
            refused, last = refused + 1, error
            continue
        if tried is not None and tried.outcome.fits:
            return Ranked(largest=tried, beyond=_next(ranked[:place], question), refused=refused)
    if refused == len(ranked) and last is not None:
        raise last  # not one can be estimated: the options are why
    return Ranked(largest=None, beyond=_next(ranked, question), refused=refused)


def some_model(models: Models, question: Question) -> Tried | None:
    """A large one that fits, found by halving and among the next larger ones: it is estimated, but a larger one may
    fit too. One that no estimate takes says nothing of size: the next larger that is estimated stands for it.
    """
    ranked = sorted(models, key=lambda entry: entry[2].num_parameters())
    low, high, fitting = -1, len(ranked), None
    while high - low > 1:
        middle = (low + high) // 2
        fits, tried = next(
            (
                (place, tried)
                for place in range(middle, high)
                if (tried := _estimated(ranked[place], question)) != REFUSED
            ),
            (middle, None),
        )
        low, high = (fits, high) if tried else (low, middle)
        fitting = tried or fitting
    larger = (_estimated(entry, question) for entry in reversed(ranked[low + 1 : low + 1 + LARGER]))
    return next((tried for tried in larger if isinstance(tried, Tried)), fitting)


def _estimated(named: tuple[str, str, Model], question: Question) -> Tried | Literal["refused"] | None:
    """The model where it fits, None where it does not."""
    try:
        tried = _tried(named[0], named[2], question)
    except TonnageError:
        return REFUSED
    return tried if tried is not None and tried.outcome.fits else None


def _tried(name: str, model: Model, question: Question, *, always: bool = False) -> Tried | None:
    """The first case that fits, else the one that needs least. None where the weights of all are too much, unless
    `always` asks for the estimate all the same.
    """
    best: Tried | None = None
    refused: list[TonnageError] = []
    for case, value in question.cases(model):
        try:
            if not always and question.is_too_large(case, value):
                continue
            outcome = case.ask(value)
        except TonnageError as error:
            refused.append(error)
            continue
        tried = Tried(name=name, model=model, case=case, outcome=outcome)
        if outcome.fits:
            return tried
        if outcome.error is not None:
            refused.append(outcome.error)
        elif best is None or (outcome.needed or 0) < (best.outcome.needed or 0):
            best = tried
    if best is None and refused:
        raise refused[0]
    return best


def _next(larger: Models, question: Question) -> Tried | None:
    """The next larger model that can be estimated."""
    for name, _, model in reversed(larger):
        try:
            return _tried(name, model, question, always=True)
        except TonnageError:
            continue
    return None


def model_maximum(what: What, models: Models, question: Question, *, advise: bool = True) -> Maximum:
    """The answer, with the estimate of the largest model that fits, or of the smallest where none does."""
    ranked = largest_model(models, question)
    shown = ranked.largest or ranked.beyond
    if shown is None:  # every model fits, or the catalogue is empty
        raise ValueError("no model of the catalogue was estimated")
    at, beyond = (tried.sized if tried else None for tried in (ranked.largest, ranked.beyond))
    skipped = Message(
        "{refused} of the catalogue are left out: no estimate takes them with these options, or they were "
        "made for fewer tokens.",
        refused=counted(ranked.refused, "larger models"),
    )
    chosen = question.chosen(shown.case)
    assumed = {**question.assumed, **dict.fromkeys(chosen, WIDEST if ranked.largest else NARROWEST)}
    return Maximum(
        what=what,
        found=SearchResult(limit=_limit(ranked), at=at, beyond=beyond),
        answer=shown.case.answer(shown.outcome.value),
        options=chosen,
        assumed=assumed,
        advice=tuple(_raises(models, question, ranked.largest)) if advise and ranked.beyond else (),
        model=ranked.largest.name if ranked.largest else None,
        beyond_model=ranked.beyond.name if ranked.beyond else None,
        warnings=(skipped,) if ranked.refused else (),
    )


def _raises(models: Models, question: Question, now: Tried | None) -> Iterable[RaiseDocument]:
    least = now.parameters if now else 0
    for change, kind in question.changes():
        try:
            changed = question.changed(change)
            larger = largest_model(models, changed).largest if question.is_quick else some_model(models, changed)
        except TonnageError:
            continue
        if larger is not None and larger.parameters > least:
            yield RaiseDocument(
                change=change,
                text=flags(change),
                changes=kind,
                value=larger.parameters,
                model=larger.name,
                options=change,
                needed_bytes=larger.outcome.needed or 0,
                limit="memory",
            )


def _limit(ranked: Ranked) -> Limit:
    if ranked.beyond is None:
        return Limit(by="model", text="it is the largest of the catalogue that can be estimated so")
    name, outcome = ranked.beyond.name, ranked.beyond.outcome
    if outcome.refused is not None:
        return Limit(
            by=outcome.refused.by,
            text=Message("of {name}, the next larger, {refused}", name=name, refused=outcome.refused.text),
        )
    which = "the next larger" if ranked.largest else "the smallest that can be estimated"
    high = (
        Message(", at most {high} in the error band,", high=human(outcome.high, "bytes"))
        if outcome.high > (outcome.needed or 0)
        else ""
    )
    where = Message(" ({at})", at=at) if (at := ranked.beyond.case.where(outcome.value)) else ""
    return Limit(
        by="memory",
        text=Message(
            "{name}, {which}, needs {needed}{high} of the {usable} that are usable{where}",
            name=name,
            which=which,
            needed=human(outcome.needed or 0, "bytes"),
            high=high,
            usable=human(outcome.usable, "bytes"),
            where=where,
        ),
    )

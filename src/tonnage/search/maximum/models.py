"""The largest model of the catalogue that is served, or trains, on a machine."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import TonnageError
from tonnage.search.maximum.answer import Maximum
from tonnage.search.maximum.case import Case
from tonnage.search.maximum.outcome import Limit, Outcome
from tonnage.search.maximum.search import Found
from tonnage.search.maximum.whats import What
from tonnage.units import counted, human

Models = Iterable[tuple[str, str, Model]]  # (name, id on the Hub, model)
CaseOf = Callable[[Model], tuple[Case, int]]  # a case of a model, and the value that it is estimated at


class Tried(Struct, frozen=True, kw_only=True, eq=False):
    """A model that was estimated."""

    name: str
    model: Model
    case: Case
    outcome: Outcome


class Ranked(Struct, frozen=True, kw_only=True, eq=False):
    """`largest`: the model with most parameters that fits; `beyond`: the next larger one that does not, or the smallest where none fits.
    `larger`: models that are larger than the answer; `refused`: those of them that no estimate takes with these options."""

    largest: Tried | None
    beyond: Tried | None
    larger: int
    refused: int


def largest_model(models: Models, case_of: CaseOf) -> Ranked:
    """All larger ones are estimated too, from the largest on: parameters do not order memory."""
    ranked = sorted(models, key=lambda each: (-each[2].num_parameters(), each[0]))
    beyond, refused, last = None, 0, None
    for place, (name, _, model) in enumerate(ranked):
        try:
            case, value = case_of(model)
            outcome = case.ask(value)
            if outcome.error is not None:
                raise outcome.error
        except TonnageError as error:
            refused, last = refused + 1, error
            continue
        tried = Tried(name=name, model=model, case=case, outcome=outcome)
        if outcome.fits:
            return Ranked(largest=tried, beyond=beyond, larger=place, refused=refused)
        beyond = tried
    if beyond is None and last is not None:
        raise last  # not one can be estimated: the options are why
    return Ranked(largest=None, beyond=beyond, larger=len(ranked), refused=refused)


def model_maximum(what: What, models: list[tuple[str, str, Model]], case_of: CaseOf, changes: Iterable[tuple[dict[str, Any], str]],
                  changed: Callable[[dict[str, Any]], CaseOf]) -> Maximum:  # fmt: skip
    """`changes`: with each of which the whole catalogue is tried again, and what it changes; `changed`: the case of models with one."""
    ranked = largest_model(models, case_of)
    shown = ranked.largest or ranked.beyond
    if shown is None:
        raise ValueError("a catalogue has models")
    answer = shown.case.answer(shown.outcome.value)
    at, beyond = _sized(ranked.largest), _sized(ranked.beyond)
    found = Found(limit=_limit(ranked), at=at, beyond=beyond)
    advice = []
    for change, kind in changes if ranked.beyond is not None else ():
        try:
            again = largest_model(models, changed(change)).largest
        except TonnageError:
            continue
        if again is not None and (at is None or again.model.num_parameters() > at.value):
            text = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in change.items())
            advice.append({"change": change, "text": text, "changes": kind, "value": again.model.num_parameters(), "model": again.name,
                           "options": change, "needed_bytes": again.outcome.needed, "limit": "memory"})  # fmt: skip
    skipped = () if not ranked.refused else (f"{counted(ranked.refused, 'larger models')} of the catalogue cannot be estimated with these options, and are left out.",)
    return Maximum(what=what, found=found, answer=answer, options={}, advice=tuple(advice), model=ranked.largest and ranked.largest.name,
                   beyond_model=ranked.beyond and ranked.beyond.name, warnings=skipped)  # fmt: skip


def _sized(tried: Tried | None) -> Outcome | None:
    """The outcome by the parameters of its model."""
    return replace(tried.outcome, value=tried.model.num_parameters()) if tried else None


def _limit(ranked: Ranked) -> Limit:
    if ranked.beyond is None:
        return Limit(by="model", text="it is the largest of the catalogue that can be estimated so")
    found = ranked.beyond.outcome
    size = human(ranked.beyond.model.num_parameters(), "parameters")
    if found.refused is not None:
        return Limit(by=found.refused.by, text=f"{ranked.beyond.name} with {size}: {found.refused.text}")
    if ranked.largest is None:
        return Limit(by="memory", text=f"{found.where}: even {ranked.beyond.name}, the smallest that was tried, needs {human(found.needed or 0, 'bytes')}")
    high = f", at most {human(found.high, 'bytes')} in the error band," if found.high > (found.needed or 0) else ""
    return Limit(by="memory", text=f"{found.where}: {ranked.beyond.name}, the next larger, has {size} and needs {human(found.needed or 0, 'bytes')}{high} of "
                                   f"{human(found.usable, 'bytes')}")  # fmt: skip

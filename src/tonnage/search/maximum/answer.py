"""The answer of `max`: what was found, the estimate at it, and the document."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tonnage.documents.document import builtins
from tonnage.documents.max import LimitDocument, MaxDocument, RaiseDocument, TriedDocument
from tonnage.documents.question import Entry, Origin
from tonnage.estimate.answer.form import Answer
from tonnage.kernel.term import TermDocument
from tonnage.question.subjects.maximum import What
from tonnage.search.maximum.case import Case, Outcome
from tonnage.search.maximum.search import SearchResult

SPEED = ("ttft_seconds", "tpot_seconds", "tokens_per_second")  # of serving, where they are known
WHY = "the largest that fits, found by estimates of smaller and larger ones"
LEAST = "the least that there is"


class Maximum(Struct, frozen=True, kw_only=True, eq=False):
    """`value`: the largest that fits for sure, None where not even the least does; `answer`: the estimate at it, or
    at the least. `document` is what every face shows. `model`, `beyond_model`: whose parameters these are, where
    models are what is looked for; `assumed`: options that nobody said, with why they are what they are.
    """

    what: What
    found: SearchResult
    answer: Answer
    options: Mapping[str, Any]
    advice: tuple[RaiseDocument, ...] = ()
    model: str | None = None
    beyond_model: str | None = None
    warnings: tuple[str, ...] = ()
    assumed: Mapping[str, str] = {}

    @property
    def value(self) -> int | None:
        return self.found.value

    @property
    def tight_value(self) -> int | None:
        return self.found.perhaps

    @property
    def status(self) -> int:
        """0 found, 2 even the least is inside the error band, 3 not even the least fits."""
        if self.value is not None:
            return 0
        return 2 if self.found.perhaps is not None else 3

    def __repr__(self) -> str:
        return (
            f"<Maximum {self.what.name}: {self.value} {self.what.unit}, {self.found.limit.by}: {self.found.limit.text}>"
        )

    @property
    def document(self) -> MaxDocument:
        """The document that the command line, the page and the API show."""
        return self._document(self.answer.memory.document)

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)

    def without_trees(self) -> dict[str, Any]:
        """The document with its breakdown closed, of which texts are made."""
        return builtins(self._document(self.answer.memory.summary))

    def _document(self, memory: TermDocument) -> MaxDocument:
        result = self.found
        return MaxDocument(
            question=self._question(),
            what=self.what.name,
            verb=self.what.verb,
            value=result.value,
            unit=self.what.unit,
            model=self.model,
            options=dict(self.options),
            text=flags(self.options),
            limit=LimitDocument(by=result.limit.by, text=result.limit.text),
            at=_tried(result.at, self.model) if result.at else None,
            beyond=_tried(result.beyond, self.beyond_model) if result.beyond else None,
            tight_value=result.perhaps,
            estimate_value=result.by_estimate,
            memory_value=result.by_memory,
            memory=memory,
            speed=self._speed(),
            advice=list(self.advice),
            warnings=[*self.warnings, *self.answer.warnings],
        )

    def _question(self) -> dict[str, Entry]:
        """The inputs as the estimate read them; the one that is looked for is marked as found by the search."""
        question = dict(self.answer.question)
        for name, why in self.assumed.items():
            origin: Origin = "search" if name in self.options else "default"
            question[name] = Entry(question[name].value, origin, why)
        for name in self.options:
            if name in question and name not in self.assumed:
                why = WHY if self.value is not None else LEAST
                question[name] = Entry(question[name].value, "search", why)
        return question

    def _speed(self) -> dict[str, float]:
        if self.value is None:
            return {}
        if self.answer.step_time is not None:
            return {"step_seconds": self.answer.step_time.value}
        return {name: term.value for name in SPEED if (term := getattr(self.answer.serving, name))}


def flags(options: Mapping[str, Any]) -> str:
    """Options as the command line writes them; those that are None are left out."""
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items() if value is not None)


def of_case(case: Case, result: SearchResult, advice: list[RaiseDocument]) -> Maximum:
    """The answer of a case, with the whole estimate at the largest value, or at the least where none fits."""
    value = case.values[0] if result.value is None else result.value
    return Maximum(
        what=case.what, found=result, answer=case.answer(value), options=case.said(value), advice=tuple(advice)
    )


def _tried(outcome: Outcome, model: str | None) -> TriedDocument:
    banded = outcome.needed is not None and outcome.low != outcome.high
    return TriedDocument(
        value=outcome.value,
        needed_bytes=outcome.needed,
        usable_bytes=outcome.usable,
        band=(int(outcome.low), int(outcome.high)) if banded else None,
        fits=outcome.fits,
        refused=outcome.limit.text if outcome.limit else None,
        model=model,
    )

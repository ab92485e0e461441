"""The form of an answer of `train` or `serve`: what it holds, its verdict and its document."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from tonnage.documents.schema import SCHEMA
from tonnage.estimate.answer.unserved import missed_limits, unserved
from tonnage.estimate.host.memory import HostMemory
from tonnage.estimate.money.bill import Bill
from tonnage.estimate.plan.pipeline_boxes import StepSeconds
from tonnage.estimate.run.best_models import BestModels
from tonnage.estimate.run.disks import Disks
from tonnage.estimate.step_time.counted import Conventions
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import human


class Answer(Struct, frozen=True, kw_only=True):
    """An answer of `train` or `serve`; `to_dict()` is the document, `status` the exit status of the command line.

    `unknown` says what nobody knows of this model; `needed_bytes` is then a lower bound. `pieces` are for pictures, not
    in the document.
    """

    verb: str
    question: Mapping[str, Any]
    needed_bytes: int
    usable_bytes: int
    memory: Term
    ranks: tuple[Term, ...]
    phases: tuple[Term, ...] = ()
    slopes: Mapping[str, float] = {}  # empty where they were not estimated
    flops: Term | None = None
    step_time: Term | None = None
    pieces: StepSeconds | None = None
    run: Mapping[str, Any] = {}
    traffic: Term | None = None
    bill: Bill | None = None
    disks: Disks | None = None
    checkpoint: Term | None = None
    host: HostMemory | None = None
    serving: Mapping[str, Any] = {}
    advice: tuple[Mapping[str, Any], ...] = ()
    nearest_miss: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    unknown: str = ""
    band: tuple[int, int] | None = None

    @property
    def fits(self) -> bool | None:
        """True: with the high end of the error band. False: not even with its low end. None: in between (`tight`),
        or what is known fits and something is not known (`unknown`).
        """
        low, high = self.band or (self.needed_bytes, self.needed_bytes)
        if low > self.usable_bytes:
            return False
        return None if self.unknown or high > self.usable_bytes else True

    @property
    def tight(self) -> bool:
        """Whether what is usable lies inside the error band."""
        return self.band is not None and self.band[0] <= self.usable_bytes < self.band[1]

    @property
    def status(self) -> int:
        """0 it fits, 2 tight, 3 it does not fit, or fits and does not answer the load as asked or misses its
        deadline or budget, 4 not enough is known.
        """
        if self.tight:
            return 2
        return 3 if self.fits and self.unserved else {True: 0, False: 3, None: 4}[self.fits]

    @property
    def unserved(self) -> str:
        """Why what fits does not do what was asked: answer the load, or end within its deadline and budget; nothing
        where it does.
        """
        return unserved(self.serving, self.question) or missed_limits(self.run, self.question)

    def __repr__(self) -> str:
        verdict = {0: "fits", 2: "tight", 3: "does not fit", 4: "not enough is known"}[self.status]
        if self.fits and self.unserved:
            verdict = Message("fits, but {unserved}", unserved=self.unserved)
        model, on = self.question["model"]["value"], self.question["on"]["value"]
        sizes = f"{human(self.needed_bytes, 'bytes')} of {human(self.usable_bytes, 'bytes')}"
        return f"<Answer {self.verb} {model} on {on}: {verdict}, needs {sizes}>"

    def to_dict(self) -> dict[str, Any]:
        """The whole document, every breakdown opened down to its formulas."""
        trees: dict[str, Any] = {"memory": self.memory.to_dict(), "ranks": [rank.to_dict() for rank in self.ranks]}
        if self.phases:
            trees["phases"] = [phase.to_dict() for phase in self.phases]
        return self._document(trees, Term.to_dict)

    @property
    def others(self) -> tuple[Term, ...]:
        """Every breakdown but that of memory."""
        bill = self.bill.all if self.bill else ()
        found = (
            self.step_time,
            self.flops,
            self.traffic,
            *self.run.values(),
            *(best.terms if isinstance(best := self.run.get("best_models"), BestModels) else ()),
            self.checkpoint,
            *bill,
            *(self.disks.all if self.disks else ()),
            *_terms(self.serving),
        )
        return tuple(term for term in found if isinstance(term, Term))

    @property
    def opened(self) -> tuple[Term, ...]:
        """Breakdowns that are shown beside that of memory: what the time of a first token and of the others goes to."""
        return tuple(term for name in ("ttft_seconds", "tpot_seconds") if (term := self.serving.get(name)) is not None)

    def summary(self) -> dict[str, Any]:
        """The document without its breakdowns, and without the cost of their texts."""
        return self._document({}, lambda term: {"name": term.name, "value": term.value, "unit": term.unit})

    def _document(self, trees: dict[str, Any], figure: Callable[[Term], dict[str, Any]]) -> dict[str, Any]:
        verdict = {
            "fits": self.fits,
            "needed_bytes": self.needed_bytes,
            "usable_bytes": self.usable_bytes,
            "band": list(self.band) if self.band else None,
            "missed": self.unserved or None,
        }
        document = {"schema": SCHEMA, "question": dict(self.question), "verdict": verdict, **trees}
        if self.slopes:
            document["slopes"] = dict(self.slopes)
        for key in ("flops", "step_time", "traffic", "checkpoint"):
            if (term := getattr(self, key)) is not None:
                document[key] = figure(term)
        if self.run:
            document["run"] = {name: _shown(value, figure) for name, value in self.run.items()}
        if self.host is not None:
            document["host"] = {"memory": figure(self.host.memory), "capacity_bytes": self.host.capacity}
            if self.host.storage is not None:
                document["host"]["storage"] = figure(self.host.storage)
        if self.disks is not None:
            document["host"] |= {"cores": figure(self.disks.cores), "disk": figure(self.disks.disk)}
            document["storage"] = {"formats": [figure(term) for term in self.disks.formats]}
            document["storage"] |= {name: figure(term) for name, term in self.disks.terms.items()}
        if self.bill is not None:
            document |= self.bill.document(figure)
        if self.serving:
            document["serving"] = {name: _shown(value, figure) for name, value in self.serving.items()}
        document["advice"] = [dict(move) for move in self.advice]
        if self.nearest_miss is not None:
            document["nearest_miss"] = dict(self.nearest_miss)
        document["warnings"] = list(self.warnings)
        return document


def _terms(figures: Mapping[str, Any]) -> Iterator[Term]:
    """Every figure, those of blocks inside it too."""
    for value in figures.values():
        if isinstance(value, Mapping):
            yield from _terms(value)
        elif isinstance(value, tuple | list):
            yield from _terms({str(i): each for i, each in enumerate(value)})
        elif isinstance(value, Term):
            yield value


def _shown(value: Any, figure: Callable[[Term], dict[str, Any]]) -> Any:
    if isinstance(value, Conventions | BestModels):
        return value.document(figure)
    if isinstance(value, Mapping):
        return {name: _shown(each, figure) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_shown(each, figure) for each in value]
    return figure(value) if isinstance(value, Term) else value

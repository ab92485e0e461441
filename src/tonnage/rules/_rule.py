"""A rule of thumb: what a document says, worked on the document's own example or on any model, beside the exact
figure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.validation import RuleDocument
from tonnage.kernel.formula import Formula
from tonnage.kernel.message import Message
from tonnage.kernel.registry import Registry
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.ops import Attention, LatentAttention, MoE

NOTHING: Mapping[str, float] = {}
OF_MODEL = ("N", "L", "h", "a", "k", "dh", "V")  # the fields of Numbers that a model gives
# Those that a question may give, by the names that the options of other verbs have.
GIVEN = {"sequence_length": "s", "micro_batch_size": "b", "tokens": "D", "num_accelerators": "n", "utilization": "u"}
LAYERS = "num_hidden_layers"  # given too, and then the model is one with so many


class Numbers(Struct, frozen=True, kw_only=True):
    """What a rule starts from. `model` is a catalogue name, or a Model that the user gave; the exact figure is about
    it.

    `N` may be a document's nominal count (6e9), which is not the model's own. `active`: parameters that a token passes
    through, where those are not all: compute is about them.
    """

    model: str | Model
    N: float
    active: float | None = None
    L: int = 0
    h: int = 0
    a: int = 0
    k: int = 0
    dh: int = 0
    V: int = 0
    s: int = 2048
    b: int = 1
    D: float = 300e9
    n: int = 1
    u: float = 1.0

    def read(self) -> Model:
        """The model itself."""
        if isinstance(self.model, Model):
            return self.model
        from tonnage.models import read

        return read(self.model)

    def of(self, model: Model) -> "Numbers":
        """The same rule asked of another model: sizes from it, batch and tokens as the document has them."""
        attention = next(
            (op for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention | LatentAttention)),
            None,
        )
        heads = attention.heads if attention else 0
        kv_heads = attention.kv_heads if isinstance(attention, Attention) else heads
        width = attention.head_dim if isinstance(attention, Attention) else attention.v_head_dim if attention else 0
        experts = any(isinstance(op, MoE) for block in model.decoder.blocks for op in block.ops)
        return replace(
            self,
            model=model,
            N=model.num_parameters(),
            active=model.num_active_parameters() if experts else None,
            L=model.num_layers,
            h=model.hidden_size,
            a=heads,
            k=kv_heads,
            dh=width,
            V=model.vocab_size,
        )

    @property
    def name_of_model(self) -> str:
        """What the model is called."""
        return self.model.name if isinstance(self.model, Model) else self.model

    @property
    def computing(self) -> float:
        """Parameters that a token is multiplied by: of a mixture's experts those that it goes to."""
        return self.N if self.active is None else self.active

    @property
    def about_computing(self) -> str:
        """A sentence where compute is not about all parameters."""
        if self.active is None:
            return ""
        total, active = human(self.N, "parameters"), human(self.active, "parameters")
        return Message(
            "N is the {active} that a token passes through; of the model's {total}, the other experts "
            "compute nothing for it.",
            active=active,
            total=total,
        )

    def given(self, given: Mapping[str, float]) -> "Numbers":
        """The same with these numbers, by the names of GIVEN."""
        return replace(self, **{GIVEN[name]: number for name, number in given.items()})

    def probe(self, names: Iterable[str] = OF_MODEL) -> "Numbers":
        """Numbers of which every one of these is another: what changes with them depends on the model, or on what is
        given.
        """
        other = {name: 2 * getattr(self, name) + 1 for name in names}
        return replace(self, active=None if self.active is None else 2 * self.active + 1, **other)


class Watched:
    """Numbers that remember which of them were asked for: what a rule, or the exact figure beside it, follows."""

    def __init__(self, numbers: Numbers):
        self._numbers = numbers
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(self._numbers, name)


class Worked(Struct, frozen=True, kw_only=True):
    """A rule worked: its figure, the row's other figures by label, and how to get the exact one (which costs more).

    `note`: what must be said about these numbers, beside the rule's own note. `stages`: a program's memory after each
    of its stages, as it was measured; `variants`: the same under other profiles.
    """

    value: Term
    exact: Callable[[], Term]
    values: Mapping[str, float] = {}
    note: str = ""
    stages: Callable[[], list[dict[str, Any]]] = list
    variants: Callable[[], list[dict[str, Any]]] = list


class Rule(Struct, frozen=True, kw_only=True):
    """One row of the documents. `printed` is what the document says; `erratum` what is wrong with that; `note` what
    it leaves open.
    """

    name: str
    title: str
    example: Numbers
    printed: str
    erratum: str | None
    note: str
    work: Callable[[Numbers], Worked]

    def numbers(self, model: Model | None = None, given: Mapping[str, float] = NOTHING) -> Numbers:
        """What it is worked on: its document's own example, or a model; with what is given."""
        return (self.example if model is None else self.example.of(model)).given(given)

    def worked(self, model: Model | None = None, given: Mapping[str, float] = NOTHING) -> Worked:
        """On the document's own example, or on a model."""
        return self.work(self.numbers(model, given))

    def of_document(self, model: Model | None = None, given: Mapping[str, float] = NOTHING) -> frozenset[str]:
        """The inputs and further figures that are the document's own whatever the model and the given numbers are;
        "value" for the figure itself.
        """
        numbers = self.numbers(model, given)
        first = self.work(numbers)
        if model is None and not given:
            return frozenset({"value", *first.value.inputs, *first.values})
        second = self.work(numbers.probe((*(OF_MODEL if model else ()), *(GIVEN[name] for name in given))))
        same = {name for name, number in first.value.inputs.items() if second.value.inputs.get(name) == number}
        same |= {label for label, number in first.values.items() if second.values.get(label) == number}
        return frozenset(same | ({"value"} if set(first.value.inputs) <= same else set()))

    def document(self, model: Model | None = None, given: Mapping[str, float] = NOTHING) -> RuleDocument:
        """The rule's document. `of_document` lists the numbers that are the document's own, not the model's nor
        given.
        """
        numbers = self.numbers(model, given)
        watched = Watched(numbers)
        worked = self.work(cast(Numbers, watched))
        formula = worked.value.formula
        assert formula is not None  # a rule's own figure is always a formula's
        exact = worked.exact().document
        return RuleDocument(
            name=self.name,
            title=self.title,
            formula=formula.name,
            text=formula.text,
            source=worked.value.source,
            value=worked.value.value,
            unit=worked.value.unit,
            values=dict(worked.values),
            printed=self.printed,
            erratum=self.erratum,
            note=" ".join(filter(None, (self.note, worked.note))),
            model=model.name if model else None,
            of_document=sorted(self.of_document(model, given)),
            exact=exact,
            inputs=dict(worked.value.inputs),
            example=self.example.name_of_model,
            follows=_followed(watched.asked, numbers),
            stages=worked.stages(),
            variants=worked.variants(),
        )


def _followed(asked: set[str], numbers: Numbers) -> dict[str, float]:
    """The numbers that change the rule or the exact figure, by the names that they are given by, as they are now."""
    layers = {LAYERS: numbers.L or numbers.read().num_layers} if "read" in asked else {}
    return layers | {name: getattr(numbers, letter) for name, letter in GIVEN.items() if letter in asked}


RULES: Registry[Rule] = Registry("rule")


def rule(
    name: str, title: str, example: Numbers, printed: str, *, erratum: str | None = None, note: str = ""
) -> Callable[[Callable[[Numbers], Worked]], Rule]:
    """Register the decorated function, which works the rule on Numbers."""

    def declare(work: Callable[[Numbers], Worked]) -> Rule:
        return RULES.add(
            name, Rule(name=name, title=title, example=example, printed=printed, erratum=erratum, note=note, work=work)
        )

    return declare


def by_rule(name: str, formula: Formula, **inputs: Any) -> Term:
    """A figure that a rule gives, whatever formula it borrows."""
    return Term.of(name, formula, basis="rule", **inputs)

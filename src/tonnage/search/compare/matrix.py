"""Every cell of a comparison, asked one after the other. A model and a machine are read once, whatever the number of
cells.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.documents.question import Entry
from tonnage.kernel.errors import UnknownName
from tonnage.search.compare import axes as a
from tonnage.search.compare.asking import Outcome, ask
from tonnage.search.compare.axes import Axis
from tonnage.search.compare.columns import ENCODED_FIGURES, Column, better, columns, named
from tonnage.search.compare.comparison import VERDICTS, Cell, Comparison
from tonnage.search.compare.fewest import fewest
from tonnage.search.compare.figures import figures
from tonnage.search.compare.offers import Providers
from tonnage.search.compare.places import FEWEST, MachineOption, place
from tonnage.search.progress import advance, expect
from tonnage.spec import Cluster

Read = Callable[[Any, dict[str, Any]], Model]  # what a model is called, and what is changed in it
LOADS = frozenset({"concurrency", "request_rate", "trace"})
ALONE = (
    "rates and prices are of one user on each replica, which are dear: concurrency (--users) says how many there are."
)
OF_CELLS = frozenset({"model", "on", "parameters", "accelerators", "price"})  # what each cell has of its own
KEY = "cost"  # what decides where nobody says what
KEY_OF_AUDIO = "usd_per_audio_hour"  # the same of speech


def compare(
    verb: str,
    axes: Iterable[Axis],
    read: Read,
    *,
    of_model: Collection[str] = (),
    sort: str = "",
    show: Sequence[str] = (),
) -> Comparison:
    """Ask `verb` (train or serve) about every combination. Axes are `model`, `on`, `count` and options of the verb;
    `of_model`: those that change the model; `show`: figures that will be asked for. What is wrong with all cells is
    raised; what is wrong with one is its verdict.
    """
    ordered_axes = a.ordered(tuple(axes))
    a.check_size(ordered_axes)
    known = columns(verb, ordered_axes, encodes=True)  # of any model: those that no answer fills are dropped below
    key, *asked_for = (named(verb, name, known) for name in (sort or KEY, *show))
    asker = _Asker(verb, ordered_axes, read, of_model)
    points = list(a.points(ordered_axes))
    expect("cells", len(points))
    questions = [asker.question(at) for at in points]
    asker.providers.choose((priced.cluster, priced.said) for priced in _priced(questions))
    outcomes = []
    for at, cell in zip(points, questions, strict=True):
        outcomes.append(asker.outcome(at, cell))
        advance("cells")
    _raise_what_is_wrong(ordered_axes, points, outcomes)
    items = {item for outcome in outcomes if (item := _item(outcome))}
    if not items and not any(column in ENCODED_FIGURES for column in (key, *asked_for)):
        known = columns(verb, ordered_axes)
    if items == {"files"} and not sort:
        key = named(verb, KEY_OF_AUDIO, known)
    common = _common([_notes_of(outcome) for outcome in outcomes])
    cells = [_cell(asker, at, outcome, known, common) for at, outcome in zip(points, outcomes, strict=True)]
    if sort:
        cells.sort(key=lambda cell: (VERDICTS.index(cell.row["verdict"]), better(key, cell.row)))
    if note := asker.providers.note:
        common = (*common, note)
    if verb == "serve" and not items and not LOADS & {axis.name for axis in ordered_axes}:
        common = (*common, ALONE)
    return Comparison(
        verb=verb,
        question=_question(ordered_axes, asker),
        axes=ordered_axes,
        columns=known,
        cells=tuple(cells),
        key=key,
        settings=_settings(ordered_axes, outcomes),
        warnings=common,
        providers=asker.providers.names,
    )


class _Question(Struct, frozen=True, eq=False):
    """A machine, and the options that it is asked with. `found`: the answer at its cheapest offer, where the fewest
    accelerators were looked for.
    """

    cluster: Cluster
    said: Mapping[str, Any]
    found: Outcome | None = None


def _priced(cells: Sequence[_Question]) -> list[_Question]:
    """The cells whose machines decide whose prices are taken: of those that do not hold the model no price is shown."""
    return [question for question in cells if question.found is None or question.found.holds] or list(cells)


class _Asker:
    """Models and machines as they were read, and the question of a cell."""

    def __init__(self, verb: str, axes: tuple[Axis, ...], read: Read, of_model: Collection[str]):
        self.verb, self.axes, self.read, self.of_model = verb, axes, read, of_model
        self.places: list[MachineOption] = []
        self.models: dict[tuple[Any, ...], Model] = {}
        self.compared = frozenset(axis.name for axis in axes if axis.varies)
        self.fields = [number for number, axis in enumerate(axes) if axis.name == "model" or axis.name in of_model]
        for number, axis in enumerate(axes):
            if axis.name == "on":
                self.on = number
                self.places = [place(on) for on in axis.values]
        self.providers = Providers(axes)
        self.options = [
            number for number, axis in enumerate(axes) if number not in self.fields and axis.name not in ("on", "count")
        ]

    def question(self, at: tuple[int, ...]) -> "_Question":
        """The machine and the options of a cell, before it is known whose prices it has."""
        where = self.places[at[self.on]]
        options = {self.axes[n].name: value for n in self.options if (value := self.axes[n].values[at[n]]) is not None}
        count = self.value(at, "count")
        if not where.open:
            return _Question(where.one, options)
        if count not in (None, FEWEST):
            return _Question(where.of(count), options)
        outcome = fewest(where, options, lambda on, more: self._ask(at, on, more), serving=self.verb == "serve")
        return _Question(outcome.cluster, {**options, **outcome.said}, outcome)

    def outcome(self, at: tuple[int, ...], cell: "_Question") -> Outcome:
        """The answer of a cell, with the prices of its provider."""
        provider = self.providers.of(cell.cluster.accelerator.name, cell.said)
        if cell.found is not None and not provider:
            return cell.found
        return self._ask(at, cell.cluster, {**cell.said, **provider})

    def _ask(self, at: tuple[int, ...], cluster: Cluster, options: Mapping[str, Any]) -> Outcome:
        return ask(self.verb, self.model(at), cluster, options, self.compared)

    def model(self, at: tuple[int, ...]) -> Model:
        key = tuple(at[number] for number in self.fields)
        if key not in self.models:
            changes = {
                self.axes[n].name: value
                for n in self.fields
                if self.axes[n].name != "model" and (value := self.axes[n].values[at[n]]) is not None
            }
            self.models[key] = self.read(self.value(at, "model"), changes)
        return self.models[key]

    def value(self, at: tuple[int, ...], name: str) -> Any:
        return next((axis.values[i] for axis, i in zip(self.axes, at, strict=True) if axis.name == name), None)


def _cell(
    asker: _Asker, at: tuple[int, ...], outcome: Outcome, known: tuple[Column, ...], common: tuple[str, ...]
) -> Cell:
    row: dict[str, Any] = dict.fromkeys(column.name for column in known)
    row["model"] = asker.model(at).name
    computed = {name: value for name, value in figures(asker.verb, outcome).items() if name in row}
    kinds = {column.name: column.kind for column in known}
    for axis, position in zip(asker.axes, at, strict=True):
        if axis.name not in row or axis.name in ("model", "on") or axis.name in outcome.left_out:
            continue
        value, name = axis.values[position], axis.name
        if kinds[name] == "text":
            row[name] = (
                axis.labels[position]
                if value is None and computed.get(name) is None
                else computed.get(name)
                if value is None
                else str(value)
            )
            computed.pop(name, None)
        elif computed.get(name) is None:
            row[name] = value
    own = tuple(warning for warning in _notes_of(outcome) if warning not in common)
    return Cell(at=at, row=row | {name: value for name, value in computed.items() if value is not None}, warnings=own)


def _settings(axes: tuple[Axis, ...], outcomes: Sequence[Outcome]) -> dict[str, Entry]:
    """What the questions of all answers have in common beside the axes: most are defaults, and say why. A reason is
    kept where all share it.
    """
    answered = [outcome.answer.question for outcome in outcomes if outcome.answer is not None]
    if not answered:
        return {}
    settings = {}
    for name, first in answered[0].items():
        same = all(
            name in answer and _value_and_origin(answer[name]) == _value_and_origin(first) for answer in answered
        )
        if same and name not in OF_CELLS and name not in {axis.name for axis in axes}:
            why = all(answer[name].why == first.why for answer in answered)
            settings[name] = first if why else Entry(first.value, first.origin)
    return settings


def _value_and_origin(entry: Entry) -> tuple[Any, Any]:
    return entry.value, entry.origin


def _item(outcome: Outcome) -> str:
    """What an answer counts of a model that writes no text of its own; nothing of others."""
    found = outcome.answer.serving.encoded if outcome.answer is not None else None
    return found.item if found else ""


def _notes_of(outcome: Outcome) -> tuple[str, ...]:
    return outcome.answer.warnings if outcome.answer is not None else ()


def _common(noted: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The notes that every answer has; cells without an answer have none."""
    answered = [notes for notes in noted if notes]
    return tuple(warning for warning in answered[0] if all(warning in notes for notes in answered)) if answered else ()


def _raise_what_is_wrong(
    axes: tuple[Axis, ...], points: Sequence[tuple[int, ...]], outcomes: Sequence[Outcome]
) -> None:
    """The error of all cells where it is one and the same; an option that applies in none; a name that nobody knows
    wherever it was said.
    """
    _raise_if_alike(outcomes, Exception)
    answered = [outcome for outcome in outcomes if outcome.answer is not None]
    for name, error in answered[0].left_out.items() if answered else ():
        if all(name in outcome.left_out for outcome in answered):
            raise error
    for number, axis in enumerate(axes):
        for position in range(len(axis.values) if axis.varies else 0):
            _raise_if_alike(
                [outcome for at, outcome in zip(points, outcomes, strict=True) if at[number] == position], UnknownName
            )


def _raise_if_alike(outcomes: Sequence[Outcome], kind: type[Exception]) -> None:
    first = outcomes[0].refusal
    if (
        first is not None
        and isinstance(first, kind)
        and all(str(outcome.refusal) == str(first) for outcome in outcomes)
    ):
        raise first


def _question(axes: tuple[Axis, ...], asker: _Asker) -> dict[str, Entry]:
    """The question of the document: every axis with its values, as they were given."""
    entries: dict[str, Entry] = {}
    for axis in axes:
        values: list[Any] = [a.OWN if value is None else value for value in axis.values]
        if axis.name in ("model", "on"):
            values = list(axis.labels)
        entries[axis.name] = Entry(values, "given")
    if "count" not in entries and any(place.open for place in asker.places):
        entries["count"] = Entry([FEWEST], "default", "of names that do not say how many")
    return entries

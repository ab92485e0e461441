"""The Python face: the same questions and documents as the command line, with plain arguments."""

import os
from collections.abc import Mapping
from math import isfinite
from operator import index
from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from tonnage import models
from tonnage.api_arguments import check_text, check_whole, public, typed
from tonnage.api_report import Reported, Tabled, command_of
from tonnage.architectures import Model
from tonnage.catalogue import cluster
from tonnage.errors import InvalidInput, shown
from tonnage.estimate import answers
from tonnage.estimate import frontier as frontiers
from tonnage.estimate.frontier import POINTS
from tonnage.estimate.frontier import frontier as estimate_frontier
from tonnage.estimate.load_options import LoadOptions
from tonnage.estimate.my_machine import Machine, my_machine
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.training_options import TrainingOptions
from tonnage.models.catalogued import every
from tonnage.question.option import types_of
from tonnage.question.subjects.money import OF_TRAINING, BillOptions
from tonnage.search.maximum import answer as maxima
from tonnage.spec import Cluster
from tonnage.spelling import no_option

read = public(models.read)

TAKES: dict[Any, str] = {int: "a whole number", bool: "True or False", str: "a name", float: "a finite number",
                         int | str: "a whole number, or a text such as auto or 15T",
                         float | str: "a finite number, or a text such as 100k, 30d or 20GB/s"}  # fmt: skip


class Answer(answers.Answer, Reported, frozen=True, kw_only=True):
    """An answer with the text that the command line prints: `print(answer)`, or `answer.text(formulas=True)`. `to_html()` and `to_markdown()`
    are its report, `rows()`, `to_polars()` and `to_pandas()` its figures, `figure(kind)` a picture; `command` asks it on the command line."""

    command: str = ""

    def text(self, *, formulas: bool = False) -> str:
        """The lines of the command line, without colour; `formulas`: with the numbers put in, as --formulas."""
        from tonnage.render.text import answer_lines

        return "\n".join(
            answer_lines(
                self.summary(),
                self.memory,
                formulas=formulas,
                others=self.others if formulas else (),
                opened=self.opened,
            )
        )

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write its pictures, as --plot: a page of HTML that needs no network, or a .png or .svg. Needs the extra `plot`."""
        from tonnage.render.plot import write_plot

        write_plot(self, path)

    def figure(self, kind: str = "ranks") -> Any:
        """A picture as a plotly.graph_objects.Figure: ranks, phases, pipeline, work or ownership, as far as the answer has it. Needs the extra `plot`."""
        from tonnage.render.plot import figure_of

        return figure_of(self, kind)

    def __str__(self) -> str:
        return self.text()


class Maximum(maxima.Maximum, Reported, frozen=True, kw_only=True, eq=False):
    """An answer of `maximum` with the text that the command line prints, its report and its figures."""

    command: str = ""

    def text(self, *, formulas: bool = False) -> str:
        """The lines of the command line, without colour; `formulas`: with the numbers put in, as --formulas."""
        from tonnage.render.maximum import maximum_lines

        return "\n".join(maximum_lines(self.summary(), self.answer.memory, formulas=formulas))

    def figure(self, kind: str = "ranks") -> Any:
        """A picture of the answer at the largest value, or at the least where none fits: as `Answer.figure`."""
        from tonnage.render.plot import figure_of

        return figure_of(self.answer, kind)

    def __str__(self) -> str:
        return self.text()


class Frontier(frontiers.Frontier, Tabled, frozen=True, kw_only=True, eq=False):
    """A frontier with its report, its points as data frames, and its picture."""

    command: str = ""
    listed: ClassVar[tuple[str, ...]] = ("points",)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write its picture, as --plot. Needs the extra `plot`."""
        from tonnage.render.plot import write_plot

        write_plot(self, path)

    def figure(self, kind: str = "frontier") -> Any:
        """Its picture as a plotly.graph_objects.Figure. Needs the extra `plot`."""
        from tonnage.render.plot import figure_of

        return figure_of(self, kind)

    def text(self) -> str:
        """The lines of the command line, without colour."""
        from tonnage.render.frontier import frontier_lines

        return "\n".join(frontier_lines(self.to_dict()))

    def __str__(self) -> str:
        return self.text()


@public
def train(
    model: str | os.PathLike[str] | Model, on: str | Cluster, *, reserve_bytes: float = 0, **options: Any
) -> Answer:
    """Does this training run fit, how long does it take, what does it cost, and why?

    `model`: a name, id, URL or path as `tonnage train` takes it, or a Model. `on`: "8xH100-SXM-80GB", or a Cluster.
    `reserve_bytes` [bytes]: memory of each accelerator to leave free. All other options are named too, and their help
    has each with its unit and default:

    - help(tonnage.TrainingOptions): the training: sequence_length, global_batch_size, runtime, tensor_parallel_size, recompute, ...
    - help(tonnage.RunOptions): a whole run: tokens, deadline, budget, checkpoints and failures
    - help(tonnage.BillOptions): money, power and disks: provider, price_kind, grid, ...

    An option that is not given has its default, and `answer.question` says which and why.
    Raises TonnageError: InvalidInput, UnknownName or InvalidPlan for what cannot be, MissingDatum for what nobody published.
    """
    command = command_of("train", model, on=on, reserve_bytes=_reserve(reserve_bytes), **options)
    of_run = {name: options.pop(name) for name in RunOptions.__struct_fields__ if name in options}
    of_bill = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    said, run, bill = (
        _options(TrainingOptions, options, RunOptions, BillOptions),
        _options(RunOptions, of_run),
        _options(BillOptions, of_bill),
    )
    return _with_text(
        answers.train(_model(model), _cluster(on), said, run, bill, reserve_bytes=_reserve(reserve_bytes)), command
    )


@public
def serve(
    model: str | os.PathLike[str] | Model, on: str | Cluster, *, reserve_bytes: float = 0, **options: Any
) -> Answer:
    """Does this model serve these requests, how many would fit, how fast is each answered, and at what price?

    `model`, `on`, `reserve_bytes` and errors as for `train`. Options, each with its unit and default:

    - help(tonnage.ServingOptions): the model on the machine: context, concurrency, weights, tensor_parallel_size, engine, ...
    - help(tonnage.LoadOptions): what users ask: input_tokens, output_tokens, request_rate, ttft, tpot, simulate, ...
    - help(tonnage.BillOptions): money and power: provider, price_kind, grid, ...
    """
    command = command_of("serve", model, on=on, reserve_bytes=_reserve(reserve_bytes), **options)
    of_load = {name: options.pop(name) for name in LoadOptions.__struct_fields__ if name in options}
    of_bill = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    said, load, bill = (
        _options(ServingOptions, options, LoadOptions, BillOptions),
        _options(LoadOptions, of_load),
        _options(BillOptions, of_bill),
    )
    _not_of_training(bill)
    return _with_text(
        answers.serve(_model(model), _cluster(on), said, load, bill, reserve_bytes=_reserve(reserve_bytes)), command
    )


@public
def frontier(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster,
    *,
    reserve_bytes: float = 0,
    points: int = POINTS,
    **options: Any,
) -> Frontier:
    """Speed for a user against throughput of an accelerator, over tensor sizes, precisions and numbers of users: `serve --frontier`.

    Options as for `serve`; what is given is not varied. `points`: numbers of users that are tried of each plan.
    `to_dict()` is the document.
    """
    points = check_whole("points", points)
    shown_points = None if points == POINTS else points
    asked = {"on": on, "frontier": True, "points": shown_points, **options}
    command = command_of("serve", model, reserve_bytes=_reserve(reserve_bytes), **asked)
    of_load = {name: options.pop(name) for name in LoadOptions.__struct_fields__ if name in options}
    of_bill = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    said = replace(_options(ServingOptions, options, LoadOptions, BillOptions), reserve_bytes=_reserve(reserve_bytes))
    found = estimate_frontier(
        _model(model), _cluster(on), said, _options(LoadOptions, of_load), _options(BillOptions, of_bill), points=points
    )
    return Frontier(**{name: getattr(found, name) for name in found.__struct_fields__}, command=command)


@public
def for_my_machine(on: str | Cluster = "local", *, reserve_bytes: float = 0, order: str = "parameters", ttft: float | str | None = None,
                   tpot: float | str | None = None, **options: Any) -> Machine:  # fmt: skip
    """Which models of the catalogue run on this machine, in which precisions, and how fast for one user: `serve --for-my-machine`.

    Options of serving as for `serve`: context and weights above all. `ttft`, `tpot`: what is slower is left out.
    `runs` has a row for each model and precision, `widest` one for each model; `to_dict()` is the document.
    """
    check_text("order", order)
    said = replace(_options(ServingOptions, options), reserve_bytes=_reserve(reserve_bytes))
    return my_machine(_cluster(on), every(), said, order=order, ttft=ttft, tpot=tpot)


@public
def maximum(
    what: str,
    model: str | os.PathLike[str] | Model | None = None,
    *,
    on: str | Cluster,
    verb: Literal["serve", "train"] | None = None,
    reserve_bytes: float = 0,
    advise: bool = True,
    **options: Any,
) -> Maximum:
    """The most of `what` that fits on a machine, checked at the answer and just beyond it: `tonnage max`.

    `what`: context, input, users, layers, expert-layers, adapters or model of serving; sequence, micro-batch, lora-rank, layers or model of training;
    `verb` says whose where both have it. `model`: none for "model", which looks at the catalogue. Options as for `serve` or `train`.
    `advise`: with what would let it be more. `value` is the answer, None where not even the least fits; `to_dict()` is the document.
    """
    from tonnage.question.subjects.maximum import what_of
    from tonnage.search.maximum.ask import serving_maximum, training_maximum

    if verb is not None:
        check_text("verb", verb)
    asked = what_of(check_text("what", what), verb)
    said: dict[str, Any] = {"on": on, **({verb: True} if verb else {}), **options}
    command = command_of(f"max {what}", model, reserve_bytes=_reserve(reserve_bytes), **said)
    serves = asked.verb == "serve"
    of_other = LoadOptions if serves else RunOptions
    others = {name: options.pop(name) for name in of_other.__struct_fields__ if name in options}
    money = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    bill, about = _options(BillOptions, money), None if model is None else _model(model)
    if serves:
        _not_of_training(bill)
    ask, form = (serving_maximum, ServingOptions) if serves else (training_maximum, TrainingOptions)
    chosen, other = _options(form, options, of_other, BillOptions), _options(of_other, others)
    found = ask(asked, about, _cluster(on), chosen, other, bill, reserve_bytes=_reserve(reserve_bytes), advise=advise)
    return Maximum(**{name: getattr(found, name) for name in found.__struct_fields__}, command=command)


def _with_text(answer: answers.Answer, command: str) -> Answer:
    return Answer(**{name: getattr(answer, name) for name in answer.__struct_fields__}, command=command)


def _model(model: Any) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return read(os.fspath(model))
    raise InvalidInput(f"model takes a name, a path or a Model. Got {typed(model)}.")


def _cluster(on: Any) -> Cluster:
    if isinstance(on, Cluster):
        return on
    if isinstance(on, str):
        return cluster(on)
    raise InvalidInput(f"on takes a name such as 8xH100-SXM-80GB, or a Cluster. Got {typed(on)}.")


def _names(value: Any, what: str) -> list[Any]:
    """What is named: one, a list, or a text with commas between, as the command line has it."""
    if not isinstance(value, str):
        return list(value) if isinstance(value, list | tuple) else [value]
    names = [part.strip() for part in value.split(",")]
    if not all(names):
        raise InvalidInput(f"{what} takes a name, or names with commas between. Got {typed(value)}.")
    return names


def _not_of_training(bill: BillOptions) -> None:
    for name in OF_TRAINING:
        if getattr(bill, name) is not None:
            raise InvalidInput(f"{name} is of a training run. Got {shown(getattr(bill, name))}.")


def _reserve(size: Any) -> int:
    """Whole bytes; the estimate checks that they leave something."""
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 <= size < float("inf"):
        raise InvalidInput(f"reserve_bytes takes a finite number of bytes, at least 0. Got {typed(size)}.")
    return round(size)


def _options(form: Any, options: Mapping[str, Any], *others: type[Struct]) -> Any:
    """The options as their struct. `others`: of the same question, whose names may be meant too."""
    for name in options:
        if name not in form.__struct_fields__:
            known = [field for each in (form, *others) for field in each.__struct_fields__]
            raise no_option(name, dict.fromkeys(("on", "reserve_bytes", *known)))
    return form(**{name: _option(form, name, value) for name, value in options.items()})


def _option(form: type[Struct], name: str, value: Any) -> Any:
    """The value if its type is the option's; numpy's integers become Python's."""
    declared = types_of(form)[name]
    takes = next(kind for kind in TAKES if declared in (kind, kind | None))
    words = TAKES[takes]
    if takes == int | str:  # amounts, which people write as 1e9
        takes = str if isinstance(value, str) else int
        value = int(value) if isinstance(value, float) and value.is_integer() else value
    if takes == float | str:
        takes = str if isinstance(value, str) else float
    if value is None or (type(value) is takes and takes is not float):
        return value
    if takes is int and not isinstance(value, bool) and hasattr(value, "__index__"):
        return index(value)
    if takes is str and isinstance(value, str):
        return str(value)
    if takes is float and isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    raise InvalidInput(f"{name} takes {words}, or None for its default. Got {typed(value)}.")

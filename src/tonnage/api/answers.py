"""The Python face: the same questions and documents as the command line, with plain arguments."""

import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec.structs import replace

from tonnage import models
from tonnage.api.arguments import (
    check_served,
    check_switch,
    check_text,
    check_whole,
    cluster_of,
    model_of,
    options_by_subject,
    options_from,
    public,
    reserve_of,
)
from tonnage.api.reports import Reported, Tabled, command_of
from tonnage.architectures import Model
from tonnage.estimate.answer import answers
from tonnage.estimate.answer import frontier as frontiers
from tonnage.estimate.answer.frontier import POINTS
from tonnage.estimate.answer.frontier import frontier as estimate_frontier
from tonnage.estimate.answer.my_machine import ModelsForMachine, my_machine
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.models.catalogued import every
from tonnage.question.subjects.money import BillOptions
from tonnage.search.maximum import answer as maxima
from tonnage.spec import Cluster

if TYPE_CHECKING:
    from typing import Unpack

    from tonnage.api.options import AnyOptions, MachineOptions, ServeOptions, TrainOptions


read = public(models.read)


class Answer(answers.Answer, Reported, frozen=True, kw_only=True):
    """An answer with the text that the command line prints: `print(answer)`, or `answer.text(formulas=True)`.
    `to_html()` and `to_markdown()` are its report, `rows()`, `to_polars()` and `to_pandas()` its figures,
    `figure(kind)` a picture; `command` asks it on the command line.
    """

    command: str = ""

    def text(self, *, formulas: bool = False, verbose: bool = False) -> str:
        """The lines of the command line, without colour: at most 24, with `verbose` every figure and every input (-v),
        with `formulas` the numbers put in besides (--formulas).
        """
        if not (formulas or verbose):
            from tonnage.render.brief.answer import answer_text
            from tonnage.render.brief.layout import plain_text

            return plain_text(lambda width: answer_text(self, width))
        from tonnage.render.text import answer_lines

        return "\n".join(
            answer_lines(
                self.without_trees(),
                self.memory,
                formulas=formulas,
                others=self.others if formulas else (),
                opened=self.opened,
            )
        )

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write its pictures, as --plot: a page of HTML that needs no network, or a .png or .svg. Needs the extra
        `plot`.
        """
        from tonnage.render.plot import write_plot

        write_plot(self, path)

    def figure(self, kind: str = "ranks") -> Any:
        """A picture as a plotly.graph_objects.Figure: ranks, phases, pipeline, work or ownership, as far as the
        answer has it. Needs the extra `plot`.
        """
        from tonnage.render.plot import figure_of

        return figure_of(self, kind)

    def __str__(self) -> str:
        return self.text()


class Maximum(maxima.Maximum, Reported, frozen=True, kw_only=True, eq=False):
    """An answer of `maximum` with the text that the command line prints, its report and its figures."""

    command: str = ""

    def text(self, *, formulas: bool = False, verbose: bool = False) -> str:
        """The lines of the command line, without colour: at most 24, with `verbose` every figure and every input (-v),
        with `formulas` the numbers put in besides (--formulas).
        """
        if not (formulas or verbose):
            from tonnage.render.brief.layout import plain_text
            from tonnage.render.brief.maximum import maximum_text

            return plain_text(lambda width: maximum_text(self, width))
        from tonnage.render.maximum import maximum_lines

        return "\n".join(maximum_lines(self.without_trees(), self.answer.memory, formulas=formulas))

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
    model: str | os.PathLike[str] | Model,
    on: str | Cluster,
    *,
    reserve_bytes: float = 0,
    advice: bool = True,
    **options: "Unpack[TrainOptions]",
) -> Answer:
    """Does this training run fit, how long does it take, what does it cost, and why?

    `model`: a name, id, URL or path as `tonnage train` takes it, or a Model. `on`: "8xH100-SXM-80GB", or a Cluster.
    `reserve_bytes` [bytes]: memory of each accelerator to leave free. `advice`: with the next best moves and the
    slopes, which take most of the time of an answer. All other options are named too, and their help has each with its
    unit and default:

    - help(tonnage.TrainingOptions): the training: sequence_length, global_batch_size, runtime, tensor_parallel_size,
      recompute, ...
    - help(tonnage.RunOptions): a whole run: tokens, deadline, budget, checkpoints and failures
    - help(tonnage.BillOptions): money, power and disks: provider, price_kind, grid, ...

    An option that is not given has its default, and `answer.question` says which and why.
    Raises TonnageError: InvalidInput, UnknownName or InvalidPlan for what cannot be, MissingDatum for what nobody
    published.
    """
    unadvised = {} if check_switch("advice", advice) else {"advice": False}
    command = command_of("train", model, on=on, reserve_bytes=reserve_of(reserve_bytes), **options, **unadvised)
    training, run, bill = options_by_subject(options, TrainingOptions, RunOptions, BillOptions)
    return _with_text(
        answers.train(
            model_of(model),
            cluster_of(on),
            training,
            run,
            bill,
            reserve_bytes=reserve_of(reserve_bytes),
            advise=advice,
        ),
        command,
    )


@public
def serve(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster,
    *,
    reserve_bytes: float = 0,
    advice: bool = True,
    **options: "Unpack[ServeOptions]",
) -> Answer:
    """Does this model serve these requests, how many would fit, how fast is each answered, and at what price?

    `model`, `on`, `reserve_bytes`, `advice` and errors as for `train`. Options, each with its unit and default:

    - help(tonnage.ServingOptions): the model on the machine: context, concurrency, weights, tensor_parallel_size,
      engine, ...
    - help(tonnage.LoadOptions): what users ask: input_tokens, output_tokens, request_rate, ttft, tpot, simulate, ...
    - help(tonnage.BillOptions): money and power: provider, price_kind, grid, ...
    """
    unadvised = {} if check_switch("advice", advice) else {"advice": False}
    command = command_of("serve", model, on=on, reserve_bytes=reserve_of(reserve_bytes), **options, **unadvised)
    serving, load, bill = options_by_subject(options, ServingOptions, LoadOptions, BillOptions)
    check_served(bill)
    return _with_text(
        answers.serve(
            model_of(model),
            cluster_of(on),
            serving,
            load,
            bill,
            reserve_bytes=reserve_of(reserve_bytes),
            advise=advice,
        ),
        command,
    )


@public
def frontier(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster,
    *,
    reserve_bytes: float = 0,
    points: int = POINTS,
    **options: "Unpack[ServeOptions]",
) -> Frontier:
    """Speed for a user against throughput of an accelerator, over tensor sizes, precisions and numbers of users: `serve
    --frontier`.

    Options as for `serve`; what is given is not varied. `points`: numbers of users that are tried of each plan.
    `to_dict()` is the document.
    """
    points = check_whole("points", points)
    shown_points = None if points == POINTS else points
    question = {"on": on, "frontier": True, "points": shown_points, **options}
    command = command_of("serve", model, reserve_bytes=reserve_of(reserve_bytes), **question)
    serving, load, bill = options_by_subject(options, ServingOptions, LoadOptions, BillOptions)
    serving_options = replace(serving, reserve_bytes=reserve_of(reserve_bytes))
    answer = estimate_frontier(model_of(model), cluster_of(on), serving_options, load, bill, points=points)
    return Frontier(**{name: getattr(answer, name) for name in answer.__struct_fields__}, command=command)


@public
def for_my_machine(
    on: str | Cluster = "local",
    *,
    reserve_bytes: float = 0,
    order: str = "parameters",
    ttft: float | str | None = None,
    tpot: float | str | None = None,
    **options: "Unpack[MachineOptions]",
) -> ModelsForMachine:
    """Which models of the catalogue run on this machine, in which precisions, and how fast for one user: `serve
    --for-my-machine`.

    Options of serving as for `serve`: context and weights above all. `ttft`, `tpot`: what is slower is left out.
    `runs` has a row for each model and precision, `widest` one for each model; `to_dict()` is the document.
    """
    check_text("order", order)
    serving = replace(options_from(ServingOptions, options), reserve_bytes=reserve_of(reserve_bytes))
    return my_machine(cluster_of(on), every(), serving, order=order, ttft=ttft, tpot=tpot)


@public
def maximum(
    what: str,
    model: str | os.PathLike[str] | Model | None = None,
    *,
    on: str | Cluster,
    verb: Literal["serve", "train"] | None = None,
    reserve_bytes: float = 0,
    advise: bool = True,
    **options: "Unpack[AnyOptions]",
) -> Maximum:
    """The most of `what` that fits on a machine, checked at the answer and just beyond it: `tonnage max`.

    `what`: context, input, users, layers, expert-layers, adapters or model of serving; sequence, micro-batch,
    lora-rank, layers or model of training; `verb` says whose where both have it. `model`: none for "model", which looks
    at the catalogue. Options as for `serve` or `train`.
    `advise`: with what would let it be more. `value` is the answer, None where not even the least fits; `to_dict()` is
    the document.
    """
    from tonnage.question.subjects.maximum import what_of
    from tonnage.search.maximum.ask import serving_maximum, training_maximum

    if verb is not None:
        check_text("verb", verb)
    quantity = what_of(check_text("what", what), verb)
    question: dict[str, Any] = {"on": on, **({verb: True} if verb else {}), **options}
    command = command_of(f"max {what}", model, reserve_bytes=reserve_of(reserve_bytes), **question)
    serves = quantity.verb == "serve"
    forms = (ServingOptions, LoadOptions) if serves else (TrainingOptions, RunOptions)
    chosen, other, bill = options_by_subject(options, *forms, BillOptions)
    if serves:
        check_served(bill)
    ask: Any = serving_maximum if serves else training_maximum
    about, reserve = None if model is None else model_of(model), reserve_of(reserve_bytes)
    answer = ask(quantity, about, cluster_of(on), chosen, other, bill, reserve_bytes=reserve, advise=advise)
    return Maximum(**{name: getattr(answer, name) for name in answer.__struct_fields__}, command=command)


max = maximum


def _with_text(answer: answers.Answer, command: str) -> Answer:
    return Answer(**{name: getattr(answer, name) for name in answer.__struct_fields__}, command=command)

"""The Python face: the same questions and documents as the command line, with plain arguments."""

import os
from collections.abc import Mapping, Sequence
from math import isfinite
from operator import index
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.catalogue import cluster
from tonnage.errors import InvalidInput, shown
from tonnage.estimate import answers
from tonnage.estimate.bill import OF_TRAINING, BillOptions
from tonnage.estimate.frontier import POINTS, Frontier
from tonnage.estimate.frontier import frontier as estimate_frontier
from tonnage.estimate.load_options import LoadOptions
from tonnage.estimate.my_machine import Machine, my_machine
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.training_options import TrainingOptions
from tonnage.models import read
from tonnage.models.catalogued import every
from tonnage.registry import unknown
from tonnage.spec import Cluster

if TYPE_CHECKING:
    from tonnage.search.pool.placement import Placement

TAKES: dict[Any, str] = {int: "a whole number", bool: "True or False", str: "a name", float: "a finite number",
                         int | str: "a whole number, or a text such as auto or 15T",
                         float | str: "a finite number, or a text such as 100k, 30d or 20GB/s"}  # fmt: skip


class Answer(answers.Answer, frozen=True, kw_only=True):
    """An answer with the text that the command line prints: `print(answer)`, or `answer.text(formulas=True)`."""

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

    def __str__(self) -> str:
        return self.text()


class Placed:
    """What `place` answers: the document's parts (`verdict`, `stages`, `replicas`, `jobs`, `moves`, `figures`, ...) and the lines of the command line."""

    def __init__(self, found: "Placement"):
        self.document, self.placed, self.status = found.document, found.placed, found.status
        self.to_dict = found.to_dict

    def text(self) -> str:
        """The lines of the command line, without colour."""
        from tonnage.render.pool import pool_lines

        return "\n".join(pool_lines(self.to_dict()))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Placed {self.document.verdict.text}>"


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
    of_run = {name: options.pop(name) for name in RunOptions.__struct_fields__ if name in options}
    of_bill = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    said, run, bill = _options(TrainingOptions, options), _options(RunOptions, of_run), _options(BillOptions, of_bill)
    return _with_text(
        answers.train(_model(model), _cluster(on), said, run, bill, reserve_bytes=_reserve(reserve_bytes))
    )


def serve(
    model: str | os.PathLike[str] | Model, on: str | Cluster, *, reserve_bytes: float = 0, **options: Any
) -> Answer:
    """Does this model serve these requests, how many would fit, how fast is each answered, and at what price?

    `model`, `on`, `reserve_bytes` and errors as for `train`. Options, each with its unit and default:

    - help(tonnage.ServingOptions): the model on the machine: context, concurrency, weights, tensor_parallel_size, engine, ...
    - help(tonnage.LoadOptions): what users ask: input_tokens, output_tokens, request_rate, ttft, tpot, simulate, ...
    - help(tonnage.BillOptions): money and power: provider, price_kind, grid, ...
    """
    of_load = {name: options.pop(name) for name in LoadOptions.__struct_fields__ if name in options}
    of_bill = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    said, load, bill = _options(ServingOptions, options), _options(LoadOptions, of_load), _options(BillOptions, of_bill)
    for name in OF_TRAINING:
        if getattr(bill, name) is not None:
            raise InvalidInput(f"{name} is of a training run. Got {shown(getattr(bill, name))}.")
    return _with_text(
        answers.serve(_model(model), _cluster(on), said, load, bill, reserve_bytes=_reserve(reserve_bytes))
    )


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
    of_load = {name: options.pop(name) for name in LoadOptions.__struct_fields__ if name in options}
    of_bill = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    said = replace(_options(ServingOptions, options), reserve_bytes=_reserve(reserve_bytes))
    return estimate_frontier(
        _model(model), _cluster(on), said, _options(LoadOptions, of_load), _options(BillOptions, of_bill), points=points
    )


def for_my_machine(on: str | Cluster = "local", *, reserve_bytes: float = 0, order: str = "parameters", ttft: float | str | None = None,
                   tpot: float | str | None = None, **options: Any) -> Machine:  # fmt: skip
    """Which models of the catalogue run on this machine, in which precisions, and how fast for one user: `serve --for-my-machine`.

    Options of serving as for `serve`: context and weights above all. `ttft`, `tpot`: what is slower is left out.
    `runs` has a row for each model and precision, `widest` one for each model; `to_dict()` is the document.
    """
    said = replace(_options(ServingOptions, options), reserve_bytes=_reserve(reserve_bytes))
    return my_machine(_cluster(on), every(), said, order=order, ttft=ttft, tpot=tpot)


def place(inventory: str | os.PathLike[str] | Mapping[str, Any], model: str | os.PathLike[str] | Model | None = None, *, kind: str = "serve",
          split: str = "auto", goal: str = "throughput", stages: int | None = None, offload: bool = False, leave: Sequence[str] = (),
          join: Sequence[str] = (), time_limit: float | None = None, gap: float = 0.0, **options: Any) -> Placed:  # fmt: skip
    """What goes where on a pool of unlike accelerators: `plan --inventory`. Needs the extra `placement`.

    `inventory`: a file (docs/commands/plan_pool.md), or the same as a mapping. With a `model` its layers, or replicas of it, are placed, to
    `serve` or to `train` it (`kind`), with options as for `serve` and `train`; without one the jobs of the inventory. `goal`: throughput or
    latency, of a pipeline that serves. `leave`, `join`: nodes and spare groups: what moves where? `to_dict()` is the document.
    """
    from tonnage.search.pool.place import place as placed

    if kind not in ("serve", "train"):
        raise unknown("kind of placement", str(kind), ("serve", "train"))
    of_load = {name: options.pop(name) for name in LoadOptions.__struct_fields__ if name in options and kind == "serve"}
    said = _options(TrainingOptions if kind == "train" else ServingOptions, options)
    if model is None and (options or of_load):
        raise InvalidInput(
            f"options of the inventory's jobs are written there: leave out {next(iter([*options, *of_load]))}."
        )
    where = dict(inventory) if isinstance(inventory, Mapping) else os.fspath(inventory)
    found = placed(where, None if model is None else _model(model), said, _options(LoadOptions, of_load), split=split, objective=goal, stages=stages,
                  offload=offload, leave=tuple(leave), join=tuple(join), time_limit=time_limit, gap=gap)  # fmt: skip
    return Placed(found)


def _with_text(answer: answers.Answer) -> Answer:
    return Answer(**{name: getattr(answer, name) for name in answer.__struct_fields__})


def _model(model: Any) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return read(os.fspath(model))
    raise InvalidInput(f"model takes a name, a path or a Model. Got {_shown(model)}.")


def _cluster(on: Any) -> Cluster:
    if isinstance(on, Cluster):
        return on
    if isinstance(on, str):
        return cluster(on)
    raise InvalidInput(f"on takes a name such as 8xH100-SXM-80GB, or a Cluster. Got {_shown(on)}.")


def _reserve(size: Any) -> int:
    """Whole bytes; the estimate checks that they leave something."""
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 <= size < float("inf"):
        raise InvalidInput(f"reserve_bytes takes a finite number of bytes, at least 0. Got {_shown(size)}.")
    return round(size)


def _options(form: Any, options: Mapping[str, Any]) -> Any:
    for name in options:
        if name not in form.__struct_fields__:
            raise unknown("option", name, form.__struct_fields__)
    return form(**{name: _option(form, name, value) for name, value in options.items()})


def _option(form: type[Struct], name: str, value: Any) -> Any:
    """The value if its type is the option's; numpy's integers become Python's."""
    takes = next(kind for kind in TAKES if form.__annotations__[name] in (kind, kind | None))
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
    raise InvalidInput(f"{name} takes {words}, or None for its default. Got {_shown(value)}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"

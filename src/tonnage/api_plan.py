"""The Python face of `tonnage plan`: the best plans and machines for a training run, or for users."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tonnage.api import _model, _options, _reserve, _shown
from tonnage.architectures import Model
from tonnage.errors import InvalidInput
from tonnage.estimate.bill import BillOptions
from tonnage.estimate.load_options import LoadOptions
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.training_options import TrainingOptions
from tonnage.registry import unknown
from tonnage.search.pool.place import place as place_on
from tonnage.search.pool.placement import Placement
from tonnage.search.serving import plan_serving as search_serving
from tonnage.search.serving.answer import ServingPlans
from tonnage.search.serving.machines import fixed, named
from tonnage.search.serving.options import ServingPlanOptions
from tonnage.search.training.answer import TrainingPlans, answer
from tonnage.search.training.options import Asked, SearchOptions
from tonnage.spec import Cluster


def plan_training(
    model: str | os.PathLike[str] | Model, on: str | Sequence[str] = (), *, vary: Mapping[str, Sequence[Any]] | None = None,
    reserve_bytes: float = 0, **options: Any,
) -> TrainingPlans:  # fmt: skip
    """The best plans of a training run on a machine, or the best machines for it: `tonnage plan --train`.

    `on`: one name or several; a name with a number ("8xH100-SXM-80GB") is that machine, a name alone any number of it, none every GPU of the
    catalogue. Options of the search: help(tonnage.SearchOptions); all others as for `train`: what is given is not varied. `vary`: values of
    other options to try, such as {"precision": ["bf16-mixed", "fp8-te"]}. `plans` are the best, each with its whole `answer`; `to_dict()` is
    the document.
    """
    forms = (SearchOptions, RunOptions, BillOptions)
    parts = [{name: options.pop(name) for name in form.__struct_fields__ if name in options} for form in forms]
    asked, run, bill = (_options(form, part) for form, part in zip(forms, parts, strict=True))
    names = (on,) if isinstance(on, str) else tuple(on)
    said = _options(TrainingOptions, options)
    reserve = _reserve(reserve_bytes)
    return answer(
        _model(model),
        Asked(on=names, options=said, run=run, money=bill, search=asked, vary=vary or {}, reserve_bytes=reserve),
    )


def plan_serving(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster | Sequence[str | Cluster] | None = None,
    *,
    reserve_bytes: float = 0,
    **options: Any,
) -> ServingPlans:
    """The best machines and plans to serve a model to these users within these limits: `plan --serve`.

    `on`: names with commas between, or a list of names and Clusters: of a name without a count the number is searched; None: the whole catalogue.
    What is given is not varied; `weights` and `engine` may be several, with commas between. `to_dict()` is the document; `plans` has the best
    ones, `best` the answer of `serve` for the first of them.

    - help(tonnage.ServingPlanOptions): the search: goal, vary, max_accelerators, budget, top, pareto
    - help(tonnage.ServingOptions), help(tonnage.LoadOptions), help(tonnage.BillOptions): as for `serve`
    """
    forms = (ServingPlanOptions, LoadOptions, BillOptions)
    said, load, bill = (
        _options(form, {name: options.pop(name) for name in form.__struct_fields__ if name in options})
        for form in forms
    )
    serving = replace(_options(ServingOptions, options), reserve_bytes=_reserve(reserve_bytes))
    return search_serving(_model(model), _machines(on), said, serving, load, bill)


def _machines(on: Any) -> Any:
    if on is None or isinstance(on, str):
        return None if on is None else named(on)
    listed = [on] if isinstance(on, Cluster) else list(on)
    found = tuple(
        machine
        for each in listed
        for machine in ((fixed(each),) if isinstance(each, Cluster) else named(_cluster_name(each)))
    )
    if not found:
        raise InvalidInput("on takes at least one name, or None for the whole catalogue. Got none.")
    return found


def _cluster_name(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise InvalidInput(f"on takes names such as h100 or 8xH100-SXM-80GB, and Clusters. Got {_shown(name)}.")


class Placed:
    """What `place` answers: the document's parts (`verdict`, `stages`, `replicas`, `jobs`, `moves`, `figures`, ...) and the lines of the command line."""

    def __init__(self, found: Placement):
        self.document, self.placed, self.status = found.document, found.placed, found.status
        self.to_dict = found.to_dict

    def text(self) -> str:
        """The lines of the command line, without colour."""
        from tonnage.render.pool import pool_lines

        return "\n".join(pool_lines(self.to_dict()))

    def __str__(self) -> str:
        return self.text()


def place(inventory: str | os.PathLike[str] | Mapping[str, Any], model: str | os.PathLike[str] | Model | None = None, *, kind: str = "serve",
          split: str = "auto", goal: str = "throughput", stages: int | None = None, offload: bool = False, leave: Sequence[str] = (),
          join: Sequence[str] = (), time_limit: float | None = None, gap: float = 0.0, **options: Any) -> Placed:  # fmt: skip
    """What goes where on a pool of unlike accelerators: `plan --inventory`. Needs the extra `placement`.

    `inventory`: a file (docs/commands/plan_pool.md), or the same as a mapping. With a `model` its layers, or replicas of it, are placed, to
    `serve` or to `train` it (`kind`), with options as for `serve` and `train`; without one the jobs of the inventory. `goal`: of a pipeline
    that serves: throughput, to the users asked about, or latency, of one user alone. `leave`, `join`: nodes and spare groups: what moves where? `to_dict()` is the document.
    """
    if kind not in ("serve", "train"):
        raise unknown("kind of placement", str(kind), ("serve", "train"))
    of_load = {name: options.pop(name) for name in LoadOptions.__struct_fields__ if name in options and kind == "serve"}
    said = _options(TrainingOptions if kind == "train" else ServingOptions, options)
    if model is None and (options or of_load):
        raise InvalidInput(
            f"options of the inventory's jobs are written there: leave out {next(iter([*options, *of_load]))}."
        )
    where = dict(inventory) if isinstance(inventory, Mapping) else os.fspath(inventory)
    found = place_on(where, None if model is None else _model(model), said, _options(LoadOptions, of_load), split=split, objective=goal, stages=stages,
                  offload=offload, leave=tuple(leave), join=tuple(join), time_limit=time_limit, gap=gap)  # fmt: skip
    return Placed(found)

"""The Python face of `tonnage plan`: the best plans and machines for a training run."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.api import _model, _options, _reserve
from tonnage.architectures import Model
from tonnage.estimate.bill import BillOptions
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.training_options import TrainingOptions
from tonnage.search.training.answer import TrainingPlans, answer
from tonnage.search.training.options import SearchOptions


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
    return answer(_model(model), names, said, run, bill, asked, vary or {}, reserve_bytes=_reserve(reserve_bytes))

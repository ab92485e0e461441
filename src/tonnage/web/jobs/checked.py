"""What is wrong with a job by its question alone: that is refused at once, and not when its turn has come."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.errors import TonnageError, UnknownName
from tonnage.question.form import required, values
from tonnage.question.looked_up import check_model
from tonnage.question.read import Read, in_fields, read
from tonnage.question.subjects.model import DIMENSIONS, ON
from tonnage.verbs.compare import axes
from tonnage.web.jobs.documents import SEARCHES

TABLE = frozenset({"sort", "show", "rows", "parquet"})  # how a comparison is shown: no axes


def check(verb: str, question: Mapping[str, Any]) -> Read:
    """The question read; TonnageError where a field, its value, or the name of a model or a machine is wrong.
    Nothing is estimated, and no network is asked.
    """
    asked = read(verb, question)
    with in_fields(asked):
        _check_values(asked)
        if verb in SEARCHES:  # forms of the other verbs need other things: the answer says which
            _check_needed(asked)
        several = verb == "compare"
        for name in _names(asked.given.model, several):
            check_model(name)
        for name in _names(getattr(asked.given, "on", None), several or verb == "plan"):
            _check_machine(name)
    return asked


def _check_values(asked: Read) -> None:
    """Of options that are read from a text; the content of a file is read by the job."""
    options = [each for each in asked.form.options.values() if not each.alone and each.name not in _READ_LATER]
    if asked.form.axes:
        axes(asked.given, [each for each in options if each.name not in TABLE])
    else:
        values(asked.given, options)


_READ_LATER = frozenset({"inventory", "vary", "serve", "train"})


def _check_needed(asked: Read) -> None:
    """What no search goes without: a machine, save of a plan, which chooses one; and a model, save where the largest
    is what is asked.
    """
    from tonnage.models import read as read_model

    given = asked.given
    if getattr(given, "inventory", None) is not None:
        return
    if asked.form.verb != "plan" and given.on is None:
        required({}, ON)
    says_model = any(getattr(given, each.name, None) is not None for each in DIMENSIONS)
    if given.model is None and not says_model and getattr(given, "what", None) != "model":
        read_model(None)


def _names(text: Any, several: bool) -> list[str]:
    if not isinstance(text, str):  # none, or the content of a file
        return []
    return [name.strip() for name in (text.split(",") if several else [text]) if name.strip()]


def _check_machine(name: str) -> None:
    """Of a name. Files and this machine are read by the job; so is what else may be wrong with a machine."""
    from tonnage.catalogue import cluster

    if name == "local" or name.endswith(".toml") or "/" in name:
        return
    try:
        cluster(name)
    except UnknownName:
        raise
    except TonnageError:
        pass

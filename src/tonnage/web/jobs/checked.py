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
    parsed = read(verb, question)
    with in_fields(parsed):
        _check_values(parsed)
        if verb in SEARCHES:  # forms of the other verbs need other things: the answer says which
            _check_needed(parsed)
        several = verb == "compare"
        for name in _names(parsed.given.model, several):
            check_model(name)
        for name in _names(getattr(parsed.given, "on", None), several or verb == "plan"):
            _check_machine(name)
    return parsed


def _check_values(parsed: Read) -> None:
    """Check the options that are read from a text; the content of a file is read by the job."""
    options = [option for option in parsed.form.options.values() if not option.alone and option.name not in _READ_LATER]
    if parsed.form.axes:
        axes(parsed.given, [option for option in options if option.name not in TABLE])
    else:
        values(parsed.given, options)


_READ_LATER = frozenset({"inventory", "vary", "serve", "train"})


def _check_needed(parsed: Read) -> None:
    """What no search goes without: a machine, save of a plan, which chooses one; and a model, save where the largest
    is what is asked.
    """
    from tonnage.models import read as read_model

    arguments = parsed.given
    if getattr(arguments, "inventory", None) is not None:
        return
    if parsed.form.verb != "plan" and arguments.on is None:
        required({}, ON)
    says_model = any(getattr(arguments, dimension.name, None) is not None for dimension in DIMENSIONS)
    if arguments.model is None and not says_model and getattr(arguments, "what", None) != "model":
        read_model(None)


def _names(text: Any, several: bool) -> list[str]:
    if not isinstance(text, str):  # none, or the content of a file
        return []
    return [name.strip() for name in (text.split(",") if several else [text]) if name.strip()]


def _check_machine(name: str) -> None:
    """Check the name of a machine. Files and this machine are read by the job; so is what else may be
    wrong with a machine.
    """
    from tonnage.catalogue import cluster

    if name == "local" or name.endswith(".toml") or "/" in name:
        return
    try:
        cluster(name)
    except UnknownName:
        raise
    except TonnageError:
        pass

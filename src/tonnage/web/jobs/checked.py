"""What is wrong with a job by its question alone: that is refused at once, and not when its turn has come."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from tonnage.ask import asked_options, in_fields, parsed
from tonnage.cli import _options
from tonnage.cli._compare import axes
from tonnage.kernel.errors import TonnageError, UnknownName
from tonnage.web.jobs.documents import SEARCHES

TABLE = frozenset({"sort", "show", "rows", "parquet"})  # how a comparison is shown: no axes


def check(verb: str, question: Mapping[str, Any]) -> None:
    """TonnageError where a field, its value, or the name of a model or a machine is wrong. Nothing is estimated, and no network is asked."""
    _, arguments, words = parsed(verb, question)
    with in_fields(verb, question, words):
        _check_values(verb, arguments, [option for option in asked_options(verb, words) if option.name != "inventory"])
        if verb in SEARCHES:  # forms of the other verbs need other things: the answer says which
            _check_needed(verb, arguments)
        several = verb == "compare"
        for name in _names(arguments.model, several):
            _options.check_model(name)
        for name in _names(getattr(arguments, "on", None), several or verb == "plan"):
            _check_machine(name)


def _check_values(verb: str, arguments: Namespace, options: list[_options.Option]) -> None:
    if verb == "compare":
        axes(arguments, [option for option in options if option.name not in TABLE])
    else:
        _options.values(arguments, options)


def _check_needed(verb: str, arguments: Namespace) -> None:
    """What no search goes without: a machine, save of a plan, which chooses one; and a model, save where the largest is what is asked."""
    from tonnage.models import read

    if getattr(arguments, "inventory", None) is not None:
        return
    if verb != "plan" and arguments.on is None:
        _options.required({}, _options.COMMON[0])
    says_model = any(getattr(arguments, option.name, None) is not None for option in _options.MODEL_OPTIONS)
    if arguments.model is None and not says_model and getattr(arguments, "what", None) != "model":
        read(None)


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

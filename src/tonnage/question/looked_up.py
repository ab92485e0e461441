"""The model and the machine that a question names."""

from typing import Any

from tonnage.kernel.errors import TonnageError, UnknownName
from tonnage.kernel.message import Message
from tonnage.question.form import Given, needed, required, values
from tonnage.question.subjects.model import DIMENSIONS, MACHINE, ON


def read_model(arguments: Given) -> Any:
    """The model that is named, with the dimensions that are given."""
    from tonnage.models import read

    overrides = values(arguments, DIMENSIONS)
    if "family" in overrides:
        overrides["model_type"] = overrides.pop("family")
    return read(arguments.model, overrides=overrides, revision=arguments.revision, offline=arguments.offline)


def no_model(arguments: Given) -> bool:
    """Whether no model is named, nor described by its dimensions."""
    return arguments.model is None and not values(arguments, DIMENSIONS)


def model_and_machine(arguments: Given) -> tuple[Any, Any, int]:
    """The model, the cluster, and the bytes to leave free on each accelerator."""
    from tonnage.catalogue import cluster

    common = values(arguments, MACHINE)
    if ON.name not in common:
        _say_both(arguments)
    machine = cluster(required(common, ON))
    return read_model(arguments), machine, common.get("reserve", 0)


def check_model(name: str) -> None:
    """UnknownName for a name of no model; what has to be asked for, or read, is left for later."""
    from tonnage.models import read

    if not set(name) & set("/\\:~"):
        try:
            read(name, offline=True)
        except UnknownName:
            raise
        except TonnageError:
            pass


def _say_both(arguments: Given) -> None:
    """A name of no model is reported together with the machine that is missing."""
    if isinstance(arguments.model, str):
        try:
            check_model(arguments.model)
        except UnknownName as error:
            raise UnknownName(Message("{error} {needed}", error=error, needed=needed(ON))) from None

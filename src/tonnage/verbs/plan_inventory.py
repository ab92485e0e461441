"""`plan --inventory`: a model, replicas of it, or jobs on a pool of unlike machines."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.question.form import Given, required, values
from tonnage.question.looked_up import no_model, read_model
from tonnage.question.subjects.model import DIMENSIONS, MODEL, READING
from tonnage.question.subjects.plan import POOL
from tonnage.question.verbs import form_of
from tonnage.verbs.answered import DocumentedAnswer


def answer(arguments: Given) -> DocumentedAnswer:
    """The plans, of which documents and texts are made."""
    from tonnage.search.pool.place import place

    is_document = isinstance(arguments.inventory, Mapping)  # of a question that is no command line
    own = values(arguments, POOL[1:] if is_document else POOL)
    inventory = arguments.inventory if is_document else required(own, POOL[0])
    kinds = [name for name in ("serve", "train") if own.pop(name, False)]
    if len(kinds) > 1:
        raise InvalidInput(Message("{--train} and {--serve} are two questions: give one. Got both."))
    names: dict[str, Any] = {
        name: tuple(part.strip() for part in own.pop(name).split(",") if part.strip())
        for name in ("leave", "join")
        if name in own
    }
    own.pop("inventory", None)
    if "goal" in own:
        own["objective"] = own.pop("goal")
    model, options, load = _asked(arguments, kinds[0] if kinds else "serve")
    return place(inventory, model, options, load, **own, **names)


def _asked(arguments: Given, kind: str) -> tuple[Any, Any, Any]:
    """The model and its options; nothing of it where no model is named, and then no option may be."""
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.question.subjects.training import TrainingOptions

    excluded = {*POOL, *DIMENSIONS, *READING, MODEL}
    options = values(
        arguments, [option for option in form_of("plan", "inventory").options.values() if option not in excluded]
    )
    forms = (TrainingOptions,) if kind == "train" else (ServingOptions, LoadOptions)
    for name, value in options.items():
        if not any(name in form.__struct_fields__ for form in forms):
            other = "--serve" if kind == "train" else "--train"
            raise InvalidInput(
                "--{name} is of {other}, and this is --{kind}. Got {value}.",
                name=name.replace("_", "-"),
                other=other,
                kind=kind,
                value=value,
            )
    if no_model(arguments):
        if options:
            name = next(iter(options)).replace("_", "-")
            raise InvalidInput(
                "--{name} is of one MODEL, and none is named: options of the inventory's jobs are written there.",
                name=name,
            )
        return None, None, None
    model = read_model(arguments)
    if kind == "train":
        return model, TrainingOptions(**options), None
    own = {name: value for name, value in options.items() if name in ServingOptions.__struct_fields__}
    return (
        model,
        ServingOptions(**own),
        LoadOptions(**{name: value for name, value in options.items() if name not in own}),
    )

"""`--config FILE` of train and serve, and a command of another tool in place of the model: what it says is asked, and
options that are typed beside it are stronger.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import is_there
from tonnage.question.form import Given

HELP = "another tool's file, such as a DeepSpeed JSON, an Axolotl YAML or a job script; options beside it are stronger"


def add_config(parser: argparse.ArgumentParser) -> None:
    """--config."""
    parser.add_argument_group("other tools").add_argument("--config", metavar="FILE", help=HELP)


def answer_of(verb: str, arguments: Given, answer: Callable[[Given], Any]) -> Any:
    """The answer to what was typed, with what a file or a command of another tool says below it."""
    if not arguments.config and not _is_command(arguments.model):
        return answer(arguments)
    from tonnage.interchange.check import marked, understood
    from tonnage.interchange.reading import Asker
    from tonnage.interchange.source import command_source, file_source
    from tonnage.question.read import in_fields, read
    from tonnage.question.verbs import form_of

    source = file_source(arguments.config) if arguments.config else command_source([arguments.model], Path())
    model = arguments.model if arguments.config else None
    found = understood(source, Asker(model=model or "", on=arguments.on or ""))
    if found.verb != verb:
        raise InvalidInput(
            "{file} is a question to {other}: write tonnage {other}. Got {verb}.",
            file=source.name,
            other=found.verb,
            verb=verb,
        )
    parsed = read(verb, found.question)
    typed = {}
    for name in form_of(verb).options:
        value = getattr(arguments, name, None)
        if value is not None and value != [] and name not in ("model", "on"):
            typed[name] = value
            setattr(parsed.given, name, value)
    with in_fields(parsed):
        result = answer(parsed.given)
    named = [name for name, value in (("model", model), ("on", arguments.on)) if value]
    return marked(result, found, {*typed, *named})


def _is_command(model: Any) -> bool:
    """Whether MODEL is a command of another tool, in quotes."""
    if not isinstance(model, str) or " " not in model.strip() or is_there(model):
        return False
    from tonnage.interchange.formats import formats
    from tonnage.interchange.source import command_source

    try:
        source = command_source([model])
    except InvalidInput:
        return False
    return any(form.recognises(source) for form in formats())

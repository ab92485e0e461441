"""tonnage export: the file or command of another tool that starts what a question asks for."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tonnage.cli.common.inner_question import VERBS, sort_words
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed
from tonnage.language import say
from tonnage.question.form import Given

HELP = "the file or command of another tool that starts what train or serve answers"
OUT, EDIT, JSON = "--out", "--edit", "--json"


def spelled(words: Sequence[str]) -> list[str]:
    """The words of the question behind `--`: they are read as those of its verb. Options of our own stand anywhere."""
    parts = sort_words(words, (OUT, EDIT), (JSON,))
    return [*parts.options, *parts.before, parts.question[0], "--", *parts.question[1:]] if parts else list(words)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "to", metavar="FORMAT", help="vllm, sglang, deepspeed, axolotl, sbatch, ... (a wrong one lists all)"
    )
    parser.add_argument("verb", metavar="train|serve", help="the question, with its model, --on and options")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENTS", help=argparse.SUPPRESS)
    parser.add_argument(OUT, metavar="FILE", help="write there instead of to standard output")
    parser.add_argument(
        EDIT, metavar="FILE", help="a file of the tool (JSON or YAML) that gets the values, and keeps all else it has"
    )
    parser.add_argument(JSON, action="store_true", help="print one JSON document (schema tonnage/2)")


def run(arguments: Given) -> int:
    from tonnage.cli.common.print import print_json, write
    from tonnage.interchange.export import writer
    from tonnage.interchange.json_questions import exported
    from tonnage.interchange.source import file_source

    writer(arguments.to)  # before what is wrong with the question
    if arguments.verb not in VERBS:
        raise InvalidInput("export takes train or serve behind FORMAT. Got {verb}.", verb=shown(arguments.verb))
    question = question_words(arguments.verb, arguments.arguments)
    edit = file_source(arguments.edit) if arguments.edit else None
    export = exported({**question, "verb": arguments.verb, "format": arguments.to}, edit=edit).document
    if arguments.out:
        save(arguments.out, export.text)
    elif not arguments.json:
        write(export.text if export.text.endswith("\n") else f"{export.text}\n")  # an edited file may end without one
    if arguments.json:
        print_json(export)
    if export.lacks:
        note = say("the file has no place for {options}: say them beside it", options=listed(export.lacks))
        print(say("note: {what}", what=note), file=sys.stderr)
    return 0


def save(path: str, text: str, option: str = OUT) -> None:
    """Write a file, or say why that cannot be done."""
    from tonnage.cli.common.outputs import unwritable

    why = unwritable(path)
    try:
        if not why:
            Path(path).write_text(text)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise InvalidInput("{option}: {path} cannot be written: {why}.", option=option, path=shown(path), why=why)


def question_words(verb: str, words: Sequence[str]) -> dict[str, object]:
    """The options of a command line of `train` or `serve`, as fields of a question."""
    from tonnage.cli import face
    from tonnage.question.verbs import form_of

    _, parser = face(verb, words)
    options = parser.parse_args(list(words))
    form = form_of(verb)
    return {name: value for name in form.of_face("json") if (value := getattr(options, name, None)) not in (None, [])}

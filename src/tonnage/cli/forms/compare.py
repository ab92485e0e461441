"""What both faces of `tonnage compare` share: lists of values in, one table out."""

import argparse
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tonnage.cli.common.parser import add_form
from tonnage.cli.common.report import HTML_HELP, MARKDOWN, STDOUT, reported
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import is_there
from tonnage.language import say
from tonnage.question.command_line import OWN
from tonnage.question.form import CHOOSING, WHOLE, Form
from tonnage.question.given import Given, spelled, values
from tonnage.question.option import Option
from tonnage.question.subjects.comparison import COUNT, TABLE
from tonnage.question.subjects.machine import MACHINE, ON
from tonnage.question.subjects.model import DIMENSIONS
from tonnage.question.verbs import form_of, model_groups

WRONG = 64


def lists(options: Sequence[Option], switch: str) -> str:
    """How several values are said, for the help of a verb with these options."""
    whole = ", ".join(option.flag for option in options if option.name in WHOLE)
    return (
        "Every option takes several values, with commas between them: each is then an axis of the table, "
        "which has a cell for every combination.\n"
        f"`{OWN}` stands for the default of an option; a switch that is given both ways (--{switch} "
        f"--no-{switch}) is compared too.\n"
        f"Options that take commas themselves have a semicolon between values: {whole}."
    )


def compared(form: Form) -> tuple[Option, ...]:
    """The options of a verb whose answers are compared: not its model and machine, nor how the table is shown."""
    beside = {each.name for group in model_groups() for each in group.options} | {
        each.name for each in (*MACHINE, *TABLE)
    }
    return tuple(each for name, each in form.options.items() if name not in beside and name not in CHOOSING)


class Both(argparse.BooleanOptionalAction):
    """A switch that may be given both ways."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        said = not str(option_string).startswith("--no-")
        before = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*before, said])


def add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """MODEL, the machine, every option of the verb, and how the table is shown."""
    add_form(parser, form_of("compare", verb), Both)
    output = parser.add_argument_group("output")
    forms = output.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/2)")
    forms.add_argument("--csv", action="store_true", help="print all columns, in base units and full precision")
    output.add_argument("--html", metavar="FILE", help=HTML_HELP)
    output.add_argument(
        MARKDOWN,
        metavar="FILE",
        nargs="?",
        const=STDOUT,
        help="print the table as Markdown; with FILE.md, write the whole report besides",
    )


def run(arguments: Given, verb: str, options: Sequence[Option]) -> int:
    from tonnage.catalogue.clusters import says_how_many
    from tonnage.cli.common.print import in_error, print_json, print_lines, write
    from tonnage.search.compare import compare

    table = values(arguments, TABLE[1:])
    show = [each.strip() for each in table.get("show", "").split(",") if each.strip()]
    models, changes = _models(arguments), axes(arguments, DIMENSIONS)
    places = axes(arguments, MACHINE)
    if not places or places[0].name != "on":
        raise InvalidInput(Message("--on is needed: {help}.", help=ON.help))
    counts = axes(arguments, (COUNT,))
    if counts and all(says_how_many(str(on)) for on in places[0].values):
        raise InvalidInput(
            Message("--count is of machines that do not say how many: leave it out. Got --on {on}.", on=arguments.on)
        )
    every = [models, *changes, *places, *counts, *axes(arguments, options)]
    if arguments.markdown == STDOUT and (arguments.json or arguments.csv):
        raise InvalidInput(
            "--markdown prints, as --json and --csv do: give it a file that ends in .md, or leave one of them out."
        )
    if table.get("parquet"):
        from tonnage.render.compare_files import check_extra

        check_extra()
    with _shows_progress():
        made = compare(
            verb,
            every,
            _reader(arguments),
            of_model={each.name for each in changes},
            sort=table.get("sort", ""),
            show=show,
        )
    if table.get("parquet"):
        from tonnage.render.compare_files import write_parquet

        try:
            write_parquet(made, table["parquet"])
        except InvalidInput as error:
            raise InvalidInput(f"--parquet: {error}") from None
    if arguments.json:
        print_json(made.document)
    elif arguments.csv:
        from tonnage.render.compare_files import csv_text

        write(csv_text(made))
    elif arguments.markdown == STDOUT:
        from tonnage.render.compare import comparison_markdown

        write(comparison_markdown(made, show=show, rows=bool(table.get("rows"))))
    else:
        from tonnage.render.compare import WIDTH, comparison_lines

        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if on_terminal else WIDTH
        print_lines(comparison_lines(made, show=show, rows=bool(table.get("rows")), width=width))
    if made.status == WRONG:
        print(in_error("none of these can be: the reasons of the cells say why."), file=sys.stderr)
    return reported(arguments, made, made.status)


def _models(arguments: Given) -> Any:
    """The models by name; a file whose name has a comma is one model."""
    from tonnage.search.compare.axes import axis

    text = arguments.model
    if text is None:
        return axis("model", [None], ["dimensions"])
    if not isinstance(text, str):  # the content of a config.json
        return axis("model", [text], ["pasted config"])
    names = [text] if is_there(text) else _split(text, ",", "MODEL")
    return axis("model", names)


def axes(arguments: Given, options: Iterable[Option]) -> list[Any]:
    """An axis for each option that was given."""
    from tonnage.search.compare.axes import axis

    found = []
    for option in options:
        given = getattr(arguments, option.name)
        if given is None:
            continue
        name = {"reserve": "reserve_bytes", "family": "model_type"}.get(option.name, option.name)
        if option.read is None:
            found.append(axis(name, given))
            continue
        flag = spelled(arguments, option)
        texts = _split(given, ";" if option.name in WHOLE else ",", flag)
        read = [_read(option, text, flag) for text in texts]
        found.append(axis(name, read, texts if name == "on" else ()))
    return found


def _read(option: Option, text: str, flag: str) -> Any:
    if text.lower() == OWN and option.name != "on":
        return None
    if text[:1] == "0" and text.isdecimal() and len(text) > 1:
        raise InvalidInput(
            Message(
                "{flag} takes values with commas between them, and numbers without any. Got {text}.",
                flag=flag,
                text=shown(text),
            )
        )
    return option.read(text, flag) if option.read else text


def _split(text: str, between: str, what: str) -> list[str]:
    texts = [each.strip() for each in text.split(between)]
    if not all(texts):
        raise InvalidInput(Message("{what} has an empty value in {text}.", what=what, text=shown(text)))
    return texts


def _reader(arguments: Given) -> Any:
    from tonnage.models import read

    return lambda name, changes: read(name, overrides=changes, revision=arguments.revision, offline=arguments.offline)


def _shows_progress() -> AbstractContextManager[None]:
    """How far a long comparison is, on a terminal; elsewhere whoever follows the search already goes on to do so."""
    from tonnage.search.progress import followed

    def show(what: str, done: int, of: int | None) -> None:
        if what == "cells" and of is not None and of > 200 and (done % 50 == 0 or done == of):
            end = "\r\x1b[K" if done == of else ""
            cells = say("{done} of {all} cells", done=f"{done:,}", all=f"{of:,}")
            print(f"\r\x1b[K{cells}{end}", end="", file=sys.stderr, flush=True)

    return followed(show) if sys.stderr is not None and sys.stderr.isatty() else nullcontext()

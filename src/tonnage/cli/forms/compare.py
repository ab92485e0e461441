"""What both faces of `tonnage compare` share: lists of values in, one table out."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tonnage.cli.common.outputs import HTML_HELP, MARKDOWN, STDOUT, reported
from tonnage.cli.common.parser import add_form, add_json, add_verbose
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, joined, listed
from tonnage.language import say
from tonnage.question.form import WHOLE, Given, values
from tonnage.question.option import Option
from tonnage.question.subjects.comparison import TABLE
from tonnage.question.verbs import form_of
from tonnage.verbs.compare import answer, shown_columns

WRONG = 64


def about(question: str, options: Sequence[Option], switch: str) -> str:
    """The help of a verb: what it answers, and how several values of its options are said."""
    whole = listed(option.flag for option in options if option.name in WHOLE)
    lines = (
        (
            "Every option takes several values, with commas between them: each is then an axis of the table, "
            "which has a cell for every combination."
        ),
        Message(
            "`own` stands for the default of an option; a switch that is given both ways (--{switch} "
            "--no-{switch}) is compared too.",
            switch=switch,
        ),
        Message("Options that take commas themselves have a semicolon between values: {options}.", options=whole),
    )
    return joined("\n\n", (question, joined("\n", lines)))


class Both(argparse.BooleanOptionalAction):
    """A switch that may be given both ways."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        value = not str(option_string).startswith("--no-")
        before = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*before, value])


def add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """MODEL, the machine, every option of the verb, and how the table is shown."""
    add_form(parser, form_of("compare", verb), Both)
    output = parser.add_argument_group("output")
    forms = output.add_mutually_exclusive_group()
    add_json(forms)
    add_verbose(output)
    forms.add_argument("--csv", action="store_true", help="print all columns, in base units and full precision")
    output.add_argument("--html", metavar="FILE", help=HTML_HELP)
    output.add_argument(
        MARKDOWN,
        metavar="FILE",
        nargs="?",
        const=STDOUT,
        help="print the table as Markdown; with FILE.md, write the whole report besides",
    )


def run(arguments: Given, verb: str) -> int:
    from tonnage.cli.common.print import in_error, print_document, print_lines, print_page, write

    table, show = values(arguments, TABLE[1:]), shown_columns(arguments)
    if arguments.markdown == STDOUT and (arguments.json or arguments.csv):
        raise InvalidInput(
            "--markdown prints, as --json and --csv do: give it a file that ends in .md, or leave one of them out."
        )
    if table.get("parquet"):
        from tonnage.render.compare_files import check_extra

        check_extra()
    with _shows_progress():
        comparison: Any = answer(arguments, verb)
    if table.get("parquet"):
        from tonnage.render.compare_files import write_parquet

        try:
            write_parquet(comparison, table["parquet"])
        except InvalidInput as error:
            raise InvalidInput("--parquet: {error}", error=error) from None
    if arguments.json:
        print_document(comparison, arguments.json)
    elif arguments.csv:
        from tonnage.render.compare_files import csv_text

        write(csv_text(comparison))
    elif arguments.markdown == STDOUT:
        from tonnage.render.compare import comparison_markdown

        write(comparison_markdown(comparison, show=show, rows=bool(table.get("rows"))))
    elif not arguments.verbose:
        from tonnage.render.brief.compare import comparison_text
        from tonnage.render.brief.layout import terminal_width

        print_page(comparison_text(comparison, terminal_width(), show=show, rows=bool(table.get("rows"))))
    else:
        from tonnage.render.compare import WIDTH, comparison_lines

        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if on_terminal else WIDTH
        print_lines(comparison_lines(comparison, show=show, rows=bool(table.get("rows")), width=width))
    if comparison.status == WRONG:
        print(in_error("none of these can be: the reasons of the cells say why."), file=sys.stderr)
    return reported(arguments, comparison, comparison.status)


def _shows_progress() -> AbstractContextManager[None]:
    """How far a long comparison is, on a terminal; elsewhere whoever follows the search already goes on to do so."""
    from tonnage.search.progress import followed

    def show(what: str, done: int, of: int | None) -> None:
        if what == "cells" and of is not None and of > 200 and (done % 50 == 0 or done == of):
            end = "\r\x1b[K" if done == of else ""
            cells = say("{done} of {all} cells", done=f"{done:,}", all=f"{of:,}")
            print(f"\r\x1b[K{cells}{end}", end="", file=sys.stderr, flush=True)

    return followed(show) if sys.stderr is not None and sys.stderr.isatty() else nullcontext()

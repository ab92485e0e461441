"""What both faces of `tonnage compare` share: lists of values in, one table out."""

import argparse
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tonnage.cli import _options as o
from tonnage.cli._options import Option
from tonnage.cli._report import HTML_HELP, MARKDOWN, STDOUT, reported
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.reach import is_there
from tonnage.language import say

# What takes commas itself: several values stand between semicolons.
WHOLE = frozenset({"lora_targets", "recompute_modules", "offload_modules", "cuda_graph", "pipeline_layout", "runtime_version", "exchange_rate"})  # fmt: skip
OWN, FEWEST = "own", "fewest"
WRONG = 64


def lists(options: Sequence[Option], switch: str) -> str:
    """How several values are said, for the help of a verb with these options."""
    whole = ", ".join(option.flag for option in options if option.name in WHOLE)
    return (
        "Every option takes several values, with commas between them: each is then an axis of the table, which has a cell for every combination.\n"
        f"`{OWN}` stands for the default of an option; a switch that is given both ways (--{switch} --no-{switch}) is compared too.\n"
        f"Options that take commas themselves have a semicolon between values: {whole}."
    )


class Both(argparse.BooleanOptionalAction):
    """A switch that may be given both ways."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        said = not str(option_string).startswith("--no-")
        before = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*before, said])


def _count(text: str, what: str) -> int | str:
    if text.strip().lower() == FEWEST:
        return FEWEST
    size = o.size(text, what)
    if size < 1:
        raise InvalidInput(f"{what} must be a number of accelerators from 1, or {FEWEST}. Got {shown(text)}.")
    return int(size)


def _parquet(text: str, what: str) -> str:
    if not text.endswith(".parquet"):
        raise InvalidInput(f"{what} takes a file that ends in .parquet. Got {shown(text)}.")
    return text


COUNT = Option("count", f"how many accelerators, where --on does not say it: a number, or {FEWEST}: the fewest that hold the model, in parts of a machine, "
               "a machine or several", _count, unit="accelerators", default=FEWEST)  # fmt: skip
TABLE_OPTIONS = (
    COUNT,
    Option("sort", "order by this figure, the best first: cost, price, memory, ttft, tpot, step, speed, users, ..., or a column of --csv; it also decides what is marked as best", o.word, unit="name", default="in the order of the options; cost decides"),
    Option("show", "figures of the table, as for --sort", o.word, unit="names", default="the usual ones"),
    Option("rows", "a line for each cell, with more figures", default="off, where two axes vary"),
    Option("parquet", "write all columns to this file too, which ends in .parquet: needs tonnage[cluster]", _parquet, unit="file"),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser, verb: str, groups: Iterable[tuple[Sequence[Option], str]]) -> None:
    """MODEL, the machine, every option of the verb, and how the table is shown."""
    parser.reads_as = verb  # type: ignore[attr-defined]
    o.add_model(parser, Both)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--serve", action="store_true", help="compare served models (default)")
    which.add_argument("--train", action="store_true", help="compare training runs")
    o.add(parser, o.COMMON, "machine")
    for options, title in groups:
        o.add(parser, options, title, Both)
    o.add(parser, TABLE_OPTIONS, "table")
    output = parser.add_argument_group("output")
    forms = output.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/1)")
    forms.add_argument("--csv", action="store_true", help="print all columns, in base units and full precision")
    output.add_argument("--html", metavar="FILE", help=HTML_HELP)
    output.add_argument(
        MARKDOWN,
        metavar="FILE",
        nargs="?",
        const=STDOUT,
        help="print the table as Markdown; with FILE.md, write the whole report besides",
    )


def run(arguments: argparse.Namespace, verb: str, options: Sequence[Option]) -> int:
    from tonnage.catalogue.clusters import says_how_many
    from tonnage.cli._print import in_error, print_json, print_lines, write
    from tonnage.search.compare import compare

    table = o.values(arguments, TABLE_OPTIONS[1:])
    show = [each.strip() for each in table.get("show", "").split(",") if each.strip()]
    models, changes = _models(arguments), axes(arguments, o.MODEL_OPTIONS)
    places = axes(arguments, o.COMMON)
    if not places or places[0].name != "on":
        raise InvalidInput(f"--on is needed: {o.COMMON[0].help}.")
    counts = axes(arguments, (COUNT,))
    if counts and all(says_how_many(str(on)) for on in places[0].values):
        raise InvalidInput(f"--count is of machines that do not say how many: leave it out. Got --on {arguments.on}.")
    every = [models, *changes, *places, *counts, *axes(arguments, options)]
    if arguments.markdown == STDOUT and (arguments.json or arguments.csv):
        raise InvalidInput(
            "--markdown prints, as --json and --csv do: give it a file that ends in .md, or leave one of them out."
        )
    if table.get("parquet"):
        from tonnage.render.compare_files import check_extra

        check_extra()
    with _shows_progress():
        made = compare(verb, every, _reader(arguments), of_model={each.name for each in changes}, sort=table.get("sort", ""), show=show)  # fmt: skip
    if table.get("parquet"):
        from tonnage.render.compare_files import write_parquet

        try:
            write_parquet(made, table["parquet"])
        except InvalidInput as error:
            raise InvalidInput(f"--parquet: {error}") from None
    if arguments.json:
        print_json(made.to_dict())
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


def _models(arguments: argparse.Namespace) -> Any:
    """The models by name; a file whose name has a comma is one model."""
    from tonnage.search.compare.axes import axis

    text = arguments.model
    if text is None:
        return axis("model", [None], ["dimensions"])
    if not isinstance(text, str):  # the content of a config.json
        return axis("model", [text], ["pasted config"])
    names = [text] if is_there(text) else _split(text, ",", "MODEL")
    return axis("model", names)


def axes(arguments: argparse.Namespace, options: Iterable[Option]) -> list[Any]:
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
        flag = o.spelled(arguments, option)
        texts = _split(given, ";" if option.name in WHOLE else ",", flag)
        read = [_read(option, text, flag) for text in texts]
        found.append(axis(name, read, texts if name == "on" else ()))
    return found


def _read(option: Option, text: str, flag: str) -> Any:
    if text.lower() == OWN and option.name != "on":
        return None
    if text[:1] == "0" and text.isdecimal() and len(text) > 1:
        raise InvalidInput(f"{flag} takes values with commas between them, and numbers without any. Got {shown(text)}.")  # fmt: skip
    return option.read(text, flag) if option.read else text


def _split(text: str, between: str, what: str) -> list[str]:
    texts = [each.strip() for each in text.split(between)]
    if not all(texts):
        raise InvalidInput(f"{what} has an empty value in {shown(text)}.")
    return texts


def _reader(arguments: argparse.Namespace) -> Any:
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

"""tonnage check: does what another tool's file or command asks for fit?"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import join

from tonnage.cli.common.parser import add_json, add_verbose
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import LARGEST, Source, command_source, file_source, text_source
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.reach import is_there
from tonnage.question.form import Given
from tonnage.verbs.answered import DETAILS

HELP = "does what another tool's file or command asks for fit? It reads configs, commands and the jobs that carry them"
STDIN, JSON = "-", "--json"
PIPED = "standard input"  # as the name of a file
WORST = (64, 3, 4, 2, 0)  # statuses, the worst first
SHAPES = ("text", "github", "markdown", "json", "sarif")
VALUED = ("--model", "--on", "--tool", "--tool-version", "--format", "--lang")  # options that take the word behind them


def spelled(words: Sequence[str]) -> list[str]:
    """The words with a command as one of them: all from its program on are its own, options of ours stand before."""
    left = list(words)
    before: list[str] = []
    while left:
        word = left.pop(0)
        if (word in VALUED and left) or (word == JSON and left and left[0] in DETAILS):
            before += [word, left.pop(0)]
        elif word.startswith("-"):
            before.append(word)
        elif left and not is_there(word) and _is_command([word, *left]):
            return [*before, "--", join([word, *left])]
        else:
            before.append(word)
    return before


def _is_command(words: Sequence[str]) -> bool:
    """Whether any format knows the words as a command."""
    from tonnage.interchange.formats import formats

    source = command_source(words)
    return any(form.recognises(source) for form in formats())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="+",
        metavar="FILE|COMMAND",
        help="files, - for standard input, or a command: in quotes, or at the end with all its words",
    )
    parser.add_argument("--model", help="the model, where the file names none, or instead of the one that it names")
    parser.add_argument(
        "--on",
        metavar="CLUSTER",
        help="the machines, where the file names none; the name of an accelerator gets the file's numbers of them",
    )
    parser.add_argument("--tool", metavar="NAME", help="whose file it is, where that is not to be found out")
    parser.add_argument(
        "--tool-version",
        metavar="VERSION",
        default="",
        help="the release that reads the file (default: the newest known)",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="keys that are not understood do not make the verdict unsure (status 4)",
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format",
        choices=SHAPES,
        default="text",
        help="text (the default), github (annotations of a workflow), markdown (a comment), json, or sarif",
    )
    add_json(group)
    add_verbose(group)


def source_of(what: str) -> Source:
    """What one word means: a file, standard input, or a command in quotes."""
    if what == STDIN:
        return text_source(sys.stdin.buffer.read(LARGEST + 1).decode("utf-8", "replace"), PIPED, Path())
    if not is_there(what) and " " in what.strip():
        return command_source([what], Path())
    return file_source(what)


def run(arguments: Given) -> int:
    words = [word for word in arguments.what if word.strip()]
    if not words:
        raise InvalidInput("FILE|COMMAND is empty: name a file, or write a command.")
    asker = Asker(
        model=arguments.model or "",
        on=arguments.on or "",
        tool=arguments.tool or "",
        version=arguments.tool_version,
        is_lenient=arguments.lenient,
    )
    as_json = arguments.json or ("full" if arguments.format == "json" else None)
    return (
        _several(words, asker, arguments.format, as_json)
        if len(words) > 1
        else _one(words[0], asker, arguments, as_json)
    )


def _one(word: str, asker: Asker, arguments: Given, as_json: str | None) -> int:
    from tonnage.cli.common.print import print_answer, write
    from tonnage.interchange.check import answer
    from tonnage.render.checked import Checked, report_of

    source = source_of(word)
    result = answer(source, asker)
    if as_json or arguments.format == "text":
        print_answer(result, as_json=as_json, formulas=False, verbose=arguments.verbose)
    else:
        write(report_of([Checked(source.name, int(result.status), result.without_trees())], arguments.format))
    return int(result.status)


def _several(words: Sequence[str], asker: Asker, shape: str, as_json: str | None) -> int:
    """Several files: a line each, or one document. The status is that of the worst."""
    from tonnage.cli.common.print import print_json, write
    from tonnage.documents.interchange.checks import CheckedFile, ChecksDocument
    from tonnage.interchange.check import answer
    from tonnage.render.checked import Checked, report_of

    checked: list[Checked] = []
    documents: list[CheckedFile] = []
    for word in words:
        try:
            result = answer(source_of(word), asker)
        except TonnageError as error:
            checked.append(Checked(word, error.exit_status, None, str(error)))
            documents.append(CheckedFile(file=word, status=error.exit_status, error=str(error)))
            continue
        checked.append(Checked(word, int(result.status), result.without_trees()))
        documents.append(CheckedFile(file=word, status=int(result.status), answer=result.summary_document))
    worst = next((status for status in WORST if any(one.status == status for one in checked)), 0)
    if as_json:
        print_json(ChecksDocument(files=documents, status=worst))
    else:
        write(report_of(checked, shape))
    return worst

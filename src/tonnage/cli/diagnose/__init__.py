"""tonnage diagnose: why did this run run out of memory, and what frees it?"""

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tonnage.cli.common.parser import add_json, add_verbose
from tonnage.cli.diagnose.words import STDIN
from tonnage.cli.diagnose.words import spelled as spelled
from tonnage.interchange.reading import Asker
from tonnage.kernel.errors import InvalidInput
from tonnage.question.form import Given

if TYPE_CHECKING:
    from tonnage.interchange.diagnose.diagnosis import Run
    from tonnage.interchange.diagnose.log import Log

HELP = "why a run ran out of memory, from its log: the phase, the cause, and fixes in its own tool's flags"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="FILE|MESSAGE", help="the log, its message in quotes, or - for standard input")
    parser.add_argument("options", nargs="*", metavar="OPTIONS", help=argparse.SUPPRESS)
    parser.add_argument(
        "--model", help="the model that ran, where the log does not say: fixes then have numbers (with --on)"
    )
    parser.add_argument("--on", metavar="CLUSTER", help="the machines that it ran on; options of train or serve follow")
    parser.add_argument("--config", metavar="FILE", help="the config, script or command that started the run")
    group = parser.add_argument_group("output")
    add_json(group)
    add_verbose(group)


def run(arguments: Given) -> int:
    from tonnage.cli.common.print import print_json, print_page
    from tonnage.interchange.diagnose.diagnosis import diagnosed
    from tonnage.render.brief.layout import terminal_width
    from tonnage.render.interchange.diagnosed import diagnosis_text

    found = diagnosed(log_of(arguments.log), _run(arguments))
    if arguments.json:
        print_json(found)
    else:
        print_page(diagnosis_text(found, terminal_width(), verbose=arguments.verbose))
    return 0


def log_of(name: str) -> "Log":
    """The log of a file, of standard input, or a message as it was pasted."""
    from tonnage.interchange.diagnose.log import LARGEST, Log, file_log, is_message, piped_log

    if name == STDIN:
        return piped_log(sys.stdin.buffer.read(LARGEST + 1))
    return Log(name) if is_message(name) else file_log(name)


def _run(arguments: Given) -> "Run":
    from tonnage.interchange.check import understood
    from tonnage.interchange.diagnose.diagnosis import Run
    from tonnage.interchange.source import file_source

    asker = Asker(model=arguments.model or "", on=arguments.on or "", is_lenient=True)
    words = list(arguments.options)
    if words and not (asker.model and asker.on):
        raise InvalidInput("options of the run need {--model} and {--on}. Got {options}.", options=" ".join(words))
    found = understood(file_source(arguments.config), asker) if arguments.config else None
    if not words:
        return Run(asker=asker, understood=found)

    def options(verb: str) -> Mapping[str, Any]:
        from tonnage.cli.export import question_words

        return question_words(verb, [asker.model, "--on", asker.on, *words])

    return Run(asker=asker, options=options, understood=found)

"""tonnage calibrate: own runs, kept to correct the estimates of this site."""

import argparse
import sys
from collections.abc import Callable

from tonnage.cli.common.print import Bar, print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.kernel.errors import InvalidInput
from tonnage.language import say
from tonnage.question.form import Given

HELP = "own runs, kept to correct the estimates of this site: `--calibrated` of train and serve uses them"
MEASURE = "measure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        default=MEASURE,
        choices=tuple(ACTIONS),
        help=(
            "measure (default): train small models on the GPU of this machine for five minutes; show: what is kept and "
            "corrected; add: rows of files; share: write all rows to a file; compare: all again with this version; "
            "remove: runs by their ids"
        ),
    )
    parser.add_argument(
        "names", nargs="*", metavar="FILE|ID", help="files of rows to add or to write, or ids to remove"
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="measure: no further run is begun then (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/2)")


def run(arguments: Given) -> int:
    action = ACTIONS[arguments.action]
    action(arguments)
    _show(arguments)
    return 0


def _measure(arguments: Given) -> None:
    from tonnage.calibration.kept import add
    from tonnage.calibration.measuring import measured

    _check_names(arguments, 0)
    bar, rows = Bar(), []
    for row in measured(arguments.minutes, progress=bar):
        rows += add([row])
    bar.over()
    _note(say("{count} runs measured and kept", count=len(rows)))


def _add(arguments: Given) -> None:
    from tonnage.calibration.kept import add_files

    _check_names(arguments, None)
    _note(say("{count} runs kept", count=len(add_files(arguments.names))))


def _share(arguments: Given) -> None:
    from tonnage.calibration.kept import share

    _check_names(arguments, 1)
    count = share(arguments.names[0])
    _note(say("{count} runs written to {path}", count=count, path=arguments.names[0]))


def _compare(arguments: Given) -> None:
    from tonnage.calibration.kept import compare_again

    _check_names(arguments, 0)
    _note(say("{count} runs compared", count=len(compare_again())))


def _remove(arguments: Given) -> None:
    from tonnage.calibration.kept import forget

    _check_names(arguments, None)
    _note(say("{count} runs left", count=forget(arguments.names)))


def _nothing(arguments: Given) -> None:
    _check_names(arguments, 0)


ACTIONS: dict[str, Callable[[Given], None]] = {
    MEASURE: _measure,
    "show": _nothing,
    "add": _add,
    "share": _share,
    "compare": _compare,
    "remove": _remove,
}


def _check_names(arguments: Given, count: int | None) -> None:
    """That as many files or ids are named as an action takes; None: one or more."""
    names, action = arguments.names, arguments.action
    if count is None and not names:
        raise InvalidInput("calibrate {action} needs names: {what}.", action=action, what=WANTED[action])
    if count == 0 and names:
        raise InvalidInput("calibrate {action} takes no name. Got {names}.", action=action, names=" ".join(names))
    if count == 1 and len(names) != 1:
        raise InvalidInput("calibrate {action} takes one file. Got {count}.", action=action, count=len(names))


WANTED = {"add": "files of rows", "remove": "ids, which `tonnage calibrate show --json` lists"}


def _show(arguments: Given) -> None:
    from tonnage.calibration.kept import document
    from tonnage.render.interchange.calibrated import calibration_lines

    found = document()
    if arguments.json:
        print_json(found)
    else:
        print_lines(calibration_lines(builtins(found)))


def _note(text: str) -> None:
    print(text, file=sys.stderr)

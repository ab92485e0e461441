"""From a maximum to stdout."""

from typing import Any

from tonnage.cli.common.outputs import prints_report, reported
from tonnage.cli.common.print import print_document, print_lines, print_page
from tonnage.question.form import Given


def print_maximum(arguments: Given, maximum: Any) -> int:
    """The status of the command."""
    if prints_report(arguments, maximum):
        pass
    elif arguments.json:
        print_document(maximum, arguments.json)
    elif not (arguments.formulas or arguments.verbose):
        from tonnage.render.brief.layout import terminal_width
        from tonnage.render.brief.maximum import maximum_text

        print_page(maximum_text(maximum, terminal_width()))
    else:
        from tonnage.render.maximum import maximum_lines

        print_lines(maximum_lines(maximum.without_trees(), maximum.answer.memory, formulas=arguments.formulas))
    return reported(arguments, maximum, maximum.status)

"""From a maximum to stdout."""

from typing import Any

from tonnage.cli._print import print_json, print_lines


def print_maximum(found: Any, *, as_json: bool, formulas: bool) -> int:
    """The status of the command."""
    if as_json:
        print_json(found.to_dict())
    else:
        from tonnage.render.maximum import maximum_lines

        print_lines(maximum_lines(found.summary(), found.answer.memory, formulas=formulas))
    return int(found.status)

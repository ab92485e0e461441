"""What is wrong with a plan by its question alone, where it is saved before it is answered."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.reach import Reach, limited
from tonnage.question.command_line import command, line
from tonnage.web.jobs.checked import check


def checked_command(verb: str, question: Mapping[str, Any], within: Reach) -> str:
    """The command line that asks the question; TonnageError where a field, its value or a name is wrong. Nothing is
    estimated.
    """
    with limited(within):
        return line(command(check(verb, question).form, question))

"""The frame of --help in the current language: argparse's own words, headings, and lines that break between Han
characters.
"""

import argparse
from collections.abc import Iterable
from typing import Any

from tonnage.language import current, say, worded
from tonnage.language.columns import wrapped
from tonnage.question.option import Option


class Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's, which in English it is to the letter."""

    def add_usage(
        self, usage: str | None, actions: Iterable[Any], groups: Iterable[Any], prefix: str | None = None
    ) -> None:
        super().add_usage(usage, actions, groups, say("usage: ") if prefix is None else prefix)

    def add_text(self, text: str | None) -> None:
        super().add_text(None if text is None else worded(text))

    def start_section(self, heading: str | None) -> None:
        super().start_section(None if heading is None else say(heading))

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return help_of(action)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return super()._split_lines(text, width) if current() == "en" else wrapped(text, width)


def in_english(option: Option) -> str:
    """The help that an option has until `help_of` puts it into words: most command lines never show it."""
    return (option.help or option.name).replace("%", "%%")


def help_of(action: argparse.Action) -> str | None:
    """The help of an option in the current language, with unit and default."""
    option: Option | None = getattr(action, "option", None)
    if option is None or action.help != in_english(option):
        return None if action.help is None else say(action.help)
    about = say(": ").join(filter(None, (worded(option.help) if option.help else "", option.listed_choices)))
    if option.unit:
        about += f" [{say(option.unit)}]"
    if option.default:
        about += say(" (default: {what})", what=worded(option.default))
    return about.replace("%", "%%")

"""The frame of --help in the current language: argparse's own words, headings, and lines that break between Han
characters.
"""

import argparse
from collections.abc import Iterable
from typing import Any

from tonnage.language import current, say
from tonnage.language.columns import wrapped


class Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's, which in English it is to the letter."""

    def add_usage(
        self, usage: str | None, actions: Iterable[Any], groups: Iterable[Any], prefix: str | None = None
    ) -> None:
        super().add_usage(usage, actions, groups, say("usage: ") if prefix is None else prefix)

    def start_section(self, heading: str | None) -> None:
        super().start_section(None if heading is None else say(heading))

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return None if action.help is None else say(action.help)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return super()._split_lines(text, width) if current() == "en" else wrapped(text, width)

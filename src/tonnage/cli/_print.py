"""From an answer to stdout: one JSON document, or lines for people."""

import sys
from collections.abc import Iterable
from typing import Any

import msgspec


def print_json(document: Any) -> None:
    """One document, indented, with a newline at its end."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Plain text; on a terminal the first line stands out."""
    text = list(lines)
    if text and sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False)
        style = (
            "bold green" if text[0].startswith("fits") else "bold red" if text[0].startswith("does not fit") else "bold"
        )
        console.print(text[0], style=style, markup=False, soft_wrap=True)
        for line in text[1:]:
            console.print(line, markup=False, soft_wrap=True)
        return
    sys.stdout.write("\n".join(text) + "\n")


def print_answer(answer: Any, *, as_json: bool, formulas: bool) -> None:
    """An answer of train or serve."""
    if as_json:
        print_json(answer.to_dict())
        return
    from tonnage.render.text import answer_lines

    print_lines(answer_lines(answer.summary(), answer.memory, formulas=formulas))

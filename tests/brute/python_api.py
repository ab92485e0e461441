"""The same questions through the Python API: every report of an answer, and the command that the answer names."""

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

import tonnage
from brute.documents import document_faults
from brute.texts import text_faults
from tonnage.cli import face
from tonnage.kernel.errors import TonnageError
from tonnage.question.option import Option

NOT_ASKED = frozenset(
    {
        "help",
        "lang",
        "model",
        "on",
        "reserve",
        "json",
        "formulas",
        "html",
        "markdown",
        "plot",
        "advice",
        "typed",
        "revision",
        "offline",
        "verbose",
    }
)
FORMS_OF_SERVE = frozenset({"frontier", "points", "for_my_machine", "order"})
DIMENSIONS = frozenset(
    {
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "intermediate_size",
        "vocab_size",
        "max_position_embeddings",
        "tie_word_embeddings",
        "num_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "family",
    }
)


def api_faults(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Ask what a command line of `train` or `serve` asks, by its function; the reports are clean, and its command
    gives the same bytes.
    """
    arguments = arguments_of(words)
    if arguments is None:
        return
    options, model, on = arguments
    try:
        answer = getattr(tonnage, words[0])(model, on=on, **options)
    except TonnageError:
        return
    yield from (("violation", f"to_dict: {fault}") for fault in document_faults(answer.to_dict()))
    for text in (answer.text(), answer.text(formulas=True), answer.to_markdown()):
        yield from text_faults(text)
    if not (answer.to_html() and answer.rows() and answer.memory.to_rows()):
        yield "violation", "a report of the answer is empty"
    again = arguments_of(tuple(shlex.split(answer.command)[1:]))
    if (
        again is None
        or getattr(tonnage, words[0])(again[1], on=again[2], **again[0]).needed_bytes != answer.needed_bytes
    ):
        yield "violation", f"its command asks something else: {answer.command}"


def arguments_of(words: tuple[str, ...]) -> tuple[dict[str, Any], str, str] | None:
    """Options, model and cluster of a command line; None for one that the function has no arguments for, or that is
    wrong.
    """
    try:
        _module, parser = face(words[0], words[1:])
        given = parser.parse_args(words[1:])
        options = {
            action.dest: _read(action, getattr(given, action.dest))
            for action in parser._actions
            if action.dest not in NOT_ASKED and getattr(given, action.dest, None) is not None
        }
        reserve = {"reserve_bytes": tonnage.kernel.units.parse_bytes(given.reserve, "reserve")} if given.reserve else {}
    except TonnageError:
        return None
    options = {name: value for name, value in options.items() if name not in FORMS_OF_SERVE or value}
    if not given.model or not given.on or options.keys() & (DIMENSIONS | FORMS_OF_SERVE):
        return None
    return {**options, **reserve}, given.model, given.on


def _read(action: argparse.Action, value: Any) -> Any:
    option: Option | None = getattr(action, "option", None)
    return (
        value
        if option is None or option.read is None or not isinstance(value, str)
        else option.read(value, option.name)
    )

"""One question in, one document out: the door for faces that speak JSON (HTTP, the page, MCP).

A question is an object whose names are the options of a verb: `{"model": "llama-3.1-8b", "on": "8xh100",
"sequence_length": "8k"}` of train. It is answered with the document that `--json` prints (docs/decisions/0017 and
0023).
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from tonnage.kernel import reach
from tonnage.question.command_line import command, line
from tonnage.question.read import Read, in_fields, read
from tonnage.question.verbs import FORMS, form_of, kind_of

__all__ = ["ANSWERED", "AskedDocument", "ask", "line", "training", "words_of"]

ANSWERED = tuple(FORMS)


class AskedDocument(NamedTuple):
    """`document`: what --json prints. `status`: the exit status. `words`: the command line that asks the same,
    without `tonnage`.
    """

    document: Any
    status: int
    words: tuple[str, ...]


def ask(verb: str, question: Mapping[str, Any], within: reach.Reach = reach.Reach()) -> AskedDocument:  # noqa: B008 - a Reach cannot change
    """Answer a question. Raises TonnageError as the command line does; `within` says what may be read for it."""
    with reach.limited(within):
        asked = read(verb, question)
        with in_fields(asked):
            found = _module(asked).answer(asked.given)
            return AskedDocument(found.document, int(found.status), command(asked.form, question))


def training(question: Mapping[str, Any], within: reach.Reach = reach.Reach()) -> tuple[Any, tuple[str, ...]]:  # noqa: B008
    """The answer of `train` to a question, for what is drawn from it and is no part of its document; and the words
    of its command line. The next best moves, which take most of the time of an answer, are left out.
    """
    with reach.limited(within):
        asked = read("train", question)
        asked.given.advice = False
        with in_fields(asked):
            return _module(asked).answer(asked.given), command(asked.form, question)


def words_of(verb: str, question: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of the command line that asks this, the verb first."""
    return command(form_of(verb, kind_of(verb, question)), question)


def _module(asked: Read) -> ModuleType:
    """The module that answers a form of a verb: its `answer(given)` has a document and a status."""
    name = f"{asked.form.verb}_{asked.kind}" if asked.kind else asked.form.verb
    return import_module(f"tonnage.verbs.{name}")

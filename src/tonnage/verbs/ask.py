"""One question in, one document out: the door for faces that speak JSON (HTTP, the page, MCP).

A question is an object whose names are the options of a verb: `{"model": "llama-3.1-8b", "on": "8xh100",
"sequence_length": "8k"}` of train. It is answered with the document that `--json` prints (docs/decisions/0017 and
0023).
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from tonnage.kernel import reach
from tonnage.question.command_line import command, line
from tonnage.question.read import Read, in_fields, read
from tonnage.question.verbs import FORMS, form_of, kind_of
from tonnage.verbs.answered import FULL, DocumentedAnswer, document_of

__all__ = ["ANSWERED", "Reply", "ask", "asked", "line", "training", "words_of"]

ANSWERED = tuple(FORMS)


class Reply(NamedTuple):
    """`document`: what --json prints. `status`: the exit status. `words`: the command line that asks the same,
    without `tonnage`.
    """

    document: Any
    status: int
    words: tuple[str, ...]


def ask(verb: str, question: Mapping[str, Any], within: reach.Reach = reach.Reach(), *, detail: str = FULL) -> Reply:
    """Answer a question. Raises TonnageError as the command line does; `within` says what may be read for it,
    `detail` whether the document is the whole one or its summary.
    """
    return asked(verb, question, within, lambda answer: document_of(answer, detail))


def asked(
    verb: str, question: Mapping[str, Any], within: reach.Reach, shown: Callable[[DocumentedAnswer], Any]
) -> Reply:
    """The reply to a question, in which `shown` makes the document of the answer."""
    with reach.limited(within):
        parsed = read(verb, question)
        with in_fields(parsed):
            answer = _module(parsed).answer(parsed.given)
            return Reply(shown(answer), int(answer.status), command(parsed.form, question))


def training(question: Mapping[str, Any], within: reach.Reach = reach.Reach()) -> tuple[Any, tuple[str, ...]]:
    """The answer of `train` to a question, for what is drawn from it and is no part of its document; and the words
    of its command line. The next best moves, which take most of the time of an answer, are left out.
    """
    with reach.limited(within):
        parsed = read("train", question)
        parsed.given.advice = False
        with in_fields(parsed):
            return _module(parsed).answer(parsed.given), command(parsed.form, question)


def words_of(verb: str, question: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of the command line that asks this, the verb first."""
    return command(form_of(verb, kind_of(verb, question)), question)


def _module(parsed: Read) -> ModuleType:
    """The module that answers a form of a verb: its `answer(given)` has a document and a status."""
    name = f"{parsed.form.verb}_{parsed.kind}" if parsed.kind else parsed.form.verb
    return import_module(f"tonnage.verbs.{name}")

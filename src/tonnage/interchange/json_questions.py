"""`check` and `export` as questions of JSON: the door for HTTP, the page and assistants."""

from collections.abc import Mapping
from typing import Any

from tonnage.documents.interchange.export import ExportDocument
from tonnage.interchange.check import answer
from tonnage.interchange.export import export
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import Source, text_source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, listed, option_name
from tonnage.kernel.reach import Reach, limited
from tonnage.kernel.registry import unknown
from tonnage.verbs.answered import FULL, document_of
from tonnage.verbs.ask import Reply, words_of

CHECK, EXPORT = "check", "export"
VERBS = ("train", "serve")
TEXTS = ("text", "name", "model", "on", "tool", "tool_version")  # fields of a check that hold a text
LENIENT = "lenient"
PASTED = "the text"
# What each field of a check is, of which `text` is needed.
ABOUT: Mapping[str, str] = {
    "text": "what the file holds, or the command",
    "name": "the file's name, whose ending says what it is",
    "model": "the model, where the file names none, or instead of the one that it names",
    "on": "the machines, where the file names none; the name of an accelerator gets the file's numbers of them",
    "tool": "whose file it is, where that is not to be found out",
    "tool_version": "the release that reads the file",
    LENIENT: "whether keys that are not understood leave the verdict as it is",
}


def checked(question: Mapping[str, Any], within: Reach = Reach(), detail: str = FULL) -> Reply:
    """The answer to what a pasted file asks. No other files are read for it."""
    unknown_fields = [name for name in question if name not in ABOUT]
    if unknown_fields:
        raise unknown("field of a check", unknown_fields[0], ABOUT)
    texts = {name: _text(question, name) for name in TEXTS}
    if not texts["text"].strip():
        raise InvalidInput("{@text} is needed: what the file holds, or the command.")
    lenient = question.get(LENIENT) or False
    if not isinstance(lenient, bool):
        raise InvalidInput("{@lenient} is true or false. Got {value}.", value=shown(lenient))
    asker = Asker(
        model=texts["model"], on=texts["on"], tool=texts["tool"], version=texts["tool_version"], is_lenient=lenient
    )
    with limited(within):
        result = answer(text_source(texts["text"], texts["name"] or PASTED), asker)
        return Reply(document_of(result, detail), int(result.status), ())


def exported(question: Mapping[str, Any], within: Reach = Reach(), edit: Source | None = None) -> Reply:
    """The file that starts what a question asks. It has two names more than those of its verb: `verb` and `format`.
    `edit`: a file that gets the values.
    """
    verb, form = question.get("verb"), question.get("format")
    if verb not in VERBS:
        raise InvalidInput("{@verb} is {verbs}. Got {got}.", verbs=listed(VERBS, OR), got=shown(verb))
    if not isinstance(form, str):
        raise InvalidInput("{@format} is needed: the name of a format, such as vllm. Got {got}.", got=shown(form))
    rest = {name: value for name, value in question.items() if name not in ("verb", "format")}
    with limited(within):
        result = export(form, str(verb), rest, edit)
        document = ExportDocument(
            verb="train" if verb == "train" else "serve",
            format=form,
            text=result.text,
            ending=result.ending,
            lacks=list(result.lacks),
        )
        return Reply(document, 0, words_of(str(verb), rest))


def _text(question: Mapping[str, Any], name: str) -> str:
    value = question.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput("{name} is a text. Got {value}.", name=option_name(name), value=shown(value))
    return value

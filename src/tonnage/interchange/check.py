"""The question that a file or a command of another tool asks, and its answer."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tonnage.documents.interchange.read import ReadDocument
from tonnage.interchange.advised import advised
from tonnage.interchange.formats import Format, format_of, formats
from tonnage.interchange.here_documents import why_unknown
from tonnage.interchange.reading import Asker, Machines, Reading, options_of_command
from tonnage.interchange.source import COMMAND, Source
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import Message, listed, option_name
from tonnage.question.read import in_fields
from tonnage.question.read import read as read_question
from tonnage.question.subjects.model import DIMENSIONS
from tonnage.question.verbs import form_of

if TYPE_CHECKING:
    from tonnage.estimate.answer.form import Answer

NOBODY = Asker()
VERBS = ("train", "serve")
MOST = 5  # keys that were not understood, in an error


class Understood(Struct, frozen=True, kw_only=True):
    """What a file asks: the verb, the question, the keys that decide each of its options, and every key. `kind`: of
    the source, "command" where it carries one.
    """

    verb: str
    question: Mapping[str, Any]
    origins: Mapping[str, tuple[str, ...]]
    document: ReadDocument
    notes: tuple[str, ...] = ()
    kind: str = COMMAND


def understood(source: Source, asker: Asker = NOBODY) -> Understood:
    """Read a source. InvalidInput where it is of no tool that is known, says something impossible, or leaves model or
    machine open and the asker does too.
    """
    form = recognised(source, asker)
    in_comment = _question_in_comment(source)
    asker = replace(asker, model=asker.model or in_comment.get("model", ""), on=asker.on or in_comment.get("on", ""))
    reading = read_as(form, source, asker)
    question = {**{name: value for name, value in in_comment.items() if name not in reading.says}, **reading.question}
    origins = dict(reading.origins)
    _check_verb(source, reading)
    if asker.model:
        question["model"] = asker.model
        origins.pop("model", None)
    if not question.get("model") and not any(question.get(option.name) for option in DIMENSIONS):
        raise InvalidInput(
            "{file} names no model: say it with --model, such as --model llama-3.1-8b.", file=source.name
        )
    if why := why_unknown(source.whole_script, question.get("model")):
        raise InvalidInput(
            "{file}: the model is {model}, and {why}: say it with --model.",
            file=source.name,
            model=shown(question["model"]),
            why=why,
        )
    question["on"] = reading.on
    reading.compare_machines()
    for line in source.unread_lines:
        reading.notes.append(
            Message("{file}: the here-document of line {line} is not read.", file=source.name, line=line)
        )
    return Understood(
        verb=reading.verb,
        question=question,
        origins=origins,
        document=replace(reading.document(form.known()), verb=_verb(reading), asks=question),
        notes=tuple(reading.notes),
        kind=COMMAND if reading.inside else source.kind,
    )


def _verb(reading: Reading) -> Literal["train", "serve"]:
    return "serve" if reading.verb == "serve" else "train"


def answer(source: Source, asker: Asker = NOBODY) -> "Answer":
    """The answer to the question that a source asks, held to the letter: nothing of it is chosen."""
    config = understood(source, asker)
    return answered(config, {"as_is": True}, named=asker)


def answered(config: Understood, more: Mapping[str, Any], named: Asker = NOBODY) -> "Answer":
    """The answer to what was understood. `more`: options that stand beside the file and are stronger than it."""
    question = {**config.question, **more}
    parsed = read_question(config.verb, question)
    with in_fields(parsed):
        try:
            answer = import_module(f"tonnage.verbs.{config.verb}").answer(parsed.given)
        except TonnageError as error:
            _add_keys(error, config)
            raise
    return marked(answer, config, {*more, *(name for name in ("model", "on") if getattr(named, name))})


def marked(answer: "Answer", config: Understood, overridden: Sequence[str] | set[str] = ()) -> "Answer":
    """The answer with what was read of the file, and where each of its inputs came from. `overridden`: options of the
    user.
    """
    entries = dict(answer.question)
    for option, keys in config.origins.items():
        if option in entries and option not in overridden:
            entry = entries[option]
            entries[option] = replace(entry, origin="file", keys=keys) if entry.origin == "given" else entry
    return replace(
        answer,
        question=entries,
        read=config.document,
        advice=advised(answer.advice, config.document, config.kind, answer.question),
        warnings=(*config.notes, *answer.warnings),
    )


def recognised(source: Source, asker: Asker = NOBODY) -> Format:
    """The format of a source: the one that the asker names, else the one that has the most signs. InvalidInput where
    the source is empty, or is of no tool that is known, or of several.
    """
    if asker.tool:
        return format_of(asker.tool)
    if not source.text.strip():
        raise InvalidInput("{file} is empty.", file=source.name)
    signs = [(form.recognises(source), form) for form in formats()]
    most = max((count for count, _ in signs), default=0)
    best = [form for count, form in signs if count == most]
    if not most:
        raise InvalidInput(
            "{file} is of no tool that is known here. Say whose it is with --tool: {names}.",
            file=source.name,
            names=listed(form.name for form in formats()),
        )
    if len(best) > 1:
        raise InvalidInput(
            "{file} may be of {tools}: say which with --tool.",
            file=source.name,
            tools=listed((form.name for form in best), "or"),
        )
    return best[0]


def read_as(form: Format, source: Source, asker: Asker, machines: Machines | None = None) -> Reading:
    """Read a source as one of a format."""
    reading = Reading(source, form.values(source), asker, machines)
    reading.tool, reading.version = form.tool, asker.version or form.version
    reading.says, reading.known = form.says, form.known
    form.read(reading)
    return reading


def _question_in_comment(source: Source) -> Mapping[str, Any]:
    """The question that the comment of the file asks."""
    verb, *words = source.mark or ("",)
    if not verb:
        return {}
    if verb not in VERBS:
        raise InvalidInput(
            "{file}: the comment that begins with `tonnage:` asks train or serve. Got {verb}.",
            file=source.name,
            verb=shown(verb),
        )
    return _question_of(verb, words, source.name)


def _check_verb(source: Source, reading: Reading) -> None:
    if source.mark and source.mark[0] != reading.verb:
        raise InvalidInput(
            "{file}: the comment that begins with `tonnage:` asks {verb}, the file {other}.",
            file=source.name,
            verb=source.mark[0],
            other=reading.verb,
        )


def _question_of(verb: str, words: Sequence[str], file: str) -> Mapping[str, Any]:
    """The question that words of a command line of ours ask."""
    form = form_of(verb)
    switches = {flag.lstrip("-") for flag, option in form.flags.items() if option.read is None}
    options, alone = options_of_command(words, switches)
    question: dict[str, Any] = {"model": alone[0]} if alone else {}
    for name, value in options.items():
        flag = next((flag for flag in (f"--{name}", f"-{name}") if flag in form.flags), "")
        if not flag:
            raise InvalidInput(
                "{file}: the comment that begins with `tonnage:` has an option that {verb} has not. Got --{name}.",
                file=file,
                verb=verb,
                name=name,
            )
        question[form.flags[flag].name] = not name.startswith("no-") if value is True else value
    return question


def _add_keys(error: TonnageError, config: Understood) -> None:
    """Name the key of the file behind the option that an error names, and keys that were not understood, of which one
    may be what was meant.
    """
    text, document = str(error), config.document
    for option, keys in config.origins.items():
        if keys and option in text:
            names = listed(keys)
            note = Message("{option} is {keys} of {file}", option=option_name(option), keys=names, file=document.file)
            error.args = (Message("{error} ({said})", error=error.args[0], said=note),)
            break
    unclear = [key.key for key in document.keys if key.status == "not understood"]
    if unclear:
        error.args = (Message("{error} Not understood: {keys}.", error=error.args[0], keys=listed(unclear[:MOST])),)

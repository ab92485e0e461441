"""`diagnose` and `reconcile` as questions of JSON: the door for HTTP, the page and assistants. Logs come as texts."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tonnage.interchange.check import Understood, understood
from tonnage.interchange.diagnose.diagnosis import Run, diagnosed
from tonnage.interchange.diagnose.log import Log, decoded
from tonnage.interchange.json_questions import VERBS
from tonnage.interchange.reading import Asker
from tonnage.interchange.reconcile import Measurements, reconcile, text_measurements
from tonnage.interchange.source import Source, text_source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, listed, option_name
from tonnage.kernel.reach import Reach, limited
from tonnage.kernel.registry import unknown
from tonnage.question.verbs import form_of
from tonnage.spelling import no_option
from tonnage.verbs.answered import FULL, Answered, document_of
from tonnage.verbs.ask import Reply

DIAGNOSE, RECONCILE = "diagnose", "reconcile"
PASTED, PASTED_CONFIG = "the log", "the config"
# Fields of each, of which `text` is needed.
_RUN: Mapping[str, str] = {
    "model": "the model that ran",
    "on": "the machines that it ran on",
    "config": "the config, script or command that started the run, as a text",
    "options": "options of the run, as train or serve takes them",
}
ABOUT: Mapping[str, Mapping[str, str]] = {
    DIAGNOSE: {"text": "the log, or the end of it", "name": "the log's name", **_RUN},
    RECONCILE: {
        "text": "a log, metrics or a result; or a list of them",
        "name": "the name of what was measured",
        "verb": "train or serve, where no config says it",
        **_RUN,
    },
}
ESTIMATED_WITH = ("model", "on")


def diagnosed_question(question: Mapping[str, Any], within: Reach = Reach(), detail: str = FULL) -> Reply:
    """Why the run of a pasted log ran out of memory. No files are read for it.

    InvalidInput for a wrong field; MissingDatum where the log does not say that memory ran out.
    """
    _check_fields(DIAGNOSE, question)
    text = _text(question, "text")
    log = Log(decoded(_needed(text).encode("utf-8", "replace"), PASTED), _text(question, "name") or PASTED)
    with limited(within):
        document = diagnosed(log, run_of(question, _config(question)))
        return Reply(document_of(Answered(document), detail), 0, ())


def reconciled_question(question: Mapping[str, Any], within: Reach = Reach(), detail: str = FULL) -> Reply:
    """The estimate beside what pasted logs say. No files are read for it.

    InvalidInput for a wrong field, or where the logs say no figure of the verb.
    """
    _check_fields(RECONCILE, question)
    name = _text(question, "name") or PASTED
    with limited(within):
        logs = [text_measurements(_needed(text), name) for text in _texts(question)]
        document = reconciled(logs, _text(question, "verb"), question, _config(question))
        return Reply(document_of(Answered(document), detail), 0, ())


def reconciled(
    logs: Sequence[Measurements], verb: str, question: Mapping[str, Any], config: Source | None, day: str = ""
) -> Any:
    """The document of figures beside the estimate of a run: of `model`, `on` and `options` of a question, and of a
    config, where the question is stronger. InvalidInput where neither says a verb, or they say different ones.
    """
    model, on = (_text(question, name) for name in ESTIMATED_WITH)
    found = understood(config, Asker(model=model, on=on, is_lenient=True)) if config is not None else None
    if not verb and found is None:
        raise InvalidInput("{@verb} is {verbs}: what the run did.", verbs=listed(VERBS, OR))
    if verb and verb not in VERBS:
        raise InvalidInput("{@verb} is {verbs}. Got {got}.", verbs=listed(VERBS, OR), got=shown(verb))
    if found is not None and verb and verb != found.verb:
        raise InvalidInput(
            "{file} is a question to {verb}. Got {other}.", file=found.document.file, verb=found.verb, other=verb
        )
    verb = found.verb if found is not None else verb
    given = {name: value for name, value in (("model", model), ("on", on)) if value}
    asked = {**(found.question if found is not None else {}), **given, **options_of(question)(verb)}
    return reconcile(logs, verb, asked, day or f"{datetime.now(UTC):%Y-%m-%d}")


def run_of(question: Mapping[str, Any], config: Source | None) -> Run:
    """What a question says of the run beside its log."""
    asker = Asker(model=_text(question, "model"), on=_text(question, "on"), is_lenient=True)
    found: Understood | None = understood(config, asker) if config is not None else None
    if question.get("options") in (None, {}):
        return Run(asker=asker, understood=found)
    if found is None and not (asker.model and asker.on):
        raise InvalidInput(
            "options of the run need {@model} and {@on}. Got {options}.", options=shown(question["options"])
        )
    return Run(asker=asker, options=options_of(question), understood=found)


def options_of(question: Mapping[str, Any]) -> Callable[[str], Mapping[str, Any]]:
    """Verb -> the options of a question, each of which the verb has."""
    options = question["options"] if question.get("options") is not None else {}
    if not isinstance(options, Mapping):
        raise InvalidInput("{@options} is an object of names and values. Got {value}.", value=shown(options))

    def of_verb(verb: str) -> Mapping[str, Any]:
        known = form_of(verb).of_face("json")
        for name in options:
            if name not in known:
                raise no_option(name, known)
        return dict(options)

    return of_verb


def _check_fields(verb: str, question: Mapping[str, Any]) -> None:
    for name in question:
        if name not in ABOUT[verb]:
            raise unknown("field", name, ABOUT[verb])


def _config(question: Mapping[str, Any]) -> Source | None:
    text = _text(question, "config")
    return text_source(text, PASTED_CONFIG) if text.strip() else None


def _texts(question: Mapping[str, Any]) -> list[str]:
    """The logs of a question: one, or a list."""
    value = question.get("text")
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return value
    return [_text(question, "text")]


def _needed(text: str) -> str:
    if not text.strip():
        raise InvalidInput("{@text} is needed: what the log holds.")
    return text


def _text(question: Mapping[str, Any], name: str) -> str:
    value = question.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput("{name} is a text. Got {value}.", name=option_name(name), value=shown(value))
    return value

"""From a question to what goes over the wire: the bytes of a document, or of an error with its status."""

import logging
from collections.abc import Callable, Mapping
from errno import ENOMEM
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.documents.document import ErrorDocument
from tonnage.kernel.errors import AccessDenied, MissingDatum, TonnageError, Unreachable
from tonnage.kernel.message import Message
from tonnage.kernel.reach import Reach
from tonnage.verbs.answered import FULL
from tonnage.web.words import ENGLISH, encoded, parted

if TYPE_CHECKING:
    from tonnage.verbs.wrong.fields import WrongQuestion


def is_out_of_memory(error: Exception) -> bool:
    """Python says so of its own objects by a MemoryError, or by a SystemError where there is no room for that one
    either; the system by an OSError of what it was to open or read.
    """
    return isinstance(error, MemoryError | SystemError) or (isinstance(error, OSError) and error.errno == ENOMEM)


PROBLEM = "application/problem+json"  # RFC 9457
MAX_DOCUMENT_BYTES = 64_000_000  # bytes of a document
_log = logging.getLogger("tonnage.web")


class EncodedAnswer(Struct, frozen=True):
    """A document as JSON; `status` is the exit status of the command line, and `command` that line."""

    body: bytes
    status: int = 0
    command: str = ""


class Refusal(Exception):
    """No answer: `code` is the HTTP status. `language`: of the words beside the message."""

    def __init__(self, code: int, kind: str, message: str, headers: Mapping[str, str] | None = None):
        super().__init__(code, kind, message)
        self.code, self.kind, self.message, self.headers = code, kind, message, dict(headers or {})
        self.language = ENGLISH
        self.wrong: WrongQuestion | None = None  # all that is wrong with the question

    @property
    def body(self) -> bytes:
        return error_body(self.code, self.kind, self.message, self.language, self.wrong)


def error_body(
    code: int, kind: str, message: str, language: str = ENGLISH, wrong: "WrongQuestion | None" = None
) -> bytes:
    """An ErrorDocument, which is a problem of RFC 9457; what is no text in UTF-8 is shown as ?."""
    text = _readable(message)
    document = ErrorDocument(
        error={"kind": kind, "message": text}, type="about:blank", title=_title(code), status=code, detail=text
    )
    if wrong is not None and wrong.problems:
        document.errors = [
            replace(
                each,
                input=_readable(each.input),
                problem=_readable(each.problem),
                pointer=_readable(each.pointer) if each.pointer else UNSET,
            )
            for each in wrong.problems
        ]
        document.corrected = wrong.command or UNSET
    return encoded(document, language)


def _title(code: int) -> str:
    """What HTTP calls a status, which is the title of a problem without a type of its own."""
    return HTTPStatus(code).phrase if code in set(HTTPStatus) else "Error"


def _readable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def refusal(error: TonnageError) -> Refusal:
    """The error of a question, as HTTP says it: 422 where the question is right and a number is missing, else 400."""
    code = 422 if isinstance(error, MissingDatum | Unreachable | AccessDenied) else 400
    return Refusal(code, type(error).__name__, str(error))


def answered(verb: str, question: Mapping[str, Any], within: Reach, detail: str = FULL) -> EncodedAnswer | Refusal:
    """The answer, or why there is none. Every failure is a Refusal: a worker process lives on. `detail`: of its
    document.
    """
    try:
        question, language = parted(question)
    except TonnageError as error:
        return refusal(error)
    outcome = _answered(verb, question, language, within, detail)
    if isinstance(outcome, Refusal):
        outcome.language = language
    return outcome


def _answered(
    verb: str, question: Mapping[str, Any], language: str, within: Reach, detail: str
) -> EncodedAnswer | Refusal:
    from tonnage.verbs.ask import line

    try:
        reply = _asked(verb, question, within, detail)
        body = encoded(reply.document, language)
    except TonnageError as error:
        return _refusal_of_all(verb, question, error, within)
    except Exception as error:  # noqa: BLE001 - the process answers on, and the log has it
        if isinstance(error, RecursionError) or is_out_of_memory(error):
            return Refusal(422, "TooLarge", "the question takes more memory than this server gives one: ask for less.")
        _log.exception("an answer of %s failed", verb)
        return Refusal(500, "Internal", "the server failed; its log says why.")
    if len(body) > MAX_DOCUMENT_BYTES:
        return Refusal(
            422,
            "TooLarge",
            Message(
                "the answer has {count:,} bytes, and at most {largest:,} are sent: ask for less.",
                count=len(body),
                largest=MAX_DOCUMENT_BYTES,
            ),
        )
    return EncodedAnswer(body, reply.status, quote(line(reply.words)) if reply.words else "")


def _refusal_of_all(verb: str, question: Mapping[str, Any], error: TonnageError, within: Reach) -> Refusal:
    """The error of a question with all that is wrong with it, so that it takes one more request to be right."""
    refused = refusal(error)
    if refused.code != HTTPStatus.BAD_REQUEST:
        return refused
    from tonnage.verbs.wrong.fields import all_wrong

    try:
        refused.wrong = all_wrong(verb, question, error, within)
    except Exception:  # noqa: BLE001 - the error itself is known
        _log.exception("what else is wrong with a question to %s was not found", verb)
    return refused


def _asked(verb: str, question: Mapping[str, Any], within: Reach, detail: str) -> Any:
    from tonnage.interchange.json_questions import CHECK, EXPORT, checked, exported
    from tonnage.interchange.log_questions import DIAGNOSE, RECONCILE, diagnosed_question, reconciled_question
    from tonnage.verbs.ask import ask
    from tonnage.web.batch import BATCH, batched
    from tonnage.web.launch import LAUNCH, launched
    from tonnage.web.timeline import TIMELINE, drawn

    # what is no verb of the command line
    others: dict[str, Callable[[Mapping[str, Any], Reach], Any]] = {
        LAUNCH: launched,
        TIMELINE: drawn,
        BATCH: batched,
        CHECK: lambda question, within: checked(question, within, detail),
        EXPORT: exported,
        DIAGNOSE: diagnosed_question,
        RECONCILE: reconciled_question,
    }
    return others[verb](question, within) if verb in others else ask(verb, question, within, detail=detail)

"""What every verb answers: a document, and the exit status of the command line."""

from typing import Any, NamedTuple, Protocol

from msgspec import Struct

SUMMARY, FULL = "summary", "full"
DETAILS = (FULL, SUMMARY)  # how much of a document is shown


class DocumentedAnswer(Protocol):
    """An answer, of which every face shows the document; texts, reports and pictures are made of it too."""

    @property
    def document(self) -> Any: ...

    @property
    def status(self) -> int: ...


class Answered(NamedTuple):
    """What the catalogues and the glossary answer. `status` is 0: such a question has no verdict."""

    document: Struct
    status: int = 0


def document_of(answer: DocumentedAnswer, detail: str = FULL) -> Any:
    """The whole document, or the summary of it: at most 8 kB, without trees."""
    if detail == FULL:
        return answer.document
    summary = getattr(answer, "summary_document", None)
    if summary is not None:
        return summary
    from tonnage.verbs.shortened import shortened

    return shortened(answer.document)

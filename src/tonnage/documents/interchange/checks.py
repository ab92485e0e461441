"""The form of what was found of several files."""

from msgspec import Struct

from tonnage.documents.answer import AnswerSummary
from tonnage.documents.document import Document


class CheckedFile(Struct, kw_only=True, omit_defaults=True):
    """One of several files that were checked: the summary of its answer, or why there is none."""

    file: str
    status: int
    answer: AnswerSummary | None = None
    error: str = ""


class ChecksDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `check --json` prints of several files. `status`: of the worst of them."""

    files: list[CheckedFile]
    status: int

"""The form of a file that was written for another tool."""

from typing import Literal

from tonnage.documents.document import Document


class ExportDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `export --json` prints. `text`: of the file; `ending`: of its name; `lacks`: options of the question that
    the file has no place for, not even in a comment: they are said beside it when it is checked.
    """

    verb: Literal["train", "serve"]
    format: str
    text: str
    ending: str
    lacks: list[str]

"""What every verb answers: a document, and the exit status of the command line."""

from typing import Any, NamedTuple, Protocol

from msgspec import Struct


class VerbAnswer(Protocol):
    """An answer, of which every face shows the document; texts, reports and pictures are made of it too."""

    @property
    def document(self) -> Any: ...

    @property
    def status(self) -> int: ...


class Answered(NamedTuple):
    """What the catalogues and the glossary answer. `status` is 0: such a question has no verdict."""

    document: Struct
    status: int = 0

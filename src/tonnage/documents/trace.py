"""Forms of what `trace` and `measure` answer."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.document import Document
from tonnage.documents.question import Entry
from tonnage.kernel.term import TermDocument


class MeasureDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `measure` measured: a row in the form of validation/sources/README.md; of kind `trial` where no GPU was
    asked for.
    """

    row: dict[str, Any]


class TraceVerdict(Struct, kw_only=True, forbid_unknown_fields=True):
    """`needed_bytes`: in how little the program runs, with what is outside of the allocator; `failure`: where it
    runs out.
    """

    fits: bool | None
    needed_bytes: int
    usable_bytes: int | None
    band: None
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    retries: int
    failure: dict[str, Any] | None


class StageDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """The end of a stage; `peak_allocated_bytes` is the most since the one before."""

    name: str
    allocated_bytes: int
    reserved_bytes: int
    peak_allocated_bytes: int


class TraceDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `trace` answers. `modules`: what holds most at the peak; `overlays`: memory that no tensor shows;
    `answers`: what operations that need data were told; `unmodelled`: operations whose scratch memory is not
    counted, and how often they ran.
    """

    question: dict[str, Entry]
    verdict: TraceVerdict
    stages: list[StageDocument]
    memory: TermDocument
    modules: list[dict[str, Any]]
    timeline: dict[str, Any]
    overlays: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    attention: dict[str, int]
    unmodelled: dict[str, int]
    warnings: list[str]
    against: dict[str, Any] | UnsetType = UNSET

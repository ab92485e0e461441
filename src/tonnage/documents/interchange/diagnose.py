"""The form of why a run ran out of memory, as its log says it."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.advice import Changes
from tonnage.documents.document import Document
from tonnage.documents.interchange.read import ReadDocument
from tonnage.documents.question import Entry

Phase = Literal[
    "loading weights",
    "optimizer step",
    "forward",
    "backward",
    "loss",
    "graph capture",
    "cache allocation",
    "profiling",
    "serving",
    "checkpoint saving",
    "communication",
    "host",
    "unknown",
]
Cause = Literal[
    "weights",
    "kv cache",
    "activations",
    "logits",
    "optimizer states",
    "gradients",
    "cuda graphs",
    "communication buffers",
    "fragmentation",
    "another process",
    "context too long",
    "host memory",
    "shared memory",
    "unknown",
]


class NumberDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number of the log: what it is of, in `unit`, and its line (from 1 on)."""

    name: str
    value: float
    unit: str
    line: int


class EvidenceDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the log, without colours and prefixes. `failed`: whether memory ran out there; `rank`: who wrote it,
    "" where the log does not say.
    """

    line: int
    text: str
    failed: bool
    rank: str = ""


class FixDocument(Struct, frozen=True, kw_only=True):
    """A fix. `text`: what to write, in the tool's own flags where `in_flags`, else in words; `changes`: what it changes
    beside memory and speed. `basis`: `estimated` with the bytes then, those that it frees, and seconds of a step or of
    a token; by `rule` it has no numbers. `change`: the same as options of `tonnage`.
    """

    text: str
    in_flags: bool
    changes: Changes
    basis: Literal["estimated", "rule"]
    why: str = ""
    change: dict[str, Any] | UnsetType = UNSET
    needed_bytes: int | UnsetType = UNSET
    freed_bytes: int | UnsetType = UNSET
    seconds: float | UnsetType | None = UNSET
    time_change: float | UnsetType | None = UNSET


class EstimateDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the run needs by the estimate: bytes of the fullest accelerator, with the error band, those that are usable,
    and seconds of a step or of a token.
    """

    needed_bytes: int
    usable_bytes: int
    band: tuple[int, int] | None
    fits: bool | None
    seconds: float | None


class DiagnosisDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `diagnose` answers. `question`: the log, and where they are known the options of the run; `tool`: whose log
    it is; `text`: phase and cause in one sentence; `numbers`: of the failure and of the lines that tell its memory;
    `ranks`: of which the log says that memory ran out; `read`: of the command or file that the run was started with;
    `estimate`: of that run.
    """

    question: dict[str, Entry]
    tool: str
    tool_name: str
    phase: Phase
    cause: Cause
    text: str
    ranks: list[str]
    numbers: list[NumberDocument]
    evidence: list[EvidenceDocument]
    fixes: list[FixDocument]
    estimate: EstimateDocument | None
    read: ReadDocument | UnsetType = UNSET
    warnings: list[str]

"""The form of what `train` and `serve` answer."""

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.advice import Advice, NearestMiss
from tonnage.documents.document import Document
from tonnage.documents.question import Entry
from tonnage.documents.run import HostDocument, OwnershipDocument, RunDocument, StorageDocument
from tonnage.documents.serving import ServingDocument
from tonnage.kernel.term import TermDocument


class Verdict(Struct, kw_only=True):
    """Whether it fits. `band`: low and high in bytes, null where no measured rows back the estimate.

    With a band, `fits` is true where its high end is usable, false where its low end is not, and null in between
    (status 2, tight). It is null too where not enough is known (status 4). `missed`: the service level, deadline or
    budget that is missed, in words, whether it fits or not; where it fits, the status is 3.
    """

    fits: bool | None
    needed_bytes: int | None
    usable_bytes: int | None
    band: tuple[int, int] | None
    missed: str | None


class Slopes(Struct, kw_only=True):
    """Bytes that one more sequence, and one more token in each sequence, add on the fullest rank."""

    bytes_per_sequence: float
    bytes_per_token: float


class AnswerDocument(Document, kw_only=True):
    """What `train` and `serve` answer. Keys that a verb does not answer are left out; with --no-advice `train` leaves
    out `slopes`, which needs two more estimates. `cost` is null where no price is known.

    `question` has every input: {"value", "from": given, default, model, cluster, runtime, catalogue or measurements,
    "why"}.
    """

    question: dict[str, Entry]
    verdict: Verdict
    memory: TermDocument | UnsetType  # this and the ranks are left out of a summary
    ranks: list[TermDocument] | UnsetType
    phases: list[TermDocument] | UnsetType = UNSET
    slopes: Slopes | UnsetType = UNSET
    flops: TermDocument | UnsetType = UNSET
    step_time: TermDocument | UnsetType = UNSET
    traffic: TermDocument | UnsetType = UNSET
    checkpoint: TermDocument | UnsetType = UNSET
    run: RunDocument[TermDocument] | UnsetType = UNSET
    host: HostDocument[TermDocument] | UnsetType = UNSET
    storage: StorageDocument[TermDocument] | UnsetType = UNSET
    cost: TermDocument | UnsetType | None = UNSET
    energy: TermDocument | UnsetType = UNSET
    carbon: TermDocument | UnsetType = UNSET
    ownership: OwnershipDocument[TermDocument] | UnsetType = UNSET
    serving: ServingDocument[TermDocument] | UnsetType = UNSET
    advice: list[Advice]
    nearest_miss: NearestMiss | UnsetType = UNSET
    warnings: list[str]

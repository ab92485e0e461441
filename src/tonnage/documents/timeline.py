"""The form of a step drawn as boxes: what each stage of a pipeline does, and when."""

from msgspec import Struct

from tonnage.documents.document import Document


class TimelineBox(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a stage does from `start` for `seconds`. `microbatch` and `chunk` are counted from 0, and -1 where it
    belongs to none.
    """

    stage: int
    kind: str
    start: float
    seconds: float
    microbatch: int
    chunk: int


class TimelineDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """One step of `train`, played out in the order of its schedule.

    `step_seconds`: the estimate, by a closed form or by the same order; `played_seconds`: when the last box ends.
    `shown` of all `num_microbatches` are drawn. `gap` seconds from `cut` on are left out, in which all stages do the
    same for each; where `gap` is null a step of `shown` micro-batches is drawn instead, in which stages wait for a
    larger part.
    """

    schedule: str
    stages: int
    chunks: int
    num_microbatches: int
    shown: int
    step_seconds: float
    played_seconds: float
    cut: float
    gap: float | None
    boxes: list[TimelineBox]

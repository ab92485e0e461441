"""The form of what `train` and `serve` answer."""

from collections import Counter
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tonnage.documents.advice import Advice, Chosen, NearestMiss
from tonnage.documents.document import Document, encode
from tonnage.documents.interchange.read import ReadDocument
from tonnage.documents.question import Entry
from tonnage.documents.run import HostDocument, OwnershipDocument, RunDocument, StorageDocument
from tonnage.documents.serving import ServingDocument
from tonnage.kernel.term import FigureDocument, TermDocument


class Verdict(Struct, kw_only=True):
    """Whether it fits. `band`: low and high in bytes, null where no measured rows back the estimate. `band_of_others`:
    how far measured runs of other runtimes and methods lie, in bytes, where there are none of this kind; the verdict
    does not use it. `made_for`: tokens that the model was made for, where the context is longer; an engine that does
    not start with it is named in `missed`.

    With a band, `fits` is true where its high end is usable, false where its low end is not, and null in between
    (status 2, tight). It is null too where not enough is known (status 4). `missed`: the service level, deadline or
    budget that is missed, in words, whether it fits or not; where it fits, the status is 3. `unjudged`: the
    deadline or budget that cannot be judged because the time of a step is not known; where it fits, the status is 4.
    """

    fits: bool | None
    needed_bytes: int | None
    usable_bytes: int | None
    band: tuple[int, int] | None
    missed: str | None
    band_of_others: tuple[int, int] | UnsetType = UNSET
    made_for: int | UnsetType = UNSET
    unjudged: str | UnsetType = UNSET


class Slopes(Struct, kw_only=True):
    """Bytes that one more sequence, and one more token in each sequence, add on the fullest GPU."""

    bytes_per_sequence: float
    bytes_per_token: float


class AnswerDocument(Document, kw_only=True):
    """What `train` and `serve` answer. Keys that a verb does not answer are left out; with --no-advice `train` leaves
    out `slopes`, which needs two more estimates. `cost` is null where no price is known.

    `question` has every input: {"value", "from": given, file, default, model, cluster, runtime, catalogue, measurements
    or chosen, "why"}. `read`: what was read of another tool's file or command, where that asks the question. `chosen`:
    what was not given and was chosen so that it fits; left out where the defaults fit, or nothing does.
    """

    question: dict[str, Entry]
    read: ReadDocument | UnsetType = UNSET
    verdict: Verdict
    chosen: Chosen | UnsetType = UNSET
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


# ---- A summary: the document without its trees, short enough for an assistant or a first look.

LONGEST = 7_500  # bytes of a summary as compact JSON: 8 kB with the lines that an assistant gets beside it
# What is left out of a summary that is too long, in this order: the last entries of a list, as long as it has more than
# so many.
SHORTENED = (
    ("offers", 1),
    ("places", 3),
    ("warnings", 4),
    ("advice", 3),
    ("places", 1),
    ("warnings", 1),
    ("advice", 1),
)
# Then figures of serving, in this order: those of one user alone, and what others say in another unit.
SELDOM = (
    "energy_per_million_tokens_alone",
    "cost_per_million_tokens_alone",
    "tokens_per_second_alone",
    "tpot_seconds_alone",
    "ttft_seconds_alone",
    "weights_read_seconds",
    "kv_bytes_per_request",
    "itl_seconds",
    "total_tokens_per_second",
    "running",
    "cost_per_million_output_tokens_all",
    "own_cost_per_million_tokens",
    "hosted",
    "simulated",
)
OWN = frozenset({"question", "read", "memory", "run", "left_out"})  # what a summary has in another form


class AnswerSummary(Document, kw_only=True, forbid_unknown_fields=True):
    """What `train` and `serve` answer, in at most 8 kB: as their document, but a figure is its name, value and unit
    alone. Memory, the time of a step and money have their `parts`, the first level of what is added up; of the
    question every input has its value and where it came from, not why; of a file that was read it has the keys that
    were not understood.

    Ranks, phases, other conventions of counting FLOPs and the best models of scaling laws are never there. `left_out`:
    what else is not, because the summary would be too long, key -> how many of its entries.
    """

    question: dict[str, Entry]
    read: ReadDocument | UnsetType = UNSET
    verdict: Verdict
    chosen: Chosen | UnsetType = UNSET
    memory: FigureDocument
    slopes: Slopes | UnsetType = UNSET
    flops: FigureDocument | UnsetType = UNSET
    step_time: FigureDocument | UnsetType = UNSET
    traffic: FigureDocument | UnsetType = UNSET
    checkpoint: FigureDocument | UnsetType = UNSET
    run: RunDocument[FigureDocument] | UnsetType = UNSET
    host: HostDocument[FigureDocument] | UnsetType = UNSET
    storage: StorageDocument[FigureDocument] | UnsetType = UNSET
    cost: FigureDocument | UnsetType | None = UNSET
    energy: FigureDocument | UnsetType = UNSET
    carbon: FigureDocument | UnsetType = UNSET
    ownership: OwnershipDocument[FigureDocument] | UnsetType = UNSET
    serving: ServingDocument[FigureDocument] | UnsetType = UNSET
    advice: list[Advice]
    nearest_miss: NearestMiss | UnsetType = UNSET
    warnings: list[str]
    left_out: dict[str, int] | UnsetType = UNSET


def summary_of(
    document: AnswerDocument,
    *,
    memory: FigureDocument,
    step_time: FigureDocument | UnsetType,
    cost: FigureDocument | UnsetType,
) -> AnswerSummary:
    """The summary of a document whose figures are numbers alone; `memory`, `step_time`, `cost`: with their parts."""
    kept = {name: getattr(document, name) for name in AnswerSummary.__struct_fields__ if name not in OWN}
    run: Any = document.run  # its figures are numbers here
    summary = AnswerSummary(
        **kept | {"step_time": step_time, "cost": document.cost if cost is UNSET else cost},
        question={name: Entry(entry.value, entry.origin) for name, entry in document.question.items()},
        read=_unread(document.read) if document.read else UNSET,
        memory=memory,
        run=replace(run, conventions=UNSET, best_models=UNSET) if run else UNSET,
    )
    _fit(summary)
    return summary


def _unread(read: ReadDocument) -> ReadDocument:
    return replace(read, keys=tuple(key for key in read.keys if key.status == "not understood"))


def _fit(summary: AnswerSummary) -> None:
    """Leave out what makes it too long; last of all inputs of the question, the longest first."""
    serving, owned = summary.serving, summary.ownership
    lists: dict[str, list[Any]] = {"warnings": summary.warnings, "advice": summary.advice}
    if serving and serving.hosted:
        lists["offers"] = serving.hosted.offers
    if owned:
        lists["places"] = owned.places
    left_out: Counter[str] = Counter()
    for name, least in SHORTENED:
        entries = lists.get(name, [])
        while len(entries) > least and _is_long(summary):
            del entries[-1]
            left_out[name] += 1
            summary.left_out = dict(left_out)
    for name in SELDOM:
        if summary.serving and getattr(summary.serving, name) and _is_long(summary):
            summary.serving = replace(summary.serving, **{name: UNSET})
            left_out["serving"] += 1
            summary.left_out = dict(left_out)
    while summary.question and _is_long(summary):
        del summary.question[max(summary.question, key=lambda name: len(encode(summary.question[name])))]
        left_out["question"] += 1
        summary.left_out = dict(left_out)


def _is_long(summary: AnswerSummary) -> bool:
    return len(encode(summary)) > LONGEST

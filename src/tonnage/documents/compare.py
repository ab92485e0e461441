"""The form of what `compare` answers."""

from typing import Literal, NotRequired, TypedDict

from msgspec import Struct

from tonnage.documents.document import Document
from tonnage.documents.question import Entry

ComparedVerb = Literal["serve", "train"]
ComparedVerdict = Literal["fits", "tight", "not served", "does not fit", "not known", "cannot be"]


class ComparedAxis(Struct, kw_only=True, forbid_unknown_fields=True):
    """Something that was given, with its values as they were written; `own` is the default of the option."""

    name: str
    values: list[str]


class ComparedColumn(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key of the cells, its unit, and which of two values is the better one."""

    name: str
    unit: str
    better: Literal["low", "high"] | None


class ComparedCell(TypedDict):
    """One answer of `serve` or `train`, with a key for each column. A key without a value is null: it is not known, or
    there is no answer, and `reason` says why.

    `accelerators`: where their number was left open, the fewest that hold the model, or what was tried last;
    `accelerators_paid`: those of the whole machines that are rented. `weights_stored`: what the weights of the question
    came to. Options that were given are keys too. Times and prices of what does not fit are those that it would have
    with more memory. `items_per_second`: documents, or pairs of a reranker.
    `not served`: it fits, and a service level, a deadline or a budget is not met or a queue grows without end. Bytes,
    seconds, tokens a second, USD.
    """

    model: str
    on: str
    accelerator: str
    accelerators: int
    nodes: int
    verdict: ComparedVerdict
    reason: str
    needed_bytes: int | None
    usable_bytes: int | None
    usd_per_hour: float | None
    tokens_per_second: float | None
    warnings: list[str]
    price: NotRequired[str | None]
    accelerators_paid: NotRequired[int | None]
    weights: NotRequired[str | None]
    weights_stored: NotRequired[str | None]
    context: NotRequired[int | None]
    concurrency: NotRequired[int | None]
    requests_that_fit: NotRequired[int | None]
    kv_capacity_tokens: NotRequired[int | None]
    longest_context_tokens: NotRequired[int | None]
    ttft_seconds: NotRequired[float | None]
    tpot_seconds: NotRequired[float | None]
    tokens_per_second_per_user: NotRequired[float | None]
    usd_per_million_tokens: NotRequired[float | None]
    usd_per_million_output_tokens: NotRequired[float | None]
    precision: NotRequired[str | None]
    sequence_length: NotRequired[int | None]
    step_seconds: NotRequired[float | None]
    mfu: NotRequired[float | None]
    usd_per_step: NotRequired[float | None]
    usd_per_billion_tokens: NotRequired[float | None]
    run_seconds: NotRequired[float | None]
    run_accelerator_hours: NotRequired[float | None]
    run_usd: NotRequired[float | None]


class ComparedWorkload(Struct, kw_only=True, forbid_unknown_fields=True):
    """One workload of several: its values on the axes that say what is asked for, such as context and users, the
    numbers of the cells that were asked this, and of each column those of the best among them.
    """

    values: dict[str, str]
    cells: list[int]
    best: dict[str, list[int]]


class CompareDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """One matrix. `counts`: cells of each verdict; `best`: of each column the numbers of the cells that are best in it,
    of those that fit;
    `key`: the column that says which cell is the best; `workloads`: the best of each, where the axes hold several: a
    short context is no better answer than a long one; `settings`: what all answers took beside the axes, and where
    it comes from; `warnings`: what every answer noted, what some noted stands with them.
    """

    verb: ComparedVerb
    question: dict[str, Entry]
    axes: list[ComparedAxis]
    columns: list[ComparedColumn]
    counts: dict[ComparedVerdict, int]
    cells: list[ComparedCell]
    key: str
    best: dict[str, list[int]]
    workloads: list[ComparedWorkload]
    settings: dict[str, Entry]
    warnings: list[str]

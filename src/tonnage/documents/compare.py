"""The form of what `compare` answers."""

from typing import Any, Literal

from msgspec import Struct

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


class ComparedCell(Struct, kw_only=True):
    """One answer of `serve` or `train`. A key without a value is null: it is not known, or there is no answer, and
    `reason` says why.

    `accelerators`: where their number was left open, the fewest that hold the model, or what was tried last;
    `accelerators_paid`: those of the whole machines that are rented. `weights_stored`: what the weights of the question
    came to. Options that were given are keys too. Times and prices of what does not fit are those that it would have
    with more memory.
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
    price: str | None = None
    accelerators_paid: int | None = None
    weights: str | None = None
    weights_stored: str | None = None
    context: int | None = None
    concurrency: int | None = None
    requests_that_fit: int | None = None
    kv_capacity_tokens: int | None = None
    longest_context_tokens: int | None = None
    ttft_seconds: float | None = None
    tpot_seconds: float | None = None
    tokens_per_second_per_user: float | None = None
    usd_per_million_tokens: float | None = None
    usd_per_million_output_tokens: float | None = None
    precision: str | None = None
    sequence_length: int | None = None
    step_seconds: float | None = None
    mfu: float | None = None
    usd_per_step: float | None = None
    usd_per_billion_tokens: float | None = None
    run_seconds: float | None = None
    run_accelerator_hours: float | None = None
    run_usd: float | None = None


class ComparedWorkload(Struct, kw_only=True, forbid_unknown_fields=True):
    """One workload of several: its values on the axes that say what is asked for, such as context and users, the
    numbers of the cells that were asked this, and of each column those of the best among them.
    """

    values: dict[str, str]
    cells: list[int]
    best: dict[str, list[int]]


class CompareDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """One matrix. `counts`: cells of each verdict; `best`: of each column the numbers of the cells that are best in it,
    of those that fit;
    `key`: the column that says which cell is the best; `workloads`: the best of each, where the axes hold several: a
    short context is no better answer than a long one; `settings`: what all answers took beside the axes, and where
    it comes from; `warnings`: what every answer noted, what some noted stands with them.
    """

    schema: Literal["tonnage/1"]
    verb: Literal["serve", "train"]
    question: dict[str, Any]
    axes: list[ComparedAxis]
    columns: list[ComparedColumn]
    counts: dict[ComparedVerdict, int]
    cells: list[ComparedCell]
    key: str
    best: dict[str, list[int]]
    workloads: list[ComparedWorkload]
    settings: dict[str, Any]
    warnings: list[str]

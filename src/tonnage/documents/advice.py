"""The form of what an answer advises: changes that fit, or the nearest miss."""

from typing import Any, Literal, get_args

from msgspec import UNSET, Struct, UnsetType

# What a move changes beside memory and speed, the least first: nothing; the machine; the workload (lengths, batches,
# requests), so the data of a step; the numerics (types of numbers, the optimizer); the method (what trains).
Changes = Literal["nothing", "machine", "workload", "numerics", "method"]
ORDER: tuple[Changes, ...] = get_args(Changes)


class ChangeDocument(Struct, kw_only=True):
    """A change: `change` are options of the command line; `text` the same as flags, which are added to those that were
    given; `changes`: what it changes beside memory and speed. The workload is the data of a step, or the requests.
    """

    change: dict[str, Any]
    text: str
    changes: Changes


class Advice(ChangeDocument, kw_only=True):
    """A change that was estimated again: what it needs then, and whether that fits.

    `fits`: with the high end of the error band.
    `step_seconds`: of a step of training then; of serving `ttft_seconds`, `tpot_seconds` and `tokens_per_second` of all
    replicas.
    `usd_per_million_tokens`: of training, or of prompts and answers, all machines paid. `time_change`, `usd_change`:
    how much more (less, if negative) money, and time of the whole cluster (1 / tokens a second), a token takes then, as
    a part of what it takes now. `serves`: whether the load is then served as it was asked, within its limits and with
    no queue that grows; null where neither was asked. Each null where nobody knows it, and left out where it is none of
    the verb.
    `in_tool`: under another tool's file, the same change as it is written there; left out where the tool has no words
    for it.
    `provider`: whose price the machine has, left out where it is the provider of the machine that was asked about, or
    a price that was given.
    """

    needed_bytes: int
    freed_bytes: int
    fits: bool
    step_seconds: float | UnsetType | None = UNSET
    ttft_seconds: float | UnsetType = UNSET
    tpot_seconds: float | UnsetType = UNSET
    tokens_per_second: float | UnsetType = UNSET
    serves: bool | UnsetType | None = UNSET
    usd_per_million_tokens: float | UnsetType | None = UNSET
    time_change: float | UnsetType | None = UNSET
    usd_change: float | UnsetType | None = UNSET
    provider: str | UnsetType = UNSET
    in_tool: str | UnsetType = UNSET


class Chosen(Struct, kw_only=True):
    """Options that were not given, chosen so that it fits: `change` and `text` as those of a suggestion. `needed_bytes`
    and `step_seconds` (of training, null where nobody knows it): what it would need and take with the runtime's own
    defaults.
    """

    change: dict[str, Any]
    text: str
    needed_bytes: int
    step_seconds: float | UnsetType | None = UNSET


class NearestMiss(ChangeDocument, kw_only=True):
    """Where no change fits: the one that comes closest, and the bytes still missing, with the high end of the error
    band. `smallest_machine`: other accelerators on which what was asked about fits, null where none that was tried
    does.
    """

    needed_bytes: int
    missing_bytes: int
    smallest_machine: str | None

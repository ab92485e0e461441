"""The forms of what `plan --train` answers. Values only."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.answer import AnswerDocument
from tonnage.documents.document import Document
from tonnage.documents.question import Entry


class RemovedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Plans that a constraint took away, of those that the ones before it had left."""

    constraint: str
    plans: int


class TrainingPlanDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A plan that was estimated whole. `options`: what was chosen or given, by the names of `train`; `text`: the
    command that asks for just it; `launch`: the runtime's own settings, and what of the plan they `launch_lacks`;
    `beats`: why it stands before the next, empty for the last. `step_seconds`, `tokens_per_second` and what follows
    are null where nobody knows; `run_seconds` and `cost` where no length of the run, or no price, is given. `price`:
    whose offer was taken. `measured`: whether published runs on the accelerator back the rates of its time.
    `run_seconds_band`: where a deadline is given, the error band of `run_seconds`.
    """

    on: str
    accelerators: int
    options: dict[str, Any]
    text: str
    needed_bytes: int
    usable_bytes: int
    step_seconds: float | None
    tokens_per_second: float | None
    mfu: float | None
    usd_per_accelerator_hour: float | None
    usd_per_million_tokens: float | None
    run_seconds: float | None
    cost: float | None
    launch: list[str]
    launch_lacks: list[str]
    beats: str
    price: str | None
    measured: bool
    run_seconds_band: tuple[float, float] | UnsetType = UNSET


class FoundPlanDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """The best plan of a search that goes on: its sizes and names in `options`, its bytes of the fullest GPU,
    and its step; USD while steps run, with what failures and checkpoints take of a run, null where no price is known.
    """

    on: str
    accelerators: int
    options: dict[str, Any]
    needed_bytes: float
    usable_bytes: int
    step_seconds: float
    tokens_per_second: float
    usd_per_million_tokens: float | None


class FrontDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A machine that no other beats in speed, money and number of accelerators, with its fastest plan."""

    on: str
    accelerators: int
    options: dict[str, Any]
    tokens_per_second: float
    usd_per_million_tokens: float | None


class PlansDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `plan --train` answers.

    `considered`: plans of the whole space, valid or not, each in one of these and in one alone: `removed`, by the first
    constraint that it breaks, the same with and without --exhaustive; `beaten`: it does not fit, is refused by its
    runtime, or is slower than what was found by a bound or by its time, so that its memory was not estimated (with
    --exhaustive there are none of the last kind); `estimated`: memory and time, each by the walk of a single answer,
    and it fits. `refused`: why runtimes refuse plans, and how many of those that no bound had ruled out before.
    `machines`: so many were searched, and `passed` over, whose fastest imaginable plan is worse than what was found.
    `binds`: where nothing does, the constraint that binds, and `nearest` what comes nearest. `best`: the whole answer
    of the first plan, as `train` has it. `deadline_seconds`: what the deadline leaves, where one is given.
    """

    question: dict[str, Entry]
    goal: Literal["fastest", "cheapest", "fewest"]
    machines: int
    passed: int
    considered: int
    removed: list[RemovedDocument]
    refused: list[RemovedDocument]
    beaten: int
    estimated: int
    plans: list[TrainingPlanDocument]
    front: list[FrontDocument]
    status: int
    binds: str
    nearest: TrainingPlanDocument | None
    best: AnswerDocument | None
    warnings: list[str]
    deadline_seconds: float | UnsetType = UNSET

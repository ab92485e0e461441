"""What is answered about saved plans, and how OpenAPI describes it."""

from typing import Any, Literal

from msgspec import Raw, Struct


class AskedSave(Struct, forbid_unknown_fields=True):
    """The body of a save: a `verb` with its `question` as POST /v1/VERB takes it, or the id of a `job` that has answered one. `version`: the
    latest that was seen of this name, where it is saved already; If-Match says the same."""

    name: str
    verb: Literal["train", "serve", "plan", "max", "compare"] | None = None
    question: dict[str, Any] | None = None
    job: str | None = None
    version: int | None = None


class SavedPlan(Struct, kw_only=True, forbid_unknown_fields=True):
    """A question as it was saved, with what shows how its answer changes. `saved`: when, in UTC; `tonnage`: the version that answered; `answer`: in
    a few words; bytes: of the fullest accelerator; `usd`: the price of what `usd_of` says."""

    name: str
    version: int
    saved: str
    tonnage: str
    verb: str
    question: Raw
    command: str
    status: int
    answer: str
    needed_bytes: int | None
    usable_bytes: int | None
    usd: float | None
    usd_of: str | None
    deleted: bool


class SavedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """One plan."""

    schema: Literal["tonnage/1"] = "tonnage/1"
    plan: SavedPlan


class SavedPlansDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """The latest versions of plans, by name; or the versions of one, the latest first."""

    schema: Literal["tonnage/1"] = "tonnage/1"
    plans: list[SavedPlan]


class DeletedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was deleted. `history`: with all its versions."""

    schema: Literal["tonnage/1"] = "tonnage/1"
    deleted: str
    history: bool

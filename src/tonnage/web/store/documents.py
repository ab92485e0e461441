"""What is answered about saved plans, and how OpenAPI describes it."""

from typing import Any, Literal

from msgspec import Raw, Struct

from tonnage.documents.document import Document


class AskedSave(Struct, forbid_unknown_fields=True):
    """The body of a save: a `verb` with its `question` as POST /v1/VERB takes it, or the id of a `job` that has
    answered one. `version`: the latest that was seen of this name, where it is saved already; If-Match says the
    same.
    """

    name: str
    verb: Literal["train", "serve", "plan", "max", "compare"] | None = None
    question: dict[str, Any] | None = None
    job: str | None = None
    version: int | None = None


class SavedSummary(Struct, kw_only=True, forbid_unknown_fields=True):
    """A version of a saved plan in a list. `saved`: when, in UTC; `tonnage`: the version that answered; `model`,
    `machine`, `method`: of the question, null where it does not say them in a few words, `model` config.json where its
    content was pasted. `status`: exit status of the command line, 64 where the question has no answer;
    `answer`: in a few words; bytes needed and usable: of the fullest GPU; `usd`: the price of what `usd_of`
    says. `status` and `answer` are null until the figures are computed, which follows the save where the server is
    busy. `bytes`: what the version counts against the server's limit.
    """

    name: str
    version: int
    saved: str
    tonnage: str
    verb: str
    model: str | None
    machine: str | None
    method: str | None
    status: int | None
    answer: str | None
    needed_bytes: int | None
    usable_bytes: int | None
    usd: float | None
    usd_of: str | None
    bytes: int
    deleted: bool


class SavedPlan(SavedSummary, kw_only=True, forbid_unknown_fields=True):
    """A whole version: also the `question` as it was saved, and the `command` line that asks it."""

    command: str
    question: Raw


class SavedDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """One plan."""

    plan: SavedPlan


class SavedPlansDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """A page of the latest versions of plans, by name; or of the versions of one, the latest first. `more`: whether
    others follow the last one.
    """

    plans: list[SavedSummary]
    more: bool


class DeletedDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What was deleted. `history`: with all its versions."""

    deleted: str
    history: bool

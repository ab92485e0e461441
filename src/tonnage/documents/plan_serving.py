"""The form of what a search for a serving plan answers."""

from typing import Literal

from msgspec import Struct

from tonnage.documents.answer import AnswerDocument
from tonnage.documents.document import Document
from tonnage.documents.question import Entry

ServingGoal = Literal["cost", "accelerators", "tpot", "ttft", "end-to-end", "goodput", "token-cost"]


class ServingPlanDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """One plan. Bytes of the fullest GPU, seconds, tokens of answers and requests a second of all replicas,
    USD.

    `on`: what --on says for it; `prefill_replicas`: of the replicas, those that compute prompts alone; `users` and
    `users_per_replica` are null where requests come by themselves, the second too where prompts have replicas of their
    own, prices where none is known; `beats_next`: why it stands before the plan after it. `max_num_batched_tokens` and
    `max_num_seqs` are null where the engine's own hold. Replicas do not share all numbers of users evenly:
    `users_per_replica` is the mean, of which the rates are; times, and what limits them, are of
    `users_of_fullest_replica`. `usd_per_million_tokens`: of prompts and answers. `ttft_band`, `tpot_band`: seconds,
    between which nine in ten measured times lie; null where no run on such a machine is published.
    """

    on: str
    accelerators: int
    machines: int
    engine: str
    weights: str
    changes_weights: bool
    kv_cache: str | None
    tensor_parallel_size: int
    pipeline_parallel_size: int
    expert_parallel_size: int
    attention_data_parallel_size: int
    max_num_batched_tokens: int | None
    max_num_seqs: int | None
    replicas: int
    prefill_replicas: int
    users: int | None
    users_per_replica: float | None
    users_of_fullest_replica: int | None
    needed_bytes: int
    usable_bytes: int
    ttft_seconds: float
    tpot_seconds: float
    ttft_band: tuple[float, float] | None
    tpot_band: tuple[float, float] | None
    end_to_end_seconds: float
    tokens_per_second: float
    requests_per_second: float
    usd_per_hour: float | None
    usd_per_million_tokens: float | None
    beats_next: str | None


class RemovedServingDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Plans that do not keep a constraint, of those that the ones before it left. The constraint that a bound rules
    plans out by is no fault of theirs.
    """

    constraint: str
    plans: int


class NearestDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where nothing holds: the plan that does `without` an option."""

    without: str
    text: str
    plan: ServingPlanDocument | None


class ServingPlansDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `plan --serve` answers: the best plans first. `means`: the objective in words; `considered`: plans, of so
    many replica configurations, of which `removed` break a limit or could not be among the best (`skipped`: these
    alone, ruled out by bounds), and `kept` hold all: together they are all. `own_precision`: the best plan that keeps
    the checkpoint's own precision, where the first does not;
    `pareto`: null where it was not asked for; `best`: what `serve` answers for the first plan, and `command`: what
    asks it; `unpriced`: accelerators without a price, which a search for the cheapest leaves out.
    """

    question: dict[str, Entry]
    goal: ServingGoal
    means: str
    holds: bool
    considered: int
    configurations: int
    skipped: int
    kept: int
    removed: list[RemovedServingDocument]
    plans: list[ServingPlanDocument]
    own_precision: ServingPlanDocument | None
    pareto: list[ServingPlanDocument] | None
    best: AnswerDocument | None
    command: str | None
    nearest: list[NearestDocument]
    unpriced: list[str]
    warnings: list[str]

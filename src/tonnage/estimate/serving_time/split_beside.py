"""Prompts on replicas of their own, as an answer shows it beside replicas that do both."""

from math import isfinite

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.serving import SplitDocument
from tonnage.estimate.load.options import ReplicaLoad
from tonnage.estimate.serving_time.split import Side, SplitTimes, split_times
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.term import Term
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan

SOURCE = "Zhong2024, abstract: prompts and answers on different accelerators"
NAMES = {
    "ttft_seconds": ("time to the first token", "seconds"),
    "tpot_seconds": ("time of each later token", "seconds"),
    "end_to_end_seconds": ("time of a whole answer", "seconds"),
    "transfer_seconds": ("a prompt's cache on its way", "seconds"),
    "tokens_per_second": ("tokens of answers a second", "tokens/s"),
    "requests_per_second": ("requests a second", "requests/s"),
    "largest_rate": ("requests a second, at most", "requests/s"),
}


def split_figures(
    model: Model, plan: ServingPlan, cluster: Cluster, asked: ReplicaLoad, pool: int | None
) -> SplitDocument[Term]:
    """Figures of all replicas, of which `asked.prefill_replicas` compute prompts and the others answer; times are null
    where the queue grows without end.
    `pool`: tokens of cache of a replica. InvalidPlan where they cannot be dealt so."""
    number, total = int(asked.prefill_replicas or 0), int(plan.data_parallel_size)
    if not serving_runtime(plan.engine, plan.engine_version).queues:
        raise InvalidPlan(
            "{@prefill_replicas}: {engine} does not hand caches on. Nearest: vllm, sglang, tensorrt-llm.",
            engine=plan.engine,
        )
    if plan.drafting.draft_tokens:
        raise InvalidPlan(
            "{@prefill_replicas} and {@draft_tokens} together are not timed: leave one out. Got "
            "{number} and {draft_tokens}.",
            number=number,
            draft_tokens=plan.drafting.draft_tokens,
        )
    if total < 2:
        raise InvalidPlan(
            "{@prefill_replicas} needs two replicas, one of which answers: a smaller "
            "{--tensor-parallel-size}, or a larger machine. Got {total}.",
            total=total,
        )
    if number >= total:
        raise InvalidPlan(
            "{@prefill_replicas} must be from 1 to {total}, as one of the {total2} replicas has to "
            "answer. Got {number}.",
            total=total - 1,
            total2=total,
            number=number,
        )
    prompts, answers = (Side(plan, cluster, each, pool) for each in (number, total - number))
    found = split_times(model, prompts, answers, _of_all(asked))
    return SplitDocument(prefill_replicas=number, decode_replicas=total - number, **_terms(found, number))


def _of_all(asked: ReplicaLoad) -> Load:
    """The load of all replicas together."""
    load = asked.load
    if load.requests_per_second is not None:
        return replace(load, requests_per_second=load.requests_per_second * asked.busy)
    return replace(load, concurrency=(load.concurrency or 1) * asked.busy)


def _terms(found: SplitTimes, number: int) -> dict[str, Term | None]:
    made: dict[str, Term | None] = {}
    for name, (said, unit) in NAMES.items():
        value = getattr(found, "output_tokens_per_second" if name == "tokens_per_second" else name)
        made[name] = (
            Term.by(
                said,
                value,
                unit,
                basis="analytic",
                source=SOURCE,
                procedure="steady states of both kinds of replicas (estimate.inference.split)",
                version="1",
                prefill_replicas=number,
            )
            if isfinite(value)
            else None
        )
    return made

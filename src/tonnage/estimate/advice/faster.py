"""What the room that is left would carry, where that makes a step faster: the advice to a training run that fits."""

from collections import ChainMap
from collections.abc import Iterable, Iterator
from itertools import product
from math import ceil, inf
from typing import Any

from tonnage.documents.advice import ORDER, Advice
from tonnage.estimate.advice.changed_run import ChangedRun, Planned, RunChanges
from tonnage.estimate.advice.moves import can_be_said, move_of, paid
from tonnage.estimate.step_time.time import Timing
from tonnage.runtimes.parts.megatron.pipeline import against_overlap

WORTH = 0.01  # of a step's time: a move that saves less is not shown
MIN_SHARE = 0.05  # of a step's time: what takes less of it is not worked against
CHUNKS = (2, 4)  # of a pipeline stage
ROUNDS = 4  # times as many micro-batches

Change = dict[str, Any]


def faster(run: RunChanges, needed: float, usable: int) -> list[Advice]:
    """Moves that still fit and clearly save time for a sequence; of each kind the best. Where nobody knows the time:
    what takes more room.
    """
    now = run.now
    limit = inf if now.seconds_a_sequence is None else (1 - WORTH) * now.seconds_a_sequence
    remedies = _remedies(run, now.timing) if now.timing else ()
    kinds = [*_roomier(run, usable), *(_plans(run, changes) for changes in remedies)]
    candidates = [settled for plans in kinds if (settled := _best(run, plans, limit, usable))]
    if now.timing:
        candidates.sort(key=lambda settled: (ORDER.index(settled.changes), -(settled.pace() or 0)))
    costs = paid(now.pace, lambda: run.rent(run.cluster))
    return [move_of(settled, settled.changes, ceil(needed), usable, now=costs) for settled in candidates]


def _best(run: RunChanges, planned: list[Planned], limit: float, usable: int) -> ChangedRun | None:
    """The fastest plan that fits and takes less than `limit` seconds for a sequence. Times are asked first: memory
    takes longer to estimate.
    """
    if limit < inf:
        timed = [(seconds, plan) for plan in planned if (seconds := plan.seconds_a_sequence) is not None]
        planned = [plan for seconds, plan in sorted(timed, key=lambda pair: pair[0]) if seconds <= limit]
    tried = (run.settled(plan) for plan in planned)
    return next((settled for settled in tried if settled and settled.fits(usable) and can_be_said(settled)), None)


def _plans(run: RunChanges, changes: Iterable[Change]) -> list[Planned]:
    return [plan for change in changes if (plan := run.planned(change))]


def _roomier(run: RunChanges, usable: int) -> Iterator[list[Planned]]:
    """Less recomputation, larger micro-batches; what takes most room first."""
    plan = run.plan
    lighter = {"full": ("none", "selective"), "selective": ("none",)}.get(plan.recompute, ())
    yield _plans(run, ({"recompute": policy} for policy in lighter))
    yield _larger_batches(run, usable)


def _larger_batches(run: RunChanges, usable: int) -> list[Planned]:
    """Those that fit, the largest first. Beyond a batch that takes longer for a sequence than the one before it,
    larger ones do too, and beyond one that does not fit none does.
    """
    plans: list[Planned] = []
    before = run.now.seconds_a_sequence
    for factor in (2, 4, 8, 16):
        planned = run.planned({"micro_batch_size": run.plan.micro_batch_size * factor})
        settled = run.settled(planned) if planned else None
        if planned is None or settled is None or not settled.fits(usable):
            break
        seconds = planned.seconds_a_sequence
        if before is not None and (seconds is None or seconds >= before):
            break
        before = seconds
        plans.insert(0, planned)
    return plans


def _remedies(run: RunChanges, timing: Timing) -> Iterator[list[Change]]:
    """Against what the step waits for: a pipeline that stands empty, links between ranks."""
    plan, step = run.plan, float(timing.seconds)
    waits = {name for name, seconds in timing.spent.items() if float(seconds) > MIN_SHARE * step}
    chunks = _chunks(run)
    if "pipeline bubble" in waits:
        yield chunks
        yield [{"pipeline_parallel_size": plan.pipeline_parallel_size // 2}]
        yield [{"micro_batch_size": plan.micro_batch_size // cut} for cut in (2, 4) if plan.micro_batch_size % cut == 0]
        if run.options.global_batch_size is None:
            yield [{"num_microbatches": plan.num_microbatches * ROUNDS}]
    overlaps = "overlap_moe_expert_parallel_comm" in run.runtime.options
    if "links, expert parallel" in waits and overlaps and not plan.megatron.overlap_moe_expert_parallel_comm:
        without: dict[str, list[Change]] = {
            "recompute": [{"recompute": policy} for policy in ("none", "selective")],
            "virtual_pipeline_size": chunks,
        }
        combinations = product(*(without[name] for name in against_overlap(plan)))
        yield [dict(ChainMap({"overlap_moe_expert_parallel_comm": True}, *remedies)) for remedies in combinations]
    if "links, tensor parallel" in waits:
        yield [{"tensor_parallel_size": plan.tensor_parallel_size // 2}]


def _chunks(run: RunChanges) -> list[Change]:
    """The stages of a plain pipeline cut into chunks, where the runtime can."""
    plan = run.plan
    plain = plan.pipeline_schedule == "1f1b" and plan.virtual_pipeline_size == 1 and plan.pipeline_parallel_size > 1
    return (
        [{"virtual_pipeline_size": count} for count in CHUNKS]
        if plain and "interleaved-1f1b" in run.runtime.schedules
        else []
    )

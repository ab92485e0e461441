"""Fixes with numbers: what the estimate of the run advises, in the flags of its tool, the most bytes for the least time
first.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tonnage.documents.advice import ORDER, Advice
from tonnage.documents.interchange.diagnose import Cause, EstimateDocument, FixDocument
from tonnage.interchange.diagnose.fixes.flags import FLAGS, flag_of
from tonnage.kernel.message import Message, joined

if TYPE_CHECKING:
    from tonnage.estimate.answer.form import Answer

MOST = 4
LEAST_TIME = 0.01  # a part of a token's time: what takes no more is counted as this
# Causes that the estimate of an accelerator's memory knows nothing of.
NOT_ESTIMATED: frozenset[Cause] = frozenset({"host memory", "shared memory", "another process"})
# Options of ours that tools have no setting for: they follow from the others, or from the number of GPUs.
FOLLOWING = frozenset({"runtime", "engine", "data_parallel_size", "num_microbatches", "upcast_base", "loss"})


def estimate_of(answer: "Answer") -> EstimateDocument:
    """What the run needs."""
    return EstimateDocument(
        needed_bytes=int(answer.needed_bytes),
        usable_bytes=int(answer.usable_bytes),
        band=answer.band,
        fits=answer.fits,
        seconds=_seconds_of(answer),
    )


def fixes_by_estimate(answer: "Answer", tool: str) -> list[FixDocument]:
    """The changes with which the run fits; nothing where it fits as it is by the estimate."""
    moves = [move for move in answer.advice if move.fits and move.freed_bytes > 0]
    moves.sort(key=lambda move: (ORDER.index(move.changes), -_freed_for_time(move)))
    return [_fix(move, tool) for move in moves[:MOST]]


def _freed_for_time(move: Advice) -> float:
    """Bytes for each part of a token's time that is paid for them."""
    return move.freed_bytes / max(_number(move.time_change), LEAST_TIME)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0


def in_words_of(tool: str, change: Mapping[str, Any]) -> tuple[str, bool]:
    """A change in the flags of a tool, in options of ours where it has none; and whether all are the tool's."""
    texts = dict(option_in_words_of(tool, name, value) for name, value in change.items())
    if len(texts) > 1:
        texts.pop("", None)
    return joined("  ", texts), all(texts.values())


def _fix(move: Advice, tool: str) -> FixDocument:
    text, in_flags = in_words_of(tool, move.change)
    return FixDocument(
        text=text,
        in_flags=in_flags,
        changes=move.changes,
        basis="estimated",
        change=dict(move.change),
        needed_bytes=move.needed_bytes,
        freed_bytes=move.freed_bytes,
        seconds=_seconds(move),
        time_change=_number(move.time_change) if move.time_change else None,
    )


def option_in_words_of(tool: str, name: str, value: Any) -> tuple[str, bool]:
    """One option in the tool's flag, as an option of ours where it has none, "" of what follows from the others; and
    whether it is one of the tool's.
    """
    if name == "on":
        return Message("on {machine}", machine=value), True
    flag = flag_of(tool, name, value) if value is not False else None
    if flag is not None:
        return flag, True
    if name in FOLLOWING or (name == "base_weights" and tool not in FLAGS):
        return "", True
    ours = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{ours}" if value else f"--no-{ours}", False
    return f"--{ours} {value}", False


def _seconds(move: Advice) -> float | None:
    return next((s for s in (move.step_seconds, move.tpot_seconds) if isinstance(s, int | float)), None)


def _seconds_of(answer: "Answer") -> float | None:
    if answer.step_time is not None:
        return float(answer.step_time.value)
    tpot = answer.serving.tpot_seconds
    return float(tpot.value) if tpot else None


def logits_of(tried: float, vocabulary: int, question: Mapping[str, Any]) -> tuple[int, int] | None:
    """Tokens and bytes an entry of logits that have as many bytes as could not be allocated; None where no whole
    micro-batch of the run has.
    """
    sequence = int(question.get("sequence_length") or 0)
    rows = int(question.get("micro_batch_size") or 0) or 1
    shards = int(question.get("tensor_parallel_size") or 1), int(question.get("context_parallel_size") or 1)
    for shard in {1, shards[0]}:
        for tokens in {rows * sequence, rows * sequence // shards[1], rows * (sequence - 1)}:
            for width in (4, 2):
                size = tokens * vocabulary * width / shard
                if tokens > 0 and abs(size - tried) <= max(0.006 * tried, 2**21):
                    return tokens, width
    return None

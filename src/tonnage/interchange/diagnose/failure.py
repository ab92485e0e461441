"""The failure of a log: which of its lines tells it best, in which phase, of which cause, with which numbers."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from tonnage.documents.interchange.diagnose import Cause, Phase
from tonnage.interchange.diagnose.log import Log
from tonnage.interchange.diagnose.numbers import Number
from tonnage.interchange.diagnose.patterns import FAILED, FILLS, FOLLOWS, SAYS_CAUSE, Hit, hits
from tonnage.interchange.diagnose.phases import cause_of, phase_of, traceback_of
from tonnage.interchange.diagnose.readers import facts, failures, pytorch
from tonnage.interchange.diagnose.tools import SERVE, Tool, tool_of
from tonnage.kernel.units import GIB, MIB

NEAR = 400  # lines between a failure and the message of the allocator that has its numbers
RETRIES = 6  # lines below a failure in which a program says that it tries again
OTHERS_SHARE, UNSEEN_SHARE = 0.1, 0.15  # of a GPU: what other processes hold, seen and unseen, from which on they count
MOST_CONTEXT = 2 * GIB  # of CUDA, NCCL and libraries, which no message of PyTorch lists
MOST_EVIDENCE = 12
ENGINES_OWN = ("tensorrt-llm",)  # allocate most of their memory outside PyTorch


class Failure(Struct, frozen=True, kw_only=True, dict=True):
    """Where and why memory ran out. `certain`: whether the log says so itself, or only that a process was killed."""

    tool: Tool
    phase: Phase
    cause: Cause
    grows: Cause
    hit: Hit
    frames: str
    numbers: tuple[Number, ...]
    evidence: tuple[Hit, ...]
    ranks: tuple[str, ...]
    is_certain: bool

    @cached_property
    def values(self) -> Mapping[str, float]:
        """The numbers by name; of several the first."""
        by_name: dict[str, float] = {}
        for number in self.numbers:
            by_name.setdefault(number.name, number.value)
        return by_name


def failure_of(log: Log) -> Failure | None:
    """The failure; None where no line says that memory ran out."""
    candidates = sorted(hits(log, failures()), key=lambda hit: (hit.index, -hit.pattern.strength))
    main = _main(log, [hit for hit in candidates if hit.pattern.strength > FILLS])
    if main is None:
        return None
    matches = [_with_message(log, hit) for hit in candidates]
    main = _with_message(log, main)
    frames = "\n".join(line.text for line in traceback_of(log, main.index, main.line.rank))
    tool = tool_of(log, main.pattern.tool, frames)
    phase = _phase(log, main, matches, frames, tool)
    numbers = (*_own_numbers(main, matches), *_facts(log, main))
    values: dict[str, float] = {}
    for number in numbers:
        values.setdefault(number.name, number.value)
    grows = _grows(main, matches, phase, frames)
    cause = _cause(main, tool, values, grows)
    return Failure(
        tool=tool,
        phase=phase,
        cause=cause,
        grows=grows,
        hit=main,
        frames=frames,
        numbers=_without_repeats(numbers),
        evidence=_evidence(log, main, matches),
        ranks=_ranks(matches),
        is_certain=main.pattern.strength > FOLLOWS,
    )


def _ranks(matches: Sequence[Hit]) -> tuple[str, ...]:
    """The ranks whose memory ran out."""
    return tuple(
        sorted({hit.line.rank for hit in matches if hit.line.rank and hit.pattern.strength >= FAILED}, key=_order)
    )


def _order(rank: str) -> tuple[int, str]:
    digits = "".join(character for character in rank if character.isdecimal())
    return int(digits[:9] or 0), rank


def _main(log: Log, candidates: Sequence[Hit]) -> Hit | None:
    """The first line that says that an allocation failed; of a failure that leaves its cause open, a later line about
    the same memory that says it.
    """
    lasting = [hit for hit in candidates if not _is_tried_again(log, hit)] or candidates
    certain = [hit for hit in lasting if hit.pattern.strength >= FAILED]
    if not certain:
        telling = [hit for hit in lasting if hit.pattern.phase is not None]
        return next(iter(telling or lasting), None)
    first = certain[0]
    if first.pattern.strength == SAYS_CAUSE:
        return first
    return next(
        (
            hit
            for hit in certain
            if hit.pattern.strength == SAYS_CAUSE
            and hit.pattern.host == first.pattern.host
            and hit.pattern.phase != "communication"
            and hit.index - first.index <= NEAR
        ),
        first,
    )


def _is_tried_again(log: Log, hit: Hit) -> bool:
    return any("retrying" in line.text for line in log.after(hit.index, hit.line.rank, RETRIES))


def _with_message(log: Log, hit: Hit) -> Hit:
    """With the numbers of an allocator's message, which may go over several lines."""
    if hit.pattern.tool != pytorch.PYTORCH or hit.numbers:
        return hit
    text = pytorch.message(log, hit)
    return replace(hit, numbers=tuple(pytorch.numbers(text, hit.line.number)))


def _phase(log: Log, main: Hit, matches: Sequence[Hit], frames: str, tool: Tool) -> Phase:
    if main.pattern.phase is not None:
        return main.pattern.phase
    phase_of_frames = phase_of(f"{frames}\n{main.line.text}", log, main.index, tool.verb == SERVE)
    if phase_of_frames not in ("unknown", "forward", "serving"):
        return phase_of_frames
    nearby = (hit.pattern.phase for hit in matches if hit.pattern.phase and abs(hit.index - main.index) <= NEAR)
    return next((phase for phase in nearby if phase != "host"), phase_of_frames)


def _grows(main: Hit, matches: Sequence[Hit], phase: Phase, frames: str) -> Cause:
    """What grows in the phase."""
    if main.pattern.cause is not None:
        return main.pattern.cause
    if phase in ("loading weights", "cache allocation", "graph capture"):
        return cause_of(phase, frames)
    nearby = (
        hit.pattern.cause
        for hit in matches
        if hit.pattern.cause and hit.pattern.phase == phase and abs(hit.index - main.index) <= NEAR
    )
    return next(nearby, cause_of(phase, frames))


def _cause(main: Hit, tool: Tool, values: Mapping[str, float], grows: Cause) -> Cause:
    """The cause: what other processes hold, or what is free in pieces, before what grows."""
    if main.pattern.host or main.pattern.strength == SAYS_CAUSE:
        return grows
    tried = values.get("tried", 0.0)
    total, free = values.get("total", 0.0), values.get("free", 0.0)
    counts_pytorch = tool.name not in ENGINES_OWN or "in_use_by_this_process" in values
    if total and counts_pytorch and _held_by_others(values, total, free) and tried <= total:
        return "another process"
    in_pieces = values.get("reserved_but_unallocated", max(values.get("reserved", 0) - values.get("allocated", 0), 0))
    if tried and in_pieces >= max(tried, 512 * MIB) and free < tried:
        return "fragmentation"
    return grows


def _held_by_others(values: Mapping[str, float], total: float, free: float) -> bool:
    listed = values.get("in_use_by_other_processes", 0.0)
    if listed:
        return listed >= max(OTHERS_SHARE * total, GIB / 2)
    if "in_use_by_this_process" in values:
        unseen = total - free - values["in_use_by_this_process"]
        return unseen >= max(OTHERS_SHARE * total, GIB)
    if "allocated" not in values or "free" not in values:
        return False
    own = values.get("reserved", values["allocated"] + values.get("reserved_but_unallocated", 0.0))
    return total - free - own >= max(UNSEEN_SHARE * total, MOST_CONTEXT)


def _own_numbers(main: Hit, matches: Sequence[Hit]) -> list[Number]:
    """Those of the failure, and of the allocator's message that is nearest to it."""
    near = [hit for hit in matches if hit.numbers and hit is not main and abs(hit.index - main.index) <= NEAR]
    near = [hit for hit in near if hit.line.rank == main.line.rank and hit.pattern.host == main.pattern.host]
    near.sort(key=lambda hit: abs(hit.index - main.index))
    nearest = near[0].numbers if near else ()
    return [*main.numbers, *nearest]


def _facts(log: Log, main: Hit) -> list[Number]:
    """What other lines tell of memory: of each number the last above the failure, else the first below it."""
    before: dict[str, Number] = {}
    after: dict[str, Number] = {}
    for hit in sorted(hits(log, facts()), key=lambda hit: hit.index):
        for number in hit.numbers:
            if hit.index <= main.index:
                before[number.name] = number
            else:
                after.setdefault(number.name, number)
    return [*before.values(), *(number for name, number in after.items() if name not in before)]


def _without_repeats(numbers: Iterable[Number]) -> tuple[Number, ...]:
    by_name: dict[str, Number] = {}
    for number in numbers:
        by_name.setdefault(number.name, number)
    return tuple(by_name.values())


def _evidence(log: Log, main: Hit, matches: Sequence[Hit]) -> tuple[Hit, ...]:
    """The line of the failure first, then others that say so, then lines that have numbers, without repeats."""
    lines: dict[int, Hit] = {main.index: main}
    seen = {main.line.text}
    others = [hit for hit in matches if hit.pattern.strength > FILLS and hit.line.rank in ("", main.line.rank)]
    with_numbers = sorted(hits(log, facts()), key=lambda hit: abs(hit.index - main.index))
    for hit in (*others, *with_numbers):
        if hit.index not in lines and hit.line.text not in seen and len(lines) < MOST_EVIDENCE:
            lines[hit.index] = hit
            seen.add(hit.line.text)
    return tuple(lines.values())

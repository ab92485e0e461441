"""The answer of `tonnage trace`: stages, peak, allocations at the peak, the least capacity, and the method."""

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from tonnage.documents.document import builtins
from tonnage.documents.question import Entry
from tonnage.documents.trace import StageDocument, TraceDocument, TraceVerdict
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.trace.allocator import Settings
from tonnage.trace.events import Category
from tonnage.trace.profiles import profile
from tonnage.trace.recording import Recording
from tonnage.trace.replay import Replay, least_capacity, replay
from tonnage.trace.timeline import Share, Timeline, by_category, by_module, timeline

SOURCE = "PyTorch, c10/cuda/CUDACachingAllocator.cpp"
METHOD = "replay of recorded allocations through a model of PyTorch's caching allocator"
_NAMES: dict[Category, str] = {
    "parameter": "weights",
    "gradient": "gradients",
    "optimizer": "optimizer",
    "activation": "activations",
    "temporary": "temporary",
    "buffer": "buffers and workspaces",
}


class TraceAnswer(Struct, frozen=True, kw_only=True):
    """`replayed`: with the requested capacity, if any; `least_capacity_bytes`: the smallest memory in which the
    program runs.
    """

    recording: Recording
    replayed: Replay
    settings: Settings
    capacity_bytes: int | None
    outside_bytes: int
    least_capacity_bytes: int
    memory: Term
    modules: tuple[Share, ...]
    line: Timeline
    question: dict[str, Entry]

    @property
    def fits(self) -> bool | None:
        return None if self.capacity_bytes is None else self.replayed.failure is None

    @property
    def status(self) -> int:
        """0 if it runs, or no capacity was given; 3 if it runs out of memory."""
        return 3 if self.fits is False else 0

    @property
    def document(self) -> TraceDocument:
        """The document for all faces."""
        run, recording = self.replayed, self.recording
        return TraceDocument(
            question=self.question,
            verdict=TraceVerdict(
                fits=self.fits,
                needed_bytes=self.least_capacity_bytes + self.outside_bytes,
                usable_bytes=self.capacity_bytes,
                band=None,
                peak_allocated_bytes=run.peak_allocated_bytes,
                peak_reserved_bytes=run.peak_reserved_bytes,
                retries=run.retries,
                failure=None if run.failure is None else builtins(run.failure),
            ),
            stages=[StageDocument(**asdict(stage)) for stage in run.stages],
            memory=self.memory.document,
            modules=[builtins(share) for share in self.modules],
            timeline=builtins(self.line),
            overlays=[builtins(overlay) for overlay in recording.overlays],
            answers=[builtins(question) for question in recording.answers],
            attention=dict(recording.attention),
            unmodelled=dict(recording.unmodelled),
            warnings=list(recording.notes),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)


def answer(
    recording: Recording,
    settings: Settings | None = None,
    *,
    capacity: int | None = None,
    total: int | None = None,
    outside: int = 0,
    points: int = 2000,
    modules: int = 40,
) -> TraceAnswer:
    """Replay a recording. `capacity`, `total`, `outside`: see `replay`; `points` of the timeline; `modules`: how many
    of those that hold most at the peak.
    """
    settings = settings or Settings()
    chosen = profile(recording.profile)
    events = recording.events
    free = replay(events, settings, torch=chosen.torch)
    run = (
        free
        if capacity is None
        else replay(events, settings, capacity=capacity, total=total, outside=outside, torch=chosen.torch)
    )
    at = run.peak_position if run.failure is None else run.failure.position
    alive = events.live_at(at)
    question = {
        "program": Entry(recording.program, "given"),
        "profile": Entry(
            chosen.name, "given", Message("inferred: {inferred}", inferred=chosen.inferred) if chosen.inferred else ""
        ),
        "front_end": Entry(recording.front_end, "default"),
        "torch": Entry(recording.torch, "runtime", "what recorded it"),
        "events": Entry(len(events), "runtime"),
        "operations": Entry(recording.operations, "runtime"),
        "allocator": Entry(builtins(settings), "given" if settings != Settings() else "default"),
    }
    return TraceAnswer(
        recording=recording,
        replayed=run,
        settings=settings,
        capacity_bytes=capacity,
        outside_bytes=outside,
        least_capacity_bytes=least_capacity(events, settings),
        memory=_memory(recording, run, alive),
        modules=tuple(by_module(events, alive)[:modules]),
        line=timeline(events, points),
        question=question,
    )


def _memory(recording: Recording, run: Replay, alive: list[int]) -> Term:
    """Reserved bytes at the peak: tensors by category, rounding of blocks, and reserved bytes that are not
    allocated.
    """

    def part(name: str, size: int) -> Term:
        return Term.by(
            name,
            size,
            "bytes",
            basis="traced",
            source=SOURCE,
            procedure=METHOD,
            version=recording.torch,
            profile=recording.profile,
            front_end=recording.front_end,
        )

    held = by_category(recording.events, alive)
    requested = sum(held.values())
    failure = run.failure
    allocated = run.peak_allocated_bytes if failure is None else failure.allocated_bytes
    reserved = run.peak_reserved_bytes if failure is None else failure.reserved_bytes
    return Term.sum(
        "memory reserved at the peak",
        *(part(_NAMES[category], size) for category, size in held.items()),
        part("rounding of blocks", max(allocated - requested, 0)),
        part("reserved and not allocated", max(reserved - allocated, 0)),
    )

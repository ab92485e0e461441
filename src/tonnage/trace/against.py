"""Compares a traced program with the analytic estimate of it: term by term, stage by stage."""

from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.catalogue import cluster
from tonnage.estimate.answer.training import train
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.encoding import builtins
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.term import Term
from tonnage.trace.answer import TraceAnswer
from tonnage.trace.events import Category, Events
from tonnage.trace.request import TraceOptions
from tonnage.trace.timeline import by_category

# The analytic estimate's parts, and the matching categories of a trace.
PARTS: dict[str, tuple[Category, ...]] = {
    "weights": ("parameter",), "gradients": ("gradient",), "optimizer": ("optimizer",), "activations": ("activation",),
    "temporary": ("temporary",), "communication buffers": ("buffer",),
}  # fmt: skip
ATTENTION = {"eager": "eager", "flash_attention_2": "flash", "sdpa": "sdpa"}
STAGES = ("After backward", "After optimizer step")


def stage_of(phase: str) -> str:
    """The stage of a trace that contains a phase of the estimate."""
    return STAGES[phase == "optimizer step"]


class Row(Struct, frozen=True):
    """One part at the peak of a stage: traced and analytic bytes."""

    stage: str
    part: str
    traced_bytes: int
    analytic_bytes: int

    @property
    def difference(self) -> int:
        return self.analytic_bytes - self.traced_bytes


class Comparison(Struct, frozen=True, kw_only=True):
    """`rows`: the parts at each stage's peak; the totals are of tensors only, without context, NCCL buffers and
    reserve.
    """

    rows: tuple[Row, ...]
    traced_bytes: int
    analytic_bytes: int

    @property
    def relative_error(self) -> float:
        return self.analytic_bytes / self.traced_bytes - 1 if self.traced_bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": [{**builtins(row), "difference_bytes": row.difference} for row in self.rows],
            "traced_bytes": self.traced_bytes,
            "analytic_bytes": self.analytic_bytes,
            "relative_error": self.relative_error,
        }


def compare(traced: TraceAnswer, phases: tuple[Term, ...]) -> Comparison:
    """Compare the traced program's last step with the phases of an analytic answer."""
    events = traced.recording.events
    peaks = {stage: peak_of(events, stage) for stage in STAGES}
    rows = []
    for stage, parts in peaks.items():
        fullest = max((phase for phase in phases if stage_of(phase.name) == stage), key=_tensors, default=None)
        for part, categories in PARTS.items():
            value = round(_part(fullest, part)) if fullest is not None else 0
            rows.append(Row(stage, part, sum(parts.get(category, 0) for category in categories), value))
    return Comparison(
        rows=tuple(rows),
        traced_bytes=max(sum(parts.values()) for parts in peaks.values()),
        analytic_bytes=round(max(map(_tensors, phases))),
    )


def analytic_phases(model: Model, options: TraceOptions, accelerator: str = "H100-SXM-80GB") -> tuple[Term, ...]:
    """The phases of the analytic estimate of the same program. Raises MissingDatum where there is no such estimate."""
    if options.mode != "train" or options.num_layers is not None:
        raise MissingDatum("the analytic estimate is of training whole models: no fewer layers, no generation.")
    world = options.world_size or 1
    estimate = train(
        model,
        cluster(accelerator if world == 1 else f"{world}x{accelerator}"),
        TrainingOptions(
            sequence_length=options.sequence_length,
            micro_batch_size=options.micro_batch_size,
            num_microbatches=options.num_microbatches,
            precision=options.precision,
            optimizer=options.optimizer,
            recompute=options.recompute,
            runtime={"single": "transformers"}.get(options.runtime or "single", options.runtime),
            tensor_parallel_size=options.tensor_parallel_size,
            attention=ATTENTION.get(options.attention or ""),
            model_code="transformers",
            method="lora" if options.lora_rank else None,
            lora_rank=options.lora_rank,
            base_weights=options.base,
            upcast_base=options.upcast_base if options.base is not None else None,
            optimizer_implementation=_implementation(options),
        ),
    )
    return estimate.phases


def _tensors(phase: Term) -> float:
    return sum(_part(phase, part) for part in PARTS)


def _part(phase: Term, part: str) -> float:
    """A part of a phase. The workspaces of cuBLAS, which the estimate counts as the runtime's overhead, count as
    buffers, as in the trace.
    """
    size = float(phase.child(part).value)
    if part == "communication buffers":
        size += sum(float(term.value) for term in phase.child("runtime overhead").children if "workspace" in term.name)
    return size


def peak_of(events: Events, stage: str) -> dict[Category, int]:
    """Bytes by category at the peak of the last stage whose name begins with `stage`."""
    stages = [i for i, mark in enumerate(events.marks) if mark.name.startswith(stage)]
    if not stages:
        return {}
    start = events.marks[stages[-1] - 1].position if stages[-1] else 0
    end = events.marks[stages[-1]].position
    now = best = 0
    at = start
    for position, event in enumerate(events.order[:end], 1):
        now += events.allocations[event].bytes if event >= 0 else -events.allocations[~event].bytes
        if position > start and now > best:
            best, at = now, position
    return by_category(events, events.live_at(at))


def _implementation(options: TraceOptions) -> str:
    """The optimizer implementation: "default" means foreach in torch; other libraries have only one."""
    chosen = options.optimizer_implementation
    return {"default": "foreach", "loop": "for-loop"}.get(chosen, chosen)

"""Seconds of one kernel: a roofline whose ceilings are measured shares of the datasheet's peaks.

All numbers may be arrays.
"""

from typing import TYPE_CHECKING

from tonnage.estimate._rates import Rates
from tonnage.formula import Number, maximum, minimum
from tonnage.spec import Accelerator
from tonnage.tape import Work

if TYPE_CHECKING:
    from tonnage.estimate.training import Step


class KernelTime:
    """Seconds of the work of one layer on one rank."""

    def __init__(self, step: "Step", rates: Rates):
        assert step.cluster is not None
        self.step, self.rates, self.sizes = step, rates, step.sizes
        chip = step.cluster.accelerator
        self.chip = chip
        self.generation = rates.of(chip.generation)
        self.bandwidth = (chip.memory.bytes_per_second or 0) * self.generation.memory
        self.peak16 = chip.peak("bf16") if "bf16" in chip.dense_flops else chip.peak("fp16")
        self.compiled = step.plan.compile
        self.quantised = getattr(step, "low", "") or _peak_of(step)
        self.graphs = getattr(step, "graphs", "")
        mixture = next((op for block in step.layers for op in block.ops if getattr(op, "num_experts", 0)), None)
        self.experts = mixture.num_experts / step.plan.expert_parallel_size if mixture is not None else 1  # type: ignore[attr-defined]
        self.tokens = step.sizes.s * step.sizes.b / step.sizes.c

    def seconds(self, work: Work, window: int | None) -> Number:
        """Of a kernel; 0 for an exchange."""
        if work.kind == "move":
            return self.moved(work) / self.bandwidth + self.rates.launch
        if work.kind == "attention":
            return self._attention(work, window)
        if work.kind == "scan":
            return work.flops * self.sizes.factor(work.per) / (self.peak16 * self.rates.scan)
        if work.kind in ("product", "experts"):
            return self._product(work)
        return 0

    def moved(self, work: Work) -> Number:
        """Bytes read and written."""
        total: Number = 0
        for extent, size in work.bytes.items():
            total = total + size * self.sizes.factor(extent)
        return total

    def peak(self, work: Work) -> tuple[float, float]:
        """FLOP/s that the datasheet gives, and the share of it that large products reach."""
        if work.quantised and self.quantised in self.chip.dense_flops:
            return self.chip.peak(self.quantised), self.generation.share(self.quantised)
        return self.peak16, self.generation.share("bf16")

    def _product(self, work: Work) -> Number:
        flops = work.flops * self.sizes.factor(work.per)
        peak, share = self.peak(work)
        r = self.rates
        # rows, columns and depth of the product on this rank
        cut = self.sizes.t if work.per.split == "tensor" else (self.sizes.shares.q if work.per.unit == "row" else 1)
        inner = work.inner / (cut if work.cut == "inner" else 1)
        outer = work.outer / (cut if work.cut == "outer" else 1)
        rows = self.rows(work)
        # half of the peak is lost where a side is as long as `half` (pipelines of a tile's products fill and drain)
        share = share / (1 + r.half_inner / inner) / (1 + r.half_side / outer) / (1 + r.half_side / rows)
        if work.kind == "experts":
            share = share * self.generation.experts * (self.rates.newer_experts if getattr(self.step, "newer", False) else 1)
        seconds = maximum(flops / (peak * share), self.moved(work) / self.bandwidth) + r.launch
        if work.quantised and self.quantised:
            cast = {extent: size for extent, size in work.bytes.items() if extent.unit != "parameter"}
            seconds = seconds + r.cast * sum(size * self.sizes.factor(extent) for extent, size in cast.items()) / self.bandwidth
        return seconds

    def rows(self, work: Work) -> Number:
        """Rows of one product; of experts the mean."""
        if work.kind == "experts":
            experts = self.experts
            rows = self.sizes.rows if work.per.unit == "row" else self.tokens * work.copies
            return maximum(rows / experts, 1)
        return self.tokens / (self.sizes.t if work.per.split == "whole" and self.sizes.sequence_parallel else 1)

    def _attention(self, work: Work, window: int | None) -> Number:
        flops = work.flops * self.sizes.factor(work.per)
        eager = "of all pairs" in work.name
        s = self.sizes.s
        if not eager:
            seen = (s + 1) / 2 if window is None else minimum(s, window) - minimum(s, window) * (minimum(s, window) - 1) / (2 * s)
            flops = flops * seen / s
        share = self.generation.attention * (self.generation.attention_backward if work.when == "backward" else 1)
        if eager:
            share = self.generation.share("bf16")
        return maximum(flops / (self.peak16 * share), self.moved(work) / self.bandwidth) + self.rates.launch


def _peak_of(step: "Step") -> str:
    """What products of narrow operands are multiplied in; "": there are none."""
    if step.recipe.compute in ("fp8", "fp4"):
        return step.recipe.compute
    return "fp8" if step.plan.float8 != "none" else ""

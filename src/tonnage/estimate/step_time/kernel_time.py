"""Seconds of kernels: arithmetic and bytes at shares of the datasheet's peaks. All numbers may be arrays.

What a product reads and writes comes on top of its arithmetic: so the kernels that SimuMax measured on a B200 say of
dense and grouped products from 128 to 65,536 rows, and so does the fit (docs/decisions/0014-what-a-product-takes.md).
"""

from tonnage.estimate.frameworks.base import prefers_cudnn
from tonnage.estimate.hardware.rates import Rates
from tonnage.estimate.hardware.routing import routing_of
from tonnage.estimate.memory import Step
from tonnage.estimate.step_time.casts import CASTS, cast_seconds, product_share
from tonnage.formulas.flops import causal_attention_flops, full_attention_flops, windowed_attention_flops
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number, maximum, minimum
from tonnage.tape import Work

NARROW = ("fp8", "fp4")
# Where a data-centre chip has a fraction of the arithmetic and most of the power, products are not bound by
# power.
# Of an H20's 148 TFLOP/s in 16 bit: FlashMLA 130 (deepseek-ai/FlashMLA, issue 30), cuDNN's attention and
# FlashAttention-3 forward 129 and 126, FlashAttention-2 84 (Dao-AILab/flash-attention, issue 1310).
UNBOUND_WATTS = 2.0  # times the watts for a TFLOP/s of those that made the generation's shares
UNBOUND, UNBOUND_ATTENTION, UNBOUND_FLASH2 = 0.88, 0.87, 0.57
WIDTH = 2  # bytes of a number of an operand before it is cast
KINDS = {
    "product": "matrix products",
    "experts": "products of experts",
    "attention": "attention",
    "scan": "recurrences",
    "move": "reads and writes",
}


class KernelTime:
    """Seconds of the work of one rank."""

    def __init__(self, step: Step, rates: Rates):
        assert step.cluster is not None
        self.sizes, self.rates = step.sizes, rates
        self.chip = step.cluster.accelerator
        self.shares, self.is_measured = rates.of(self.chip.generation)
        if self.chip.memory.bytes_per_second is None:
            raise MissingDatum(
                "no source gives the memory bandwidth of {chip}: the time of a step needs it.", chip=self.chip.name
            )
        self.bandwidth = self.chip.memory.bytes_per_second * rates.memory
        self.wide = _wide_peak(step)
        self.narrow = _narrow_peak(step)
        kernels = step.plan.kernels
        self.casts, self.gathers_narrow = CASTS.get(kernels.float8), kernels.float8_all_gather
        mixture = next((op for block in step.layers for op in block.ops if getattr(op, "num_experts", 0)), None)
        ranks = step.plan.expert_parallel_size
        self.experts = mixture.num_experts / ranks if mixture is not None else 1  # type: ignore[attr-defined]
        self.routing = routing_of(
            step.model.config,
            mixture.num_experts if mixture is not None else 1,  # type: ignore[attr-defined]
            mixture.top_k if mixture is not None else 1,  # type: ignore[attr-defined]
            in_turn=step.plan.imbalance.experts_in_turn,
        )
        self.attended = step.plan.attended_length
        self.tokens = self.sizes.s * self.sizes.b / self.sizes.c
        self.around_experts = rates.fused_experts if step.framework.fuses_experts else 1
        # a product reads its weights in 16 bit; the gradient of the weights is added to main gradients, which are read
        # and written
        self.accumulated = step.framework.accumulated_bytes
        self.is_unbound = self.chip.memory.kind.startswith("HBM") and rates.watts_over(self.chip) > UNBOUND_WATTS
        self.machine = self._machine(step)
        self.clock = self._clock(step)
        self.attention_share = self._attention_share(step)

    def seconds(self, work: Work, window: int | None) -> tuple[Number, Number, Number]:
        """Seconds of one kernel, with its FLOP and the bytes that it moves; nothing of an exchange."""
        moved, of_unit = self._moved(work, "row" if work.kind == "move" else "parameter")
        if work.kind == "move":
            slow = self.rates.memory / self.rates.row_moves * self.around_experts
            return (moved + (slow - 1) * of_unit) / self.bandwidth + work.kernels * self.rates.launch, 0, moved
        flops = work.flops * self.sizes.factor(work.per)
        if work.kind == "scan":
            return self._scan(work, flops), flops, moved
        if work.kind == "attention":
            flops, rate = self._attention(work, flops, window)
            return maximum(flops / rate, moved / self.bandwidth) + self.rates.launch, flops, moved
        all_bytes = moved + self.accumulated * of_unit if work.wgrad else moved
        seconds = flops / self._product(work) + all_bytes / self.bandwidth + self.rates.launch
        if self.is_narrow(work):
            seconds = seconds + self._casts(work, moved, of_unit)
        return seconds, flops, all_bytes

    def _casts(self, work: Work, moved: Number, of_weights: Number) -> Number:
        """Seconds in which the operands of a product are cast; `moved`: bytes of operands, result and weights."""
        if self.casts is None:
            passes = self.rates.cast * (self.around_experts if work.kind == "experts" else 1)
            return passes * (moved - of_weights) / self.bandwidth
        return cast_seconds(
            self.casts,
            (moved - of_weights) / WIDTH,
            of_weights / WIDTH,
            when=work.when,
            wgrad=work.wgrad,
            gathered=self.gathers_narrow,
            peak=self.bandwidth / self.rates.memory,
            share=self.rates.memory,
        )

    def moved(self, work: Work) -> Number:
        """Bytes read and written."""
        return self._moved(work, "")[0]

    def _moved(self, work: Work, unit: str) -> tuple[Number, Number]:
        """Bytes read and written, and of them those that grow with this unit alone."""
        total: Number = 0
        part: Number = 0
        for extent, size in work.bytes.items():
            moved = size * self.sizes.factor(extent)
            total = total + moved
            if extent.unit == unit:
                part = part + moved
        return total, part

    def is_narrow(self, work: Work) -> bool:
        """Whether a product is multiplied in fewer than 16 bit here."""
        return work.quantised and self.narrow in self.chip.dense_flops

    def _product(self, work: Work) -> Number:
        """FLOP/s of a product: a short side leaves tiles half empty."""
        name = self.narrow if self.is_narrow(work) else self.wide
        rows, outer = self._shape(work)
        kind = "bf16" if name == self.wide else name
        share = self.shares.matrix.get(kind, self.shares.matrix["bf16"])
        if kind != "bf16" and self.casts is not None and self.chip.generation.startswith("Blackwell"):
            share = product_share(self.casts, work.wgrad, self.shares.matrix["bf16"])
        share = max(share, UNBOUND) if self.is_unbound else share
        sides = (1 + self.rates.half_side / outer) * (1 + self.rates.half_side / rows)
        return self.chip.peak(name) * share * self.machine * self.clock / sides

    def _shape(self, work: Work) -> tuple[Number, Number]:
        """Rows and columns of a product on this rank; of experts the mean of their rows."""
        sizes = self.sizes
        cut = sizes.t if work.per.split == "tensor" else sizes.shares.q if work.per.unit == "row" else 1
        outer = work.outer / cut if work.is_cut else work.outer
        if work.kind == "experts":
            rows = sizes.rows if work.per.unit == "row" else self.tokens * work.copies
            return maximum(rows / self.experts, 1), outer
        is_cut = work.per.split == "whole" and sizes.sequence_parallel
        return self.tokens / sizes.t if is_cut else self.tokens, outer

    def _attention_share(self, step: Step) -> float:
        """The share of the peak, forward: Transformer Engine, cuDNN in scaled_dot_product_attention, and all of torch
        from Blackwell on are the generation's own kernels, others FlashAttention-2.
        """
        cudnn = step.plan.kernels.attention == "sdpa" and prefers_cudnn(step.cluster)
        own = step.runtime.newest_attention or cudnn or self.chip.generation.startswith("Blackwell")
        if self.is_unbound:
            return self.machine * (UNBOUND_ATTENTION if own else UNBOUND_FLASH2)
        return self.machine * (self.shares.attention if own else self.shares.flash2 or self.shares.attention)

    def _machine(self, step: Step) -> float:
        """What this machine's arithmetic reaches over what its generation's does: by what its products were measured
        to reach.
        """
        return 1 if step.plan.product_share is None else step.plan.product_share / self.shares.matrix["bf16"]

    def _clock(self, step: Step) -> float:
        """The clock of products; that of a machine whose products were measured is in what they reach."""
        return 1.0 if step.plan.product_share is not None else self.rates.clock(self.chip)

    def _scan(self, work: Work, flops: Number) -> Number:
        """A recurrence: its arithmetic, and a walk along the sequence that no other sequence and no other head makes
        longer.
        """
        walks = 2 if work.when == "backward" else 1
        arithmetic = flops / (self.chip.peak(self.wide) * self.rates.scan)
        return arithmetic + walks * self.rates.scan_step * self.sizes.s / self.sizes.c

    def _attention(self, work: Work, flops: Number, window: int | None) -> tuple[Number, Number]:
        """FLOP and FLOP/s; a fused kernel skips what the mask takes out, separate products do not."""
        if not work.fused:
            return flops, self.chip.peak(self.wide) * self.shares.matrix["bf16"] * self.machine
        every = {"y": flops / self.sizes.s, "L": 1, "T": 1}  # those of all pairs are of s keys
        s = self.attended
        if not work.causal:
            flops = full_attention_flops.evaluate(**every, s=s if window is None else minimum(s, window))
        elif window is None:
            flops = causal_attention_flops.evaluate(**every, s=s)
        else:
            flops = windowed_attention_flops.evaluate(**every, s=s, r=window)
        share = self.attention_share * (self.rates.attention_backward if work.when == "backward" else 1)
        return flops, self.chip.peak(self.wide) * share


def _wide_peak(step: Step) -> str:
    """What all other products are multiplied in: 16 bit, or what an fp32 recipe asks for."""
    assert step.cluster is not None
    if step.recipe.rest in ("fp32", "tf32"):
        return step.recipe.rest
    return next((name for name in ("bf16", "fp16") if name in step.cluster.accelerator.dense_flops), "bf16")


def _narrow_peak(step: Step) -> str:
    """What products of narrow operands are multiplied in; "": there are none."""
    if step.recipe.compute in NARROW:
        return step.recipe.compute
    return {"none": "", "nvfp4": "fp4"}.get(step.plan.kernels.float8, "fp8")

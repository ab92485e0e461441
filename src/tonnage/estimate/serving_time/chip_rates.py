"""Rates of an accelerator that its datasheet gives in other words: lanes for integers, products that are summed in
fp16, sums that ordinary lanes scale.
"""

from tonnage.formulas import passes as f
from tonnage.spec import Accelerator

# Peak of 8-bit integers over fp32 of NVIDIA's graphics cards (whitepapers of GA102, AD102 and GB202: 284 and 35.6,
# 660.6 and 82.6, 838 and 104.8), for those of which no source gives fp32.
INTEGERS_OVER_LANES = 8


def integer_lanes(chip: Accelerator) -> float | None:
    """Integer operations a second of an NVIDIA GPU, from its peak in fp32; None where no source gives that.

    Volta, Turing, the A100 and Blackwell have a lane for integers for each of fp32; others since half as many
    (NVIDIA's architecture whitepapers: A100 64 and 64 of an SM, GA10x, Ada and Hopper 128 and 64, Blackwell 128 and
    128). A fused product and sum is two FLOP.
    """
    peak = chip.dense_flops.get("fp32")
    if peak is None:
        return None
    is_a100 = chip.generation == "Ampere" and chip.memory.kind.startswith("HBM")
    as_many = is_a100 or chip.generation.startswith(("Volta", "Turing", "Blackwell"))
    return peak / (2 if as_many else 4)


def half_sum_peak(chip: Accelerator, wide: str) -> float:
    """FLOP/s of products in 16 bits that are summed in fp16: half of those in 8-bit integers, or as quoted.

    NVIDIA's graphics cards sum in fp32 at half of that rate, which is the peak that is quoted (GA102 whitepaper, table
    2: 142 and 71 TFLOPS of an RTX 3090); its other cards at the same.
    """
    quoted = chip.peak(wide)
    return max(chip.dense_flops.get("int8", 0.0) / 2, quoted) if chip.vendor == "NVIDIA" else quoted


def scaled_integer_peak(chip: Accelerator, compute: str, operations: int) -> float:
    """FLOP/s of products in 8-bit integers of which lanes for fp32 scale each sum of 32 in so many operations."""
    rate: float = f.scaled_integers.evaluate(
        P_int=chip.peak(compute), P_lanes=lane_peak(chip, compute), n_scale=operations
    )
    return rate


def lane_peak(chip: Accelerator, compute: str) -> float:
    """FLOP/s in fp32 of the lanes beside the tensor cores that multiply integers at the peak of `compute`."""
    return chip.dense_flops.get("fp32", chip.peak(compute) / INTEGERS_OVER_LANES)

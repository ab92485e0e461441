"""What kernels, links and hosts reach of their datasheets: rates.toml, made by scripts/fit_rates.py."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.kernel.prepared import tables
from tonnage.spec import Accelerator

# Generations that nobody measured take the shares of one that was, and a wider band.
KIN = {
    "Blackwell Ultra": "Blackwell", "Ada Lovelace": "Ampere", "Volta": "Ampere", "Turing": "Ampere",
    "TPU v4": "TPU v5p", "TPU v6e": "TPU v5e", "TPU v7": "TPU v5p",
}  # fmt: skip


class Generation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares of the datasheet's peaks that large kernels reach on one generation of accelerators."""

    #: GEMMs, by the name of the peak.
    matrix: Mapping[str, float]
    #: Fused attention, forward, by the generation's own kernels (cuDNN, FlashAttention-3, AITER).
    attention: float
    #: FlashAttention-2, or on AMD's the kernels of scaled_dot_product_attention, where they are slower.
    flash2: float | None = None
    #: Whether tables of kernels say so, and no published step: it has no error band of its own, and stands for no other
    #: generation.
    of_kernels: bool = False


class Band(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measured over predicted, of rows whose source was left out of the fit."""

    #: 5th percentile.
    low: float
    #: 95th percentile.
    high: float
    #: Number of rows.
    rows: int


class Rates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that the time of a step is fitted with. Times are in seconds."""

    #: Shares of peaks, by generation.
    generations: Mapping[str, Generation]
    #: Share of the peak in attention's backward, over that of its forward.
    attention_backward: float
    #: Watts for each TFLOP/s of the 16-bit peak at the generation's shares; less of them lower the clock of products.
    watts: Mapping[str, float] = {}
    #: Share of the memory bandwidth in moves of rows of experts: permutations, sorts, what lies between their products.
    row_moves: float
    #: What is left of the time around expert GEMMs (permutations, casts), where one kernel does them with the GEMMs
    #: (Framework.fuses_experts).
    fused_experts: float
    #: Kernels of one GEMM of one expert.
    expert_kernels: float
    #: Share of the memory bandwidth.
    memory: float
    #: Time between two kernels.
    launch: float
    #: Time that the host takes to launch a kernel.
    host: float
    #: Kernels of a router and its dispatcher.
    router_kernels: float
    #: Factor on them where the dispatcher waits for sizes from other ranks.
    alltoall: float
    #: Columns and rows of a GEMM at which half of the share is lost.
    half_side: float
    #: How often operands of a narrow GEMM pass memory again.
    cast: float
    #: Share of the 16-bit peak in recurrences.
    scan: float
    #: Time a token of a sequence in recurrences, besides.
    scan_step: float
    #: Share of the communication that can overlap with compute which does.
    hidden: float
    #: Time a step besides.
    step: float
    #: Time that ranks wait for each other at a collective inside a node, beyond its own (links.toml).
    latency_inside: float = 0.0
    #: The same between nodes.
    latency_outside: float = 0.0
    #: Step time over Megatron's, of runtimes where it differs.
    frameworks: Mapping[str, float] = {}
    #: Error bands, by kind of row.
    bands: Mapping[str, Band] = {}
    #: Error bands of the rows of a runtime that lie outside of these.
    runtimes: Mapping[str, Band] = {}
    #: Runtimes with rows.
    measured: tuple[str, ...] = ()
    #: How many rates were fitted, on how many rows.
    fitted: str = ""

    def of(self, generation: str) -> tuple[Generation, bool]:
        """Shares of a generation, and whether they are its own; of others the means of all that were measured."""
        return _of(self.generations, generation)

    def clock(self, chip: Accelerator) -> float:
        """The clock of products over that of the accelerators whose rows made the shares: with less power for a FLOP at
        the peak it falls with the root of it. Power goes with the clock and the square of the voltage, which rises
        with the clock; aiconfigurator-core's tables of four Blackwells say 0.51.
        """
        return min(1.0, self.watts_over(chip) ** 0.5)

    def watts_over(self, chip: Accelerator) -> float:
        """Watts for each TFLOP/s of the 16-bit peak, over those of the accelerators whose rows made the generation's
        shares; 1 where no source says both.
        """
        reference = self.watts.get(chip.generation)
        if reference is None or chip.tdp_watts is None:
            return 1.0
        return float(chip.tdp_watts / (chip.peak("bf16") / 1e12) / reference)

    def band(self, kind: str, runtime: str) -> Band | None:
        """The band of this kind of row, as wide as the rows of the runtime need it; None where nobody measured any."""
        found, own = self.bands.get(kind), self.runtimes.get(runtime)
        if found is None or own is None:
            return found
        return Band(low=min(found.low, own.low), high=max(found.high, own.high), rows=found.rows)


def _of(found: Mapping[str, Generation], generation: str) -> tuple[Generation, bool]:
    own = KIN.get(generation, generation)
    if own in found:
        return found[own], generation in (own, "Blackwell Ultra") and not found[own].of_kernels
    return _mean(tuple(rates for rates in found.values() if not rates.of_kernels)), False


def _mean(of: tuple[Generation, ...]) -> Generation:
    names = dict.fromkeys(name for rates in of for name in rates.matrix)
    matrix = {
        name: sum(rates.matrix[name] for rates in of if name in rates.matrix)
        / sum(name in rates.matrix for rates in of)
        for name in names
    }
    return Generation(matrix=matrix, attention=sum(rates.attention for rates in of) / len(of))


@cache
def rates() -> Rates:
    """The rates that ship."""
    shipped: Rates = tables(str(Path(__file__).with_name("rates.toml")), Rates)
    return shipped

"""What kernels, links and hosts reach of their datasheets: rates.toml, made by scripts/fit_rates.py."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

# Generations that nobody measured take the shares of one that was, and a wider band.
KIN = {"Blackwell Ultra": "Blackwell", "Ada Lovelace": "Ampere", "Volta": "Ampere", "Turing": "Ampere"}


class Generation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares of the datasheet's peaks that large kernels reach on one generation of accelerators.

    `matrix`: products, by the peak's name; `attention`: fused attention, forward, by the
    generation's own kernels (cuDNN, FlashAttention-3); `flash2`: by FlashAttention-2, where that is slower.
    """

    matrix: Mapping[str, float]
    attention: float
    flash2: float | None = None


class Band(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measured over predicted: the 5th and 95th percentile of `rows` left-out rows of a kind."""

    low: float
    high: float
    rows: int


class Rates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that the time of a step is fitted with.

    `attention_backward`: of attention's share. `memory`: share of the memory's bandwidth. `half_side`: columns and rows
    of a product at which half of the share is lost. `chips`: shares of an accelerator over its generation's. `cast`:
    how often a narrow product's operands pass memory again. `row_moves`: seconds of moving rows of experts over those
    that their bytes take.
    `fused_experts`: what is left of the time around experts' products, permutations and casts, where one kernel does
    them with the products (Framework.fuses_experts).
    `launch`: seconds between two kernels; `host`: seconds that the host takes to ask for one; `router_kernels`: kernels
    of a router and its dispatcher, times `alltoall` where it waits for sizes from other ranks; `expert_kernels`: of one
    product of one expert.
    `scan`: share of the 16-bit peak of recurrences; `scan_step`: seconds a token of a sequence besides.
    `latency_inside`, `latency_outside`: seconds that ranks wait for each other at a collective, beyond what it takes
    alone (links.toml). `hidden`: what of communication that can run beside compute does. `step`: seconds a step
    besides. `frameworks`: step times over those of Megatron. `bands`: by kind of row. `runtimes`: bands of the rows of
    a runtime that lie outside of these.
    """

    generations: Mapping[str, Generation]
    attention_backward: float
    chips: Mapping[str, Mapping[str, float]] = {}
    row_moves: float
    fused_experts: float
    expert_kernels: float
    memory: float
    launch: float
    host: float
    router_kernels: float
    alltoall: float
    half_side: float
    cast: float
    scan: float
    scan_step: float
    hidden: float
    step: float
    latency_inside: float = 0.0
    latency_outside: float = 0.0
    bands: Mapping[str, Band] = {}
    runtimes: Mapping[str, Band] = {}
    frameworks: Mapping[str, float] = {}
    fitted: str = ""

    def of(self, generation: str) -> tuple[Generation, bool]:
        """Shares of a generation, and whether they are its own; of others the means of all that were measured."""
        own = KIN.get(generation, generation)
        if own in self.generations:
            return self.generations[own], generation in (own, "Blackwell Ultra")
        return _mean(tuple(self.generations.values())), False

    def band(self, kind: str, runtime: str) -> Band | None:
        """The band of this kind of row, as wide as the rows of the runtime need it; None where nobody measured any."""
        found, own = self.bands.get(kind), self.runtimes.get(runtime)
        if found is None or own is None:
            return found
        return Band(low=min(found.low, own.low), high=max(found.high, own.high), rows=found.rows)


def _mean(of: tuple[Generation, ...]) -> Generation:
    names = dict.fromkeys(name for each in of for name in each.matrix)
    matrix = {
        name: sum(each.matrix[name] for each in of if name in each.matrix) / sum(name in each.matrix for each in of)
        for name in names
    }
    return Generation(matrix=matrix, attention=sum(each.attention for each in of) / len(of))


@cache
def rates() -> Rates:
    """The rates that ship."""
    return msgspec.toml.decode(Path(__file__).with_name("rates.toml").read_bytes(), type=Rates)

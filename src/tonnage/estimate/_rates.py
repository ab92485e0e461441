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

    `attention_backward`: of attention's share; `older_attention`: of Triton kernels of 2022, of FlashAttention-2's share; `experts`: of that of products, for those of experts, which differ in length;
    `memory`: share of the memory's bandwidth. `launch`: seconds between two kernels; `host`: seconds that the host takes to ask
    for one; `router_kernels`: kernels of a router and its dispatcher, times `alltoall` where it waits for sizes from other ranks.
    `half_depth`, `half_side`: columns and rows of a product at which half of the share is lost, `narrow_half_depth` and
    `experts_half_depth` of 8- and 4-bit products and of experts. `chips`: shares of an accelerator over its generation's. `cast`: how often
    a narrow product's operands pass memory again. `scan`: share of the 16-bit peak of recurrences. `latency_inside`, `latency_outside`: seconds that ranks
    wait for each other at a collective, beyond what it takes alone (links.toml). `hidden`: what of communication that can run beside
    compute does. `step`: seconds a step besides.
    `newer_around_experts`: what is left, from core 0.18 on, of the time around experts' products: router, permutations, casts. `frameworks`: step times over those of NVIDIA's containers of Megatron. `bands`: by kind of row.
    """

    generations: Mapping[str, Generation]
    attention_backward: float
    older_attention: float = 1
    narrow_half_depth: float = 90
    experts_half_depth: float = 90
    chips: Mapping[str, Mapping[str, float]] = {}
    experts: float
    newer_around_experts: float
    memory: float
    launch: float
    host: float
    router_kernels: float
    alltoall: float
    half_depth: float
    half_side: float
    cast: float
    scan: float
    hidden: float
    step: float
    latency_inside: float = 0.0
    latency_outside: float = 0.0
    frameworks: Mapping[str, float] = {}
    bands: Mapping[str, Band] = {}
    fitted: str = ""

    def of(self, generation: str) -> tuple[Generation, bool]:
        """Shares of a generation, and whether they are its own; of others the means of all that were measured."""
        own = KIN.get(generation, generation)
        if own in self.generations:
            return self.generations[own], generation in (own, "Blackwell Ultra")
        return _mean(tuple(self.generations.values())), False


def _mean(of: tuple[Generation, ...]) -> Generation:
    names = dict.fromkeys(name for each in of for name in each.matrix)
    matrix = {name: sum(each.matrix[name] for each in of if name in each.matrix) / sum(name in each.matrix for each in of) for name in names}  # fmt: skip
    return Generation(matrix=matrix, attention=sum(each.attention for each in of) / len(of))


@cache
def rates() -> Rates:
    """The rates that ship."""
    return msgspec.toml.decode(Path(__file__).with_name("rates.toml").read_bytes(), type=Rates)

"""What passes of an engine reach of their datasheets: rates.toml, made by scripts/fit_serving.py."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.estimate.hardware.rates import Band
from tonnage.kernel.prepared import tables
from tonnage.runtimes.parts.serving import ServingRuntime, number_of
from tonnage.spec import Accelerator

BEFORE = " before "  # in the name of an engine's rates: "vllm before 0.8"
ON = " on "  # and "llama.cpp on Apple": on that vendor's accelerators it has kernels of its own


class Engine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds of an engine between two passes, and for each request that runs; `prompt`: more of each kernel of a
    pass with prompts, which no graph replays; `arrive`: from a request until it can run, and from its token back;
    `kernel`: of the host for each kernel that no graph replays, `quantised`: more for a product whose operands are
    quantised before, `replays`: decoding is captured in graphs. `floors`: times that kernels take which do little,
    over those of all engines, `mixtures`: those around routed experts. `reads`, `packed`, `products`: shares over those
    of all engines, of memory in reading weights, in reading those that are expanded first, of the peak (`integers`: of
    8-bit ones; `unpacks`: operations on each weight that those unpack); `caches`: of memory in reading the cache.
    `generations`: of accelerators with rows of this engine, beside those that all engines have.
    """

    step: float
    request: float
    prompt: float = 0.0
    arrive: float = 0.0
    kernel: float = 6e-6
    quantised: float = 0.0
    replays: bool = True
    floors: float = 1.0
    mixtures: float = 1.0
    reads: float = 1.0
    packed: float = 1.0
    products: float = 1.0
    integers: float = 1.0
    unpacks: float = 0.0
    caches: float = 1.0
    generations: tuple[str, ...] = ()


OTHER_KINDS = ("npu", "tpu")  # of accelerators: neither GPUs nor processors


class ServingRates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that passes are fitted with.

    Shares of the memory's bandwidth: `weights`, `cache` in reading those. Seconds of a kernel however little it does:
    `product`, `cast` more of one whose operands are quantised before, `unpack` more of one that expands weights of
    fewer bits, `attention`, `mixture` of routing, sorting and summing (`fused_mixture`: where the products of experts
    do that), `other`, `reduce` of an all-reduce. `expand`: integer operations of a weight of 4 bits that is expanded
    beside a product. `latent_launches`, `recurrent_launches`: kernels around latent attention and around a
    recurrence where no graph replays.
    `packed`: share of `weights` that products reach whose weights are expanded first.
    `products`: share of the peak over that of training's large products. `reuse`: FLOP that an operand serves in a
    tile of grouped products of experts.
    `engines`: by name, others as `generic`.
    `generations`: of accelerators with rows. `bands`: of those; `unseen`: of others, from the errors of a generation
    by the rates of all others.
    """

    weights: float
    cache: float
    product: float
    cast: float
    unpack: float
    attention: float
    mixture: float
    fused_mixture: float
    latent_launches: float
    recurrent_launches: float
    other: float
    reduce: float
    expand: float
    products: float = 1.0
    reuse: float = 1.0
    packed: float = 1.0
    engines: Mapping[str, Engine] = {}
    bands: Mapping[str, Band] = {}
    unseen: Mapping[str, Band] = {}
    fitted: str = ""
    generations: tuple[str, ...] = ()

    def engine(self, name: str, version: str = "", vendor: str = "") -> Engine:
        """The rates of an engine: on this vendor's accelerators, else at this version, else those of engines without
        measured rows.
        """
        own = self.engines.get(f"{name}{ON}{vendor}")
        if own is not None:
            return own
        asked = number_of(version) if version else None
        if asked is not None:
            earlier = [(before, each) for before, each in self._earlier(name) if asked[: len(before)] < before]
            if earlier:
                return min(earlier, key=lambda pair: pair[0])[1]
        return self.engines.get(name) or self.engines["generic"]

    def is_measured(self, chip: Accelerator) -> bool:
        """Whether runs on accelerators of its generation are published, which the error bands are of."""
        return chip.generation in self.generations

    def around(
        self, quantity: str, seconds: float, chip: Accelerator, runtime: ServingRuntime | None = None
    ) -> tuple[float, float] | None:
        """The error band of a time of this chip, by rows that the rates had not seen: those of machines like it, or of
        a whole generation where none of its own was measured; twice over where it is neither a GPU nor a processor,
        whose kernels are others, and where the engine's own times are not measured. None where there is none.
        `quantity`: ttft_seconds or tpot_seconds. `runtime`: an engine that may have bands of its own.
        """
        if runtime is not None and runtime.host_experts is not None and quantity in runtime.host_experts.bands:
            low, high = runtime.host_experts.bands[quantity]
            return seconds * low, seconds * high
        is_measured = self.is_measured(chip)
        band = (self.bands if is_measured else self.unseen).get(quantity)
        is_other = not is_measured and chip.kind in OTHER_KINDS
        times = 1 + is_other + (runtime is not None and quantity in runtime.unmeasured)
        return (seconds * band.low**times, seconds * band.high**times) if band else None

    def _earlier(self, name: str) -> list[tuple[tuple[int, ...], Engine]]:
        """What an engine was before a version, such as ((0, 8), rates)."""
        return [
            (number_of(own.removeprefix(f"{name}{BEFORE}")) or (), each)
            for own, each in self.engines.items()
            if own.startswith(f"{name}{BEFORE}")
        ]


@cache
def serving_rates() -> ServingRates:
    """The rates that ship."""
    shipped: ServingRates = tables(str(Path(__file__).with_name("rates.toml")), ServingRates)
    return shipped

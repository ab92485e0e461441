"""What passes of an engine reach of their datasheets: rates.toml, made by scripts/fit_serving.py."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.estimate.hardware.rates import Band
from tonnage.kernel.prepared import tables


class Engine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds of an engine between two passes, and for each request that runs; `prompt`: more of each kernel of a
    pass with prompts, which no graph replays; `arrive`: from a request until it can run, and from its token back;
    `kernel`: of the host for each kernel that no graph replays, `quantised`: more for a product whose operands are
    quantised before, `replays`: decoding is captured in graphs. `floors`: times that kernels take which do little,
    over those of all engines. `reads`, `packed`, `products`: shares over those of all engines, of memory in reading
    weights, in reading those that are expanded first, of the peak (`integers`: of 8-bit ones), and of memory in
    reading the cache (which one that grows a tensor in every pass also copies).
    """

    step: float
    request: float
    prompt: float = 0.0
    arrive: float = 0.0
    kernel: float = 6e-6
    quantised: float = 0.0
    replays: bool = True
    floors: float = 1.0
    reads: float = 1.0
    packed: float = 1.0
    products: float = 1.0
    integers: float = 1.0
    caches: float = 1.0


class ServingRates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that passes are fitted with.

    Shares of the memory's bandwidth: `weights`, `cache` in reading those. Seconds of a kernel however little it does:
    `product`, `cast` more of one whose operands are quantised before, `unpack` more of one that expands weights of
    fewer bits, `attention`, `mixture` of routing, sorting and summing (launches of them where no graph replays:
    `mixture_launches`, those around latent attention `latent_launches`), `other`, `reduce` of an all-reduce.
    `packed`: share of `weights` that products reach whose weights are expanded first.
    `products`: share of the peak over that of training's large products, `experts` of those of experts over that.
    `engines`: by name, others as `generic`.
    `generations`: of accelerators with rows.
    """

    weights: float
    cache: float
    product: float
    cast: float
    unpack: float
    attention: float
    mixture: float
    mixture_launches: float
    latent_launches: float
    other: float
    reduce: float
    products: float = 1.0
    experts: float = 1.0
    packed: float = 1.0
    engines: Mapping[str, Engine] = {}
    bands: Mapping[str, Band] = {}
    fitted: str = ""
    generations: tuple[str, ...] = ()

    def engine(self, name: str) -> Engine:
        """The rates of this engine, or those of an engine that nobody measured."""
        return self.engines.get(name) or self.engines["generic"]


@cache
def serving_rates() -> ServingRates:
    """The rates that ship."""
    shipped: ServingRates = tables(str(Path(__file__).with_name("rates.toml")), ServingRates)
    return shipped

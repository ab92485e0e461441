"""What passes without decoding reach of their datasheets, and what speech engines take: encoding.toml, made by
scripts/fit_encoding.py.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.hardware.rates import Band
from tonnage.kernel.prepared import tables

Host = Literal["desktop", "server", "small server"]


class HostRates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many times as long as the host of a desktop card that of a server takes, and of cards of at most 75 W, which
    stand in small machines of clouds.
    """

    server: float = 1.0
    small_server: float = 1.0

    def host(self, host: Host) -> float:
        return {"desktop": 1.0, "server": self.server, "small server": self.small_server}[host]


class EncodingRates(HostRates, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares of the peak in matrix products and attention: `products` of 16 bits, `full_products` of 32,
    `plain_products` of 16 without matrix units; `low_power`: of each, on cards of at most 75 W; `narrow`: the hidden
    size at which products reach half of it. `passes_over_hidden`: how often the hidden states of a layer cross the
    memory beside products; `passes_over_scores`: the same of the scores of attention, 0 where attention is fused.
    `kernel`: seconds of a desktop for each kernel.
    """

    products: float
    full_products: float
    plain_products: float
    low_power: float
    passes_over_hidden: float
    passes_over_scores: float
    kernel: float
    narrow: float = 0.0


class SpeechRates(HostRates, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`encoder`, `plain_encoder`, `narrow`, `passes_over_hidden`, `passes_over_scores`: of the encoder, as of
    `EncodingRates`. A decode step takes `step` seconds and `layer` seconds for each layer, and reads weights and caches
    at the share `reads` of the memory's bandwidth; each further sequence of a step takes `sequence` of the layers'
    time, and each further beam `beam`: caches follow the best, which are searched in all words. A batch decodes until
    its longest text ends: `spread` of the mean for each standard deviation. `window`: seconds of a window outside of
    both.
    """

    encoder: float
    plain_encoder: float
    narrow: float
    passes_over_hidden: float
    passes_over_scores: float
    step: float
    layer: float
    reads: float
    sequence: float
    beam: float
    spread: float
    window: float
    band: Band | None = None

    def fused(self) -> "SpeechRates":
        """Of attention whose scores stay on the chip."""
        return replace(self, passes_over_scores=0.0)


class AllRates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`encoders`, by how an engine runs kernels; `speech`, by engine. `bands`: of the times of
    passes, by encoder rates, from rows of publications that the fit had not seen.
    """

    encoders: Mapping[str, EncodingRates]
    speech: Mapping[str, SpeechRates] = {}
    bands: Mapping[str, Band] = {}


@cache
def encoding_rates() -> AllRates:
    """The rates that ship."""
    shipped: AllRates = tables(str(Path(__file__).with_name("encoding.toml")), AllRates)
    return shipped

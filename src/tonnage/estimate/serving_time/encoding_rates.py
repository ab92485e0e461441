"""What passes without decoding reach of their datasheets, and what speech engines take: encoding.toml, made by
scripts/fit_encoding.py.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.estimate.hardware.rates import Band
from tonnage.kernel.prepared import tables


class EncodingRates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`products`: share of the peak in matrix products and attention; `low_power`: of that, on cards of at most 75 W.
    `passes_over_hidden`: how often the hidden states of a layer cross the memory beside products; `passes_over_scores`:
    the same of the scores of attention, 0 where attention is fused. `kernel`: seconds of the host for each kernel.
    """

    products: float
    low_power: float
    passes_over_hidden: float
    passes_over_scores: float
    kernel: float


class SpeechRates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`encoder`, `passes_over_hidden`, `passes_over_scores`: of the encoder, as of `EncodingRates`. A decode step takes
    `step` seconds and `layer` seconds for each layer, and reads weights and caches at the share `reads` of the memory's
    bandwidth; each further sequence of a step takes `sequence` of the layers' time. `window`: seconds of a window
    outside of both.
    """

    encoder: float
    passes_over_hidden: float
    passes_over_scores: float
    step: float
    layer: float
    reads: float
    sequence: float
    window: float = 0.0
    band: Band | None = None


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

"""Which quantity a metric about a served model is, and its unit."""

import re
from typing import Any

from rows.reading import unit_name
from rows.source import Measured
from tonnage.kernel.errors import MissingDatum, shown
from tonnage.kernel.units import GB, GIB, KIB, MB, MIB

# Tables of these sources are of what is allocated when a generation ends: no peak of the prompt is in them.
AT_THE_END = ("docs/source/getting_started/speed_benchmark.md",)
# What a metric's words name, the first that fits; an empty name is predicted by nothing.
QUANTITIES = (
    (r"tensor bytes|file size|model size", "tensor_bytes"),
    (r"one max.?length|one sequence|per sequence|per request", "request_cache"),
    (r"concurrency|concurrent", "concurrency"),
    (r"blocks", "kv_cache_blocks"),
    (r"(kv|cache).*tokens|kv cache size|tokens.*cache", "kv_cache_tokens"),
    (r"kv self size|kv buffer", "kv_buffer"),
    (r"^[kv] size|avail|slots|mamba|state|compute|mem required|time", ""),
    (r"kv cache|cache (memory|per gpu)|available.*cache", "kv_cache"),
    (r"peak torch|torch peak", "torch_peak"),
    (r"activation", "activations"),
    (r"non.?torch", "outside_torch"),
    (r"graph", "cuda_graphs"),
    (r"weights|model loading|after load|mem usage", "weights"),
    (r"nvidia-smi|nvml|process", "process"),
    (r"allocated|gpu memory|peak memory|vram|memory", "allocated"),
)
COUNTED = ("concurrency", "kv_cache_tokens", "kv_cache_blocks")


def figure_of(measured: Measured, source: str, as_published: bool) -> dict[str, Any]:
    """The quantity that a metric of this source names; MissingDatum where it names none. `as_published`: weights are
    as they were published.
    """
    name = quantity_of(measured.metric, source)
    size = unit_of(measured.unit, binary=as_published or name != "tensor_bytes")
    if name in COUNTED and size != 1:
        raise MissingDatum(f"{shown(measured.metric)} is a number, and its unit is {shown(measured.unit)}")
    return {"quantity": name, "unit": "count" if name in COUNTED else unit_name(size)}


def quantity_of(metric: str, source: str) -> str:
    """The quantity that the words of a metric name."""
    for pattern, name in QUANTITIES:
        if re.search(pattern, metric.lower()):
            if not name:
                raise MissingDatum("this figure is not predicted")
            ends = name == "allocated" and any(each in source for each in AT_THE_END)
            return "allocated_at_end" if ends else name
    raise MissingDatum(f"{shown(metric)} is not predicted")


def unit_of(unit: str, binary: bool) -> float:
    """Bytes of a unit of memory, 1 of anything that is counted. `binary`: what the source's GB is where it does not
    say.
    """
    text = unit.lower()
    word = (re.findall(r"[a-z]+", text) or [""])[0]
    if word in ("gib", "mib", "kib", "bytes", "b"):
        return {"gib": GIB, "mib": MIB, "kib": KIB}.get(word, 1)
    if word in ("gb", "mb"):
        if "1e9" in text or not (binary or "gib" in text):
            return GB if word == "gb" else MB
        return GIB if word == "gb" else MIB
    return 1

"""Which figure of an estimate a metric about a served model is, and its unit."""

import re
from collections.abc import Callable

from tonnage.estimate.serving.cache import RequestCache
from tonnage.estimate.serving.forward_peak import workspace_bytes
from tonnage.estimate.serving.memory import ServingMemory, ServingRank
from tonnage.estimate.serving.static_share import memory_share
from tonnage.estimate.serving.weights.storage import gguf_bytes
from tonnage.estimate.step.rank import stages
from tonnage.formulas import serving as g
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.term import Term
from tonnage.kernel.units import GB, GIB, KIB, MB, MIB
from tonnage.numerics.precisions import precision
from tonnage.numerics.quantization import file_type
from tonnage.validation._serving_memory._asked import Asked

Figure = Callable[[Asked, ServingMemory], float]
OVERHEAD = "runtime overhead"
OUTSIDE = ("left free by the engine", "captured graphs")  # of what a log calls non-torch memory


def unit_of(unit: str, binary: bool) -> float:
    """Bytes of a unit of memory, 1 of anything that is counted. `binary`: what the source's GB is where it does not say."""
    text = unit.lower()
    word = (re.findall(r"[a-z]+", text) or [""])[0]
    if word in ("gib", "mib", "kib", "bytes", "b"):
        return {"gib": GIB, "mib": MIB, "kib": KIB}.get(word, 1)
    if word in ("gb", "mb"):
        if "1e9" in text or not (binary or "gib" in text):
            return GB if word == "gb" else MB
        return GIB if word == "gb" else MIB
    return 1


# Tables of these sources are of what is allocated when a generation ends: no peak of the prompt is in them.
AT_THE_END = ("docs/source/getting_started/speed_benchmark.md",)


def figure_of(metric: str, source: str) -> Figure:
    """The figure that a metric of this source names; MissingDatum where it names none."""
    text = metric.lower()
    for pattern, figure in _FIGURES:
        if re.search(pattern, text):
            ends = figure is _allocated and any(name in source for name in AT_THE_END)
            return _at_the_end if ends else figure
    raise MissingDatum(f"{shown(metric)} is not predicted")


def _part(rank: ServingRank, name: str) -> float:
    return sum(float(child.value) for child in rank.memory.children if child.name == name)


def _overhead(rank: ServingRank) -> tuple[Term, ...]:
    return next((child.children for child in rank.memory.children if child.name == OVERHEAD), ())


def _weights(asked: Asked, made: ServingMemory) -> float:
    return max(_part(rank, "weights") for rank in made.ranks)


def _activations(asked: Asked, made: ServingMemory) -> float:
    return _part(made.ranks[0], "activations")  # a log's first line is of the first rank


def _outside_torch(asked: Asked, made: ServingMemory) -> float:
    return sum(float(term.value) for term in _overhead(made.ranks[0]) if term.name not in OUTSIDE)


def _graphs(asked: Asked, made: ServingMemory) -> float:
    found = [
        term.value for child in _overhead(made.ranks[0]) for _, term in child.walk() if term.name == "captured graphs"
    ]
    return max((float(value) for value in found), default=0.0)


def _peak_of_torch(asked: Asked, made: ServingMemory) -> float:
    return _weights(asked, made) + _activations(asked, made)


def _share(asked: Asked) -> float | None:
    """The part of the accelerator that the engine takes, where it takes one."""
    if asked.runtime is None:
        return None
    return memory_share(asked.runtime, asked.plan, asked.model, asked.accelerator)


def _room(asked: Asked, rank: ServingRank) -> float:
    """What is left for the cache."""
    if _share(asked) is None:
        raise MissingDatum(f"how much {asked.engine} takes for its cache is not described")
    if not asked.sized:
        raise MissingDatum("config.gpu is missing: how much memory there is decides the cache")
    room = g.cache_pool_bytes.evaluate(U=asked.accelerator.memory.usable_bytes, M=rank.besides_cache.value)
    if not room:
        raise InvalidInput("nothing is left for a cache by this estimate")
    return float(room)


def _pool(asked: Asked, made: ServingMemory) -> float:
    return _room(asked, made.ranks[0])


def _requests(asked: Asked, made: ServingMemory) -> float:
    """Requests at full length that the pool holds, on the stage that holds fewest."""
    return min(_room(asked, rank) / float(rank.per_request.value) for rank in made.ranks if rank.per_request.value)


def _tokens(asked: Asked, made: ServingMemory) -> float:
    return _requests(asked, made) * float(asked.plan.context)


def _blocks(asked: Asked, made: ServingMemory) -> float:
    if asked.runtime is None or asked.runtime.paging is None:
        raise MissingDatum(f"{asked.engine} has no blocks")
    return _tokens(asked, made) // asked.runtime.paging.block_tokens


def _one_request(asked: Asked, made: ServingMemory) -> float:
    return max(float(rank.per_request.value) for rank in made.ranks)


def _kept(asked: Asked, made: ServingMemory) -> float:
    """The cache as the architecture has it, for every request in 16 bits unless the row says otherwise."""
    width = precision(asked.plan.kv_cache or "bf16").bytes_per_weight
    cache = RequestCache(
        asked.plan.context, asked.plan.tensor_parallel_size, lambda one: one.bytes_per_element or width
    )
    return float(cache.kept(stages(asked.model, 1)[0], "cache").value) * float(asked.plan.concurrency)


def tensor_bytes(asked: Asked, made: ServingMemory) -> float:
    """All tensors of a GGUF file."""
    if asked.engine not in ("llama.cpp", "ollama") or not asked.plan.weights:
        raise MissingDatum("config.weights names no type of GGUF file")
    return gguf_bytes(asked.model, file_type(asked.plan.weights), imatrix=False)


def _allocated(asked: Asked, made: ServingMemory) -> float:
    """What PyTorch's allocator gave out, on all accelerators together. Those that take a model's layers in turn each run a pass of their own."""
    turns = asked.gpus / float(asked.plan.tensor_parallel_size * asked.plan.pipeline_parallel_size)
    whole = sum(float(rank.memory.value) - _part(rank, OVERHEAD) for rank in made.ranks)
    return whole + max(turns - 1, 0) * _activations(asked, made)


def _at_the_end(asked: Asked, made: ServingMemory) -> float:
    """What is allocated after the last token: weights, the cache, and a workspace on each accelerator."""
    held = sum(_part(rank, "weights") + _part(rank, "kv cache") for rank in made.ranks)
    return held + asked.gpus * (workspace_bytes(asked.runtime, asked.accelerator) if asked.runtime else 0)


def _process(asked: Asked, made: ServingMemory) -> float:
    """All that nvidia-smi shows; an engine with a share takes the share."""
    if _share(asked) is not None:
        return _room(asked, made.fullest) + float(made.fullest.besides_cache.value) - _left(made.fullest)
    return float(made.fullest.memory.value)


def _left(rank: ServingRank) -> float:
    return sum(float(term.value) for term in _overhead(rank) if term.name == "left free by the engine")


# What a metric's words name, the first that fits.
_FIGURES: tuple[tuple[str, Figure], ...] = (
    (r"tensor bytes|file size|model size", tensor_bytes),
    (r"one max.?length|one sequence|per sequence|per request", _one_request),
    (r"concurrency|concurrent", _requests),
    (r"blocks", _blocks),
    (r"(kv|cache).*tokens|kv cache size|tokens.*cache", _tokens),
    (r"kv self size|kv buffer", _kept),
    (r"^[kv] size|avail|slots|mamba|state|compute|mem required|time", lambda asked, made: _nothing()),
    (r"kv cache|cache (memory|per gpu)|available.*cache", _pool),
    (r"peak torch|torch peak", _peak_of_torch),
    (r"activation", _activations),
    (r"non.?torch", _outside_torch),
    (r"graph", _graphs),
    (r"weights|model loading|after load|mem usage", _weights),
    (r"nvidia-smi|nvml|process", _process),
    (r"allocated|gpu memory|peak memory|vram|memory", _allocated),
)


def _nothing() -> float:
    raise MissingDatum("this figure is not predicted")

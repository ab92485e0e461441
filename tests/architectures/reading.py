"""Helpers of the tests of families: a model by its Hub id, what it caches, and how its counts compare with
published ones.
"""

from collections.abc import Iterator

from architectures.modern_a_configs import CONFIGS
from architectures.modern_a_more import MORE
from architectures.modern_b_configs import CONFIGS as MODERN_B
from tonnage.architectures import Model, build
from tonnage.ops import Op, StateCache, TokenCache

GIB = 2**30
BF16 = 2


def model(name: str, **changes: object) -> Model:
    """The model of a Hub id, with some fields of its config changed (None: absent)."""
    fields = {**CONFIGS, **MORE, **MODERN_B}[name] | changes
    return build({key: value for key, value in fields.items() if value is not None or key not in changes}, name)


def ops(made: Model) -> Iterator[tuple[Op, int]]:
    """Every operation of the decoder's layers, with the number of layers that have it."""
    for block, count in zip(made.decoder.blocks, made.decoder.counts(), strict=True):
        for op in block.ops:
            yield op, count


def caches(made: Model) -> Iterator[tuple[TokenCache | StateCache, int]]:
    for op, count in ops(made):
        for cache in op.caches():
            yield cache, count


def cache_bytes(made: Model, context: int, kind: type = TokenCache, name: str = "") -> float:
    """What one request of `context` tokens keeps, in bytes, where the engine keeps keys and activations in bf16."""
    total = 0.0
    for cache, count in caches(made):
        if isinstance(cache, kind) and name in cache.name:
            width = BF16 if cache.bytes_per_element is None else cache.bytes_per_element
            entries = 1 if isinstance(cache, StateCache) else min(context, cache.window or context) // cache.stride
            total += count * cache.elements * entries * width
    return total


def without_table(made: Model) -> int:
    """Active parameters without the input table, which is looked up, as model cards usually count them."""
    table = made.decoder.before[0].weights()[0].num_parameters
    return made.num_active_parameters() - (0 if made.tied else table)


def billions(count: float, digits: int = 0) -> float:
    return round(count / 1e9, digits)

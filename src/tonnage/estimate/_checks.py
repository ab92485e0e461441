"""Checks that training and serving share: sizes that must divide, and lengths that a model cannot go beyond."""

from math import isqrt

from tonnage.architectures import Model
from tonnage.errors import InvalidPlan
from tonnage.ops import Attention, Embedding, LatentAttention, MoE
from tonnage.units import counted

LARGEST = 2**40  # sizes stay exact in arrays of float64
# The learned tables with one row for each position, by the last part of their names in checkpoints.
POSITION_TABLES = frozenset({"wpe", "embed_positions", "position_embeddings"})


def check_size(name: str, value: int | None) -> None:
    """A size that was given must be from 1 to LARGEST."""
    if value is not None and not 1 <= value <= LARGEST:
        raise InvalidPlan(f"{name} must be from 1 to {LARGEST:,}. Got {value:,}.")


def check_tensor_parallel(model: Model, t: int) -> None:
    """Tensor parallelism must divide the query heads, and divide or be a multiple of the key/value heads."""
    if t == 1:
        return
    for block in model.decoder.blocks:
        for op in block.ops:
            if isinstance(op, Attention | LatentAttention) and op.heads % t:
                raise InvalidPlan(divide("tensor_parallel_size", t, f"num_attention_heads of {model.name}", op.heads))
            if isinstance(op, Attention) and op.kv_heads % t and t % op.kv_heads:
                raise InvalidPlan(
                    f"tensor_parallel_size must divide num_key_value_heads of {model.name} ({op.kv_heads}) or be a multiple of "
                    f"it. Got {t}."
                )


def check_experts(model: Model, e: int, q: int, ranks: int) -> None:
    """Expert parallelism must divide the experts, and fit among the ranks that share a layer."""
    if e == 1 and q == 1:
        return
    counts = expert_counts(model)
    if e > 1 and not counts:
        raise InvalidPlan(f"{model.name} has no experts, so expert_parallel_size must be 1. Got {e}.")
    for count in counts:
        if count % e:
            raise InvalidPlan(divide("expert_parallel_size", e, f"num_experts of {model.name}", count))
    if q > 1 and not counts:
        raise InvalidPlan(f"{model.name} has no experts, so expert_tensor_parallel_size must be 1. Got {q}.")
    if counts and ranks % (e * q):
        raise InvalidPlan(
            f"expert_parallel_size x expert_tensor_parallel_size must divide the {counted(ranks, 'ranks')} of a pipeline stage. Got {e} x {q}."
        )


def expert_counts(model: Model) -> set[int]:
    """How many routed experts the layers of each kind have; empty for a dense model."""
    return {op.num_experts for block in model.decoder.blocks for op in block.ops if isinstance(op, MoE)}


def check_positions(model: Model, length: int, name: str) -> None:
    """A learned position table has no row for a token beyond it: such a model cannot run at all on longer sequences."""
    if model.context is None or length <= model.context:
        return
    for op in model.decoder.before:
        if isinstance(op, Embedding) and op.name.rpartition(".")[2] in POSITION_TABLES:
            raise InvalidPlan(
                f"{name} may be at most {model.context} for {model.name}: its learned table {op.name} has no more positions. "
                f"Got {length}."
            )


def divide(name: str, value: int, of: str, whole: int) -> str:
    return f"{name} must divide {of} ({whole}). Got {value}. Nearest: {near_divisors(whole, value)}."


def divisors(number: int) -> list[int]:
    """All of them, smallest first.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def near_divisors(whole: int, value: int) -> str:
    every = divisors(whole)
    below = max((n for n in every if n <= value), default=1)
    above = min((n for n in every if n >= value), default=None)
    return f"{below} or {above}" if above and above != below else str(below)


def near_multiples(value: int, step: int) -> str:
    below = value // step * step
    return f"{below} or {below + step}" if below else str(step)

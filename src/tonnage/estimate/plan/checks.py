"""Checks that training and serving share: sizes that must divide, and lengths that a model cannot go beyond."""

from collections.abc import Iterable

from tonnage.architectures import Model
from tonnage.estimate.plan.nearest import divisors, near, near_sizes
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message
from tonnage.kernel.units import counted
from tonnage.ops import Attention, Embedding, LatentAttention, MoE

LARGEST = 2**40  # sizes stay exact in arrays of float64
# The learned tables with one row for each position, by the last part of their names in checkpoints.
POSITION_TABLES = frozenset({"wpe", "embed_positions", "position_embeddings"})


def check_size(name: str, value: int | None) -> None:
    """A size that was given must be from 1 to LARGEST."""
    if value is not None and not 1 <= value <= LARGEST:
        raise InvalidPlan(
            Message("{name} must be from 1 to {most:,}. Got {value:,}.", name=name, most=LARGEST, value=value)
        )


def check_tensor_parallel(model: Model, t: int, among: Iterable[int] = ()) -> None:
    """Tensor parallelism must divide the query heads, and divide or be a multiple of the key/value heads.

    `among`: sizes that the rest of the plan leaves room for, of which the error names the nearest; left out: any.
    """
    wrong = _unshared(model, t)
    if wrong is None:
        return
    query, heads = wrong
    nearest = near(t, [n for n in among or divisors(query) if shares_heads(model, n)])
    if query % t:
        raise InvalidPlan(
            Message(
                "tensor_parallel_size must divide num_attention_heads of {model} ({query}). Got {t}. "
                "Nearest: {nearest}.",
                model=model.name,
                query=query,
                t=t,
                nearest=nearest,
            )
        )
    raise InvalidPlan(
        Message(
            "tensor_parallel_size must divide num_key_value_heads of {model} ({heads}) or be a multiple of "
            "it. Got {t}. Nearest: {nearest}.",
            model=model.name,
            heads=heads,
            t=t,
            nearest=nearest,
        )
    )


def shares_heads(model: Model, t: int) -> bool:
    return _unshared(model, t) is None


def _unshared(model: Model, t: int) -> tuple[int, int] | None:
    """Query heads, and key/value heads, of the first attention that so many ranks cannot share."""
    if t == 1:
        return None
    for block in model.decoder.blocks:
        for op in block.ops:
            if isinstance(op, Attention | LatentAttention) and op.heads % t:
                return op.heads, 0
            if isinstance(op, Attention) and op.kv_heads % t and t % op.kv_heads:
                return op.heads, op.kv_heads
    return None


def check_has_experts(model: Model, e: int | None, q: int | None) -> None:
    """Sizes of expert parallelism above 1 are of models with experts, whatever the runtime and the accelerators."""
    for name, size in (("expert_parallel_size", e), ("expert_tensor_parallel_size", q)):
        if (size or 1) > 1 and not expert_counts(model):
            raise NotApplicable(
                Message(
                    "{model} has no experts, so {name} must be 1. Got {size}.", model=model.name, name=name, size=size
                ),
                name,
                ("model",),
            )


def check_experts(model: Model, e: int, q: int, ranks: int) -> None:
    """Expert parallelism must divide the experts, and fit among the ranks that share a layer."""
    if e == 1 and q == 1:
        return
    check_has_experts(model, e, q)
    counts = expert_counts(model)

    def holds(e: int, q: int) -> bool:
        return ranks % (e * q) == 0 and not any(count % e for count in counts)

    for count in counts:
        if count % e:
            nearest = near(e, [n for n in divisors(count) if holds(n, 1)])
            raise InvalidPlan(
                Message(
                    "expert_parallel_size must divide num_experts of {model} ({count}). Got {e}. Nearest: {nearest}.",
                    model=model.name,
                    count=count,
                    e=e,
                    nearest=nearest,
                )
            )
    if ranks % (e * q) and q == 1:
        nearest = near(e, [n for n in divisors(ranks) if holds(n, 1)])
        raise InvalidPlan(
            Message(
                "expert_parallel_size must divide the {ranks} of a pipeline stage. Got {e}. Nearest: {nearest}.",
                ranks=counted(ranks, "ranks"),
                e=e,
                nearest=nearest,
            )
        )
    if ranks % (e * q):
        asked = {"e": e, "q": q}
        nearest = near_sizes(asked, divisors(ranks), lambda sizes: holds(**sizes))
        raise InvalidPlan(
            Message(
                "expert_parallel_size x expert_tensor_parallel_size must divide the {ranks} of a pipeline "
                "stage. Got {e} x {q}. Nearest: {nearest}.",
                ranks=counted(ranks, "ranks"),
                e=e,
                q=q,
                nearest=nearest,
            )
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
                Message(
                    "{name} may be at most {context} for {model}: its learned table {op} has no more "
                    "positions. Got {length}.",
                    name=name,
                    context=model.context,
                    model=model.name,
                    op=op.name,
                    length=length,
                )
            )

"""Checks of single values that training and serving share; what sizes must hold together is in validity."""

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, option_name
from tonnage.ops import Embedding, MoE

LARGEST = 2**40  # sizes stay exact in arrays of float64
# The learned tables with one row for each position, by the last part of their names in checkpoints.
POSITION_TABLES = frozenset({"wpe", "embed_positions", "position_embeddings"})


def check_size(name: str, value: int | None) -> None:
    """A size that was given must be from 1 to LARGEST."""
    if value is not None and not 1 <= value <= LARGEST:
        raise InvalidPlan(
            "{name} must be from 1 to {most:,}. Got {value:,}.", name=option_name(name), most=LARGEST, value=value
        )


def check_has_experts(model: Model, e: int | None, q: int | None) -> None:
    """Sizes of expert parallelism above 1 are of models with experts, whatever the runtime and the accelerators."""
    for name, size in (("expert_parallel_size", e), ("expert_tensor_parallel_size", q)):
        if (size or 1) > 1 and not expert_counts(model):
            raise NotApplicable(
                Message(
                    "{model} has no experts, so {name} must be 1. Got {size}.",
                    model=model.name,
                    name=option_name(name),
                    size=size,
                ),
                name,
                ("model",),
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
                "{name} may be at most {context} for {model}: its learned table {op} has no more "
                "positions. Got {length}.",
                name=option_name(name),
                context=model.context,
                model=model.name,
                op=op.name,
                length=length,
            )

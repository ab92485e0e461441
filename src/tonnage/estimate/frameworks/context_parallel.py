"""How context ranks share a sequence, by the names that frameworks have for it.

p2p passes keys and values around a ring; a2a gives each rank the whole sequence of some heads (DeepSpeed-Ulysses;
ms-swift's sequence_parallel_size; Accelerate's sp); allgather collects keys and values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import unknown
from tonnage.ops import Attention

METHODS = ("p2p", "a2a", "allgather")  # Megatron-core, transformer_config.py: cp_comm_type
# Other names of these: Megatron-core, transformer_config.py, cp_comm_type: a2a is as DeepSpeed Ulysses, over heads;
# p2p passes keys and values around a ring.
METHOD_NAMES = {
    "ulysses": "a2a",
    "deepspeed-ulysses": "a2a",
    "all-to-all": "a2a",
    "alltoall": "a2a",
    "ring": "p2p",
    "ring-attention": "p2p",
    "ring-attn": "p2p",
    "all-gather": "allgather",
}
# Ulysses within groups of ranks and a ring between them.
BOTH = ("a2a+p2p", "usp", "ulysses-ring", "hybrid", "unified")


def method_named(name: str | None, known: Sequence[str], usual: str, why: str, q: Question) -> str:
    """How context ranks share a sequence, by Megatron's name or by another; `usual`: the runtime's own."""
    plain = (name or "").lower().replace("_", "-")
    if plain in METHOD_NAMES:
        name = str(q.put("context_parallel_method", METHOD_NAMES[plain], "given", plain))
    if plain in BOTH:
        raise InvalidPlan(
            "{@context_parallel_method} {name}, all-to-all within groups of ranks and a ring between them, is not "
            "estimated: it must be one of {methods}.",
            name=name,
            methods=listed(known),
        )
    method: str = (
        name if plain in METHOD_NAMES and name else q.take("context_parallel_method", name, usual, "runtime", why)
    )
    if method not in known:
        raise unknown("method of context parallelism", method, known)
    return method


def shared_heads(model: Model, sizes: Mapping[str, Any], method: str) -> str:
    """The method; InvalidPlan where all-to-all would give a rank no whole head."""
    ranks = sizes["context_parallel_size"] * sizes["tensor_parallel_size"]
    heads = next((op.heads for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention)), 0)
    if method == "a2a" and heads and heads % ranks:
        raise InvalidPlan(
            Message(
                "{@context_parallel_method} a2a deals out heads: {@context_parallel_size} x {@tensor_parallel_size} "
                "must divide the {heads} heads of {model}. Got {ranks}.",
                heads=heads,
                model=model.name,
                ranks=ranks,
            )
        )
    return method


def method_of(
    model: Model, sizes: Mapping[str, Any], known: Sequence[str], why: str, o: TrainingOptions, q: Question
) -> dict[str, Any]:
    """The field of a plan that says how context ranks share a sequence, the first of `known` where nobody says it."""
    if sizes["context_parallel_size"] == 1:
        return {}
    method = method_named(o.context_parallel_method, known, known[0], why, q)
    return {"context_parallel_method": shared_heads(model, sizes, method)}

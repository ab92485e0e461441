"""Weights that are quantised in blocks of rows and columns (FP8 of DeepSeek-V3 and others): which tensor sizes engines
cut them into.

vLLM and SGLang refuse to load a rank's part of a matrix whose cut side is no multiple of the block: an expert of 1,536
on 8 ranks is 192 wide, and a block is 128. Expert parallelism keeps experts whole.
"""

from collections.abc import Iterator
from functools import lru_cache

from tonnage.architectures import Model
from tonnage.estimate.plan.nearest import near
from tonnage.estimate.serving.weights.storage import block_sizes
from tonnage.kernel.errors import InvalidPlan, TonnageError
from tonnage.kernel.message import Message
from tonnage.ops import MLP, Attention, MoE, Op
from tonnage.runtimes import ServingRuntime


def check_blocks(
    model: Model, weights: str | None, engine: ServingRuntime, t: int, e: int, groups: int, among: list[int]
) -> None:
    """InvalidPlan where a rank's part of a matrix is cut through a block. `t`, `e`: tensor and expert ranks;
    `among`: sizes that there is room for.
    """
    wrong = None if not engine.blocks_rule else _misfit(model, weights, t, e, groups)
    if wrong is None:
        return
    what, width, part, block = wrong
    fitting = [size for size in among if _misfit(model, weights, size, min(e, size * groups), groups) is None]
    whole = t * groups
    nearest = str(near(t, fitting or [1]))
    if what == "expert" and _misfit(model, weights, t, whole, groups) is None:
        nearest += Message(", or {@expert_parallel_size} {whole}", whole=whole)
    raise InvalidPlan(
        "{@tensor_parallel_size}: {version} cuts the {width:,} columns of an {what} of {model} "
        "into {part:g} a rank, which is no multiple of its blocks of {block}. Got {t}. Nearest: "
        "{nearest}. ({blocks_rule}.)",
        version=engine.version,
        width=width,
        what=what,
        model=model.name,
        part=part,
        block=block,
        t=t,
        nearest=nearest,
        blocks_rule=engine.blocks_rule,
    )


def fits_blocks(model: Model, weights: str | None, engine: ServingRuntime, t: int, e: int, groups: int) -> bool:
    """Whether the engine loads the weights on so many ranks."""
    try:
        return not engine.blocks_rule or _misfit(model, weights, t, e, groups) is None
    except TonnageError:  # what the checkpoint is in cannot be told: the reading of its weights says so
        return True


@lru_cache(maxsize=1024)
def _misfit(model: Model, weights: str | None, t: int, e: int, groups: int) -> tuple[str, int, float, int] | None:
    """What is cut through a block: its name, its width, the part of a rank, and the block."""
    blocks = block_sizes(model, weights)
    if not blocks:
        return None
    ranks = {"expert": t * groups // e if e else 1, "MLP": t, "attention output": t}
    for layer in model.decoder.blocks:
        for op in layer.ops:
            for what, width, name in _cut(op):
                block = blocks.get(name)
                part = width / max(ranks[what], 1)
                if block and ranks[what] > 1 and part % block:
                    return what, width, part, block
    return None


def _cut(op: Op) -> Iterator[tuple[str, int, str]]:
    """Of each matrix that tensor ranks share: what it is of, the width that is cut, and the name of its weight."""
    names = [weight.name for weight in op.weights() if weight.linear]
    if isinstance(op, MoE):
        yield from (("expert", op.intermediate_size, name) for name in names if ".experts." in f".{name}")
        yield from (
            ("MLP", op.shared_size, name) for name in names if op.shared_size and f".{op.shared_name}." in f".{name}"
        )
    elif isinstance(op, MLP):
        yield from (("MLP", op.intermediate_size, name) for name in names)
    elif isinstance(op, Attention):
        # Keys and values of few heads are repeated or padded by engines: of them nothing is refused here.
        query, _, _, out = op.names
        yield from (
            ("attention output", op.heads * op.head_dim, name) for name in names if name.split(".")[-2] in (query, out)
        )

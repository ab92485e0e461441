"""What ranks send each other in a layer whose code does not say so: the least that a layer which is cut like that must
exchange.

The tapes of Megatron, torchtitan and nanotron note their own exchanges; code that others cut from outside (transformers
under FSDP2, DeepSpeed's tensor parallelism, context and expert parallelism of FSDP2) is counted here.
"""

from collections.abc import Iterator

from tonnage.architectures import Block
from tonnage.ops import Attention, LatentAttention, MoE
from tonnage.tape import Exchange, Extent, Group, Pass, Work

WHOLE, CUT = Extent("token", "gathered"), Extent("token", "tensor")
RING = Exchange("context parallel", "send", beside=True)
SUM, ROWS = Exchange("tensor parallel", "all_reduce"), Exchange("expert parallel", "all_to_all")


def unsaid(block: Block, hidden: int, width: float, missing: set[Group], passes: tuple[Pass, ...]) -> Iterator[Work]:
    """Exchanges of one layer of these groups, of numbers of `width` bytes; `passes`: in which the layer runs,
    backward among them.
    """
    for op in block.ops:
        for when in passes:
            backward = when == "backward"
            if SUM.group in missing and any(weight.split in ("tensor", "kv") for weight in op.weights()):
                # Megatron's f and g (Shoeybi2019, sec. 3): a sum of outputs forward, of gradients of inputs backward
                yield _sent(SUM, when, WHOLE, width * hidden)
            if RING.group in missing and (numbers := _keys_and_values(op)):
                # keys and values of the others; backward them again, and their gradients
                yield _sent(RING, when, CUT, width * numbers * (2 if backward else 1))
            if ROWS.group in missing and isinstance(op, MoE):
                # to the experts and back
                yield from [_sent(ROWS, when, WHOLE, width * op.top_k * (op.latent_size or op.hidden_size))] * 2


def _keys_and_values(op: object) -> int:
    """Numbers for each token that another rank's queries need."""
    if isinstance(op, Attention):
        return op.key_width + op.value_width if op.memory_tokens is None else 0
    if isinstance(op, LatentAttention):
        return op.heads * (op.qk_nope_head_dim + op.qk_rope_head_dim + op.v_head_dim)
    return 0


def _sent(exchange: Exchange, when: Pass, extent: Extent, size: float) -> Work:
    return Work(exchange.group, "exchange", when, bytes={extent: size}, exchange=exchange)

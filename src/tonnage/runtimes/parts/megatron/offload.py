"""What Megatron-core can move to the host from forward to backward.

Source: Megatron-core 0.16 and newer, megatron/core/pipeline_parallel/fine_grained_activation_offload.py
(--offload-modules).
"""

from tonnage.architectures import Block
from tonnage.ops import Attention, LatentAttention, MoE
from tonnage.tape import TENSOR, TOKEN, Extent
from tonnage.tape.megatron import CUT_ROW, ROW

SMALLEST = 1024 * 1024  # tensors of fewer elements stay (min_offloaded_tensor_size)
MODULES = ("attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act")
Tensors = tuple[tuple[float, Extent], ...]


def offloadable(block: Block, modules: tuple[str, ...]) -> Tensors:
    """Numbers a unit and extent of each tensor that these modules of one layer send away.

    The last group of each module on a rank stays, and one group is on its way in either direction.
    """
    tensors: list[tuple[float, Extent]] = []
    for op in block.ops:
        if isinstance(op, Attention | LatentAttention):
            tensors += _of_attention(op, modules)
        if isinstance(op, MoE):
            width = op.latent_size or op.hidden_size
            tensors += [(op.hidden_size, TOKEN)] if "mlp_norm" in modules else []
            tensors += [(width, ROW)] if "expert_fc1" in modules else []
            tensors += [(op.intermediate_size * (2 if op.gated else 1), CUT_ROW)] if "moe_act" in modules else []
    return tuple(tensors)


def _of_attention(op: Attention | LatentAttention, modules: tuple[str, ...]) -> list[tuple[float, Extent]]:
    if isinstance(op, Attention):
        inner = (op.query_width, op.key_width, op.value_width)
        out = op.out_width
    else:
        keys = op.heads * (op.qk_nope_head_dim + op.qk_rope_head_dim)
        out = op.heads * op.v_head_dim
        inner = (keys, keys, out)
    tensors: list[tuple[float, Extent]] = [
        (op.hidden_size, TOKEN) for name in ("attn_norm", "qkv_linear") if name in modules
    ]
    if "core_attn" in modules:
        tensors += [(size, TENSOR) for size in inner]
        tensors += [(out, TENSOR)] if "attn_proj" in modules else []
    return tensors

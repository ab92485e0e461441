"""Memory of Megatron-core and Transformer Engine that no tensor of the model is: workspaces, dummy gradients, tables,
gathered input.

Bytes of one rank. `capability`: the accelerator's compute capability as 90 for 9.0.
"""

from collections.abc import Iterable

from tonnage.kernel.units import MIB
from tonnage.tape.megatron import MegatronSetting, Shape

STREAMS = 4  # Transformer Engine, module/base.py: streams of grouped matrix products, each with a workspace
THREADS = 2  # torch keeps a workspace for each thread's handle: the forward's and autograd's
DUMMY = 2  # bytes of a dummy gradient's number


def padded_vocabulary(
    vocab_size: int, tensor_parallel_size: int, multiple: int = 128, null_tokenizer: bool = False
) -> int:
    """Rows of the table: a multiple of --make-vocab-size-divisible-by times the tensor ranks. NullTokenizer has one
    token more.

    Source: Megatron-LM, megatron/training/tokenizer, _vocab_size_with_padding.
    """
    step = multiple * tensor_parallel_size
    return -(-(vocab_size + null_tokenizer) // step) * step


def dummy_weight_gradients(
    shapes: Iterable[Shape], setting: MegatronSetting, tensor_parallel_size: int, expert_tensor_parallel_size: int = 1
) -> float:
    """With fused accumulation every weight's gradient is there already; autograd is given a buffer, one for each
    distinct shape.

    Before engine 2.4 a buffer came and went with each product: the largest is given then. `shapes`: those of all layers
    of the rank (MegatronCode.shapes) and, on the last stage, of the output layer (`ends.output_shape`).
    Source: Transformer Engine, module/base.py, get_dummy_wgrad; module/grouped_linear.py.
    """
    if not setting.gradient_accumulation_fusion:
        return 0
    grouped = setting.has("dummy weight gradients of grouped linears persist")
    on_rank: dict[tuple[float, float], float] = {}
    transient = 0.0
    for shape in shapes:
        ranks = expert_tensor_parallel_size if shape.of == "expert" else tensor_parallel_size
        rows, columns = (
            size / ranks if shape.cut == name else size
            for name, size in (("rows", shape.rows), ("columns", shape.columns))
        )
        if setting.has("dummy weight gradients persist") and (grouped or shape.of != "expert"):
            on_rank[rows, columns] = DUMMY * rows * columns
        else:
            transient = max(transient, DUMMY * rows * columns)
    return sum(on_rank.values()) + transient


def matmul_workspace(capability: int, setting: MegatronSetting, has_experts: bool) -> float:
    """Transformer Engine's for matrix products: one, and one for each stream of grouped products.

    Source: Transformer Engine, module/base.py, get_cublas_workspace_size_bytes.
    """
    more = 1024 if setting.has("the workspace of matrix products has 1024 bytes more") else 0
    one = 32 * MIB + more if capability >= 90 else 4 * MIB
    return one * (1 + STREAMS if has_experts else 1)


def torch_workspace(capability: int, blackwell_is_large: bool = True) -> float:
    """PyTorch's own cuBLAS workspaces, where a product runs in torch (`multiplies_in_torch`): one for each thread.

    `blackwell_is_large`: PyTorch gave it 32 MiB in February 2026 (pull request 175344).
    Source: PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize.
    """
    large = capability // 10 == 9 or (capability >= 100 and blackwell_is_large)
    return THREADS * (32 * MIB if large else 8.125 * MIB)


def multiplies_in_torch(setting: MegatronSetting, is_last: bool, has_experts: bool) -> bool:
    """The output layer does, and the router where core asks the engine for a workspace that it no longer has."""
    lost = setting.has("the router lost its workspace") and not setting.has("router multiplies in Transformer Engine")
    return is_last or (has_experts and lost)


def global_memory(setting: MegatronSetting, tokens: float, hidden: int, is_last: bool) -> float:
    """The output layer's gathered input (utils.py, GlobalMemoryBuffer "mpu"); layers of Transformer Engine gather
    elsewhere.
    """
    return tokens * hidden * setting.types.compute if is_last and setting.sequence_parallel else 0


def rotary_tables(setting: MegatronSetting, tokens: float, rotary: float, latent_layers: int) -> float:
    """Angles in fp32, once a model; with latent attention every layer has its own, with 16-bit cosines and sines.

    `tokens`: positions of the rank; `rotary`: turned numbers of a head; `latent_layers`: how many layers of the rank
    have it.
    Source: Megatron-core, models/common/embeddings/{rotary_pos_embedding,yarn_rotary_pos_embedding}.py (lru_cache of
    forward).
    """
    if latent_layers:
        return tokens * rotary * latent_layers * (8 if setting.rope_fusion else 12)
    return 4 * tokens * rotary

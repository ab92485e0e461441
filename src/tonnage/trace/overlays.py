"""Overlays: memory of kernels that no tensor shows, by operation, version of PyTorch and GPU.

An overlay inspects one call and returns the temporaries inside it, the workspace that stays from then on, or the real
size of its result's storage. Torch is not needed here: a call's tensors have `shape`, `dim`, `numel` and
`element_size`.
"""

from collections.abc import Callable
from math import ceil
from typing import Any

from msgspec import Struct

from tonnage.trace.profiles import Profile, Version


class Effect(Struct, frozen=True, kw_only=True):
    """`temporaries`: bytes that are live together inside the call; `workspaces`: (name, bytes) that stay from their
    first use on each thread; `storage`: bytes of the result's storage.
    """

    temporaries: tuple[int, ...] = ()
    workspaces: tuple[tuple[str, int], ...] = ()
    storage: int | None = None


class Call(Struct, frozen=True):
    """One operation: its arguments, its result, and the profile it runs under."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any
    profile: Profile


class Overlay(Struct, frozen=True, kw_only=True):
    """An `effect` on `operations`, from one version of PyTorch to another. `exact`: read from the kernel's source; else
    an estimate.
    """

    name: str
    operations: tuple[str, ...]
    effect: Callable[[Call], Effect | None]
    source: str
    first: Version = (0, 0)
    last: Version = (99, 0)
    exact: bool = True

    def holds(self, profile: Profile) -> bool:
        return self.first <= profile.torch <= self.last


def overlays(profile: Profile) -> dict[str, tuple[Overlay, ...]]:
    """The overlays of a profile, by operation."""
    by_operation: dict[str, tuple[Overlay, ...]] = {}
    for overlay in OVERLAYS:
        if overlay.holds(profile):
            for operation in overlay.operations:
                by_operation[operation] = (*by_operation.get(operation, ()), overlay)
    return by_operation


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _cublas(call: Call) -> Effect | None:
    if call.profile.cublas == "kept":
        return Effect(workspaces=(("cublas", call.profile.cublas_bytes),))
    return Effect(temporaries=(call.profile.cublas_bytes,)) if call.profile.cublas == "temporary" else None


def _with_bias(call: Call) -> Effect | None:
    """The workspaces of addmm, which calls cublasLt where its bias is a vector and its product no vector."""
    bias, _, second = call.arguments[:3]
    profile = call.profile
    if bias.dim() != 1 or second.shape[0] <= 1 or second.shape[1] <= 1:
        return _cublas(call)
    workspaces = (("cublas", profile.cublas_bytes),) if profile.cublas == "kept" else ()
    if profile.lt == "temporary":
        return Effect(temporaries=(profile.lt_bytes,), workspaces=workspaces)
    if profile.lt == "kept":
        workspaces = (*workspaces, ("cublaslt", profile.lt_bytes))
    return Effect(workspaces=workspaces)


def _mean_loss(call: Call) -> Effect | None:
    """The structured kernel allocates its result as large as its input and shrinks the shape, not the storage."""
    reduction = call.arguments[2] if len(call.arguments) > 2 else call.keywords.get("reduction", 1)
    if reduction == 0:
        return None
    size = _bytes(call.arguments[0])
    return Effect(temporaries=(size,), storage=size)


def _split_kv(call: Call) -> Effect | None:
    """Few queries on many keys: the keys are split among blocks, whose partial results are fp32. With one query,
    those of shared heads count as its rows.
    """
    query, key = call.arguments[:2]
    dropout = call.arguments[3] if len(call.arguments) > 3 else call.keywords.get("dropout_p", 0.0)
    if dropout:
        return None
    batch, heads, length, width = query.shape
    if length == 1 and heads > key.shape[1] and width % 8 == 0:
        heads, length = key.shape[1], heads // key.shape[1]
    keys = 256 if width <= 64 else 128 if width <= 128 else 64
    splits = _splits(batch * heads * -(-length // 64), 2 * call.profile.gpu.multiprocessors, -(-key.shape[2] // keys))
    if splits == 1:
        return None
    rows = splits * batch * heads * length
    return Effect(temporaries=(rows * 4, rows * _round_up(width, 32 if width <= 128 else 64) * 4))


def _splits(blocks: int, multiprocessors: int, key_blocks: int) -> int:
    """The smallest number of splits that uses the multiprocessors to 85 % of the best possible."""
    if blocks >= 0.8 * multiprocessors:
        return 1
    eligible = [
        number
        for number in range(1, min(128, multiprocessors, key_blocks) + 1)
        if number == 1 or -(-key_blocks // number) != -(-key_blocks // (number - 1))
    ]
    waves = {number: blocks * number / multiprocessors for number in eligible}
    efficiency = {number: wave / ceil(wave) for number, wave in waves.items()}
    best = max(efficiency.values(), default=0.0)
    return next((number for number in eligible if efficiency[number] >= 0.85 * best), 1)


def _flash_backward(call: Call) -> Effect | None:
    """softmax_d, dq_accum, and keys' and values' gradients of every query head where heads are shared."""
    _, query, key = call.arguments[:3]
    batch, heads, length, width = query.shape
    rows, columns = _round_up(length, 128), _round_up(width, 32 if width <= 128 else 64)
    held = [batch * heads * rows * 4, batch * rows * heads * columns * 4]
    if key.shape[1] != heads:
        held += [batch * key.shape[2] * heads * width * query.element_size()] * 2
    return Effect(temporaries=tuple(held))


def _efficient_backward(call: Call) -> Effect | None:
    query = call.arguments[1]
    batch, heads, length, _ = query.shape
    return Effect(temporaries=(batch * heads * _round_up(length, 32) * 4,))


def _cudnn_backward(call: Call) -> Effect | None:
    query = call.arguments[1]
    batch, heads, length, width = query.shape
    return Effect(temporaries=(batch * heads * length * 4, batch * heads * length * width * 4))


def _softmax_backward(call: Call) -> Effect:
    """The product of gradient and result."""
    return Effect(temporaries=(_bytes(call.arguments[0]),))


def _embedding_backward(call: Call) -> Effect | None:
    """Above 3072 tokens the kernel sorts them, and sums segments in fp32."""
    gradient, indices = call.arguments[:2]
    tokens = indices.numel()
    if tokens <= 3072:
        return None
    return Effect(temporaries=(*[tokens * 8] * 6, tokens * gradient.shape[-1] * 4))


_FLASH = "PyTorch, aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp: mha_bwd"
OVERLAYS = (
    Overlay(
        name="cuBLAS workspace",
        operations=("aten.mm.default", "aten.bmm.default", "aten.baddbmm.default"),
        effect=_cublas,
        source="PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp",
    ),
    Overlay(
        name="cublasLt workspace",
        operations=("aten.addmm.default",),
        effect=_with_bias,
        source="PyTorch, aten/src/ATen/cuda/CUDABlas.cpp: gemm_and_bias",
    ),
    Overlay(
        name="loss of full size",
        operations=("aten.mse_loss.default", "aten.smooth_l1_loss.default"),
        effect=_mean_loss,
        source="PyTorch, aten/src/ATen/native/BinaryOps.cpp and Loss.cpp: borrowing binary op, resized after",
    ),
    Overlay(
        name="flash attention with split keys",
        operations=("aten._scaled_dot_product_flash_attention.default",),
        effect=_split_kv,
        first=(2, 2),
        source=(
            "PyTorch, aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp: set_params_splitkv, "
            "num_splits_heuristic"
        ),
    ),
    Overlay(
        name="flash attention backward",
        operations=("aten._scaled_dot_product_flash_attention_backward.default",),
        effect=_flash_backward,
        first=(2, 0),
        source=_FLASH,
    ),
    Overlay(
        name="efficient attention backward",
        operations=("aten._scaled_dot_product_efficient_attention_backward.default",),
        effect=_efficient_backward,
        first=(2, 0),
        exact=False,
        source="PyTorch, aten/src/ATen/native/transformers/cuda/attention_backward.cu: delta",
    ),
    Overlay(
        name="cuDNN attention backward",
        operations=("aten._scaled_dot_product_cudnn_attention_backward.default",),
        effect=_cudnn_backward,
        first=(2, 5),
        exact=False,
        source="PyTorch, aten/src/ATen/native/cudnn/MHA.cpp: workspace of the graph, taken as that of flash attention",
    ),
    Overlay(
        name="softmax backward",
        operations=("aten._softmax_backward_data.default",),
        effect=_softmax_backward,
        source="PyTorch, aten/src/ATen/native/cuda/SoftMax.cu: softmax_backward_cuda_out",
    ),
    Overlay(
        name="embedding backward",
        operations=("aten.embedding_dense_backward.default",),
        effect=_embedding_backward,
        exact=False,
        source="PyTorch, aten/src/ATen/native/cuda/Embedding.cu and EmbeddingBackwardKernel.cu",
    ),
)

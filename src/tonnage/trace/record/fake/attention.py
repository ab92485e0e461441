"""scaled_dot_product_attention as on a GPU: the backend that PyTorch would choose, with that backend's own operations.

The rules are those of aten/src/ATen/native/transformers/cuda/sdp_utils.cpp; a CPU build would always take the math
path.
"""

import math
from collections import Counter
from typing import Any

import torch
from torch.backends import cuda as flags
from torch.nn.attention import SDPBackend

from tonnage.trace.profiles import Profile

aten = torch.ops.aten
FLASH, EFFICIENT, MATH, CUDNN = (
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
)
_NO_WIDE_TRAINING = {(8, 6), (8, 7), (8, 9), (12, 0), (12, 1)}


class Attention:
    """Replaces aten::scaled_dot_product_attention under one profile. `chosen` counts calls by backend."""

    def __init__(self, profile: Profile):
        self.profile = profile
        self.chosen: Counter[str] = Counter()

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        trains = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
        request = _Request(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa, trains, self.profile)
        backend = request.backend()
        self.chosen[backend.name.lower()] += 1
        if attn_mask is not None and attn_mask.dtype == torch.bool and backend is not MATH:
            wide = torch.zeros_like(attn_mask, dtype=query.dtype)
            attn_mask = wide.masked_fill_(attn_mask.logical_not(), float("-inf"))
        if backend is FLASH:
            width = query.shape[-1]
            root = 1 / math.sqrt(width) if scale is None else scale
            padded = (_pad(query), _pad(key), _pad(value))
            out = aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, False, scale=root)[0]
            return out if out.shape[-1] == width else out[..., :width]
        if backend is EFFICIENT:
            mask = _aligned(attn_mask, query, key)
            return aten._scaled_dot_product_efficient_attention(
                query, key, value, mask, trains, dropout_p, is_causal, scale=scale
            )[0]
        if backend is CUDNN:
            return aten._scaled_dot_product_cudnn_attention(
                query, key, value, attn_mask, trains, dropout_p, is_causal, False, scale=scale
            )[0]
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]


class _Request:
    """One call's facts, and the backends that support it."""

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        mask: Any,
        dropout: float,
        causal: bool,
        gqa: bool,
        trains: bool,
        profile: Profile,
    ):
        self.query, self.key, self.value, self.mask = query, key, value, mask
        self.dropout, self.causal, self.trains, self.profile = dropout, causal, trains, profile
        self.width, self.value_width = query.shape[-1], value.shape[-1]
        four = query.dim() == key.dim() == value.dim() == 4
        batches = four and query.shape[0] == key.shape[0] == value.shape[0]
        self.same_heads = batches and query.shape[1] == key.shape[1] == value.shape[1]
        grouped = gqa and batches and key.shape[1] == value.shape[1] and query.shape[1] % key.shape[1] == 0
        self.grouped_heads = self.same_heads or grouped
        self.dense = four and all(operand.stride(-1) == 1 for operand in (query, key, value))
        self.not_empty = four and query.shape[2] > 0 and key.shape[2] > 0
        self.half = query.dtype in (
            (torch.float16, torch.bfloat16) if profile.gpu.capability >= (8, 0) else (torch.float16,)
        )

    def backend(self) -> SDPBackend:
        """The first enabled backend in the order that supports the call."""
        can = {FLASH: self.flash, EFFICIENT: self.efficient, CUDNN: self.cudnn, MATH: flags.math_sdp_enabled}
        for backend in self._order():
            if can[backend]():
                return backend
        raise RuntimeError("No available kernel. Aborting execution.")

    def _order(self) -> tuple[SDPBackend, ...]:
        major, minor = self.profile.gpu.capability
        if self.profile.cudnn > 91500 and major in (9, 10) and minor in (0, 3):
            return (CUDNN, FLASH, EFFICIENT, MATH)
        return (FLASH, EFFICIENT, MATH, CUDNN)

    def flash(self) -> bool:
        capability = self.profile.gpu.capability
        if not flags.flash_sdp_enabled() or capability < (8, 0) or self.mask is not None:
            return False
        if not (self.width == self.key.shape[-1] == self.value_width <= 256):
            return False
        wide = 192 < self.width <= 224 or (self.width > 224 and self.dropout > 0)
        if self.trains and capability in _NO_WIDE_TRAINING and wide:
            return False
        if self.causal and self.query.shape[2] != self.key.shape[2]:
            return False
        return self.half and self.grouped_heads and self.not_empty and self.dense

    def efficient(self) -> bool:
        modern = self.profile.gpu.capability >= (8, 0)
        two_bytes = self.query.dtype in (torch.float16, torch.bfloat16)
        step = (8 if two_bytes else 4) if modern else (8 if self.query.dtype == torch.float16 else 1)
        widths = self.width == self.key.shape[-1] and self.width % step == 0 and self.value_width % step == 0
        kind = self.half or self.query.dtype == torch.float32
        return (
            flags.mem_efficient_sdp_enabled() and widths and kind and self.same_heads and self.not_empty and self.dense
        )

    def cudnn(self) -> bool:
        gpu, version = self.profile.gpu, self.profile.cudnn
        if not flags.cudnn_sdp_enabled() or self.profile.torch < (2, 5) or gpu.capability < (8, 0) or not self.half:
            return False
        limit = 256 if gpu.capability == (9, 0) and version >= 91000 else 128
        if gpu.capability[0] == 10 and version >= 91100 and (self.width, self.value_width) == (192, 128):
            limit = 192
        if self.mask is not None and self.trains and self.mask.requires_grad:
            return False
        if self.width > limit or self.value_width > limit or self.width % 8 or self.value_width % 8:
            return False
        if self.key.shape[2] == 1 or (self.query.shape[2] == 1 and self.dropout):
            return False
        return self.grouped_heads and self.not_empty and self.dense


def _pad(tensor: torch.Tensor) -> torch.Tensor:
    rest = tensor.shape[-1] % 8
    return tensor if rest == 0 else torch.nn.functional.pad(tensor, (0, 8 - rest))


def _aligned(mask: torch.Tensor | None, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor | None:
    """A mask whose rows begin at multiples of 8 elements, expanded over the heads."""
    if mask is None:
        return None
    length = mask.shape[-1]
    if length % 8:
        mask = torch.nn.functional.pad(mask, (0, 8 - length % 8))[..., :length]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])

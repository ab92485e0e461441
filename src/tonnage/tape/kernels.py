"""The kernel of scaled_dot_product_attention on a GPU: the same rules as the trace's, on sizes alone.

Source: PyTorch 2.13, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp. cuDNN comes first on Hopper and Blackwell
with cuDNN 9.15 and later, flash elsewhere; both keep the same.
"""

from typing import Literal

AttentionKernel = Literal["flash", "cudnn", "efficient", "math"]
MAX_HEAD_WIDTH = 256  # numbers a head, for cuDNN on Hopper and for flash


def chosen_kernel(
    width: float,
    value_width: float,
    bytes_each: float,
    *,
    is_shared: bool,
    is_masked: bool,
    has_cudnn: bool = True,
    alone: bool = False,
) -> AttentionKernel:
    """The first kernel that supports the sizes. `is_shared`: fewer heads of keys than of queries; `alone`: only the
    efficient kernel is enabled.
    """
    half = bytes_each == 2
    widest = max(width, value_width)
    if half and not alone and has_cudnn and widest <= MAX_HEAD_WIDTH and not width % 8 and not value_width % 8:
        return "cudnn"
    if half and not alone and not is_masked and width == value_width <= MAX_HEAD_WIDTH:
        return "flash"
    step = 8 if half else 4
    if not is_shared and not width % step and not value_width % step:
        return "efficient"
    return "math"


def shows_shared_heads(width: float, value_width: float, is_masked: bool) -> bool:
    """Whether transformers passes shared heads as they are (use_gqa_in_sdpa); else it copies them for each query
    head.
    """
    return not is_masked and width == value_width <= MAX_HEAD_WIDTH

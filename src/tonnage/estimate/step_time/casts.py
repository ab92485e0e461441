"""Casts of operands to 8 bits around products, as torchao makes them: bytes moved, and what its kernels reach.

An operand is cast along its rows for one product and along its columns for another; torch.compile writes the kernels,
and nothing is kept from one micro-batch to the next. Transformer Engine's casts are those of `KernelTime` itself.
"""

from collections.abc import Mapping

from msgspec import Struct

# torchao, prototype/moe_training/README.md, MXFP8 kernel breakdown by pass (B200, torch 2.11): shares of the memory's
# peak.
ALONG_ROWS, ALONG_COLUMNS = 0.833, 0.721
# aiconfigurator-core 0.12.0, gemm_perf of four Blackwells (docs/LOG.md): large products alone on the chip.
ALONE_16_BIT, ALONE_8_BIT = 0.718, 0.725


class Casts(Struct, frozen=True, kw_only=True):
    """What one recipe moves for each number of an operand, in bytes, over forward and backward.

    `rows`, `columns`: of an input or a gradient, for the product that reads its rows and for the one that reads its
    columns; `weight`: of a weight, forward and backward; `gathered`: the same where ranks gather it in 8 bits.
    `rescaled`: of a number of the result of a product of backward, which another kernel multiplies by the scales.
    `own`: kernels of torchao with shares of their own, not code of torch.compile. `alone`: the shares of the peak that
    large products reach alone on a Blackwell, and those of gradients of weights.
    """

    rows: float
    columns: float
    weight: tuple[float, float]
    gathered: tuple[float, float] = (0, 2)
    rescaled: float = 0
    own: bool = False
    alone: tuple[float, float] = (ALONE_8_BIT, ALONE_8_BIT)


# torchao, testing/training/roofline_utils.py: get_tensor_memory_traffic_ovhd_s.
CASTS: Mapping[str, Casts] = {
    # the largest number is sought (2), then both copies are written at once (2 + 1 + 1)
    "tensorwise": Casts(rows=3, columns=3, weight=(5, 3)),
    # each row has a scale: the transposed copy is written in 16 bit and cast by a second kernel. Products of backward,
    # which sum in fp32, are cuBLAS's with one scale, and their result is read and written again for the others
    # (torchao, float8/float8_ops.py: addmm_float8_unwrapped; pull request 1325, issue 2184)
    "rowwise": Casts(rows=4, columns=4, weight=(3, 7), rescaled=4),
    # shares of products: torchao, prototype/moe_training/README.md, as above
    "mxfp8": Casts(rows=3, columns=3, weight=(3, 3), own=True, alone=(0.746, 0.569)),
    # torchao, prototype/moe_training/nvfp4_training/nvfp4_linear.py: the largest number is sought (2), one kernel
    # writes both copies (2 + 2 * 9/16), which stay for backward; shares of products: pull request 2427, B200
    "nvfp4": Casts(rows=5.125, columns=0, weight=(5.125, 0), own=True, alone=(0.60, 0.60)),
}


def cast_seconds(
    casts: Casts, operands: float, weights: float, *, when: str, wgrad: bool, gathered: bool, peak: float, share: float
) -> float:
    """Seconds of the casts of one product. `operands`: numbers of its input and of its result, of which it reads one
    forward and one backward, and a gradient of weights both; `weights`: numbers of the weight; `peak`: bytes a second
    of the memory; `share`: of it, what kernels of torch.compile reach. Both counts may be arrays.
    """
    rows, columns = (ALONG_ROWS, ALONG_COLUMNS) if casts.own else (share, share)
    if wgrad:
        return (operands * casts.columns / columns + weights * casts.rescaled / share) / peak
    forward, backward = casts.gathered if gathered else casts.weight
    of_weight = backward / columns if when == "backward" else forward / rows
    rescaled = casts.rescaled / share if when == "backward" else 0
    return operands / 2 * (casts.rows / rows + rescaled) / peak + weights * of_weight / peak


def product_share(casts: Casts, wgrad: bool, sustained_16_bit: float) -> float:
    """The share of the narrow peak of a Blackwell that torchao's products reach in a step: what each reaches alone, as
    much lower as 16-bit products of steps are than the same alone, since the chip holds its power limit.
    """
    return casts.alone[wgrad] * sustained_16_bit / ALONE_16_BIT

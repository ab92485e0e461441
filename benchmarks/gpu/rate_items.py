"""Shapes at which rates and temporaries are measured. No torch here."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Item:
    """One row. `work`: the function that measures it; `sizes`: its arguments, which the row shows."""

    name: str
    work: str
    sizes: dict[str, Any] = field(default_factory=dict)


SQUARES = (512, 1024, 2048, 4096, 8192, 16384)
# outputs x inputs of the layers of 1B, 8B and 70B models, and the head of one
LAYERS = (
    (2048, 2048),
    (8192, 2048),
    (4096, 4096),
    (6144, 4096),
    (14336, 4096),
    (4096, 14336),
    (8192, 8192),
    (28672, 8192),
    (8192, 28672),
    (128256, 4096),
)
FIRST_LAYERS = ((4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192), (128256, 4096))
TOKENS = (1, 8, 32, 128, 512, 2048, 8192)
HALF = ("bf16", "fp16")


def matmul_items(first: bool = True, tiny: bool = False) -> list[Item]:
    """m tokens through an n x k matrix. First: squares, and bf16 at the layers of an 8B model."""
    if tiny:
        return [_matmul("fp32", 16, 32, 16), _matmul("bf16", 16, 16, 16), _matmul("fp8", 16, 16, 16)]
    layers = [("bf16", m, n, k) for m in TOKENS for n, k in LAYERS]
    early = [("bf16", m, n, k) for m in (1, 32, 512, 2048, 8192) for n, k in FIRST_LAYERS]
    squares = [
        (dtype, size, size, size)
        for dtype in ("bf16", "fp16", "tf32", "fp32", "fp8")
        for size in SQUARES
        if size < 16384 or dtype not in ("fp32", "tf32")
    ]
    rest = layers + [(dtype, m, n, k) for dtype in ("fp8", "fp16") for m in (32, 2048, 8192) for n, k in FIRST_LAYERS]
    early = list(dict.fromkeys([*squares, *early]))
    chosen = early if first else [each for each in dict.fromkeys(rest) if each not in early]
    return [_matmul(*each) for each in chosen]


def _matmul(dtype: str, m: int, n: int, k: int) -> Item:
    return Item(name=f"matmul-{dtype}-m{m}-n{n}-k{k}", work="matmul", sizes={"dtype": dtype, "m": m, "n": n, "k": k})


def attention_items(first: bool = True, tiny: bool = False) -> list[Item]:
    """Causal attention of batch x heads (key heads) x length x width, forward and backward; `decode`: one new token
    on a cache.
    """
    if tiny:
        return [_attention(backend, 1, 4, 2, 16, 8) for backend in ("math", "sdpa")] + [
            _attention("math", 2, 4, 2, 32, 8, decode=True)
        ]
    shapes = [(1, 32, 8, length, 128) for length in (512, 2048, 8192, 32768)] + [(4, 16, 16, 2048, 64)]
    more = [(1, 32, 8, length, 128) for length in (1024, 4096, 16384)] + [
        (8, 32, 8, 2048, 128),
        (1, 32, 32, 4096, 128),
        (1, 64, 8, 8192, 128),
        (2, 14, 2, 4096, 64),
        (1, 16, 8, 4096, 256),
        (32, 12, 12, 512, 64),
    ]
    found = [
        _attention(backend, *shape)
        for shape in (shapes if first else more)
        for backend in ("flash", "cudnn", "efficient", "math")
        if backend != "math" or shape[0] * shape[1] * shape[3] ** 2 <= 2**30
    ]
    caches = [(1, 8192), (32, 2048)] if first else [(1, 512), (1, 32768), (8, 8192), (128, 1024), (256, 4096)]
    found += [
        _attention(backend, batch, 32, 8, length, 128, decode=True)
        for batch, length in caches
        for backend in ("flash", "cudnn")
    ]
    return found


def _attention(
    backend: str, batch: int, heads: int, kv_heads: int, length: int, width: int, decode: bool = False
) -> Item:
    name = f"attention-{'decode-' if decode else ''}{backend}-b{batch}-h{heads}-kv{kv_heads}-s{length}-d{width}"
    return Item(
        name=name,
        work="attention",
        sizes={
            "backend": backend,
            "batch": batch,
            "heads": heads,
            "kv_heads": kv_heads,
            "length": length,
            "width": width,
            "decode": decode,
        },
    )


def copy_items(tiny: bool = False) -> list[Item]:
    """Bytes that a copy reads and writes a second; between host and device, bytes that cross."""
    sizes = (2**12,) if tiny else (2**16, 2**20, 2**24, 2**28, 2**30)
    kinds = (
        "device-device",
        "host-device-pinned",
        "device-host-pinned",
        "host-device-pageable",
        "device-host-pageable",
    )
    return [
        Item(name=f"copy-{kind}-{size}", work="copy", sizes={"kind": kind, "bytes": size})
        for kind in kinds
        for size in sizes
        if kind == "device-device" or size <= 2**28
    ]


OPERATIONS = (
    "add",
    "multiply",
    "silu_mul",
    "gelu",
    "cast",
    "softmax",
    "rms_norm",
    "layer_norm",
    "cross_entropy",
    "cross_entropy_backward",
    "embedding",
    "embedding_backward",
    "rotary",
    "dropout",
    "sum",
    "adamw_foreach",
    "adamw_fused",
)


def elementwise_items(tiny: bool = False) -> list[Item]:
    """Operations that move bytes and hardly compute; rows x columns elements."""
    sizes = ((16, 32),) if tiny else ((4096, 4096), (16384, 8192))
    made = []
    for operation in OPERATIONS:
        dtypes = ("fp32",) if tiny else ("bf16",) if operation == "cast" else ("bf16", "fp32")
        for rows, columns in sizes:
            made += [
                Item(
                    name=f"{operation}-{dtype}-{rows}x{columns}",
                    work="elementwise",
                    sizes={"operation": operation, "dtype": dtype, "rows": rows, "columns": columns},
                )
                for dtype in dtypes
            ]
    return made


KERNELS = (
    "mm",
    "bmm",
    "addmm",
    "mse_loss",
    "cross_entropy",
    "embedding",
    "layer_norm",
    "rms_norm",
    "softmax",
    "dropout",
    "sort",
    "topk",
    "cumsum",
    "index_add",
    "nonzero",
    "bincount",
    "scaled_mm",
    "grouped_mm",
    "clip_grad_norm",
    "conv2d",
)


def kernel_items(tiny: bool = False) -> list[Item]:
    """What kernels take for themselves: forward and backward of an operation on rows x columns."""
    sizes = ((32, 64),) if tiny else ((1000, 1024), (4096, 4096))
    made = [
        Item(
            name=f"kernel-{name}-{rows}x{columns}",
            work="kernel",
            sizes={"operation": name, "rows": rows, "columns": columns},
        )
        for name in KERNELS
        for rows, columns in sizes
    ]
    shapes = ((1, 4, 2, 16, 8),) if tiny else ((1, 32, 8, 2048, 128), (2, 16, 16, 1000, 64), (1, 32, 32, 4096, 128))
    for backend in ("math",) if tiny else ("flash", "efficient", "cudnn", "math"):
        for batch, heads, kv_heads, length, width in shapes:
            name = f"kernel-attention-{backend}-b{batch}-h{heads}-kv{kv_heads}-s{length}-d{width}"
            made.append(
                Item(
                    name=name,
                    work="kernel",
                    sizes={
                        "operation": "attention",
                        "backend": backend,
                        "batch": batch,
                        "heads": heads,
                        "kv_heads": kv_heads,
                        "length": length,
                        "width": width,
                    },
                )
            )
    return made

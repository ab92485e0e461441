"""PyTorch's allocators, cuBLAS, cuDNN, NCCL. Sources: c10/cuda/CUDACachingAllocator.cpp from 1.4 to 2.13 (its HIP
build says HIP), c10/xpu/XPUCachingAllocator.cpp, aten/src/ATen/mps/MPSAllocator.mm, NCCL (src/include/alloc.h). The
numbers of a message are read by `out_of_memory`, as it may be broken over several lines.
"""

import re
from collections.abc import Iterator

from tonnage.interchange.diagnose.log import Log
from tonnage.interchange.diagnose.numbers import SIZE, Number, size
from tonnage.interchange.diagnose.patterns import FAILED, FOLLOWS, SAYS_CAUSE, Hit, failure
from tonnage.kernel.units import MIB

PYTORCH = "pytorch"
DEVICES = "CUDA|HIP|XPU|NPU|MUSA|MLU|HPU|GPU"
BROKEN = 10  # lines over which a message may be broken
_LONGEST = 2500  # characters of a message

FAILURES = (
    failure(PYTORCH, " out of memory. ", rf"(?:{DEVICES}) out of memory\. Tried to allocate", strength=FAILED),
    failure(PYTORCH, " out of memory.", rf"(?:{DEVICES}) out of memory\.\s*$", strength=FAILED),
    failure(PYTORCH, "Tried to allocate", r"^\s*Tried to allocate .{1,40}[.(]", strength=FAILED),
    failure(PYTORCH, "MPS backend out of memory", strength=FAILED),
    failure(PYTORCH, "CUDA error: out of memory", strength=FAILED),
    failure(PYTORCH, "CUDA driver error: out of memory", strength=FAILED),
    failure(PYTORCH, "CUDA runtime error: out of memory", strength=FAILED),
    failure(PYTORCH, "cuda runtime error (2) : out of memory", strength=FAILED),
    failure(PYTORCH, "Error out of memory at line", strength=FAILED),  # bitsandbytes
    failure(PYTORCH, "HIP error: out of memory", strength=FAILED),
    failure(PYTORCH, "hipErrorOutOfMemory", strength=FAILED),
    failure(PYTORCH, "CUDA_ERROR_OUT_OF_MEMORY", strength=FAILED),
    failure(PYTORCH, "cudaErrorMemoryAllocation", strength=FAILED),
    failure(PYTORCH, "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", strength=FAILED),
    failure(PYTORCH, "Triton Error [CUDA]: out of memory", strength=FAILED),
    failure(PYTORCH, "CUBLAS_STATUS_ALLOC_FAILED", strength=FAILED),
    failure(PYTORCH, "CUDNN_STATUS_ALLOC_FAILED", strength=FAILED),
    failure(PYTORCH, "CUSOLVER_STATUS_ALLOC_FAILED", strength=FAILED),
    failure(
        PYTORCH,
        "Failed to CUDA calloc",
        r"Failed to CUDA calloc (?:async )?(?P<tried>\d+) bytes",
        phase="communication",
        cause="communication buffers",
        strength=SAYS_CAUSE,
        tried="bytes",
    ),
    failure(PYTORCH, "Failed to CUDA host alloc", phase="host", cause="host memory", strength=SAYS_CAUSE, host=True),
    failure(
        PYTORCH,
        "NCCL WARN Cuda failure",
        r"Cuda failure (?:2 )?'out of memory'",
        phase="communication",
        cause="communication buffers",
        strength=SAYS_CAUSE,
    ),
    failure(PYTORCH, "OutOfMemoryError", r"^(?:E +)?(?:torch\.)?(?:cuda\.)?OutOfMemoryError\b", strength=FOLLOWS),
)

_PARTS = (
    ("tried", re.compile(rf"[Tt]ried to allocate ({SIZE})")),
    ("total", re.compile(rf"total capac(?:i)?ty of ({SIZE})")),
    ("free", re.compile(rf"of which ({SIZE}) is free")),
    ("allowed", re.compile(rf"({SIZE}) allowed[;)]")),
    ("in_use_by_this_process", re.compile(rf"this process has ({SIZE}) memory in use")),
    ("allocated", re.compile(rf"Of the allocated memory ({SIZE}) is allocated by PyTorch")),
    ("in_graph_pools", re.compile(rf"with ({SIZE}) allocated in private pools")),
    ("reserved_but_unallocated", re.compile(rf"({SIZE}) is reserved by PyTorch but unallocated")),
    ("total", re.compile(rf"({SIZE}) total capacity;")),
    ("allocated", re.compile(rf"({SIZE}) already allocated;")),
    ("free", re.compile(rf"already allocated; ({SIZE}) free")),
    ("reserved", re.compile(rf"({SIZE}) reserved in total by PyTorch")),
    ("reserved_but_unallocated", re.compile(rf"free; ({SIZE}) cached")),  # up to 1.4
    ("allocated", re.compile(rf"MPS allocated: ({SIZE})")),
    ("outside_pytorch", re.compile(rf"other allocations: ({SIZE})")),
    ("total", re.compile(rf"max allowed: ({SIZE})")),
)
_GPU = re.compile(r"\(?[GN]PU (\d{1,4})[; ]")
_OTHER = re.compile(rf"Process (\d+) has ({SIZE}) memory in use")


def message(log: Log, hit: Hit) -> str:
    """What the allocator says, joined where it is broken over lines, up to the next failure."""
    parts = [hit.line.text]
    for line in log.after(hit.index, hit.line.rank, BROKEN):
        if "ried to allocate" in line.text and any("ried to allocate" in part for part in parts):
            break
        parts.append(line.text.strip())
    text = " ".join(parts)[:_LONGEST]
    start = max(text.find("out of memory"), 0)
    again = text.find("out of memory", start + 20)
    return text[:again] if again > 0 else text


def numbers(text: str, line: int) -> Iterator[Number]:
    """The numbers of an allocator's message. Those of other processes are one number."""
    seen = set[str]()
    seen_allocated = 0
    for name, pattern in _PARTS:
        if name not in seen and (found := pattern.search(text)) and (value := size(found[1])) is not None:
            seen.add(name)
            seen_allocated += value if name in ("allocated", "reserved_but_unallocated") else 0
            yield Number(name, value, "bytes", line)
    yield from _other_processes(text, line, seen_allocated)
    if found := _GPU.search(text):
        yield Number("gpu", int(found[1]), "", line)


def _other_processes(text: str, line: int, allocated: int) -> Iterator[Number]:
    """Memory of other processes. In a container this process may be one of those that are listed by number: of these it
    is the smallest that has what PyTorch allocated here.
    """
    sizes = sorted(value for found in _OTHER.finditer(text) if (value := size(found[2])) is not None)
    if sizes and "this process has" not in text and allocated >= 100 * MIB:
        own = next((value for value in sizes if value >= 0.98 * allocated), None)
        if own is not None:
            sizes.remove(own)
            yield Number("in_use_by_this_process", own, "bytes", line)
    if sizes:
        yield Number("in_use_by_other_processes", sum(sizes), "bytes", line)
        yield Number("other_processes", len(sizes), "processes", line)

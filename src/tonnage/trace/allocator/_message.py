"""PyTorch's message for running out of memory."""

from tonnage.kernel.units import GIB, KIB, MIB

_ADVICE = (
    " If reserved but unallocated memory is large try setting {variable}=expandable_segments:True to avoid "
    "fragmentation.  See "
    "documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)


def format_size(size: int) -> str:
    """A number of bytes as c10's format_size prints it."""
    if size <= KIB:
        return f"{size} bytes"
    for unit, name in ((KIB, "KiB"), (MIB, "MiB")):
        if size <= unit * KIB:
            return f"{size / unit:.2f} {name}"
    return f"{size / GIB:.2f} GiB"


def out_of_memory_message(
    *,
    tried: int,
    total: int,
    free: int,
    in_use: int,
    allocated: int,
    reserved: int,
    allowed: int | None = None,
    torch: tuple[int, int] = (2, 13),
) -> str:
    """PyTorch's sentence, by version. Sizes in bytes; `in_use`: by the process, `allowed`: by a memory fraction."""
    if torch < (2, 1):
        return (
            f"CUDA out of memory. Tried to allocate {format_size(tried)} (GPU 0; {format_size(total)} total capacity; "
            f"{format_size(allocated)} already allocated; {format_size(free)} free; "
            f"{f'{format_size(allowed)} allowed; ' if allowed is not None else ''}{format_size(reserved)} "
            "reserved in total by "
            "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
            "fragmentation.  See "
            "documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
        )
    variable = "PYTORCH_ALLOC_CONF" if torch >= (2, 9) else "PYTORCH_CUDA_ALLOC_CONF"
    return (
        f"CUDA out of memory. Tried to allocate {format_size(tried)}. GPU 0 has a total capacity of "
        f"{format_size(total)} of which "
        f"{format_size(free)} is free. Including non-PyTorch memory, this process has {format_size(in_use)} "
        "memory in use. "
        f"{f'{format_size(allowed)} allowed; ' if allowed is not None else ''}"
        f"Of the allocated memory {format_size(allocated)} is allocated by PyTorch, and "
        f"{format_size(reserved - allocated)} is "
        f"reserved by PyTorch but unallocated.{_ADVICE.format(variable=variable)}"
    )

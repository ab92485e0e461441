"""The devices to measure on: a GPU under PyTorch's caching allocator, or this host to try programs out."""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.measure import nvidia

NO_TORCH = "PyTorch is not installed, and programs are measured with it: pip install 'tonnage[trace]'."


class Figures(NamedTuple):
    """Bytes that the allocator has handed out and that it reserves, now and at their peaks since `reset_peaks`."""

    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int


class Device(Protocol):
    """`kind`: "cuda" or "cpu", the device type of tensors."""

    kind: str
    index: int

    def synchronize(self) -> None: ...
    def figures(self) -> Figures: ...
    def reset_peaks(self) -> None: ...
    def used_bytes(self) -> int | None:
        """Bytes in use on the whole device, by any process."""

    def process_bytes(self) -> int | None:
        """Bytes of this process, including those outside of the allocator, as the driver counts them."""

    def seconds(self, call: Callable[[], Any]) -> float:
        """Seconds that the device takes for a call."""

    def empty_cache(self) -> None: ...


class Cuda:
    """A GPU of PyTorch's `torch.cuda`."""

    kind = "cuda"

    def __init__(self, torch: Any, index: int = 0):
        self.torch, self.index = torch, index
        torch.cuda.set_device(index)
        torch.cuda.init()

    def synchronize(self) -> None:
        self.torch.cuda.synchronize(self.index)

    def figures(self) -> Figures:
        cuda = self.torch.cuda
        return Figures(
            int(cuda.memory_allocated(self.index)),
            int(cuda.memory_reserved(self.index)),
            int(cuda.max_memory_allocated(self.index)),
            int(cuda.max_memory_reserved(self.index)),
        )

    def reset_peaks(self) -> None:
        self.torch.cuda.reset_peak_memory_stats(self.index)

    def used_bytes(self) -> int | None:
        try:
            free, total = self.torch.cuda.mem_get_info(self.index)
        except (RuntimeError, AttributeError):
            return None
        return int(total) - int(free)

    def process_bytes(self) -> int | None:
        return nvidia.process_bytes()

    def seconds(self, call: Callable[[], Any]) -> float:
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        self.synchronize()
        return float(start.elapsed_time(end)) / 1000  # it gives milliseconds

    def empty_cache(self) -> None:
        self.torch.cuda.empty_cache()


class Host:
    """This machine's processor and memory: the process's resident memory counts as allocated and as reserved bytes."""

    kind = "cpu"
    index = 0

    def synchronize(self) -> None: ...

    def figures(self) -> Figures:
        now, peak = _resident()
        return Figures(now, now, peak, peak)

    def reset_peaks(self) -> None: ...

    def used_bytes(self) -> int | None:
        return None

    def process_bytes(self) -> int | None:
        return None

    def seconds(self, call: Callable[[], Any]) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def empty_cache(self) -> None: ...


def open_device(text: str = "cuda") -> Device:
    """The device of a name: cuda, cuda:1, or cpu. MissingDatum where there is no GPU, or no PyTorch."""
    match = re.fullmatch(r"cpu|cuda(?::(\d{1,3}))?", text.strip())
    if not match:
        raise InvalidInput("device is cuda, cuda:1 and so on, or cpu. Got {text}.", text=shown(text))
    torch = _torch()
    if text.strip() == "cpu":
        return Host()
    index = int(match[1] or 0)
    try:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except RuntimeError:
        count = 0
    if not count:
        raise MissingDatum(
            "PyTorch {version} sees no GPU here, and what is measured needs one. Without one, `tonnage "
            "trace` predicts the same stages of the same program; --device cpu tries the program out.",
            version=torch.__version__,
        )
    if index >= count:
        raise InvalidInput(
            "device {text} is not there: PyTorch sees cuda:0 to cuda:{count}.", text=text.strip(), count=count - 1
        )
    return Cuda(torch, index)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the device's memory ran out: the allocator raises its own class, other libraries say it in the
    message.
    """
    text = str(error)
    names = {kind.__name__ for kind in type(error).__mro__}
    names_it = "CUDA error: out of memory" in text or "STATUS_ALLOC_FAILED" in text
    return "OutOfMemoryError" in names or (isinstance(error, RuntimeError) and names_it)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingDatum(NO_TORCH) from None
    return torch


def _resident() -> tuple[int, int]:
    """Bytes of this process in memory, now and at their peak."""
    try:
        import resource
    except ImportError:  # Windows
        return 0, 0
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    try:
        now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        now = peak
    return now, max(now, peak)

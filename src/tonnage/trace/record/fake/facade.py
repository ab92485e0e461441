"""torch.cuda for a program on a machine without a GPU: streams, events, properties."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

import torch

from tonnage.trace.profiles import Profile
from tonnage.trace.record.fake import streams


class Stream:
    """A stream with a number; nothing runs on it."""

    def __init__(self, device: Any = None, priority: int = 0, *, number: int | None = None, **_: Any):
        self.stream_id = self.cuda_stream = streams.new(priority) if number is None else number
        index = _DEVICE[-1]
        self.device, self.device_index, self.priority = torch.device("cuda", index), index, priority

    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def synchronize(self) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def query(self) -> bool:
        return True

    def __enter__(self) -> Self:
        streams.push(self.stream_id)
        _CURRENT.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        streams.pop()
        _CURRENT.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return self.stream_id


class Event:
    """An event that is always complete."""

    def __init__(self, *_: Any, **__: Any): ...
    def record(self, stream: Any = None) -> None: ...
    def wait(self, stream: Any = None) -> None: ...
    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: Any) -> float:
        return 0.0


class _Device:
    """torch.cuda.device: changes the current device temporarily."""

    def __init__(self, device: Any = None):
        self.index = _index(device)

    def __enter__(self) -> None:
        _DEVICE.append(_DEVICE[-1] if self.index is None else self.index)

    def __exit__(self, *_: object) -> None:
        _DEVICE.pop()


def _index(device: Any) -> int | None:
    if device is None or isinstance(device, int):
        return device if device is None or device >= 0 else None
    return torch.device(device).index


def _set_device(device: Any) -> None:
    index = _index(device)
    if index is not None:
        _DEVICE[-1] = index


_DEVICE = [0]
_DEFAULT = Stream(number=0)
_CURRENT = [_DEFAULT]


def reset() -> None:
    """Reset the stand-in GPU to the state of a new program."""
    streams.reset()
    _CURRENT[:] = [_DEFAULT]
    _DEVICE[:] = [0]


@contextmanager
def _on(stream: Stream | None) -> Iterator[None]:
    if stream is None:
        yield
        return
    with stream:
        yield


def _set_stream(stream: Stream) -> None:
    streams.replace(stream.stream_id)
    _CURRENT[-1] = stream


def _nothing(*_: Any, **__: Any) -> None: ...


def _zero(*_: Any, **__: Any) -> int:
    return 0


def functions(profile: Profile, total: int, devices: int) -> dict[str, Callable[..., Any]]:
    """The replacements for torch.cuda's functions, by name."""
    gpu = profile.gpu
    properties = SimpleNamespace(
        name=gpu.accelerator,
        major=gpu.capability[0],
        minor=gpu.capability[1],
        total_memory=total,
        multi_processor_count=gpu.multiprocessors,
        warp_size=32,
        gcnArchName="",
        L2_cache_size=50 * 2**20,
    )
    quiet = (
        "synchronize",
        "empty_cache",
        "_lazy_init",
        "init",
        "manual_seed",
        "manual_seed_all",
        "set_rng_state",
        "reset_peak_memory_stats",
        "ipc_collect",
    )
    zeros = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    return {
        **dict.fromkeys(quiet, _nothing),
        **dict.fromkeys(zeros, _zero),
        "Stream": Stream,
        "Event": Event,
        "stream": _on,
        "StreamContext": _on,
        "set_stream": _set_stream,
        "device": _Device,
        "current_stream": lambda device=None: _CURRENT[-1],
        "default_stream": lambda device=None: _DEFAULT,
        "current_device": lambda: _DEVICE[-1],
        "set_device": _set_device,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: devices,
        "is_bf16_supported": lambda *_, **__: gpu.capability >= (8, 0),
        "is_current_stream_capturing": lambda: False,
        "get_device_capability": lambda *_: gpu.capability,
        "get_device_name": lambda *_: gpu.accelerator,
        "get_device_properties": lambda *_: properties,
        "mem_get_info": lambda *_: (total, total),
        "get_rng_state": lambda *_, **__: torch.zeros(16, dtype=torch.uint8),
    }

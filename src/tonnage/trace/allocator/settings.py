"""PYTORCH_CUDA_ALLOC_CONF, with the values that PyTorch accepts and refuses."""

import re
from collections.abc import Iterator

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import MIB

NO_LIMIT = 2**63
LARGE_BUFFER = 20 * MIB
INTERVALS = 16  # of roundup_power2_divisions: powers of two from 1 MiB on, the last one unbounded


class Settings(Struct, frozen=True, kw_only=True):
    """The allocator's settings. Sizes in bytes; `roundup_power2_divisions` holds one number for each power of two from
    1 MiB on, or nothing; `memory_fraction` None: the program may use all of the accelerator.
    """

    max_split_size: int = NO_LIMIT
    max_non_split_rounding: int = LARGE_BUFFER
    large_segment_size: int = LARGE_BUFFER
    roundup_power2_divisions: tuple[int, ...] = ()
    garbage_collection_threshold: float = 0.0
    expandable_segments: bool = False
    memory_fraction: float | None = None
    ignored: tuple[str, ...] = ()


# Options without effect on this model: pinned memory, locks, the backend's name if it is the native one.
_NO_EFFECT = frozenset(
    {
        "pinned_use_cuda_host_register",
        "pinned_num_register_threads",
        "pinned_use_background_threads",
        "pinned_reserve_segment_size_mb",
        "release_lock_on_cudamalloc",
        "graph_capture_record_stream_reuse",
        "throw_on_cudamalloc_oom",
        "rocm_max_split_size_mb",
    }
)
_OPTIONS = (
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "large_segment_size_mb",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
    "expandable_segments",
    "per_process_memory_fraction",
    "backend",
)


def parse_settings(text: str) -> Settings:
    """The settings of a value of PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF).

    Raises InvalidInput for values that PyTorch refuses, UnknownName for an option that it does not have.
    """
    values: dict[str, object] = {}
    ignored = []
    for name, value in _pairs(text):
        if name in _NO_EFFECT:
            ignored.append(name)
        elif name == "max_split_size_mb":
            values["max_split_size"] = _mebibytes(name, value, more_than=LARGE_BUFFER // MIB)
        elif name == "max_non_split_rounding_mb":
            values["max_non_split_rounding"] = _mebibytes(name, value, more_than=LARGE_BUFFER // MIB)
        elif name == "large_segment_size_mb":
            values["large_segment_size"] = _mebibytes(name, value, more_than=LARGE_BUFFER // MIB - 1)
        elif name == "garbage_collection_threshold":
            values["garbage_collection_threshold"] = _share(name, value)
        elif name == "per_process_memory_fraction":
            values["memory_fraction"] = _share(name, value, closed=True)
        elif name == "expandable_segments":
            values["expandable_segments"] = _flag(name, value)
        elif name == "roundup_power2_divisions":
            values["roundup_power2_divisions"] = _divisions(value)
        elif name == "backend":
            if value != "native":
                raise InvalidInput("backend: only PyTorch's native allocator is modelled. Got {value!r}.", value=value)
        else:
            raise unknown("option of PYTORCH_CUDA_ALLOC_CONF", name, _OPTIONS)
    return Settings(**values, ignored=tuple(ignored))  # type: ignore[arg-type]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    rest = text.replace(" ", "")
    while rest:
        match = re.match(r"(\w+):(\[[^\]]*\]|[^,\[\]]+)(?:,|$)", rest)
        if not match:
            raise InvalidInput(
                "PYTORCH_CUDA_ALLOC_CONF is a list of option:value, separated by commas. Got {rest!r}.",
                rest=rest[:80],
            )
        yield match[1], match[2]
        rest = rest[match.end() :]


def _whole(name: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 12:
        raise InvalidInput("{name} must be a whole number. Got {value!r}.", name=name, value=value[:40])
    return int(value)


def _mebibytes(name: str, value: str, more_than: int) -> int:
    size = _whole(name, value)
    if size <= more_than:
        raise InvalidInput(
            "{name} too small, must be more than {more_than}. Got {size}.",
            name=name,
            more_than=more_than,
            size=size,
        )
    return size * MIB


def _share(name: str, value: str, closed: bool = False) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not (0 < share < 1 or (closed and share in (0, 1))):
        raise InvalidInput("{name} must be between 0 and 1. Got {value!r}.", name=name, value=value[:40])
    return share


def _flag(name: str, value: str) -> bool:
    if value not in ("True", "False"):
        raise InvalidInput("{name} must be True or False. Got {value!r}.", name=name, value=value[:40])
    return value == "True"


def _divisions(value: str) -> tuple[int, ...]:
    """One number for all sizes, or [256:1,512:2,1024:4,>:8]: divisions by size in MiB."""
    if not value.startswith("["):
        return (_power(value, "roundup_power2_divisions"),) * INTERVALS
    by_interval = [0] * INTERVALS
    last = -1
    for part in value.strip("[]").split(","):
        size, _, count = part.partition(":")
        divisions = _power(count, "roundup_power2_divisions", zero=True)
        if size == ">":
            by_interval[last + 1 :] = [divisions] * (INTERVALS - last - 1)
            continue
        at = min(_power(size, "size in roundup_power2_divisions").bit_length() - 1, INTERVALS - 1)
        if last < 0:  # the first number holds for all smaller sizes too
            by_interval[:at] = [divisions] * at
        by_interval[at] = divisions
        last = at
    return tuple(by_interval)


def _power(text: str, what: str, zero: bool = False) -> int:
    number = _whole(what, text)
    if number & (number - 1) or (number == 0 and not zero):
        raise InvalidInput("{what} must be a power of two. Got {number}.", what=what, number=number)
    return number

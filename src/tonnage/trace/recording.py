"""A finished recording: events, and how they came about. Needs no torch; it is saved to disk and loaded from it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from tonnage.kernel.encoding import builtins
from tonnage.kernel.errors import InvalidInput
from tonnage.trace.events import Events, decode, encode
from tonnage.user_files import read_bytes

LARGEST_FILE = 2**30  # bytes


class Fired(Struct, frozen=True):
    """An overlay that fired: its number of calls, its peak of bytes, and its source."""

    name: str
    calls: int
    bytes: int
    exact: bool
    source: str


class Answered(Struct, frozen=True):
    """A question that only data could answer, and the answer that the program got."""

    operation: str
    dtype: str
    answer: str
    times: int


class Recording(Struct, kw_only=True):
    """`front_end`: meta or cuda; `attention`: calls by backend; `unmodelled`: calls of operations whose kernels may
    hold uncounted memory; `notes`: limits of the recording.
    """

    events: Events
    profile: str
    front_end: str
    program: str = ""
    torch: str = ""
    operations: int = 0
    overlays: tuple[Fired, ...] = ()
    answers: tuple[Answered, ...] = ()
    attention: Mapping[str, int] = {}
    unmodelled: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        about = builtins(self)
        del about["events"]
        path.write_bytes(encode(self.events, about))


def load(path: Path) -> Recording:
    """Read a saved recording. Raises InvalidInput."""
    return from_bytes(read_bytes(path, LARGEST_FILE), str(path))


def from_bytes(data: bytes, where: str) -> Recording:
    events, about = decode(data, where)
    try:
        return msgspec.convert({**about, "events": None}, _About).recording(events)
    except msgspec.ValidationError as error:
        raise InvalidInput("{where}: {error}.", where=where, error=error) from None


class _About(Struct, kw_only=True):
    profile: str
    front_end: str
    events: None = None
    program: str = ""
    torch: str = ""
    operations: int = 0
    overlays: tuple[Fired, ...] = ()
    answers: tuple[Answered, ...] = ()
    attention: dict[str, int] = {}
    unmodelled: dict[str, int] = {}
    notes: tuple[str, ...] = ()

    def recording(self, events: Events) -> Recording:
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "events"}
        return Recording(events=events, **fields)


# Kernels with scratch memory that no overlay counts yet.
SCRATCH = (
    "topk",
    "sort",
    "argsort",
    "unique",
    "nonzero",
    "cumsum",
    "index_put",
    "scatter",
    "convolution",
    "cudnn",
    "_grouped_mm",
    "_scaled_mm",
    "histc",
    "multinomial",
    "linalg",
    "fft",
    "native_batch_norm",
    "lstm",
)


def unmodelled(calls: Mapping[str, int], modelled: Iterable[str]) -> dict[str, int]:
    """Calls of operations whose kernels take scratch memory that no overlay covers. Collectives have no kernels
    here.
    """
    covered = set(modelled)
    counted = Counter(
        {
            name: count
            for name, count in calls.items()
            if name not in covered and "c10d" not in name and any(word in name for word in SCRATCH)
        }
    )
    return dict(counted.most_common())

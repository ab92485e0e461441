"""The question as it was understood: every input, its value, and where the value came from."""

from datetime import date, datetime
from functools import lru_cache
from typing import Any

from tonnage.documents.question import Entry, Origin
from tonnage.kernel.message import Message

# Bytes a second at which the processors of a node update: 30 bytes for each of its parameters over the seconds that
# were published, 1.9, 12, 34 and 54 GB/s (docs/LOG.md).
LEAST_UPDATE, MOST_UPDATE = 2e9, 54e9
MIDDLE_UPDATE = (LEAST_UPDATE * MOST_UPDATE) ** 0.5  # as many times the least as the most is of it
PUBLISHED_UPDATES = "the middle of published updates, 2 to 54 GB/s of a node"


@lru_cache(maxsize=256)
def own_of(runtime: str) -> str:
    """Why a value is what it is: the runtime's own. Every plan says it several times."""
    return Message("{runtime}'s own", runtime=runtime)


class Question:
    """Collects the inputs of one answer. A value that was not given says why it is what it is. `is_read`: somebody
    reads them, and why a plan is none.
    """

    is_read = True

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.warnings: list[str] = []

    def take(self, name: str, given: Any, default: Any = None, origin: Origin = "default", why: str = "") -> Any:
        """The given value, or the default with its reason."""
        if given is not None:
            return self.put(name, given, "given")
        return self.put(name, default, origin, why)

    def put(self, name: str, value: Any, origin: Origin, why: str = "", tool: str = "") -> Any:
        """An input as it was understood; `tool`: whose name was given, where it runs on `value`."""
        self._entries[name] = Entry(value, origin, why, tool=tool)
        return value

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def warn(self, sentence: str, *, first: bool = False) -> None:
        """Add a note; `first`: before all others, where it says what the answer itself rests on."""
        self.warnings.insert(0 if first else len(self.warnings), sentence)

    @property
    def entries(self) -> dict[str, Entry]:
        """Every input by its name."""
        return dict(self._entries)


class Unread(Question):
    """A question about a plan that is only tried: it keeps nothing."""

    is_read = False

    def put(self, name: str, value: Any, origin: Origin, why: str = "", tool: str = "") -> Any:
        return value

    def warn(self, sentence: str, *, first: bool = False) -> None:
        pass


def today() -> date:
    """The day on which this machine answers: prices age, and deadlines draw near."""
    return datetime.now().astimezone().date()

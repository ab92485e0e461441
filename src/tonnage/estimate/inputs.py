"""The question as it was understood: every input, its value, and where the value came from."""

from datetime import date, datetime
from functools import lru_cache
from typing import Any

from tonnage.documents.question import Entry, Origin
from tonnage.kernel.message import Message


@lru_cache(maxsize=256)
def own_of(runtime: str) -> str:
    """Why a value is what it is: the runtime's own. Every plan says it several times."""
    return Message("{runtime}'s own", runtime=runtime)


class Question:
    """Collects the inputs of one answer. A value that was not given says why it is what it is."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.warnings: list[str] = []

    def take(self, name: str, given: Any, default: Any = None, origin: Origin = "default", why: str = "") -> Any:
        """The given value, or the default with its reason."""
        if given is not None:
            return self.put(name, given, "given")
        return self.put(name, default, origin, why)

    def put(self, name: str, value: Any, origin: Origin, why: str = "") -> Any:
        self._entries[name] = Entry(value, origin, why)
        return value

    def warn(self, sentence: str) -> None:
        self.warnings.append(sentence)

    @property
    def entries(self) -> dict[str, Entry]:
        """Every input by its name."""
        return dict(self._entries)


def today() -> date:
    """The day on which this machine answers: prices age, and deadlines draw near."""
    return datetime.now().astimezone().date()

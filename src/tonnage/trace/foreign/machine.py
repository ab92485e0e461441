"""The machine that reads a pickle of plain data: its stack, its marks, its memo, and the containers it may make."""

from typing import Any

from tonnage.kernel.errors import InvalidInput

MAX_CONTAINERS = 10_000_000
EMPTY = {
    ("collections", "OrderedDict"): dict,
    ("builtins", "dict"): dict,
    ("builtins", "list"): list,
    ("builtins", "set"): set,
    ("__builtin__", "dict"): dict,
    ("__builtin__", "list"): list,
    ("__builtin__", "set"): set,
}


class _Named:
    """An allowed name in a file: a container type that it may instantiate empty."""

    __slots__ = ("make",)

    def __init__(self, make: type):
        self.make = make


class Machine:
    """The stack, the positions of its marks, and the memo by number."""

    def __init__(self, data: bytes, where: str):
        self.data, self.where = data, where
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.containers = 0

    def items(self) -> list[Any]:
        """Pop all items above the last mark, and the mark."""
        start = self.marks.pop()
        if start > len(self.stack):
            raise IndexError
        popped = self.stack[start:]
        del self.stack[start:]
        return popped

    def take(self, at: int, length: int) -> bytes:
        if at + length > len(self.data):
            raise IndexError
        return self.data[at : at + length]

    def text(self, at: int, length: int) -> str:
        return self.take(at, length).decode("utf-8", "surrogatepass")

    def line(self, at: int) -> tuple[bytes, int]:
        """The text up to the end of its line, and the start of the next one."""
        end = self.data.find(b"\n", at)
        if end < 0:
            raise IndexError
        return self.data[at:end], end + 1

    def fill_dict(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise TypeError
        keys = items[::2]
        if set(map(type, keys)) - {str}:
            odd = next(key for key in keys if type(key) is not str)
            raise InvalidInput("{where}: keys must be texts. Got {type}.", where=self.where, type=type(odd).__name__)
        target.update(zip(keys, items[1::2], strict=True))

    def fill_list(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError
        target.extend(items)

    def fill_set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not set or any(type(item) not in (str, bytes, bool, type(None)) for item in items):
            raise TypeError
        target.update(items)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def push_container(self, value: Any) -> None:
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            raise InvalidInput(
                "{where}: more than {most_containers:,} containers; record fewer entries.",
                where=self.where,
                most_containers=MAX_CONTAINERS,
            )
        self.stack.append(value)

    def push_tuple(self, items: list[Any]) -> None:
        for item in items:
            if type(item) is tuple and any(type(inner) is tuple for inner in item):
                raise InvalidInput("{where}: tuples inside tuples inside tuples.", where=self.where)
        self.push_container(tuple(items))

    def last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise IndexError
        popped = self.stack[-count:]
        del self.stack[-count:]
        return popped

    def name(self, module: Any, name: Any) -> None:
        """Push a name that the file imports, if it is allowed."""
        if type(module) is not str or type(name) is not str:
            raise TypeError
        if (module, name) not in EMPTY:
            raise InvalidInput(
                "{where} wants to run {printable}: it carries code, and a memory snapshot is plain data. "
                "Nothing of it was run.",
                where=self.where,
                printable=_printable(f"{module}.{name}"),
            )
        self.stack.append(_Named(EMPTY[module, name]))

    def call(self) -> None:
        """Run the one allowed call: that of an empty container."""
        named, arguments = self.last(2)
        if type(named) is not _Named or arguments != ():
            raise InvalidInput(
                "{where} wants to call something: a memory snapshot is plain data. Nothing of it was run.",
                where=self.where,
            )
        self.push_container(named.make())


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:100])

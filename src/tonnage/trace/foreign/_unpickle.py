"""Pickles of plain data, read without running anything: our own machine for the opcodes that containers and scalars need.

A memory snapshot is a dict of lists of dicts of texts and numbers. Python's own pickle.load would import and call whatever a
file names; its C machine can be made to allocate gigabytes for one opcode, and to overrun the stack by hashing nested tuples.
Here a file that names anything but a few empty containers is refused with that name. Keys are texts and members of sets are
scalars, tuples nest no deeper than two, and containers and nested marks are counted, so time and memory grow with the file's
bytes alone. The opcodes are those of CPython's Lib/pickletools.py, protocols 0 to 5.
"""

from struct import error as cut_off
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.foreign._opcodes import RARE, four, signed, two

MOST_CONTAINERS = 10_000_000
MOST_MARKS = 1_000  # open at one time
EMPTY = {("collections", "OrderedDict"): dict, ("builtins", "dict"): dict, ("builtins", "list"): list, ("builtins", "set"): set,
         ("__builtin__", "dict"): dict, ("__builtin__", "list"): list, ("__builtin__", "set"): set}  # fmt: skip


class _Named:
    """An allowed name in a file: a container that it may make empty."""

    __slots__ = ("make",)

    def __init__(self, make: type):
        self.make = make


def loads(data: bytes, where: str) -> Any:
    """The value that a pickle holds: dicts, lists, tuples, sets, texts, bytes, numbers, None. Raises InvalidInput."""
    machine = Machine(data, where)
    try:
        return machine.run()
    except InvalidInput:
        raise
    except (IndexError, cut_off):
        raise InvalidInput(f"{where} is no whole pickle: it ends in the middle, or takes what it never made.") from None
    except KeyError as error:
        raise InvalidInput(f"{where} is no pickle of plain data: it asks for {error}, which it never stored.") from None
    except (ValueError, TypeError, AttributeError, OverflowError):  # a text that is none, a list that is none
        raise InvalidInput(f"{where} is no pickle of plain data: its parts do not fit each other.") from None


class Machine:
    """The stack, the places of its marks, and what was stored under numbers."""

    def __init__(self, data: bytes, where: str):
        self.data, self.where = data, where
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.containers = 0

    def run(self) -> Any:
        """The frequent opcodes are here, the others in a table: a snapshot has millions of the former."""
        data, stack, marks, memo = self.data, self.stack, self.marks, self.memo
        push, at = stack.append, 0
        while True:
            op = data[at]
            at += 1
            if op == 0x68:  # BINGET
                push(memo[data[at]])
                at += 1
            elif op == 0x6A:  # LONG_BINGET
                push(memo[four(data, at)[0]])
                at += 4
            elif op == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif op == 0x4D:  # BININT2
                push(two(data, at)[0])
                at += 2
            elif op == 0x4B:  # BININT1
                push(data[at])
                at += 1
            elif op == 0x28:  # MARK
                marks.append(len(stack))
                if len(marks) > MOST_MARKS:
                    raise InvalidInput(f"{self.where}: more than {MOST_MARKS} containers inside each other.")
            elif op == 0x7D:  # EMPTY_DICT
                self.push_container({})
            elif op == 0x75:  # SETITEMS
                self.fill_dict(self.items())
            elif op == 0x8C:  # SHORT_BINUNICODE
                push(self.text(at + 1, data[at]))
                at += 1 + data[at]
            elif op == 0x8A:  # LONG1
                push(int.from_bytes(self.take(at + 1, data[at]), "little", signed=True))
                at += 1 + data[at]
            elif op == 0x4A:  # BININT
                push(signed(data, at)[0])
                at += 4
            elif op == 0x2E:  # STOP
                return stack.pop()
            else:
                rare = RARE.get(op)
                if rare is None:
                    raise InvalidInput(
                        f"{self.where} is no pickle of plain data: byte {at - 1:,} holds opcode {op:#04x}."
                    )
                at = rare(self, at)

    def items(self) -> list[Any]:
        """What lies above the last mark, which is taken away with it."""
        start = self.marks.pop()
        if start > len(self.stack):
            raise IndexError
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def take(self, at: int, length: int) -> bytes:
        if at + length > len(self.data):
            raise IndexError
        return self.data[at : at + length]

    def text(self, at: int, length: int) -> str:
        return self.take(at, length).decode("utf-8", "surrogatepass")

    def line(self, at: int) -> tuple[bytes, int]:
        """The text up to the end of its line, and where the next one begins."""
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
            raise InvalidInput(f"{self.where}: keys must be texts. Got {type(odd).__name__}.")
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
        if self.containers > MOST_CONTAINERS:
            raise InvalidInput(f"{self.where}: more than {MOST_CONTAINERS:,} containers; record fewer entries.")
        self.stack.append(value)

    def push_tuple(self, items: list[Any]) -> None:
        for item in items:
            if type(item) is tuple and any(type(inner) is tuple for inner in item):
                raise InvalidInput(f"{self.where}: tuples inside tuples inside tuples.")
        self.push_container(tuple(items))

    def last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise IndexError
        found = self.stack[-count:]
        del self.stack[-count:]
        return found

    def name(self, module: Any, name: Any) -> None:
        """A name that the file wants imported."""
        if type(module) is not str or type(name) is not str:
            raise TypeError
        if (module, name) not in EMPTY:
            raise InvalidInput(
                f"{self.where} wants to run {_printable(f'{module}.{name}')}: it carries code, and a memory snapshot is "
                "plain data. Nothing of it was run."
            )
        self.stack.append(_Named(EMPTY[module, name]))

    def call(self) -> None:
        """The one call that is allowed: an empty container's."""
        named, given = self.last(2)
        if type(named) is not _Named or given != ():
            raise InvalidInput(
                f"{self.where} wants to call something: a memory snapshot is plain data. Nothing of it was run."
            )
        self.push_container(named.make())


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:100])

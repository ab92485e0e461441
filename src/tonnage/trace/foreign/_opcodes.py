"""Rare opcodes of pickles, each a function on the machine of `_machine`.

Each function takes the machine and the position behind the opcode, and returns the position behind what it read.
"""

import codecs
from collections.abc import Callable
from struct import Struct as Packed
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.foreign.machine import Machine

MAX_INTEGER_BYTES = 255  # bytes
MAX_DIGITS = 700  # digits
two, four, signed, eight, double = (
    Packed(form).unpack_from for form in ("<H", "<I", "<i", "<Q", ">d")
)  # each raises struct.error at the end of the data

Rare = Callable[[Machine, int], int]


def _constant(value: Any) -> Rare:
    def run(machine: Machine, at: int) -> int:
        machine.push(value)
        return at

    return run


def _act(action: Callable[[Machine], Any], skipped: int = 0) -> Rare:
    def run(machine: Machine, at: int) -> int:
        action(machine)
        return at + skipped

    return run


def _sized(length: Callable[[Any, int], Any], width: int, make: Callable[[bytes], Any]) -> Rare:
    """A length of `width` bytes, and that many bytes."""

    def run(machine: Machine, at: int) -> int:
        count = length(machine.data, at)[0]
        machine.push(make(machine.take(at + width, count)))
        return at + width + count

    return run


def _written(make: Callable[[bytes], Any]) -> Rare:
    """A value in text form, up to the end of the line."""

    def run(machine: Machine, at: int) -> int:
        text, behind = machine.line(at)
        machine.push(make(text))
        return behind

    return run


def _store(number: Callable[[Any, int], Any], width: int) -> Rare:
    def run(machine: Machine, at: int) -> int:
        machine.memo[number(machine.data, at)[0]] = machine.stack[-1]
        return at + width

    return run


def _store_written(machine: Machine, at: int) -> int:
    text, behind = machine.line(at)
    machine.memo[_integer(text)] = machine.stack[-1]
    return behind


def _get_written(machine: Machine, at: int) -> int:
    text, behind = machine.line(at)
    machine.push(machine.memo[_integer(text)])
    return behind


def _global(machine: Machine, at: int) -> int:
    module, at = machine.line(at)
    name, at = machine.line(at)
    machine.name(module.decode("utf-8", "replace"), name.decode("utf-8", "replace"))
    return at


def _refuse(what: str) -> Rare:
    def run(machine: Machine, _: int) -> int:
        raise InvalidInput(
            "{where} wants to {what}: a memory snapshot is plain data. Nothing of it was run.",
            where=machine.where,
            what=what,
        )

    return run


def _instance(machine: Machine, at: int) -> int:
    _global(machine, at)  # raises but for an empty container's name
    return _refuse("make an object")(machine, at)


def _frame(machine: Machine, at: int) -> int:
    if eight(machine.data, at)[0] > len(machine.data) - at - 8:
        raise IndexError
    return at + 8


def _integer(text: bytes) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError
    return int(text.removesuffix(b"L"))


def _integer_or_bool(text: bytes) -> int:
    return {b"00": False, b"01": True}[text] if text in (b"00", b"01") else _integer(text)


def _long(data: bytes) -> int:
    if len(data) > MAX_INTEGER_BYTES:
        raise ValueError
    return int.from_bytes(data, "little", signed=True)


def _quoted(text: bytes) -> str:
    if len(text) < 2 or text[:1] not in b"'\"" or text[-1:] != text[:1]:
        raise ValueError
    return codecs.escape_decode(text[1:-1])[0].decode("utf-8", "replace")


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _old_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _one(data: bytes, at: int) -> tuple[int]:
    return (data[at],)


def _pop(machine: Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


def _dict_of(machine: Machine) -> None:
    items = machine.items()
    machine.push_container({})
    machine.fill_dict(items)


def _double_of(machine: Machine, at: int) -> int:
    machine.push(double(machine.data, at)[0])
    return at + 8


RARE: dict[int, Rare] = {
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord(")"): _constant(()),
    ord("]"): _act(lambda m: m.push_container([])),
    0x8F: _act(lambda m: m.push_container(set())),
    ord("a"): _act(lambda m: m.fill_list(m.last(1))),
    ord("e"): _act(lambda m: m.fill_list(m.items())),
    ord("s"): _act(lambda m: m.fill_dict(m.last(2))),
    0x90: _act(lambda m: m.fill_set(m.items())),
    ord("l"): _act(lambda m: m.push_container(m.items())),
    ord("d"): _act(_dict_of),
    ord("t"): _act(lambda m: m.push_tuple(m.items())),
    0x85: _act(lambda m: m.push_tuple(m.last(1))),
    0x86: _act(lambda m: m.push_tuple(m.last(2))),
    0x87: _act(lambda m: m.push_tuple(m.last(3))),
    ord("0"): _act(_pop),
    ord("1"): _act(lambda m: m.items()),
    ord("2"): _act(lambda m: m.push(m.stack[-1])),
    ord("q"): _store(_one, 1),
    ord("r"): _store(four, 4),
    ord("p"): _store_written,
    ord("g"): _get_written,
    ord("X"): _sized(four, 4, _utf8),
    0x8D: _sized(eight, 8, _utf8),
    ord("V"): _written(lambda t: t.decode("raw-unicode-escape")),
    ord("T"): _sized(signed, 4, _old_text),
    ord("U"): _sized(_one, 1, _old_text),
    ord("S"): _written(_quoted),
    ord("B"): _sized(four, 4, bytes),
    ord("C"): _sized(_one, 1, bytes),
    0x8E: _sized(eight, 8, bytes),
    0x96: _sized(eight, 8, bytes),
    0x8B: _sized(signed, 4, _long),
    ord("I"): _written(_integer_or_bool),
    ord("L"): _written(_integer),
    ord("F"): _written(float),
    ord("G"): _double_of,
    0x80: _act(lambda m: None, skipped=1),
    0x95: _frame,
    ord("c"): _global,
    0x93: _act(lambda m: m.name(*m.last(2))),
    ord("R"): _act(lambda m: m.call()),
    ord("i"): _instance,
    ord("o"): _refuse("make an object"),
    ord("b"): _refuse("set an object's state"),
    0x81: _refuse("make an object"),
    0x92: _refuse("make an object"),
    ord("P"): _refuse("load an outside object"),
    ord("Q"): _refuse("load an outside object"),
    0x82: _refuse("use a registered extension"),
    0x83: _refuse("use a registered extension"),
    0x84: _refuse("use a registered extension"),
    0x97: _refuse("use a buffer outside of the file"),
    0x98: _refuse("use a buffer outside of the file"),
}

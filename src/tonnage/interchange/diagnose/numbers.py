"""Amounts that a log says: sizes in bytes, numbers of tokens."""

import re

from msgspec import Struct

from tonnage.kernel.units import GIB, KIB, MIB, TIB

# Tools that print GB divide by 2^30 (PyTorch's MPS and XPU allocators, SGLang, DeepSpeed, older vLLM).
_SCALES = {"k": KIB, "m": MIB, "g": GIB, "t": TIB}
_UNITS = {"b": 1, "byte": 1, "bytes": 1} | {f"{k}{end}": n for k, n in _SCALES.items() for end in ("", "b", "ib")}
SIZE = r"-?\d{1,15}(?:[.,]\d{1,10})?\s?(?:[KMGT]i?B|[Bb]ytes|B)\b"
NUMBER = r"-?\d{1,15}(?:[.,]\d{1,10})?"
_SIZE = re.compile(r"(-?\d{1,15}(?:[.,]\d{1,10})?)\s?([A-Za-z]{1,5})")
LARGEST = 1 << 50  # a larger size is an overflow of the program that printed it


class Number(Struct, frozen=True):
    """A number of the log: what it is of, its value, its unit (`bytes`, `tokens`, `requests`, ...), its line."""

    name: str
    value: float
    unit: str
    line: int


def size(text: str) -> int | None:
    """Bytes of a text such as `1.25 GiB`; None where it is none that a machine has.

    >>> size("1024.00 KiB"), size("17179869184.00 GiB")
    (1048576, None)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].lower() not in _UNITS:
        return None
    value = _float(match[1]) * _UNITS[match[2].lower()]
    return round(value) if abs(value) < LARGEST else None


def amount(text: str, unit: str) -> float | None:
    """A number in a unit: `amount("21.2", "gib")` is bytes, of `tokens` the number itself."""
    if unit in _UNITS:
        return size(f"{text} {unit}")
    value = _float(text.replace(",", "")) if unit != "" else _float(text)
    return value if abs(value) < LARGEST else None


def _float(text: str) -> float:
    """A number; 1900,00 is one of a machine whose language writes it so."""
    plain = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text.replace(",", "")
    return float(plain)

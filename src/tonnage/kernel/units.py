"""Constants, reading and printing of quantities.

Inside the package every quantity is in its base unit: bytes, seconds, FLOP, FLOP/s, bytes/s, watts, USD.
Only this file and the catalogue loader scale.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from tonnage.kernel.errors import InvalidInput, OutOfRange, shown
from tonnage.kernel.message import OR, Message, Quantity, listed, option_name

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40  # memory capacity
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12  # bandwidth, disk, network
GIGA, TERA, PETA = 10**9, 10**12, 10**15  # FLOP/s, parameters, tokens
DAY, HOUR = 86400, 3600
YEAR = 365 * DAY
MONTH = 730 * HOUR  # as clouds bill: a twelfth of 8760 hours

_SI = ((1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))
_MONEY_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
_COUNT = ((1e12, " T"), (1e9, " B"), (1e6, " M"), (1, ""))
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "bytes": ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")),
    "seconds": ((DAY, "d"), (HOUR, "h"), (1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "bytes/s": ((TB, "TB/s"), (GB, "GB/s"), (MB, "MB/s"), (1, "B/s")),
    "FLOP": tuple((scale, f"{prefix}FLOP") for scale, prefix in _SI),
    "FLOP/s": tuple((scale, f"{prefix}FLOP/s") for scale, prefix in _SI),
    "watts": ((1e6, "MW"), (1e3, "kW"), (1, "W")),
    "joules": ((3.6e12, "GWh"), (3.6e9, "MWh"), (3.6e6, "kWh"), (3600, "Wh")),
    "gCO2e": ((1e6, "tCO2e"), (1e3, "kgCO2e"), (1, "gCO2e")),
}
_COUNTED = frozenset({"parameters", "tokens", "tokens/s", "accelerator-hours"})

# How people write sizes. Chinese: qian, wan, yi (10^3, 10^4, 10^8), and shi, bai in front of them.
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_CHINESE = {"十": 10, "百": 10**2, "千": 10**3, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_BYTE_UNITS = {
    "": 1, "b": 1, "byte": 1, "bytes": 1, "字节": 1,
    "k": KB, "kb": KB, "m": MB, "mb": MB, "g": GB, "gb": GB, "t": TB, "tb": TB, "p": 10**15, "pb": 10**15,
    "ki": KIB, "kib": KIB, "mi": MIB, "mib": MIB, "gi": GIB, "gib": GIB, "ti": TIB, "tib": TIB, "pi": 2**50,
    "pib": 2**50,
}  # fmt: skip
_TIME_UNITS: dict[str, int | Decimal] = {
    "": 1, "us": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": 1, "sec": 1, "min": 60, "h": HOUR, "hour": HOUR,
    "hours": HOUR, "d": DAY, "day": DAY, "days": DAY, "w": 7 * DAY, "week": 7 * DAY, "weeks": 7 * DAY,
    "month": MONTH, "months": MONTH, "月": MONTH,
    "y": 365 * DAY, "year": 365 * DAY, "years": 365 * DAY, "minutes": 60, "seconds": 1,
    "秒": 1, "分钟": 60, "小时": HOUR, "天": DAY, "周": 7 * DAY, "年": 365 * DAY,
}  # fmt: skip
# 1,024 is a number; 1,2 may be a list, or 1.2 as it is written elsewhere.
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?(?:[eE][+-]?\d+)?\Z")
LARGEST = 10**30  # beyond any count, byte or FLOP that this field will see


def human(value: float, unit: str) -> str:
    """Print a base-unit value the way engineers say it.

    >>> human(85_899_345_920, "bytes")
    '80.00 GiB'
    >>> human(8_030_261_248, "parameters")
    '8.03 B parameters'
    """
    if unit in _COUNTED:
        for scale, label in _COUNT:
            if abs(value) >= scale > 1:
                return _quantity(f"{value / scale:.2f}{label}", unit, unit)
        if abs(value) >= 100 or float(value).is_integer():
            return counted(value, unit)
        return _quantity(f"{value:.3g}", unit, unit)
    if unit == "seconds" and abs(value) >= 2 * YEAR:
        return _quantity(significant(value / YEAR), "years", "years")
    for scale, label in _SCALES.get(unit, ()):
        if abs(value) >= scale:
            return f"{value:,.0f} {label}" if scale == 1 and unit == "bytes" else f"{value / scale:.2f} {label}"
    if unit == "joules":
        return f"{value / 3600:.3g} Wh"
    if unit == "USD":
        return f"{money(value)} USD"
    if isinstance(value, int) or float(value).is_integer():
        return counted(value, unit)
    return _quantity(f"{value:.4g}", unit, unit)


def significant(value: float, digits: int = 3) -> str:
    """So many significant digits, thousands separated, never an exponent.

    >>> significant(63550.7), significant(0.03), significant(9.999)
    ('63,600', '0.0300', '10.0')
    """
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # after rounding, so that 9.999 is 10.0
    decimals = digits - 1 - exponent
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def money(value: float) -> str:
    """USD without the unit: millions and more with three digits, whole from 100 on, two decimals, three below 0.1.

    >>> money(1091044.01), money(205.4), money(1.1287), money(0.0549), money(0.00012)
    ('1.09 M', '205', '1.13', '0.055', '0.00012')
    """
    if abs(value) >= 999_999.5:
        scale, letter = next((size, name) for size, name in _MONEY_SCALES if abs(value) >= 0.9999995 * size)
        return f"{significant(value / scale)} {letter}"
    if abs(value) >= 99.995:
        return f"{value:,.0f}"
    if abs(value) >= 0.1 or value == 0:
        return f"{value:.2f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else significant(value, 2)


def human_column(values: Sequence[float | None], unit: str) -> list[str]:
    """As `human`, all in the unit of the largest, so that a column has one; "-" where a value is not known.

    >>> human_column([85_899_345_920, 524_288_000, None], "bytes")
    ['80.00 GiB', '0.49 GiB', '-']
    """
    known = [value for value in values if value]
    largest, least = max(known, default=0), min(known, default=0)
    fits = ((scale, label) for scale, label in _SCALES.get(unit, ()) if largest >= scale > 1)
    scale, label = next(fits, (0.0, ""))
    if not scale or least < scale / 100 or (unit == "seconds" and largest >= 2 * YEAR):
        return ["-" if value is None else human(value, unit) for value in values]
    return ["-" if value is None else f"{value / scale:,.2f} {label}" for value in values]


def counted(value: float, things: str) -> str:
    """A number of things: the plural, but for one.

    >>> counted(1, "micro-batches"), counted(2, "micro-batches"), counted(1, "bytes per parameter")
    ('1 micro-batch', '2 micro-batches', '1 byte per parameter')
    """
    thing, per, rest = things.partition(" per ")
    if value == 1:
        thing = thing.removesuffix("es" if thing.endswith(("ches", "shes", "sses", "xes")) else "s")
    return _quantity(f"{value:,.0f}", things, f"{thing}{per}{rest}")


def _quantity(number: str, things: str, written: str) -> str:
    return Quantity(number, things, f"{number} {written}") if written else number


class _Form(NamedTuple):
    """How one kind of quantity is written: an example for messages, its units, and whether Chinese units may follow."""

    example: str
    units: Mapping[str, int | Decimal]
    chinese: bool = False

    def scale(self, suffix: str) -> int | Decimal | None:
        factor = self.units.get(suffix.lower())
        return _chinese(suffix) if factor is None and self.chinese else factor


_COUNTS = _Form("7B, 1.5T, 15e12 or 70亿", _DECIMAL, chinese=True)
_SIZES = _Form("8, 256 or 2k", _DECIMAL, chinese=True)
_LENGTHS = _Form(listed(("8192", "32k"), OR), _BINARY, chinese=True)
_BYTES = _Form("80GB, 80GiB or 512MiB", _BYTE_UNITS)
_RATES = _Form(
    "20GB/s, 20GiB/s or 500MB/s", _BYTE_UNITS | {f"{unit}/s": size for unit, size in _BYTE_UNITS.items() if unit}
)
_MONEY = _Form("100k, 1.5M or 250000 USD", _DECIMAL, chinese=True)
_TIMES = _Form("30d, 12h or 500ms", _TIME_UNITS)


def parse_count(text: str, what: str) -> int:
    """A number of things as people write it: 7B, 1.5T, 32000, 15e12, 70亿, 1.5万亿; k, M, B, T are powers of 1000.

    >>> parse_count("1.5万亿", "tokens")
    1500000000000
    """
    return _whole(_scaled(text, what, _COUNTS), text, what)


def parse_size(text: str, what: str) -> int:
    """As parse_count, of things that there are few of: ranks, requests, layers.

    >>> parse_size("2k", "concurrency")
    2000
    """
    return _whole(_scaled(text, what, _SIZES), text, what)


def parse_number(text: str, what: str) -> float:
    """An amount of things that may be in parts: 10.5, 1.5M.

    >>> parse_number("10.5", "budget_accelerator_hours")
    10.5
    """
    return float(_scaled(text, what, _COUNTS))


def parse_length(text: str, what: str) -> int:
    """A length in tokens; here k and M are powers of 1024, as in "a 32k context".

    >>> parse_length("32k", "sequence_length")
    32768
    """
    return _whole(_scaled(text, what, _LENGTHS), text, what)


def parse_bytes(text: str, what: str) -> int:
    """An amount of memory or disk: 80GB is 80 * 10^9, 80GiB is 80 * 2^30; a bare number is bytes."""
    return _whole(_scaled(text, what, _BYTES), text, what)


def parse_rate(text: str, what: str) -> int:
    """Bytes a second: 20GB/s is 20 * 10^9, 20GiB/s is 20 * 2^30; a bare number is bytes, and what may be bits is
    refused.

    >>> parse_rate("20GB/s", "storage_bandwidth")
    20000000000
    """
    bare = str(text).strip()
    if bare.endswith(("b/s", "bps", "bit/s", "bits/s")):
        raise InvalidInput(
            "{what} is in bytes a second, and {text} may be bits. Write it like {example}.",
            what=option_name(what),
            text=shown(text),
            example=_RATES.example,
        )
    return _whole(_scaled(bare, what, _RATES), text, what)


_BITS = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_BIT_RATE = re.compile(r"([0-9][0-9_,.]*)\s*([kmgt]b)(?:ps|/s|its?/s|it/s)", re.IGNORECASE)


def parse_link_rate(text: str, what: str) -> int:
    """Bytes a second of a link, of which data sheets give bits or bytes: 400Gbps and 400Gb/s are bits, 50GB/s is
    bytes; a bare number is bytes.

    >>> parse_link_rate("400Gbps", "inter_node_bandwidth")
    50000000000
    """
    bare = str(text).strip()
    found = _BIT_RATE.fullmatch(bare)
    if found is None or found[2].endswith("B"):
        return parse_rate(bare, what)
    return round(parse_number(found[1], what) * _BITS[found[2].lower()] / 8)


def parse_seconds(text: str, what: str) -> float:
    """A time: 30d, 12h, 500ms; a bare number is seconds."""
    return float(_scaled(text, what, _TIMES))


def parse_usd(text: str, what: str) -> float:
    """An amount of money: 100k, $1.5M, 250000 USD.

    >>> parse_usd("$1.5M", "budget")
    1500000.0
    """
    bare = str(text).strip().removeprefix("$")
    return float(_scaled(bare[:-3] if bare.upper().endswith("USD") else bare, what, _MONEY))


def _scaled(text: str, what: str, form: _Form) -> Decimal:
    number, suffix = _split(str(text).strip().replace("，", ",").replace("_", ""))
    if "," in number:
        if not _GROUPED.match(number):
            raise InvalidInput(
                "{what} takes one value, and commas stand between groups of three digits alone, as in "
                "1,024. Got {text}. `tonnage compare` takes lists.",
                what=option_name(what),
                text=shown(text),
            )
        number = number.replace(",", "")
    try:
        value = Decimal(number)
    except InvalidOperation:
        raise InvalidInput(
            "{what} must be a number such as {example}. Got {text}.",
            what=option_name(what),
            example=form.example,
            text=shown(text),
        ) from None
    if not (value.is_finite() and 0 <= value <= LARGEST):
        raise OutOfRange(
            Message(
                "{what} must be a number from 0 to {largest:.0e}. Got {text}.",
                what=option_name(what),
                largest=LARGEST,
                text=shown(text),
            )
        )
    scale = form.scale(suffix)
    if scale is None:
        raise InvalidInput(
            "{what} has an unknown unit {suffix} in {text}. Write it like {example}.",
            what=option_name(what),
            suffix=shown(suffix),
            text=shown(text),
            example=form.example,
        )
    return value * scale


def _split(text: str) -> tuple[str, str]:
    """Cut '1.5e3 GiB' into its number and its unit."""
    end = len(text)
    while end and not (text[end - 1].isdecimal() or text[end - 1] == "."):
        end -= 1
    return text[:end], text[end:].strip()


def _whole(value: Decimal, text: str, what: str) -> int:
    if value != value.to_integral_value():
        raise InvalidInput("{what} must be a whole number. Got {text}.", what=option_name(what), text=shown(text))
    return int(value)


def _chinese(suffix: str) -> int | None:
    scale = 1
    for character in suffix:
        if character not in _CHINESE:
            return None
        scale *= _CHINESE[character]
    return scale if suffix and scale <= LARGEST else None

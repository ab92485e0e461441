"""Computers by the names that they are sold under: "mac studio", "macbook pro m4 max", "mac mini m4 pro 64gb"."""

import re

from msgspec import Struct

from tonnage.catalogue import toml_files
from tonnage.kernel.errors import UnknownName, shown
from tonnage.kernel.message import Message


class Product(Struct, frozen=True):
    """chip: one that it is sold with, as an example
    takes: the accelerator that is meant where no chip is said; "": one must be said
    chips: what it is sold with, as the names of accelerators begin
    """

    chip: str
    takes: str = ""
    chips: tuple[str, ...] = ()
    source: str = ""
    as_of: str = ""


_ANNOUNCED = "https://techpowerup.com/news-tags/Mac%20Studio: M4 Max or M3 Ultra, 96 GB with the latter"
_OF_STUDIO = ("apple-m4-max", "apple-m3-ultra")
PRODUCTS = {
    "mac studio": Product("m4 max", "Apple-M3-Ultra-96GB", _OF_STUDIO, _ANNOUNCED, "2026-11-24"),
    "macbook pro": Product("m4 max"),
    "macbook air": Product("m4"),
    "mac mini": Product("m4 pro"),
    "mac pro": Product("m2 ultra"),
    "imac": Product("m4"),
    "macbook": Product("m4"),
    "mac": Product("m4"),
}
_NAME = r"(?:apple[\s-]+)?(mac(?:[\s-]*(?:studio|book[\s-]*pro|book[\s-]*air|book|mini|pro))?|imac)\b[\s,-]*(.*)"
_SCREEN = r"\b1[3-6](?:[\s-]*inch(?:es)?|\")?(?=[\s,-]|$)"  # inches of a MacBook's screen


def accelerator_of(name: str) -> str:
    """The accelerator in a computer of this name; "" for a name of none. UnknownName where it must say its chip."""
    match = re.fullmatch(_NAME, " ".join(name.lower().replace("_", " ").split()))
    if match is None:
        return ""
    product, chip = _product(match[1]), re.sub(_SCREEN, "", match[2]).strip(" -,")
    if chip:
        return chip if toml_files.find("accelerators", chip) else ""
    if not PRODUCTS[product].takes:
        raise UnknownName(
            Message(
                "{name} is sold with several chips: say which, as in '{product} {chip}'.",
                name=shown(name),
                product=product,
                chip=PRODUCTS[product].chip,
            )
        )
    return PRODUCTS[product].takes


def others_of(name: str) -> list[str]:
    """The other accelerators that a computer is sold with whose chip is not said."""
    match = re.fullmatch(_NAME, " ".join(name.lower().replace("_", " ").split()))
    if match is None or match[2].strip(" -,"):
        return []
    product = PRODUCTS[_product(match[1])]
    names = toml_files.names("accelerators")
    return [each for each in names if each.startswith(product.chips) and each != toml_files.key(product.takes)]


def _product(written: str) -> str:
    """The product of this name, however it is written."""
    plain = re.sub(r"[\s-]", "", written)
    return next(name for name in PRODUCTS if name.replace(" ", "") == plain)

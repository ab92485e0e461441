"""Computers by the names that they are sold under: "mac studio", "macbook pro m4 max", "framework desktop 128gb"."""

import re

from msgspec import Struct

from tonnage.catalogue import toml_files
from tonnage.kernel.errors import UnknownName, shown
from tonnage.kernel.message import OR, Message, listed


class Product(Struct, frozen=True):
    """chip: one that it is sold with, as an example
    takes: the accelerator that is meant where neither chip nor memory is said; "": one must be said
    chips: what it is sold with, as the names of accelerators begin
    """

    chip: str
    takes: str = ""
    chips: tuple[str, ...] = ()
    source: str = ""
    as_of: str = ""


_ANNOUNCED = "https://techpowerup.com/news-tags/Mac%20Studio: M4 Max or M3 Ultra, 96 GB with the latter"
_OF_STUDIO = ("apple-m4-max", "apple-m3-ultra")
_SPECIFIED = "https://support.apple.com/en-us/docs/mac (technical specifications of each model)"


def _strix_halo(source: str, smallest: int = 32) -> Product:
    """A machine of the Ryzen AI Max+ 395, which is known by the most memory that it is sold with."""
    sizes = (gib for gib in (32, 64, 96, 128) if gib >= smallest)
    return Product(
        "Ryzen AI Max+ 395", "Strix-Halo-128GB", tuple(f"strix-halo-{gib}gb" for gib in sizes), source, "2026-11-28"
    )


PRODUCTS = {
    "mac studio": Product("m4 max", "Apple-M3-Ultra-96GB", _OF_STUDIO, _ANNOUNCED, "2026-11-24"),
    "macbook pro": Product(
        "m4 max", "", ("apple-m5", "apple-m4-max", "apple-m4-pro", "apple-m4"), _SPECIFIED, "2026-11-28"
    ),
    "macbook air": Product("m4", "", ("apple-m4",), _SPECIFIED, "2026-11-28"),
    "mac mini": Product("m4 pro", "", ("apple-m4-pro", "apple-m4"), _SPECIFIED, "2026-11-28"),
    "mac pro": Product("m2 ultra", "", ("apple-m2-ultra",), _SPECIFIED, "2026-11-28"),
    "imac": Product("m4", "", ("apple-m4",), _SPECIFIED, "2026-11-28"),
    "macbook": Product("m4"),
    "mac": Product("m4"),
    "framework desktop": Product(
        "Ryzen AI Max+ 395",
        "Strix-Halo-128GB",
        ("ryzen-ai-max-385-32gb", "strix-halo-64gb", "strix-halo-128gb"),
        "https://frame.work/desktop (Max 385 with 32 GB, Max+ 395 with 64 or 128 GB)",
        "2026-11-28",
    ),
    "gmktec evo-x2": _strix_halo("https://www.gmktec.com/products/amd-ryzen-ai-max-395-evo-x2-ai-mini-pc", 64),
    "hp z2 mini g1a": _strix_halo("https://www.hp.com/us-en/workstations/z2-mini-a.html"),
    "hp zbook ultra g1a": _strix_halo("https://www.hp.com/us-en/workstations/zbook-ultra.html"),
    "asus rog flow z13": _strix_halo("https://rog.asus.com/laptops/rog-flow/rog-flow-z13-2025/spec/"),
    "beelink gtr9 pro": _strix_halo("https://www.bee-link.com/products/beelink-gtr9-pro-amd-ryzen-ai-max-395", 128),
    "minisforum ms-s1 max": _strix_halo("https://www.minisforum.com/products/ms-s1-max", 128),
    "bosgame m5": _strix_halo("https://www.bosgamepc.com/products/bosgame-m5-ai-mini-desktop-ryzen-ai-max-395", 96),
    "corsair ai workstation 300": _strix_halo("https://www.corsair.com/us/en/c/ai-workstations", 64),
    "geekom a9 mega": _strix_halo("https://www.geekompc.com/geekom-a9-mega-mini-pc/", 128),
}
_LONGEST_FIRST = sorted(PRODUCTS, key=len, reverse=True)
_BLANK = r"[\s_-]*"  # people write "macbook pro", "MacBook-Pro" and "macbookpro"
_SCREEN = r"\b1[3-6](?:[\s-]*inch(?:es)?|\")?(?=[\s,-]|$)"  # inches of a notebook's screen
_SIZE = r"(\d+)\s?(?:gb|gib|g)"


def accelerator_of(name: str) -> str:
    """The accelerator in a computer of this name; "" for a name of none. UnknownName where it must say its chip."""
    product, rest = _read(name)
    if not product:
        return ""
    sold = PRODUCTS[product]
    if size := re.fullmatch(_SIZE, rest):
        return _of_size(name, product, int(size[1]))
    if rest:
        if toml_files.find("accelerators", rest):
            return rest
        from tonnage.catalogue.spellings import known_spelling

        return known_spelling(rest)
    if not sold.takes:
        raise UnknownName(
            Message(
                "{name} is sold with several chips: say which, as in '{product} {chip}'.",
                name=shown(name),
                product=product,
                chip=sold.chip,
            )
        )
    return sold.takes


def others_of(name: str) -> list[str]:
    """The other accelerators that a computer is sold with whose chip is not said."""
    product, rest = _read(name)
    if not product or rest:
        return []
    return [each for each in _machines(product) if each != toml_files.key(PRODUCTS[product].takes)]


def _of_size(name: str, product: str, gib: int) -> str:
    """The accelerator of a computer of which the memory alone is said."""
    machines = _machines(product)
    fitting = [each for each in machines if each.endswith(f"-{gib}gb")]
    if len(fitting) == 1:
        return fitting[0]
    if not machines:
        return ""
    raise UnknownName(
        Message(
            "{name} may be {machines}: say which.",
            name=shown(name),
            machines=listed(fitting or machines, OR),
        )
    )


def _machines(product: str) -> list[str]:
    """The accelerators that a computer is sold with."""
    chips = PRODUCTS[product].chips
    return [each for each in toml_files.names("accelerators") if chips and each.startswith(chips)]


def _read(name: str) -> tuple[str, str]:
    """The product in a name, and what else the name says: its chip, its memory, or nothing."""
    text = " ".join(name.lower().replace("_", " ").split())
    for product in _LONGEST_FIRST:
        if product.partition(" ")[0] not in text:
            continue
        words = _BLANK.join(re.escape(word) for word in re.split(r"[\s-]", product))
        match = re.search(rf"(?<![a-z0-9]){words}(?![a-z0-9])", text)
        if match:
            rest = re.sub(r"^apple[\s-]+", "", text[: match.start()]) + " " + text[match.end() :]
            rest = re.sub(r"\b(?:with|the)\b|[(),]", " ", re.sub(_SCREEN, "", rest))
            return product, " ".join(rest.split()).strip(" -")
    return "", ""

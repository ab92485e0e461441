"""SkyPilot's public catalogue: catalogs/<version>/<cloud>/vms.csv -> prices of machines with accelerators, by our
names.

What cannot be a price is named with its line and field and left out; a name that the table does not have is counted,
never guessed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import isfinite

from msgspec import Struct, field

from tonnage.catalogue import toml_files
from tonnage.catalogue.accelerators import accelerator
from tonnage.catalogue.refreshed import Cloud, Kind, Row
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import GIB
from tonnage.user_files import csv_text, decode

LARGEST = 64_000_000  # bytes of a file; the largest of the real ones has 4 million
DEAREST = 1000.0  # USD for an hour of one accelerator: ten times and more what any costs
MOST = 1024  # accelerators of one machine
LARGEST_SLICE = 16  # chips: larger slices of TPUs cost the same a chip, and there are hundreds of them
# memories of GpuInfo and of our catalogue that differ by less are one: some clouds write GB, some MiB, some what is
# usable
ALIKE = 0.12
NEEDED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
KINDS: tuple[tuple[str, Kind], ...] = (("Price", "on-demand"), ("SpotPrice", "spot"))
EVERYWHERE = "all"
Key = tuple[str, str, int, Kind]  # instance, accelerator, accelerators, kind


class Name(Struct, frozen=True, forbid_unknown_fields=True):
    skypilot: str
    accelerator: str
    clouds: list[str] = []
    has: list[str] = []


class Slice(Struct, frozen=True, forbid_unknown_fields=True):
    skypilot: str
    accelerator: str
    per_chip: int


class Host(Struct, frozen=True, forbid_unknown_fields=True):
    skypilot: str
    accelerators: int
    instance: str


class Folder(Struct, frozen=True, forbid_unknown_fields=True):
    folder: str
    provider: str


class Names(Struct, frozen=True, forbid_unknown_fields=True):
    """The form of names.toml."""

    name: list[Name]
    slice: list[Slice]
    host: list[Host]
    cloud: list[Folder]


class Found(Struct, kw_only=True):
    """What a file holds: `malformed`, in whole sentences, of rows that cannot be; `unknown`: names without an entry
    that holds -> rows;
    `left_out`: why -> rows of other kinds that are not read."""

    cloud: Cloud
    malformed: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


class _Malformed(Exception):
    """A row that cannot be: which field, and why."""


@cache
def names() -> Names:
    """The table of names."""
    return toml_files.read(toml_files.HERE / "skypilot" / "names.toml", Names)


def clouds() -> list[str]:
    """Folders of the catalogue that have a name of a provider."""
    return [cloud.folder for cloud in names().cloud]


def provider(cloud: str) -> str:
    """What we call the provider of a folder; UnknownName for one that the table does not have."""
    for each in names().cloud:
        if each.folder == cloud.lower():
            return each.provider
    raise unknown("cloud of SkyPilot's catalogue", cloud, clouds())


def read(content: bytes, cloud: str, where: str, source: str, as_of: str) -> Found:
    """The prices of one vms.csv. InvalidInput where it is none, or holds no price of an accelerator that we know."""
    found = Found(cloud=Cloud(cloud=cloud, provider=provider(cloud), source=source))
    cheapest: dict[tuple[Key, str], float] = {}
    malformed: dict[int, str] = {}
    rows = list(_rows(content, where, malformed))
    hosts = _hosts(rows)
    for line, row in rows:
        try:
            for key, region, price in _priced(row, cloud, hosts, found):
                at = (key, region)
                cheapest[at] = min(price, cheapest.get(at, price))  # zones of a region may differ
        except _Malformed as error:
            malformed[line] = str(error)
    found.cloud.price = _whole_cloud(cheapest, as_of)
    found.malformed = [f"{where}, line {line}: {why}" for line, why in sorted(malformed.items())]
    if not found.cloud.price:
        why = f" {found.malformed[0]}" if found.malformed else ""
        raise InvalidInput(
            Message("{where} has no price of an accelerator of our catalogue.{why}", where=where, why=why)
        )
    return found


def _rows(content: bytes, where: str, malformed: dict[int, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with an accelerator or of a machine that may hold one, each with its line."""
    if len(content) > LARGEST:
        raise InvalidInput(
            Message(
                "{where} is larger than {largest} MB, so it is no list of machines.",
                where=where,
                largest=LARGEST // 10**6,
            )
        )
    table = csv_text.Rows(decode(content, where), where)
    missing = [name for name in NEEDED if name not in table.header]
    if missing:
        raise InvalidInput(
            f"{where} is no vms.csv of SkyPilot's catalogue: it has no column {', '.join(missing)}. It has "
            f"{shown(', '.join(table.header))}."
        )
    for line, cells in table:
        if len(cells) != len(table.header):
            malformed[line] = f"the row has {len(cells)} fields, the header {len(table.header)}."
        else:
            yield line, dict(zip(table.header, (cell.strip() for cell in cells), strict=True))


def _hosts(rows: Sequence[tuple[int, dict[str, str]]]) -> dict[tuple[str, str, str], str]:
    """(machine, zone, column) -> price, of machines whose accelerators are priced apart."""
    wanted = {host.instance for host in names().host}
    return {
        (row["InstanceType"], _zone(row), column): row.get(column, "")
        for _, row in rows
        if not row["AcceleratorName"] and row["InstanceType"] in wanted
        for column, _ in KINDS
    }


def _zone(row: Mapping[str, str]) -> str:
    return row.get("AvailabilityZone") or row["Region"]


def _priced(
    row: Mapping[str, str], cloud: str, hosts: Mapping[tuple[str, str, str], str], found: Found
) -> Iterator[tuple[Key, str, float]]:
    """Each price of a row: what is rented, where, and USD for an hour of it."""
    called = row["AcceleratorName"]
    if not called:
        return
    instance, count = row["InstanceType"], _count(row["AcceleratorCount"])
    if not row["Region"]:
        raise _Malformed("Region is empty.")
    if count < 1:
        found.left_out["rent a part of an accelerator"] += 1
        return
    chip, count, instance, host = _called(called, row, cloud, int(count), instance, found)
    if not chip:
        return
    for column, kind in KINDS:
        if (price := _price(row.get(column, ""), column, count)) is None:
            continue
        if host:
            with_host = _price(hosts.get((host, _zone(row), column), ""), column, count)
            if with_host is None:
                found.left_out["have no price of the machine that holds the accelerators"] += 1
                continue
            price += with_host
        yield (instance, chip, count, kind), row["Region"], round(price, 6)


def _called(
    called: str, row: Mapping[str, str], cloud: str, count: int, instance: str, found: Found
) -> tuple[str, int, str, str]:
    """Our name, how many, the instance, and the machine that must be paid too; no name where the row is not read."""
    nothing = ("", 0, "", "")
    for each in names().slice:
        match = re.fullmatch(re.escape(each.skypilot) + r"-(\d{1,6})", called)
        if match:
            chips = int(match[1]) // each.per_chip * count
            if not 1 <= chips <= LARGEST_SLICE:
                found.left_out[f"rent slices of more than {LARGEST_SLICE} TPUs"] += 1
                return nothing
            return each.accelerator, chips, called, ""
    chip = _ours(called, row, cloud)
    if not chip:
        found.unknown[called] += 1
        return nothing
    if instance:
        return chip, count, instance, ""
    for host in names().host:
        if (host.skypilot, host.accelerators) == (called, count):
            return chip, count, host.instance, host.instance
    found.left_out["have no price of the machine that holds the accelerators"] += 1
    return nothing


def _ours(called: str, row: Mapping[str, str], cloud: str) -> str:
    """Our name of the accelerator of a row; nothing where no entry holds."""
    info = row.get("GpuInfo", row.get("GPUInfo", ""))
    said = (row["InstanceType"] + " " + " ".join(re.findall(r"'[Nn]ame': '([^']*)'", info))).lower()
    size = re.search(r"'SizeInMiB': ([0-9.]+)", info)
    gib = _gib(float(size[1])) if size and size[1].replace(".", "", 1).isdecimal() else 0.0
    for name in names().name:
        if (
            name.skypilot == called
            and (not name.clouds or cloud in name.clouds)
            and (not name.has or any(word in said for word in name.has))
            and (not gib or _has(name.accelerator, gib))
        ):
            return name.accelerator
    return ""


def _gib(size: float) -> float:
    """Some clouds write gigabytes where the field's name says MiB."""
    return size if size < 1024 else size / 1024


@cache
def _has(name: str, gib: float) -> bool:
    return abs(gib * GIB / accelerator(name).memory.nominal_bytes - 1) < ALIKE


def _count(text: str) -> float:
    value = _number(text)
    if value is None or not 0 < value <= MOST or (value > 1 and value != int(value)):
        raise _Malformed(f"AcceleratorCount must be a whole number from 1 to {MOST}. Got {shown(text)}.")
    return value


def _price(text: str, column: str, count: int) -> float | None:
    """USD for an hour; None where there is none."""
    if not text:
        return None
    value = _number(text)
    if value is None or not 0 < value <= DEAREST * count:
        raise _Malformed(
            f"{column} must be above 0 and at most {DEAREST * count:,.0f} USD an hour for {count}. Got {shown(text)}."
        )
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _whole_cloud(cheapest: Mapping[tuple[Key, str], float], as_of: str) -> list[Row]:
    """The rows, those of one price in every region of the cloud once."""
    everywhere = {region for _, region in cheapest}
    regions: dict[Key, dict[str, float]] = {}
    for (key, region), price in cheapest.items():
        regions.setdefault(key, {})[region] = price
    made = []
    for (instance, chip, count, kind), each in regions.items():
        alike = len(everywhere) > 1 and set(each) == everywhere and len(set(each.values())) == 1
        for region, price in ({EVERYWHERE: next(iter(each.values()))} if alike else each).items():
            made.append(
                Row(
                    instance=instance,
                    accelerator=chip,
                    accelerators=count,
                    region=region,
                    kind=kind,
                    usd_per_hour=price,
                    as_of=as_of,
                )
            )
    return sorted(made, key=lambda row: (row.accelerator, row.instance, row.region, row.kind))

"""SkyPilot's public catalogue: catalogs/<version>/<cloud>/vms.csv -> prices of machines with accelerators, by our
names.

Malformed rows are reported with line and field and left out; a name without an entry in the table is counted, never
guessed.
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
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import GIB
from tonnage.user_files import csv_text, decode

LARGEST = 64_000_000  # bytes of a file; the largest of the real ones has 4 million
MAX_USD = 1000.0  # for an hour of one accelerator: over ten times what any costs
MAX_ACCELERATORS = 1024  # of one machine
LARGEST_SLICE = 16  # chips: larger slices of TPUs cost the same a chip, and there are hundreds of them
# Memory sizes of GpuInfo and of our catalogue that differ by less are the same: some clouds write GB, some MiB, some
# the usable size.
MEMORY_TOLERANCE = 0.12
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
    """The content of a file. `malformed`: sentences about invalid rows; `unknown`: names without a matching entry ->
    rows; `left_out`: reason -> rows that are not read.
    """

    cloud: Cloud
    malformed: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


class _Malformed(Exception):
    """An invalid row: its field, and the reason."""


@cache
def names() -> Names:
    """The table of names."""
    return toml_files.read(toml_files.HERE / "skypilot" / "names.toml", Names)


def clouds() -> list[str]:
    """Folders of the catalogue whose provider has a name in the table."""
    return [cloud.folder for cloud in names().cloud]


def provider(cloud: str) -> str:
    """Our name of a folder's provider; UnknownName for a folder that is not in the table."""
    for folder in names().cloud:
        if folder.folder == cloud.lower():
            return folder.provider
    raise unknown("cloud of SkyPilot's catalogue", cloud, clouds())


def read(content: bytes, cloud: str, where: str, source: str, as_of: str) -> Found:
    """The prices of one vms.csv. InvalidInput where the file is invalid, or has no price of an accelerator that we
    know.
    """
    result = Found(cloud=Cloud(cloud=cloud, provider=provider(cloud), source=source))
    cheapest: dict[tuple[Key, str], float] = {}
    malformed: dict[int, str] = {}
    rows = list(_rows(content, where, malformed))
    hosts = _hosts(rows)
    for line, row in rows:
        try:
            for key, region, price in _priced(row, cloud, hosts, result):
                at = (key, region)
                cheapest[at] = min(price, cheapest.get(at, price))  # zones of a region may differ
        except _Malformed as error:
            malformed[line] = str(error)
    result.cloud.price = _whole_cloud(cheapest, as_of)
    result.malformed = [f"{where}, line {line}: {why}" for line, why in sorted(malformed.items())]
    if not result.cloud.price:
        why = f" {result.malformed[0]}" if result.malformed else ""
        raise InvalidInput("{where} has no price of an accelerator of our catalogue.{why}", where=where, why=why)
    return result


def _rows(content: bytes, where: str, malformed: dict[int, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with an accelerator, and rows of machines that may hold one, each with its line number."""
    if len(content) > LARGEST:
        raise InvalidInput(
            "{where} is larger than {largest} MB, so it is no list of machines.",
            where=where,
            largest=LARGEST // 10**6,
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
    """(machine, zone, column) -> price, of machines whose accelerators are priced separately."""
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
    row: Mapping[str, str], cloud: str, hosts: Mapping[tuple[str, str, str], str], result: Found
) -> Iterator[tuple[Key, str, float]]:
    """The prices of a row: what is rented, where, and USD for an hour."""
    called = row["AcceleratorName"]
    if not called:
        return
    instance, count = row["InstanceType"], _count(row["AcceleratorCount"])
    if not row["Region"]:
        raise _Malformed("Region is empty.")
    if count < 1:
        result.left_out["rent a part of an accelerator"] += 1
        return
    chip, count, instance, host = _called(called, row, cloud, int(count), instance, result)
    if not chip:
        return
    for column, kind in KINDS:
        if (price := _price(row.get(column, ""), column, count)) is None:
            continue
        if host:
            with_host = _price(hosts.get((host, _zone(row), column), ""), column, count)
            if with_host is None:
                result.left_out["have no price of the machine that holds the accelerators"] += 1
                continue
            price += with_host
        yield (instance, chip, count, kind), row["Region"], round(price, 6)


def _called(
    called: str, row: Mapping[str, str], cloud: str, count: int, instance: str, result: Found
) -> tuple[str, int, str, str]:
    """Our name, the number, the instance, and the host that must be paid too; an empty name for rows that are not
    read.
    """
    nothing = ("", 0, "", "")
    for slice_ in names().slice:
        match = re.fullmatch(re.escape(slice_.skypilot) + r"-(\d{1,6})", called)
        if match:
            chips = int(match[1]) // slice_.per_chip * count
            if not 1 <= chips <= LARGEST_SLICE:
                result.left_out[f"rent slices of more than {LARGEST_SLICE} TPUs"] += 1
                return nothing
            return slice_.accelerator, chips, called, ""
    chip = _ours(called, row, cloud)
    if not chip:
        result.unknown[called] += 1
        return nothing
    if instance:
        return chip, count, instance, ""
    for host in names().host:
        if (host.skypilot, host.accelerators) == (called, count):
            return chip, count, host.instance, host.instance
    result.left_out["have no price of the machine that holds the accelerators"] += 1
    return nothing


def _ours(called: str, row: Mapping[str, str], cloud: str) -> str:
    """Our name of a row's accelerator; empty where no entry matches."""
    info = row.get("GpuInfo", row.get("GPUInfo", ""))
    description = (row["InstanceType"] + " " + " ".join(re.findall(r"'[Nn]ame': '([^']*)'", info))).lower()
    size = re.search(r"'SizeInMiB': ([0-9.]+)", info)
    gib = _gib(float(size[1])) if size and size[1].replace(".", "", 1).isdecimal() else 0.0
    for name in names().name:
        if (
            name.skypilot == called
            and (not name.clouds or cloud in name.clouds)
            and (not name.has or any(word in description for word in name.has))
            and (not gib or _has(name.accelerator, gib))
        ):
            return name.accelerator
    return ""


def _gib(size: float) -> float:
    """Size in GiB: some clouds write gigabytes where the field's name says MiB."""
    return size if size < 1024 else size / 1024


@cache
def _has(name: str, gib: float) -> bool:
    return abs(gib * GIB / accelerator(name).memory.nominal_bytes - 1) < MEMORY_TOLERANCE


def _count(text: str) -> float:
    value = _number(text)
    if value is None or not 0 < value <= MAX_ACCELERATORS or (value > 1 and value != int(value)):
        raise _Malformed(f"AcceleratorCount must be a whole number from 1 to {MAX_ACCELERATORS}. Got {shown(text)}.")
    return value


def _price(text: str, column: str, count: int) -> float | None:
    """USD for an hour; None for an empty field."""
    if not text:
        return None
    value = _number(text)
    if value is None or not 0 < value <= MAX_USD * count:
        raise _Malformed(
            f"{column} must be above 0 and at most {MAX_USD * count:,.0f} USD an hour for {count}. Got {shown(text)}."
        )
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _whole_cloud(cheapest: Mapping[tuple[Key, str], float], as_of: str) -> list[Row]:
    """The rows; a price that is equal in every region of the cloud becomes one row."""
    everywhere = {region for _, region in cheapest}
    regions: dict[Key, dict[str, float]] = {}
    for (key, region), price in cheapest.items():
        regions.setdefault(key, {})[region] = price
    rows = []
    for (instance, chip, count, kind), by_region in regions.items():
        same_everywhere = len(everywhere) > 1 and set(by_region) == everywhere and len(set(by_region.values())) == 1
        for region, price in ({EVERYWHERE: next(iter(by_region.values()))} if same_everywhere else by_region).items():
            rows.append(
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
    return sorted(rows, key=lambda row: (row.accelerator, row.instance, row.region, row.kind))

"""Prices read by `tonnage prices refresh`: one dated file of the user, <config directory>/prices/refreshed.json.

It is JSON, not TOML as files written by people: it has thousands of rows, and every question about money reads it.
"""

import os
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from tonnage.catalogue import toml_files
from tonnage.kernel.errors import InvalidInput
from tonnage.user_files import read_bytes

LARGEST = 64_000_000  # bytes
Usd = Annotated[float, Meta(gt=0, le=100_000_000)]
Day = Annotated[str, Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")]
Kind = Literal["on-demand", "spot"]
Word = Annotated[str, Meta(min_length=1)]


class Row(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The price of one machine for an hour in one region."""

    instance: Word
    accelerator: Word
    accelerators: Annotated[int, Meta(ge=1, le=100_000)]
    region: Word
    kind: Kind
    usd_per_hour: Usd
    as_of: Day

    @property
    def offer(self) -> tuple[str, str, int, str, str]:
        """The identity of the offer, without its price."""
        return self.instance, self.accelerator, self.accelerators, self.region, self.kind


class Cloud(Struct, kw_only=True, forbid_unknown_fields=True):
    """The prices of one provider and their source; `cloud`: the source's name of the provider."""

    cloud: Word
    provider: Word
    source: Word
    price: list[Row] = []


class Refreshed(Struct, kw_only=True, forbid_unknown_fields=True):
    """The form of the file."""

    schema: Literal["tonnage/refreshed-prices/1"] = "tonnage/refreshed-prices/1"
    clouds: list[Cloud] = []


class Changed(Struct, kw_only=True, frozen=True):
    """What a refresh changed in one cloud's offers. `kept`: old offers that stay because some new ones were
    unreadable.
    """

    new: int = 0
    moved: int = 0
    gone: int = 0
    kept: int = 0


def path() -> Path:
    """The path of the file."""
    return toml_files.config_directory() / "prices" / "refreshed.json"


def load(at: Path) -> Refreshed:
    """The file, checked; empty where there is none."""
    try:
        if not at.exists():
            return Refreshed()
        refreshed = msgspec.json.decode(read_bytes(at, LARGEST), type=Refreshed)
        for day in {row.as_of for cloud in refreshed.clouds for row in cloud.price}:
            date.fromisoformat(day)
        return refreshed
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            "cannot read {at}, which `tonnage prices refresh` writes: {error}. Move it away or delete it.",
            at=at,
            error=error,
        ) from None


def merged(old: Refreshed, cloud: Cloud, *, is_complete: bool) -> tuple[Refreshed, Changed]:
    """Replace one cloud's prices. Unless the new ones are complete, old offers that are not among them stay."""
    before = next((other for other in old.clouds if other.cloud == cloud.cloud), None)
    known = {row.offer: row for row in before.price} if before else {}
    new = {row.offer: row for row in cloud.price}
    gone = [row for offer, row in known.items() if offer not in new]
    staying = [] if is_complete else gone
    replacement = Cloud(cloud=cloud.cloud, provider=cloud.provider, source=cloud.source, price=[*cloud.price, *staying])
    changed = Changed(
        new=sum(offer not in known for offer in new),
        moved=sum(offer in known and known[offer].usd_per_hour != row.usd_per_hour for offer, row in new.items()),
        gone=len(gone) - len(staying),
        kept=len(staying),
    )
    others = [other for other in old.clouds if other.cloud != cloud.cloud]
    return Refreshed(clouds=sorted([*others, replacement], key=lambda other: other.cloud)), changed


def save(refreshed: Refreshed, at: Path) -> None:
    """Write the file atomically: the old one stays until the new one is complete."""
    from tempfile import mkstemp

    written = ""
    try:
        at.parent.mkdir(parents=True, exist_ok=True)
        handle, written = mkstemp(dir=at.parent, prefix=f".{at.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(_by_rows(refreshed))
            file.flush()
            os.fsync(file.fileno())
        Path(written).chmod(0o644)
        Path(written).replace(at)
    except OSError as error:
        with suppress(OSError):
            Path(written).unlink()
        raise InvalidInput("cannot write {at}: {strerror}.", at=at, strerror=error.strerror or error) from None


def _by_rows(refreshed: Refreshed) -> bytes:
    """A line for each row, so that two files can be compared."""
    text = msgspec.json.encode(refreshed)
    return text.replace(b'},{"instance"', b'},\n{"instance"').replace(b'[{"', b'[\n{"') + b"\n"

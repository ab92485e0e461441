"""tonnage prices refresh: reads SkyPilot's public catalogue of machines into a dated file that the prices are looked
up in.
"""

import argparse
import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.catalogue import refreshed, skypilot
from tonnage.cli.common.parser import add, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.documents.prices import RefreshDocument, RefreshedCloud
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, Unreachable, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.reach import is_file, is_folder
from tonnage.language import say, worded
from tonnage.question.form import Given, values
from tonnage.question.forms import day, word
from tonnage.question.option import Option
from tonnage.user_files import read_bytes

HELP = (
    "read SkyPilot's public catalogue of machines into a dated file, which prices are then looked up in; the "
    "only part that asks the network"
)
URL = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
CLOUDS = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod")
FILE = "vms.csv"
SHOWN = 10  # malformed rows of a cloud that are shown


def clouds(text: str, what: str) -> tuple[str, ...]:
    """Folders of SkyPilot's catalogue, with commas between."""
    names = tuple(dict.fromkeys(part.strip().lower() for part in text.replace("，", ",").split(",") if part.strip()))
    if not names:
        raise InvalidInput("{what} is empty: give it names such as aws,gcp, or leave the option out.", what=what)
    for cloud in names:
        skypilot.provider(cloud)
    return names


OPTIONS = (
    Option(
        "from",
        "what is read: an address, a folder (a checkout, or one with CLOUD/vms.csv), or one vms.csv",
        word,
        unit="place",
        default=URL,
    ),
    Option(
        "cloud",
        "which clouds of it, as aws,gcp,lambda",
        clouds,
        ("--clouds",),
        "names",
        Message("{clouds}; of a folder those that it has", clouds=",".join(CLOUDS)),
    ),
    Option(
        "output",
        "the file that is written; prices are looked up in the default alone",
        word,
        unit="file",
        default="<config directory>/prices/refreshed.json",
    ),
    Option(
        "as_of", "the day of the prices", day, unit="date", default="today; of a file the day on which it was changed"
    ),
)


class Source(Struct, frozen=True):
    """One vms.csv: which cloud's, what it is called, and how it is read with its day."""

    cloud: str
    where: str
    read: Callable[[], tuple[bytes, date]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("refresh", choices=["refresh"], metavar="refresh", help="this")
    add(parser, OPTIONS, "what is read, and where it is written")
    add_output(parser)


def run(arguments: Given) -> int:
    options = values(arguments, OPTIONS)
    _check_day(options.get("as_of"))
    at = Path(options["output"]) if "output" in options else refreshed.path()
    old = refreshed.load(at)  # before anything is asked: what is not ours is not written over
    new, reports = old, []
    for source in _sources(options.get("from", URL), options.get("cloud")):
        new, report = _one(source, new, options.get("as_of"))
        reports.append(report)
    if not any(report.read for report in reports):
        problems = " ".join(dict.fromkeys(report.problem or "" for report in reports))
        raise InvalidInput("nothing was read, and {at} is as it was. {said}", at=at, said=problems)
    refreshed.save(new, at)
    looked_up = at.resolve() == refreshed.path().resolve()
    document = RefreshDocument(file=str(at), looked_up=looked_up, clouds=reports)
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document)))
    return 0


def _check_day(day: date | None) -> None:
    today = date.today()  # noqa: DTZ011 - prices have a day, no zone
    if day is not None and day > today:
        raise InvalidInput(
            "{@as_of} must be {today}, or a day before it: prices of a day to come are not known. Got {said}.",
            today=today,
            said=day,
        )


# ---- where it is read ----


def _sources(place: str, names: tuple[str, ...] | None) -> list[Source]:
    if re.match(r"[a-z][a-z0-9+.-]*://", place, re.IGNORECASE):
        return _remote(place, names)
    path = Path(place)
    if is_folder(path):
        return _folder(path, names)
    if not is_file(path):
        raise InvalidInput(
            "--from must be an address, a folder or a file that there is. Got {place}.", place=shown(place)
        )
    return [_file(path, _only(path.parent.name, names, place))]


def _remote(place: str, names: tuple[str, ...] | None) -> list[Source]:
    if place.split("?", maxsplit=1)[0].endswith(".csv"):
        return [_address(place, _only(place.split("?", maxsplit=1)[0].rsplit("/", 2)[-2], names, place))]
    return [_address(f"{place.rstrip('/')}/{cloud}/{FILE}", cloud) for cloud in names or CLOUDS]


def _folder(folder: Path, names: tuple[str, ...] | None) -> list[Source]:
    """Of a checkout of the whole catalogue the newest version, of clouds that are asked for or that there are."""
    versions = [path for path in folder.glob("catalogs/v*") if path.name[1:].isdecimal()]
    root = max(versions, key=lambda path: int(path.name[1:]), default=folder)
    present = names or tuple(cloud for cloud in skypilot.clouds() if is_file(root / cloud / FILE))
    if not present:
        raise InvalidInput(
            "{root} has no CLOUD/{file}. CLOUD may be {clouds}.",
            root=root,
            file=FILE,
            clouds=listed(skypilot.clouds()),
        )
    return [_file(root / cloud / FILE, cloud) for cloud in present]


def _only(folder: str, names: tuple[str, ...] | None, place: str) -> str:
    """The one cloud of a single file: as it was said, or as its folder is called."""
    if names is None and folder.lower() in skypilot.clouds():
        return folder.lower()
    if names is None or len(names) > 1:
        raise InvalidInput(
            "{place} is one file: say whose it is with --cloud, one of {clouds}.",
            place=place,
            clouds=listed(skypilot.clouds()),
        )
    return names[0]


def _file(path: Path, cloud: str) -> Source:
    def read() -> tuple[bytes, date]:
        data = read_bytes(path, skypilot.LARGEST)
        return data, datetime.fromtimestamp(path.stat().st_mtime).date()  # noqa: DTZ006 - prices have a day, no zone

    return Source(cloud, str(path), read)


def _address(url: str, cloud: str) -> Source:
    def read() -> tuple[bytes, date]:
        from tonnage.models.hubs import web

        if web.origin(url) is None:
            raise InvalidInput("--from must be an http or https address. Got {url}.", url=shown(url))
        answer = web.get(url, url, {"User-Agent": "tonnage"}, skypilot.LARGEST)
        if answer.status == 404:
            raise MissingDatum("there is no {url}.", url=url)
        if answer.status != 200:
            raise Unreachable(Message("{url} answers {status}.", url=url, status=answer.status))
        return answer.body, date.today()  # noqa: DTZ011 - prices have a day, no zone

    return Source(cloud, url, read)


# ---- one cloud ----


def _one(source: Source, old: refreshed.Refreshed, as_of: date | None) -> tuple[refreshed.Refreshed, RefreshedCloud]:
    """The prices with those of this cloud, and what is said about it; the old ones where it cannot be read."""
    report = RefreshedCloud(
        cloud=source.cloud,
        provider=skypilot.provider(source.cloud),
        source=source.where,
        as_of=None,
        read=False,
        problem=None,
        prices=0,
        accelerators=[],
        new=0,
        moved=0,
        gone=0,
        kept=0,
        malformed=[],
        unknown={},
        left_out={},
    )
    try:
        content, changed_on = source.read()
        day_of = (as_of or changed_on).isoformat()
        listed = skypilot.read(content, source.cloud, source.where, source.where, day_of)
    except TonnageError as error:
        return old, replace(report, problem=str(error))
    new, changed = refreshed.merged(old, listed.cloud, is_complete=not listed.malformed)
    return new, replace(
        report,
        as_of=day_of,
        read=True,
        prices=len(listed.cloud.price),
        accelerators=sorted({row.accelerator for row in listed.cloud.price}),
        new=changed.new,
        moved=changed.moved,
        gone=changed.gone,
        kept=changed.kept,
        malformed=listed.malformed,
        unknown=dict(sorted(listed.unknown.items())),
        left_out=dict(sorted(listed.left_out.items())),
    )


# ---- as text ----


def _lines(document: dict[str, Any]) -> list[str]:
    from tonnage.render.text import table_lines

    reports = document["clouds"]
    read = [report for report in reports if report["read"]]
    total = sum(report["prices"] for report in read)
    lines = [
        say(
            "{total} prices of {read_count} of {reports_count} clouds are now in {file}",
            total=f"{total:,}",
            read_count=len(read),
            reports_count=len(reports),
            file=document["file"],
        )
    ]
    if not document["looked_up"]:
        lines.append(say("note: prices are not looked up in it, but in {path}.", path=refreshed.path()))
    header = ("cloud", "prices", "accelerators", "new", "moved", "gone", "kept", say("as of"))
    cells = [
        (
            report["provider"],
            f"{report['prices']:,}",
            str(len(report["accelerators"])),
            *(str(report[key]) for key in ("new", "moved", "gone", "kept", "as_of")),
        )
        for report in read
    ]
    lines += ["", *table_lines(cells, header), ""]
    for report in reports:
        lines += _notes(report)
    return [*lines, say("`tonnage prices` lists them.")]


def _notes(report: dict[str, Any]) -> list[str]:
    who = report["provider"]
    if not report["read"]:
        return [
            say(
                "note: {who} was not read, and its prices are as they were. {problem}",
                who=who,
                problem=worded(report["problem"]),
            )
        ]
    notes = [say("note: {what}", what=worded(text)) for text in report["malformed"][:SHOWN]]
    if more := len(report["malformed"]) - SHOWN:
        notes += [say("note: {who}: {more} more rows like these.", who=who, more=f"{more:,}")] if more > 0 else []
    if report["kept"]:
        notes.append(
            say(
                "note: {who}: {kept} older prices stay, because rows of the new list could not be read.",
                who=who,
                kept=f"{report['kept']:,}",
            )
        )
    if report["unknown"]:
        unknown_names = ", ".join(f"{name} ({count})" for name, count in report["unknown"].items())
        notes.append(
            say(
                "note: {who}: left out, because our catalogue does not know which accelerator is meant (rows): {said}.",
                who=who,
                said=unknown_names,
            )
        )
    notes += [
        say("note: {who}: rows left out that {why}: {count}.", who=who, why=worded(why), count=f"{count:,}")
        for why, count in report["left_out"].items()
    ]
    return notes

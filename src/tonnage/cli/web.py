"""tonnage web: the page and the HTTP API on this machine."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from tonnage.cli.common.parser import add
from tonnage.cli.common.print import print_json
from tonnage.cli.forms import static
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.reach import is_folder
from tonnage.kernel.units import parse_bytes
from tonnage.question.form import Given, values
from tonnage.question.forms import port, ranged, whole, word
from tonnage.question.option import Option

HELP = "the page and the HTTP API: the answers of this command line in a browser and for programs, from this machine"
WHERE = (
    Option(
        "host",
        "the address to answer at; 0.0.0.0 is every network of this machine, and there whoever connects may ask",
        word,
        unit="address",
        default="127.0.0.1, this machine alone",
    ),
    Option("port", "the port to answer at", port, ("-p",), "port", "8000"),
    Option(
        "names",
        "host names that browsers may call the server by, commas between; addresses are always right",
        word,
        unit="names",
        default="localhost",
    ),
    Option(
        "workers",
        "processes that take requests; each has others beside it that answer",
        ranged(whole, "from 1 to 256"),
        unit="processes",
        default="1",
    ),
    Option("open", "open the page in a browser", default="off"),
)
REACH = (
    Option("offline", "ask no network, whatever is asked", default="off"),
    Option("hub", "models may be read from Hugging Face and ModelScope", default="on at 127.0.0.1, else off"),
    Option("models", "a folder whose models may be named; no other file is read", word, unit="folder", default="none"),
    Option(
        "store",
        "data base of saved plans: postgresql://..., sqlite:///FILE",
        word,
        unit="URL",
        default="a file of the user's own",
    ),
    Option("store_limit", "what all saved plans may take together", parse_bytes, unit="bytes", default="256 MB"),
    Option(
        "kept",
        "memory for answers that are asked for again within five minutes; 0: none are kept",
        parse_bytes,
        unit="bytes",
        default="64 MB",
    ),
)


MOST_WORKERS = 256
# What serves stands above the command line (docs/decisions/0001), and is looked for when it is asked for.
SERVER = "tonnage.web"
OPTIONS = (*WHERE, *REACH)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, WHERE, "where")
    add(parser, REACH, "what it may read and keep")
    static.add_arguments(parser)
    parser.add_argument_group("output").add_argument(
        "--json",
        action="store_true",
        help="print the API's description (OpenAPI 3.1) as one JSON document, and serve nothing",
    )


def run(arguments: Given) -> int:
    if static.is_asked(arguments):
        return static.write(arguments)
    server_settings = settings(arguments)
    serving = import_module(f"{SERVER}.process.run")
    if arguments.json:
        serving.check_extra()
        print_json(import_module(f"{SERVER}.schema.openapi").document())
        return 0
    return int(serving.serve(server_settings, browse=bool(arguments.open)))


def settings(arguments: Given) -> Any:
    """The settings that the arguments say."""
    from msgspec.structs import replace

    options = values(arguments, OPTIONS)
    options.pop("open", None)
    if not 1 <= options.get("workers", 1) <= MOST_WORKERS:
        raise InvalidInput(
            "--workers must be from 1 to {most_workers}. Got {workers}.",
            most_workers=MOST_WORKERS,
            workers=options["workers"],
        )
    if options.get("offline") and options.get("hub"):
        raise InvalidInput("--offline asks no network, and --hub does: give one. Got both.")
    if "models" in options and not is_folder(Path(options["models"])):
        raise InvalidInput("--models must be a folder. Got {models}.", models=shown(options["models"]))
    if "names" in options:
        options["names"] = tuple(name.strip() for name in options["names"].split(",") if name.strip())
    cache_size = options.pop("kept", None)
    server_settings = import_module(f"{SERVER}.settings").Settings(**options)
    return (
        server_settings
        if cache_size is None
        else replace(server_settings, limits=replace(server_settings.limits, kept_bytes=cache_size))
    )

"""`tonnage web --static`: what is said on the command line of a page without a server."""

import argparse
from importlib import import_module
from pathlib import Path

from tonnage.cli.common.parser import add
from tonnage.cli.common.print import print_lines
from tonnage.kernel.errors import InvalidInput
from tonnage.question.form import Given, values
from tonnage.question.forms import word
from tonnage.question.option import Option

OPTIONS = (
    Option(
        "static",
        "write the page as files that need no server into this folder, and serve nothing (docs/static_page.md)",
        word,
        unit="folder",
    ),
    Option("pyodide", "Python for browsers: the npm package pyodide, a folder or .tgz", word, unit="file"),
    Option("fetch", "get with npm and pip what --pyodide and --wheel do not give", default="off"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, OPTIONS, "a page without a server")
    parser.add_argument_group("a page without a server: packages").add_argument(
        "--wheel",
        action="append",
        default=[],
        metavar="FILE",
        help=(
            "a package built for browsers: msgspec, whose name ends in _wasm32.whl, and others if you have them; "
            "can be given again"
        ),
    )


def is_asked(arguments: Given) -> bool:
    """Whether a page without a server is asked for; its options without it are an error."""
    options = values(arguments, OPTIONS)
    for name in ("pyodide", "fetch", "wheel"):
        if "static" not in options and getattr(arguments, name):
            raise InvalidInput("--{name} is of --static FOLDER, which is not given.", name=name)
    return "static" in options


def write(arguments: Given) -> int:
    """Write the page; 0."""
    import_module("tonnage.web.process.run").check_extra()
    options = values(arguments, OPTIONS)
    page = import_module("tonnage.web.static.page")
    page.check(Path(options["static"]))  # before anything is fetched
    parts = import_module("tonnage.web.static.parts").parts(
        Path(options["pyodide"]) if "pyodide" in options else None,
        [Path(wheel) for wheel in arguments.wheel],
        fetch=bool(options.get("fetch")),
    )
    print_lines(page.write(Path(options["static"]), parts))
    return 0

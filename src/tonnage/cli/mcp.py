"""tonnage mcp: the answers as tools of the Model Context Protocol, for assistants."""

import argparse
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tonnage.cli.common.parser import add
from tonnage.cli.common.print import print_json, write
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.question.form import Given, values
from tonnage.question.forms import port, word
from tonnage.question.option import Option

HELP = (
    "a server of the Model Context Protocol, for assistants: train, serve, plan, max, compare and explain as "
    "tools, over stdin and stdout"
)
OPTIONS = (
    Option(
        "http",
        "serve streamable HTTP on this port of 127.0.0.1, at /mcp, instead of stdin and stdout",
        port,
        unit="port",
    ),
    Option(
        "models",
        "a folder whose files a question may name: configs, weights, machines, inventories, traces",
        word,
        unit="folder",
        default="no file is read",
    ),
    Option("files", "a question may name every file that this user can read", default="off"),
    Option(
        "text", "documents as text too, for clients that show no structured content to the assistant", default="off"
    ),
    Option(
        "skill", "print SKILL.md, how an assistant asks on the command line instead, and serve nothing", default="off"
    ),
)
NEEDS = "tonnage mcp needs the package mcp, version 2 or newer: pip install tonnage[mcp]."
# What serves stands above the command line (docs/decisions/0001), and is looked for when it is asked for.
SERVER = "tonnage.mcp_server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, OPTIONS, "server")
    parser.add_argument(
        "--offline", action="store_true", default=None, help="never ask model hubs (default: as HF_HUB_OFFLINE says)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the tools with the schemas of their fields as one JSON document, and serve nothing",
    )


def run(arguments: Given) -> int:
    options = values(arguments, OPTIONS)
    if options.get("skill"):
        write(skill())
        return 0
    within = _reach(options, offline=bool(arguments.offline))
    where = options.get("http")
    if arguments.json:
        from tonnage.documents.document import ToolsDocument

        print_json(ToolsDocument(tools=list(import_module(f"{SERVER}.tools").listed())))
        return 0
    check_extra()
    serving = import_module(f"{SERVER}.server")
    settings = serving.Settings(within, bool(options.get("text")))
    if where is None:
        serving.serve_stdio(settings)
    else:
        serving.serve_http(settings, where)
    return 0


def skill() -> str:
    """The text of SKILL.md, which ships with the package."""
    return (Path(__file__).parents[1] / "mcp_server" / "SKILL.md").read_text("utf-8")


def check_extra() -> None:
    """InvalidInput with what to install where the package is missing, or too old."""
    if find_spec("mcp") is None or find_spec("mcp.server.mcpserver") is None:
        raise InvalidInput(NEEDS)


def _reach(options: dict[str, Any], *, offline: bool) -> Any:
    from tonnage.kernel.reach import EVERYWHERE, Reach, is_folder

    folder = options.get("models")
    if folder is not None and options.get("files"):
        raise InvalidInput("--models is one folder, --files are all: give one. Got both.")
    if folder is not None and not is_folder(Path(folder)):
        raise InvalidInput("--models is a folder, and there is none called so. Got {folder}.", folder=shown(folder))
    files = EVERYWHERE if options.get("files") else None if folder is None else Path(folder)
    return Reach(files=files, hubs=not offline)

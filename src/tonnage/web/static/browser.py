"""What answers the page where there is no server: this runs inside the browser, in Pyodide's Python. Requests and
replies are those of the HTTP API.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message
from tonnage.kernel.reach import Reach
from tonnage.verbs.answered import FULL
from tonnage.web.answer import Refusal, answered, error_body

WITHIN = Reach(files=None, hubs=False, machine=False)  # a browser has none of them
# What answers may import, which is not built for browsers in any registry, or has no use in one.
ABSENT = frozenset({"highspy", "huggingface_hub", "kaleido", "numpy", "plotly", "pyarrow", "torch", "transformers"})
LISTS = {
    "models": "model",
    "accelerators": "name",
    "prices": "name",
}  # of GET /v1/LIST/NAME: what the name is in a question


class NotInBrowser(TonnageError, ImportError):
    """What an answer needs is not there."""


class Reply(NamedTuple):
    """`headers`: those that the page reads."""

    code: int
    headers: dict[str, str]
    body: bytes


class Absent:
    """Says which package an answer lacks where it would be imported. The last of the finders: what is there is
    found.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in ABSENT:
            raise NotInBrowser(
                Message(
                    "this needs `tonnage web` or the command line: {name} is not part of a page without a server.",
                    name=name,
                )
            )
        return None


def begin() -> None:
    """Once. The first answer imports modules and reads catalogues: it is given before anybody asks."""
    sys.meta_path.append(Absent)
    answer("POST", "/v1/train", '{"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"}')


def answer(method: str, path: str, body: str = "") -> Reply:
    """The reply to a request of the page."""
    place, _, query = path.partition("?")
    verb, _, name = unquote(place).removeprefix("/v1/").partition("/")
    if method == "GET" and verb not in LISTS:
        return Reply(404, {}, error_body(404, "NotFound", f"there is no {path} in a page without a server."))
    try:
        question: Any = {LISTS[verb]: name, **dict(parse_qsl(query))} if method == "GET" else msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        return Reply(400, {}, error_body(400, "InvalidInput", f"the question is not JSON: {error}."))
    detail = dict(parse_qsl(query)).get("detail", FULL) if method == "POST" else FULL
    outcome = answered(verb, question, WITHIN, detail)
    if isinstance(outcome, Refusal):
        return Reply(outcome.code, {}, outcome.body)
    return Reply(200, {"tonnage-status": str(outcome.status), "tonnage-command": outcome.command}, outcome.body)

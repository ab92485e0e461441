"""Page, API, command line and assistants give the same document for the same question: the table of
tests/questions_of_faces.py. (The page asks the API; without a server it runs the same Python:
tests/web/static/test_static_page.py.)
"""

import json
import re
import shlex

import msgspec
import pytest

from questions_of_faces import PASTED, QUESTIONS, name_of
from tonnage.cli import main
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import Reach
from tonnage.mcp_server.tools import BY_NAME
from tonnage.verbs.ask import ask, line, words_of

WITHIN = Reach(files=None, hubs=False, machine=False)
LISTED = {"models": "model", "accelerators": "name", "prices": "name"}  # GET /v1/VERB/NAME


REPLIES = {}


def _reply(asked):
    """The document that `ask` gives, encoded, and its status: asked once for all that is compared with it."""
    if name_of(asked) not in REPLIES:
        found = ask(asked.verb, asked.question, WITHIN)
        REPLIES[name_of(asked)] = encode(found.document), found.status
    return REPLIES[name_of(asked)]


def _asked(asked):
    """What `ask` gives, as JSON has it."""
    return msgspec.json.decode(_reply(asked)[0])


PRINTED = {}


def _printed(words, capsys):
    """What a command prints and its status: run once, however the command was written."""
    if tuple(words) not in PRINTED:
        status = main([*words, "--json"])
        PRINTED[tuple(words)] = json.loads(capsys.readouterr().out), status
    return PRINTED[tuple(words)]


@pytest.fixture(scope="module")
def api():
    pytest.importorskip("litestar", reason="needs tonnage[web]")
    from litestar.testing import TestClient

    from tonnage.web.app import create_app
    from tonnage.web.settings import Settings

    with TestClient(create_app(Settings(offline=True)), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.mark.parametrize("asked", QUESTIONS, ids=name_of)
def test_the_command_line_prints_the_document_that_ask_gives(asked, capsys):
    assert _printed(words_of(asked.verb, asked.question), capsys) == (_asked(asked), _reply(asked)[1])


@pytest.mark.parametrize("asked", QUESTIONS, ids=name_of)
def test_the_line_that_comes_with_an_answer_asks_it_again(asked, capsys):
    words = shlex.split(line(words_of(asked.verb, asked.question)))
    assert words[0] == "tonnage"
    assert _printed(words[1:], capsys)[0] == _asked(asked)


@pytest.mark.parametrize("asked", [*QUESTIONS, PASTED], ids=name_of)
def test_the_api_answers_with_the_same_document_and_status(asked, api):
    if asked.verb in LISTED:
        reply = api.get(f"/v1/{asked.verb}/{asked.question[LISTED[asked.verb]]}")
    else:
        reply = api.post(f"/v1/{asked.verb}", json=asked.question)
    assert reply.status_code == 200, reply.text
    assert reply.json() == _asked(asked)
    assert int(reply.headers["Tonnage-Status"]) == _reply(asked)[1]


@pytest.mark.parametrize("asked", [each for each in (*QUESTIONS, PASTED) if each.verb in BY_NAME], ids=name_of)
def test_assistants_are_answered_with_the_same_document(asked):
    pytest.importorskip("mcp.server.mcpserver", reason="needs tonnage[mcp]")
    from tonnage.mcp_server.server import Settings, answer

    whole = {"detail": "full"}
    found = answer(asked.verb, {**asked.question, **whole}, Settings(WITHIN))
    assert not found.is_error
    assert found.structured_content == _asked(asked)


REFUSED = (
    ("train", {"model": "llama-3.1-8c", "on": "8xh100"}),
    ("train", {"model": "llama-3.1-8b", "on": "8xh100", "micro_batch_size": 0}),
    ("serve", {"model": "llama-3.1-8b", "on": "8xh100", "users": "banana"}),
    ("max", {"what": "context", "on": "h100"}),
    ("compare", {"model": "llama-3.1-8b"}),
    ("explain", {"name": "kv_cache_bites"}),
)


@pytest.mark.parametrize(("verb", "question"), REFUSED, ids=str)
def test_what_is_refused_is_refused_in_the_same_words_everywhere_an_option_named_as_a_field_where_it_is_one(
    verb, question, api, capsys
):
    from tonnage.mcp_server.server import Settings, answer

    assert main([*words_of(verb, question), "--json"]) not in (0, 2, 3)
    printed = json.loads(capsys.readouterr().out)
    reply = api.post(f"/v1/{verb}", json=question)
    assert 400 <= reply.status_code < 500
    of_http = {"type", "title", "status", "detail"}  # a problem of RFC 9457
    document = {name: value for name, value in reply.json().items() if name not in of_http}
    assert document == answer(verb, question, Settings(WITHIN)).structured_content
    told = reply.json()["error"]
    assert told["kind"] == printed["error"]["kind"]
    as_fields = re.sub(r"--[a-z][a-z-]*", lambda flag: flag[0][2:].replace("-", "_"), printed["error"]["message"])
    assert told["message"].removeprefix("name: ") == as_fields


def test_the_table_asks_every_verb_and_enough():
    assert {asked.verb for asked in QUESTIONS} >= {"train", "serve", "plan", "max", "compare", "rules", "explain"}
    assert len(QUESTIONS) >= 25
    assert len({name_of(asked) for asked in (*QUESTIONS, PASTED)}) == len(QUESTIONS) + 1
    with pytest.raises(InvalidInput):
        ask("train", {**QUESTIONS[0].question, "json": True})

"""Which machines a question can make the server connect to: the hubs of its owner, and no other."""

import json
import socket

import pytest

from every_row import every_row
from models import conftest
from models.files import LLAMA, llama, safetensors
from models.hub_server import Repository, Sites
from tonnage.kernel.errors import InvalidInput, Unreachable
from tonnage.kernel.reach import Reach
from tonnage.models.hubs import web
from tonnage.models.names import explicit
from tonnage.web.answer import EncodedAnswer, Refusal, answered

sites = conftest.sites
HUBS = Reach(files=None, hubs=True, machine=False)
NO_HUBS = Reach(files=None, hubs=False, machine=False)
ELSEWHERE = (
    "http://127.0.0.1:{port}/a/b",
    "https://127.0.0.1:{port}/a/b",
    "https://localhost:{port}/a/b",
    "http://[::1]:{port}/a/b",
    "http://169.254.169.254/latest/meta-data",
    "https://10.0.0.1/a/b",
    "https://evil.com/a/b",
    "https://huggingface.co.evil.com/a/b",
    "https://huggingface.co@127.0.0.1:{port}/a/b",
    "https://user:secret@huggingface.co/a/b",
    "https://huggingface.co:{port}/a/b",
    "https://huggingface.co:99999/a/b",
    "ftp://huggingface.co/a/b",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_GET",
    "//127.0.0.1:{port}/a/b",
    "https://2130706433:{port}/a/b",
    "https://0x7f.1/a/b",
    "https:///a/b",
    "https://huggingface.co\\@127.0.0.1/a/b",
    "https://huggingface.co/../../a",
    "https://[::ffff:127.0.0.1]/a/b",
    "javascript:alert(1)",
    "data:application/json,{{}}",
    "https://xn--huggingface-/a/b",
)


@pytest.fixture
def no_connection(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every name that is looked up and every connection that is made."""
    made: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        made.append(arguments)
        raise AssertionError(arguments)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return made


@every_row("url", ELSEWHERE)
@every_row(
    "question",
    [
        ("train", "model", {"on": "8xh100"}),
        ("serve", "model", {"on": "8xh100"}),
        ("compare", "model", {"on": "8xh100"}),
        ("rules", "model", {}),
        ("train", "teacher", {"on": "8xh100", "model": "gpt2", "objective": "distillation"}),
        ("max", "model", {"on": "8xh100", "what": "context"}),
        ("serve", "draft_model", {"on": "8xh100", "model": "llama-3.1-8b", "draft_tokens": 3}),
        ("plan", "model", {"on": "8xh100", "serve": True}),
    ],
    ids=lambda question: "-".join(question[:2]),
)
def test_a_url_of_another_host_is_refused_before_any_connection(no_connection, url, question):
    verb, name, rest = question
    refused = answered(verb, {name: url.format(port=8080), **rest}, HUBS)
    assert isinstance(refused, Refusal) and refused.code in (400, 422), refused
    assert refused.kind != "Internal" and no_connection == []


@pytest.mark.parametrize(
    "name",
    [
        "https://huggingface.co/a/b",
        "hf:a/b",
        "modelscope:a/b",
        "no-such-owner/no-such-model",
        "https://modelscope.cn/models/a/b",
    ],
)
def test_a_server_that_may_not_ask_hubs_asks_none(no_connection, name):
    refused = answered("train", {"model": name, "on": "8xh100"}, NO_HUBS)
    assert isinstance(refused, Refusal) and (refused.code, refused.kind) == (422, "Unreachable")
    assert "not asked here" in refused.message and no_connection == []


def test_a_server_that_may_reads_a_model_from_the_hub_of_its_owner(sites: Sites):
    shapes = llama()
    sites.repositories["own/tiny"] = Repository(
        {"config.json": json.dumps(LLAMA).encode(), "model.safetensors": safetensors(shapes)}
    )
    found = answered("train", {"model": "own/tiny", "on": "h100"}, HUBS)
    assert isinstance(found, EncodedAnswer), found
    assert json.loads(found.body)["question"]["model"]["value"] == "own/tiny"
    assert sites.paths("hub")


def test_a_hub_that_fails_is_said_and_no_failure_of_the_server(sites: Sites):
    sites.odd["/api/models/own/odd"] = lambda handler: handler.reply(500, b"no")
    refused = answered("train", {"model": "own/odd", "on": "h100"}, HUBS)
    assert isinstance(refused, Refusal) and refused.code in (400, 422) and refused.kind != "Internal"


@pytest.mark.parametrize(
    "inside",
    [
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "127.0.0.1",
        "[::1]",
        "169.254.169.254",
        "10.1.2.3",
        "[::ffff:10.0.0.1]",
    ],
)
def test_no_redirect_leads_into_this_network_however_its_address_is_written(inside):
    with pytest.raises(Unreachable, match="not followed"):
        web.next_url("https://huggingface.co/a", f"https://{inside}/x", "https://huggingface.co", trusted=True)


@pytest.mark.parametrize(
    "url",
    ["https://huggingface.co:8080/a/b", "https://me:secret@huggingface.co/a/b", "https://me@modelscope.cn/models/a/b"],
)
def test_a_models_url_names_a_site_and_nothing_to_get_in_with(url):
    with pytest.raises(InvalidInput, match="without user, password or port"):
        explicit(url)


def test_a_mirror_of_the_owner_may_have_a_port(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:8090")
    assert explicit("http://127.0.0.1:8090/a/b").repository == "a/b"

"""Models of ModelScope, on a server of this machine."""

import json
from pathlib import Path

import pytest

from models.files import LLAMA, LLAMA_PARAMETERS, folder, llama, safetensors, shards
from models.hub_server import Handler, Repository, Sites
from tonnage.kernel.errors import AccessDenied, InvalidInput, UnknownName, Unreachable
from tonnage.models import read

NAME = "Someone/Tiny-Llama-0.1B"
CONFIG = json.dumps(LLAMA).encode()


@pytest.fixture
def scope(sites: Sites) -> Sites:
    sites.repositories[NAME] = Repository({"config.json": CONFIG, **shards(llama(), 2)})
    return sites


@pytest.mark.parametrize(
    "text",
    [f"modelscope:{NAME}", f"https://modelscope.cn/models/{NAME}", f"https://www.modelscope.cn/models/{NAME}/files"],
)
def test_config_and_headers_are_read(scope: Sites, text: str):
    found = read(text)
    assert found.num_parameters() == found.tensors.num_parameters == LLAMA_PARAMETERS
    assert (found.name, found.notes) == (NAME, ())
    assert found.source == f"{NAME}@master on 127.0.0.1"
    assert len(scope.paths("cdn")) == 2


def test_a_revision_is_asked_for(scope: Sites):
    assert "@v2" in read(f"modelscope:{NAME}@v2").source
    assert read(f"modelscope:{NAME}", revision="v2").num_parameters() == LLAMA_PARAMETERS
    with pytest.raises(UnknownName, match="with a revision 'v9'"):
        read(f"modelscope:{NAME}@v9")


def test_the_token_goes_to_modelscope_and_to_nobody_else(scope: Sites, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", "hf_good")
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    read(f"modelscope:{NAME}")
    asked = {(asked.server, asked.token, asked.cookie) for asked in scope.asked}
    assert asked == {("hub", "Bearer hf_good", "m_session_id=hf_good"), ("cdn", "", "")}


def test_a_wrong_token_is_named_and_not_shown(scope: Sites, monkeypatch: pytest.MonkeyPatch):
    for token in ("ms_wrong", "ms;wrong", "ms\u00fc"):
        monkeypatch.setenv("MODELSCOPE_API_TOKEN", token)
        with pytest.raises(InvalidInput, match="MODELSCOPE_API_TOKEN") as caught:
            read(f"modelscope:{NAME}")
        assert token not in str(caught.value)


def test_errors_say_what_is_wrong(scope: Sites):
    with pytest.raises(UnknownName, match="there is no model 'a/b'"):
        read("modelscope:a/b")
    scope.repositories[NAME].gated = True
    with pytest.raises(AccessDenied, match="MODELSCOPE_API_TOKEN"):
        read(f"modelscope:{NAME}")
    scope.repositories["a/b"] = Repository({"README.md": b""})
    with pytest.raises(InvalidInput, match=r"no config.json"):
        read("modelscope:a/b")


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (b"<html>", Unreachable, "does not answer as ModelScope"),
        (b'{"Code": 200}', UnknownName, "there is no model"),
        (b'{"Code": 10010, "Message": "gone"}', UnknownName, "gone"),
        (b'{"Code": 200, "Data": {"Files": [{"Path": "../x"}]}}', InvalidInput, "no config.json"),
    ],
)
def test_odd_listings_are_clear_errors(scope: Sites, body: bytes, error: type[Exception], says: str):
    def answer(handler: Handler) -> None:
        handler.reply(200, body)

    scope.odd[f"/api/v1/models/{NAME}/repo/files"] = answer
    with pytest.raises(error, match=says):
        read(f"modelscope:{NAME}")


def test_a_server_error_is_unreachable(scope: Sites):
    scope.odd[f"/api/v1/models/{NAME}/repo/files"] = lambda handler: handler.reply(502)
    with pytest.raises(Unreachable, match="answers 502"):
        read(f"modelscope:{NAME}")


@pytest.mark.parametrize(
    "place",
    [
        "models/Someone--Tiny-Llama-0.1B/snapshots/master",
        "hub/models/Someone/Tiny-Llama-0___1B",
        "hub/Someone/Tiny-Llama-0___1B",
    ],
)
def test_what_an_sdk_downloaded_is_read_offline(
    scope: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    with pytest.raises(Unreachable, match="not in ModelScope's cache"):
        read(f"modelscope:{NAME}", offline=True)
    folder(tmp_path / "modelscope" / place, LLAMA, llama())
    found = read(f"modelscope:{NAME}", offline=True)
    assert found.tensors.num_parameters == LLAMA_PARAMETERS
    assert (found.name, scope.asked) == (NAME, [])
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:1")
    assert "cannot reach 127.0.0.1" in read(f"modelscope:{NAME}").notes[0]
    with pytest.raises(Unreachable):
        read(f"modelscope:{NAME}@v2", offline=True)


def test_a_single_file_is_read(scope: Sites):
    scope.repositories["a/b"] = Repository({"config.json": CONFIG, "model.safetensors": safetensors(llama())})
    assert read("modelscope:a/b").tensors.files == 1

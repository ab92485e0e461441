"""Servers that lie, send garbage, lead elsewhere or never end: a clear error within bounded time and memory."""

import json
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from models.files import LLAMA, LLAMA_PARAMETERS, framed, llama, safetensors
from models.hub_server import COMMIT, Handler, Repository, Server, Sites
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, Unreachable
from tonnage.models import read
from tonnage.models.hubs import web

NAME = "a/b"
API = f"/api/models/{NAME}/revision/main"
FILE = f"/{NAME}/resolve/{COMMIT}/model.safetensors"
CDN = f"/{NAME}/model.safetensors"
Odd = Callable[[Handler], None]
ONE = framed({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}) + bytes(16)


@pytest.fixture
def hub(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> Sites:
    monkeypatch.setattr(web, "PATIENCE", 2)
    sites.repositories[NAME] = Repository(
        {"config.json": json.dumps(LLAMA).encode(), "model.safetensors": safetensors(llama())}
    )
    return sites


def answering(status: int, body: bytes = b"", **headers: str) -> Odd:
    return lambda handler: handler.reply(status, body, **headers)


def never_ending(piece: bytes) -> Odd:
    """A body without an end, as fast as it goes."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(piece)
        except OSError:
            handler.close_connection = True

    return answer


def silent(handler: Handler) -> None:
    """Say nothing until the client hangs up."""
    handler.connection.settimeout(10)
    with suppress(OSError):
        handler.rfile.read(1)
    handler.close_connection = True


def cut_off(handler: Handler) -> None:
    """Promise more than comes."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"sha":')
    handler.close_connection = True


def slammed(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def to(location: str) -> Odd:
    return answering(302, Location=location)


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (answering(200, b"<html>Log in</html>"), "does not answer as a Hugging Face Hub"),
        (answering(200, b"[1, 2]"), "does not answer as a Hugging Face Hub"),
        (answering(200, b'{"sha": 3}'), "does not answer as a Hugging Face Hub"),
        (answering(200, b'{"sha": "../../x", "siblings": []}'), "names no commit"),
        (answering(200, b"[" * 100_000), "does not answer as a Hugging Face Hub"),
        (answering(200, b'{"sha": "\x80"}'), "does not answer as a Hugging Face Hub"),
        (answering(200, b"\xff\x00", Content_Encoding="gzip"), "compressed"),
        (answering(500), "answers 500"),
        (answering(503, X_Error_Message="busy"), "answers 503"),
        (answering(429, Retry_After="30"), "try again in 30 seconds"),
        (answering(302), "answers 302"),
        (never_ending(b" " * 65_536), "sends more than|did not answer|too slow"),
        (silent, "127.0.0.1"),
        (cut_off, "cannot reach 127.0.0.1"),
        (slammed, "cannot reach 127.0.0.1"),
        (to("/x"), "answers 404|does not answer|there is no model"),
        (to(API), "redirects more than 5 times"),
        (to("gopher://x/y"), "no web address"),
        (to("http://[/"), "no web address"),
        (to("file:///etc/passwd"), "no web address"),
    ],
)
def test_an_odd_listing_is_a_clear_error(hub: Sites, odd: Odd, says: str):
    hub.odd[API] = odd
    with pytest.raises(TonnageError, match=says):
        read(NAME)


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (answering(200, b"not json"), "config.json is not JSON"),
        (answering(200, b"{" * 200_000), "not JSON|nested"),
        (answering(200, b" " * 10_000_001), "sends more than 10,000,000"),
        (never_ending(b" " * 65_536), "sends more than 10,000,000|too slow"),
        (silent, "127.0.0.1"),
        (answering(404, X_Error_Code="EntryNotFound"), "no file config.json"),
    ],
)
def test_an_odd_config_is_a_clear_error_and_is_not_kept(hub: Sites, odd: Odd, says: str):
    hub.odd[f"/{NAME}/resolve/{COMMIT}/config.json"] = odd
    with pytest.raises(TonnageError, match=says):
        read(NAME)
    if "JSON" not in says:
        hub.odd.clear()
        assert read(NAME).num_parameters() == LLAMA_PARAMETERS


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (answering(206, (2**40).to_bytes(8, "little"), Content_Range="bytes 0-7/8"), "100 MB"),
        (answering(206, framed(b'{"a": 1}'), Content_Range="bytes 0-15/16"), "Expected `object`"),
        (answering(206, framed(b'{"a": }'), Content_Range="bytes 0-14/15"), "not JSON"),
        (answering(206, b"", Content_Range="bytes 0-0/0"), "takes 8"),
        (answering(206, framed({}) + b"x", Content_Range="bytes 0-10/11"), "more than that"),
        (answering(206, framed({}), Content_Range="bytes 0-9/99999999"), "10 bytes came where 65,536"),
        (answering(206, (500).to_bytes(8, "little"), Content_Range="bytes 0-7/508"), "bytes came where"),
        (answering(206, ONE, Content_Range=f"bytes 0-{len(ONE) - 1}/*"), "nothing is wrong"),
        (answering(206, ONE, Content_Range=f"bytes 0-{len(ONE) - 1}/-5"), "nothing is wrong"),
        (answering(206, ONE, Content_Range=f"bytes 0-{len(ONE) - 1}/" + "9" * 400), "nothing is wrong"),
        (answering(206, framed({}), Content_Range="bytes 0-9/*"), "holds no tensors"),
    ],
)
def test_an_odd_header_is_a_clear_error(hub: Sites, odd: Odd, says: str):
    hub.odd[CDN] = odd
    if says == "nothing is wrong":
        hub.repositories[NAME].files.pop("config.json")
        assert read(NAME).num_parameters() == 4
        return
    hub.repositories[NAME].files.pop("config.json")
    with pytest.raises(TonnageError, match=says):
        read(NAME)


@pytest.mark.parametrize(
    "odd",
    [
        silent,
        slammed,
        cut_off,
        answering(500),
        answering(206, b"x" * 16, Content_Range="bytes 8-23/100"),
        to("http://127.0.0.1:1/elsewhere"),
        answering(206, b"12345678"),
    ],
)
def test_headers_that_cannot_be_had_leave_the_config_and_a_note(hub: Sites, odd: Odd):
    hub.odd[CDN] = odd
    found = read(NAME)
    assert found.num_parameters() == LLAMA_PARAMETERS
    assert found.tensors is None
    assert found.notes[0].startswith("The headers of the weights could not be read")


def test_a_server_that_sends_the_whole_file_instead_of_a_part_is_cut_short(hub: Sites):
    hub.odd[CDN] = lambda handler: handler.reply(200, hub.repositories[NAME].files["model.safetensors"])
    assert read(NAME).tensors.num_parameters == LLAMA_PARAMETERS
    hub.repositories["a/c"] = Repository({"model.safetensors": b""})
    hub.odd["/a/c/model.safetensors"] = never_ending((2**60).to_bytes(8, "little"))
    with pytest.raises(InvalidInput, match="100 MB"):
        read("a/c")


def test_a_cdn_leads_nowhere_else(hub: Sites):
    third = Server("third", hub)
    hub.odd[CDN] = to(f"{third.url}{CDN}")
    found = read(NAME)
    third.stop()
    assert "redirects to 127.0.0.1, which is not followed" in found.notes[0]
    assert hub.paths("third") == []


def test_an_endpoint_may_lead_to_another_path_of_its_own_with_the_token(hub: Sites, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    hub.repositories["new/name"] = hub.repositories[NAME]
    hub.odd["/api/models/old/name/revision/main"] = to("/api/models/new/name/revision/main")
    hub.odd[f"/old/name/resolve/{COMMIT}/config.json"] = to(f"/new/name/resolve/{COMMIT}/config.json")
    hub.odd[f"/old/name/resolve/{COMMIT}/model.safetensors"] = to(f"/new/name/resolve/{COMMIT}/model.safetensors")
    assert read("old/name").tensors.num_parameters == LLAMA_PARAMETERS
    assert {asked.token for asked in hub.asked if asked.server == "hub"} == {"Bearer hf_good"}


@pytest.mark.parametrize(
    ("endpoint", "location", "allowed"),
    [
        ("https://huggingface.co", "https://cdn-lfs.hf.co/x", True),
        ("https://huggingface.co", "http://cdn-lfs.hf.co/x", False),
        ("https://huggingface.co", "https://127.0.0.1/x", False),
        ("https://huggingface.co", "https://169.254.169.254/latest", False),
        ("https://huggingface.co", "https://[::1]/x", False),
        ("https://huggingface.co", "https://[fd00::1]/x", False),
        ("https://huggingface.co", "https://10.0.0.8/x", False),
        ("https://huggingface.co", "https://localhost/x", False),
        ("https://huggingface.co", "https://metadata.google.internal/x", False),
        ("https://huggingface.co", "https://intranet/x", False),
        ("http://127.0.0.1:8080", "http://127.0.0.1:9090/x", True),
        ("https://hub.corp.internal", "https://storage.corp.internal/x", True),
    ],
)
def test_a_redirect_never_leads_into_this_network_from_outside_it(endpoint: str, location: str, allowed: bool):
    url = f"{endpoint}/a/b/resolve/main/x"
    if allowed:
        assert web.next_url(url, location, endpoint, trusted=True) == location
    else:
        with pytest.raises(Unreachable, match="not followed"):
            web.next_url(url, location, endpoint, trusted=True)


def test_a_listing_of_wild_names_is_read_without_them(hub: Sites):
    files = ["config.json", "../../../etc/passwd", "/abs", "a\\b", "x\u0000y", "", "a//b"]
    hub.odd[API] = answering(
        200, json.dumps({"sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}).encode()
    )
    found = read(NAME)
    assert found.num_parameters() == LLAMA_PARAMETERS
    assert found.tensors is None


def test_an_index_that_names_other_places_is_refused(hub: Sites):
    index = json.dumps({"weight_map": {"x": "../../../../etc/passwd"}}).encode()
    hub.repositories[NAME].files = {"config.json": json.dumps(LLAMA).encode(), "model.safetensors.index.json": index}
    with pytest.raises(InvalidInput, match="plain relative path"):
        read(NAME)


def test_an_index_of_too_many_shards_is_refused(hub: Sites):
    names = {f"t{number}": f"s{number}.safetensors" for number in range(2001)}
    files = dict.fromkeys(names.values(), b"")
    index = json.dumps({"weight_map": names}).encode()
    hub.repositories[NAME].files = {
        "config.json": json.dumps(LLAMA).encode(),
        "model.safetensors.index.json": index,
        **files,
    }
    with pytest.raises(InvalidInput, match="2,001 shards"):
        read(NAME)


def test_an_endpoint_that_is_no_url_says_so(hub: Sites, monkeypatch: pytest.MonkeyPatch):
    for endpoint in ("http://[", "http://", "http://a b", "http://127.0.0.1:99999"):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        with pytest.raises(TonnageError):
            read("x/y")


def test_a_slow_host_ends_in_time_whatever_it_waits_for(hub: Sites):
    with pytest.raises(Unreachable, match="within 0 seconds"):
        web.within(threading.Event().wait, 0.05, "somebody")


def test_the_first_of_many_errors_ends_all(hub: Sites):
    def fail(item: str) -> None:
        raise MissingDatum(item)

    with pytest.raises(MissingDatum):
        web.call_each([str(number) for number in range(100)], fail)
    assert web.call_each(["a", "b", "c"], str.upper) == ["A", "B", "C"]


def test_nothing_of_a_signed_address_is_shown(hub: Sites, tmp_path: Path):
    hub.odd[CDN] = answering(206, b"12345678", Content_Range="bytes 50-60/100")
    assert "Signature" not in "".join(read(NAME).notes)

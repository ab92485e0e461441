"""Pages of other sites reach nothing, and what is served can do little."""

import json
import re
from urllib.parse import unquote

import pytest
from litestar.testing import TestClient

from tonnage.web import pages
from tonnage.web.app import create_app
from tonnage.web.settings import Settings
from tonnage.web.wire.guard import HEADERS
from web.conftest import HERE, Client

QUESTION = {"name": "k"}


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "127.0.0.1.nip.io",
        "localhost.evil.com",
        "10.0.0.7",
        "[::ffff:10.0.0.7]",
        "",
        "a b",
        "[::1",
        "127.0.0.1@evil.com",
        "evil.com#localhost",
    ],
)
def test_a_server_of_this_machine_is_asked_by_its_own_name_alone(client: Client, host):
    answer = client.get("/v1/server", headers={"Host": host})
    assert answer.status_code == 403
    assert "not called" in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000", "LOCALHOST:1"])
def test_its_names_are_those_of_loopback(client: Client, host):
    assert client.get("/v1/server", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("tonnage.example.org", 200),
        ("TONNAGE.example.org:80", 200),
        ("10.0.0.7:8000", 200),
        ("other.example.org", 403),
        ("metadata.google.internal", 403),
    ],
)
def test_a_server_of_a_network_is_asked_by_address_or_by_the_names_it_is_given(host, code):
    with TestClient(create_app(Settings(host="0.0.0.0", names=("tonnage.example.org",))), base_url=HERE) as made:
        assert made.get("/healthz", headers={"Host": host}).status_code == code


@pytest.mark.parametrize(
    "origin",
    ["http://evil.com", "https://127.0.0.1.evil.com:8000", "http://127.0.0.1:9999", "null", "http://localhost:8000"],
)
def test_a_page_of_another_site_does_not_ask(client: Client, origin):
    answer = client.post("/v1/explain", json=QUESTION, headers={"Origin": origin})
    assert answer.status_code == 403
    assert "another site" in answer.json()["error"]["message"]


def test_its_own_page_asks(client: Client):
    own = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/v1/explain", json=QUESTION, headers=own).status_code == 200


def test_another_site_may_link_to_the_page_and_not_into_the_answers(client: Client):
    crossing = {"Sec-Fetch-Site": "cross-site"}
    assert client.get("/", headers=crossing).status_code == 200
    assert client.get("/v1/models", headers=crossing).status_code == 403
    assert client.post("/v1/explain", json=QUESTION, headers=crossing).status_code == 403


def test_no_site_is_told_that_it_may_ask(client: Client):
    asked = client.options("/v1/train", headers={"Origin": "http://evil.com", "Access-Control-Request-Method": "POST"})
    assert asked.status_code == 403
    assert not [name for name in asked.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "path", ["/", "/v1/server", "/healthz", "/metrics", "/no-such-page", "/v1/train", "/schema/openapi.json"]
)
def test_every_answer_tells_browsers_to_trust_nothing_else(client: Client, path):
    found = client.get(path).headers
    for name, value in HEADERS:
        assert found[name.decode()] == value.decode()
    policy = found["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert "server" not in found


def test_every_file_of_the_page_is_served_as_what_it_is(client: Client):
    assert client.get("/").content == client.get("/index.html").content == pages.files()["index.html"].content
    for name, file in pages.files().items():
        answer = client.get(f"/{name}")
        assert answer.content == file.content
        assert answer.headers["content-type"].startswith(file.kind)
        again = client.get(f"/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304 and not again.content


@pytest.mark.parametrize(
    "path",
    [
        "/../settings.py",
        "/%2e%2e/settings.py",
        "/..%2fsettings.py",
        "/js/../../app.py",
        "//etc/passwd",
        "/%00",
        "/index.html%00.js",
        "/.",
        "/js",
        "/js/",
        "/C:/x",
        "/index.html/",
        "/INDEX.HTML",
        "/..\\settings.py",
    ],
)
def test_no_path_leads_out_of_the_page(client: Client, path):
    answer = client.request("GET", HERE + path)
    assert answer.status_code in (200, 404)
    if answer.status_code == 200:  # a client makes / of /.
        assert answer.content == pages.files()["index.html"].content


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_gets_the_words_of_a_language(client: Client, language):
    found = client.get(f"/locale/{language}.json")
    assert found.status_code == 200
    assert found.json().get("fits") == {"en": None, "zh": "放得下"}[language]
    assert client.get("/locale/xx.json").status_code == client.get("/locale/zh").status_code == 404


@pytest.mark.parametrize(
    ("settings", "hubs", "machine"),
    [
        (Settings(), True, True),
        (Settings(host="::1"), True, True),
        (Settings(host="localhost", offline=True), False, True),
        (Settings(hub=False), False, True),
        (Settings(host="0.0.0.0"), False, False),
        (Settings(host="10.0.0.7", hub=True), True, False),
        (Settings(host="box.lan"), False, False),
    ],
)
def test_whoever_is_not_this_machine_reaches_less(settings, hubs, machine):
    assert settings.reach.hubs == hubs
    assert settings.reach.machine == machine
    assert settings.reach.files is None


def test_local_is_said_to_this_machine_alone():
    with TestClient(create_app(Settings(host="0.0.0.0")), base_url=HERE) as made:
        answer = made.post("/v1/train", json={"model": "gpt2", "on": "local"})
        assert answer.status_code == 400 and "name an accelerator" in answer.json()["error"]["message"]
        assert made.get("/v1/accelerators/local").status_code == 400
        assert made.get("/v1/server").json()["local"] is False


NAMES = (
    "m",
    "m/config.json",
    "./m",
    "config.json",
    ".",
    "./",
    "empty",
    "odd",
    "odd/config.json",
    "two",
    "nothing",
    "./nothing",
    "nothing.toml",
    "nothing.yaml",
    "nothing.jsonl",
    "pool.yaml",
    "node.toml",
    "trace.jsonl",
    "circle.yaml",
    *(
        f"{name}.{ending}"
        for name in ("odd", "folder", "./odd")
        for ending in ("toml", "yaml", "json", "jsonl", "gguf", "safetensors")
    ),
)


@pytest.mark.parametrize("name", NAMES)
def test_no_answer_says_where_on_the_machine_the_folder_is(reading: Client, folder_of_models, name):
    asked = [
        ("train", {"model": name, "on": "h100"}),
        ("serve", {"model": name, "on": "h100"}),
        ("launch", {"verb": "serve", "model": name, "on": "h100"}),
        ("rules", {"model": name}),
        ("compare", {"model": name, "on": "h100"}),
        ("train", {"model": "gpt2", "on": name}),
        ("serve", {"model": "gpt2", "on": "h100", "trace": name}),
        ("plan", {"inventory": name}),
    ]
    for verb, question in asked:
        answer = reading.post(f"/v1/{verb}", json=question)
        assert answer.status_code < 500
        assert str(folder_of_models.parent) not in answer.text, answer.text
        assert str(folder_of_models) not in unquote(answer.headers.get("Tonnage-Command", ""))
    answer = reading.post("/v1/serve", json={"model": "m", "on": "h100"}).json()
    assert answer["question"]["model"]["why"] == "m" and "vllm serve m" in answer["serving"]["launch"]


@pytest.mark.parametrize(
    ("verb", "question", "said"),
    [
        (
            "plan",
            {"inventory": "/x/pool.yaml"},
            (
                "files of the machine that answers are not read: give what the inventory holds, as an object. "
                "Got '/x/pool.yaml'."
            ),
        ),
        (
            "train",
            {"model": "gpt2", "on": "../x.toml"},
            "give a machine's name, as in 8xH100-SXM-80GB. Got '../x.toml'.",
        ),
        ("train", {"model": "gpt2", "on": "/x"}, "give a machine's name"),
        (
            "serve",
            {"model": "gpt2", "on": "h100", "trace": "/x.csv"},
            "a trace is one, so leave it out, or ask where a folder of models is read (--models). Got '/x.csv'.",
        ),
        ("train", {"model": "/x", "on": "h100"}, "give a name, or for model what its config.json holds. Got '/x'."),
    ],
)
def test_where_no_file_is_read_the_error_says_what_to_give_instead(client: Client, verb, question, said):
    answer = client.post(f"/v1/{verb}", json=question)
    assert answer.status_code == 400 and said in answer.json()["error"]["message"]


def test_a_field_with_a_null_byte_is_named(reading: Client):
    said = reading.post("/v1/serve", json={"model": "gpt2", "on": "h100", "trace": "a\0b"}).json()["error"]["message"]
    assert said == "trace: a path holds no null byte. Got 'a\\x00b'."


def test_a_folder_of_models_is_read_and_nothing_beside_it(tmp_path):
    (tmp_path / "mine").mkdir()
    config = (
        '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": '
        '2, "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 100}'
    )
    (tmp_path / "mine" / "config.json").write_text(config)
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "mine" / "out").symlink_to(tmp_path)
    with TestClient(create_app(Settings(hub=False, models=str(tmp_path / "mine"))), base_url=HERE) as made:
        assert made.post("/v1/train", json={"model": "config.json", "on": "h100"}).status_code == 200
        for name in (
            "../config.json",
            str(tmp_path / "config.json"),
            "out/config.json",
            "/etc/passwd",
            "~/config.json",
        ):
            answer = made.post("/v1/train", json={"model": name, "on": "h100"})
            assert answer.status_code == 400, name


@pytest.mark.parametrize("linked", ["config.json", "model.safetensors.index.json", "model.safetensors", "model.gguf"])
def test_a_link_inside_a_model_leads_to_no_file_outside_the_folder_of_models(tmp_path, linked):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
    }
    model = tmp_path / "models" / "team" / "m"
    model.mkdir(parents=True)
    (tmp_path / "secret").write_text(
        json.dumps(config | {"peft_type": "LORA", "metadata": {}, "weight_map": {"a": "b"}})
    )
    if linked != "config.json":
        (model / "config.json").write_text(json.dumps(config))
    (model / linked).symlink_to(tmp_path / "secret")
    with TestClient(create_app(Settings(hub=False, models=str(tmp_path / "models"))), base_url=HERE) as made:
        answer = made.post("/v1/train", json={"model": "team/m", "on": "h100"})
        assert answer.status_code == 400
        assert "files outside the folder of models are not read" in answer.json()["error"]["message"]
        assert str(tmp_path) not in answer.text


def test_a_link_to_another_place_inside_the_folder_of_models_is_followed(tmp_path):
    """As in the cache of the Hugging Face Hub, whose snapshots are links to blobs."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
    }
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "a1").write_text(json.dumps(config))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").symlink_to("../blobs/a1")
    with TestClient(create_app(Settings(hub=False, models=str(tmp_path))), base_url=HERE) as made:
        assert made.post("/v1/train", json={"model": "m", "on": "h100"}).status_code == 200


def test_the_counts_say_their_form_once(client: Client):
    """As Prometheus has it."""
    assert client.get("/metrics").headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def paths_of(client: Client, method: str) -> list[str]:
    """A path of each form that takes a method."""
    forms = {route.path for route in client.app.routes if method in route.methods} - {"/{path:path}"}
    return [re.sub(r"{\w+(:\w+)?}", "none", form) for form in forms]


def test_every_path_that_is_read_has_its_headers_too(client: Client):
    """RFC 9110, 9.1: GET and HEAD must be supported."""
    asked = [
        *paths_of(client, "GET"),
        "/v1/models/llama-3.1-8b",
        "/v1/accelerators/h100",
        "/locale/zh.json",
        "/v1/options/train",
    ]
    counts = 0
    for path in asked:
        whole, head = client.get(path), client.head(path)
        if path.endswith("/events"):
            assert (head.status_code, head.headers["Allow"]) == (405, "GET, OPTIONS")
            continue
        assert head.content == b"" and head.status_code == whole.status_code
        if path != "/metrics":  # its counts go on
            assert head.headers == whole.headers
        counts += whole.status_code == 200
    assert counts > 12
    assert 'method="HEAD"' in client.get("/metrics").text


def test_what_is_only_asked_by_a_body_has_no_head(client: Client):
    answer = client.head("/v1/train")
    assert (answer.status_code, answer.headers["Allow"], answer.content) == (405, "OPTIONS, POST", b"")


@pytest.mark.parametrize("method", ["OPTIONS", "DELETE", "POST", "PUT"])
@pytest.mark.parametrize("path", ["/nope", "/a/b/c", "/v1/nope", "/js/nope.js"])
def test_where_nothing_is_no_method_is_taken(client: Client, method, path):
    answer = client.request(method, path)
    assert answer.status_code == 404 and f"nothing is at '{path}'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/", "GET, HEAD, OPTIONS"),
        ("/js/api.js", "GET, HEAD, OPTIONS"),
        ("/v1/train", "OPTIONS, POST"),
        ("/v1/saved", "GET, HEAD, OPTIONS, POST"),
        ("/v1/saved/x", "DELETE, GET, HEAD, OPTIONS"),
        ("/v1/models/a/b", "GET, HEAD, OPTIONS"),
        ("/v1/jobs/x/events", "GET, OPTIONS"),
    ],
)
def test_a_path_says_which_methods_it_takes(client: Client, path, methods):
    answer = client.options(path)
    assert (answer.status_code, answer.headers["Allow"]) == (204, methods)
    assert client.request("PATCH", path).headers["Allow"] == methods

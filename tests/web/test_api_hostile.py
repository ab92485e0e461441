"""What is no question gets a clean refusal, in the form of every error, and never the server's own failure."""

import json
import re

import pytest
from litestar.testing import TestClient

from every_row import every_row
from schema_forms import form
from tonnage.catalogue.local import local_cluster
from tonnage.kernel.errors import MissingDatum
from tonnage.web.app import create_app
from tonnage.web.settings import Settings
from web.conftest import HERE, Client

ERROR = form("ErrorDocument")
JSON = {"Content-Type": "application/json"}
BODIES = {
    "nothing": b"",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "a text": b'"train"',
    "half of an object": b'{"model":',
    "two objects": b"{}{}",
    "bad UTF-8": b'{"model": "\xff\xfe"}',
    "UTF-16": '{"model": "gpt2"}'.encode("utf-16"),
    "NaN": b'{"on": NaN}',
    "Infinity": b'{"top": -Infinity}',
    "a name twice": b'{"model": "gpt2", "model": "llama-3.1-8b"}',
    "a name twice, inside": b'{"model": {"a": 1, "a": 2}}',
    "half of a surrogate pair": b'{"model": "\\ud800"}',
    "half of a pair as a name": b'{"\\udfff": 1}',
    "deep lists": b'{"model": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"model": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    "rather deep": b'{"model": ' + b"[" * 80 + b"]" * 80 + b"}",
    "comments": b'{"model": "gpt2" /* mine */}',
    "single quotes": b"{'model': 'gpt2'}",
}
QUESTIONS = {
    "a number of 4,000 digits": {"on": "8xh100", "model": "gpt2", "sequence_length": int("9" * 4000)},
    "1e400": {"on": "8xh100", "model": "gpt2", "tokens": "1e400"},
    "a null byte": {"model": "a\0b", "on": "8xh100"},
    "no text as a name": {"": 1},
    "a dash": {"model": "--help"},
    "a flag": {"model": "gpt2", "on": "8xh100", "--plot": "x.html"},
    "a file to write": {"model": "gpt2", "on": "8xh100", "plot": "/tmp/x.html"},
    "another file to write": {"model": "gpt2", "on": "8xh100", "parquet": "/tmp/x.parquet"},
    "help": {"help": True},
    "json": {"json": False},
    "an option of nobody": {"model": "gpt2", "on": "8xh100", "no_such_option": 1},
    "an object": {"model": "gpt2", "on": {"a": 1}},
    "an empty list": {"model": "gpt2", "on": []},
    "lists in lists": {"model": "gpt2", "on": [["8xh100", []]]},
    "a model that is a list": {"model": [1, 2], "on": "8xh100"},
    "an empty object": {"model": {}, "on": "8xh100"},
    "a config of nothing": {"model": {"hidden_size": "wide"}, "on": "8xh100"},
    "a config of huge layers": {
        "model": {"architectures": ["LlamaForCausalLM"], "hidden_size": 10**30, "num_hidden_layers": 10**30},
        "on": "8xh100",
    },
    "a long name": {"model": "a" * 100_000, "on": "8xh100"},
    "a name too long for a file": {"model": "a" * 256, "on": "8xh100"},
    "a long machine": {"model": "gpt2", "on": "h" * 100_000},
    "10^30 machines": {"model": "gpt2", "on": f"{10**30}xh100"},
    "a file": {"model": "/etc/passwd", "on": "8xh100"},
    "a folder above": {"model": "../../../etc", "on": "8xh100"},
    "the home": {"model": "~/.ssh/config.json", "on": "8xh100"},
    "a machine's file": {"model": "gpt2", "on": "/etc/hosts.toml"},
    "a file URL": {"model": "file:///etc/passwd", "on": "8xh100"},
    "a control character": {"model": "gpt2\r\nX: 1", "on": "8xh100"},
    "a trace": {"model": "gpt2", "on": "8xh100", "trace": "/etc/passwd"},
    "a teacher": {"model": "gpt2", "on": "8xh100", "teacher": "/etc/passwd", "objective": "distillation"},
    "a trace with a null byte": {"model": "gpt2", "on": "8xh100", "trace": "a\0b"},
    "a draft": {"model": "gpt2", "on": "8xh100", "draft_model": "../x/config.json", "draft_tokens": 3},
    "a pool's file": {"inventory": "/etc/passwd"},
    "a switch that is a number": {"model": "gpt2", "on": "8xh100", "liger": 7},
    "right to left": {"model": "\u202egpt2", "on": "8xh100"},
}


NUMBERS = {
    "of 5,000 digits": (b'{"top": ' + b"9" * 5000 + b"}", "top"),
    "1e999": (b'{"model": "gpt2", "sequence_length": 1e999}', "sequence_length"),
    "inside": (b'{"model": {"layers": [1, 2, -1e999]}}', "model.layers[2]"),
}


@pytest.mark.parametrize(("body", "field"), NUMBERS.values(), ids=NUMBERS.keys())
def test_a_number_of_a_size_that_nothing_has_is_refused_by_the_name_of_its_field(client: Client, body, field):
    message = refused(client.post("/v1/train", content=body, headers=JSON), 400)
    assert message.startswith(f"{field} is a number out of range. Got '") and len(message) < 200


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("tensor-parallel-size", "tensor_parallel_size"),
        ("Sequence_Length", "sequence_length"),
        ("microBatchSize", "micro_batch_size"),
        (" on ", "on"),
        ("seq-len", "sequence_length"),
    ],
)
def test_a_field_in_another_spelling_is_told_the_right_one(client: Client, written, field):
    message = refused(client.post("/v1/train", json={"model": "gpt2", "on": "8xh100", written: 2}), 400)
    assert message.endswith(f"Did you mean {field!r}?")


@pytest.mark.parametrize("verb", ["train", "serve", "plan", "max", "compare", "rules", "explain", "launch"])
def test_every_verb_tells_a_field_in_another_spelling_the_right_one(client: Client, verb):
    said, field = {"rules": ("Names", "names"), "explain": ("Name", "name")}.get(verb, ("Model", "model"))
    more = {"max": {"what": "context"}, "launch": {"verb": "train"}}.get(verb, {})
    assert refused(client.post(f"/v1/{verb}", json={said: "gpt2"} | more), 400).endswith(f"Did you mean {field!r}?")


@pytest.mark.parametrize(
    ("verb", "question"),
    [
        ("rules", {"like": "x" * 5000}),
        ("rules", {"utilization": "x" * 5000}),
        ("rules", {"names": "x" * 5000}),
        ("serve", {"model": "gpt2", "on": "h100", "trace": "x" * 5000}),
    ],
)
def test_an_error_repeats_no_long_value_whole(tmp_path, verb, question):
    with TestClient(create_app(Settings(hub=False, models=str(tmp_path))), base_url=HERE) as folder:
        assert len(refused(folder.post(f"/v1/{verb}", json=question), 400)) < 400


def test_rules_are_named_in_a_list_or_with_commas_between_them(client: Client):
    listed = client.post("/v1/rules", json={"names": ["B2", "E1"]})
    assert listed.status_code == 200 and [rule["name"] for rule in listed.json()["rules"]] == ["B2", "E1"]
    for said in ("B2,E1", "b2, e1,", ["B2,E1"]):
        assert client.post("/v1/rules", json={"names": said}).json() == listed.json()
    assert "no rule is called 'B99'" in refused(client.post("/v1/rules", json={"names": "B2,B99"}), 400)


def test_a_machine_that_shows_no_accelerator_is_no_matter_of_options(client: Client, monkeypatch):
    monkeypatch.setattr("tonnage.catalogue.local.detect", list)
    with pytest.raises(MissingDatum) as error:
        local_cluster()
    assert "for example rtx-4090" in str(error.value) and "--" not in str(error.value)


def refused(answer, *codes: int) -> str:
    """The message of a refusal, whose form is that of every error."""
    assert answer.status_code in codes, (answer.status_code, answer.text[:300])
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json()
    ERROR.validate(document)
    assert {"schema", "error", "type", "title", "status", "detail"} <= set(document)
    assert document["error"]["kind"] != "Internal" and document["status"] == answer.status_code
    assert len(document["error"]["message"]) < 2000
    return document["error"]["message"]


@every_row("body", BODIES.values(), ids=BODIES)
@every_row("verb", ["train", "rules", "launch"])
def test_a_body_that_is_no_object_is_refused(client: Client, verb, body):
    assert "one JSON object" in refused(client.post(f"/v1/{verb}", content=body, headers=JSON), 400)


@every_row("question", QUESTIONS.values(), ids=QUESTIONS)
@every_row("verb", ["train", "serve", "plan", "max", "compare", "rules", "explain", "launch"])
def test_a_question_that_cannot_be_is_refused(client: Client, verb, question):
    asked = question | ({"verb": "train"} if verb == "launch" else {"what": "context"} if verb == "max" else {})
    if verb == "plan" and "inventory" not in question:
        asked |= {"train": True}
    refused(client.post(f"/v1/{verb}", content=json.dumps(asked).encode(), headers=JSON), 400, 422)


@every_row(
    "name",
    [
        "a\0b",
        "a\0b.toml",
        "a\0b.jsonl",
        "x" * 300,
        f"{'x' * 300}.toml",
        f"{'x' * 300}.yaml",
        "~nobody/x.yaml",
        "circle.yaml",
    ],
)
@every_row(
    "asked",
    [
        ("train", "model"),
        ("train", "on"),
        ("compare", "model"),
        ("compare", "on"),
        ("serve", "trace"),
        ("serve", "draft_model"),
        ("plan", "inventory"),
        ("rules", "model"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_where_files_are_read(reading: Client, asked, name):
    verb, field = asked
    rest = {} if verb in ("rules",) or field == "inventory" else {"model": "gpt2", "on": "8xh100"}
    refused(reading.post(f"/v1/{verb}", json=rest | {field: name}), 400, 422)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "",
        "application/json; charset=utf-16",
        "application/jsonp",
    ],
)
def test_what_is_not_sent_as_json_is_refused_as_other_sites_send_it(client: Client, kind):
    assert "application/json" in refused(client.post("/v1/train", content=b"{}", headers={"Content-Type": kind}), 415)


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
def test_json_is_read_however_it_is_called(client: Client, kind):
    answer = client.post("/v1/explain", content=b'{"name": "k"}', headers={"Content-Type": kind})
    assert answer.status_code == 200


def test_a_body_of_a_megabyte_is_read_and_a_larger_one_is_not(client: Client):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
        "note": "",
    }
    question = {"model": config, "on": "h100"}
    config["note"] = "x" * (1_000_000 - len(json.dumps(question)))
    body = json.dumps(question).encode()
    assert len(body) == 1_000_000
    assert client.post("/v1/train", content=body, headers=JSON).status_code == 200
    assert "1,000,000 bytes" in refused(client.post("/v1/train", content=body + b" ", headers=JSON), 413)


def test_a_body_that_hides_its_length_is_measured_while_it_comes(client: Client):
    parts = (b" " * 100_000 for _ in range(11))
    refused(client.post("/v1/train", content=parts, headers=JSON), 413)


def test_what_does_not_read_as_text_is_not_sent_back_as_it_came(client: Client):
    message = refused(client.post("/v1/train", json={"model": "<script>alert(1)</script>" * 100, "on": "8xh100"}), 400)
    assert len(message) < 1500


@every_row("name", ["../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "%00", "a" * 5000, "refresh", "%ff%fe", "%2e%2e"])
@every_row("of", ["models", "accelerators", "prices"])
def test_a_name_in_a_path_is_a_name_and_no_file(client: Client, of, name):
    refused(client.get(f"/v1/{of}/{name}"), 400, 404, 422)


@pytest.mark.parametrize(
    "query",
    [
        "api=1",
        "kind=spot&kind=spot",
        "json=1",
        "plot=x",
        "kind=%ff",
        "as_of=yesterday",
        "term=soon",
        "exchange_rate=CNY",
    ],
)
def test_a_query_is_of_the_parameters_that_there_are(client: Client, query):
    refused(client.get(f"/v1/prices?{query}"), 400)


def test_no_route_takes_a_parameter_that_it_does_not_have(client: Client):
    """Save the page, whose address may have any."""
    asked = 0
    for route in client.app.routes:
        for method in route.methods - {"OPTIONS"}:
            if route.path not in ("/", "/{path:path}"):
                path = re.sub(r"{\w+(:\w+)?}", "none", route.path)
                message = refused(client.request(method, path, params={"nonesuch": "1"}), 400)
                assert message.startswith("'nonesuch' is no parameter here")
                asked += 1
    assert asked > 25
    assert client.get("/?nonesuch=1").status_code == 200


@pytest.mark.parametrize(
    ("method", "asked", "message"),
    [
        ("DELETE", "/v1/saved/x?histroy=true", "'histroy' is no parameter here. Did you mean 'history'?"),
        ("GET", "/v1/saved/x/history?befor=2", "'befor' is no parameter here. Did you mean 'before'?"),
        ("GET", "/v1/saved?foo=1", "'foo' is no parameter here: after, limit."),
        ("POST", "/v1/train?x=1", "'x' is no parameter here: detail."),
        ("GET", "/v1/saved?limit=1&limit=2", "limit is given twice."),
    ],
)
def test_a_parameter_that_is_not_there_names_what_is_near(client: Client, method, asked, message):
    assert refused(client.request(method, asked), 400) == message


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/train/", "/v1/", "/schema/x", "/v1/train"])
def test_a_path_that_is_not_there_is_said(client: Client, path):
    refused(client.get(path), 404, 405)


def test_a_path_or_method_that_is_not_there_names_what_is_near(client: Client):
    assert refused(client.post("/v1/trian", json={}), 404) == "nothing is at '/v1/trian'. Did you mean /v1/train?"
    assert "/schema/openapi.json" in refused(client.get("/qqqqqqqq"), 404)
    assert refused(client.get("/v1/train"), 405) == "'/v1/train' takes POST. Got GET."
    assert "DELETE" in refused(client.post("/v1/jobs/x", json={}), 405)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE"])
def test_a_method_that_is_not_there_is_said(client: Client, method):
    refused(client.request(method, "/v1/train"), 405)

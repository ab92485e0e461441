"""Saved plans over HTTP, in this process and in one that is killed."""

import asyncio
import json
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest
from litestar.testing import TestClient
from msgspec.structs import replace

from tonnage.verbs.ask import ask
from tonnage.web.app import create_app
from tonnage.web.process.pool import Pool
from tonnage.web.settings import Settings
from tonnage.web.store.digest import unanswered
from tonnage.web.store.engine import Base
from tonnage.web.store.opened import Opened, default_url
from tonnage.web.store.writer import Save, Writer
from web.servers import workers

QUESTION = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"}
HERE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def saving(tmp_path_factory):
    settings = Settings(hub=False, store=f"sqlite:///{tmp_path_factory.mktemp('store')}/plans.db")
    with TestClient(create_app(settings), base_url=HERE) as made:
        yield made


def save(client, name, headers=None, **more):
    return client.post(
        "/v1/saved", json={"name": name, "verb": "train", "question": QUESTION} | more, headers=headers or {}
    )


def test_a_plan_is_saved_with_what_its_answer_is(saving):
    made = save(saving, "first")
    assert (made.status_code, made.headers["ETag"], made.headers["Location"]) == (201, '"1"', "/v1/saved/first")
    assert made.json()["plan"]["status"] is None  # the figures follow
    plan = figures(saving, "first")
    document = ask("train", QUESTION).document
    assert plan["question"] == QUESTION
    assert (plan["needed_bytes"], plan["usable_bytes"]) == (
        document.verdict.needed_bytes,
        document.verdict.usable_bytes,
    )
    assert (plan["usd"], plan["usd_of"]) == (document.cost.value, "cost of a step")
    assert (plan["status"], plan["answer"]) == (0, "fits")
    assert plan["command"] == "tonnage train llama-3.1-8b --on 8xH100-SXM-80GB"
    found = saving.get("/v1/saved/first")
    assert found.json()["plan"] == plan and found.headers["ETag"] == '"1"'


def test_the_history_shows_how_the_answer_changed(saving):
    save(saving, "grows")
    again = save(saving, "grows", question=QUESTION | {"micro_batch_size": 4, "as_is": True}, version=1)
    assert (again.status_code, again.headers["ETag"]) == (201, '"2"')
    figures(saving, "grows")
    plans = saving.get("/v1/saved/grows/history").json()["plans"]
    assert [plan["version"] for plan in plans] == [2, 1]
    assert plans[0]["needed_bytes"] > plans[1]["needed_bytes"]
    assert [plan["version"] for plan in saving.get("/v1/saved/grows/history?before=2&limit=1").json()["plans"]] == [1]


def test_who_has_not_seen_the_latest_version_is_told_which_it_is(saving):
    save(saving, "shared")
    without, stale = save(saving, "shared"), save(saving, "shared", headers={"If-Match": '"7"'})
    for refused in (without, stale):
        assert (refused.status_code, refused.headers["ETag"], refused.json()["error"]["kind"]) == (
            409,
            '"1"',
            "Conflict",
        )
    assert save(saving, "shared", headers={"If-Match": '"1"'}).headers["ETag"] == '"2"'
    assert saving.delete("/v1/saved/shared", headers={"If-Match": '"1"'}).status_code == 409


def test_who_deletes_another_version_than_there_is_is_told_to_delete_again(saving):
    save(saving, "changed"), save(saving, "changed", version=1)
    message = saving.delete("/v1/saved/changed", headers={"If-Match": '"1"'}).json()["error"]["message"]
    assert message == "'changed' is at version 2 now, and version 1 was given: read it, and delete again."


def test_if_match_of_a_star_is_any_version_that_there_is(saving):
    """RFC 9110, 13.1.1."""
    star = {"If-Match": "*"}
    nowhere = save(saving, "starred", headers=star)
    assert nowhere.status_code == 409 and "is not saved" in nowhere.json()["error"]["message"]
    assert saving.get("/v1/saved/starred").status_code == 404
    save(saving, "starred")
    assert save(saving, "starred", headers=star).headers["ETag"] == '"2"'
    assert save(saving, "starred", headers=star, version=1).status_code == 409, "the version that is said still counts"
    assert saving.delete("/v1/saved/starred", headers=star).status_code == 200
    assert saving.delete("/v1/saved/starred", headers=star).status_code == 404


@pytest.mark.parametrize(("method", "of"), [("GET", ""), ("GET", "/history"), ("DELETE", "")])
def test_a_name_that_is_not_saved_is_answered_with_the_nearest_that_is(saving, method, of):
    save(saving, "autumn run")
    answer = saving.request(method, f"/v1/saved/autum%20run{of}")
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == "no plan is saved as 'autum run'. Did you mean 'autumn run'?"
    assert "Did you mean" not in saving.get("/v1/saved/zzzzzz").json()["error"]["message"]


def test_a_deleted_plan_keeps_its_history_unless_that_is_to_go(saving):
    name = "gone 语言"
    path = f"/v1/saved/{quote(name)}"
    assert save(saving, name).headers["Location"] == path
    assert saving.delete(path).json() == {"schema": "tonnage/2", "deleted": name, "history": False}
    assert saving.get(path).status_code == saving.delete(path).status_code == 404
    assert [plan["deleted"] for plan in saving.get(path + "/history").json()["plans"]] == [True]
    assert saving.delete(path + "?history=true").status_code == 200
    assert saving.get(path + "/history").status_code == 404


def test_plans_are_listed_by_name_and_page(saving):
    for name in ("listed b", "listed a", "listed c"):
        save(saving, name)
    page = saving.get("/v1/saved", params={"after": "listed", "limit": 2}).json()
    assert [plan["name"] for plan in page["plans"]] == ["listed a", "listed b"] and page["more"]
    page = saving.get("/v1/saved", params={"after": "listed b", "limit": 1}).json()
    assert [plan["name"] for plan in page["plans"]] == ["listed c"]
    assert not saving.get("/v1/saved", params={"after": "\U0010ffff"}).json()["more"]


def test_a_list_has_no_questions_and_each_plan_is_read_by_itself(tmp_path):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
        "unused": "x" * 900_000,
    }
    question = QUESTION | {"model": config}
    with TestClient(
        create_app(Settings(store=f"sqlite:///{tmp_path}/plans.db", store_limit=4_000_000)), base_url=HERE
    ) as client:
        for name in "abcd":
            assert save(client, name, question=question).status_code == 201
        refused = save(client, "e", question=question)
        assert refused.status_code == 400 and "--store-limit" in refused.json()["error"]["message"]
        for path in ("/v1/saved", "/v1/saved/a/history"):
            assert len(client.get(path).content) < 3000
        assert client.get("/v1/saved/a").json()["plan"]["question"] == question
        figures(client, "a")
        listed = client.get("/v1/saved").json()["plans"][0]
        assert (listed["model"], listed["machine"], listed["answer"]) == ("config.json", QUESTION["on"], "fits")
        assert 900_000 < listed["bytes"] < 901_000
        client.delete("/v1/saved/a?history=true")
        assert save(client, "e", question=question).status_code == 201


def test_an_older_version_is_read_whole(saving):
    save(saving, "aged")
    save(saving, "aged", question=QUESTION | {"micro_batch_size": 4, "as_is": True}, version=1)
    assert saving.get("/v1/saved/aged?version=1").json()["plan"]["question"] == QUESTION
    assert saving.get("/v1/saved/aged?version=2").json() == saving.get("/v1/saved/aged").json()
    refused = saving.get("/v1/saved/aged?version=3")
    assert refused.status_code == 404 and "'aged' has no version 3" in refused.json()["error"]["message"]


# ---- while all processes that answer are busy ----


@pytest.fixture
def busy(tmp_path):
    """A server at which every place for a question is taken until `release` is called."""
    settings = Settings(hub=False, store=f"sqlite:///{tmp_path}/plans.db")
    with TestClient(create_app(settings), base_url=HERE) as made:
        running = made.app.state.running
        places, running.limits = running.limits, replace(running.limits, at_once=0)

        def release():
            running.limits = places

        yield made, release
        release()


def figures(client, name):
    """The plan, when its figures are there."""
    for _ in range(2400):
        plan = client.get(f"/v1/saved/{name}").json()["plan"]
        if plan["status"] is not None:
            return plan
        Event().wait(0.05)
    raise AssertionError("no figures came")


def test_a_plan_is_saved_while_the_server_is_busy_and_its_figures_follow(busy):
    client, release = busy
    assert client.post("/v1/train", json=QUESTION).status_code == 503
    made = save(client, "now")
    assert made.status_code == 201 and made.headers["ETag"] == '"1"'
    plan = made.json()["plan"]
    assert (plan["status"], plan["answer"], plan["needed_bytes"]) == (None, None, None)
    assert (plan["question"], plan["command"]) == (QUESTION, "tonnage train llama-3.1-8b --on 8xH100-SXM-80GB")
    assert client.get("/v1/saved").json()["plans"][0]["status"] is None
    release()
    plan = figures(client, "now")
    assert (plan["version"], plan["answer"], plan["question"]) == (1, "fits", QUESTION)
    assert plan["needed_bytes"] == ask("train", QUESTION).document.verdict.needed_bytes


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A server, the verbs that its processes are asked, and the transactions that write its plans."""
    asked, written = [], []
    answered, writing = Pool.answered, Base.writing
    monkeypatch.setattr(Pool, "answered", lambda *given: asked.append(given[1]) or answered(*given))
    monkeypatch.setattr(Base, "writing", lambda base: written.append(base) or writing(base))
    settings = Settings(hub=False, store=f"sqlite:///{tmp_path}/plans.db")
    with TestClient(create_app(settings), base_url=HERE) as client:
        client.get("/healthz")
        client.app.state.figures.compute = lambda name, version: None  # they follow, by a process that answers
        asked.clear()
        yield client, asked, written


@pytest.mark.parametrize("verb", ["train", "serve", "plan", "max", "compare"])
def test_saving_asks_no_process_that_answers(counted, verb):
    client, asked, _ = counted
    question = QUESTION | {"plan": {"train": True}, "max": {"what": "context"}}.get(verb, {})
    assert save(client, "a plan", verb=verb, question=question).json()["plan"]["status"] is None
    assert client.get("/v1/saved/a%20plan").json()["plan"]["question"] == question
    assert asked == []


@pytest.mark.parametrize("detail", ["", "?detail=summary"])
def test_a_question_that_was_just_answered_is_saved_with_its_figures(counted, detail):
    client, asked, _ = counted
    body = json.dumps(QUESTION, separators=(",", ":"))
    assert client.post(f"/v1/train{detail}", content=body, headers={"Content-Type": "application/json"}).is_success
    assert asked == ["train"]
    plan = save(client, "known").json()["plan"]
    document = ask("train", QUESTION).document
    assert (plan["status"], plan["needed_bytes"]) == (0, document.verdict.needed_bytes)
    assert (plan["usd"], plan["usd_of"]) == (document.cost.value, "cost of a step")
    assert asked == ["train"]


def test_many_saves_at_once_are_written_by_few_transactions_and_each_is_told_its_own(counted):
    client, _, written = counted
    save(client, "first")
    digest = unanswered("tonnage train")
    names = [*(f"plan {number}" for number in range(60)), "plan 7", "first", "/"]

    async def all_at_once():
        writer = Writer(client.app.state.store)
        saves = [Save(name, "train", json.dumps(QUESTION), digest, None) for name in names]
        outcomes = await asyncio.gather(*map(writer.save, saves), return_exceptions=True)
        await writer.close()
        return outcomes

    written.clear()
    outcomes = asyncio.run(all_at_once())
    assert [outcome.version for outcome in outcomes[:60]] == [1] * 60
    assert [type(outcome).__name__ for outcome in outcomes[60:]] == ["ConflictError", "ConflictError", "InvalidInput"]
    assert 1 <= len(written) <= 3
    assert len(client.get("/v1/saved").json()["plans"]) == 61


@pytest.mark.parametrize("verb", ["plan", "max", "compare", "serve"])
def test_every_verb_is_saved_while_the_server_is_busy(busy, verb):
    client, _ = busy
    question = QUESTION | {"plan": {"train": True}, "max": {"what": "context"}}.get(verb, {})
    assert save(client, verb, verb=verb, question=question).status_code == 201


def test_what_is_wrong_by_the_question_alone_is_refused_while_the_server_is_busy(busy):
    client, _ = busy
    for question, words in (
        ({"model": "lama-3.1-8b"}, "llama-3.1-8b"),
        ({"sequence_length": "x"}, "sequence_length"),
        ({"nonsense": 1}, "nonsense"),
    ):
        refused = save(client, "wrong", question=QUESTION | question)
        assert refused.status_code == 400 and words in refused.json()["error"]["message"]
    assert client.get("/v1/saved").json()["plans"] == []


def test_a_question_that_turns_out_to_have_no_answer_says_why_in_its_place(busy):
    client, release = busy
    assert save(client, "odd", question=QUESTION | {"tensor_parallel_size": 7}).status_code == 201
    release()
    plan = figures(client, "odd")
    assert plan["status"] == 64 and "7" in plan["answer"]


def test_figures_that_a_server_did_not_come_to_are_computed_by_the_next_that_is_asked(tmp_path):
    url = f"sqlite:///{tmp_path}/plans.db"
    opened = Opened(url, own=True)
    opened.for_saving().save("left", "train", json.dumps(QUESTION), unanswered("tonnage train"))
    opened.close()
    with TestClient(create_app(Settings(hub=False, store=url)), base_url=HERE) as client:
        assert client.get("/v1/saved").json()["plans"][0]["status"] is None
        assert figures(client, "left")["answer"] == "fits"


@pytest.mark.parametrize(
    ("verb", "question", "answer"),
    [
        ("serve", {"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB"}, "fits"),
        ("train", {"model": "llama-3.1-405b", "on": "8xH100-SXM-80GB"}, "does not fit"),
        ("plan", {"serve": True, "model": "llama-3.1-8b", "on": "H100-SXM-80GB"}, "H100-SXM-80GB"),
        ("plan", {"train": True, "model": "llama-3.1-405b", "on": "8xH100-SXM-80GB"}, "does not fit"),
        ("max", {"what": "context", "model": "llama-3.1-8b", "on": "1xH100-SXM-80GB"}, "131,072 tokens"),
        ("compare", {"model": "llama-3.1-8b", "on": "H100-SXM-80GB,A100-SXM-80GB", "context": "8k,32k"}, "4 of 4 fit"),
    ],
)
def test_every_verb_has_its_few_words(saving, verb, question, answer):
    made = saving.post("/v1/saved", json={"name": f"{verb} {answer}", "verb": verb, "question": question})
    assert made.status_code == 201
    plan = figures(saving, f"{verb} {answer}")
    assert plan["answer"] == answer
    has_bytes = verb != "compare" and not (verb == "plan" and answer == "does not fit")
    assert (plan["needed_bytes"] is not None) == has_bytes


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "x", "verb": "train"}, "give them"),
        ({"name": "x", "verb": "rain", "question": {}}, "Did you mean 'train'"),
        ({"name": "a/b", "verb": "train", "question": QUESTION}, "no /"),
        ({"name": "x", "verb": "train", "question": {"model": "lama-3.1-8b", "on": "8xh100"}}, "llama-3.1-8b"),
        ({"name": "x", "job": "none"}, "there is no such job"),
        ({"name": "x", "job": "none", "verb": "plan"}, "give job, or"),
        ({"name": "x", "verb": "train", "question": QUESTION, "more": 1}, "more"),
        ({"verb": "train", "question": QUESTION}, "name"),
        (
            {"name": "x", "verb": "train", "question": QUESTION, "version": "3"},
            "version must be a whole number from 0, which is of a new name, to 2,147,483,647. Got '3'.",
        ),
        ({"name": "x", "verb": "train", "question": QUESTION, "version": -3}, "Got -3."),
        ({"name": "x", "verb": "train", "question": QUESTION, "version": True}, "Got True."),
        ({"name": 7, "verb": "train", "question": QUESTION}, "name must be a text. Got 7."),
        ({"name": "x", "verb": "train", "question": "gpt2"}, "question must be an object"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_leaves_nothing(saving, body, words):
    refused = saving.post("/v1/saved", json=body)
    assert refused.status_code == 400
    assert words in refused.json()["error"]["message"]
    assert saving.get("/v1/saved/x").status_code == 404


@pytest.mark.parametrize("path", ["/v1/saved?limit=0", "/v1/saved?limit=x", "/v1/saved/x/history?before=-1"])
def test_a_parameter_that_is_none_is_refused(saving, path):
    assert saving.get(path).status_code == 400


def test_nothing_is_kept_by_a_server_that_nobody_saves_at(client):
    path = Opened(None, own=True).url.removeprefix("sqlite:///")
    assert default_url().endswith("/tonnage/plans.db")
    assert client.get("/v1/saved").json()["plans"] == []
    assert client.get("/v1/saved/x").status_code == client.delete("/v1/saved/x").status_code == 404
    assert not Path(path).exists()


@pytest.mark.parametrize(
    "settings", [Settings(store="none"), Settings(host="0.0.0.0", hub=False)], ids=["none", "strangers"]
)
def test_a_server_saves_nothing_where_its_owner_wants_none_or_strangers_ask(settings):
    with TestClient(create_app(settings), base_url=HERE) as client:
        assert "--store" in save(client, "x").json()["error"]["message"]
        assert client.get("/v1/saved").json()["plans"] == []


def test_a_data_base_that_does_not_answer_is_503_and_the_rest_goes_on(tmp_path):
    path = tmp_path / "plans.db"
    path.write_bytes(b"no data base" * 100)
    with TestClient(create_app(Settings(store=f"sqlite:///{path}")), base_url=HERE) as client:
        refused = client.get("/v1/saved")
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "StoreError")
        assert str(path) not in refused.text
        assert client.get("/healthz").status_code == 200
        assert 'tonnage_saved_total{action="failure"} 1' in client.get("/metrics").text


def test_a_job_is_saved_with_its_answer_and_counted(tmp_path):
    question = {"model": "llama-3.1-8b", "on": "H100-SXM-80GB", "context": "8k,32k"}
    with workers(2, tmp_path, store=f"sqlite:///{tmp_path}/plans.db") as (first, second):
        job = first.ask("POST", "/v1/jobs", {"verb": "compare", "question": question})[1]["id"]
        assert [*first.events(job)][-1][1] == "result"
        status, saved = second.ask("POST", "/v1/saved", {"name": "table", "job": job})
        assert (status, saved["plan"]["answer"], saved["plan"]["question"]) == (201, "2 of 2 fit", question)
        assert first.ask("GET", "/v1/saved/table")[1] == saved
        for worker in (first, second):
            text = worker.text("/metrics")
            assert 'tonnage_jobs_ended_total{state="done",verb="compare"} 1' in text
            assert 'tonnage_saved_total{action="save"} 1' in text


def test_what_a_killed_server_has_acknowledged_is_there_when_it_is_started_again(tmp_path):
    store, acknowledged = f"sqlite:///{tmp_path}/plans.db", 0
    for version in (0, 3):
        with workers(1, tmp_path, store=store) as (worker,):
            for seen in range(version, version + 3):
                body = {"name": "run", "verb": "train", "question": QUESTION, "version": seen}
                status, saved = worker.ask("POST", "/v1/saved", body)
                assert status == 201
                acknowledged = saved["plan"]["version"]
            worker.process.kill()
    opened = Opened(store, own=True)
    assert (
        [each.version for each in opened.for_reading().history("run")]
        == list(range(acknowledged, 0, -1))
        == [6, 5, 4, 3, 2, 1]
    )
    opened.close()


def test_the_api_says_of_itself_that_it_has_jobs_and_saved_plans(client):
    document = client.get("/schema/openapi.json").json()
    routes = {route.path for route in client.app.routes if route.path.startswith(("/v1/jobs", "/v1/saved"))}
    described = {path for path in document["paths"] if path.startswith(("/v1/jobs", "/v1/saved"))}
    assert {path.replace(":str", "") for path in routes} == described
    assert {"JobDocument", "SavedPlan", "AskedJob"} <= document["components"]["schemas"].keys()

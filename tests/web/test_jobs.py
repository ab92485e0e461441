"""Long searches as jobs, on two real workers of one server: what one starts, the other shows, follows and ends."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from select import select

import pytest

from tonnage.documents.document import builtins
from tonnage.verbs.ask import ask, line
from tonnage.web.jobs.folder import PREFIX
from tonnage.web.jobs.limits import JobLimits
from web.servers import Reached, workers

SHORT = {"verb": "compare", "question": {"model": "llama-3.1-8b", "on": "h100,a100", "context": "8k,32k"}}
LONG = {
    "verb": "plan",
    "question": {"train": True, "model": "deepseek-v3", "on": ["h100", "h800", "b200"], "exhaustive": True},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def both(folder):
    with workers(2, folder, jobs=JobLimits(at_once=1, waiting=2)) as made:
        yield made


def process_of(folder, job):
    with sqlite3.connect(folder / "jobs.db") as base:
        ((pid,),) = base.execute("SELECT pid FROM jobs WHERE id = ?", (job,))
    return pid


def parent_of(pid):
    """The process that started it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def open_process(folder, job):
    """A handle of the job's process, which the kernel makes readable at its end."""
    return os.pidfd_open(process_of(folder, job))


def has_ended(handle, seconds):
    """Whether it ends within so many seconds."""
    return bool(select([handle], [], [], seconds)[0])


def until(worker, job, name):
    """The first event of that name, which is waited for."""
    return next(event for event in worker.events(job) if event[1] == name)


def test_a_job_gives_the_document_that_the_question_gives(both):
    first, second = both
    status, started = first.ask("POST", "/v1/jobs", SHORT)
    assert (status, started["verb"]) == (202, "compare")
    assert started["state"] in ("queued", "running")
    assert first.headers["Location"] == f"/v1/jobs/{started['id']}"
    *progress, last = second.events(started["id"])
    direct = ask(SHORT["verb"], SHORT["question"])
    assert last[1] == "result"
    assert last[2] == {"status": direct.status, "command": line(direct.words), "document": builtins(direct.document)}
    assert progress and {name for _, name, _ in progress} == {"progress"}
    assert progress[-1][2] == {"what": "cells", "done": 4, "of": 4}
    status, shown = first.ask("GET", f"/v1/jobs/{started['id']}")
    assert (status, shown["state"], shown["result"]) == (200, "done", last[2])
    assert shown["created"] <= shown["started"] <= shown["ended"]


def test_who_lost_the_connection_hears_what_came_after(both):
    job = both[0].ask("POST", "/v1/jobs", SHORT)[1]["id"]
    every = [*both[0].events(job)]
    assert [*both[1].events(job, after=every[-2][0])] == every[-1:]
    numbers = [number for number, _, _ in every]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("end", ["result", "error", "cancelled"])
def test_who_has_heard_all_of_a_job_is_told_to_ask_no_more(both, folder, end):
    first, second = both
    job = first.ask("POST", "/v1/jobs", SHORT if end == "result" else LONG)[1]["id"]
    if end != "result":
        until(first, job, "progress")
        os.kill(process_of(folder, job), signal.SIGKILL) if end == "error" else first.ask("DELETE", f"/v1/jobs/{job}")
    number, name, _ = [*second.events(job)][-1]
    assert name == end
    assert second.ask("GET", f"/v1/jobs/{job}/events", Last_Event_ID=str(number)) == (204, {})
    assert second.headers["Content-Length"] is None


def test_a_job_that_the_other_worker_cancels_ends_at_once_with_its_process(both, folder):
    first, second = both
    job = first.ask("POST", "/v1/jobs", LONG)[1]["id"]
    following = second.events(job)
    assert next(following)[1] == "progress"
    process = open_process(folder, job)
    assert not has_ended(process, 0)
    status, shown = second.ask("DELETE", f"/v1/jobs/{job}")
    assert (status, shown["state"]) == (200, "cancelled")
    assert has_ended(process, 10)
    assert [name for _, name, _ in following][-1] == "cancelled"
    assert second.ask("DELETE", f"/v1/jobs/{job}")[1]["state"] == "cancelled"
    assert first.ask("GET", f"/v1/jobs/{job}")[1]["state"] == "cancelled"


def test_jobs_beyond_the_places_wait_their_turn_and_beyond_that_are_refused(both):
    first, second = both
    running = first.ask("POST", "/v1/jobs", LONG)[1]["id"]
    until(first, running, "progress")
    waiting = [worker.ask("POST", "/v1/jobs", SHORT)[1]["id"] for worker in both]
    assert [second.ask("GET", f"/v1/jobs/{job}")[1]["state"] for job in waiting] == ["queued", "queued"]
    status, refused = second.ask("POST", "/v1/jobs", SHORT)
    assert (status, refused["error"]["kind"]) == (429, "Busy")
    assert second.headers["Retry-After"]
    assert second.ask("DELETE", f"/v1/jobs/{waiting[0]}")[1]["state"] == "cancelled"
    second.ask("DELETE", f"/v1/jobs/{running}")
    assert until(second, waiting[1], "result")
    assert first.ask("GET", f"/v1/jobs/{waiting[0]}")[1]["state"] == "cancelled", "it had not begun, and never does"


def test_a_job_whose_process_is_killed_is_said_to_be_lost(both, folder):
    job = both[0].ask("POST", "/v1/jobs", LONG)[1]["id"]
    until(both[1], job, "progress")
    os.kill(process_of(folder, job), signal.SIGKILL)
    _, name, data = [*both[1].events(job)][-1]
    assert (name, data["kind"]) == ("error", "Lost")


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"verb": "plan", "question": {"train": True, "tran": 1}}, "UnknownName", "Did you mean 'train'"),
        (
            {"verb": "plan", "question": {"train": True, "model": "deepsek-v3", "on": "h800"}},
            "UnknownName",
            "'deepseek-v3'",
        ),
        (
            {"verb": "compare", "question": {"model": "gpt2", "on": ["h100", "h10"]}},
            "UnknownName",
            "on: no accelerator or node is called 'h10'",
        ),
        (
            {"verb": "plan", "question": {"serve": True, "model": "gpt2", "context": "much"}},
            "InvalidInput",
            "context must be a number",
        ),
        (
            {"verb": "plan", "question": {"serve": True, "train": True, "model": "gpt2"}},
            "InvalidInput",
            "train and serve are two questions",
        ),
        ({"verb": "plam", "question": {}}, "UnknownName", "Did you mean 'plan'?"),
        ({"verb": "train", "question": {"model": "llama-3.1-8b"}}, "UnknownName", "verb of a job"),
        ({"verb": "plan"}, "InvalidInput", "question"),
        ({"verb": "plan", "question": {}, "more": 1}, "UnknownName", "no field of a job is called 'more'"),
        ({"verb": "plan", "questoin": {}}, "UnknownName", "Did you mean 'question'?"),
        ({"verb": "plan", "question": []}, "InvalidInput", "question must be an object of names and values. Got []."),
        (
            {"verb": "plan", "question": None},
            "InvalidInput",
            "question must be an object of names and values. Got None.",
        ),
        ({"verb": "plan", "question": {}}, "InvalidInput", "name a model, or give its dimensions"),
        ({"verb": "plan", "question": {"serve": True}}, "InvalidInput", "name a model, or give its dimensions"),
        ({"verb": "compare", "question": {}}, "InvalidInput", "on is needed"),
        ({"verb": "compare", "question": {"on": "h100"}}, "InvalidInput", "name a model, or give its dimensions"),
        ({"verb": "max", "question": {"what": "context", "model": "gpt2"}}, "InvalidInput", "on is needed"),
        (
            {"verb": "max", "question": {"what": "context", "on": "h100"}},
            "InvalidInput",
            "name a model, or give its dimensions",
        ),
        ([], "NotJSON", "object"),
    ],
)
def test_what_is_no_search_is_refused_before_a_process_is_started(both, body, kind, words):
    status, refused = both[0].ask("POST", "/v1/jobs", body)
    assert (status, refused["error"]["kind"]) == (400, kind)
    assert words in refused["error"]["message"]


@pytest.mark.parametrize(
    ("verb", "question"),
    [
        ("max", {"what": "model", "on": "h100"}),
        (
            "compare",
            {
                "hidden_size": 512,
                "num_hidden_layers": "4,8",
                "num_attention_heads": 8,
                "vocab_size": 32000,
                "intermediate_size": 2048,
                "on": "h100",
            },
        ),
    ],
)
def test_a_search_that_goes_without_a_name_of_a_model_is_a_job(both, verb, question):
    status, started = both[0].ask("POST", "/v1/jobs", {"verb": verb, "question": question})
    assert status == 202
    both[0].ask("DELETE", f"/v1/jobs/{started['id']}")


def test_an_error_of_the_search_is_the_error_of_the_job_in_the_words_of_the_command_line(both):
    job = both[0].ask(
        "POST",
        "/v1/jobs",
        {"verb": "plan", "question": {"train": True, "model": "llama-3.1-8b", "on": "8xh100", "optimizer": "adamx"}},
    )[1]["id"]
    _, name, data = [*both[1].events(job)][-1]
    assert (name, data["kind"]) == ("error", "UnknownName")
    assert "Did you mean 'adam'" in data["message"]
    status, shown = both[1].ask("GET", f"/v1/jobs/{job}")
    assert (status, shown["state"], shown["error"]) == (200, "failed", data)


def test_a_job_reads_no_file_of_the_server(both):
    job = both[0].ask("POST", "/v1/jobs", {"verb": "plan", "question": {"inventory": "/etc/passwd"}})[1]["id"]
    _, name, data = [*both[0].events(job)][-1]
    assert (name, "files" in data["message"]) == ("error", True)


@pytest.mark.parametrize("path", ["/v1/jobs/none", "/v1/jobs/none/events"])
def test_a_job_that_is_not_there_is_not_found(both, path):
    status, refused = both[0].ask("GET", path)
    assert (status, refused["error"]["kind"]) == (404, "NotFound")
    assert both[0].ask("DELETE", "/v1/jobs/none")[0] == 404


def test_a_job_that_takes_too_long_is_ended_and_says_so(tmp_path):
    with workers(1, tmp_path, jobs=JobLimits(seconds=1)) as (worker,):
        job = worker.ask("POST", "/v1/jobs", LONG)[1]["id"]
        _, name, data = [*worker.events(job)][-1]
        assert (name, data["kind"]) == ("error", "TooLong")
        assert "1 seconds" in data["message"]
        with suppress(ProcessLookupError):  # it has ended, and is forgotten
            assert has_ended(open_process(tmp_path, job), 10)


def test_a_job_ends_with_the_worker_that_started_it(tmp_path):
    """Even where that is killed, and can end nothing itself."""
    with workers(2, tmp_path) as both:
        job = both[0].ask("POST", "/v1/jobs", LONG)[1]["id"]
        until(both[1], job, "progress")
        process = open_process(tmp_path, job)
        starter = parent_of(process_of(tmp_path, job))  # whoever looked first, not always who was asked
        (other,) = (worker for worker in both if worker.process.pid != starter)
        os.kill(starter, signal.SIGKILL)
        _, name, data = [*other.events(job)][-1]
        assert (name, data["kind"]) == ("error", "Lost")
        assert has_ended(process, 10)


def test_a_server_that_stops_leaves_no_process(tmp_path):
    with workers(1, tmp_path) as (worker,):
        job = worker.ask("POST", "/v1/jobs", LONG)[1]["id"]
        until(worker, job, "progress")
        process = open_process(tmp_path, job)
    assert has_ended(process, 10)


@pytest.mark.parametrize("number", [1, 2])
def test_every_worker_of_the_command_shows_every_job_and_nothing_is_left_when_it_stops(number, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "tonnage",
        "web",
        "--offline",
        "--store",
        "none",
        "--workers",
        str(number),
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE) as server:
        try:
            assert b"answers at" in server.stderr.readline()
            worker = Reached(port)
            job = worker.ask("POST", "/v1/jobs", LONG)[1]["id"]
            until(worker, job, "progress")
            assert [worker.ask("GET", f"/v1/jobs/{job}")[1]["state"] for _ in range(8)] == ["running"] * 8
            assert len([*tmp_path.glob(f"{PREFIX}*")]) == 1
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    assert [*tmp_path.glob(f"{PREFIX}*")] == []

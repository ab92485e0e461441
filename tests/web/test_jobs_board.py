"""What is kept of jobs, and for how long; and what the process of a job writes down."""

import os
import shutil
import signal
import subprocess
import sys
from errno import ENOMEM

import msgspec
import pytest

from tonnage.web.jobs import work as process
from tonnage.web.jobs.board import Board, FullError
from tonnage.web.jobs.folder import PREFIX, hold, is_held, shared_folder
from tonnage.web.jobs.limits import JobLimits
from tonnage.web.jobs.processes import end_lost_jobs
from tonnage.web.jobs.work import Task, Teller

LIMITS = JobLimits()


@pytest.fixture
def board(tmp_path):
    made = Board(tmp_path)
    yield made
    made.close()


def test_jobs_are_taken_in_their_order_and_no_more_than_there_are_places_for(board, tmp_path):
    other, limits = Board(tmp_path), JobLimits(at_once=2, waiting=3)
    names = [board.add("plan", b"{}", limits) for _ in range(3)]
    with pytest.raises(FullError):
        other.add("plan", b"{}", limits)
    taken = [board.take(limits), other.take(limits)]
    assert [each.id for each in taken] == names[:2]
    assert board.take(limits) is None
    assert board.answer(names[0], 0, "tonnage plan", b"{}")
    assert other.take(limits).id == names[2]
    other.close()


def test_a_job_ends_once(board):
    job = board.add("plan", b"{}", LIMITS)
    taken = board.take(LIMITS)
    assert taken.id == job
    assert board.answer(job, 3, "tonnage plan x", b'{"a":1}')
    assert not board.fail(job, "Broken", "too late")
    assert board.cancel(job) is None
    found = board.job(job)
    assert (found.state, found.status, found.command, found.message) == ("done", 3, "tonnage plan x", None)
    board.tell(job, "cells", 1, 2)
    assert board.steps(job) == [], "nothing is told of what has ended"


def test_answers_are_dropped_after_their_time_and_beyond_their_number(board):
    jobs = [board.add("plan", b"{}", LIMITS) for _ in range(4)]
    for job in jobs[:3]:
        board.fail(job, "Broken", "for the test")
    board.tidy(JobLimits(kept=2))
    assert [board.job(job) is not None for job in jobs] == [False, True, True, True]
    board.tidy(JobLimits(kept_seconds=-1))
    assert [board.job(job) is not None for job in jobs] == [False, False, False, True], "one that waits is not over"


def test_counters_are_of_all_processes(board, tmp_path):
    other = Board(tmp_path)
    board.count("saves", 2)
    other.count("saves")
    assert board.counters() == {"saves": 3}
    other.close()


def test_of_a_count_only_the_latest_step_is_kept_and_it_is_told_to_those_who_have_not_heard_it(board):
    job = board.add("compare", b"{}", LIMITS)
    board.take(LIMITS)
    for done in (1, 2, 3):
        board.tell(job, "cells", done, 9)
    board.tell(job, "plans", 7, None)
    assert [(step.what, step.done, step.of) for step in board.steps(job)] == [("cells", 3, 9), ("plans", 7, None)]
    heard = board.steps(job)[0].last
    assert [step.what for step in board.steps(job, heard)] == ["plans"]


def test_hurried_progress_is_told_now_and_then_and_its_end_always(board):
    job = board.add("compare", b"{}", LIMITS)
    board.take(LIMITS)
    tell, before = Teller(board, job), board.job(job).last
    for done in range(1, 10_001):
        tell("plans", done, None)
    assert board.job(job).last - before < 100
    tell.over()
    assert board.steps(job)[0].done == 10_000


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MemoryError(), "TooLarge", "2 GiB"),
        (OSError(ENOMEM, "Cannot allocate memory"), "TooLarge", "2 GiB"),
        (ZeroDivisionError("secret"), "Broken", "ZeroDivisionError"),
    ],
)
def test_what_breaks_a_search_is_said_without_its_insides(board, monkeypatch, error, kind, words):
    def broken(*_):
        raise error

    monkeypatch.setattr(process, "ask", broken)
    job = board.add("plan", b"{}", LIMITS)
    board.take(LIMITS)
    process.work(board, job, Task("plan", msgspec.Raw(b"{}"), 2 << 30, None, False, False))
    found = board.job(job)
    assert (found.state, found.kind) == ("failed", kind)
    assert words in found.message
    assert "secret" not in found.message


def test_the_folder_of_a_server_is_private_and_goes_with_it_and_what_one_left_that_was_killed_long_ago_goes_with_the_next(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, foreign = tmp_path / f"{PREFIX}killed", tmp_path / f"{PREFIX}not-ours"
    for folder in (left, foreign):
        folder.mkdir()
    (left / "server.lock").touch()
    for folder in (left, foreign):
        folder.chmod(0o700)
    os.utime(left / "server.lock", (0, 0))
    with shared_folder() as one, shared_folder() as other:
        assert one.stat().st_mode & 0o077 == 0
        assert one.exists() and other.exists() and not left.exists()
        assert foreign.exists(), "it has no lock: nobody knows what it is"
    assert not one.exists() and not other.exists()


def test_a_lock_is_held_until_its_number_is_closed(tmp_path):
    path = tmp_path / "lock"
    assert not is_held(path)
    number = hold(path)
    assert is_held(path)
    os.close(number)
    assert not is_held(path)


# ---- a server that was killed, and the next at its address ----


@pytest.fixture
def abandoned(tmp_path, monkeypatch):
    """The shared folder of a server at "here" that was killed, with three jobs."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with shared_folder("here") as folder:
        board = Board(folder)
        names = {state: board.add("plan", b"{}", LIMITS) for state in ("done", "running", "queued")}
        assert board.take(JobLimits()).id == names["done"]
        board.answer(names["done"], 0, "tonnage plan", b"{}")
        os.close(board.take(JobLimits()).lock)
        board.close()
        shutil.copytree(folder, tmp_path / f"{PREFIX}left")
    (tmp_path / f"{PREFIX}left").chmod(0o700)
    return tmp_path / f"{PREFIX}left", names


def test_the_next_server_at_the_address_calls_running_jobs_lost_and_goes_on_with_the_others(abandoned):
    left, names = abandoned
    with shared_folder("here") as folder:
        assert folder == left and is_held(folder / "server.lock")
        end_lost_jobs(folder, LIMITS)
        board = Board(folder)
        states = {state: board.job(name) for state, name in names.items()}
        assert {state: job.state for state, job in states.items()} == {
            "done": "done",
            "running": "failed",
            "queued": "queued",
        }
        assert states["running"].kind == "Lost"
        board.close()
    assert not left.exists()


def test_a_server_at_another_address_or_of_another_version_leaves_them_alone(abandoned, monkeypatch):
    left, _ = abandoned
    with shared_folder("elsewhere") as folder:
        assert folder != left and left.exists()
    monkeypatch.setattr("tonnage.web.jobs.folder.__version__", "0.0.1")
    with shared_folder("here") as folder:
        assert folder != left and left.exists()


def test_a_folder_that_others_may_write_to_is_not_taken_over(abandoned):
    left, _ = abandoned
    left.chmod(0o777)
    with shared_folder("here") as folder:
        assert folder != left


def test_the_process_of_a_job_that_outlived_its_server_is_ended(abandoned):
    left, names = abandoned
    board = Board(left)
    lock = hold(board.lock_of(names["running"]))
    with subprocess.Popen(
        [sys.executable, "-c", "import threading; threading.Event().wait()"], pass_fds=[lock], start_new_session=True
    ) as alive:
        board.name_process(names["running"], alive.pid)
        os.close(lock)
        end_lost_jobs(left, LIMITS)
        assert alive.wait(30) == -signal.SIGKILL
    assert board.job(names["running"]).kind == "Lost"
    board.close()


def test_a_file_of_jobs_that_is_damaged_is_begun_anew(abandoned):
    left, _ = abandoned
    for path in left.glob("jobs.db*"):
        path.write_bytes(b"no data base" * 1000)
    end_lost_jobs(left, LIMITS)
    board = Board(left)
    assert sum(board.states().values()) == 0
    board.close()

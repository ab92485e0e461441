"""What is kept of jobs, and for how long; and what the process of a job writes down."""

import os
from errno import ENOMEM

import msgspec
import pytest

from tonnage.web.jobs import work as process
from tonnage.web.jobs.board import Board, FullError
from tonnage.web.jobs.folder import PREFIX, hold, is_held, shared_folder
from tonnage.web.jobs.limits import JobLimits
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


def test_the_folder_of_a_server_is_private_and_goes_with_it_and_what_a_killed_one_left_goes_with_the_next(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, foreign = tmp_path / f"{PREFIX}killed", tmp_path / f"{PREFIX}not-ours"
    for folder in (left, foreign):
        folder.mkdir()
    (left / "server.lock").touch()
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

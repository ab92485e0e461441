"""Whoever saves may die at any moment: what was acknowledged stays, and nothing is half there."""

import random
import select
import sqlite3
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tonnage.web.store.conflict import StoreError
from tonnage.web.store.opened import Opened
from web import saves

ROUNDS, WRITERS = 8, 3


@contextmanager
def saving(url, name, *number):
    process = subprocess.Popen(
        [sys.executable, saves.__file__, url, name, *number], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def acknowledged(process):
    """The versions that a dead process had said were saved; a line that it was just writing is none."""
    return [int(line) for line in process.stdout.read().split(b"\n")[:-1]]


def wait_for_one(process):
    return int(process.stdout.readline())


def check(url, name, known):
    """All that is `known` to be acknowledged is there and whole, and at most one version more, which is whole too."""
    store = Opened(url, own=True).for_saving()
    history = store.history(name)
    while history and (older := store.history(name, before=history[-1].version)):  # so many are shown at once
        history += older
    assert [each.version for each in history] == list(range(len(history), 0, -1))
    assert known <= len(history) <= known + 1
    for each in history:
        whole = store.version(name, each.version)
        assert bytes(whole.question).decode() == saves.question(each.version)
        assert each.needed_bytes == each.version and whole.command == f"tonnage train {each.version}"
    assert history == [] or store.latest(name).version == history[0].version
    store.close()
    return len(history)


def test_a_writer_that_is_killed_at_any_point_loses_nothing_and_leaves_no_half(url):
    chance, found = random.Random(8), 0
    for _ in range(ROUNDS):
        with saving(url, "run") as process:
            last = wait_for_one(process)
            for _ in range(chance.randrange(4)):
                last = wait_for_one(process)
            select.select(
                [], [], [], chance.random() * 0.02
            )  # into any point of a save: its end is what is not waited for
            process.kill()
            said = acknowledged(process)
        found = check(url, "run", (said or [last])[-1])
    assert found >= ROUNDS
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as base:
            assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        base.close()


def test_writers_of_several_processes_do_not_keep_each_other_from_saving_even_when_one_is_killed(url):
    Opened(url, own=True).for_saving().close()
    names = [f"run {number}" for number in range(WRITERS)]
    with saving(url, "killed") as victim:
        wait_for_one(victim)
        others = [
            subprocess.Popen(
                [sys.executable, saves.__file__, url, name, "8"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for name in names
        ]
        wait_for_one(others[0])
        victim.kill()
        said = acknowledged(victim)
        done = [process.communicate(timeout=120) for process in others]
    assert [process.returncode for process in others] == [0] * WRITERS, done[0][1].decode()
    for name in names:
        assert check(url, name, 8) == 8
    check(url, "killed", (said or [1])[-1])


def test_postgresql_dies_in_the_midst_of_saves_and_comes_back_with_all_that_was_acknowledged(postgresql):
    found = 0
    for _ in range(3):
        with saving(postgresql.url, "run") as process:
            wait_for_one(process)
            wait_for_one(process)
            postgresql.stop("immediate")  # every process of the server is killed: it recovers when it is started again
            process.wait(60)
            said = acknowledged(process)
            words = process.stderr.read().decode()
            assert process.returncode != 0 and "does not answer" in words, words
        postgresql.start()
        found = check(postgresql.url, "run", (said or [found + 2])[-1])


def test_a_server_of_the_page_outlives_a_restart_of_postgresql(postgresql):
    store = Opened(postgresql.url, own=True).for_saving()
    store.save("before", "train", "{}", saves.digest(1))
    postgresql.stop("immediate")
    with pytest.raises(StoreError, match="does not answer"):
        store.every()
    postgresql.start()
    assert store.latest("before").version == 1
    assert store.save("after", "train", "{}", saves.digest(1)).version == 1
    store.close()


def test_a_disk_that_is_full_refuses_the_save_and_keeps_what_was(tmp_path):
    """As SQLite has it: no more pages than there are."""
    store = Opened(f"sqlite:///{tmp_path}/plans.db", own=True).for_saving()
    store.save("run", "train", "{}", saves.digest(1))
    with store.base.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="does not answer"):
        store.save("run", "train", saves.question(100_000), saves.digest(2), 1)
    assert [each.version for each in store.history("run")] == [1]
    store.close()

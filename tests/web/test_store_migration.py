"""Data bases of saved plans of other versions, damaged ones, and those of other programs, in SQLite and in
PostgreSQL.
"""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread

import pytest
from sqlalchemy import inspect, text

from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput
from tonnage.web.store import migrations
from tonnage.web.store.conflict import StoreError
from tonnage.web.store.engine import Base, store_url
from tonnage.web.store.opened import Opened
from tonnage.web.store.subject import VERSION_BYTES
from tonnage.web.store.tables import TABLES, VERSION
from web import version_1
from web.saves import digest


def opened(url):
    return Opened(url, own=True).for_saving()


def file_of(url) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_version_has_a_step_to_the_next():
    assert list(migrations.STEPS) == list(range(1, VERSION))


def test_plans_of_version_1_are_all_there_afterwards(url):
    version_1.make(url)
    store = opened(url)
    for (name, version), question in version_1.QUESTIONS.items():
        plan = store.version(name, version)
        assert bytes(plan.question).decode() == question
        assert (plan.status, plan.answer, plan.needed_bytes, plan.usd, plan.command) == (
            0,
            "fits",
            7,
            0.5,
            "tonnage train",
        )
        assert plan.bytes == len(question.encode()) + len("tonnage train") + VERSION_BYTES
        assert plan.deleted == (name in version_1.DELETED)
    assert [each.name for each in store.every()] == ["grows", "pasted 语言"]
    grown, pasted = store.every()
    assert (grown.version, grown.model, grown.machine, grown.method) == (2, "llama-3.1-8b", "8xH100-SXM-80GB", "qlora")
    assert (pasted.model, pasted.machine) == ("config.json", "h100,a100")
    assert store.save("grows", "train", "{}", digest(3), 2).version == 3
    assert store.save("gone", "train", "{}", digest(2)).version == 2
    assert store.delete("grows", history=True) and store.history("grows") == []
    store.close()


def columns_of(url):
    base = Base(store_url(url))
    found = inspect(base.engine)
    made = {
        table: {(each["name"], str(each["type"]), each["nullable"]) for each in found.get_columns(table)}
        for table in TABLES.tables
    }
    base.close()
    return made


def test_tables_that_were_brought_to_this_version_are_those_of_a_new_data_base(url):
    """Names, types and what may be empty."""
    new = columns_of(url)
    base = Base(store_url(url))
    with base.writing() as connection:
        TABLES.drop_all(connection)
    base.close()
    version_1.make(url)
    assert {table: sorted(found) for table, found in columns_of(url).items()} == {
        table: sorted(found) for table, found in new.items()
    }


def test_a_backup_is_made_before_and_holds_what_was_there(url):
    version_1.make(url)
    base = Base(store_url(url))
    assert base.backup
    if url.startswith("sqlite"):
        backup = Path(base.backup)
        assert backup.parent == file_of(url).parent and "version-1" in backup.name and permissions(backup) == 0o600
        with closing(sqlite3.connect(backup)) as copy:
            assert copy.execute("SELECT version FROM tonnage_schema").fetchall() == [(1,)]
            assert {row[0] for row in copy.execute("SELECT question FROM tonnage_plan_versions")} == set(
                version_1.QUESTIONS.values()
            )
        restored = opened(f"sqlite:///{backup}")  # the backup is a data base like any other
        assert bytes(restored.version("gone", 1).question) == b'{"model":"gpt2"}'
        restored.close()
    else:
        with base.reading() as connection:
            name = next(
                name
                for name in inspect(connection).get_table_names()
                if name.startswith("tonnage_plan_versions_backup_1_")
            )
            assert name in base.backup
            assert {row[0] for row in connection.execute(text(f"SELECT question FROM {name}"))} == set(
                version_1.QUESTIONS.values()
            )
    base.close()
    again = Base(store_url(url))
    assert again.backup is None, "it is at this version"
    again.close()


def test_a_step_that_fails_leaves_everything_as_it_was(url, monkeypatch):
    version_1.make(url)

    def broken(connection):
        migrations._from_1(connection)
        raise StoreError("half way")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="half way"):
        patch.setitem(migrations.STEPS, 1, broken)
        opened(url)
    store = opened(url)
    assert (
        len(store.every()) == 2
        and bytes(store.version("grows", 1).question).decode() == version_1.QUESTIONS["grows", 1]
    )
    store.close()


def test_of_many_who_open_an_older_data_base_one_changes_it(url):
    version_1.make(url)
    begin, backups = Barrier(6), []

    def one():
        begin.wait()
        base = Base(store_url(url))
        backups.append(base.backup)
        base.close()

    threads = [Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(backups) == 6 and len([each for each in backups if each]) == 1


def test_files_of_version_1_are_closed_to_others_when_they_are_changed(tmp_path):
    url = f"sqlite:///{tmp_path}/plans.db"
    version_1.make(url)
    file_of(url).chmod(0o644)
    store = opened(url)
    assert {path.name: permissions(path) for path in tmp_path.glob("plans.db*")} == dict.fromkeys(
        (path.name for path in tmp_path.iterdir()), 0o600
    )
    store.close()


# ---- at the start of a server ----


def damaged(path: Path) -> None:
    """Pages in the middle are of something else; its head is whole."""
    store = opened(f"sqlite:///{path}")
    for number in range(50):
        store.save(f"run {number}", "train", '{"x": "' + "y" * 4000 + '"}', digest(1))
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:40960] = b"\xff" * (40960 - 8192)
    path.write_bytes(content)


def of_a_newer_tonnage(path: Path) -> None:
    opened(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as base:
        base.execute(f"UPDATE tonnage_schema SET version = {VERSION + 1}")
        base.commit()


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE moz_places (id INTEGER)")


def with_our_name_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE tonnage_schema (id INTEGER, ship TEXT)")


def with_a_version_that_is_none(path: Path) -> None:
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE tonnage_schema (version TEXT)")
        base.execute("INSERT INTO tonnage_schema VALUES ('two')")
        base.commit()


REFUSED = [
    (damaged, "is damaged"),
    (of_a_newer_tonnage, f"has tables of version {VERSION + 1}, and this tonnage knows version {VERSION} and older"),
    (of_another_program, "is of another program, with tables moz_places"),
    (with_our_name_of_another_program, "of another program"),
    (with_a_version_that_is_none, "has tables of version two"),
    (lambda path: path.write_text("no data base" * 100), "is no SQLite data base"),
    (lambda path: path.mkdir(), "is no regular file"),
    (os.mkfifo, "is no regular file"),
]


@pytest.mark.parametrize(
    ("make", "words"),
    REFUSED,
    ids=["damaged", "newer", "another program", "our name", "no version", "text", "folder", "FIFO"],
)
def test_a_server_does_not_start_with_what_is_no_data_base_of_saved_plans(tmp_path, capsys, make, words):
    path = tmp_path / "plans.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    assert main(["web", "--store", f"sqlite:///{path}", "--port", "9"]) == 64
    said = capsys.readouterr().err
    assert words in said and str(path) in said and "Traceback" not in said
    assert before is None or path.read_bytes() == before, "what is not ours stays as it is"


def test_a_server_does_not_start_where_the_folder_of_its_plans_is_missing(tmp_path, capsys):
    assert main(["web", "--store", f"sqlite:///{tmp_path}/no/plans.db", "--port", "9"]) == 64
    assert f"there is no folder {tmp_path}/no" in capsys.readouterr().err


def test_a_server_does_not_start_where_postgresql_does_not_answer(tmp_path, capsys):
    pytest.importorskip("psycopg")
    assert main(["web", "--store", f"postgresql://user:hunter2@/x?host={tmp_path}", "--port", "9"]) == 64
    said = capsys.readouterr().err
    assert "does not answer" in said and "hunter2" not in said


def test_a_server_does_not_start_with_newer_tables_of_postgresql(postgresql, capsys):
    base = Base(store_url(postgresql.url))
    with base.writing() as connection:
        connection.execute(text(f"UPDATE tonnage_schema SET version = {VERSION + 1}"))
    try:
        with pytest.raises(InvalidInput, match=f"tables of version {VERSION + 1}"):
            Opened(postgresql.url, own=True).prepare()
    finally:
        with base.writing() as connection:
            connection.execute(text(f"UPDATE tonnage_schema SET version = {VERSION}"))
        base.close()


def test_a_server_says_that_it_has_changed_the_tables_and_where_the_backup_is(tmp_path):
    url = f"sqlite:///{tmp_path}/plans.db"
    version_1.make(url)
    backup = Opened(url, own=True).prepare()
    assert backup and Path(backup).exists()
    assert Opened(url, own=True).prepare() is None


def test_looking_at_a_start_makes_no_file(tmp_path):
    assert Opened(f"sqlite:///{tmp_path}/plans.db", own=True).prepare() is None
    assert list(tmp_path.iterdir()) == []


def test_files_of_saved_plans_and_of_jobs_are_their_owners_alone(tmp_path):
    """Whatever the umask is."""
    code = f"""
import os, pathlib
os.umask(0)
from tonnage.web.jobs.board import Board
from tonnage.web.store.opened import Opened
from web.saves import digest
folder = pathlib.Path({str(tmp_path)!r})
store = Opened(f"sqlite:///{{folder}}/plans.db", own=True).for_saving()
store.save("run", "train", "{{}}", digest(1))
board = Board(folder)
print(*sorted(f"{{path.name}}:{{path.stat().st_mode & 0o777:o}}" for path in folder.iterdir()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1]
    )
    names = ("jobs.db", "jobs.db-shm", "jobs.db-wal", "plans.db", "plans.db-shm", "plans.db-wal")
    assert set(done.stdout.split()) == {f"{name}:600" for name in names}

"""Saved plans, in SQLite and in PostgreSQL alike."""

from threading import Barrier, Thread

import pytest
from msgspec.json import encode
from sqlalchemy import text

from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.web.store.conflict import ConflictError, StoreError
from tonnage.web.store.digest import unanswered
from tonnage.web.store.engine import VERSION, store_url
from tonnage.web.store.opened import Opened
from web.saves import digest


def save(store, name="run", expected=None, number=1):
    return store.save(name, "train", f'{{"n": {number}}}', digest(number), expected)


def test_what_is_saved_is_read_again_by_every_other(store, url):
    made = save(store)
    other = Opened(url, own=True).for_saving()
    assert encode(other.latest("run")) == encode(made)
    assert (made.version, made.verb, bytes(made.question), made.needed_bytes, made.usd_of) == (
        1,
        "train",
        b'{"n": 1}',
        1,
        "an hour",
    )
    other.close()


def test_each_save_is_a_version_and_the_history_keeps_all_of_them(store):
    for number in (1, 2, 3):
        save(store, expected=number - 1, number=number)
    assert [(each.version, each.needed_bytes) for each in store.history("run")] == [(3, 3), (2, 2), (1, 1)]
    assert [each.version for each in store.history("run", before=3, limit=1)] == [2]
    assert store.latest("run").version == 3
    assert store.history("other") == [] and store.latest("other") is None


@pytest.mark.parametrize(("saved", "expected", "now"), [(2, 1, 2), (2, 3, 2), (2, None, 2), (0, 1, 0), (2, 0, 2)])
def test_who_has_not_seen_the_latest_version_does_not_save_over_it(store, saved, expected, now):
    for number in range(saved):
        save(store, expected=number)
    with pytest.raises(ConflictError) as refused:
        save(store, expected=expected)
    assert refused.value.version == now
    assert len(store.history("run")) == saved


def test_of_many_who_save_over_the_same_version_one_does(store, url):
    save(store)
    begin, won = Barrier(8), []

    def one():
        mine = Opened(url, own=True).for_saving()
        begin.wait()
        try:
            won.append(save(mine, expected=1).version)
        except ConflictError as error:
            won.append(-error.version)
        mine.close()

    _all([Thread(target=one) for _ in range(8)])
    assert sorted(won) == [-2] * 7 + [2]


def test_of_many_who_save_the_same_new_name_in_a_new_data_base_one_does(url):
    begin, won = Barrier(8), []

    def one():
        begin.wait()
        mine = Opened(url, own=True).for_saving()
        try:
            won.append(save(mine).version)
        except ConflictError:
            won.append(0)
        mine.close()

    _all([Thread(target=one) for _ in range(8)])
    assert sorted(won) == [0] * 7 + [1]


def _all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_deleted_name_is_gone_its_history_is_not_and_it_goes_on_where_it_ended(store):
    save(store)
    assert store.delete("run")
    assert store.latest("run") is None and store.every() == []
    assert not store.delete("run")
    assert [(each.version, each.deleted) for each in store.history("run")] == [(1, True)]
    assert save(store).version == 2
    assert [each.version for each in store.history("run")] == [2, 1]


def test_history_is_deleted_where_it_is_asked_for_even_of_a_deleted_name(store):
    save(store)
    store.delete("run")
    assert store.delete("run", history=True)
    assert store.history("run") == [] and store.counts() == (0, 0)
    assert save(store).version == 1


def test_who_has_not_seen_the_latest_version_does_not_delete_it(store):
    save(store)
    with pytest.raises(ConflictError):
        store.delete("run", expected=2)
    assert store.latest("run")
    assert store.delete("run", expected=1)


def test_names_are_listed_in_order_and_in_parts(store):
    for name in ("b", "a", "c", "语言"):
        save(store, name)
    assert [each.name for each in store.every()] == ["a", "b", "c", "语言"]
    assert [each.name for each in store.every(after="a", limit=2)] == ["b", "c"]
    assert store.counts() == (4, 4)


@pytest.mark.parametrize("name", ["", " ", " a", "a/b", "a\nb", "x" * 101, "..", "\ud800"])
def test_a_name_is_one_that_fits_in_a_url_and_on_a_line(store, name):
    with pytest.raises(InvalidInput, match="name of a saved plan"):
        save(store, name)


@pytest.mark.parametrize("name", ["a'; DROP TABLE tonnage_plans; --", "100 %", "{x}", "a\\b", "llama 3.1, 8×H100"])
def test_a_name_is_never_more_than_a_name(store, name):
    save(store, name)
    assert store.latest(name).name == name


def test_tables_of_another_version_are_left_alone(store, url):
    with store.base.writing() as connection:
        connection.execute(text(f"UPDATE tonnage_schema SET version = {VERSION + 1}"))
    with pytest.raises(StoreError, match=f"version {VERSION + 1}, and this tonnage knows version {VERSION}"):
        Opened(url, own=True).for_saving()


def test_a_commit_waits_for_the_disk(store):
    with store.base.reading() as connection:
        if connection.dialect.name == "postgresql":
            assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
        else:
            assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
            assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("plans.db", "URL"),
        ("mysql://root:hunter2@host/x", "Got mysql"),
        ("sqlite://", "in a file"),
        ("sqlite:///:memory:", "in a file"),
        ("", "URL"),
    ],
)
def test_a_url_of_no_data_base_is_refused_without_its_password(given, words):
    with pytest.raises(TonnageError, match=words) as refused:
        store_url(given)
    assert "hunter2" not in str(refused.value)


def test_a_data_base_that_does_not_answer_says_so_without_its_password(tmp_path):
    with pytest.raises(StoreError, match="does not answer") as refused:
        Opened(f"postgresql://user:hunter2@/x?host={tmp_path}", own=True).for_saving()
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_no_data_base_is_refused_and_stays_as_it_is(tmp_path):
    path = tmp_path / "plans.db"
    path.write_text("no data base" * 100)
    with pytest.raises(StoreError):
        Opened(f"sqlite:///{path}", own=True).for_saving()
    assert path.read_text() == "no data base" * 100


def test_other_tables_of_a_postgresql_data_base_are_left_alone(postgresql):
    """Programs share such a data base; a file of SQLite is one program's."""
    import psycopg

    with psycopg.connect(postgresql.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE others (id INTEGER)")
        connection.execute("INSERT INTO others VALUES (7)")
        made = Opened(postgresql.url, own=True).for_saving()
        save(made, "beside others")
        made.delete("beside others", history=True)
        made.close()
        assert connection.execute("SELECT id FROM others").fetchall() == [(7,)]
        connection.execute("DROP TABLE others")


# ---- lists, and how much is kept ----


def test_lists_have_no_questions_and_one_plan_has(store):
    store.save("run", "train", '{"model": "' + "x" * 300_000 + '", "on": "h100"}', digest(1))
    (listed,), (version,) = store.every(), store.history("run")
    assert len(encode(listed)) < 600 and listed == version
    assert not hasattr(listed, "question")
    assert (listed.model, listed.machine) == (None, "h100"), "a long text is no name"
    assert len(bytes(store.latest("run").question)) > 300_000
    assert store.version("run", 1) == store.latest("run") and store.version("run", 2) is None


def test_all_versions_together_have_a_limit_of_bytes(store):
    store.most_bytes = 3000
    save(store, "a"), save(store, "b")
    with pytest.raises(InvalidInput, match="--store-limit"):
        store.save("c", "train", '{"x": "' + "y" * 3000 + '"}', digest(1))
    assert [each.name for each in store.every()] == ["a", "b"], "nothing of it is there"
    for version in range(1, 100):
        try:
            save(store, "a", expected=version)
        except InvalidInput:
            break
    held = sum(each.bytes for name in ("a", "b") for each in store.history(name))
    assert held <= 3000 < held + store.latest("a").bytes
    store.delete("a", history=True)
    assert save(store, "c").version == 1, "deleting with the history makes room"


def test_figures_can_follow_a_save_and_are_filled_in_once(store):
    made = store.save("run", "train", "{}", unanswered("tonnage train"))
    assert (made.status, made.answer) == (None, None)
    assert store.latest("run").status is None and store.every()[0].answer is None
    store.fill(("run", 1, digest(5)))
    plan = store.latest("run")
    assert (plan.status, plan.answer, plan.needed_bytes, plan.command) == (0, "fits", 5, "tonnage train")
    store.fill(("run", 1, digest(6)))
    assert store.latest("run").needed_bytes == 5
    store.fill(("gone", 1, digest(6)))

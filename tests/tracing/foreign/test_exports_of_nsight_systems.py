"""SQLite exports of Nsight Systems: device memory that the driver was asked for."""

import sqlite3

import pytest

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.events import check
from tonnage.trace.foreign import NOT_TOLD, nsight, read
from tracing.foreign.files import MIB, database

USAGE = (
    "start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId INTEGER, address INTEGER, bytes INTEGER, "
    "memKind INTEGER, "
    "memoryOperationType INTEGER, name TEXT, correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER, "
    "localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER"
)
KINDS = (
    "id INTEGER, name TEXT, label TEXT",
    [(0, "P", "Pageable"), (1, "I", "Pinned"), (2, "D", "Device"), (5, "S", "Device Static")],
)


def usage(time, address, size, free=False, device=0, kind=2, process=7, name=None, pool=None, pool_size=None):
    return (time, process, device, 1, address, size, kind, int(free), name, 0, 0, pool, pool_size, None)


def made(tmp_path, rows, device=None, **tables):
    path = database(tmp_path / "report.sqlite", {"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, rows), **tables})
    found = read(path, device)
    check(found.events)
    return found


def test_what_the_driver_gave_is_what_an_allocator_holds(tmp_path):
    rows = [usage(30, 1, 20 * MIB, free=True), usage(10, 1, 20 * MIB), usage(20, 2, 4 * MIB), usage(40, 3, 2 * MIB)]
    found = made(tmp_path, rows, ENUM_CUDA_MEM_KIND=KINDS)
    assert (found.reserved_peak, found.reserved_end, found.allocated_peak) == (24 * MIB, 6 * MIB, None)
    assert found.by_category == {NOT_TOLD: 24 * MIB}
    assert found.events.order == [0, 1, ~0, 2]
    assert any("what the driver gave" in note for note in found.notes)


def test_host_memory_is_said_and_not_counted(tmp_path):
    found = made(tmp_path, [usage(1, 1, MIB), usage(2, 2, 9 * MIB, kind=1), usage(3, 3, 1, kind=5)])
    assert found.reserved_peak == MIB + 1
    assert any("9,437,184 bytes of pinned memory" in note for note in found.notes)


def test_one_device_is_read_and_all_are_listed(tmp_path):
    rows = [usage(1, 1, MIB), usage(2, 1, 2 * MIB, device=1), usage(3, 2, 2 * MIB, device=1)]
    found = made(tmp_path, rows)
    assert (found.device, found.reserved_peak) == ("cuda:1", 4 * MIB)
    assert [(each.name, each.actions, each.bytes) for each in found.devices] == [
        ("cuda:0", 1, MIB),
        ("cuda:1", 2, 4 * MIB),
    ]


def test_a_device_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"nothing of device 3. It knows 0"):
        made(tmp_path, [usage(1, 1, MIB)], device=3)


def test_equal_addresses_of_two_processes_are_two_allocations(tmp_path):
    assert made(tmp_path, [usage(1, 1, MIB), usage(2, 1, MIB, process=8)]).reserved_peak == 2 * MIB


def test_pools_of_the_driver_tell_what_is_in_use_and_what_is_held(tmp_path):
    rows = [
        usage(1, 1, MIB, pool=99, pool_size=32 * MIB),
        usage(2, 2, 3 * MIB, pool=99, pool_size=32 * MIB),
        usage(3, 5, 2 * MIB),
    ]
    found = made(tmp_path, rows)
    assert (found.allocated_peak, found.reserved_peak) == (6 * MIB, 34 * MIB)


def test_names_stand_in_the_row_or_among_the_strings(tmp_path):
    rows = [usage(1, 1, MIB, name="weights"), usage(2, 2, MIB, name=4)]
    columns = USAGE.replace("name TEXT", "name")
    tables = {"CUDA_GPU_MEMORY_USAGE_EVENTS": (columns, rows), "StringIds": ("id INTEGER, value TEXT", [(4, "cache")])}
    found = read(database(tmp_path / "x.sqlite", tables))
    assert [each.operation for each in found.events.allocations] == ["weights", "cache"]


def test_exports_without_kinds_and_times_are_read_and_said(tmp_path):
    rows = [(0, 0, MIB, 5, 0), (0, 0, MIB, 6, 0)]
    columns = "start INTEGER, deviceId INTEGER, bytes INTEGER, address INTEGER, memoryOperationType INTEGER"
    found = read(database(tmp_path / "x.sqlite", {"CUDA_GPU_MEMORY_USAGE_EVENTS": (columns, rows)}))
    assert found.reserved_peak == 2 * MIB
    assert any("the same time" in note for note in found.notes)
    assert any("no free was recorded" in note for note in found.notes)


def test_records_of_cupti_are_read(tmp_path):
    spans = (
        "start INTEGER, end INTEGER, address INTEGER, bytes INTEGER, memoryKind INTEGER, deviceId INTEGER, "
        "processId INTEGER"
    )
    one = {
        "CUPTI_ACTIVITY_KIND_MEMORY": (
            spans,
            [(1, 5, 1, MIB, 3, 0, 7), (5, 0, 2, 2 * MIB, 3, 0, 7), (2, 3, 9, 4 * MIB, 2, 0, 7)],
        )
    }
    assert read(database(tmp_path / "a.sqlite", one)).reserved_peak == 2 * MIB  # freed before the other begins
    points = (
        "timestamp INTEGER, memoryOperationType INTEGER, address INTEGER, bytes INTEGER, memoryKind INTEGER, "
        "deviceId INTEGER"
    )
    two = {"CUPTI_ACTIVITY_KIND_MEMORY2": (points, [(1, 1, 1, MIB, 3, 0), (2, 1, 2, MIB, 3, 0), (3, 2, 1, MIB, 3, 0)])}
    found = read(database(tmp_path / "b.sqlite", two))
    assert (found.reserved_peak, found.reserved_end) == (2 * MIB, MIB)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        (
            {"StringIds": ("id INTEGER", [])},
            r"no table CUDA_GPU_MEMORY_USAGE_EVENTS.*--cuda-memory-usage=true.*--type=sqlite",
        ),
        ({"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, [])}, "is empty.*--cuda-memory-usage=true"),
        ({"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, [usage(1, 1, 5, kind=1)])}, "no device memory, only pinned"),
        ({"CUDA_GPU_MEMORY_USAGE_EVENTS": ("start INTEGER", [(1,)])}, "no column address, bytes"),
        ({"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, [usage(1, 1, -4)])}, "impossible number of bytes"),
        ({"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, [usage(1, 1, "much")])}, "impossible number of bytes"),
    ],
)
def test_what_tells_no_memory_is_refused(tmp_path, tables, reason):
    with pytest.raises(InvalidInput, match=reason):
        read(database(tmp_path / "x.sqlite", tables))


def test_a_broken_database_is_refused(tmp_path):
    path = database(
        tmp_path / "x.sqlite", {"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, [usage(i, i, MIB) for i in range(500)])}
    )
    whole = path.read_bytes()
    for end in (100, 5000, len(whole) // 2):
        path.write_bytes(whole[:end])
        with pytest.raises(InvalidInput, match=r"x\.sqlite"):
            read(path)
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(InvalidInput, match=r"x\.sqlite"):
        read(path)


def test_a_view_that_never_ends_is_not_a_table(tmp_path):
    path = tmp_path / "x.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT "
        "start + 1 FROM n) SELECT start FROM n"
    )
    connection.commit()
    connection.close()
    with pytest.raises(InvalidInput, match="no table"):
        read(path)


def test_values_that_are_too_long_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"too big|too large"):
        made(tmp_path, [usage(1, 1, MIB, name="x" * 2_000_000)])


def test_tables_that_are_too_long_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(nsight, "MAX_ROWS", 2)
    with pytest.raises(InvalidInput, match="has more than 2 rows"):
        made(tmp_path, [usage(i, i, MIB) for i in range(3)])


def test_a_search_that_goes_on_and_on_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(nsight, "_STEPS", 10)
    monkeypatch.setattr(nsight, "_MAX_LOOKS", 100)
    with pytest.raises(InvalidInput, match="interrupted"):
        made(tmp_path, [usage(i, i, MIB) for i in range(1000)])


def test_the_file_is_not_changed_and_nothing_is_written_beside_it(tmp_path):
    path = database(tmp_path / "x.sqlite", {"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, [usage(1, 1, MIB)])})
    path.chmod(0o400)
    before = path.read_bytes()
    read(path)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (before, [path])


def test_a_name_with_odd_letters_is_opened_as_it_is(tmp_path):
    path = database(tmp_path / "a?mode=rwc#b%20.sqlite", {"CUDA_GPU_MEMORY_USAGE_EVENTS": (USAGE, [usage(1, 1, MIB)])})
    assert read(path).reserved_peak == MIB


def _without_names(path, rows, after):
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, bytes INTEGER, address INTEGER, "
        f"memoryOperationType INTEGER{after[0]})"
    )
    connection.executemany(
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, bytes, address, memoryOperationType) VALUES (?, ?, ?, 0)",
        [(number, MIB, number) for number in range(rows)],
    )
    for statement in after[1:]:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_column_that_is_computed_is_refused(tmp_path):
    """A file of 57 kB gave texts of 800 kB for each of its rows: a MemoryError."""
    path = tmp_path / "x.sqlite"
    for kind in ("", " STORED"):
        _without_names(path, 1, (", name TEXT AS (hex(zeroblob(40)))" + kind,))
        with pytest.raises(InvalidInput, match="computes its column 'name'"):
            read(path)
        path.unlink()


def test_texts_that_are_more_than_the_file_holds_are_refused(tmp_path):
    path = tmp_path / "x.sqlite"
    default = "ALTER TABLE CUDA_GPU_MEMORY_USAGE_EVENTS ADD COLUMN name TEXT DEFAULT '" + "x" * 10_000 + "'"
    _without_names(path, 50, ("", default))
    with pytest.raises(InvalidInput, match="more text than the file has bytes"):
        read(path)


def test_values_of_another_type_are_not_loaded(tmp_path):
    rows = [usage(1, 1, MIB), usage(2, 2, MIB, device="x" * 1000, process=b"x" * 1000)]
    assert made(tmp_path, rows).reserved_peak == 2 * MIB

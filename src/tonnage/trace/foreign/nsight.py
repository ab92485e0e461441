"""Nsight Systems' exports: SQLite databases with the allocations that were requested from the CUDA driver.

nsys profile --cuda-memory-usage=true records them, nsys export --type=sqlite writes CUDA_GPU_MEMORY_USAGE_EVENTS
(start, globalPid, deviceId, address, bytes, memKind, memoryOperationType, name, localMemoryPool...), with the words of
its numbers in ENUM_CUDA_MEM_KIND and ENUM_CUDA_DEV_MEM_EVENT_OPER: docs.nvidia.com/nsight-systems, SQLite Schema
Reference. Databases of CUPTI's own records have CUPTI_ACTIVITY_KIND_MEMORY (one row from start to end) or _MEMORY2 (a
row for each operation), numbered as in cupti_activity.h. A PyTorch program requests its allocator's segments from the
driver.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed
from tonnage.trace.events import Allocation
from tonnage.trace.foreign._foreign import NOT_TOLD, Device, Foreign
from tonnage.trace.foreign._history import History, checked, notes_of, walk
from tonnage.user_files import file_size, open_regular

FORMAT = "Nsight Systems export"
MAGIC = b"SQLite format 3\x00"
USAGE, MEMORY, MEMORY2 = "CUDA_GPU_MEMORY_USAGE_EVENTS", "CUPTI_ACTIVITY_KIND_MEMORY", "CUPTI_ACTIVITY_KIND_MEMORY2"
MAX_ROWS = 1_000_000  # of one table
MAX_TABLES = 10_000  # an export has about a hundred
_MAX_VALUE = 1_000_000  # bytes of one value
_STEPS = 100_000  # of SQLite's machine, between two looks at how many there were
_MAX_LOOKS = 10_000
# by number, where a database has no table of words
NSIGHT_KINDS = ("pageable", "pinned", "device", "array", "managed", "device static", "managed static", "unknown")
CUPTI_KINDS = ("unknown", "pageable", "pinned", "device", "array", "managed", "device static", "managed static")
ON_DEVICE = ("device", "array", "device static")
_OPERATIONS = {USAGE: (0, 1), MEMORY2: (1, 2)}  # allocation, release
_ADVICE = "Record with nsys profile --cuda-memory-usage=true, then nsys export --type=sqlite."
_COLUMNS = (
    "bytes",
    "address",
    "deviceId",
    "globalPid",
    "processId",
    "memKind",
    "memoryKind",
    "memoryOperationType",
    "name",
    "end",
    "localMemoryPoolAddress",
    "localMemoryPoolSize",
)


class _Row(Struct, frozen=True, kw_only=True):
    """One allocation or free, in words. `pool`: the driver pool that it came from, which holds `pool_bytes`."""

    time: int
    allocates: bool
    bytes: int
    address: int
    process: int
    device: int
    kind: str
    name: str
    pool: int | None
    pool_bytes: int

    @property
    def on_device(self) -> bool:
        return self.kind in ON_DEVICE


def from_database(path: Path, device: int | None = None) -> Foreign:
    """Device memory of one GPU: `device`, or the one with most rows. Raises InvalidInput."""
    where = str(path)
    with open_regular(path) as file:  # SQLite opens it again, by its name
        texts = _Texts(where, file_size(file))
    try:
        database = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise InvalidInput(
            "{where} cannot be opened as an SQLite database: {error}.", where=where, error=error
        ) from None
    try:
        database.row_factory = sqlite3.Row
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        looks = iter(range(_MAX_LOOKS))
        database.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
        database.execute("PRAGMA trusted_schema = OFF")
        return _read(database, texts, where, device)
    except (sqlite3.Error, OverflowError, MemoryError) as error:
        raise InvalidInput(
            "{where} is no whole SQLite database of Nsight Systems: {error}.", where=where, error=error
        ) from None
    finally:
        database.close()


class _Texts:
    """Limits the total length of a database's texts. Cells of a broken file may share their pages, and a column's
    default value is in every row, so that a small file could return texts without end; an intact one returns no more
    than its own size.
    """

    def __init__(self, where: str, size: int):
        self.where, self.left = where, size

    def take(self, text: str) -> str:
        self.left -= len(text)
        if self.left < 0:
            raise InvalidInput(
                "{where}: its tables hold more text than the file has bytes: it is broken.", where=self.where
            )
        return text


def _read(database: sqlite3.Connection, texts: _Texts, where: str, wanted: int | None) -> Foreign:
    tables = _tables(database, where)
    table = next((name for name in (USAGE, MEMORY2, MEMORY) if name in tables), None)
    if table is None:
        raise InvalidInput(
            "{where} has no table {usage}: memory was not recorded. {advice}",
            where=where,
            usage=USAGE,
            advice=_ADVICE,
        )
    known = NSIGHT_KINDS if table == USAGE else CUPTI_KINDS
    kinds = dict(enumerate(known)) | _texts_by_number(database, tables, "ENUM_CUDA_MEM_KIND", "label", texts)
    kinds = {number: word.lower() for number, word in kinds.items()}
    strings = _texts_by_number(database, tables, "StringIds", "value", texts)
    rows = _operations(database, table, texts, strings, kinds)
    if not rows:
        raise InvalidInput(
            "{where}: table {table} is empty: no memory was recorded. {advice}",
            where=where,
            table=table,
            advice=_ADVICE,
        )
    actions = Counter(row.device for row in rows if row.on_device)
    if not actions:
        raise InvalidInput(
            "{where}: table {table} has no device memory, only {rows}.",
            where=where,
            table=table,
            rows=listed(sorted({row.kind for row in rows})),
        )
    if wanted is not None and wanted not in actions:
        raise InvalidInput(
            "{where} tells nothing of device {wanted}. It knows {actions}.",
            where=where,
            wanted=wanted,
            actions=listed(map(str, sorted(actions))),
        )
    chosen = actions.most_common(1)[0][0] if wanted is None else wanted
    devices = tuple(
        Device(f"cuda:{number}", count, _most(row for row in rows if row.device == number and row.on_device))
        for number, count in sorted(actions.items())
    )
    return _result(rows, chosen, devices, where)


def _most(rows: Iterable[_Row]) -> int:
    """The peak of held bytes."""
    return max(accumulate((row.bytes if row.allocates else -row.bytes for row in rows), initial=0))


def _result(rows: list[_Row], chosen: int, devices: tuple[Device, ...], where: str) -> Foreign:
    history, pools, others = History(), {}, Counter[str]()
    pooled = direct = 0
    for row in rows:
        if not row.on_device:
            others[row.kind] += row.bytes if row.allocates else 0
            continue
        if row.device != chosen:
            continue
        key, in_pool = (row.process, row.address), row.pool is not None
        if row.allocates:
            history.allocate(key, Allocation(row.bytes, 0, row.name))
        else:
            history.free(key, Allocation(row.bytes))
        if in_pool:
            pooled += 1
            pools[row.process, row.pool] = row.pool_bytes
        else:
            direct += row.bytes if row.allocates else -row.bytes
        history.hold(max(direct, 0) + sum(pools.values()))
    count, size = history.finish()
    if not pooled:
        history.reserved = []
    history.settle()
    peak, position, end, _ = walk(history, lambda size: size)
    reserved = max((held for _, held in history.reserved), default=peak)
    return Foreign(
        format=FORMAT,
        source=where,
        device=f"cuda:{chosen}",
        devices=devices,
        events=history.events,
        allocated_peak=peak if pooled else None,
        reserved_peak=max(reserved, peak),
        allocated_end=end if pooled else None,
        reserved_end=history.reserved[-1][1] if pooled else end,
        by_category=_named(history, position),
        notes=(*notes_of(history, count, size), *_notes(rows, others, bool(pooled))),
    )


def _named(history: History, position: int) -> dict[str, int]:
    return {NOT_TOLD: sum(history.by_category(position).values())}


def _notes(rows: list[_Row], others: Counter[str], pooled: bool) -> Iterator[str]:
    if not pooled:
        yield (
            "what the driver gave: what an allocator such as PyTorch's hands out of it, and segments that it "
            "maps page by page, are not in it"
        )
    for kind, size in others.items():
        yield Message(
            "{size:,} bytes of {kind} memory were asked for besides; they are not counted", size=size, kind=kind
        )
    if len({row.time for row in rows}) == 1 and len(rows) > 1:
        yield "all rows have the same time: their order may not be the program's"
    if not any(not row.allocates for row in rows):
        yield "no free was recorded: the peak is the sum of all allocations"


def _tables(database: sqlite3.Connection, where: str) -> set[str]:
    """Names of the tables that store their rows; views and virtual tables compute theirs."""
    rows = database.execute(
        f"SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 LIMIT {MAX_TABLES + 1}"
    )
    names = {str(name) for (name,) in rows}
    if len(names) > MAX_TABLES:
        raise InvalidInput(
            "{where} has more than {most_tables:,} tables, so it is no export of Nsight Systems.",
            where=where,
            most_tables=MAX_TABLES,
        )
    return names


def _columns(database: sqlite3.Connection, table: str, where: str) -> set[str]:
    """Columns that are stored; InvalidInput where one is computed (generated), which an export never has."""
    columns = list(database.execute(f"PRAGMA table_xinfo({table})"))
    computed = [row["name"] for row in columns if row["hidden"]]
    if computed:
        raise InvalidInput(
            "{where}: table {table} computes its column {computed}; an export stores its columns.",
            where=where,
            table=table,
            computed=shown(computed[0]),
        )
    return {row["name"] for row in columns}


def _whole(column: str) -> str:
    """SQL for a whole number of a column, NULL for a value of another type, which is not loaded."""
    return _typed(column, "integer")


def _name(column: str) -> str:
    """SQL for a number or a text of a column, NULL for other types."""
    return _typed(column, "integer", "text")


def _typed(column: str, *types: str) -> str:
    name, listed = f'"{column}"', ",".join(map(repr, types))
    return " ".join(("CASE WHEN typeof(", name, ") IN (", listed, ") THEN", name, "END AS", name))


def _operations(
    database: sqlite3.Connection, table: str, texts: _Texts, strings: Mapping[int, str], kinds: Mapping[int, str]
) -> list[_Row]:
    """One row for each allocation and free, in order of time."""
    where = texts.where
    columns = _columns(database, table, where)
    time = "timestamp" if "timestamp" in columns else "start"
    missing = sorted({time, "bytes", "address"} - columns)
    if missing:
        raise InvalidInput(
            "{where}: table {table} has no column {missing}.", where=where, table=table, missing=listed(missing)
        )
    selected = ", ".join(
        _name(name) if name == "name" else _whole(name) for name in (time, *_COLUMNS) if name in columns
    )
    allocations: list[_Row] = []
    # Neither COUNT nor ORDER BY: on a broken file, SQLite would count or sort without end.
    for count, row in enumerate(database.execute(f"SELECT {selected} FROM {table} LIMIT {MAX_ROWS + 1}")):
        if count == MAX_ROWS:
            raise InvalidInput(
                "{where}: table {table} has more than {most_rows:,} rows: record less.",
                where=where,
                table=table,
                most_rows=MAX_ROWS,
            )
        if table == MEMORY:
            allocations += _from_to(row, texts, kinds)
            continue
        operation = _number(row, "memoryOperationType")
        if operation in _OPERATIONS[table]:
            allocations.append(_row(row, time, operation == _OPERATIONS[table][0], texts, strings, kinds))
    return sorted(allocations, key=lambda entry: (entry.time, table == MEMORY and entry.allocates))


def _from_to(row: sqlite3.Row, texts: _Texts, kinds: Mapping[int, str]) -> Iterator[_Row]:
    yield _row(row, "start", True, texts, {}, kinds)
    if _number(row, "end"):
        yield _row(row, "end", False, texts, {}, kinds)


def _row(
    row: sqlite3.Row, time: str, allocates: bool, texts: _Texts, strings: Mapping[int, str], kinds: Mapping[int, str]
) -> _Row:
    name = row["name"] if "name" in row.keys() else ""  # noqa: SIM118 - a Row's `in` looks at values
    kind = _number(row, "memKind", "memoryKind")
    pool = _number(row, "localMemoryPoolAddress")
    return _Row(
        time=_number(row, time) or 0,
        allocates=allocates,
        bytes=checked(row["bytes"], texts.where),
        address=_number(row, "address") or 0,
        process=_number(row, "globalPid", "processId") or 0,
        device=_number(row, "deviceId") or 0,
        kind="device" if kind is None else kinds.get(kind, "unknown"),
        pool=pool or None,
        name=(strings.get(name, "") if isinstance(name, int) else texts.take(name or ""))[:200],
        pool_bytes=checked(_number(row, "localMemoryPoolSize") or 0, texts.where, "a pool"),
    )


def _number(row: sqlite3.Row, *names: str) -> int | None:
    """The value of the first of the columns that exists."""
    for name in names:
        if name in row.keys():  # noqa: SIM118 - a Row's `in` looks at values
            value = row[name]
            return value if isinstance(value, int) else None
    return None


def _texts_by_number(
    database: sqlite3.Connection, tables: set[str], table: str, column: str, texts: _Texts
) -> dict[int, str]:
    """The words of numbers, from the database's own table; empty where it has none."""
    if table not in tables or not {"id", column} <= _columns(database, table, texts.where):
        return {}
    rows = database.execute(f"SELECT {_whole('id')}, {_name(column)} FROM {table} LIMIT {MAX_ROWS}")
    return {number: texts.take(str(text)) for number, text in rows if number is not None and text is not None}

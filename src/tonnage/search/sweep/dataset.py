"""The dataset of a sweep: a directory of Parquet files, one for each chunk, named by the chunk's number and written
whole or not at all.

A chunk that is made twice writes the same bytes to the same name, so nothing is in the dataset twice whoever dies when.
What is done is
what lies there: no other record is kept.
"""

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.tasks import Tasks

FOLDER = "plans"
MAGIC = b"PAR1"
FACTS = b"tonnage"  # key of a file's own facts in its footer
WRITING = ".writing"
MANY = ("plan", "needed_bytes")  # whole numbers of which most rows have one of their own


class Unwritable(OSError):
    """A part cannot be written: the disk is full, or the directory is not ours."""


@cache
def arrow() -> Any:
    """The module pyarrow with pyarrow.parquet; MissingDatum where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDatum("a sweep writes Parquet, which needs pyarrow: pip install 'tonnage[cluster]'.") from None
    return pyarrow


def part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"


# ---- writing ----


def table(spec: Spec, rows: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Any:
    """Rows as a typed table; `facts` of the chunk go with it."""
    pa = arrow()
    schema = schema_of(spec).with_metadata({FACTS: json.dumps(facts, sort_keys=True).encode()})
    if not any(len(values) for values in rows.values()):  # every plan was ruled out, or none is kept
        return schema.empty_table()
    return pa.Table.from_arrays([_column(spec, field, rows[field.name]) for field in schema], schema=schema)


def schema_of(spec: Spec) -> Any:
    """Columns and their types: the same in all parts of a sweep."""
    pa = arrow()
    words, size, large, real = pa.dictionary(pa.int32(), pa.string()), pa.int32(), pa.int64(), pa.float64()
    if spec.kind == "train":
        from tonnage.estimate.plan_columns import COLUMNS
        from tonnage.search.sweep.post_training import SHARE, is_generating
        from tonnage.search.sweep.training import CHOSEN

        columns = {"plan": large, "model": words, "cluster": words, "accelerators": size}
        columns |= {name: pa.int8() if name == "zero_stage" else words for name in CHOSEN}
        columns |= dict.fromkeys(COLUMNS, large)
        results = {
            "global_batch_size": large,
            "needed_bytes": large,
            "usable_bytes": large,
            "fits": pa.bool_(),
            "step_seconds": real,
            "tokens_per_second": real,
            "step_usd": real,
            "usd_per_million_tokens": real,
        } | ({SHARE: real} if is_generating(spec) else {})
    else:
        columns = {
            "plan": large,
            "point": size,
            "model": words,
            "cluster": words,
            "accelerators": size,
            "engine": words,
            "weights": words,
        }
        columns |= dict.fromkeys(
            ("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "concurrency"), large
        )
        results = dict.fromkeys(
            (
                "tokens_per_second_per_user",
                "tokens_per_second_per_accelerator",
                "ttft_seconds",
                "tpot_seconds",
                "usd_per_million_output_tokens",
            ),
            real,
        ) | {"pareto": pa.bool_()}
    for axis in spec.outer:
        if axis.name not in columns:
            columns[axis.name] = _type(pa, axis.values, words)
    return pa.schema(list((columns | results).items()))


def _type(pa: Any, values: tuple[Any, ...], words: Any) -> Any:
    if all(isinstance(value, bool) for value in values):
        return pa.bool_()
    if all(isinstance(value, int) for value in values):
        return pa.int64()
    return pa.float64() if all(isinstance(value, int | float) for value in values) else words


def _column(spec: Spec, field: Any, values: np.ndarray) -> Any:
    pa = arrow()
    names = {"model": spec.models, "cluster": spec.clusters}.get(field.name)
    if names is not None:  # digits
        used, digit = _told_apart(values)
        return pa.DictionaryArray.from_arrays(
            pa.array(digit, pa.int32()), pa.array([names[index] for index in used], pa.string())
        )
    if values.dtype == object:  # an option that does not apply to some rows
        return _with_gaps(field, values)
    if field.name == "fits":  # 1 it fits, 0 it does not, -1 the error band says neither
        return pa.array(values == 1, mask=values < 0)
    if pa.types.is_dictionary(field.type):
        used, digit = _told_apart(values)
        return pa.DictionaryArray.from_arrays(
            pa.array(digit, pa.int32()), pa.array([str(index) for index in used], pa.string())
        )
    if pa.types.is_floating(field.type):
        real = values.astype(np.float64)
        return pa.array(real, mask=~np.isfinite(real))
    return pa.array(values.astype(field.type.to_pandas_dtype()), field.type)


def _with_gaps(field: Any, values: np.ndarray) -> Any:
    """A column of an option with no value where the option does not apply."""
    pa = arrow()
    if not pa.types.is_dictionary(field.type):
        return pa.array(list(values), field.type)
    return pa.array([None if value is None else str(value) for value in values], pa.string()).dictionary_encode()


def _told_apart(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The values that there are, and for each row which; mostly there is one alone, and sorting words is slow."""
    if (values == values[0]).all():
        return [values[0]], np.zeros(len(values), dtype=np.int32)
    used, digit = np.unique(values, return_inverse=True)
    return list(used), digit.reshape(-1).astype(np.int32)


def write_part(folder: Path, number: int, table: Any) -> int:
    """Bytes of the file, which is there whole or not at all: written under another name, then renamed."""
    pa = arrow()
    sink = pa.BufferOutputStream()
    real = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    few = [
        name for name in table.column_names if name not in (*MANY, *real)
    ]  # the others are all unlike: a dictionary of them is wasted
    pa.parquet.write_table(
        table, sink, compression="zstd", write_page_checksum=True, use_dictionary=few, use_byte_stream_split=real
    )
    data = sink.getvalue()
    write_whole(folder / part_name(number), data)
    return len(data)


def write_whole(path: Path, data: Any) -> None:
    """All of it under this name, or nothing; Unwritable says why."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}{WRITING}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise Unwritable(
            error.errno, Message("cannot write {path}: {strerror}", path=path, strerror=error.strerror or error)
        ) from None


# ---- what is there ----


def done(folder: Path, tasks: Tasks, digest: str) -> bytearray:
    """For each chunk 1 if its part is there and whole, by its footer. What is not whole is taken away, and so are
    files half written.
    """
    tidy(folder)
    is_done = bytearray(tasks.count)
    if not folder.is_dir():
        return is_done
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        if (number := _number(name)) is not None and number < tasks.count:
            if is_whole(folder / name, digest):
                is_done[number] = 1
            else:
                (folder / name).unlink(missing_ok=True)
    return is_done


def is_whole(path: Path, digest: str) -> bool:
    """Whether this is a whole part, by its footer, of the sweep with this digest."""
    footer_facts = facts(path)
    return footer_facts is not None and footer_facts.get("sweep") == digest


def tidy(folder: Path) -> None:
    """Files that a worker which was killed did not come to rename. One that still lives and loses its file writes no
    part, and nobody waits for it.
    """
    for path in folder.glob(f".*{WRITING}"):
        path.unlink(missing_ok=True)


def _number(name: str) -> int | None:
    digits = name.removeprefix("part-").removesuffix(".parquet")
    return int(digits) if digits.isdecimal() and name == part_name(int(digits)) else None


def facts(path: Path) -> dict[str, Any] | None:
    """The facts in a part's footer; None where the file is cut short, empty, or no part of a sweep."""
    pa = arrow()
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(size - 8, 0))
            tail = file.read(8)
        footer = pa.parquet.read_metadata(path)
        stored = json.loads((footer.metadata or {})[FACTS])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return None
    if tail[4:] != MAGIC or _last_page_end(footer) + int.from_bytes(tail[:4], "little") + 8 > size:
        return None
    return stored if isinstance(stored, dict) else None


def _last_page_end(footer: Any) -> int:
    """The byte at which the last page ends."""
    ends = [4]
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns):
            chunk = footer.row_group(group).column(column)
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            ends.append((start or 4) + chunk.total_compressed_size)
    return max(ends)


def rows_of(path: Path, columns: list[str] | None = None) -> Any:
    """The rows of a part, every page checked against its sum; None where one is damaged."""
    pa = arrow()
    try:
        with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns=columns)
    except (OSError, ValueError, pa.ArrowException):
        return None


def check_extra() -> None:
    """Raise MissingDatum before the work where Parquet cannot be written."""
    arrow()

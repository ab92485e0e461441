"""One chunk: from its number to its part of the dataset. Everything that a worker needs is in the Job, and fits in a
message.
"""

import gc
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from tonnage.kernel.errors import MissingDatum
from tonnage.search.removed import Tally
from tonnage.search.sweep import dataset
from tonnage.search.sweep.keep import kept
from tonnage.search.sweep.manifest import estimator
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.tasks import Tasks


class Job(Struct, frozen=True, kw_only=True):
    """What all chunks share. `estimator`: the digest of the package that the driver runs; `digest`: that of the
    sweep.
    """

    spec: Spec
    folder: str
    digest: str
    estimator: str


class Lost(MissingDatum):
    """Nobody is left to make the chunks that are missing."""


class Report(Struct, frozen=True, kw_only=True):
    """What became of a chunk. `failed`: why it could not be computed; `unwritable`: why its part could not be
    written.
    """

    number: int
    plans: int = 0
    rows: int = 0
    size: int = 0
    seconds: float = 0
    processor_seconds: float = 0
    peak_rss: int = 0
    failed: str = ""
    unwritable: str = ""


def attempt(job: Job, number: int) -> Report:
    """Compute a chunk and write its part. What goes wrong is in the report, so that one chunk does not end a sweep."""
    start, processor = time.perf_counter(), time.process_time()
    try:
        if estimator() != job.estimator:
            return Report(
                number=number, failed="this worker runs another tonnage, catalogue or estimator than the driver does"
            )
        tasks = Tasks(job.spec)
        table = chunk(job, tasks, number)
        size = dataset.write_part(Path(job.folder), number, table)
        _tidy()
        return Report(
            number=number,
            plans=tasks.plans_of(number),
            rows=table.num_rows,
            size=size,
            seconds=time.perf_counter() - start,
            processor_seconds=time.process_time() - processor,
            peak_rss=peak_rss(),
        )
    except dataset.Unwritable as error:
        return Report(number=number, unwritable=str(error.strerror or error))
    except Exception as error:  # noqa: BLE001 (a worker goes on with the next chunk, and the driver names this one)
        return Report(number=number, failed=f"{type(error).__name__}: {error}"[:500])


def chunk(job: Job, tasks: Tasks, number: int) -> Any:
    """The table of a chunk, with its counts. The same number gives the same bytes."""
    if job.spec.kind == "train":
        from tonnage.search.sweep.training import rows
    else:
        from tonnage.search.sweep.serving import rows
    tally, fitting, parts = Tally(), 0, []
    for part in tasks.parts(number):
        columns = rows(job.spec, tasks, part, tally)
        if columns:
            fitting += int(np.count_nonzero(columns["fits"] == 1)) if "fits" in columns else len(columns["plan"])
            parts.append(columns)
    joined = (
        {name: np.concatenate([part_columns[name] for part_columns in parts]) for name in parts[0]} if parts else {}
    )
    facts = {
        "chunk": number,
        "sweep": job.digest,
        "considered": tally.considered,
        "valid": tally.left,
        "fitting": fitting,
        "removed": {removal.constraint: removal.plans for removal in tally},
        "without": tally.without,
    }
    return dataset.table(job.spec, kept(job.spec, joined), facts)


@cache
def _settled() -> None:
    """What the first chunk has imported and read stays: it is not looked through again."""
    gc.freeze()


def _tidy() -> None:
    """The walks of plans refer to themselves and hold arrays: few objects, so Python would wait for long, and much
    memory.
    """
    gc.collect()
    _settled()


def peak_rss() -> int:
    """The most bytes of memory that this process has held."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

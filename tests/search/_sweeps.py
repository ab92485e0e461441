"""Small sweeps for tests, and what their datasets must hold."""

import hashlib
import io
import os
import signal
from pathlib import Path

from tonnage.kernel.errors import InvalidInput
from tonnage.search.sweep.progress import Progress
from tonnage.search.sweep.spec import parse
from tonnage.search.sweep.tasks import Tasks
from tonnage.search.sweep.work import Report, attempt

# Every plan is one that can be: the number of rows is the product of the axes.
FIELDS = {
    "models": ["gpt2", "llama-3.1-8b"],
    "on": ["h100", "8xh100"],
    "options": {"recompute": "full"},
    "vary": {
        "sequence_length": [256, 512, 1024],
        "micro_batch_size": {"from": 1, "to": 8},
        "num_microbatches": {"from": 1, "to": 64},
    },
    "chunk_plans": 192,
}
TEXT = """\
models: [gpt2, llama-3.1-8b]
on: [h100, 8xh100]
options: {recompute: full}
vary:
  sequence_length: [256, 512, 1024]
  micro_batch_size: {from: 1, to: 8}
  num_microbatches: {from: 1, to: 64}
chunk_plans: 192
"""
ROWS = 2 * 2 * 3 * 8 * 64


def small(**changes):
    return parse({**FIELDS, **changes})


def digests(directory):
    """Name and bytes of every part."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((Path(directory) / "plans").iterdir())
    }


def plans_in(directory):
    """The numbers of all plans of a dataset, in the order of its files."""
    import pyarrow.dataset

    return (
        pyarrow.dataset.dataset(Path(directory) / "plans", format="parquet")
        .to_table(columns=["plan"])["plan"]
        .to_pylist()
    )


def holds_every_plan_once(directory, spec):
    """Nothing lost, nothing twice."""
    return sorted(plans_in(directory)) == list(range(Tasks(spec).plans))


class After(Progress):
    """Does something when so many chunks are back."""

    def __init__(self, plans, lay, *, reports, do):
        super().__init__(plans, lay, stream=io.StringIO())
        self.left, self.do = reports, do

    def __call__(self, plans):
        super().__call__(plans)
        self.left -= 1
        if self.left == 0:
            self.do()


def when(reports, do):
    """For the argument `progress` of a sweep."""
    return lambda plans, lay: After(plans, lay, reports=reports, do=do)


# ---- what workers can be told to do instead of their work; they import this file ----


def dies_of_three(job, number):
    """Chunk 3 kills whoever takes it."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return Report(number=number, plans=1)


def never_lives(job, number):
    os._exit(7)


def writes_and_dies_of_three(job, number):
    """The worker of chunk 3 writes its part and is killed before it reports."""
    found = attempt(job, number)
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return found


# ---- what the process of Ray's driver can be told to do ----


def drives_alone(job, address, workers, numbers):
    for number in numbers:
        yield attempt(job, number)


def is_killed_after_three(job, address, workers, numbers):
    """As Ray's library ends the process when the agent of its node has died."""
    for count, number in enumerate(numbers):
        if count == 3:
            os._exit(1)
        yield attempt(job, number)


def cannot_join(job, address, workers, numbers):
    raise InvalidInput(f"--ray {address}: nothing answers there.")
    yield


def loses_the_cluster(job, address, workers, numbers):
    yield attempt(job, next(iter(numbers)))
    raise ConnectionError("failed to connect to GCS")


def waits_for_ever(job, address, workers, numbers):
    yield attempt(job, next(iter(numbers)))
    signal.pause()

"""The same chunks on Ray: tasks without state, a bounded number of them at a time, retried by Ray when a worker or
its node is lost.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.search.sweep.work import Job, Report, attempt

RETRIES = 2  # after the first try, as local.TRIES has it
AHEAD = 2  # chunks submitted for each processor: one runs, one waits
PATIENCE = 10  # seconds until a cluster must have answered
LOOK = 5  # seconds after which processors that joined or left are counted again
STORE = 128 * 2**20  # bytes of a started Ray's object store: reports are small


@contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[Any]:
    """Ray, joined at this address, or started here; no page of its own, and nothing is reported to anyone."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will have it: it warns otherwise
    try:
        import ray
    except ImportError:
        raise MissingDatum(
            "--ray needs Ray: pip install 'tonnage[cluster]'. Without --ray the sweep runs on processes of "
            "this machine."
        ) from None
    if ray.is_initialized():  # the caller's own, which stays
        yield ray
        return
    _check_answers(address)
    here: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": STORE}
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(**({"address": address} if address else here), log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            "--ray {address}: no Ray answers: {error}",
            address=address or "",
            error=" ".join(str(error).split())[:300],
        ) from None
    _give_back(before)
    try:
        yield ray
    finally:
        ray.shutdown()


def _give_back(handlers: Mapping[Any, Any]) -> None:
    """Ray takes signals for itself, and aborts on SIGTERM: here a sweep ends as it does without Ray."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _check_answers(address: str | None) -> None:
    """Check that the address answers: Ray itself waits for minutes where nothing does."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            "--ray {address}: nothing answers there: {error}. `ray start --head` prints its address.",
            address=address,
            error=error,
        ) from None


def drive(job: Job, address: str | None, workers: int | None, numbers: Iterable[int]) -> Generator[Report]:
    """Join or start Ray, and make the chunks."""
    with connected(address, workers) as ray:
        yield from reports(ray, job, numbers, workers)


def is_joined() -> bool:
    """Whether the caller has joined Ray in this process already."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(getattr(ray, "is_initialized", bool)())


def reports(ray: Any, job: Job, numbers: Iterable[int], workers: int | None) -> Generator[Report]:
    """One report for each chunk, as they come; as many are in flight as there are processors, and as many wait."""
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(attempt)
    shared = ray.put(job)
    waiting = iter(numbers)
    flying: dict[Any, int] = {}
    room, looked = 0, 0.0
    try:
        while True:
            if time.monotonic() - looked > LOOK or not room:
                room, looked = _room(ray, workers), time.monotonic()
            flying |= {remote.remote(shared, number): number for number in islice(waiting, max(room - len(flying), 0))}
            if not flying:
                return
            ready, _ = ray.wait(list(flying), num_returns=1, timeout=LOOK)
            for ref in ready:
                number = flying.pop(ref)
                try:
                    yield ray.get(ref)
                except ray.exceptions.RayError as error:
                    why = str(error).strip().splitlines()
                    yield Report(number=number, failed=f"{type(error).__name__}: {why[0] if why else ''}"[:300])
    finally:
        for ref in flying:
            ray.cancel(ref, force=True)


def _room(ray: Any, workers: int | None) -> int:
    """The number of chunks that may be in flight."""
    processors = int(ray.cluster_resources().get("CPU", 0))
    return AHEAD * max(min(processors, workers or processors), 1)

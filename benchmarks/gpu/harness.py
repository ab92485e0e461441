"""Each case in a process of its own: what fails, hangs or runs out of memory takes nothing with it.

Where it can, the process is a fork of this one, which has imported torch and never touches a GPU: that saves the
seconds of the import for each case. Cases with an environment of their own, and `fresh`, start an interpreter anew.
"""

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from gpu.cases import Case
from gpu.store import Store

RUN = Path(__file__).with_name("run.py")
LOG = "last-case.log"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`status`: done, crashed or timeout."""

    status: str
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a process needs to know. `environment`: of the device, asked once; `seconds`: it may take so long."""

    case: Case
    items: tuple[str, ...]
    folder: Path
    device: str
    environment: dict[str, Any]
    seconds: float
    tiny: bool = False


def start(job: Job, fresh: bool = False) -> Outcome:
    """Runs a job to its end or to its limit."""
    anew = fresh or bool(job.case.environment) or not hasattr(os, "fork")
    return _fresh(job) if anew else _forked(job)


def work(job: Job) -> None:
    """Inside the process: the case's function, on the device."""
    from gpu.context import Context
    from tonnage.measure.device import open_device
    from tonnage.measure.environment import allocator

    if job.device == "cpu":
        import torch

        torch.set_num_threads(1)  # tiny cases: more threads only wait for each other
    module, _, function = job.case.work.partition(":")
    context = Context(
        device=open_device(job.device),
        environment={**job.environment, "allocator": allocator()},
        store=Store(job.folder),
        items=job.items,
        deadline=time.monotonic() + max(0.85 * job.seconds, job.seconds - 5),
        name=job.case.name,
    )
    getattr(import_module(f"gpu.{module}"), function)(context, job.case.what)


def probe(device: str, folder: Path, fresh: bool) -> dict[str, Any]:
    """Device, driver and versions, asked in another process, since this one must not touch the GPU. Raises what that
    one raised.
    """
    path = folder / "device.json"
    path.unlink(missing_ok=True)
    if fresh or not hasattr(os, "fork"):
        outcome = _waited(
            [sys.executable, str(RUN), "--probe", "--device", device, "--out", str(folder)], {}, folder, 120
        )
    else:
        outcome = _in_fork(lambda: write_probe(device, path), folder, 120)
    found = (
        json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"error": outcome.message or outcome.status}
    )
    if "error" in found:
        from tonnage.kernel.errors import MissingDatum

        raise MissingDatum(found["error"])
    path.unlink()
    return dict(found)


def write_probe(device: str, path: Path) -> None:
    from tonnage.kernel.errors import TonnageError
    from tonnage.measure.device import open_device
    from tonnage.measure.environment import environment

    try:
        found = environment(open_device(device))
    except TonnageError as error:
        found = {"error": str(error)}
    path.write_text(json.dumps(found), encoding="utf-8")


def _forked(job: Job) -> Outcome:
    return _in_fork(lambda: work(job), job.folder, job.seconds)


def _in_fork(call: Callable[[], None], folder: Path, seconds: float) -> Outcome:
    import multiprocessing

    process = multiprocessing.get_context("fork").Process(target=_quietly, args=(call, folder / LOG))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return Outcome(status="timeout", message=f"it was stopped after {seconds:.0f} s. {_tail(folder)}")
    if process.exitcode == 0:
        return Outcome(status="done")
    return Outcome(status="crashed", message=f"status {process.exitcode}. {_tail(folder)}")


def _quietly(call: Callable[[], None], log: Path) -> None:
    """In the fork: what is printed goes to a file, and errors are its last lines."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    try:
        call()
    except BaseException:  # noqa: BLE001 - whatever it is, it ends this case alone
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)  # without the clean-up of what was forked


def _fresh(job: Job) -> Outcome:
    asked = json.dumps({"items": job.items, "environment": job.environment, "seconds": job.seconds})
    command = [
        sys.executable,
        str(RUN),
        "--work",
        job.case.name,
        "--device",
        job.device,
        "--out",
        str(job.folder),
        *(["--tiny"] if job.tiny else []),
    ]
    return _waited(command, {**job.case.environment, "TONNAGE_JOB": asked}, job.folder, job.seconds)


def _waited(command: list[str], environment: dict[str, str], folder: Path, seconds: float) -> Outcome:
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return Outcome(status="timeout", message=f"it was stopped after {seconds:.0f} s. {_tail(folder)}")
    return (
        Outcome(status="done")
        if status == 0
        else Outcome(status="crashed", message=f"status {status}. {_tail(folder)}")
    )


def _tail(folder: Path) -> str:
    try:
        return (folder / LOG).read_text(encoding="utf-8", errors="replace").strip()[-1500:]
    except OSError:
        return ""

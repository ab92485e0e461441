"""The host: the kernel's OOM killer, schedulers and containers, PyTorch's own memory there, /dev/shm.

Sources: torch 2.13 (libc10.so, libtorch_cpu.so, libtorch_python.so, torch/utils/data/dataloader.py), NCCL
(src/misc/shmutils.cc), Linux (mm/oom_kill.c), Slurm (slurmstepd), Kubernetes (OOMKilled), Ray (memory_monitor).
"""

from typing import Any

from tonnage.interchange.diagnose.numbers import NUMBER, SIZE
from tonnage.interchange.diagnose.patterns import FAILED, FOLLOWS, SAYS_CAUSE, LinePattern, fact, failure

_N = NUMBER
HOST = "host"


def _memory(hint: str, pattern: str = "", strength: int = SAYS_CAUSE, **units: Any) -> LinePattern:
    return failure(HOST, hint, pattern, phase="host", cause="host memory", strength=strength, host=True, **units)


def _shared(hint: str, pattern: str = "", strength: int = SAYS_CAUSE, **units: Any) -> LinePattern:
    return failure(HOST, hint, pattern, phase="host", cause="shared memory", strength=strength, host=True, **units)


FAILURES = (
    _memory("Out of memory: Kill", r"Out of memory: Kill(?:ed)? process (?P<process>\d+)", process=""),
    _memory("out of memory: Killed process", r"Killed process (?P<process>\d+)", process=""),
    _memory("oom-kill:constraint"),
    _memory("oom-kill event", r"[Dd]etected \d+ oom-kill event"),
    _memory("oom_kill event", r"[Dd]etected \d+ oom_kill event"),
    _memory("invoked oom-killer"),
    _memory("OOMKilled"),
    _memory("task 0: Out Of Memory"),
    _memory("killed due to the node running low on memory"),
    _memory("ray.exceptions.OutOfMemoryError"),
    _memory("were killed due to memory pressure (OOM)"),
    _memory(
        "DefaultCPUAllocator: ",
        r"DefaultCPUAllocator: (?:can't allocate memory: you tried to allocate (?P<tried>\d+) bytes|not enough memory: "
        r"you tried to allocate (?P<tried_2>\d+) bytes)",
        tried="bytes",
        tried_2="bytes",
    ),
    _memory("numpy.core._exceptions", rf"Unable to allocate (?P<tried>{SIZE})", tried="size"),
    _memory("numpy._core._exceptions", rf"Unable to allocate (?P<tried>{SIZE})", tried="size"),
    _memory("OSError: [Errno 12] Cannot allocate memory"),
    _memory("errno: Cannot allocate memory"),
    _memory("std::bad_alloc"),
    _memory("MemoryError", r"^(?:E +)?MemoryError(?:$|:)"),
    _memory("CachingHostAllocator", r"CachingHostAllocator.{0,120}(?:out of memory|failed)", FAILED),
    _memory("cudaHostAlloc", r"cudaHostAlloc.{0,80}out of memory", FAILED),
    _memory("cudaHostRegister", r"cudaHostRegister.{0,120}(?:out of memory|failed)", FAILED),
    _memory("exitcode  : -9", strength=FOLLOWS),
    _memory("exitcode: -9", strength=FOLLOWS),
    _memory("return code = -9", strength=FOLLOWS),
    _memory("137", r"(?i)\bexit(?:ed|s|ing)?(?: with)?(?: (?:status|code))?[:=]?\s{0,8}\(?137\b", FOLLOWS),
    _memory("WinError 1455"),
    _memory("SIGKILL", r"(?:Signal 9 \(SIGKILL\)|died with <Signals\.SIGKILL)", FOLLOWS),
    _memory("Killed", r"^(?:[\w./-]{1,120}: line \d+: +)?(?:\d+ )?Killed\b", FOLLOWS),
    _memory("is killed by signal: Killed", strength=FAILED),
    _shared("This might be caused by insufficient shared memory"),
    _shared("workers are out of shared memory"),
    _shared("is killed by signal: Bus error"),
    _shared("unable to allocate shared memory(shm)", r"for file <.{0,120}>: (?:Resource temp|No space|Success)?"),
    _shared("unable to open shared memory object", strength=FAILED),
    _shared("unable to mmap", r"unable to mmap \d+ bytes from file </(?:torch_|dev/shm).{0,120}Cannot allocate memory"),
    _memory(
        "unable to mmap", r"unable to mmap \d+ bytes from file <(?!/torch_|/dev/shm).{0,200}Cannot allocate memory"
    ),
    _shared("unable to write to file </torch_", r"No space left on device"),
    _shared(
        "Error while creating shared memory segment",
        r"segment /dev/shm/\S{1,80}(?: \(size (?P<tried>\d+)\))?",
        tried="bytes",
    ),
    _shared("failed to extend /dev/shm", r"to (?P<tried>\d+) bytes", tried="bytes"),
    _shared("/dev/shm", r"No space left on device.{0,80}/dev/shm|/dev/shm.{0,120}No space left on device"),
    _shared("Bus error (core dumped)", strength=FAILED),
    _shared("Signal: Bus error (7)", strength=FAILED),
    _shared("SIGBUS", strength=FOLLOWS),
)

FACTS = (
    fact(HOST, "total-vm:", r"total-vm:\d+kB, anon-rss:(?P<in_use_on_host>\d+)kB", in_use_on_host="kib"),
    fact(HOST, "CPU Virtual Memory", rf"used = (?P<in_use_on_host>{_N}) GB", in_use_on_host="gib"),
)

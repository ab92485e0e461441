"""NVIDIA's driver's figures of a GPU and of this process, from NVML, or from nvidia-smi where NVML's Python package is
missing.
"""

import os
import subprocess
from typing import Any

_SECONDS = 10
_MIB = 2**20
_REFUSALS = ("[", "Field", "No ", "N/A")
_STATE = {
    "driver": "driver_version",
    "power_limit_w": "power.limit",
    "sm_clock_max_mhz": "clocks.max.sm",
    "memory_clock_max_mhz": "clocks.max.mem",
    "ecc": "ecc.mode.current",
    "mig": "mig.mode.current",
}


def process_bytes() -> int | None:
    """Bytes of this process on all GPUs; None where the driver does not report them.

    Inside a container the driver may report process ids of the machine outside: a single process is then taken to be
    this one.
    """
    listed = _nvml_processes()
    if not listed:
        listed = _smi_processes()
    own = [size for process, size in listed if process == os.getpid() and size is not None]
    if own:
        return sum(own)
    return listed[0][1] if len(listed) == 1 else None


def state(index: int = 0) -> dict[str, str]:
    """The driver's version, and the settings of a GPU that affect figures; what the driver does not report is left
    out.
    """
    answers = _query(index, ",".join(_STATE.values()))
    if len(answers) != len(_STATE):  # a driver refuses a whole query for a field that it does not know
        answers = [",".join(_query(index, query)) for query in _STATE.values()]
    return {
        name: answer
        for name, answer in zip(_STATE, answers, strict=True)
        if answer and not answer.startswith(_REFUSALS)
    }


def used_bytes(index: int = 0) -> int | None:
    """Bytes in use on a GPU, read without creating a context on it."""
    answer = _query(index, "memory.used")
    return int(answer[0]) * _MIB if len(answer) == 1 and answer[0].isdecimal() else None


def _query(index: int, fields: str) -> list[str]:
    """The fields of a GPU, by its number among those visible to programs."""
    visible = [device.strip() for device in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if device.strip()]
    which = visible[index] if index < len(visible) else str(index)
    lines = _run("nvidia-smi", f"--id={which}", f"--query-gpu={fields}", "--format=csv,noheader,nounits").splitlines()
    return [part.strip() for part in lines[0].split(",")] if len(lines) == 1 else []


def _nvml_processes() -> list[tuple[int, int | None]]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        processes = [process for handle in handles for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except (pynvml.NVMLError, AttributeError, OSError):
        return []
    return [(int(process.pid), _whole(process.usedGpuMemory)) for process in processes]


def _whole(size: Any) -> int | None:
    """The size; None where NVML returns None or the largest 64-bit number, for figures it may not report."""
    return int(size) if isinstance(size, int) and 0 <= size < 2**60 else None


def _smi_processes() -> list[tuple[int, int | None]]:
    processes: list[tuple[int, int | None]] = []
    for line in _run(
        "nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"
    ).splitlines():
        process, _, size = (part.strip() for part in line.partition(","))
        if process.isdecimal():
            processes.append((int(process), int(size) * _MIB if size.isdecimal() else None))
    return processes


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""

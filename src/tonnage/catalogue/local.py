"""`--on local`: the accelerators of this machine, from NVML, nvidia-smi, ROCm or macOS, in that order."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from tonnage.catalogue import toml_files
from tonnage.catalogue.accelerators import accelerator
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import listed
from tonnage.kernel.units import MIB
from tonnage.spec import Accelerator, Cluster, Fact

SECONDS = 10


class Found(NamedTuple):
    """An accelerator by its driver's name, with its total bytes as the driver reports them, and as programs get them,
    where the driver states it.

    NVIDIA's driver states what it and the firmware keep ("reserved", since version 510): the total without it is what
    cudaMemGetInfo returns. For AMD both totals are the same.
    """

    name: str
    reported: int | None
    runtime: int | None = None
    source: str = ""


def local_cluster() -> Cluster:
    """All accelerators of this machine, which must be equal; MissingDatum if none is visible."""
    detected = detect()
    if not detected:
        raise MissingDatum(
            "this machine shows no accelerator (asked NVML, nvidia-smi, rocm-smi and macOS). "
            "Name one, for example rtx-4090, or a CPU from `tonnage accelerators`."
        )
    if len({device.name for device in detected}) > 1:
        known = listed(sorted({device.name for device in detected}))
        raise InvalidInput(
            "this machine has unlike accelerators ({known}). Name the ones to use, for example 8xrtx-4090.",
            known=known,
        )
    return Cluster(accelerator=_described(detected[0]), accelerators_per_node=len(detected))


def detect() -> list[Found]:
    """Name and memory of each accelerator, from the first source that answers."""
    for ask in (_nvml, _nvidia_smi, _rocm_smi, _macos):
        detected = ask()
        if detected:
            return detected
    return []


def _described(device: Found) -> Accelerator:
    """The catalogue's entry for the driver's name, with the memory that this driver reports."""
    path = toml_files.find("accelerators", device.name)
    if path is None:
        size = f" ({device.reported / MIB:.0f} MiB)" if device.reported else ""
        raise MissingDatum(
            "this machine has {found}{size}, which the catalogue does not describe. Describe it in a "
            "TOML file (docs/catalogue.md) and give that: {--on} my-accelerator.toml.",
            found=shown(device.name),
            size=size,
        )
    known = accelerator(path.stem)
    if device.reported is None or known.memory.unified:
        return known
    here = Fact(source=f"{device.source} on this machine", as_of=datetime.now(UTC).date().isoformat())
    read, runtime = {"memory.reported_mib", "memory.runtime_mib"}, device.runtime
    if (
        runtime is None and device.reported == known.memory.reported_bytes
    ):  # the catalogue's card: what programs get is known
        read, runtime = {"memory.reported_mib"}, known.memory.runtime_bytes
    return replace(
        known,
        memory=replace(known.memory, reported_bytes=device.reported, runtime_bytes=runtime),
        sources={**known.sources, **dict.fromkeys(read, here)},
        why={path: reason for path, reason in known.why.items() if path not in read},
    )


def _nvml() -> list[Found]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [
            Found(_text(pynvml.nvmlDeviceGetName(handle)), *_nvml_memory(pynvml, handle), "NVML") for handle in handles
        ]
    except pynvml.NVMLError:
        return []


def _nvml_memory(pynvml: Any, handle: Any) -> tuple[int, int | None]:
    """Total as the driver reports it, and without its own part; drivers and libraries before 510 report only the
    first.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        return int(memory.total), int(memory.total) - int(memory.reserved)
    except (AttributeError, TypeError, pynvml.NVMLError):
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total), None


def _nvidia_smi() -> list[Found]:
    query = "--query-gpu=name,memory.total,memory.reserved"
    lines = _run("nvidia-smi", query, "--format=csv,noheader,nounits").splitlines()
    if lines and not any(
        "," in line for line in lines
    ):  # drivers before 510 refuse the whole query because of memory.reserved
        lines = _run("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits").splitlines()
    devices: list[Found] = []
    for line in lines:
        name, total, reserved = [*map(str.strip, line.split(",")), "", ""][:3]
        if name and total.isdecimal():
            runtime = (int(total) - int(reserved)) * MIB if reserved.isdecimal() else None
            devices.append(Found(name, int(total) * MIB, runtime, "nvidia-smi"))
    return devices


def _rocm_smi() -> list[Found]:
    try:
        cards = json.loads(_run("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json") or "{}")
    except ValueError:
        return []
    devices = []
    for card in cards.values() if isinstance(cards, dict) else ():
        name = card.get("Card Series") or card.get("Card series") or card.get("Card Model")
        total = card.get("VRAM Total Memory (B)")
        if name:
            size = int(total) if str(total).isdecimal() else None
            devices.append(Found(str(name), size, size, "rocm-smi"))
    return devices


def _macos() -> list[Found]:
    if sys.platform != "darwin":
        return []
    chip = _run("sysctl", "-n", "machdep.cpu.brand_string").strip()
    memory = _run("sysctl", "-n", "hw.memsize").strip()
    if not chip.startswith("Apple") or not memory.isdecimal():
        return []
    return [Found(f"{chip.removeprefix('Apple ')} {int(memory) // 2**30}GB", int(memory), source="sysctl")]


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

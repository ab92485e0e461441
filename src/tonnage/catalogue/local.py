"""`--on local`: which accelerators this machine has, asked of NVML, nvidia-smi, ROCm or macOS, in that order."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from tonnage.catalogue import toml_files
from tonnage.catalogue.accelerators import accelerator
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.units import MIB
from tonnage.spec import Accelerator, Cluster, Fact

SECONDS = 10


class Found(NamedTuple):
    """The driver's name of an accelerator, its total bytes as the driver reports them, and as programs get them, where
    it says so.

    NVIDIA's driver names what it and the firmware keep ("reserved", since version 510): the total without it is what
    cudaMemGetInfo gives. For AMD both totals are one.
    """

    name: str
    reported: int | None
    runtime: int | None = None
    source: str = ""


def local_cluster() -> Cluster:
    """All accelerators of this machine, which must be equal; MissingDatum if there is none that we can see."""
    found = detect()
    if not found:
        raise MissingDatum(
            "this machine shows no accelerator (asked NVML, nvidia-smi, rocm-smi and macOS). "
            "Name one, for example rtx-4090, or a CPU from `tonnage accelerators`."
        )
    if len({each.name for each in found}) > 1:
        known = listed(sorted({each.name for each in found}))
        raise InvalidInput(
            Message(
                "this machine has unlike accelerators ({known}). Name the ones to use, for example 8xrtx-4090.",
                known=known,
            )
        )
    return Cluster(accelerator=_described(found[0]), accelerators_per_node=len(found))


def detect() -> list[Found]:
    """Name and memory of each accelerator, from the first source that answers."""
    for ask in (_nvml, _nvidia_smi, _rocm_smi, _macos):
        found = ask()
        if found:
            return found
    return []


def _described(found: Found) -> Accelerator:
    """The catalogue's entry for the driver's name, with the memory that this driver reports and gives."""
    path = toml_files.find("accelerators", found.name)
    if path is None:
        size = f" ({found.reported / MIB:.0f} MiB)" if found.reported else ""
        raise MissingDatum(
            Message(
                "this machine has {found}{size}, which the catalogue does not describe. Describe it in a "
                "TOML file (docs/catalogue.md) and give that: {--on} my-accelerator.toml.",
                found=shown(found.name),
                size=size,
            )
        )
    known = accelerator(path.stem)
    if found.reported is None or known.memory.unified:
        return known
    here = Fact(source=f"{found.source} on this machine", as_of=datetime.now(UTC).date().isoformat())
    read, runtime = {"memory.reported_mib", "memory.runtime_mib"}, found.runtime
    if (
        runtime is None and found.reported == known.memory.reported_bytes
    ):  # the catalogue's card: what programs get is known
        read, runtime = {"memory.reported_mib"}, known.memory.runtime_bytes
    return replace(
        known,
        memory=replace(known.memory, reported_bytes=found.reported, runtime_bytes=runtime),
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
    """Total as the driver reports it, and without what it keeps; a driver or a library before 510 tells the first
    alone.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        return int(memory.total), int(memory.total) - int(memory.reserved)
    except (AttributeError, TypeError, pynvml.NVMLError):
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total), None


def _nvidia_smi() -> list[Found]:
    asked = "--query-gpu=name,memory.total,memory.reserved"
    lines = _run("nvidia-smi", asked, "--format=csv,noheader,nounits").splitlines()
    if lines and not any(
        "," in line for line in lines
    ):  # drivers before 510 refuse a query of memory.reserved as a whole
        lines = _run("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits").splitlines()
    found: list[Found] = []
    for line in lines:
        name, total, reserved = [*map(str.strip, line.split(",")), "", ""][:3]
        if name and total.isdecimal():
            runtime = (int(total) - int(reserved)) * MIB if reserved.isdecimal() else None
            found.append(Found(name, int(total) * MIB, runtime, "nvidia-smi"))
    return found


def _rocm_smi() -> list[Found]:
    try:
        cards = json.loads(_run("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json") or "{}")
    except ValueError:
        return []
    found = []
    for card in cards.values() if isinstance(cards, dict) else ():
        name = card.get("Card Series") or card.get("Card series") or card.get("Card Model")
        total = card.get("VRAM Total Memory (B)")
        if name:
            size = int(total) if str(total).isdecimal() else None
            found.append(Found(str(name), size, size, "rocm-smi"))
    return found


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

"""`--on local`: the accelerators of this machine, from the board's name, NVML, nvidia-smi, ROCm, macOS or files of the
system, in that order; where it has none, its processors.
"""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from tonnage.catalogue import system_files, toml_files
from tonnage.catalogue.accelerators import accelerator
from tonnage.catalogue.nodes import find as find_node
from tonnage.catalogue.nodes import load as load_node
from tonnage.catalogue.spellings import known_spelling
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.units import GIB, MIB
from tonnage.spec import Accelerator, Cluster, Fact

SECONDS = 10
WSL_NVIDIA_SMI = "/usr/lib/wsl/lib/nvidia-smi"  # not on the path of every distribution
LIKE = 0.1  # how far the memory that a driver counts may lie from what is sold, as a share of it


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
        return _of_processors(system_files.processors())
    if len({device.name for device in detected}) > 1:
        known = listed(sorted({device.name for device in detected}))
        raise InvalidInput(
            "this machine has unlike accelerators ({known}). Name the ones to use, for example 8xrtx-4090.",
            known=known,
        )
    return Cluster(accelerator=_described(detected[0]), accelerators_per_node=len(detected))


def detect() -> list[Found]:
    """Name and memory of each accelerator, from the first source that answers."""
    for ask in (_board, _apu, _nvml, _nvidia_smi, _rocm_smi, _amd_smi, _macos, _files, _lspci):
        detected = ask()
        if detected:
            return detected
    return []


def _of_processors(found: system_files.Processors | None) -> Cluster:
    """The processors of a machine without accelerators, with the memory that it has; MissingDatum for unknown ones."""
    name = _known(found.name) if found is not None else ""
    if found is None or not name or accelerator(name).kind != "cpu":
        beside = (
            Message(" Its processor is {found}, which the catalogue does not describe.", found=shown(found.name))
            if found is not None
            else ""
        )
        raise MissingDatum(
            "this machine shows no accelerator (asked NVML, nvidia-smi, rocm-smi and macOS).{beside} "
            "Name one, for example rtx-4090, or a CPU from `tonnage accelerators`.",
            beside=beside,
        )
    known = accelerator(name)
    if found.memory is None:
        return Cluster(accelerator=known, accelerators_per_node=found.sockets)
    each = found.memory // found.sockets
    here = Fact(source="/proc/meminfo on this machine", as_of=datetime.now(UTC).date().isoformat())
    memory = replace(known.memory, nominal_bytes=max(each, 1), reported_bytes=max(each, 1), runtime_bytes=None)
    sources = {**known.sources, "memory.nominal_gib": here, "memory.reported_mib": here}
    why = {path: reason for path, reason in known.why.items() if path != "memory.nominal_gib"}
    return Cluster(
        accelerator=replace(known, memory=memory, sources=sources, why=why), accelerators_per_node=found.sockets
    )


def _known(name: str) -> str:
    """The catalogue's name of what is called so here; "" where it has none."""
    path = toml_files.find("accelerators", name)
    return path.stem if path is not None else known_spelling(name)


def _described(device: Found) -> Accelerator:
    """The catalogue's entry for the driver's name, with the memory that this driver reports."""
    name = _known(device.name)
    if not name:
        size = f" ({device.reported / MIB:.0f} MiB)" if device.reported else ""
        raise MissingDatum(
            "this machine has {found}{size}, which the catalogue does not describe. Describe it in a "
            "TOML file (docs/catalogue.md) and give that: {--on} my-accelerator.toml.",
            found=shown(device.name),
            size=size,
        )
    known = accelerator(name)
    if device.reported is None:
        return known
    if known.memory.unified:
        return _within_limit(known, device)
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


def _within_limit(known: Accelerator, device: Found) -> Accelerator:
    """A chip whose memory is shared, with no more than the system or a container gives programs here."""
    if device.reported is None or device.reported >= known.memory.usable_bytes:
        return known
    here = Fact(source=f"{device.source} on this machine", as_of=datetime.now(UTC).date().isoformat())
    return replace(
        known,
        memory=replace(known.memory, runtime_bytes=device.reported, system_bytes=0),
        sources={**known.sources, "memory.runtime_mib": here},
    )


def _board() -> list[Found]:
    """A Jetson by its device tree, or a computer by its firmware; several memories are told apart by MemTotal."""
    name = system_files.board()
    if not name:
        return []
    total, path = system_files.memory(), find_node(name)
    known = load_node(path).accelerator if path is not None else _of_size(name, total)
    # a rented machine's firmware has the instance's name, too: its cards have memory of their own, which drivers tell
    is_shared = bool(known) and accelerator(known).memory.unified
    return [Found(known, total, source="/proc/meminfo")] if is_shared else []


def _apu() -> list[Found]:
    """A processor whose GPU is in the catalogue, as the Ryzen AI Max+ 395: what the firmware gives the GPU is not in
    MemTotal.
    """
    found = system_files.processors()
    if found is None or found.memory is None:
        return []
    given = sum(card.total or 0 for card in system_files.graphics())
    known = _of_size(found.name, found.memory + given)
    return [Found(known, None)] if known and accelerator(known).kind == "gpu" else []


def _of_size(name: str, total: int | None) -> str:
    """The catalogue's name of a chip with so much memory, else of the chip; "" where it has none."""
    sizes = [f"{name} {gib}GB" for gib in _sizes_above(total)]
    return next((found for each in (*sizes, name) if (found := _known(each))), "")


def _sizes_above(total: int | None) -> list[int]:
    """Sizes in GiB that memory is sold in, from the smallest that holds `total` bytes."""
    sold = (4, 8, 16, 24, 32, 36, 48, 64, 96, 128, 192, 256, 512)
    return [gib for gib in sold if total is not None and total <= gib * GIB][:1]


def _files() -> list[Found]:
    """Accelerators that the drivers' own files name."""
    return _in_catalogue(system_files.nvidia_driver()) or _in_catalogue(system_files.graphics())


def _lspci() -> list[Found]:
    return _in_catalogue(system_files.listed_by_lspci(_run("lspci")))


def _in_catalogue(devices: list[system_files.Device]) -> list[Found]:
    """The devices that the catalogue knows; those of several possible names by their memory, else by the first name."""
    detected = []
    for device in devices:
        known = [name for name in dict.fromkeys(map(_known, device.names)) if name]
        if device.total is not None and len(known) > 1:
            known = [name for name in known if _holds(name, device.total)] or known
        if known:
            detected.append(Found(known[0], device.total, device.total, device.source))
    return detected


def _holds(name: str, total: int) -> bool:
    sold = accelerator(name).memory.nominal_bytes
    return abs(total - sold) < LIKE * sold


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
    program = "nvidia-smi"
    lines = _run(program, query, "--format=csv,noheader,nounits").splitlines()
    if not lines and system_files.is_wsl():
        program = WSL_NVIDIA_SMI
        lines = _run(program, query, "--format=csv,noheader,nounits").splitlines()
    if lines and not any(
        "," in line for line in lines
    ):  # drivers before 510 refuse the whole query because of memory.reserved
        lines = _run(program, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits").splitlines()
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


def _amd_smi() -> list[Found]:
    """AMD's newer tool, which has taken rocm-smi's place."""
    try:
        said = json.loads(_run("amd-smi", "static", "--asic", "--vram", "--json") or "[]")
    except ValueError:
        return []
    cards = said.get("gpu_data", []) if isinstance(said, dict) else said
    devices = []
    for card in cards if isinstance(cards, list) else ():
        asic, vram = (card.get(part) if isinstance(card, dict) else None for part in ("asic", "vram"))
        name = asic.get("market_name") if isinstance(asic, dict) else None
        size = vram.get("size") if isinstance(vram, dict) else None
        value = size.get("value") if isinstance(size, dict) else size
        total = int(str(value)) * MIB if str(value).isdecimal() else None
        if name:
            devices.append(Found(str(name), total, total, "amd-smi"))
    return devices


def _macos() -> list[Found]:
    if sys.platform != "darwin":
        return []
    chip = _run("sysctl", "-n", "machdep.cpu.brand_string").strip()
    memory = _run("sysctl", "-n", "hw.memsize").strip()
    if chip.startswith("Apple") and memory.isdecimal():
        return [Found(f"{chip.removeprefix('Apple ')} {int(memory) // GIB}GB", int(memory), source="sysctl")]
    profile = _run("system_profiler", "SPHardwareDataType")
    named, sized = re.search(r"Chip: Apple (.+)", profile), re.search(r"Memory: (\d+) GB", profile)
    if named is None or sized is None:
        return []
    return [Found(f"{named[1].strip()} {sized[1]}GB", int(sized[1]) * GIB, source="system_profiler")]


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

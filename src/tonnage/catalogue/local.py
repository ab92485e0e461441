"""`--on local`: which accelerators this machine has, asked of NVML, nvidia-smi, ROCm or macOS, in that order."""

import json
import subprocess
import sys

from msgspec.structs import replace

from tonnage.catalogue import _files
from tonnage.catalogue.accelerators import accelerator
from tonnage.errors import InvalidInput, MissingDatum, shown
from tonnage.spec import Accelerator, Cluster
from tonnage.units import MIB

Found = tuple[str, int | None]  # the driver's name, total bytes as it reports them
SECONDS = 10


def local_cluster() -> Cluster:
    """All accelerators of this machine, which must be equal; MissingDatum if there is none that we can see."""
    found = detect()
    if not found:
        raise MissingDatum(
            "this machine shows no accelerator (asked NVML, nvidia-smi, rocm-smi and macOS). "
            "Name one, for example --on rtx-4090, or a CPU from `tonnage accelerators`."
        )
    if len({name for name, _ in found}) > 1:
        listed = ", ".join(sorted({name for name, _ in found}))
        raise InvalidInput(
            f"this machine has unlike accelerators ({listed}). Name the ones to use, for example --on rtx-4090."
        )
    return Cluster(accelerator=_described(*found[0]), accelerators_per_node=len(found))


def detect() -> list[Found]:
    """Name and memory of each accelerator, from the first source that answers."""
    for ask in (_nvml, _nvidia_smi, _rocm_smi, _macos):
        found = ask()
        if found:
            return found
    return []


def _described(name: str, total: int | None) -> Accelerator:
    """The catalogue's entry for the driver's name, with the memory that this driver reports."""
    path = _files.find("accelerators", name)
    if path is None:
        memory = f" ({total / MIB:.0f} MiB)" if total else ""
        raise MissingDatum(
            f"this machine has {shown(name)}{memory}, which the catalogue does not describe. "
            "Describe it in a TOML file (docs/catalogue.md) and give that: --on my-accelerator.toml."
        )
    known = accelerator(path.stem)
    if total is None or known.memory.unified:
        return known
    return replace(known, memory=replace(known.memory, reported_bytes=total))


def _nvml() -> list[Found]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [
            (_text(pynvml.nvmlDeviceGetName(handle)), int(pynvml.nvmlDeviceGetMemoryInfo(handle).total))
            for handle in handles
        ]
    except pynvml.NVMLError:
        return []


def _nvidia_smi() -> list[Found]:
    lines = _run("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits").splitlines()
    found: list[Found] = []
    for line in lines:
        name, _, total = line.rpartition(",")
        if name and total.strip().isdecimal():
            found.append((name.strip(), int(total) * MIB))
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
            found.append((str(name), int(total) if str(total).isdecimal() else None))
    return found


def _macos() -> list[Found]:
    if sys.platform != "darwin":
        return []
    chip = _run("sysctl", "-n", "machdep.cpu.brand_string").strip()
    memory = _run("sysctl", "-n", "hw.memsize").strip()
    if not chip.startswith("Apple") or not memory.isdecimal():
        return []
    return [(f"{chip.removeprefix('Apple ')} {int(memory) // 2**30}GB", int(memory))]


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

"""What this machine is by files of its system: the accelerators and processors that no tool of a maker is asked for.

Nothing is run but `lspci` where it is installed; a file that does not exist says nothing.
"""

import re
from pathlib import Path
from typing import NamedTuple

from tonnage.kernel.units import KIB

ROOT = Path("/")  # tests read a folder in its place
NO_LIMIT = 1 << 60  # bytes; cgroup v1 writes a number close to 2**63 where there is no limit
AMD, INTEL = "0x1002", "0x8086"
# PCI identifiers of /sys/class/drm -> what the card may be, in the catalogue's names; the memory tells them apart.
# The PCI ID Repository, https://pci-ids.ucw.cz (read 2026-11-28).
CARDS = {
    (AMD, "0x744c"): ("RX-7900-XTX", "RX-7900-XT", "RX-7900-GRE"),
    (AMD, "0x7448"): ("Radeon-PRO-W7900",),
    (AMD, "0x747e"): ("RX-7800-XT", "RX-7700-XT"),
    (AMD, "0x7551"): ("Radeon-AI-PRO-R9700",),
    (AMD, "0x738c"): ("MI100",),
    (AMD, "0x740f"): ("MI210",),
    (AMD, "0x7408"): ("MI250X-GCD",),
    (AMD, "0x740c"): ("MI250-GCD",),
    (AMD, "0x74a0"): ("MI300A",),
    (AMD, "0x74a1"): ("MI300X",),
    (AMD, "0x74a5"): ("MI325X",),
    (AMD, "0x75a0"): ("MI350X",),
    (AMD, "0x75a3"): ("MI355X",),
    (INTEL, "0xe20b"): ("Arc-B580",),
    (INTEL, "0xe20c"): ("Arc-B570",),
    (INTEL, "0xe211"): ("Arc-Pro-B60-24GB",),
    (INTEL, "0xe212"): ("Arc-Pro-B50",),
    (INTEL, "0x56a0"): ("Arc-A770-16GB",),
    (INTEL, "0x56a1"): ("Arc-A750",),
}
DISPLAYS = r"(?:VGA compatible controller|3D controller|Display controller|Processing accelerators)[^:]*: "
_MARKS = re.compile(r"\((?:R|TM)\)|®|™", re.IGNORECASE)
_AFTER_CPU = re.compile(r"\s+(?:w/|with|@|\d+-Cores?\b|CPU\b|Processor\b).*", re.IGNORECASE)
_BEFORE_CPU = re.compile(r"^\d+th Gen\s+", re.IGNORECASE)
_KIT = re.compile(r"\s+(?:Super|Engineering Reference|Developer Kit|Module|Industrial)\b.*", re.IGNORECASE)


class Device(NamedTuple):
    """One accelerator by the names that it may have in the catalogue, and its memory in bytes where a file says it."""

    names: tuple[str, ...]
    total: int | None
    source: str


class Processors(NamedTuple):
    """The processors: their name without marks, how many sockets, and the memory in bytes that programs may have."""

    name: str
    sockets: int
    memory: int | None


def read(path: str) -> str:
    """The text of a file below ROOT; "" where there is none or it may not be read."""
    try:
        return (ROOT / path).read_text(encoding="utf-8", errors="replace").replace("\0", "").strip()
    except OSError:
        return ""


def memory() -> int | None:
    """Bytes of memory that programs may have: MemTotal, or the limit of the container where it is lower."""
    match = re.search(r"^MemTotal:\s*(\d+) kB", read("proc/meminfo"), re.MULTILINE)
    total = int(match[1]) * KIB if match else None
    limits = [read("sys/fs/cgroup/memory.max"), read("sys/fs/cgroup/memory/memory.limit_in_bytes")]
    given = [int(limit) for limit in limits if limit.isdecimal() and 0 < int(limit) < NO_LIMIT]
    return min([*given, *([total] if total else [])], default=None)


def board() -> str:
    """The name of a board that is sold as a computer, without "Developer Kit": of a Jetson from the device tree, of a
    DGX Spark and others from the firmware. "" where no file says it.
    """
    tree = read("proc/device-tree/model") or read("sys/firmware/devicetree/base/model")
    if "jetson" in tree.lower() or "nvidia" in tree.lower():
        return _KIT.sub("", re.sub(r"^NVIDIA\s+", "", tree))
    return read("sys/class/dmi/id/product_name").replace("_", " ")


def nvidia_driver() -> list[Device]:
    """NVIDIA's cards as its driver lists them in /proc, without any of its tools."""
    folder = ROOT / "proc/driver/nvidia/gpus"
    texts = [read(str(path.relative_to(ROOT))) for path in sorted(folder.glob("*/information"))]
    models = [re.search(r"^Model:\s*(.+)$", text, re.MULTILINE) for text in texts]
    return [Device((match[1].strip(),), None, "/proc/driver/nvidia") for match in models if match]


def graphics() -> list[Device]:
    """AMD's and Intel's cards by their identifiers in /sys/class/drm; AMD's driver says their memory, too."""
    devices = []
    for card in sorted((ROOT / "sys/class/drm").glob("card[0-9]*")):
        if not card.name.removeprefix("card").isdecimal():
            continue  # card0-DP-1 is a connector of card0
        folder = f"sys/class/drm/{card.name}/device"
        total = read(f"{folder}/mem_info_vram_total")
        product = read(f"{folder}/product_name")
        names = CARDS.get((read(f"{folder}/vendor"), read(f"{folder}/device")), ())
        if product or names:
            size = int(total) if total.isdecimal() else None
            devices.append(Device((*([product] if product else []), *names), size, "/sys/class/drm"))
    return devices


def listed_by_lspci(text: str) -> list[Device]:
    """The cards in what `lspci` prints: "AD102 [GeForce RTX 4090]" is one, a name with slashes is several."""
    devices = []
    for line in text.splitlines():
        match = re.search(rf"{DISPLAYS}(.*)", line)
        brackets = re.findall(r"\[([^\[\]]+)\]", re.sub(r"\[AMD/ATI\]", "", match[1])) if match else []
        if brackets:
            first, *others = brackets[-1].split("/")
            maker = " ".join(first.split()[:2]) if first.startswith("Radeon") else ""
            devices.append(Device((first, *(f"{maker} {other}".strip() for other in others)), None, "lspci"))
    return devices


def processors() -> Processors | None:
    """The processors of /proc/cpuinfo; None where it names none, as on most Arm machines."""
    text = read("proc/cpuinfo")
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    if match is None:
        return None
    name = _BEFORE_CPU.sub("", " ".join(_MARKS.sub(" ", match[1]).split()))
    sockets = len(set(re.findall(r"^physical id\s*:\s*(\d+)$", text, re.MULTILINE)))
    return Processors(_AFTER_CPU.sub("", name), max(sockets, 1), memory())


def is_wsl() -> bool:
    """Whether this is Linux inside of Windows, where NVIDIA's tools stand in a folder of their own."""
    return "microsoft" in read("proc/version").lower()

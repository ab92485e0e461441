"""`--on local` reads what this machine is from files of its system, where no tool of a maker says it."""

from pathlib import Path

import pytest

from tonnage.catalogue import cluster, local, system_files
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.units import GIB, MIB

EPYC = "model name\t: AMD EPYC 9654 96-Core Processor\nphysical id\t: {socket}\n\n"
XEON = "model name\t: Intel(R) Xeon(R) Platinum 8480+\nphysical id\t: 0\n\n"
CORE = "model name\t: 13th Gen Intel(R) Core(TM) i9-13900K\nphysical id\t: 0\n\n"
HALO = "model name\t: AMD RYZEN AI MAX+ 395 w/ Radeon 8060S\nphysical id\t: 0\n\n"
NVIDIA = "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 152\nGPU UUID: \t GPU-????????\nBus Type: \t PCIe\n"
LSPCI = """\
00:00.0 Host bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex
02:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family (rev 41)
41:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)
61:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A function that writes files of a machine on which no tool is installed."""
    for ask in ("_nvml", "_nvidia_smi", "_rocm_smi", "_amd_smi", "_macos"):
        monkeypatch.setattr(local, ask, list)
    monkeypatch.setattr(local, "_run", lambda *command: "")
    monkeypatch.setattr(system_files, "ROOT", tmp_path)

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            path: Path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    return write


def meminfo(gib: float) -> str:
    return f"MemTotal:       {round(gib * 2**20)} kB\nMemFree:        1000 kB\n"


def test_a_server_without_accelerators_is_its_processors_with_the_memory_that_it_has(machine):
    machine({"proc/cpuinfo": EPYC.format(socket=0) * 2 + EPYC.format(socket=1) * 2, "proc/meminfo": meminfo(1511)})
    found = cluster("local")
    assert (found.accelerator.name, found.size) == ("EPYC-9654", 2)
    assert found.accelerator.memory.usable_bytes == pytest.approx(1511 * GIB / 2, rel=1e-6)
    assert "meminfo on this machine" in found.accelerator.fact("memory.reported_mib").source


@pytest.mark.parametrize(
    ("cpuinfo", "name"), [(XEON, "Xeon-8480+"), (CORE, "Core-i9-13900K")], ids=["server", "desktop"]
)
def test_a_processor_is_known_without_the_marks_of_its_maker(machine, cpuinfo, name):
    machine({"proc/cpuinfo": cpuinfo, "proc/meminfo": meminfo(62)})
    assert cluster("local").accelerator.name == name


@pytest.mark.parametrize(
    "file", ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"], ids=["v2", "v1"]
)
def test_a_container_has_no_more_memory_than_its_limit(machine, file):
    machine({"proc/cpuinfo": XEON, "proc/meminfo": meminfo(503), file: f"{64 * GIB}\n"})
    assert cluster("local").accelerator.memory.usable_bytes == 64 * GIB


@pytest.mark.parametrize("limit", ["max", "9223372036854771712"])
def test_a_container_without_a_limit_has_the_memory_of_the_machine(machine, limit):
    machine({"proc/cpuinfo": XEON, "proc/meminfo": meminfo(503), "sys/fs/cgroup/memory.max": f"{limit}\n"})
    assert cluster("local").accelerator.memory.usable_bytes == 503 * GIB


@pytest.mark.parametrize(
    ("model", "gib", "name"),
    [
        ("NVIDIA Jetson AGX Orin Developer Kit", 61.4, "Jetson-AGX-Orin-64GB"),
        ("NVIDIA Jetson Orin NX Engineering Reference Developer Kit", 7.4, "Jetson-Orin-NX-8GB"),
        ("NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super", 7.4, "Jetson-Orin-Nano-8GB"),
        ("NVIDIA Jetson AGX Thor Developer Kit", 122.5, "Jetson-AGX-Thor"),
    ],
)
def test_a_jetson_is_known_by_its_device_tree_and_its_memory(machine, model, gib, name):
    machine({"proc/device-tree/model": f"{model}\0", "proc/meminfo": meminfo(gib)})
    found = cluster("local").accelerator
    assert found.name == name
    assert found.memory.usable_bytes <= round(gib * GIB)


def test_a_dgx_spark_is_known_by_its_firmware(machine):
    machine({"sys/class/dmi/id/product_name": "NVIDIA_DGX_Spark\n", "proc/meminfo": meminfo(119.7)})
    assert cluster("local").accelerator.name == "GB10-128GB"


def test_a_rented_machine_that_calls_itself_by_its_instance_is_not_taken_for_its_host_memory(machine):
    machine({"sys/class/dmi/id/product_name": "g5.xlarge\n", "proc/meminfo": meminfo(15.3)})
    with pytest.raises(MissingDatum, match="shows no accelerator"):
        cluster("local")


def test_a_processor_with_a_large_gpu_is_that_gpu_whatever_the_firmware_gives_it(machine):
    card = "sys/class/drm/card0/device"
    machine(
        {
            "proc/cpuinfo": HALO,
            "proc/meminfo": meminfo(31),
            f"{card}/vendor": "0x1002",
            f"{card}/device": "0x1586",
            f"{card}/product_name": "AMD Radeon 8060S",
            f"{card}/mem_info_vram_total": str(96 * GIB),
        }
    )
    assert cluster("local").accelerator.name == "Strix-Halo-128GB"


def test_the_nvidia_driver_lists_its_cards_without_its_tools(machine):
    machine({f"proc/driver/nvidia/gpus/0000:{bus}:00.0/information": NVIDIA for bus in ("01", "41")})
    found = cluster("local")
    assert (found.accelerator.name, found.size) == ("RTX-4090", 2)


@pytest.mark.parametrize(
    ("total", "name"),
    [(25753026560, "RX-7900-XTX"), (21458059264, "RX-7900-XT"), (17163091968, "RX-7900-GRE")],
)
def test_cards_of_one_identifier_are_told_apart_by_their_memory(machine, total, name):
    card = "sys/class/drm/card1/device"
    machine({f"{card}/vendor": "0x1002\n", f"{card}/device": "0x744c\n", f"{card}/mem_info_vram_total": f"{total}\n"})
    machine({"sys/class/drm/card1-DP-1/status": "connected\n"})
    found = cluster("local")
    assert (found.accelerator.name, found.size) == (name, 1)
    assert found.accelerator.memory.usable_bytes == total


def test_an_arc_card_is_known_by_its_identifier(machine):
    card = "sys/class/drm/card0/device"
    machine({f"{card}/vendor": "0x8086", f"{card}/device": "0xe211"})
    assert cluster("local").accelerator.name == "Arc-Pro-B60-24GB"


def test_lspci_names_cards_whose_driver_is_not_loaded(machine, monkeypatch):
    monkeypatch.setattr(local, "_run", lambda *command: LSPCI if command == ("lspci",) else "")
    found = cluster("local")
    assert (found.accelerator.name, found.size) == ("H100-PCIe-80GB", 2)


def test_amd_smi_is_asked_where_rocm_smi_is_gone(machine, monkeypatch):
    said = (
        '{"gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}, '
        '"vram": {"size": {"value": 196592, "unit": "MB"}}}]}'
    )
    monkeypatch.undo()
    monkeypatch.setattr(local, "_run", lambda *command: said if command[0] == "amd-smi" else "")
    assert local._amd_smi() == [local.Found("AMD Instinct MI300X", 196592 * MIB, 196592 * MIB, "amd-smi")]
    monkeypatch.setattr(local, "_run", lambda *command: "not JSON")
    assert local._amd_smi() == []


def test_nvidia_smi_is_found_in_windows_subsystem_for_linux(tmp_path, monkeypatch):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/version").write_text("Linux version 6.6.87.2-microsoft-standard-WSL2")
    monkeypatch.setattr(system_files, "ROOT", tmp_path)
    printed = "NVIDIA GeForce RTX 4090, 24564, 490\n"
    monkeypatch.setattr(local, "_run", lambda *command: printed if command[0] == local.WSL_NVIDIA_SMI else "")
    assert [device.name for device in local._nvidia_smi()] == ["NVIDIA GeForce RTX 4090"]


def test_a_mac_whose_sysctl_says_nothing_is_read_from_its_profile(monkeypatch):
    monkeypatch.setattr(local.sys, "platform", "darwin")
    profile = "Hardware:\n\n      Model Name: Mac Studio\n      Chip: Apple M3 Ultra\n      Memory: 512 GB\n"
    monkeypatch.setattr(local, "_run", lambda *command: profile if command[0] == "system_profiler" else "")
    assert [device.name for device in local._macos()] == ["M3 Ultra 512GB"]


def test_a_processor_that_is_not_known_is_named(machine):
    machine({"proc/cpuinfo": "model name\t: Zhaoxin KaiXian KX-7000\n", "proc/meminfo": meminfo(31)})
    with pytest.raises(MissingDatum, match=r"Its processor is 'Zhaoxin KaiXian KX-7000', which the catalogue"):
        cluster("local")


def test_a_machine_that_says_nothing_is_answered_as_one_without_accelerators(machine):
    machine({})
    with pytest.raises(MissingDatum, match="shows no accelerator"):
        cluster("local")

"""Clusters are read as people write them."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from tonnage.catalogue import cluster, local, system_files
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName

MINE = """
name = "Mine-24GB"
vendor = "Me"
kind = "gpu"
generation = "first"
[memory]
nominal_gib = 24
kind = "HBM"
[dense_tflops]
bf16 = 100
[sources]
memory = {source = "my own ruler", as_of = "2026-11-21"}
dense_tflops = {source = "my own clock", as_of = "2026-11-21"}
"""


@pytest.mark.parametrize(
    ("text", "nodes", "each", "name"),
    [
        ("H100-SXM-80GB", 1, 1, "H100-SXM-80GB"),
        ("h100", 1, 1, "H100-SXM-80GB"),
        ("8xH100-SXM-80GB", 1, 8, "H100-SXM-80GB"),
        ("16x8xH100-SXM-80GB", 16, 8, "H100-SXM-80GB"),
        ("8 x h100", 1, 8, "H100-SXM-80GB"),
        ("h100:8", 1, 8, "H100-SXM-80GB"),
        ("64xh100", 8, 8, "H100-SXM-80GB"),
        ("4090", 1, 1, "RTX-4090"),
        ("2x4090", 1, 2, "RTX-4090"),
        ("RTX 4090", 1, 1, "RTX-4090"),
        ("dgx-h100", 1, 8, "H100-SXM-80GB"),
        ("4xdgx-h100", 4, 8, "H100-SXM-80GB"),
        ("32x8xH800", 32, 8, "H800-SXM-80GB"),
        ("H100x8", 1, 8, "H100-SXM-80GB"),
        ("8 H100", 1, 8, "H100-SXM-80GB"),
        ("8*H100", 1, 8, "H100-SXM-80GB"),
        ("H100 x 8", 1, 8, "H100-SXM-80GB"),
        ("H100×16", 2, 8, "H100-SXM-80GB"),
        ("2 RTX 4090", 1, 2, "RTX-4090"),
        ("RTX 4090x2", 1, 2, "RTX-4090"),
        ("dgx-h100x4", 4, 8, "H100-SXM-80GB"),
        ("8xH100-NVL-94GB", 1, 8, "H100-NVL-94GB"),
        ("4x2xH100-NVL-94GB", 4, 2, "H100-NVL-94GB"),
        ("2xH100-NVL-94GB", 1, 2, "H100-NVL-94GB"),
        ("16xH100-NVL-94GB", 2, 8, "H100-NVL-94GB"),
        ("8xA100-PCIe-80GB", 1, 8, "A100-PCIe-80GB"),
        ("8xtpu-v5p", 2, 4, "TPU-v5p"),
    ],
)
def test_a_cluster_is_nodes_times_accelerators_times_name(text, nodes, each, name):
    found = cluster(text)
    assert (found.num_nodes, found.accelerators_per_node, found.accelerator.name) == (nodes, each, name)
    assert cluster(found.name) == replace(found, note="")


@pytest.mark.parametrize(
    "text", ["0xH100", "8x0xh100", "", "8x", "x", "2x4x8xh100", "999999999x8xh100", "2x8xdgx-h100", "8xlocal"]
)
def test_sizes_that_make_no_cluster_are_refused(text):
    with pytest.raises((InvalidInput, UnknownName)):
        cluster(text)


@pytest.mark.parametrize("text", ["./nothere.toml", "nothere.toml", "8x./mine/chip.toml", "/tmp", "~/chips"])
def test_a_word_that_looks_like_a_path_is_answered_as_one(text):
    with pytest.raises(InvalidInput, match="there is no file"):
        cluster(text)


def test_an_unknown_accelerator_is_answered_with_the_nearest_ones():
    with pytest.raises(
        UnknownName, match=r"no accelerator or node is called 'h900'\. Did you mean 'h800', 'h200', 'h100'"
    ):
        cluster("8xh900")


def test_a_slice_of_an_accelerator_has_its_own_memory():
    found = cluster("h100:1g.10gb").accelerator
    assert found.memory.usable_bytes < cluster("h100").accelerator.memory.usable_bytes / 7
    with pytest.raises(UnknownName, match=r"variant of H100-SXM-80GB is called '9g\.90gb'"):
        cluster("h100:9g.90gb")


def test_a_users_own_accelerator_is_given_as_a_file_or_in_the_config_directory(tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    assert cluster(f"8x{path}").accelerator.name == "Mine-24GB"
    (tmp_path / "accelerators").mkdir()
    path.rename(tmp_path / "accelerators" / "mine-24gb.toml")
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    assert cluster("2xmine-24gb").accelerator.name == "Mine-24GB"


def test_a_users_own_file_is_found_by_its_aliases_and_read_again_when_it_changes(tmp_path, monkeypatch):
    (tmp_path / "accelerators").mkdir()
    path = tmp_path / "accelerators" / "mine.toml"
    path.write_text(MINE.replace('vendor = "Me"', 'aliases = ["the green one"]\nvendor = "Me"'))
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    assert cluster("The Green One").accelerator.memory.nominal_bytes == 24 * 2**30
    changed = path.stat().st_mtime_ns + 10**9
    path.write_text(path.read_text().replace("nominal_gib = 24", "nominal_gib = 48"))
    os.utime(path, ns=(changed, changed))
    assert cluster("the-green-one").accelerator.memory.nominal_bytes == 48 * 2**30


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (MINE.replace("nominal_gib = 24", "nominal_gib = -3"), "nominal_gib"),
        (MINE.replace("bf16 = 100", "bf17 = 100"), "bf17"),
        (MINE.replace("nominal_gib = 24", 'nominal_gib = "24"'), "nominal_gib"),
        ("extra = 1" + MINE, "extra"),
        ("not toml at all [", "TOML"),
        (MINE.replace('kind = "gpu"', 'kind = "toaster"'), "toaster"),
        (MINE.replace("nominal_gib = 24", "nominal_gib = nan"), "nominal_gib"),
    ],
)
def test_a_users_own_file_is_checked_as_strictly(tmp_path, wrong, message):
    path = tmp_path / "mine.toml"
    path.write_text(wrong)
    with pytest.raises(InvalidInput, match=message):
        cluster(str(path))


@pytest.fixture(autouse=True)
def _no_files_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(system_files, "ROOT", tmp_path / "no files")


def machine(monkeypatch, **answers):
    """A machine whose command-line tools print these answers."""

    def run(command, **_):
        return subprocess.CompletedProcess(command, 0, answers.get(command[0].replace("-", "_"), ""), "")

    monkeypatch.setattr(local.subprocess, "run", run)
    monkeypatch.setattr(local, "_nvml", list)


def test_local_is_what_nvidia_smi_shows(monkeypatch):
    machine(monkeypatch, nvidia_smi="NVIDIA H100 80GB HBM3, 81559\nNVIDIA H100 80GB HBM3, 81559\n")
    found = cluster("local")
    assert (found.accelerator.name, found.size) == ("H100-SXM-80GB", 2)
    memory = found.accelerator.memory
    assert memory.reported_bytes == 81559 * 2**20
    assert (
        memory.usable_bytes == cluster("h100").accelerator.memory.runtime_bytes
    )  # the same card: programs get the same of it
    assert "nvidia-smi on this machine" in found.accelerator.fact("memory.reported_mib").source


def test_local_takes_off_what_nvidia_smi_says_is_reserved(monkeypatch):
    machine(monkeypatch, nvidia_smi="NVIDIA H100 80GB HBM3, 81559, 551\n")
    chip = cluster("local").accelerator
    assert (chip.memory.usable_bytes, chip.memory.usable_from) == ((81559 - 551) * 2**20, "runtime")
    assert "nvidia-smi on this machine" in chip.fact("memory.runtime_mib").source


def test_local_asks_an_old_driver_for_the_total_alone(monkeypatch):
    def run(command, **_):
        old = 'Field "memory.reserved" is not a valid field to query.\n'
        out = old if "memory.reserved" in " ".join(command) else "Tesla V100-SXM2-32GB, 32480\n"
        return subprocess.CompletedProcess(command, 0, out if command[0] == "nvidia-smi" else "", "")

    monkeypatch.setattr(local.subprocess, "run", run)
    monkeypatch.setattr(local, "_nvml", list)
    assert cluster("local").accelerator.memory.reported_bytes == 32480 * 2**20


def test_local_with_another_total_does_not_have_the_catalogues_runtime_figure(monkeypatch):
    machine(monkeypatch, nvidia_smi="NVIDIA GeForce RTX 4090, 23028, [N/A]\n")  # ECC is on
    memory = cluster("local").accelerator.memory
    assert (memory.usable_bytes, memory.usable_from) == (23028 * 2**20, "driver")


class Nvml:
    """NVML of one card: its total and, from version 2 on, what is reserved of it."""

    NVMLError = type("NVMLError", (Exception,), {})
    nvmlMemory_v2 = 2  # noqa: N815 - as NVML names it

    def __init__(self, *, knows_version_2: bool):
        self.knows_version_2 = knows_version_2

    def nvmlInit(self): ...

    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return b"NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):
        if version and not self.knows_version_2:
            raise self.NVMLError
        reserved = {"reserved": 615 * 2**20} if version else {}
        return SimpleNamespace(total=143771 * 2**20, **reserved)


@pytest.mark.parametrize(("new", "usable"), [(True, 143771 - 615), (False, 143073)])
def test_local_takes_off_what_nvml_says_is_reserved(monkeypatch, new, usable):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(knows_version_2=new))
    assert cluster("local").accelerator.memory.usable_bytes == usable * 2**20


def test_local_is_what_rocm_smi_shows(monkeypatch):
    card = {"card0": {"Card Series": "AMD Instinct MI300X", "VRAM Total Memory (B)": str(191 * 2**30)}}
    machine(monkeypatch, rocm_smi=json.dumps(card))
    assert cluster("local").accelerator.memory.usable_bytes == 191 * 2**30


def test_local_on_a_mac_is_its_chip_less_what_the_system_keeps(monkeypatch):
    monkeypatch.setattr(local.sys, "platform", "darwin")
    monkeypatch.setattr(local, "_nvml", list)
    monkeypatch.setattr(local, "_nvidia_smi", list)
    monkeypatch.setattr(local, "_rocm_smi", list)
    monkeypatch.setattr(
        local, "_run", lambda *command: "Apple M4 Max\n" if command[-1].startswith("machdep") else f"{128 * 2**30}\n"
    )
    memory = cluster("local").accelerator.memory
    assert memory.unified and memory.nominal_bytes == 128 * 2**30 and memory.usable_bytes < memory.nominal_bytes


def test_a_machine_without_accelerators_says_what_was_asked(monkeypatch):
    machine(monkeypatch)
    with pytest.raises(MissingDatum, match="shows no accelerator"):
        cluster("local")


def test_unlike_or_unknown_accelerators_are_named(monkeypatch):
    machine(monkeypatch, nvidia_smi="NVIDIA GeForce RTX 4090, 24564\nNVIDIA GeForce RTX 3090, 24576\n")
    with pytest.raises(InvalidInput, match="unlike accelerators"):
        cluster("local")
    machine(monkeypatch, nvidia_smi="NVIDIA Z9000, 1000\n")
    with pytest.raises(MissingDatum, match=r"'NVIDIA Z9000' \(1000 MiB\)"):
        cluster("local")


@pytest.mark.parametrize(
    ("text", "other", "taken"),
    [
        ("8xa100", "a100-sxm-40gb", "A100-SXM-80GB"),
        ("m3-max", "apple-m3-max-48gb", "Apple-M3-Max-128GB"),
        ("3080", "rtx-3080-12gb", "RTX-3080-10GB"),
    ],
)
def test_a_name_that_leaves_the_memory_open_says_which_is_taken(text, other, taken):
    assert other in cluster(text).note and f"assuming {taken}" in cluster(text).note
    assert cluster(taken).note == cluster("rtx-4090").note == ""


@pytest.mark.parametrize(
    ("kind", "names"), [("cpu", "core-i9-13900k, core-i9-14900k"), ("apple", "m"), ("GPU", "more, or local")]
)
def test_a_kind_in_place_of_a_name_is_answered_with_names_of_that_kind(kind, names):
    with pytest.raises(UnknownName, match="is a kind of accelerator, not a name") as raised:
        cluster(kind)
    assert names in str(raised.value)


@pytest.mark.parametrize(
    ("name", "accelerator", "count"),
    [
        ("g5.xlarge", "A10G", 1),
        ("g5.12xlarge", "A10G", 4),
        ("g6e.xlarge", "L40S", 1),
        ("g4dn.xlarge", "T4", 1),
        ("p5.48xlarge", "H100-SXM-80GB", 8),
        ("p4d.24xlarge", "A100-SXM-40GB", 8),
        ("a3-highgpu-8g", "H100-SXM-80GB", 8),
        ("a3-highgpu-1g", "H100-SXM-80GB", 1),
        ("g2-standard-4", "L4", 1),
        ("ND96isr_H100_v5", "H100-SXM-80GB", 8),
        ("Standard_NC24ads_A100_v4", "A100-PCIe-80GB", 1),
        ("dgx-h100", "H100-SXM-80GB", 8),
        ("mac studio", "Apple-M3-Ultra-96GB", 1),
        ("Mac Studio M4 Max 64GB", "Apple-M4-Max-64GB", 1),
        ("macbook pro m4 max", "Apple-M4-Max-128GB", 1),
        ("MacBook Pro 16-inch, M4 Max 48GB", "Apple-M4-Max-48GB", 1),
        ("mac mini m4 pro 64gb", "Apple-M4-Pro-64GB", 1),
        ("Mac Studio 512GB", "Apple-M3-Ultra-512GB", 1),
        ("Mac Studio M3 Ultra 512GB", "Apple-M3-Ultra-512GB", 1),
        ("Mac_Studio_M4_Max_64GB", "Apple-M4-Max-64GB", 1),
        ("M3 Ultra Mac Studio (512 GB)", "Apple-M3-Ultra-512GB", 1),
        ("MacBook-Pro M4 Max 128 GB", "Apple-M4-Max-128GB", 1),
        ("Framework Desktop 128GB", "Strix-Halo-128GB", 1),
        ("framework desktop 32gb", "Ryzen-AI-Max-385-32GB", 1),
        ("GMKtec EVO-X2", "Strix-Halo-128GB", 1),
        ("HP ZBook Ultra G1a 64GB", "Strix-Halo-64GB", 1),
        ("Ryzen AI Max+ 395", "Strix-Halo-128GB", 1),
        ("NVIDIA DGX Spark 128GB", "GB10-128GB", 1),
        ("ASUS Ascent GX10", "GB10-128GB", 1),
        ("DGX Station", "GB300-288GB", 1),
        ("Jetson AGX Orin 64 GB", "Jetson-AGX-Orin-64GB", 1),
        ("Jetson Thor", "Jetson-AGX-Thor", 1),
        ("HGX A100", "A100-SXM-80GB", 8),
        ("RTX 4090D-48GB", "RTX-4090-D:48gb", 1),
        ("4090 48GB", "RTX-4090:48gb", 1),
        ("RTX 2080 Ti 22GB", "RTX-2080-Ti:22gb", 1),
        ("NVIDIA GeForce RTX-4060 Ti 8 GB", "RTX-4060-Ti-8GB", 1),
        ("rtx3080ti", "RTX-3080-Ti", 1),
        ("RTX 5090 Laptop", "RTX-5090-Laptop", 1),
        ("GTX 1080 Ti", "GTX-1080-Ti", 1),
        ("Tesla P40", "P40", 1),
        ("Trainium 2", "Trainium2", 1),
        ("Radeon 7900 XTX", "RX-7900-XTX", 1),
        ("ml.g5.xlarge", "A10G", 1),
        ("aws g5.xlarge", "A10G", 1),
        ("g6f.large", "L4:3gb", 1),
        ("g7e.12xlarge", "RTX-PRO-6000-Blackwell-Server", 2),
        ("p6e-gb200.36xlarge", "GB200-186GB", 4),
        ("trn2.3xlarge", "Trainium2", 1),
        ("Standard_NV6ads_A10_v5", "A10:4gb", 1),
        ("Standard_NC4as_T4_v3", "T4", 1),
        ("VM.GPU.A10.2", "A10", 2),
        ("gpu_1x_h100_sxm5", "H100-SXM-80GB", 1),
        ("gd-8xh100ib-i128", "H100-SXM-80GB", 8),
        ("gpu-mi300x1-192gb", "MI300X", 1),
        ("ecs.gn7e-c16g1.4xlarge", "A100-SXM-80GB", 1),
        ("GN10Xp.2XLARGE40", "V100-SXM2-32GB", 1),
        ("ct5lp-hightpu-1t", "TPU-v5e", 1),
        ("v5litepod-16", "TPU-v5e", 16),
        ("v5p-128", "TPU-v5p", 64),
        ("2xv6e-16", "TPU-v6e", 32),
    ],
)
def test_machines_are_known_by_the_names_that_people_use(name, accelerator, count):
    found = cluster(name)
    assert (found.accelerator.name, found.size) == (accelerator, count)


def test_a_computer_whose_chip_is_not_said_names_the_others():
    note = cluster("mac studio").note
    assert "apple-m4-max-64gb" in note and "assuming Apple-M3-Ultra-96GB" in note
    with pytest.raises(UnknownName, match="say which, as in 'mac mini m4 pro'"):
        cluster("mac mini")
    with pytest.raises(UnknownName, match="no accelerator or node is called"):
        cluster("macbook pro m99")


def test_a_computer_whose_memory_is_said_is_the_one_that_has_it_or_names_those_that_do():
    with pytest.raises(UnknownName, match=r"may be apple-m4-24gb or apple-m4-pro-24gb: say which"):
        cluster("mac mini 24gb")
    with pytest.raises(UnknownName, match=r"may be .*strix-halo-128gb"):
        cluster("framework desktop 48gb")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("g5.xlrge", "g5.xlarge"),
        ("a2-highgpu-1", "a2-highgpu-1g"),
        ("Standard_NC24ads_A10_v4", "standard-nc24ads-a100-v4"),
        ("dgx sprk", "dgx-spark"),
        ("jetson agx orrin 64gb", "jetson-agx-orin-64gb"),
        ("rtx 2090", "rtx-2080"),
        ("v5litepod-17x", "v5litepod-1"),
    ],
)
def test_a_misspelt_machine_is_answered_with_the_nearest_one(written, meant):
    with pytest.raises(UnknownName, match="Did you mean") as raised:
        cluster(written)
    assert meant in raised.value.nearest


@pytest.mark.parametrize("name", ["v5p-7", "v4-1"])
def test_a_slice_that_cannot_be_cut_is_not_known(name):
    with pytest.raises(UnknownName):
        cluster(name)

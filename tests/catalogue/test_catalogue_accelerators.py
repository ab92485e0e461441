"""The catalogue of accelerators: every file is strict, sourced, named once, and says what its sources say."""

import re
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from every_row import every_row
from tonnage.catalogue import accelerator, accelerator_names, node, toml_files
from tonnage.catalogue.accelerators import KINDS, PRECISIONS, AcceleratorFile, load
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName
from tonnage.kernel.units import GB, GIB, MIB, TERA

HERE = toml_files.HERE / "accelerators"
PATHS = sorted(HERE.glob("*.toml"))
STEMS = [path.stem for path in PATHS]

# NVIDIA prints these sparse peaks rounded, or beside a dense one that is not their half: (accelerator, precision).
NOT_TWICE = {("l40s", "bf16"), ("l40s", "fp16"), ("a30", "tf32")}

# (accelerator, fact, value in the unit of the fact's name, where that is published)
PUBLISHED = [
    ("h100", "bf16", 989.4, "H100 whitepaper v1.04 table 3, dense"),
    ("h100", "fp8", 1978.9, "H100 whitepaper v1.04 table 3, dense"),
    ("h100", "nominal_gib", 80, "nvidia.com H100"),
    ("h100", "reported_mib", 81559, "nvidia-smi"),
    ("h100", "bandwidth", 3350, "nvidia.com H100; 3000 was announced"),
    ("h100", "scale_up", 450, "900 GB/s both ways"),
    ("h100", "tdp", 700, "nvidia.com H100"),
    ("h100-pcie", "bf16", 756, "H100 whitepaper, PCIe"),
    ("h100-nvl", "bandwidth", 3938, "H100 NVL product brief"),
    ("h100", "runtime_mib", 80995, "torch: 79.097 GiB"),
    ("h100-nvl", "reported_mib", 95830, "nvidia-smi"),
    ("h200", "bandwidth", 4800, "nvidia.com H200"),
    ("h200", "reported_mib", 143771, "nvidia-smi"),
    ("h20", "bf16", 148, "HGX H20 specification"),
    ("h800", "scale_up", 200, "400 GB/s both ways, DeepSeek-V3 issue 28"),
    ("a100-sxm-80gb", "bf16", 312, "GA100 whitepaper"),
    ("a100-sxm-80gb", "bandwidth", 2039, "nvidia.com A100"),
    ("a100-sxm-40gb", "bandwidth", 1555, "nvidia.com A100"),
    ("a100-sxm-80gb", "scale_up", 300, "600 GB/s both ways"),
    ("a10g", "bf16", 70, "half of the A10's 125, AWS product pages"),
    ("a10", "bf16", 125, "nvidia.com A10"),
    ("v100-sxm2-16gb", "fp16", 125, "V100 datasheet"),
    ("t4", "fp16", 65, "T4 datasheet"),
    ("t4", "runtime_mib", 14912, "llama.cpp: 14912 MiB; torch: 14.563 GiB"),
    ("l4", "bf16", 121, "half of 242 with sparsity"),
    ("l40s", "bf16", 362.05, "L40S datasheet, dense"),
    ("b200", "bf16", 2250, "Blackwell datasheet, dense"),
    ("b100", "bf16", 1750, "announcement of March 2024; 2250 is the B200's"),
    ("gb200", "bf16", 2500, "GB200 NVL72, dense"),
    ("b300", "fp4", 13500, "HGX B300: 108 PFLOPS of 8"),
    ("gb300", "nominal_gib", 288, "nvidia.com GB300 NVL72"),
    ("rtx 4090", "bf16", 165.2, "Ada whitepaper v2.02, fp32 accumulation"),
    ("rtx 4090", "reported_mib", 24564, "nvidia-smi"),
    ("rtx 4090", "runtime_mib", 24074, "torch: 23.51 GiB"),
    ("rtx 4090", "bandwidth", 1008, "Ada whitepaper"),
    ("rtx 3090", "bf16", 71, "GA102 whitepaper, fp32 accumulation"),
    ("rtx 5090", "bf16", 209.5, "RTX Blackwell whitepaper v1.1, fp32 accumulation"),
    ("rtx 5090", "bandwidth", 1792, "nvidia.com RTX 5090"),
    ("rtx 6000 ada", "bf16", 364.2, "RTX 6000 Ada datasheet: 728.5 with sparsity"),
    ("mi300x", "bf16", 1307.4, "MI300X datasheet, footnote MI300-18"),
    ("mi300x", "bandwidth", 5325, "MI300X datasheet"),
    ("mi300x", "runtime_mib", 196288, "HIP: 205822885888 bytes"),
    ("mi300x", "scale_up", 448, "7 links of 64 GB/s each way"),
    ("mi250x", "bf16", 191.5, "half of the package's 383"),
    ("mi355x", "bf16", 2516.6, "MI355X datasheet"),
    ("mi355x", "tdp", 1400, "MI355X datasheet"),
    ("gaudi3", "bf16", 1677, "1835 is at a clock that was never sold"),
    ("gaudi2", "bf16", 432, "Gaudi 2 white paper"),
    ("tpu-v3", "bf16", 123, "cloud.google.com/tpu"),
    ("tpu-v4", "bf16", 275, "cloud.google.com/tpu"),
    ("tpu-v5e", "bf16", 197, "cloud.google.com/tpu"),
    ("tpu-v5e", "runtime_mib", 16128, "XLA: of 15.75G hbm"),
    ("tpu-v5p", "bf16", 459, "cloud.google.com/tpu"),
    ("tpu-v6e", "bf16", 918, "cloud.google.com/tpu"),
    ("tpu-v7", "bf16", 2307, "cloud.google.com/tpu"),
    ("trainium1", "bf16", 190, "AWS Neuron documentation"),
    ("trainium2", "bf16", 667, "AWS Neuron documentation"),
    ("trainium2", "fp8", 1299, "AWS Neuron documentation"),
    ("m4 max 128gb", "bandwidth", 546, "apple.com M4 Max"),
    ("m3 ultra 512gb", "bandwidth", 819, "apple.com M3 Ultra"),
    ("910c", "bf16", 780, "SemiAnalysis"),
    ("max-1550", "bf16", 838.9, "1024 engines x 512 x 1.6 GHz, Intel's 839"),
]  # fmt: skip


def figure(name: str, fact: str) -> float | None:
    """A fact in the unit in which it is published: TFLOP/s, GB/s, GiB, MiB or watts."""
    found = accelerator(name)
    if fact in PRECISIONS:
        return found.dense_flops[fact] / TERA
    values = {
        "nominal_gib": found.memory.nominal_bytes / GIB,
        "reported_mib": (found.memory.reported_bytes or 0) / MIB,
        "runtime_mib": (found.memory.runtime_bytes or 0) / MIB,
        "bandwidth": (found.memory.bytes_per_second or 0) / GB,
        "scale_up": found.scale_up.bytes_per_second / GB if found.scale_up else None,
        "tdp": found.tdp_watts,
    }
    return values[fact]


def fields(path: Path) -> dict:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_the_catalogue_has_at_least_a_hundred_accelerators():
    assert len(PATHS) >= 100
    assert set(STEMS) <= set(accelerator_names())


@every_row("path", PATHS, ids=STEMS, at_least=195)
def test_every_file_loads_strictly_under_its_own_name(path):
    found = load(path)
    assert toml_files.key(found.name) == path.stem
    assert found.kind in KINDS
    for variant in found.variants:
        sliced = load(path, variant)
        assert sliced.name == f"{found.name}:{variant}"
        assert sliced.memory.nominal_bytes > 0


@every_row("path", PATHS, ids=STEMS, at_least=195)
def test_every_fact_resolves_to_a_dated_source(path):
    found, form = load(path), toml_files.read(path, AcceleratorFile)
    facts = ["memory.nominal_gib"]
    readings = ("bandwidth_gb_per_s", "reported_mib", "runtime_mib")
    facts += [f"memory.{field}" for field in readings if getattr(form.memory, field)]
    facts += ["memory.system_gib"] * bool(form.memory.system_gib)
    facts += [f"dense_tflops.{precision}" for precision in form.dense_tflops]
    facts += [f"sparse_tflops.{precision}" for precision in form.sparse_tflops]
    facts += [field for field in ("scale_up", "host_link", "tdp_watts") if getattr(form, field) is not None]
    unsourced = [fact for fact in facts if found.fact(fact) is None]
    assert not unsourced
    assert all(source.source and "2016-" < source.as_of < "2027-" for source in found.sources.values())


def test_a_measured_reading_has_its_own_source_not_the_vendors():
    for path in PATHS:
        for reading in {"reported_mib", "runtime_mib"} & set(fields(path)["memory"]):
            assert f"memory.{reading}" in load(path).sources, path.stem


def test_no_two_accelerators_answer_to_one_name():
    owners: dict[str, str] = {}
    for path in PATHS:
        for name in {path.stem, *map(toml_files.key, fields(path)["aliases"])}:
            assert owners.setdefault(name, path.stem) == path.stem, f"{name}: {owners[name]} and {path.stem}"


def test_every_alias_finds_its_file():
    for path in PATHS:
        for alias in fields(path)["aliases"]:
            assert accelerator(alias).name == load(path).name


def test_no_driver_reports_more_memory_than_is_sold():
    for path in PATHS:
        memory = load(path).memory
        if memory.reported_bytes:
            assert 0.9 < memory.reported_bytes / memory.nominal_bytes <= 1, path.stem


def with_runtime() -> list[Path]:
    return [path for path in PATHS if load(path).memory.runtime_bytes]


def test_what_programs_get_is_known_for_most_accelerators_that_people_use():
    assert len(with_runtime()) >= 70
    for name in (
        "v100-sxm2-32gb",
        "t4",
        "a10g",
        "a100-sxm-80gb",
        "l4",
        "l40s",
        "h100",
        "h200",
        "b200",
        "gh200",
        "gb200",
        "rtx 3090",
        "rtx 4090",
        "rtx 5090",
        "rtx a6000",
        "mi300x",
        "rx 7900 xtx",
        "agx orin",
        "tpu-v5e",
    ):
        assert accelerator(name).memory.usable_from == "runtime", name


def test_programs_get_all_but_a_little_of_what_the_driver_shows():
    for path in with_runtime():
        memory = load(path).memory
        if memory.reported_bytes:
            kept = memory.reported_bytes - memory.runtime_bytes
            assert 0 <= kept <= max(0.04 * memory.reported_bytes, 512 * MIB), path.stem
        else:
            assert 0.93 < memory.runtime_bytes / memory.nominal_bytes <= 1, path.stem


def seen(why: str) -> list[float]:
    """The readings that a reason lists, in MiB: 24081, 23.51 GiB."""
    exact = [float(number) for number in re.findall(r"(?<![\d.])\d{4,}(?![\d.])", why)]
    return exact or [float(number) * 1024 for number in re.findall(r"(\d+\.\d+)(?= GiB| to)", why)]


@every_row("path", with_runtime(), ids=lambda path: path.stem, at_least=75)
def test_what_programs_get_is_the_lowest_of_the_readings_that_its_reason_lists(path):
    found = load(path)
    if found.kind == "gpu":
        assert min(seen(found.why["memory.runtime_mib"])) == pytest.approx(found.memory.runtime_bytes / MIB, abs=1)


def test_usable_memory_is_what_programs_get_else_what_the_driver_shows_else_what_is_sold():
    known = accelerator("h100").memory
    assert known.runtime_bytes < known.reported_bytes < known.nominal_bytes
    assert (known.usable_bytes, known.usable_from) == (known.runtime_bytes, "runtime")
    driver = replace(known, runtime_bytes=None)
    assert (driver.usable_bytes, driver.usable_from) == (known.reported_bytes, "driver")
    nominal = replace(driver, reported_bytes=None, system_bytes=GIB)
    assert (nominal.usable_bytes, nominal.usable_from) == (known.nominal_bytes - GIB, "nominal")


def test_another_size_never_has_the_whole_cards_readings():
    for path in PATHS:
        for variant, changed in fields(path).get("variants", {}).items():
            part = load(path, variant).memory
            if "nominal_gib" in changed or "reported_mib" in changed:
                assert part.runtime_bytes == (changed["runtime_mib"] * MIB if "runtime_mib" in changed else None), (
                    variant
                )
    assert accelerator("h100:1g.10gb").memory.usable_from == "driver"
    assert accelerator("rtx-a6000:ecc-on").memory.runtime_bytes < accelerator("rtx-a6000").memory.runtime_bytes


def test_a_variant_of_the_same_memory_keeps_what_programs_get(tmp_path):
    same = GOOD.replace("reported_mib = 24000", "reported_mib = 24000\nruntime_mib = 23600").replace(
        "nominal_gib = 12\n", ""
    )
    path = written(tmp_path, same)
    assert load(path, "half").memory.runtime_bytes == load(path).memory.runtime_bytes == 23600 * MIB


def test_a_default_node_holds_the_accelerator_that_names_it():
    for path in PATHS:
        found = load(path)
        if found.default_node:
            assert node(found.default_node).accelerator == found.name


def test_nvidias_sparse_peaks_are_twice_the_dense_ones():
    for path in PATHS:
        found = load(path)
        for precision in found.sparse_flops if found.vendor == "NVIDIA" else ():
            ratio = found.sparse_flops[precision] / found.dense_flops[precision]
            close = 0.03 if (path.stem, precision) in NOT_TWICE else 0.005
            assert ratio == pytest.approx(2, rel=close), (path.stem, precision)


def test_the_listed_exceptions_to_twice_the_dense_peak_are_exceptions():
    for stem, precision in NOT_TWICE:
        found = accelerator(stem)
        assert found.sparse_flops[precision] / found.dense_flops[precision] != pytest.approx(2, rel=0.005)


def test_every_peak_is_the_dense_one_of_a_chip_that_also_has_a_sparse_one():
    for path in PATHS:
        found = load(path)
        for precision, sparse in found.sparse_flops.items():
            assert sparse > found.dense_flops[precision], (path.stem, precision)


@every_row(("name", "fact", "value", "source"), PUBLISHED, at_least=60)
def test_a_fact_is_the_published_one(name, fact, value, source):
    assert figure(name, fact) == pytest.approx(value, rel=1e-4), source


@every_row(
    ("written", "name"),
    [
        ("h100", "H100-SXM-80GB"),
        ("H100", "H100-SXM-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
        ("nvidia-h100-80gb-hbm3", "H100-SXM-80GB"),
        ("NVIDIA H100 PCIe", "H100-PCIe-80GB"),
        ("NVIDIA H200", "H200-SXM-141GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32GB"),
        ("NVIDIA B200", "B200-SXM-180GB"),
        ("NVIDIA GH200 480GB", "GH200-96GB"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GB10", "GB10-128GB"),
        ("4090", "RTX-4090"),
        ("rtx 4090", "RTX-4090"),
        ("RTX_4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090 D", "RTX-4090-D"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
        ("NVIDIA RTX A6000", "RTX-A6000"),
        ("m4 max 128gb", "Apple-M4-Max-128GB"),
        ("M1 8GB", "Apple-M1-8GB"),
        ("M2 Ultra 192GB", "Apple-M2-Ultra-192GB"),
        ("mi300x", "MI300X"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI250X", "MI250X-GCD"),
        ("Radeon RX 7900 XTX", "RX-7900-XTX"),
        ("tpu-v5p", "TPU-v5p"),
        ("TPU v5 lite", "TPU-v5e"),
        ("TPU v6 lite", "TPU-v6e"),
        ("trillium", "TPU-v6e"),
        ("昇腾910b", "Ascend-910B-64GB"),
        ("Ascend910B2", "Ascend-910B-64GB"),
        ("gaudi3", "Gaudi3"),
        ("trn2", "Trainium2"),
        ("Ryzen AI Max+ 395", "Strix-Halo-128GB"),
        ("strix halo", "Strix-Halo-128GB"),
    ],
)
def test_people_and_drivers_find_an_accelerator_by_the_name_they_use(written, name):
    assert accelerator(written).name == name


def test_a_mig_slice_has_its_share_of_memory_bandwidth_and_compute():
    whole, part = accelerator("h100"), accelerator("H100-SXM-80GB:1g.10gb")
    assert part.memory.nominal_bytes == 10 * GIB
    assert part.memory.reported_bytes == 9984 * MIB
    assert part.memory.bytes_per_second == pytest.approx(whole.memory.bytes_per_second / 8, rel=1e-3)
    assert part.peak("bf16") == pytest.approx(whole.peak("bf16") * 16 / 132, rel=1e-3)
    assert "mig" in part.fact("memory.reported_mib").source


def test_the_slices_of_a_chip_are_never_larger_than_the_chip():
    for path in PATHS:
        whole = load(path)
        for variant in whole.variants:
            part = load(path, variant)
            if "mig" in part.fact("memory").source or variant in ("core", "die", "stack"):
                assert part.memory.nominal_bytes <= whole.memory.nominal_bytes
                assert sum(part.dense_flops.values()) <= sum(whole.dense_flops.values())


def test_ecc_costs_the_cards_that_keep_it_in_the_same_memory_a_part_of_it():
    switched = [path for path in PATHS if "ecc-on" in load(path).variants or "ecc-off" in load(path).variants]
    assert len(switched) >= 8
    for path in switched:
        whole = load(path)
        on = load(path, "ecc-on") if "ecc-on" in whole.variants else whole
        off = load(path, "ecc-off") if "ecc-off" in whole.variants else whole
        assert on.memory.reported_bytes < off.memory.reported_bytes, path.stem


def test_macos_keeps_a_third_of_a_small_memory_and_a_quarter_of_a_large_one():
    small, large = accelerator("m1 16gb").memory, accelerator("m4 max 128gb").memory
    assert small.system_bytes == pytest.approx(16 * GIB / 3, rel=0.01)
    assert large.system_bytes == pytest.approx(128 * GIB / 4, rel=0.01)
    assert small.unified and large.unified
    for path in PATHS:
        found = load(path)
        if found.kind == "apple":
            assert "recommendedMaxWorkingSetSize" in found.fact("memory.system_gib").source, path.stem


def test_a_peak_that_no_source_gives_is_missing_and_never_made_up():
    with pytest.raises(MissingDatum, match="fp64"):
        accelerator("rtx 4090").peak("fp64")


def test_a_name_that_is_not_there_suggests_one_that_is():
    with pytest.raises(UnknownName, match="h100"):
        accelerator("h1000")
    with pytest.raises(UnknownName, match=r"1g\.10gb"):
        accelerator("h100:1g.11gb")


GOOD = """
name = "Chip"
aliases = ["a chip"]
vendor = "Someone"
kind = "gpu"
generation = "First"
tdp_watts = 300
[memory]
nominal_gib = 24
reported_mib = 24000
kind = "GDDR6"
bandwidth_gb_per_s = 900
[dense_tflops]
bf16 = 100
[scale_up]
name = "link"
gb_per_s = 50
[variants.half]
what = "half of it"
nominal_gib = 12
compute_fraction = 0.5
source = "here"
as_of = "2026-11-21"
[sources]
memory = { source = "here", as_of = "2026-11-21" }
dense_tflops = { source = "here", as_of = "2026-11-21" }
scale_up = { source = "here", as_of = "2026-11-21" }
tdp_watts = { source = "here", as_of = "2026-11-21" }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "chip.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_smallest_file_of_a_users_own_loads(tmp_path):
    chip = load(written(tmp_path, GOOD))
    assert chip.memory.nominal_bytes == 24 * GIB
    assert chip.scale_up.bytes_per_second == 50 * GB
    assert load(written(tmp_path, GOOD), "half").peak("bf16") == 50 * TERA


def test_an_accelerator_of_ones_own_is_found_by_its_file_name(tmp_path, monkeypatch):
    folder = tmp_path / "accelerators"
    folder.mkdir()
    written(folder, GOOD)
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    assert accelerator("Chip").vendor == "Someone"
    assert "chip" in accelerator_names()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "gpu"', 'kind = "gpu"\ncolour = "red"', "unknown field `colour`"),
        ("nominal_gib = 24\n", "nominal_gib = 24\nsize = 24\n", "unknown field `size`"),
        ("tdp_watts = 300", 'tdp_watts = "300 W"', r"tdp_watts"),
        ("nominal_gib = 24\n", "nominal_gib = 24e9\n", r"memory.nominal_gib must be above 0 and at most 65,536"),
        ("nominal_gib = 24\n", "nominal_gib = 0\n", r"memory.nominal_gib must be above 0"),
        ("reported_mib = 24000", "reported_mib = 25769", "exceeds nominal_gib"),
        ("reported_mib = 24000", "reported_mib = 24", "below half of nominal_gib"),
        ("reported_mib = 24000", "runtime_mib = 25769", r"runtime_mib \(25769.*\) exceeds nominal_gib"),
        ("reported_mib = 24000", "reported_mib = 24000\nruntime_mib = 24001", "exceeds reported_mib"),
        ("reported_mib = 24000", "runtime_mib = 23.6", r"runtime_mib \(23.6\) is below half of nominal_gib"),
        ("reported_mib = 24000", "runtime_mib = -1", "runtime_mib must be above 0"),
        ("nominal_gib = 12", "nominal_gib = 12\nruntime_mib = 12289", "variants.half.runtime_mib"),
        ("bandwidth_gb_per_s = 900", "bandwidth_gb_per_s = 900e9", "bandwidth_gb_per_s must be above 0 and at most"),
        ("gb_per_s = 50", "gb_per_s = -50", r"scale_up.gb_per_s must be above 0"),
        (
            "gb_per_s = 50",
            "gb_per_s = 50\njoins = 1",
            r"scale_up.joins must be at least 2, or 0 for all of a node. Got 1",
        ),
        ("bf16 = 100", "bf16 = 100e12", r"dense_tflops.bf16 must be above 0 and at most"),
        ("bf16 = 100", "bf16 = nan", r"dense_tflops.bf16 must be above 0"),
        ("bf16 = 100", "bf17 = 100", "bf16"),
        ("tdp_watts = 300", "tdp_watts = 3e9", "tdp_watts must be above 0 and at most"),
        ('kind = "gpu"', 'kind = "card"', "kind must be one of gpu, tpu, npu, cpu, apple. Got 'card'"),
        ('tdp_watts = { source = "here", as_of = "2026-11-21" }', "", "tdp_watts has no source"),
        ('memory = { source = "here", as_of = "2026-11-21" }', "", "memory.nominal_gib has no source"),
        (
            'scale_up = { source = "here", as_of = "2026-11-21" }',
            'scale_up = { source = "here", as_of = "last year" }',
            "must be a date such as",
        ),
        ('scale_up = { source = "here",', 'scale_up = { source = " ",', r"sources.scale_up.source is empty"),
        ("compute_fraction = 0.5", "compute_fraction = 50", "compute_fraction must be above 0 and at most 1"),
        ("[variants.half]", "[variants.Half]", "must be written 'half'"),
        ("nominal_gib = 12", "nominal_gib = 12\nreported_mib = 24000", "exceeds nominal_gib"),
        ('name = "Chip"', 'name = "Chip', "is not TOML"),
        ('vendor = "Someone"\n', "", "missing required field `vendor`"),
    ],
)
def test_a_mistake_in_a_file_is_a_clear_invalid_input(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(InvalidInput, match=message) as caught:
        load(written(tmp_path, GOOD.replace(old, new, 1)))
    assert "chip.toml" in str(caught.value)

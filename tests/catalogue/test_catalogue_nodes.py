"""The catalogue of nodes: every file is strict, sourced, named once, and agrees with its accelerator and its
network.
"""

import tomllib
from pathlib import Path

import pytest

from every_row import every_row
from tonnage.catalogue import accelerator, accelerator_names, cluster, node, node_names, toml_files
from tonnage.catalogue.nodes import load
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.kernel.units import GB, GIB

PATHS = sorted((toml_files.HERE / "nodes").glob("*.toml"))
STEMS = [path.stem for path in PATHS]
FACTS = {"inside": "inside", "outside": "outside", "host_memory_bytes": "host_memory_gib", "power_watts": "power_watts"}

# Nodes whose wiring leaves links of the chip unused: node -> what the chip could carry in GB/s.
PART_OF_THE_LINKS = {
    "trn2.48xlarge": 640,
    # of Tenstorrent's chips a node wires some
    **dict.fromkeys(("wormhole-n300", "tt-loudbox-wormhole", "tt-quietbox-wormhole"), 200),
    "tt-loudbox-blackhole": 400,
}

# (node, accelerators, GB/s inside, Gb/s outside of the whole node, GiB of the host), each as its maker prints it
PUBLISHED = [
    ("dgx-1", 8, 150, 400, 512),
    ("dgx-2", 16, 150, 800, 1536),
    ("dgx-a100", 8, 300, 1600, 2048),
    ("dgx-h100", 8, 450, 3200, 2048),
    ("dgx-h200", 8, 450, 3200, 2048),
    ("dgx-b200", 8, 900, 3200, 2048),
    ("dgx-b300", 8, 900, 6400, 2048),
    ("gb200-nvl72", 72, 900, 28800, 17280),
    ("gb300-nvl72", 72, 900, 57600, 17280),
    ("p3dn.24xlarge", 8, 150, 100, 768),
    ("p4d.24xlarge", 8, 300, 400, 1152),
    ("p5.48xlarge", 8, 450, 3200, 2048),
    ("p6-b200.48xlarge", 8, 900, 3200, 2048),
    ("p6-b300.48xlarge", 8, 900, 6400, 4096),
    ("g7e.48xlarge", 8, 63, 1600, 2048),
    ("trn1.32xlarge", 16, 192, 800, 512),
    ("trn2.48xlarge", 16, 512, 3200, 2048),
    ("trn3-ultraserver-gen2", 144, 1280, 28800, 27648),
    ("a2-ultragpu-8g", 8, 300, 100, 1360),
    ("a3-highgpu-8g", 8, 450, 800, 1872),
    ("a3-megagpu-8g", 8, 450, 1600, 1872),
    ("a3-ultragpu-8g", 8, 450, 3200, 2952),
    ("a4-highgpu-8g", 8, 900, 3200, 3968),
    ("nd96isr-h100-v5", 8, 450, 3200, 1900),
    ("nd96isr-h200-v5", 8, 450, 3200, 1850),
    ("nd96isr-mi300x-v5", 8, 448, 3200, 1850),
    ("bm.gpu.h100.8", 8, 450, 3200, 2048),
    ("tpu-v5e-8", 8, 200, 200, 512),
    ("tpu-v6e-8", 8, 400, 800, 1536),
]


def fields(path: Path) -> dict:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_the_catalogue_has_at_least_forty_nodes():
    assert len(PATHS) >= 40
    assert set(STEMS) <= set(node_names())


@every_row("path", PATHS, ids=STEMS, at_least=85)
def test_every_file_loads_strictly_under_its_own_name(path):
    found = load(path)
    assert toml_files.key(found.name) == path.stem
    assert node(found.name) == found


@every_row("path", PATHS, ids=STEMS, at_least=85)
def test_every_figure_has_a_dated_source(path):
    found = load(path)
    stated = {key for field, key in FACTS.items() if getattr(found, field) is not None}
    assert stated <= set(found.sources)
    assert all(fact.source and "2016-" < fact.as_of < "2027-" for fact in found.sources.values())


def test_every_node_holds_an_accelerator_of_the_catalogue_by_its_own_name():
    for path in PATHS:
        found = load(path)
        assert accelerator(found.accelerator).name == found.accelerator, path.stem


def test_no_two_nodes_and_no_accelerator_answer_to_one_name():
    owners = {toml_files.key(name): name for name in [*toml_files.aliases("accelerators"), *accelerator_names()]}
    for path in PATHS:
        for name in {path.stem, *map(toml_files.key, fields(path)["aliases"])}:
            assert owners.setdefault(name, path.stem) == path.stem, f"{name}: {owners[name]} and {path.stem}"


def test_a_node_wires_what_its_accelerator_has():
    for path in PATHS:
        found, chip = load(path), accelerator(load(path).accelerator)
        link = chip.scale_up or chip.host_link
        if found.inside and link:
            whole = PART_OF_THE_LINKS.get(path.stem, found.inside.bytes_per_second / GB)
            assert link.bytes_per_second / GB == pytest.approx(whole), path.stem


def test_the_network_between_nodes_is_never_faster_than_the_one_inside():
    for path in PATHS:
        found = load(path)
        if found.inside and found.outside:
            assert found.outside.bytes_per_second < found.inside.bytes_per_second, path.stem


@every_row(("name", "count", "inside", "outside", "memory"), PUBLISHED, at_least=25)
def test_a_node_is_as_published(name, count, inside, outside, memory):
    found = node(name)
    assert found.accelerators == count
    assert found.inside.bytes_per_second == pytest.approx(inside * GB)
    assert found.outside.bytes_per_second * 8 / 1e9 * count == pytest.approx(outside)
    assert found.host_memory_bytes == memory * GIB


def test_the_power_of_a_machine_exceeds_that_of_its_accelerators():
    for path in PATHS:
        found = load(path)
        watts = accelerator(found.accelerator).tdp_watts
        if found.power_watts and watts:
            assert found.accelerators * watts < found.power_watts * 1.25, path.stem
            assert found.power_watts < 3 * found.accelerators * watts, path.stem


def test_a_node_is_a_cluster_and_nodes_can_be_counted():
    one, four = cluster("dgx-h100"), cluster("4xDGX H100")
    assert (one.num_nodes, one.accelerators_per_node) == (1, 8)
    assert (four.num_nodes, four.accelerators_per_node) == (4, 8)
    assert cluster("gb200-nvl72").size == 72
    assert cluster("2xp4d.24xlarge").accelerator.name == "A100-SXM-40GB"


def test_accelerators_beyond_one_node_fill_further_nodes_of_the_usual_kind():
    assert cluster("16xh100").num_nodes == 2
    assert cluster("16xh100").node.name == "DGX-H100"
    assert cluster("144xgb200").num_nodes == 2
    assert cluster("8xmi300x").node.name == "MI300X-Platform"


def test_a_node_that_is_not_there_suggests_one_that_is():
    with pytest.raises(UnknownName, match="dgx-h100"):
        node("dgx-h10")


GOOD = """
name = "Box"
accelerator = "H100-SXM-80GB"
accelerators = 8
host_memory_gib = 2048
power_watts = 10200
[inside]
name = "NVLink 4"
gb_per_s = 450
[outside]
name = "InfiniBand"
gb_per_s = 50
[sources]
inside = { source = "here", as_of = "2026-11-21" }
outside = { source = "here", as_of = "2026-11-21" }
host_memory_gib = { source = "here", as_of = "2026-11-21" }
power_watts = { source = "here", as_of = "2026-11-21" }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "box.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_node_of_ones_own_is_a_file_that_can_be_named_as_a_cluster(tmp_path):
    path = written(tmp_path, GOOD)
    assert load(path).host_memory_bytes == 2048 * GIB
    assert cluster(str(path)).size == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("accelerators = 8", "accelerators = 8\ngpus = 8", "unknown field `gpus`"),
        ("accelerators = 8", 'accelerators = "8"', "accelerators"),
        ("accelerators = 8", "accelerators = 0", "accelerators must be from 1 to 65,536. Got 0"),
        ("accelerators = 8", "accelerators = 80000", "accelerators must be from 1 to 65,536"),
        (
            "accelerators = 8",
            "accelerators = 8\naccelerators_per_host = 3",
            "accelerators_per_host must divide its 8 accelerators. Got 3",
        ),
        ("gb_per_s = 450", "gb_per_s = 450e9", "inside.gb_per_s must be above 0 and at most"),
        ("gb_per_s = 50", "gb_per_s = 0", "outside.gb_per_s must be above 0"),
        ("host_memory_gib = 2048", "host_memory_gib = 2048e9", "host_memory_gib must be above 0 and at most"),
        ("power_watts = 10200", "power_watts = -1", "power_watts must be above 0"),
        ('inside = { source = "here", as_of = "2026-11-21" }', "", "inside has no source"),
        (
            'inside = { source = "here", as_of = "2026-11-21" }',
            'inside = { source = "here", as_of = "today" }',
            "a date",
        ),
        ('name = "Box"', 'name = "Box', "is not TOML"),
        ("accelerators = 8\n", "", "missing required field `accelerators`"),
    ],
)
def test_a_mistake_in_a_file_is_a_clear_invalid_input(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(InvalidInput, match=message) as caught:
        load(written(tmp_path, GOOD.replace(old, new, 1)))
    assert "box.toml" in str(caught.value)

"""Checkpoints on disk and their time, data sets, drives, cores and memory of a node (rules D7, D9, D10)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.breakdown import Term
from tonnage.catalogue import cluster, node
from tonnage.errors import InvalidInput, MissingDatum
from tonnage.estimate.checkpoint import checkpoint_bytes
from tonnage.estimate.storage import (
    checkpoint_times,
    dataset_bytes,
    drives_of,
    host_needs,
    node_cores,
    raw_text_bytes,
    token_bytes,
)
from tonnage.formulas import memory as f
from tonnage.models import read
from tonnage.spec import TrainingPlan

GB, TB = 10**9, 10**12


def checkpoint(size: float = 84e9) -> Term:
    return Term.of("checkpoint", f.fixed_bytes, M=size)


def test_a_checkpoint_takes_its_bytes_over_the_rate_of_the_storage():
    made = checkpoint_times(checkpoint(84e9), write_rate=7 * GB, read_rate=14 * GB)
    assert (made.write.value, made.read.value) == (12, 6)
    assert made.kept.value == 3 * 84e9
    assert checkpoint_times(checkpoint(), write_rate=1, read_rate=1, keep=5).kept.value == 5 * 84e9


def test_the_checkpoint_of_llama_7b_is_written_as_document_d_has_it():
    """D7: 12 bytes a parameter; 7 GB/s."""
    model = read("llama-7b")
    size = checkpoint_bytes(model, TrainingPlan(sequence_length=2048, precision="bf16-mixed"))
    assert size.value == 12 * model.num_parameters()
    assert checkpoint_times(size, write_rate=7 * GB, read_rate=7 * GB).write.value == pytest.approx(11.55, rel=1e-3)


def test_without_a_rate_the_drives_of_the_nodes_share_the_work_and_that_is_an_assumption():
    one, four = (checkpoint_times(checkpoint(), cluster=cluster(name)) for name in ("dgx-h100", "4xdgx-h100"))
    assert one.write.value == pytest.approx(84e9 / (8 * 3.5e9)) and one.read.value == pytest.approx(84e9 / (8 * 6.5e9))
    assert four.write.value == pytest.approx(one.write.value / 4)
    assert one.write.basis == "rule" and "Samsung2020" in one.write.source and "8 x 3.84 TB NVMe" in one.write.source


def test_storage_of_unknown_speed_is_missing_not_guessed():
    with pytest.raises(MissingDatum, match="give write_rate in bytes a second"):
        checkpoint_times(checkpoint(), cluster=cluster("gb200-nvl72"))
    with pytest.raises(MissingDatum, match="give read_rate"):
        checkpoint_times(checkpoint(), write_rate=GB)


@pytest.mark.parametrize(("inputs", "message"), [({"write_rate": 0}, "write_rate must be above 0"), ({"write_rate": float("nan")}, "write_rate"),
                         ({"write_rate": 1, "read_rate": -1}, "read_rate must be above 0"), ({"keep": 0}, "keep must be from 1")])  # fmt: skip
def test_storage_that_cannot_be_is_named(inputs, message):
    with pytest.raises(InvalidInput, match=message):
        checkpoint_times(checkpoint(), **inputs)


@given(st.floats(1, 1e15), st.floats(1e6, 1e13), st.floats(1.1, 100))
def test_faster_storage_never_takes_longer(size, rate, faster):
    slow, fast = (checkpoint_times(checkpoint(size), write_rate=w, read_rate=w) for w in (rate, rate * faster))
    assert fast.write.value <= slow.write.value and fast.read.value <= slow.read.value


def test_an_array_of_rates_gives_what_each_gives_alone():
    rates = np.array([1e9, 2e9, 5e9])
    together = checkpoint_times(checkpoint(), write_rate=rates, read_rate=rates).write
    assert [together.at(i).value for i in range(3)] == [
        checkpoint_times(checkpoint(), write_rate=float(w), read_rate=1.0).write.value for w in rates
    ]


# ---- data sets ----


@pytest.mark.parametrize(
    ("vocab", "width"), [(32_000, 2), (50_257, 2), (65_499, 2), (65_500, 4), (65_536, 4), (128_256, 4)]
)
def test_a_token_takes_two_bytes_below_megatrons_limit_and_four_above(vocab, width):
    assert token_bytes(vocab) == width


def test_the_data_of_llama_3_is_sixty_terabytes_of_ids():
    assert dataset_bytes(15e12, 128_256).value == 60 * TB
    assert dataset_bytes(300e9, 50_257).value == 0.6 * TB


def test_plain_text_is_a_rule_of_thumb_unless_its_width_is_given():
    assert raw_text_bytes(1e12).value == 4 * TB and "OpenAI2023" in raw_text_bytes(1e12).source
    assert raw_text_bytes(1e12).basis == "rule"
    assert raw_text_bytes(1e12, 3).value == 3 * TB
    for wrong in (0, -1, 1000, float("nan")):
        with pytest.raises(InvalidInput, match="bytes_per_token"):
            raw_text_bytes(1e12, wrong)


# ---- the node ----


def test_drives_are_read_from_what_the_nodes_page_says():
    drives = drives_of(node("dgx-h100"))
    assert (drives.count, drives.capacity_bytes) == (8, round(3.84 * TB))
    assert drives_of(node("g4dn.metal")).capacity_bytes == 900 * GB
    assert drives_of(node("dgx-1")) is None  # SATA: nothing says how fast
    assert drives_of(node("gb200-nvl72")) is None


def test_two_virtual_processors_are_one_core():
    assert node_cores(node("dgx-h100")) == 112
    assert node_cores(node("p5.48xlarge")) == 96
    assert node_cores(node("atlas-800t-a2")) is None
    assert node_cores(node("nd128isr-gb200-v6")) is None


def test_a_node_needs_a_core_for_each_process_and_room_for_its_files():
    data = dataset_bytes(15e12, 128_256)
    kept = checkpoint_times(checkpoint(), write_rate=GB, read_rate=GB).kept
    made = host_needs(cluster("dgx-h100"), checkpoints=kept, datasets=(data,), data_loader_workers=8)
    assert made.cores.value == 8 * 9 and made.node_cores == 112
    assert made.disk.value == 60 * TB + 3 * 84e9
    assert made.drives.value == 16
    assert made.warnings == ("the drives of all nodes hold 30.7 TB and 60.3 TB are needed: shared storage is.",)
    assert made.node_memory_bytes == 2048 * 2**30


def test_too_many_loaders_are_said():
    made = host_needs(cluster("dgx-h100"), data_loader_workers=32)
    assert "264 processes want a core each and DGX-H100 has 112" in made.warnings[0]


def test_a_machine_that_the_catalogue_does_not_know_has_needs_and_no_comparison():
    made = host_needs(cluster("rtx-4090"), data_loader_workers=4)
    assert made.cores.value == 5 and made.node_cores is None and made.drives is None and made.disk.value == 0
    with pytest.raises(InvalidInput, match="data_loader_workers must be from 0"):
        host_needs(cluster("h100"), data_loader_workers=-1)

"""Checkpoints on disk and their time, data sets, drives, cores and memory of a node (rules D7, D9, D10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.catalogue import cluster, node
from tonnage.estimate.host.storage import (
    checkpoint_times,
    dataset_bytes,
    drives_of,
    host_needs,
    kept,
    node_cores,
    raw_text_bytes,
    token_bytes,
)
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.run.checkpoint import checkpoint_bytes, checkpoint_formats, saved_bytes
from tonnage.formulas import memory as f
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.term import Term
from tonnage.models import read
from tonnage.spec import TrainingPlan

GB, TB = 10**9, 10**12


def checkpoint(size: float = 84e9) -> Term:
    return Term.of("checkpoint", f.fixed_bytes, M=size)


def times(size=84e9, accelerators=8, **options):
    return checkpoint_times(checkpoint(size), accelerators, RunOptions(**options))


def test_a_checkpoint_takes_its_bytes_over_the_rate_of_the_storage():
    made = times(storage_bandwidth=7e9, storage_read_bandwidth=14e9)
    assert (made.pause.value, made.write.value, made.read.value) == (12, 12, 6)
    assert times(storage_bandwidth=7e9).read.value == 12
    assert kept(checkpoint(), None).value == 3 * 84e9 and kept(checkpoint(), 5).value == 5 * 84e9


def test_the_checkpoint_of_llama_7b_is_written_as_document_d_has_it():
    """D7: 12 bytes a parameter; 7 GB/s."""
    model = read("llama-7b")
    size = checkpoint_bytes(model, TrainingPlan(sequence_length=2048, precision="bf16-mixed"))
    assert size.value == 12 * model.num_parameters()
    made = checkpoint_times(size, 8, RunOptions(storage_bandwidth=7e9))
    assert made.write.value == pytest.approx(11.55, rel=1e-3)


def test_without_a_rate_storage_grows_with_the_cluster_as_llama_3s_did_and_that_is_an_assumption():
    one, four = times(accelerators=8), times(accelerators=32)
    assert one.write.value == pytest.approx(84e9 / (8 * 2e12 / 16384)) and four.write.value == pytest.approx(
        one.write.value / 4
    )
    assert one.write.basis == "rule" and "Grattafiori2024" in one.write.children[1].source


def test_a_pause_that_was_given_is_the_time_to_write_unless_the_storages_is_given_too():
    alone, both = times(checkpoint_seconds=2.0), times(checkpoint_seconds=2.0, storage_bandwidth=7e9)
    assert (alone.pause.value, alone.write.value, alone.read.value) == (2, 2, 2)
    assert (both.pause.value, both.write.value, both.read.value) == (2, 12, 12)
    assert times(checkpoint_seconds=2.0, storage_read_bandwidth=14e9).read.value == 6


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"storage_bandwidth": 0.0}, "storage_bandwidth must be more than 0"),
        ({"storage_bandwidth": float("nan")}, "storage_bandwidth must be a finite"),
        ({"storage_read_bandwidth": -1.0}, "storage_read_bandwidth must be more"),
        ({"checkpoint_seconds": 0.0}, "checkpoint_seconds must be more"),
    ],
)
def test_storage_that_cannot_be_is_named(inputs, message):
    with pytest.raises(InvalidInput, match=message):
        times(**inputs)
    with pytest.raises(InvalidInput, match="keep_checkpoints must be from 1"):
        kept(checkpoint(), 0)


@given(st.floats(1, 1e15), st.floats(1e6, 1e13), st.floats(1.1, 100))
def test_faster_storage_never_takes_longer(size, rate, faster):
    slow, fast = (times(size, storage_bandwidth=w) for w in (rate, rate * faster))
    assert fast.write.value <= slow.write.value and fast.read.value <= slow.read.value


# ---- what is saved ----


def formats(name, **plan):
    model, chosen = read(name), TrainingPlan.of_fields(sequence_length=2048, precision="bf16-mixed", **plan)
    return {term.name: term.value for term in checkpoint_formats(model, chosen, saved_bytes(model, chosen))}


def test_blooms_checkpoints_were_as_large_as_its_page_says():
    """bigscience.notion.site, BigScience 176B Model: "only the bf16 weights are 329GB, the full checkpoint with
    optimizer states is 2.3TB", both in powers of two.
    """
    made = formats("bloom", runtime="deepspeed", zero_stage=1)
    assert made["weights alone in 16 bit"] / 2**30 == pytest.approx(329, rel=0.003)
    assert made["as deepspeed saves it"] / 2**40 == pytest.approx(2.3, abs=0.06)


def test_weights_are_saved_twice_by_those_who_keep_them_twice():
    assert "as megatron saves it" in formats("llama-7b", runtime="megatron")
    for other in ({"runtime": "deepspeed", "zero_stage": 3}, {"runtime": "fsdp2"}):
        assert list(formats("llama-7b", **other)) == ["weights alone in 32 bit", "weights alone in 16 bit"]
    single = checkpoint_formats(
        model := read("llama-7b"), plan := TrainingPlan(sequence_length=8, precision="fp32"), saved_bytes(model, plan)
    )
    assert [(term.name, term.value) for term in single] == [("weights alone in 32 bit", 4 * model.num_parameters())]


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
        with pytest.raises(InvalidInput, match="text_bytes_per_token"):
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
    made = host_needs(
        cluster("dgx-h100"), checkpoints=kept(checkpoint(), None), datasets=(data,), data_loader_workers=8
    )
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

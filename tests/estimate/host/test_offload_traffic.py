"""What offloading moves in a step over the host link and to NVMe, and how long that takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.host.traffic import OffloadTraffic, offload_seconds, offload_traffic
from tonnage.estimate.memory import training_memory
from tonnage.kernel.errors import MissingDatum
from tonnage.spec import Link, TrainingPlan

MODEL = read("llama-3.1-8b")
N = MODEL.num_parameters()
DISKS = Link(name="8 NVMe", bytes_per_second=25e9)


def moved(**said) -> OffloadTraffic:
    base = {"sequence_length": 2048, "runtime": "deepspeed", "zero_stage": 3, "data_parallel_size": 8}
    made = training_memory(MODEL, TrainingPlan.of_fields(**{**base, **said}))
    return offload_traffic(made.ranks[0].stage)


def total(made: OffloadTraffic) -> float:
    return sum(term.value for term in made)


def test_a_plan_that_offloads_nothing_moves_nothing():
    assert total(moved()) == 0
    assert offload_seconds(moved(), cluster("8xH100-SXM-80GB")) == (0, 0)


def test_zero_offload_sends_16_bit_gradients_out_and_16_bit_weights_back():
    made = moved(zero_stage=2, offload_optimizer="cpu")
    assert made.to_host.value == made.from_host.value == pytest.approx(2 * N / 8)
    assert made.written.value == made.read.value == 0


def test_gradients_of_each_micro_batch_leave_and_weights_come_back_once():
    made = moved(zero_stage=2, offload_optimizer="cpu", num_microbatches=4)
    assert made.to_host.value == pytest.approx(4 * 2 * N / 8)
    assert made.from_host.value == pytest.approx(2 * N / 8)


def test_offloaded_parameters_come_for_forward_and_for_backward():
    made = moved(offload_optimizer="cpu", offload_parameters="cpu", num_microbatches=2)
    assert made.from_host.value == pytest.approx(2 * 2 * 2 * N / 8, rel=1e-3)


def test_states_on_nvme_are_read_and_written_once_a_step():
    once, twice = (moved(offload_optimizer="nvme", num_microbatches=n) for n in (1, 2))
    assert once.written.value == twice.written.value == once.read.value == twice.read.value
    assert once.read.value == pytest.approx(
        (4 + 8 + 4) * N / 8, rel=1e-3
    )  # master, two moments, gradients in the master's type


def test_what_the_update_moves_is_apart_from_what_the_passes_move():
    for said in (
        {"offload_optimizer": "nvme", "offload_parameters": "nvme"},
        {"zero_stage": 2, "offload_optimizer": "cpu", "offload_activations": "cpu"},
    ):
        made = moved(**said)
        assert total(made.beside) + total(made.once) == total(made)
    assert made.once.from_host.value == pytest.approx(2 * N / 8, rel=1e-3) and made.once.to_host.value == 0
    stored = moved(offload_optimizer="nvme")
    assert (stored.once.written.value, stored.once.read.value) == (stored.written.value, stored.read.value)
    assert total(moved(offload_activations="cpu").once) == 0


def test_activations_leave_in_forward_and_come_back_in_backward():
    one, two = (moved(offload_activations="cpu", num_microbatches=n) for n in (1, 2))
    assert one.to_host.value == one.from_host.value > 0
    assert two.to_host.value == 2 * one.to_host.value
    stored = moved(offload_activations="nvme")
    assert stored.written.value == stored.read.value == stored.to_host.value


def test_a_part_of_megatrons_optimizer_moves_that_part_of_the_bytes():
    said = {"runtime": "megatron", "zero_stage": 1, "offload_optimizer": "cpu"}
    whole, half = moved(**said), moved(**said, optimizer_offload_fraction=0.5)
    assert half.to_host.value == pytest.approx(whole.to_host.value / 2)
    assert half.from_host.value == pytest.approx(whole.from_host.value / 2)


def test_seconds_are_bytes_over_what_one_copy_reaches_of_the_host_link():
    made, machine = moved(zero_stage=2, offload_optimizer="cpu"), cluster("8xH100-SXM-80GB")
    seconds = offload_seconds(made, machine)
    assert seconds.storage == 0
    assert total(made) / seconds.link == pytest.approx(55e9, rel=0.03)  # nvbandwidth on an H200, PCIe 5.0


def test_disks_are_shared_by_the_ranks_of_a_node_and_must_be_known():
    made, machine = moved(offload_optimizer="nvme"), cluster("8xH100-SXM-80GB")
    with pytest.raises(MissingDatum, match="disks"):
        offload_seconds(made, machine)
    seconds = offload_seconds(made, machine, DISKS)
    assert seconds.storage == pytest.approx(8 * (made.written.value + made.read.value) / 25e9)


def test_a_host_link_that_nobody_published_is_a_missing_datum():
    machine = cluster("8xH100-SXM-80GB")
    without = replace(machine, accelerator=replace(machine.accelerator, host_link=None))
    with pytest.raises(MissingDatum, match="host link"):
        offload_seconds(moved(zero_stage=2, offload_optimizer="cpu"), without)


@settings(max_examples=20)
@given(st.sampled_from(("offload_optimizer", "offload_activations")), st.integers(1, 8))
def test_more_micro_batches_never_move_less_and_arrays_move_what_each_moves(option, micro_batches):
    fewer, more = (
        total(moved(zero_stage=2, num_microbatches=n, **{option: "cpu"})) for n in (micro_batches, micro_batches + 1)
    )
    assert fewer < more
    both = moved(zero_stage=2, num_microbatches=np.array([micro_batches, micro_batches + 1]), **{option: "cpu"})
    assert sum(np.broadcast_to(term.value, 2) for term in both) == pytest.approx([fewer, more])

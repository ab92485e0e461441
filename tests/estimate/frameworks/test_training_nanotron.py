"""nanotron: what its layers keep, how it splits a pipeline, which gradients it holds."""

import pytest

from tonnage import read
from tonnage.architectures import style_of, wiring
from tonnage.estimate.memory import training_memory
from tonnage.estimate.step.rank import split_layers
from tonnage.ops import Kernels
from tonnage.spec import TrainingPlan
from tonnage.tape import Nanotron, NanotronCode, Setting, layer

H, Q, K, F, A = 4096, 4096, 1024, 14336, 32


def plan(**fields):
    return TrainingPlan.of_fields(
        **{"sequence_length": 4096, "runtime": "nanotron", "zero_stage": 1, "data_parallel_size": 4, **fields}
    )


def phase(name, model="llama-3.1-8b", **fields):
    return next(each for each in training_memory(read(model), plan(**fields)).ranks[0].phases if each.name == name)


def leaf(tree, name):
    return sum(float(term.value) for _, term in tree.walk() if term.name == name)


@pytest.mark.parametrize("tensor_parallel", [False, True])
def test_a_layer_copies_queries_once_and_keys_and_values_twice_and_keeps_its_part_of_inputs(tensor_parallel):
    model = read("llama-3.1-8b")
    code = NanotronCode(
        Setting(style=style_of(model), kernels=Kernels(), own=Nanotron(tensor_parallel=tensor_parallel))
    )
    kept = layer(code, lambda x: wiring.run(model.decoder.blocks[0], code, x), H, 2).kept
    assert not any(each.key.extent.split == "gathered" for each in kept)
    assert sum(each.bytes for each in kept) == 2 * (4 * H + (Q + 2 * K) + 2 * K + Q) + 4 * A + 2 * 4 * F + 2 * 4


def test_a_stage_takes_layers_until_it_has_more_than_its_part_of_the_products():
    """The head counts as its products do: 2.4 layers of Llama 3.1 8B."""
    model = read("llama-3.1-8b")
    assert split_layers(model, 4, "cost") == (9, 9, 8, 6)
    assert sum(split_layers(model, 8, "cost")) == 32


def test_fp32_gradients_are_never_sharded_and_sixteen_bit_ones_wait_beside_them():
    parameters = read("llama-3.1-8b").num_parameters()
    found = phase("embedding")
    assert found.child("gradients").value == 4 * parameters
    assert found.child("optimizer").value == 12 * parameters / 4
    assert (
        leaf(found, "gradients in 16 bit") + leaf(found, "gradient of the table before it is added") == 2 * parameters
    )
    assert leaf(found, "DDP's buckets") == 2 * parameters


def test_one_replica_has_no_buckets():
    assert leaf(phase("embedding", data_parallel_size=1), "DDP's buckets") == 0


def test_two_buffers_serve_all_gathered_inputs():
    one = 2 * 4096 * H
    found = phase("forward", tensor_parallel_size=2)
    assert leaf(found, "buffer of gathered inputs") == leaf(found, "buffer of gathered gradients") == one
    assert leaf(phase("forward"), "buffer of gathered inputs") == 0


def test_what_sixteen_bit_gradients_leave_is_reserved_less_what_moments_took():
    found = phase("forward", pipeline_parallel_size=4, num_microbatches=16, data_parallel_size=64)
    kept = leaf(found, "layers")
    grads, moments = (
        sum(float(found.child(part).value) * share for part, share in parts)
        for parts in ([("gradients", 0.5)], [("optimizer", 2 / 3)])
    )
    assert leaf(found, "allocator reserve: freed gradients") == pytest.approx(grads * (1 - moments / (kept + grads)))

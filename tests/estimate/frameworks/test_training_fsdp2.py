"""FSDP2: torchtitan's layers on the tape, what is gathered and reduced at each moment, the allocator's pools, the
options.
"""

import numpy as np
import pytest

from tonnage import read
from tonnage.architectures import style_of, wiring
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import needed_bytes
from tonnage.estimate.step.rank import split_layers
from tonnage.kernel.errors import InvalidPlan, TonnageError
from tonnage.kernel.units import GIB
from tonnage.ops import Kernels
from tonnage.spec import TrainingPlan
from tonnage.tape import Setting, Titan, TitanCode, layer

H, Q, K, F, A = 4096, 4096, 1024, 14336, 32  # hidden size, queries, keys, feed-forward, heads of Llama 3.1 8B
LAYER = H * (2 * Q + 2 * K) + 3 * H * F + 2 * H
TABLE = 128256 * H
UNTIL_0_2 = {"fuses_projections": False, "repeats_heads": True}


def kept(recompute="none", attention="flash", **own):
    """Bytes a token that one layer keeps, by what cuts them."""
    model = read("llama-3.1-8b")
    setting = Setting(
        code="torchtitan", style=style_of(model), kernels=Kernels(), attention=attention, own=Titan(**own)
    )
    code = TitanCode(setting)

    def run(x):
        return wiring.run(model.decoder.blocks[0], code, x)

    how = {"none": run, "full": lambda x: code.checkpoint(run, x), "op": lambda x: code.selective(run, x)}[recompute]
    made = {}
    for each in layer(code, how, H, 2).kept:
        made[each.key.extent.split] = made.get(each.key.extent.split, 0) + each.bytes
    return made


def test_a_compiled_layer_keeps_what_the_min_cut_partitioner_saves():
    """x, the norms' outputs, queries and repeated keys and values, attention's output, its projection, gate, up and
    their product.
    """
    made = kept(compiled=True, **UNTIL_0_2)
    assert sum(made.values()) == 2 * (4 * H + 4 * Q + 3 * F) + 4 * A + 2 * 4


def test_recomputation_by_operation_keeps_every_second_product_and_attention():
    made = kept("op", compiled=True, **UNTIL_0_2)
    assert sum(made.values()) == 2 * H + 2 * (Q + K + F) + 2 * Q + 4 * A


def test_eager_recomputation_by_operation_also_keeps_the_last_product_which_nobody_reads():
    eager, compiled = (sum(kept("op", compiled=compiled, **UNTIL_0_2).values()) for compiled in (False, True))
    assert eager - compiled == 2 * H


def test_one_matrix_for_queries_keys_and_values_is_one_product_of_those_counted():
    assert sum(kept("op", compiled=True).values()) == 2 * H + 2 * (Q + 2 * K + F) + 2 * Q + 4 * A


def test_cudnn_attention_was_not_on_the_list_before_0_3():
    old = kept("op", "sdpa", compiled=True, keeps_cudnn=False, **UNTIL_0_2)
    assert sum(old.values()) == 2 * H + 2 * (Q + K + F)


def test_modules_gather_their_inputs_and_what_they_keep_of_them_is_whole():
    made = kept(compiled=True, tensor_parallel=True, **UNTIL_0_2)
    assert made["gathered"] == 2 * 2 * H
    assert made["whole"] == 2 * 2 * H + 2 * 4


def test_in_float8_the_gathered_inputs_are_a_byte_a_number():
    assert kept(compiled=True, tensor_parallel=True, float8=True, **UNTIL_0_2)["gathered"] == 2 * H


def test_full_recomputation_keeps_the_input():
    assert kept("full") == {"whole": 2 * H}


# ---- units ----


def plan(**fields):
    return TrainingPlan.of_fields(**{"sequence_length": 4096, "runtime": "fsdp2", "data_parallel_size": 8, **fields})


def phases(**fields):
    made = training_memory(read("llama-3.1-8b"), plan(**fields))
    return {phase.name: phase for rank in made.ranks[:1] for phase in rank.phases}


def part(phase, *names):
    """Bytes of the leaves below a phase whose names begin so."""
    return sum(float(term.value) for _, term in phase.walk() if term.name.startswith(names))


def test_the_root_of_transformers_code_stays_gathered_and_the_next_layer_is_fetched():
    """As PyTorch's FSDP2 allocates in a trace: 2004 MiB of root, 416 MiB of each layer, 832 MiB for the layer's
    reduce-scatter.
    """
    found = phases(model_code="transformers", attention="sdpa")
    root = 2 * (2 * TABLE + H)
    assert part(found["loss"], "all-gather buffer") == root
    assert part(found["loss"], "prefetch buffer") == 2 * LAYER
    backward = found["first layer of backward"]
    assert part(backward, "all-gather buffer") == root + 2 * LAYER
    assert part(backward, "prefetch buffer") == 2 * LAYER


def test_the_last_reduction_holds_the_root_s_gradients_in_both_widths():
    found = phases(model_code="transformers", attention="sdpa", sequence_length=512)["embedding"]
    assert part(found, "all-gather buffer", "prefetch buffer") == 0
    assert part(found, "input of the reduce-scatter", "gradients of the last unit") == 6 * (2 * TABLE + H)


def test_since_0_2_table_and_head_are_units_of_their_own():
    old, new = phases(runtime_version="0.1"), phases(runtime_version="0.2")
    assert (
        part(old["loss"], "all-gather buffer") == 2 * (2 * TABLE + H) + 2 * LAYER
    )  # and the last layer was not resharded
    assert part(new["loss"], "all-gather buffer") == 2 * (TABLE + H)
    assert part(new["first layer of backward"], "input of the reduce-scatter") == 4 * (TABLE + H)


def test_the_pools_of_the_streams_are_reserved_whatever_is_live_in_them():
    found = phases()
    for phase in found.values():
        live = part(phase, "prefetch buffer") + float(phase.child("gradients").value)
        idle = part(phase, "allocator reserve: all-gather stream", "allocator reserve: reduce-scatter stream")
        assert live + idle == pytest.approx(
            found["loss"].child("weights").value + 2 * (TABLE + LAYER + H) + 2 * (TABLE + H) / 8, rel=1e-9
        )


def test_shards_lie_in_groups_when_groups_are_replicated():
    whole, halved = (phases(replicate_size=size)["loss"].child("weights").value for size in (1, 2))
    assert halved == 2 * whole


def test_under_a_pipeline_nothing_is_resharded_and_gradients_are_summed_whole_in_fp32():
    found = phases(pipeline_parallel_size=2, num_microbatches=8, data_parallel_size=4, zero_stage=2)[
        "first layer of backward"
    ]
    stage = 15.5 * LAYER  # in the mean; the table and half the layers
    assert part(found, "all-gather buffer (all units)") == 2 * (16 * LAYER + TABLE)
    assert found.child("gradients").value == 4 * (16 * LAYER + TABLE) > 4 * stage


def test_the_first_stage_has_a_layer_less_where_table_and_head_count_as_layers():
    model = read("llama-3.1-405b")
    for split, layers in (
        ("ends weigh", [15, 16, 16, 16, 16, 16, 16, 15]),
        ("rest later", [15, 16, 16, 16, 16, 16, 16, 15]),
    ):
        assert list(split_layers(model, 8, split)) == layers


def test_a_compiled_loss_holds_the_logits_and_their_gradient_in_sixteen_bit():
    logits = 4096 * 128256
    eager, compiled = (phases(compile=flag, sequence_length=4096)["loss"] for flag in (False, True))
    assert part(compiled, "allocator reserve: logits") == 0
    assert part(eager, "allocator reserve: logits") == 2 * logits
    shrinks = sum(eager.child(name).value - compiled.child(name).value for name in ("activations", "temporary"))
    assert shrinks > 2 * 4 * logits - 0.2 * GIB


def test_a_chunked_loss_holds_an_eighth_of_the_logits_and_sums_the_head_in_fp32():
    found = phases(loss="chunked")["loss"]
    assert part(found, "gradient of the head, summed over chunks") == 4 * (TABLE + H)
    assert found.child("activations").value < phases()["loss"].child("activations").value


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"zero_stage": 2},
        {"compile": True, "recompute": "selective-op"},
        {"loss": "chunked"},
        {"model_code": "transformers"},
        {"runtime_version": "2024", "recompute": "full"},
    ],
)
def test_arrays_need_what_each_plan_needs_and_trees_add_up_to_it(fields):
    model = read("qwen3-0.6b")
    names = (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "context_parallel_size",
        "micro_batch_size",
        "num_microbatches",
    )
    rows = [(1, 1, 1, 1, 1), (2, 1, 1, 1, 3), (2, 2, 1, 2, 4), (1, 4, 2, 1, 2), (1, 1, 1, 4, 1)]
    columns = {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    fields = {"zero_stage": 3, "runtime": "fsdp2", **fields}
    got = needed_bytes(model, {**columns, "sequence_length": 1024, "data_parallel_size": 4}, **fields)
    for row, bytes_ in zip(rows, got, strict=True):
        made = training_memory(
            model,
            TrainingPlan.of_fields(
                sequence_length=1024, data_parallel_size=4, **dict(zip(names, row, strict=True)), **fields
            ),
        )
        assert made.needed == pytest.approx(bytes_, rel=1e-12)
        assert max(float(phase.value) for rank in made.ranks for phase in rank.phases) == pytest.approx(
            bytes_, rel=1e-9
        )


# ---- options ----


def planned(machine="8xH100-SXM-80GB", **options):
    return training_plan(read("llama-3.1-8b"), cluster(machine), TrainingOptions(**options), Question())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"compile": True, "runtime": "megatron"}, "compile needs torch.compile"),
        ({"compile": True, "model_code": "transformers"}, "compile needs torch.compile"),
        ({"float8": "tensorwise", "runtime": "ddp"}, "float8 is an option of fsdp2"),
        ({"float8_all_gather": True}, "float8_all_gather needs float8 tensorwise"),
        ({"async_tensor_parallel": True, "tensor_parallel_size": 2}, "async_tensor_parallel needs compile"),
        ({"replicate_size": 3}, "replicate_size must divide data_parallel_size 8"),
        ({"replicate_size": 2, "runtime": "megatron"}, "replicate_size"),
        ({"recompute": "selective-op", "model_code": "transformers"}, "selective-op is torchtitan's"),
        ({"optimizer_in_backward": True}, "optimizer_in_backward needs"),
        ({"runtime_version": "7"}, "torchtitan 0.3.0"),
    ],
)
def test_an_option_that_means_nothing_here_is_refused_with_what_has_it(options, words):
    with pytest.raises(TonnageError, match=words):
        planned(**options)


def test_a_version_may_be_named_by_a_part_of_it():
    assert planned(runtime_version="torchtitan 0.1.0").runtime_version == "0.1"
    assert planned(runtime_version="2024").runtime_version == "2024"
    assert planned(runtime_version="0.3").runtime_version == planned().runtime_version == ""


def test_blackwell_and_the_newest_version_take_cudnn_s_attention():
    assert planned(runtime_version="0.1").kernels.attention == "flash"
    assert planned("8xB200-SXM-180GB", runtime_version="0.1").kernels.attention == "sdpa"
    assert planned().kernels.attention == "sdpa"


def test_a_pipeline_keeps_units_gathered_unless_told():
    assert planned(pipeline_parallel_size=2).zero_stage == 2
    assert planned(pipeline_parallel_size=2, zero_stage=3).zero_stage == 3
    with pytest.raises(InvalidPlan, match="zero_stage"):
        planned(zero_stage=1)

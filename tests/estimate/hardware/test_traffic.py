"""What each parallel dimension sends in a step: by formula, over which link, and how much of it is hidden."""

import pytest
from msgspec.structs import replace

from tonnage.catalogue import cluster
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.step import StepTime
from tonnage.estimate.step_time.traffic import sendings, traffic
from tonnage.formulas import communication as f
from tonnage.models import read


def step_time(on: str = "2xdgx-h100", model: str = "llama-3.1-8b", **options) -> StepTime:
    said, machine = read(model, offline=True), cluster(on)
    plan = training_plan(said, machine, TrainingOptions(**options), Question())
    return StepTime(Step(said, plan, machine), rates())


def megatron(**options) -> StepTime:
    return step_time(
        **{"runtime": "megatron", "tensor_parallel_size": 8, "sequence_length": 4096, "zero_stage": 0} | options
    )


def sent(made: StepTime, group: str) -> float:
    return sum(each.term.value for each in sendings(made) if each.group == group)


SIZES = {"L": 32, "s": 4096, "b": 1, "h": 4096, "w": 2, "t": 8}


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_megatron_sends_four_all_reduces_a_layer_and_six_where_all_is_recomputed(micro_batches):
    """Document B10."""
    options = {"sequence_parallel": False, "num_microbatches": micro_batches}
    plain, again = megatron(**options), megatron(**options, recompute="full")
    assert sent(plain, "tensor parallel") == f.tensor_parallel_traffic(**SIZES, m=micro_batches)
    assert sent(again, "tensor parallel") == f.tensor_parallel_recompute_traffic(**SIZES, m=micro_batches)


def test_sequence_parallelism_gathers_once_more_in_backward():
    """Each all-reduce is a reduce-scatter and an all-gather, of which backward makes one in four again for the
    gradients of weights.
    """
    plain, split = megatron(sequence_parallel=False), megatron(sequence_parallel=True)
    assert sent(split, "tensor parallel") == 1.25 * sent(plain, "tensor parallel")


@pytest.mark.parametrize(
    "options",
    [
        {"context_parallel_size": 2, "context_parallel_method": method, "sequence_parallel": spread}
        for method, spread in (("p2p", True), ("a2a", False), ("allgather", True))
    ]
    + [
        {
            "model": "mixtral-8x7b",
            "expert_parallel_size": 4,
            "expert_tensor_parallel_size": 2,
            "tensor_parallel_size": 2,
        },
        {"attention": "eager"},
        {"runtime": "fsdp2", "tensor_parallel_size": 4, "zero_stage": 3},
        {"runtime": "nanotron", "tensor_parallel_size": 4, "zero_stage": 1},
    ],
    ids=str,
)
def test_no_time_and_no_traffic_depends_on_what_work_is_called(options):
    named, nameless = (megatron(**options) for _ in range(2))
    nameless.step.layers = {
        block: replace(layer, work=tuple(work._replace(name="") for work in layer.work))
        for block, layer in nameless.step.layers.items()
    }
    assert nameless.seconds() == named.seconds() and traffic(nameless).value == traffic(named).value


@pytest.mark.parametrize("method", ["p2p", "a2a", "allgather"])
def test_what_expert_ranks_send_is_the_same_whatever_context_ranks_send(method):
    options = {"model": "mixtral-8x7b", "tensor_parallel_size": 1, "expert_parallel_size": 4}
    alone, both = megatron(**options), megatron(**options, context_parallel_size=4, context_parallel_method=method)
    assert sent(both, "expert parallel") == pytest.approx(sent(alone, "expert parallel") / 4)


def test_expert_tensor_ranks_gather_whole_rows_and_scatter_whole_sums():
    """Both ways of both passes: 8192 rows of 4096 numbers in 16 bit, and in one direction what the router gave each."""
    made = megatron(model="mixtral-8x7b", tensor_parallel_size=4, expert_parallel_size=2, expert_tensor_parallel_size=4)
    rows, numbers = 2 * 4096, 2 * 4096 + 1
    assert sent(made, "expert tensor parallel") == pytest.approx(2 * 32 * 3 / 4 * rows * numbers * 2)


def test_only_a_ring_runs_beside_attention():
    hidden = {
        method: sum(
            each.hidden
            for each in sendings(megatron(context_parallel_size=2, context_parallel_method=method))
            if each.group == "context parallel"
        )
        for method in ("p2p", "a2a", "allgather")
    }
    assert hidden["p2p"] > 0 == hidden["a2a"] == hidden["allgather"]


def test_gradients_of_data_parallel_ranks_are_one_all_reduce_of_what_a_rank_holds():
    made = megatron()
    norms, padding = (
        65 * 4096,
        2 * 768 * 4096,
    )  # each of eight tensor ranks has the norms; Megatron pads table and head to 129,024 rows
    held = (8030261248 - norms + padding) / 8 + norms
    width = made.step.recipe.main_gradient_bytes
    assert sent(made, "data parallel") == pytest.approx(2 * (2 - 1) / 2 * held * width)


def test_zero_3_gathers_weights_twice_and_scatters_gradients_in_every_micro_batch():
    made = step_time(runtime="fsdp2", sequence_length=4096, zero_stage=3)
    layers = sum(count * made.step.held[block].value for block, count in made.fullest.layers)
    ends = 8030261248 - layers  # table and head stay whole between forward and backward
    recipe, share = made.step.recipe, 15 / 16
    expected = share * (2 * layers + ends) * recipe.compute_bytes + share * (layers + ends) * recipe.reduce_bytes
    assert sent(made, "sharded states") == pytest.approx(expected, rel=1e-6)


def test_the_whole_is_the_sum_of_its_parts_and_every_leaf_has_a_formula():
    whole = traffic(megatron(pipeline_parallel_size=2, num_microbatches=4))
    assert whole.unit == "bytes" and whole.value == sum(child.value for child in whole.children)
    for _, term in whole.walk():
        assert term.combine == "sum" or (term.formula is f.traffic_in_a_step and term.source)


def test_groups_say_over_which_link_they_talk():
    links = {each.group: each.link for each in sendings(megatron(pipeline_parallel_size=2, num_microbatches=4))}
    assert links["tensor parallel"] == "NVLink 4" and links["pipeline parallel"].startswith("InfiniBand")
    across = {each.group: each.link for each in sendings(step_time(runtime="fsdp2", sequence_length=4096))}
    assert across["sharded states"] == "NVLink 4 and InfiniBand NDR 8 x 400 Gb/s"


def test_one_accelerator_sends_nothing():
    assert traffic(step_time("1xH100-SXM-80GB", "qwen3-0.6b", runtime="fsdp2", sequence_length=2048)).value == 0


def test_the_hidden_share_is_a_share_and_what_is_exposed_is_what_the_step_waits_for():
    made = megatron(tp_comm_overlap=True) if "tp_comm_overlap" in TrainingOptions.__struct_fields__ else megatron()
    for each in sendings(made):
        assert 0 <= each.hidden <= 1
    exposed = sum(each.seconds * (1 - each.hidden) for each in sendings(made) if each.group == "data parallel")
    assert exposed == pytest.approx(sum(part.term.value for part in made.parts if part.name in made.once_a_step))


def test_sharded_states_travel_partly_beside_the_layers():
    made = step_time(runtime="fsdp2", sequence_length=8192)
    assert all(0 < each.hidden < 1 for each in sendings(made) if each.group == "sharded states")


def test_layers_whose_code_says_nothing_send_what_those_of_megatron_send():
    """Tensor ranks without sequence parallelism: two sums a layer each way; context ranks: keys and values."""
    said, unsaid = (
        megatron(sequence_parallel=False),
        step_time(runtime="deepspeed", tensor_parallel_size=8, sequence_length=4096, zero_stage=1),
    )
    layers = 4 * 32 * 2 * 7 / 8 * 4096 * 4096 * 2
    assert sent(unsaid, "tensor parallel") == pytest.approx(layers) and sent(said, "tensor parallel") == pytest.approx(
        layers, rel=0.1
    )
    rings = [
        step_time(runtime=runtime, context_parallel_size=8, sequence_length=4096) for runtime in ("megatron", "fsdp2")
    ]
    assert sent(rings[0], "context parallel") == pytest.approx(sent(rings[1], "context parallel"))


def test_experts_that_one_rank_has_alone_are_neither_gathered_nor_reduced():
    for runtime in ("fsdp2", "megatron"):
        group = "sharded states" if runtime == "fsdp2" else "data parallel"
        options = {"model": "mixtral-8x7b", "on": "8xH100-SXM-80GB", "runtime": runtime, "sequence_length": 4096}
        whole, alone = (sent(step_time(**options, expert_parallel_size=ranks), group) for ranks in (1, 8))
        dense = 46_702_792_704 - 32 * 8 * 3 * 4096 * 14336
        assert alone / whole == pytest.approx(dense / 46_702_792_704, rel=0.15)
        assert sent(step_time(**options, expert_parallel_size=8), "expert parallel") > 0


def test_zero_plus_plus_sends_less():
    options = {"runtime": "deepspeed", "zero_stage": 3, "on": "4x8xA800-SXM-80GB", "sequence_length": 512}
    plain = step_time(**options)
    narrow = step_time(**options, zero_quantized_weights=True, zero_quantized_gradients=True)
    near = step_time(**options, zero_hpz_partition_size=8)
    assert sent(narrow, "sharded states") < 0.5 * sent(plain, "sharded states")
    assert near.seconds() < plain.seconds() and narrow.seconds() < plain.seconds()

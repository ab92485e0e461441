"""Seconds of products beside kernels that others measured; what else the time of a kernel follows."""

from statistics import mean

import pytest
from msgspec.structs import replace

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.kernel_time import KernelTime
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import InvalidPlan, UnknownName
from tonnage.models import read
from tonnage.ops import MoE
from tonnage.spec import TrainingPlan
from tonnage.tape import Extent, Work

TOKEN, PARAMETER = Extent("token", "whole"), Extent("parameter", "replicated")
# SimuMax's machine of eight B200, bf16, shares of 2250 TFLOP/s: MooreThreads/SimuMax,
# configs/system/b200_bf16_ceperm.json, read 2026-11-22.
DENSE = [  # rows, depth, columns
    (4096, 8192, 8192, 0.463),
    (4096, 8192, 57344, 0.487),
    (4096, 28672, 8192, 0.485),
    (4096, 7168, 129280, 0.489),
    (4096, 512, 32768, 0.319),
    (16384, 512, 32768, 0.421),
    (65536, 512, 32768, 0.378),
    (4096, 5120, 576, 0.322),
    (4096, 5120, 160, 0.184),
    (16384, 5120, 160, 0.326),
    (4096, 7168, 256, 0.232),
    (65536, 5120, 24576, 0.500),
    (32768, 2048, 7168, 0.483),
]
GROUPED = [  # experts, rows of each, depth, columns: forward
    (256, 128, 7168, 4096, 0.208),
    (256, 128, 2048, 7168, 0.178),
    (128, 256, 7168, 4096, 0.271),
    (128, 256, 2048, 7168, 0.303),
    (64, 512, 7168, 4096, 0.367),
    (64, 512, 2048, 7168, 0.427),
    (32, 1024, 7168, 4096, 0.457),
    (32, 1024, 2048, 7168, 0.384),
    (160, 154, 5120, 3072, 0.200),
    (160, 154, 1536, 5120, 0.116),
    (80, 308, 5120, 3072, 0.387),
    (40, 616, 5120, 3072, 0.462),
    (20, 1232, 5120, 3072, 0.513),
    (40, 9832, 5120, 3072, 0.475),
]
GRADIENTS = [  # the same, gradients of weights added to fp32 main gradients
    (256, 128, 7168, 4096, 0.0775),
    (256, 128, 2048, 7168, 0.0801),
    (128, 256, 7168, 4096, 0.1473),
    (128, 256, 2048, 7168, 0.1409),
    (64, 512, 7168, 4096, 0.219),
    (64, 512, 2048, 7168, 0.2145),
    (32, 1024, 7168, 4096, 0.289),
    (32, 1024, 2048, 7168, 0.274),
    (160, 154, 5120, 3072, 0.0937),
    (160, 154, 1536, 5120, 0.0828),
    (40, 9832, 5120, 3072, 0.4186),
]


def share(rows, inner, outer, experts=1, gradient=False):
    """Of the peak, as predicted."""
    plan = TrainingPlan(sequence_length=rows * experts, micro_batch_size=1, runtime="megatron", product_share=0.488)
    kernels = KernelTime(Step(read("llama-3.1-8b", offline=True), plan, cluster("1xB200-SXM-180GB")), rates())
    moved = {TOKEN: 2 * (inner + outer), PARAMETER: 2 * inner * outer * experts}
    work = Work(
        "a product",
        "product",
        "backward" if gradient else "forward",
        2 * inner * outer,
        TOKEN,
        moved,
        inner,
        outer,
        wgrad=gradient,
    )
    seconds, flops, _ = kernels.seconds(work, None)
    return flops / seconds / 2250e12


@pytest.mark.parametrize(
    ("measured", "usual", "most"),
    [(DENSE, 0.14, 0.5), (GROUPED, 0.2, 1), (GRADIENTS, 0.06, 0.2)],
    ids=["dense", "grouped", "gradients of weights"],
)
def test_products_take_their_arithmetic_and_their_bytes_one_after_the_other_as_measured(measured, usual, most):
    errors = []
    for *experts, rows, inner, outer, known in measured:
        made = share(rows, inner, outer, *(experts or [1]), gradient=measured is GRADIENTS)
        errors.append(made / known - 1)
    assert mean(abs(error) for error in errors) < usual, errors
    assert max(abs(error) for error in errors) < most, errors


def timing(model="llama-3.1-8b", machine="8xB200-SXM-180GB", **options):
    made, where = read(model, offline=True), cluster(machine)
    return Timing(made, training_plan(made, where, TrainingOptions(**options), Question()), where)


def test_a_machine_that_reaches_less_than_its_generation_takes_longer_in_proportion():
    plain, slow, slower = (timing(product_share=each).walk.kernels for each in (None, 0.5, 0.25))
    assert plain.power == 1 and slow.power == pytest.approx(2 * slower.power)
    assert timing(product_share=0.25).seconds > timing(product_share=0.5).seconds


@pytest.mark.parametrize("wrong", [0, -0.1, 1.5])
def test_a_share_of_the_peak_lies_between_nothing_and_all(wrong):
    with pytest.raises(InvalidPlan, match="product_share must be more than 0 and at most 1"):
        tonnage.train("llama-3.1-8b", "8xB200-SXM-180GB", product_share=wrong)


def test_a_recurrence_walks_along_the_sequence_whatever_the_batch():
    one, two = (timing("mamba-2.8b-hf", "1xH100-SXM-80GB", micro_batch_size=size).walk for size in (1, 2))
    name = next(work for layer in one.step.layers.values() for work in layer.work if work.kind == "scan")
    seconds = [walk.kernels.seconds(name, None)[0] for walk in (one, two)]
    steps = one.rates.scan_step * one.step.plan.sequence_length
    assert seconds[1] - steps == pytest.approx(2 * (seconds[0] - steps))


def test_the_host_asks_for_the_kernels_of_one_expert_after_those_of_another():
    def asked(ranks, **options):
        made = timing(
            "mixtral-8x7b", "8xB200-SXM-180GB", runtime="megatron", expert_parallel_size=ranks, **options
        ).walk
        work = next(work for layer in made.step.layers.values() for work in layer.work if work.kind == "experts")
        return made._asked(work)

    assert asked(1) == 4 * asked(4) == pytest.approx(8 * asked(8)) and asked(8) > 0


def test_what_a_graph_replays_the_host_need_not_ask_for():
    walks = [timing(runtime="megatron", cuda_graph=kind).walk for kind in ("none", "attn")]
    works = [
        next(w for layer in walk.step.layers.values() for w in layer.work if w.kind == "product") for walk in walks
    ]
    assert walks[0]._asked(works[0]) == 1 and walks[1]._asked(works[1]) == 0


def test_a_part_that_no_graph_replays_is_refused():
    with pytest.raises(UnknownName, match="no cuda_graph is called 'atn'"):
        timing(runtime="megatron", cuda_graph="atn")


def test_biases_of_experts_are_added_apart_in_megatron():
    """gpt-oss: TEGroupedMLP adds the second product's bias in operations of its own, in fp32: 28 bytes a number of a
    row forward.
    """
    step = timing("gpt-oss-120b", "64xB200-SXM-180GB", runtime="megatron", expert_parallel_size=64).walk.step
    block = next(iter(step.layers))
    plain = replace(block, ops=tuple(replace(op, bias=False) if isinstance(op, MoE) else op for op in block.ops))

    def rows(layer):
        moves = [work for work in layer.work if work.kind == "move" and work.when == "forward"]
        return sum(size for work in moves for extent, size in work.bytes.items() if extent.unit == "row")

    assert (rows(step.layers[block]) - rows(step._layer(plain))) / 2880 == pytest.approx(26, abs=3)

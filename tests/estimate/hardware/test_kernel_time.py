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
ROW = Extent("row", "whole")
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


# Seconds of both passes of dense products on an MI300X, in 16 bit and in 8 with their casts: AMD-AGI/Primus-Turbo,
# gemm_turbo_bf16_20260309_MI300X.csv and gemm_turbo_fp8_tensorwise_20260309_MI300X.csv, commit
# 03b9a80975304dddd0e68d65c0d1f646cb7a3ae6.
MI300X = [  # rows, columns, depth
    (8192, 6144, 4096, 2.37e-3, 1.78e-3),
    (8192, 28672, 4096, 10.30e-3, 7.15e-3),
    (8192, 4096, 14336, 5.29e-3, 3.69e-3),
    (16384, 10240, 8192, 14.80e-3, 9.68e-3),
    (32768, 4096, 4096, 5.86e-3, 4.28e-3),
    (8192, 18432, 16384, 26.87e-3, 17.82e-3),
    (8192, 16384, 53248, 77.26e-3, 51.28e-3),
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


@pytest.mark.parametrize("narrow", [False, True], ids=["16 bit", "8 bit"])
def test_products_on_amd_take_what_amd_measured(narrow):
    errors = []
    for rows, outer, inner, *known in MI300X:
        kernels = timing(
            machine="8xMI300X",
            runtime="fsdp2",
            micro_batch_size=1,
            sequence_length=rows,
            float8="tensorwise" if narrow else "none",
        ).walk.kernels
        moved = {TOKEN: 2 * (inner + outer), PARAMETER: 2 * inner * outer}
        work = Work("a product", "product", "forward", 2 * inner * outer, TOKEN, moved, outer, quantised=narrow)
        errors.append(3 * kernels.seconds(work, None)[0] / known[narrow] - 1)
    assert mean(abs(error) for error in errors) < 0.06, errors
    assert max(abs(error) for error in errors) < 0.15, errors


@pytest.mark.parametrize("less, more", [("MI300X", "MI325X"), ("MI350X", "MI355X")])
def test_more_power_makes_products_on_amd_faster(less, more):
    """MI325X (1000 W) multiplies 1.19 times as fast as MI300X (750 W), AMD says of the largest products."""
    slow, fast = (timing(machine=f"8x{name}").walk.kernels for name in (less, more))
    assert fast.clock == pytest.approx(1, abs=1e-4) and 1.1 < fast.clock / slow.clock < 1.2


def test_kernels_alone_make_no_band_and_stand_for_no_other_generation():
    amd, unknown = (timing(machine=name).walk.kernels for name in ("8xMI300X", "8xMI250X-GCD"))
    assert amd.shares.of_kernels and not amd.is_measured and not unknown.is_measured
    stepped = [each.attention for each in rates().generations.values() if not each.of_kernels]
    assert unknown.shares.attention == pytest.approx(mean(stepped))


def test_what_amd_s_time_is_taken_from_is_said():
    answer = tonnage.train("llama-3.1-8b", "8xMI300X")
    assert any("published times of its kernels alone" in str(note) for note in answer.warnings)


@pytest.mark.parametrize(
    ("machine", "is_faster"), [("8xH100-SXM-80GB", True), ("8xA100-SXM-80GB", False), ("8xMI300X", False)]
)
def test_sdpa_runs_cudnn_s_attention_on_hopper_and_flash_attention_2_elsewhere(machine, is_faster):
    """sdp_utils.cpp, since PyTorch 2.9 with cuDNN 9.15."""
    sdpa, flash = (timing(machine=machine, runtime="fsdp2", attention=kind).walk.kernels for kind in ("sdpa", "flash"))
    assert (sdpa.attention_share > flash.attention_share) == is_faster
    megatron = timing(machine=machine, runtime="megatron").walk.kernels
    assert not is_faster or sdpa.attention_share == megatron.attention_share


def test_experts_dealt_out_in_turn_send_a_token_to_fewer_ranks():
    """A benchmark's setting, which rows alone say: NeMo AutoModel's fake gate."""
    options = {"runtime": "megatron", "expert_parallel_size": 8, "moe_token_dispatcher_type": "flex"}
    drawn = timing("qwen3-30b-a3b", "8xH100-SXM-80GB", **options)
    plan = drawn.plan.with_fields(experts_in_turn=True)
    dealt = Timing(drawn.walk.step.model, plan, drawn.cluster)
    assert drawn.walk.kernels.routing.places(8) > 5 and dealt.walk.kernels.routing.places(8) == 1
    assert dealt.seconds < drawn.seconds


def timing(model="llama-3.1-8b", machine="8xB200-SXM-180GB", **options):
    made, where = read(model, offline=True), cluster(machine)
    return Timing(made, training_plan(made, where, TrainingOptions(**options), Question()), where)


def test_a_machine_that_reaches_less_than_its_generation_takes_longer_in_proportion():
    plain, slow, slower = (timing(product_share=each).walk.kernels for each in (None, 0.5, 0.25))
    assert plain.machine == 1 and slow.machine == pytest.approx(2 * slower.machine)
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


# ---- the clock under a power limit ----


@pytest.mark.parametrize(
    ("machine", "clock"),
    [
        ("8xH100-SXM-80GB", 1.0),  # rows are of it
        ("8xH100-PCIe-80GB", ((350 / 756) / (700 / 989.4)) ** 0.5),
        ("8xGB300-288GB", 1.0),  # more power for a FLOP than the reference is not more than the shares
        ("8xA100-SXM-80GB", 1.0),  # power does not limit it
    ],
)
def test_less_power_for_a_flop_than_the_reference_has_lowers_the_clock_of_products_by_the_root(machine, clock):
    assert timing(machine=machine).walk.kernels.clock == pytest.approx(clock, rel=1e-3)


def test_a_machine_whose_products_were_measured_has_its_own_clock_in_them():
    assert timing(machine="8xH100-PCIe-80GB", product_share=0.5).walk.kernels.clock == 1


def test_moves_of_rows_of_experts_reach_the_share_that_permutations_were_measured_at():
    kernels = timing("gpt-oss-120b", "8xB200-SXM-180GB", runtime="megatron", expert_parallel_size=8).walk.kernels
    work = Work("permute", "move", "forward", bytes={ROW: 2.0})
    seconds, _, moved = kernels.seconds(work, None)
    assert seconds - kernels.rates.launch == pytest.approx(moved / (kernels.chip.memory.bytes_per_second * 0.506))

"""`tonnage validate` for rows of measured speed: each source's words become the step that it ran, each metric its
seconds.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from source_rows import Measured, Row, read, references_of, training_question, validate

import tonnage
from rows.speed import options_of
from rows.speed.bridge import deepseek_chunks
from rows.speed.machines import network_bits
from rows.speed.sources import source_of, sources
from tonnage.estimate.step_time.conventions import CONVENTIONS, flops_per_token
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.models import read as model_named
from tonnage.validation.training import StepFigure, measured_seconds, step_figure

ROOT = Path(__file__).parents[2] / "validation" / "sources"
ROWS = read([str(ROOT / "train_speed.yaml")])
KNOWN = references_of(read([str(ROOT / "params.yaml")]))
BY_ID = {row.id: row for row in ROWS}
BRIDGE = 'NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md "26.08 NeMo Container"'


@cache
def lines() -> list[dict]:
    """What is predicted of all rows: for the tests that look at it, not where they are collected."""
    return [line for line in validate(ROWS, KNOWN)["rows"] if line["main"]]


def row(config: dict, model: object = "llama-3.1-8b", source: str = "somewhere", **measured: object) -> Row:
    figure = {"metric": "throughput per GPU", "value": 1000, "unit": "tokens/s/GPU", **measured}
    return Row(
        id="x",
        kind="train_speed",
        measured=Measured(**figure),  # type: ignore[arg-type]
        model={"ref": model} if isinstance(model, str) else model,  # type: ignore[arg-type]
        config=config,
        source=source,
    )


def test_at_least_95_of_100_rows_that_say_all_are_predicted_and_the_others_say_why_not():
    full = [line for line in lines() if line["completeness"] == "full"]
    assert sum(line["relative_error"] is not None for line in full) >= 0.95 * len(full)
    reasons = {line["skipped"] for line in full if line["skipped"]}
    allowed = (
        "is not built yet",
        "estimated for method full",
        "does not say how many accelerators",
        "must be a multiple",
        "no accelerator whose speed",
    )
    assert all(any(words in reason for words in allowed) for reason in reasons), reasons


def test_no_row_ends_in_an_error_that_is_not_ours():
    assert len(lines()) == len(ROWS)
    assert all((line["predicted"] is None) == (line["skipped"] is not None) for line in lines())


def test_every_source_of_the_rows_is_one_that_is_known():
    names = {source_of(each).name for each in ROWS}
    assert {each.name for each in sources()} <= names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "mb26.08-pre-training-deepseekv3-gb300-g256-mxfp8-gbs4096",
            {
                "precision": "mxfp8-te-primary-16bit-gradients",
                "pipeline_layout": "E" + "tttt|" * 15 + "tmL",
                "mtp_layers": 1,
                "zero_stage": 1,
                "virtual_pipeline_size": 8,
                "expert_parallel_size": 32,
                "cuda_graph": "full",
                "moe_token_dispatcher_type": "flex",
                "overlap_moe_expert_parallel_comm": True,
                "recompute": "none",
                "micro_batch_size": 1,
                "global_batch_size": 4096,
            },
        ),
        (
            "mb26.04.01-pre-training-llama3-70b-gb300-g64-fp8-gbs256",
            {"precision": "fp8-te-primary-16bit-gradients", "zero_stage": 3, "tensor_parallel_size": 1},
        ),
        (
            "simumax-llama3_70b_l12_tp1_pp2_dp4_mbc4_cef-ms",
            {
                "runtime": "megatron",
                "pipeline_parallel_size": 2,
                "data_parallel_size": 4,
                "num_microbatches": 4,
                "zero_stage": 1,
                "loss": "fused",
                "recompute": "none",
                "precision": "bf16-mixed",
            },
        ),
        (
            "mpt-70b-h10080gb-s2048-g512-mb8-ga1-ampbf16-default-ac",
            {
                "runtime": "fsdp2",
                "precision": "bf16-mixed",
                "recompute": "full",
                "micro_batch_size": 8,
                "num_microbatches": 1,
                "compile": False,
            },
        ),
        (
            "nanotron-8B-n1-dp2-tp1-pp4-mbs1-ga128-z1-tps",
            {
                "runtime": "nanotron",
                "zero_stage": 1,
                "pipeline_parallel_size": 4,
                "num_microbatches": 128,
                "recompute": "none",
            },
        ),
        (
            "tt-l31-8b-8g-fsdp-tps",
            {
                "runtime": "fsdp2",
                "recompute": "selective-op",
                "compile": False,
                "micro_batch_size": 2,
                "runtime_version": "2024",
            },
        ),
        ("tt-a100-llama-3-8b-selective-layer", {"recompute": "selective", "compile": False}),
        (
            "korthikanti-t5-22B-full",
            {
                "runtime": "megatron",
                "precision": "fp16-mixed",
                "attention": "eager",
                "recompute": "full",
                "sequence_parallel": False,
                "zero_stage": 0,
            },
        ),
        (
            "mlm-sc21-1.7B",
            {"attention": "eager", "zero_stage": 0, "precision": "fp16-mixed", "dropout": True, "recompute": "full"},
        ),
        ("mlm-h100-1.7B", {"attention": "flash", "zero_stage": 1, "micro_batch_size": 4, "recompute": "none"}),
        (
            "megascale-175b-megatron-lm-b768-g256",
            {"virtual_pipeline_size": 6, "recompute": "selective", "tensor_parallel_size": 8},
        ),
        ("nemo2407-gpt3-5b-g64", {"precision": "fp8-te-16bit-gradients", "zero_stage": 1, "recompute": "none"}),
        (
            "run-llama3-405b-8192-cp1",
            {
                "pipeline_parallel_size": 16,
                "global_batch_size": 2048,
                "account_for_embedding_in_pipeline_split": True,
                "zero_stage": 1,
            },
        ),
        ("run-pythia-70m", {"runtime": "deepspeed", "global_batch_size": 1024, "micro_batch_size": 32}),
        ("torchtune-l31-8b-full-4090-tps", {"runtime": "torchtune", "compile": True, "optimizer": "paged-adamw-8bit"}),
        ("fsdp-gpt175b-b1", {"runtime": "fsdp2", "zero_stage": 3, "recompute": "full", "micro_batch_size": 1}),
    ],
)
def test_a_row_of_each_source_is_the_run_that_it_was(name: str, expected: dict):
    found = options_of(BY_ID[name], KNOWN)
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("gpu", "gpus", "domain"),
    [("DGX-GB300", 256, 64), ("DGX-GB200", 8, 8), ("DGX-H100", 256, 8), ("DGX-B200", 4, 4), ("H100 80GB SXM", 512, 8)],
)
def test_racks_are_one_domain_of_the_fast_link_and_every_machine_has_links(gpu: str, gpus: int, domain: int):
    config = {
        "gpu": gpu,
        "gpus": gpus,
        "parallelism": {"tp": 1, "pp": 1},
        "micro_batch": 1,
        "global_batch": gpus,
        "seq_len": 4096,
        "precision": "BF16",
        "framework": "Megatron-Bridge NeMo container 26.08",
    }
    cluster = training_question(row(config, source=BRIDGE), {}).cluster
    assert (cluster.accelerators_per_node, cluster.size) == (domain, gpus)
    assert cluster.node is not None and cluster.node.inside is not None
    assert cluster.num_nodes == 1 or cluster.node.outside is not None


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("NVLink, 400 Gb/s RDMA per GPU", 400e9),
        ("400Gb/s CX-7 per GPU", 400e9),
        ("8x200G NIC per node", 200e9),
        ("2 Tb/s RoCE per node", 250e9),
        ("A100 80GB", 0),
    ],
)
def test_the_network_that_a_row_names_is_that_of_one_accelerator(text: str, bits: float):
    assert network_bits(text) == bits


def test_each_recipe_cites_its_file_and_commit_or_is_a_guess_and_sizes_decide_which():
    bridge = [each for each in ROWS if source_of(each).name == "megatron-bridge" and each.completeness == "full"]
    found = {}
    for each in bridge:
        asked = training_question(each, KNOWN)
        assert ("recipe" in asked.row.implied) is not ("recipe" in asked.row.guessed), each.id
        found[each.id] = asked
    cited = {name: asked for name, asked in found.items() if "recipe" in asked.row.implied}
    assert 60 < len(cited) < len(found)
    assert all(re.search(r"\.py at [0-9a-f]{40}$", asked.row.implied["recipe"]) for asked in cited.values())
    stem = "mb26.06-pre-training-deepseekv3-"
    own, other = f"{stem}gb300-g256-mxfp8-gbs4096", f"{stem}b300-g256-mxfp8-gbs4096"  # micro-batches of 1 and of 2
    assert (
        own in cited
        and cited[own].plan.megatron.cuda_graph == "full"
        and not cited[own].plan.megatron.recompute_modules
    )
    assert "of other sizes" in found[other].row.guessed["recipe"]


def test_layouts_of_deepseeks_recipes():
    assert deepseek_chunks(61, 4) == [16, 16, 16, 13]
    assert deepseek_chunks(61, 8) == [8] * 7 + [5]
    assert deepseek_chunks(61, 32) == [1] + [2] * 30 + [0]


# ---- metrics ----

CONFIG = {
    "gpu": "H100 80GB SXM",
    "gpus": 16,
    "framework": "Megatron-LM core 0.14",
    "parallelism": {"tp": 2, "pp": 1},
    "micro_batch": 1,
    "global_batch": 64,
    "seq_len": 4096,
    "precision": "bf16",
    "tokens": 262144e6,
}


@pytest.mark.parametrize(
    ("metric", "value", "unit", "seconds"),
    [
        ("iteration time", 2500, "ms", 2.5),
        ("step time", 2.5, "s", 2.5),
        ("throughput per GPU", 8192, "tokens/s/GPU", 2.0),
        ("throughput", 131072, "tokens/s total", 2.0),
        ("throughput", 32, "samples/s", 2.0),
        ("throughput per GPU", 2, "samples/s/GPU", 2.0),
        ("training time", 1e6 * 2 / 86400, "days", 2.0),
        ("GPU hours", 16e6 * 2 / 3600, "H100 hours", 2.0),
        ("days for 300B tokens", 300e9 / 262144 * 2 / 86400, "days", 2.0),
    ],
)
def test_each_metric_stands_for_the_seconds_of_a_step(metric: str, value: float, unit: str, seconds: float):
    each = row(CONFIG, metric=metric, value=value, unit=unit)
    assert measured_seconds(training_question(each)) == pytest.approx(seconds)


def test_flops_are_those_of_the_sources_own_convention_and_never_of_another():
    def rate(metric: str, source: str) -> StepFigure:
        each = row(CONFIG, source=source, metric=metric, value=1, unit="TFLOPS")
        question = training_question(each)
        return step_figure(question.row.measured, question)

    model = model_named("llama-3.1-8b", offline=True)
    a_gpu = 64 * 4096 / 16 / 1e12
    assert rate("model TFLOPS/GPU", "NVIDIA SimuMax").scale == pytest.approx(
        flops_per_token(model, 4096, "megatron") * a_gpu
    )
    assert rate("model TFLOPS/GPU", "NVIDIA-NeMo/NeMo git history").scale == pytest.approx(
        flops_per_token(model, 4096, "torchtitan") * a_gpu
    )
    with pytest.raises(MissingDatum, match="how its source counts FLOP is not known"):
        rate("model TFLOPS/GPU", "a blog")


def test_a_figure_that_is_none_of_speed_says_so():
    for metric, unit in (("time to train", "minutes"), ("loss", ""), ("memory", "GiB")):
        each = row(CONFIG, metric=metric, unit=unit, value=1)
        with pytest.raises(TonnageError):
            measured_seconds(training_question(each))


def test_published_flops_follow_from_published_tokens_where_both_are_there():
    """Published TFLOPS a GPU over tokens/s a GPU against ours, by source: the conventions are the sources' own."""
    for source, most in (("megatron-bridge", 0.01), ("nemo-24.07", 0.01), ("llm-foundry", 0.01), ("korthikanti", 0.04)):
        ratios = []
        for each in ROWS:
            dense = not any(name in each.id for name in ("deepseek", "kimi", "nemotron", "oss", "lora", "qwen"))
            if source_of(each).name != source or not dense or each.completeness_class != "full":
                continue
            question = training_question(each, KNOWN)
            seconds = measured_seconds(question)
            also = [other for other in question.row.also if "TFLOPS" in other.metric or other.metric.startswith("MFU")]
            ratios += [step_figure(other, question).value(seconds) / float(other.value) for other in also]
        ratios.sort()
        assert ratios and abs(ratios[len(ratios) // 2] - 1) < most, (source, ratios[len(ratios) // 2])


# ---- whole runs ----


HOURS = (
    "run-llama1-13b",
    "run-llama1-65b",
    "run-llama2-34b",
    "run-llama-3.1-405b-hours",
    "run-falcon-180b",
)


@pytest.mark.parametrize("name", HOURS)
def test_hours_of_published_runs_are_near_whoever_guesses_their_layouts(name):
    """No source gives layouts: what is guessed is said, and the hours of five runs lie within a fifth, though nothing
    but steps is counted.
    """
    (line,) = (line for line in lines() if line["id"] == name)
    assert abs(line["relative_error"]) < 0.2
    question = training_question(BY_ID[name], KNOWN)
    assert question.is_guessed and question.row.guessed


def test_the_hours_of_the_smallest_llama_are_missed_by_a_fifth():
    """Without a layout, restarts and evaluations 65,686 of the 82,432 A100-hours are found (docs/LOG.md)."""
    (line,) = (line for line in lines() if line["id"] == "run-llama1-7b")
    assert -0.22 < line["relative_error"] < 0
    assert training_question(BY_ID["run-llama1-7b"], KNOWN).is_guessed


def test_deepseek_v3_takes_the_hours_that_were_published():
    """2.664 M H800-hours for 14.8 T tokens (arXiv 2412.19437, table 1): 16 stages, 64 expert ranks, exchanges beside
    compute.
    """
    answer = tonnage.train(
        "deepseek-v3",
        "256x8xH800-SXM-80GB",
        runtime="megatron",
        pipeline_parallel_size=16,
        expert_parallel_size=64,
        precision="fp8-te",
        global_batch_size=15360,
        sequence_length=4096,
        overlap_moe_expert_parallel_comm=True,
        moe_token_dispatcher_type="flex",
        tokens=14.8e12,
    )
    low, high = (each / answer.step_time.value for each in answer.run.step_time_band)
    assert low < 2.664e6 / answer.run.accelerator_hours.value < high


def test_tflops_with_their_share_of_the_peak_beside_them_are_tflops():
    each = row(
        CONFIG,
        metric="throughput",
        unit="TFLOP/s/GPU (44% of peak)",
        source="NVIDIA/Megatron-LM README (older version)",
    )
    question = training_question(each)
    assert step_figure(question.row.measured, question).value(1.0) > 100


# ---- conventions ----


@pytest.mark.parametrize(
    ("name", "model", "length", "expected"),
    [
        # 72 L h^2 (1 + s/6h + V/12Lh): GPT-3 175B at 2048 with 51,200 tokens is 1.0286e12 + ... by hand
        ("narayanan", "gpt-3-175b", 2048, 72 * 96 * 12288**2 * (1 + 2048 / (6 * 12288) + 50257 / (12 * 96 * 12288))),
        (
            "narayanan hardware",
            "gpt-3-175b",
            2048,
            96 * 96 * 12288**2 * (1 + 2048 / (6 * 12288) + 50257 / (16 * 96 * 12288)),
        ),
        # 6 x (8,030,261,248 - 128,256 x 4096 - 65 norms x 4096) + 12 x 32 x 4096 x 8192
        ("torchtitan", "llama-3.1-8b", 8192, 6 * (8030261248 - 128256 * 4096 - 65 * 4096) + 12 * 32 * 4096 * 8192),
        ("palm", "llama-3.1-8b", 8192, 6 * (8030261248 - 65 * 4096) + 12 * 32 * 4096 * 8192),
        ("mosaicml", "llama-3.1-8b", 8192, 6 * (8030261248 - 65 * 4096) + 12 * 32 * 4096 * 8192),
        ("megatron", "llama-3.1-8b", 8192, 6 * (8030261248 - 128256 * 4096 - 65 * 4096) + 6 * 32 * 4096 * 8193),
        ("kaplan", "llama-3.1-8b", 8192, 6 * 8030261248),
    ],
)
def test_flop_conventions_are_their_formulas(name: str, model: str, length: int, expected: float):
    assert flops_per_token(model_named(model, offline=True), length, name) == pytest.approx(expected, rel=1e-9)


def test_every_convention_says_whose_it_is():
    for each in CONVENTIONS.values():
        assert each.source and each.text

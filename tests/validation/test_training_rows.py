"""`tonnage validate` for rows of measured training: each source's dialect becomes the question that it is."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from source_rows import Measured, Row, own, read, references_of, training_question, validate

from rows.training import readers
from rows.training.config import Config
from rows.training.figures import figure_of
from rows.training.machines import accelerator_of
from rows.training.options import training_options
from tonnage.cli import main
from tonnage.estimate import bands
from tonnage.kernel.errors import TonnageError
from tonnage.runtimes import training_runtimes
from tonnage.validation.training import memory_factor, source_of

CORPUS = Path(__file__).parents[2] / "validation" / "sources" / "train_memory.yaml"
ROWS = read([str(CORPUS)])
LLAMA = {"name": "llama-3.1-8b"}


def row(
    config: dict, metric: str = "max_memory_allocated", value: object = 1, unit: str = "GiB", **changes: object
) -> Row:
    made = {"model": LLAMA, "source": "a paper", **changes}
    return Row(id="x", kind="train_memory", measured=Measured(metric, value, unit), config=config, **made)  # type: ignore[arg-type]


def read_as(config: dict, source: str = "a paper") -> dict:
    """What the row's dialect finds."""
    (reader,) = [
        each
        for each in readers()
        if each.matches(config.get("framework", "").lower(), source.lower() if "framework" not in config else "")
    ][:1]
    return reader.read(Config(config))


def compare(*rows: Row) -> list[dict]:
    return validate(rows)["rows"]


def test_every_row_of_the_corpus_is_read_by_a_dialect_or_says_which_field_is_in_the_way():
    lines = [line for line in validate(ROWS)["rows"] if line["main"]]
    unread = {line["skipped"] for line in lines if line["skipped"]}
    allowed = ("is not built yet", "is not estimated yet", "no model is called", "no target of LoRA is called")
    assert all(any(words in reason for words in allowed) for reason in unread), unread
    assert len({line["id"] for line in lines}) == len(lines) == len(ROWS)


def test_full_rows_are_covered_as_far_as_their_runtimes_and_methods_are_built():
    for each in validate(ROWS)["rows"]:
        if each["main"] and each["completeness"] == "full" and each["skipped"]:
            assert "not built" in each["skipped"] or "not estimated" in each["skipped"], each["id"]


def test_activations_of_korthikanti_are_the_papers_formula_and_its_figure_within_what_a_plot_can_be_read_to():
    lines = [
        line for line in validate([each for each in ROWS if each.id.startswith("korthikanti")])["rows"] if line["main"]
    ]
    errors = {line["id"]: abs(line["relative_error"]) for line in lines}
    assert len(errors) == 13
    assert max(error for name, error in errors.items() if "-f1-" in name) < 1e-3
    assert max(error for name, error in errors.items() if "-f7-" in name) < 0.02


def test_megatrons_layout_precision_and_pipeline_are_read():
    found = read_as(
        {
            "framework": "Megatron-LM 23e00ed0 (core 0.14)",
            "parallelism": {"tp": 2, "pp": 2, "cp": 4, "ep": 8, "dp": 4},
            "micro_batch": 1,
            "num_microbatches": 8,
            "global_batch": 32,
            "seq_len": 4096,
            "dtype": "bf16",
            "grad_accum_dtype": "fp32",
            "distributed_optimizer": "ZeRO-1",
            "optimizer": "Adam fp32 states + fp32 master",
            "recompute": "none",
            "attention": "TransformerEngine flash",
            "cross_entropy_fusion": "TE (cef)",
            "sequence_parallel": True,
        }
    )
    expected = {
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 2,
        "context_parallel_size": 4,
        "expert_parallel_size": 8,
        "data_parallel_size": 4,
        "micro_batch_size": 1,
        "num_microbatches": 8,
        "sequence_length": 4096,
        "precision": "bf16-mixed",
        "main_gradients": "fp32",
        "zero_stage": 1,
        "optimizer": "adamw",
        "recompute": "none",
        "attention": "flash",
        "loss": "fused",
        "sequence_parallel": True,
        "runtime": "megatron",
    }
    assert expected.items() <= found.items()
    assert "global_batch_size" not in found, "follows from the other two"


@pytest.mark.parametrize(
    ("framework", "micro", "count"),
    [("torchtitan 9dec370 (2024-12-26)", 2, 8), ("torchtitan 820504e (2025-06-13)", 1, 16), ("torchtitan", 1, 16)],
)
def test_torchtitan_cuts_a_local_batch_into_micro_batches_as_its_version_did(framework: str, micro: int, count: int):
    found = read_as(
        {"framework": framework, "parallelism": {"fsdp": 8, "tp": 8, "pp": 8}, "local_batch": 16, "pp_schedule": "1F1B"}
    )
    assert (found["micro_batch_size"], found["num_microbatches"], found["virtual_pipeline_size"]) == (micro, count, 1)
    looped = read_as(
        {"framework": framework, "parallelism": {"pp": 8}, "local_batch": 16, "pp_schedule": "interleaved-1f1b"}
    )
    assert (looped["virtual_pipeline_size"], looped["pipeline_schedule"]) == (2, "interleaved-1f1b")


@pytest.mark.parametrize(
    ("said", "policy"),
    [
        ("full", "full"),
        ("none", "none"),
        ("selective", "selective-op"),
        ("selective (op)", "selective-op"),
        ("per-op SAC", "selective-op"),
        ("not stated", "selective-op"),
        ("selective (config default of llama3_8b.toml)", "selective-op"),
        ("memory budget 0.5", "memory-budget"),
    ],
)
def test_torchtitans_activation_checkpointing_is_its_recipes_where_nothing_is_said(said: str, policy: str):
    assert read_as({"framework": "torchtitan", "activation_checkpointing": said, "gpus": 8})["recompute"] == policy


@pytest.mark.parametrize(
    ("said", "low"),
    [
        ({"float8": "float8"}, "tensorwise"),
        ({"float8": "float8 rowwise"}, "rowwise"),
        ({"float8": "bf16"}, "none"),
        ({"float8": False}, "none"),
        ({"precision": "MXFP8"}, "mxfp8"),
        ({"precision": "float8 tensorwise"}, "tensorwise"),
        ({"precision": "bf16"}, None),
    ],
)
def test_float8_is_read_wherever_it_is_said(said: dict, low: str | None):
    found = read_as({"framework": "torchtitan", **said})
    assert found.get("float8") == low
    assert found["precision"] == "bf16-mixed"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"framework": "LLaMA-Factory", "impl": "hf-fa2-16bit", "lora_rank": 8, "lora_targets": "all linear"},
            {
                "runtime": "transformers",
                "method": "lora",
                "lora_rank": 8,
                "lora_targets": "all-linear",
                "attention": "flash",
                "recompute": "full",
            },
        ),
        ({"framework": "LLaMA-Factory", "impl": "unsloth-4bit"}, {"runtime": "unsloth", "method": "qlora"}),
        (
            {"framework": "LLaMA-Factory", "impl": "fa2", "quant": "4-bit QLoRA"},
            {"runtime": "transformers", "method": "qlora"},
        ),
        (
            {"framework": "torchtune", "method": "full (single device, PagedAdamW8bit, optimizer-in-bwd)", "gpus": 1},
            {
                "runtime": "torchtune",
                "method": "full",
                "optimizer": "paged-adamw-8bit",
                "optimizer_in_backward": True,
                "zero_stage": 0,
            },
        ),
        (
            {"framework": "torchtune", "method": "QLoRA", "gpus": 8},
            {"method": "qlora", "zero_stage": 3, "lora_rank": 8},
        ),
        (
            {
                "framework": "LitGPT",
                "method": "lora",
                "quantize": "bnb.nf4-dq",
                "precision": "bf16-true",
                "longest_seq": 1304,
                "seq_len": "padded to the longest sample",
            },
            {"method": "qlora", "precision": "bf16", "sequence_length": 1304, "runtime": "litgpt"},
        ),
        (
            {"framework": "LitGPT", "method": "lora", "seq": "truncated to 256 tokens"},
            {"method": "lora", "sequence_length": 256},
        ),
        (
            {
                "framework": "nanotron ~v0.5",
                "zero": 0,
                "tp_mode": "REDUCE_SCATTER (sequence parallel)",
                "recompute": "none (not stated)",
            },
            {"runtime": "nanotron", "zero_stage": 0, "sequence_parallel": True, "recompute": "none"},
        ),
        (
            {"framework": "HF PEFT + Accelerate", "method": "LoRA + DeepSpeed CPU offload"},
            {
                "runtime": "deepspeed",
                "zero_stage": 3,
                "offload_optimizer": "cpu",
                "offload_parameters": "cpu",
                "method": "lora",
            },
        ),
        (
            {"framework": "QLoRA (bitsandbytes NF4 + double quant + paged AdamW)"},
            {"method": "qlora", "optimizer": "paged-adamw", "lora_rank": 64},
        ),
        ({"framework": "Unsloth", "method": "lora16bit"}, {"runtime": "unsloth", "method": "lora"}),
        (
            {"framework": "llm-foundry/Composer FSDP1", "sharding": "SHARD_GRAD_OP", "fsdp_mixed_precision": "PURE"},
            {"runtime": "fsdp2", "zero_stage": 2, "precision": "bf16-mixed-16bit-gradients"},
        ),
        (
            {
                "framework": "Megatron-Bridge NeMo container 26.06",
                "precision": "FP8-CS",
                "parallelism": {"vp": "n/a", "tp": 1},
            },
            {"runtime": "megatron", "precision": "fp8-te", "virtual_pipeline_size": 1, "zero_stage": 1},
        ),
        (
            {"framework": "MaxText", "remat_policy": "minimal", "per_device_batch": 6},
            {"runtime": "maxtext", "recompute": "selective", "micro_batch_size": 6},
        ),
        ({"framework": "HF Trainer log", "gpus": 2, "dtype": "bf16"}, {"runtime": "ddp", "precision": "bf16"}),
        ({"parallelism": {"fsdp2": 8}}, {"runtime": "fsdp2", "data_parallel_size": 8}),
        ({"parallelism": {"tp": 8}}, {"runtime": "megatron"}),
        ({}, {"runtime": "transformers"}),
    ],
    ids=lambda value: str(value.get("framework", "")) if isinstance(value, dict) else "",
)
def test_a_dialect_is_read_with_its_sources_defaults(config: dict, expected: dict):
    assert expected.items() <= read_as(config).items()


def test_a_framework_that_nobody_reads_is_named():
    (line,) = compare(row({"framework": "Fairscale 0.4"}))
    assert line["skipped"] == "config.framework 'fairscale 0.4' is a dialect that nothing reads"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"gpus": "128-512 (linear scaling)"}, "config.gpus"),
        ({"micro_batch": "many"}, "config.micro_batch"),
        ({"gpu": "some chip"}, "config.gpu"),
        ({"parallelism": {"tp": 3}, "gpus": 8}, "must divide"),
        ({"gpus": 10**12}, "at most"),
    ],
)
def test_what_cannot_be_read_is_skipped_with_its_field(config: dict, says: str):
    (line,) = compare(row(config))
    assert says in line["skipped"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H100 SXM 96GB HBM2e 2.4TB/s, 500 W power limit, NVLink, 400 Gb/s RDMA per GPU", "H100-SXM-96GB"),
        ("H100 80GB SXM", "H100-SXM-80GB"),
        ("H100 80GB SXM 700W", "H100-SXM-80GB"),
        ("A100 80GB", "A100-SXM-80GB"),
        ("A100-SXM 40GB", "A100-SXM-40GB"),
        ("a100_40gb", "A100-SXM-40GB"),
        ("A100 (80 GB in the paper; another says 40 GB)", "A100-SXM-80GB"),
        ("H200 SXM 141GB, NVLink", "H200-SXM-141GB"),
        ("RTX A6000", "RTX-A6000"),
        ("8x NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("DGX-H100", "H100-SXM-80GB"),
        ("B200 (power limited)", "B200-SXM-180GB"),
        ("V100 (DGX-2)", "V100-SXM2-32GB"),
        ("A100 64GB", "A100-SXM-80GB of 64 GB"),
        ("not named; 110.95 GiB is 60.2% of capacity", "an accelerator of 184.3 GiB"),
        ("unheard of, 48 GB", "an accelerator of 48.0 GiB"),
    ],
)
def test_a_gpus_text_is_the_catalogues_accelerator_or_one_of_the_memory_that_it_states(text: str, name: str):
    chip, note = accelerator_of(Config({"gpu": text}))
    assert chip.name.lower() == name.lower()
    assert bool(note) == (" of " in name)


@pytest.mark.parametrize(
    ("metric", "unit", "kind", "rank", "stage"),
    [
        ("peak memory per GPU (torchtitan max_reserved_gib, max over ranks)", "GiB", "reserved", None, None),
        ("torch.cuda.max_memory_allocated, max over ranks", "GiB", "allocated", None, None),
        ("max_allocated by rank (MiB) [4]", "MiB", "allocated", 4, None),
        ("GPU memory (rank 0; allocated vs reserved not stated)", "GiB (labelled GB)", "process", 0, None),
        ("activation memory per GPU (first stage)", "GiB", "activations", None, 0),
        ("activation memory relative to TP baseline", "%", "ratio", None, None),
        ("parameters+optimizer per GPU", "GiB", "states", None, None),
        ("peak memory", "MB (per GPU, rank 0 entry)", "process", 0, None),
        ("peak reserved VRAM", "GB", "reserved", None, None),
        ("process memory, as the driver counts it (NVML or nvidia-smi)", "bytes", "process", None, None),
        ("fits in GPU memory", "GB", "bound", None, None),
        ("minimum VRAM", "GB", "bound", None, None),
    ],
)
def test_a_metric_names_its_figure_its_rank_and_its_stage(
    metric: str, unit: str, kind: str, rank: int | None, stage: int | None
):
    figure = figure_of(Measured(metric, 1, unit), "process", 2**30)
    assert (figure.kind, figure.rank, figure.stage) == (kind, rank, stage)


def test_gigabytes_are_what_their_unit_or_their_source_says():
    for unit, gigabyte, size in (
        ("GiB", 10**9, 2**30),
        ("GB (1e9, as printed)", 2**30, 10**9),
        ("GB", 2**30, 2**30),
        ("GB", 10**9, 10**9),
        ("MB", 2**30, 2**20),
    ):
        assert figure_of(Measured("peak memory", 1, unit), "allocated", gigabyte).unit == size


@pytest.mark.parametrize("metric", ["tokens per second", "step time", "parameters", "loss"])
def test_what_is_no_memory_is_not_predicted(metric: str):
    (line,) = compare(row({"gpus": 1}, metric, 1, "s"))
    assert line["predicted"] is None and line["skipped"]


def test_allocated_reserved_and_process_are_ever_more():
    values = [
        compare(row({"gpus": 1, "gpu": "h100"}, metric))[0]["predicted"]
        for metric in ("max_memory_allocated", "max_memory_reserved", "nvidia-smi")
    ]
    assert values == sorted(values) and len(set(values)) == 3


def test_ranks_of_a_row_are_its_pipeline_stages():
    config = {
        "framework": "Megatron-LM",
        "gpus": 8,
        "gpu": "H100 80GB",
        "parallelism": {"pp": 2, "dp": 4},
        "micro_batch": 1,
        "num_microbatches": 4,
    }
    also = [Measured(f"max_allocated by rank [{rank}]", 1, "GiB") for rank in range(8)] + [
        Measured("peak memory (last stage)", 1, "GiB")
    ]
    main_line, *lines = compare(row(config, also=also))
    values = [line["predicted"] for line in lines]
    assert len(set(values[:4])) == len(set(values[4:])) == 1 and values[0] != values[7]
    assert max(values) == main_line["predicted"]


def test_out_of_memory_agrees_where_more_is_predicted_than_the_card_gives():
    config = {"framework": "Megatron-LM", "gpus": 8, "gpu": "H100 80GB", "micro_batch": 1, "seq_len": 2048}
    fits, not_ = compare(row(config, value="OOM"))[0], compare(row({**config, "micro_batch": 64}, value="OOM"))[0]
    assert (fits["agrees"], not_["agrees"]) == (False, True)
    assert fits["relative_error"] is None and fits["predicted"] < 80 < not_["predicted"]
    unnamed = compare(row({**config, "gpu": "not named"}, value="OOM"))[0]
    assert "does not name" in unnamed["skipped"] and unnamed["agrees"] is None


def test_a_bound_agrees_or_not_and_has_no_error():
    config = {"framework": "Megatron-LM", "gpus": 8, "seq_len": 2048, "micro_batch": 1}
    roomy, narrow = (
        compare(row(config, "fits in GPU memory", 80, "GB"))[0],
        compare(row(config, "fits in GPU memory", 24, "GB"))[0],
    )
    assert (roomy["agrees"], narrow["agrees"], roomy["relative_error"]) == (True, False, None)
    assert not compare(row(config, "needs more than", 1000, "GB"))[0]["agrees"]


def test_what_the_estimator_lacks_is_noted_or_stops_the_row():
    options, notes = training_options(
        {"runtime": "megatron", "no_such_knob": 3, "recompute": "memory-budget", "sequence_length": 8}
    )
    assert options.sequence_length == 8 and "no_such_knob 3 is left out" in notes
    with pytest.raises(TonnageError, match="runtime zeppelin is not built yet"):
        training_options({"runtime": "zeppelin"})
    for name in {"method": "lora", "offload_optimizer": "cpu"}.items():
        if name[0] not in options.__struct_fields__:
            with pytest.raises(TonnageError, match="is not estimated yet"):
                training_options({"runtime": "megatron", **dict([name])})


def test_every_dialects_runtime_is_one_that_the_estimator_has_or_will_have():
    planned = {*training_runtimes(), "nanotron", "torchtune", "litgpt", "maxtext", "unsloth"}
    assert {reader.runtime for reader in readers()} <= planned


def test_a_row_has_the_layers_that_it_names_beside_its_model():
    known = references_of(ROWS)
    for config, model, layers in (
        ({"layers": 2}, LLAMA, 2),
        ({}, {"layers": 4, "hparams": {"hidden": 64, "heads": 4, "vocab": 100}}, 4),
        ({}, {"name": "mt0-xxl (12B)"}, 48),
    ):
        question = training_question(row({"gpus": 1, **config}, model=model), known)
        assert sum(branch.num_layers for branch in question.model.branches) == layers


def test_mixtures_named_by_all_their_shared_experts_are_read():
    hparams = {
        "hidden": 64,
        "layers": 3,
        "heads": 4,
        "vocab": 100,
        "intermediate": 256,
        "moe_intermediate": 32,
        "experts": 8,
        "topk": 2,
        "shared_intermediate": 64,
        "first_dense": 1,
    }
    model = training_question(row({"gpus": 1}, model={"hparams": hparams}), {}).model
    assert [block.name for block in model.decoder.blocks] == ["dense layer", "mixture layer"]
    (line,) = compare(row({"gpus": 1}, model={"hparams": {**hparams, "shared_intermediate": 33}}))
    assert "shared_intermediate" in line["skipped"]


def test_a_factor_is_measured_over_predicted_of_a_whole_rank_alone():
    whole = row({"gpus": 1, "gpu": "h100"}, value=30)
    assert memory_factor(own(whole)) == pytest.approx(30 / compare(whole)[0]["predicted"])
    assert memory_factor(own(row({"gpus": 1}, "activation memory", 3))) is None
    assert memory_factor(own(row({"gpus": 1, "gpu": "h100"}, value="OOM"))) is None
    assert source_of(own(row({}, source="pytorch/x docs/a.md (commit 1), Table 2"))) == "pytorch/x docs/a.md"


def test_indicative_rows_are_summed_up_apart(tmp_path: Path):
    path = tmp_path / "rows.yaml"
    rows = [
        {
            "id": name,
            "kind": "train_memory",
            "model": LLAMA,
            "config": {"gpus": 1},
            "measured": {"metric": "peak memory", "value": 1, "unit": "GiB"},
            "completeness": how,
        }
        for name, how in (("a", "full"), ("b", "indicative: nobody controlled it"))
    ]
    path.write_text(yaml.safe_dump(rows))
    summary = validate(read([str(path)]))["summary"]
    assert [(entry["completeness"], entry["covered"]) for entry in summary] == [("full", 1), ("indicative", 1)]


def test_the_band_of_a_row_is_in_its_unit_and_counts_what_lies_inside(monkeypatch: pytest.MonkeyPatch):
    band = bands.Band(runtime="megatron", kind="full", low=0.5, high=2, rows=9, sources=2)
    monkeypatch.setattr(
        "tonnage.estimate.bands.measured.TRAIN_MEMORY",
        bands.Table(bands={("megatron", "full"): band}, vendors=("NVIDIA",)),
    )
    config = {"framework": "Megatron-LM", "gpus": 8, "gpu": "h100"}
    value = compare(row(config))[0]["predicted"]
    document = validate([row(config, value=1.5 * value), row({**config, "gpus": 16}, value=90 * value)])
    first, second = document["rows"]
    assert first["band"] == [value * 0.5, value * 2]
    assert second["band"][1] < 90 * value
    assert document["summary"][0]["inside_band"] == 0.5


def test_the_command_line_shows_agreement_and_what_was_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "rows.yaml"
    path.write_text(
        json.dumps(
            [
                {
                    "id": "a",
                    "verb": "train",
                    "question": {"model": "llama-3.1-8b", "on": "rtx-4090"},
                    "measured": {"quantity": "reserved_memory", "value": "OOM", "unit": "GB"},
                },
                {
                    "id": "b",
                    "verb": "train",
                    "question": {"model": "llama-3.1-8b"},
                    "guessed": {"on": "the row names no GPU"},
                    "measured": {"quantity": "reserved_memory", "value": 9, "unit": "GB"},
                },
            ]
        )
    )
    assert main(["validate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "as measured" in printed and "the row names no GPU" in printed


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=12)
    | st.lists(st.integers(), max_size=2)
)
KEYS = st.sampled_from(
    [
        "gpu",
        "gpus",
        "nodes",
        "parallelism",
        "micro_batch",
        "local_batch",
        "grad_accum",
        "global_batch",
        "seq_len",
        "recompute",
        "optimizer",
        "precision",
        "dtype",
        "zero",
        "compile",
        "float8",
        "method",
        "lora_rank",
        "attention",
        "pp_schedule",
        "layers",
        "moe",
        "tp",
        "pp",
        "cp",
        "ep",
        "quant",
    ]
)
SOME = st.sampled_from([1, 2, 4, 8, "full", "none", "bf16", "h100 80gb", {"tp": 2, "pp": 4}, {"fsdp": 8, "cp": "x"}])
CONFIGS = st.dictionaries(KEYS, SOME | VALUES, max_size=6)
FRAMEWORKS = st.sampled_from(
    [
        "torchtitan 2024-12",
        "Megatron-LM",
        "HF Trainer",
        "DeepSpeed",
        "llm-foundry",
        "Hetu-Galvatron",
        "LLaMA-Factory",
        "",
        "?",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    CONFIGS,
    FRAMEWORKS,
    st.sampled_from(["peak memory", "activations [3]", "max by rank [70]", "%", ""]),
    st.sampled_from(["GiB", "%", "", "GB"]),
)
def test_any_config_gives_a_prediction_or_a_reason(config: dict, framework: str, metric: str, unit: str):
    (line,) = compare(row({**config, "framework": framework}, metric, 1, unit))
    assert (line["predicted"] is None) == bool(line["skipped"])
    assert line["predicted"] is None or line["predicted"] >= 0

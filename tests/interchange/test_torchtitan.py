"""torchtitan's command lines and TOML."""

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_row import every_row
from interchange.recipe_trips import (
    check_reads_or_refuses,
    check_round_trip,
    keys_of,
    not_understood,
    read_command,
    read_file,
    read_text,
)
from tonnage.interchange.export import export
from tonnage.interchange.parts.recipes import torchtitan_keys
from tonnage.interchange.parts.recipes.torchtitan_registry import CONFIGS, FLAVORS, config_of
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.models import read as read_model

USUAL = {"runtime": "fsdp2", "precision": "bf16-mixed", "optimizer": "adamw", "optimizer_implementation": "fused"}
NEWEST = {**USUAL, "attention": "flash", "loss": "chunked"}

GOLDEN = [
    (
        "llama3_8b.sh",
        "h100",
        {
            **NEWEST,
            "on": "8xh100",
            "model": "llama-3.1-8b",
            "sequence_length": 8192,
            "micro_batch_size": 2,
            "num_microbatches": 2,
            "recompute": "full",
            "compile": True,
        },
        "0.3",
        [],
    ),
    (
        "torchrun_405b.sh",
        "h100",
        {
            **NEWEST,
            "on": "64x8xh100",
            "model": "llama-3.1-405b",
            "expandable_segments": False,
            "tensor_parallel_size": 8,
            "pipeline_parallel_size": 8,
            "pipeline_schedule": "interleaved-1f1b",
            "virtual_pipeline_size": 4,
            "sequence_length": 8192,
            "micro_batch_size": 1,
            "num_microbatches": 32,
            "recompute": "full",
            "compile": True,
            "async_tensor_parallel": True,
            "float8": "rowwise",
        },
        "0.3",
        [],
    ),
    (
        "deepseek.sh",
        "h100",
        {
            **NEWEST,
            "on": "8xh100",
            "model": "deepseek-v2-lite",
            "tensor_parallel_size": 2,
            "expert_parallel_size": 8,
            "sequence_length": 4096,
            "micro_batch_size": 4,
            "num_microbatches": 1,
            "recompute": "selective-op",
        },
        "0.3",
        ["override.imports", "traning.steps"],
    ),
    (
        "train_configs/llama3_70b.toml",
        "64xa100",
        {
            **USUAL,
            "on": "64xa100",
            "model": "llama-3.1-70b",
            "runtime_version": "0.2",
            "tensor_parallel_size": 8,
            "sequence_length": 8192,
            "micro_batch_size": 8,
            "num_microbatches": 1,
            "max_steps": 1000,
            "recompute": "full",
        },
        "0.2",
        [],
    ),
    (
        "train_configs/llama3_8b_float8_v01.toml",
        "8xh100",
        {
            **USUAL,
            "on": "8xh100",
            "model": "llama-3.1-8b",
            "runtime_version": "0.1",
            "tensor_parallel_size": 2,
            "sequence_length": 8192,
            "micro_batch_size": 1,
            "num_microbatches": 1,
            "max_steps": 1000,
            "recompute": "selective-op",
            "compile": True,
            "async_tensor_parallel": True,
            "float8": "tensorwise",
            "float8_all_gather": True,
        },
        "0.1",
        ["activation_checkpoint.selective_ac_option"],
    ),
    (
        "train_configs/llama3_8b_2024.toml",
        "8xh100",
        {
            **USUAL,
            "on": "8xh100",
            "model": "llama-3.1-8b",
            "runtime_version": "2024",
            "replicate_size": 2,
            "sequence_length": 8192,
            "micro_batch_size": 1,
            "num_microbatches": 1,
            "max_steps": 1000,
            "recompute": "selective-op",
            "compile": True,
        },
        "2024",
        [],
    ),
    (
        "legacy_command.sh",
        "h100",
        {
            **USUAL,
            "on": "8xh100",
            "model": "llama-3.1-70b",
            "runtime_version": "0.2",
            "tensor_parallel_size": 8,
            "sequence_length": 4096,
            "micro_batch_size": 2,
            "num_microbatches": 1,
            "max_steps": 1000,
            "recompute": "full",
        },
        "0.2",
        [],
    ),
]


@every_row("path, on, question, version, unclear", GOLDEN)
def test_a_file_is_read_as_its_question(path, on, question, version, unclear):
    found = read_file(f"torchtitan/{path}", on=on)
    assert dict(found.question) == question
    assert not_understood(found) == unclear
    assert (found.document.tool, found.document.version) == ("torchtitan", version)


def test_what_a_config_sets_is_assumed_with_its_name():
    found = read_command(
        "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_70b", on="h100"
    )
    key = keys_of(found, "assumed")["parallelism.tensor_parallel_degree"]
    assert (key.value, key.options) == ("8", ("tensor_parallel_size",))
    assert "llama3_70b" in key.why


TENSOR, STAGES = "--parallelism.tensor_parallel_degree", "--parallelism.pipeline_parallel_degree"
REPLICAS = "parallelism.data_parallel_replicate_degree"
START = "NGPU=8 ./run_train.sh --module llama3 --config llama3_8b "


@every_row(
    "words, option, value",
    [
        ("", "expandable_segments", None),  # run_train.sh sets it, as the runtime's default has it
        ("--training.dtype bfloat16", "precision", "bf16"),
        ("--training.mixed_precision_param float32", "precision", "fp32"),
        ("--training.enable_cpu_offload", "offload_optimizer", "cpu"),
        ("--training.steps 50", "max_steps", 50),
        ("--training.global_batch_size 64", "num_microbatches", 8),
        ("--parallelism.data_parallel_replicate_degree 2", "replicate_size", 2),
        ("--parallelism.fsdp_reshard_after_forward never", "zero_stage", 2),
        (
            "--parallelism.tensor_parallel_degree=2 --parallelism.no-enable_sequence_parallel",
            "sequence_parallel",
            False,
        ),
        ("--parallelism.context_parallel_degree 4", "context_parallel_size", 4),
        ("--compile.enable --compile.components loss", "compile", None),
        ("--loss.num_chunks 1", "loss", "full"),
        ("--optimizer.implementation foreach", "optimizer_implementation", "foreach"),
        ("--optimizer.implementation fused_opt_states_bf16", "optimizer", "adamw-bf16"),
        ("activation_checkpoint:none", "recompute", "none"),
        ("--dataloader.num_workers 2", "data_loader_workers", 2),
        (
            (
                "--parallelism.pipeline_parallel_degree 2 --training.local_batch_size 8 "
                "--parallelism.pipeline_parallel_microbatch_size 2"
            ),
            "num_microbatches",
            4,
        ),
    ],
)
def test_an_option_decides_one_of_ours(words, option, value):
    assert read_command(START + words, on="h100").question.get(option) == value


@every_row(
    "words, unclear",
    [
        ("activation_checkpoint:memory-budget", ["activation_checkpoint"]),
        (
            "--parallelism.data_parallel_replicate_degree 8 --parallelism.data_parallel_shard_degree 1",
            ["parallelism.data_parallel_replicate_degree"],
        ),
        ("--loss.num_chunks 4", ["loss.num_chunks"]),
        ("--parallelism.spmd_backend full_dtensor", ["parallelism.spmd_backend"]),
        ("--training.mixed_precision_reduce bfloat16", ["training.mixed_precision_reduce"]),
        ("--training.sequence_len 3", ["training.sequence_len"]),
        ("--checkpoint.enable --metrics.enable_wandb --lr_scheduler.warmup_steps 3 --debug.seed 1", []),
        ("--training.disable_cuda_graphs", []),
    ],
)
def test_what_changes_memory_and_is_not_estimated_makes_it_unsure(words, unclear):
    assert not_understood(read_command(START + words, on="h100")) == unclear


@every_row(
    "words, message",
    [
        ("--training.seq_len long", "a number"),
        ("--training.local_batch_size 0", "from 1 on"),
        ("--training.global_batch_size 9", "multiple of local_batch_size 1 x 8"),
        ("--parallelism.data_parallel_shard_degree 3", "3 ranks, of 8 accelerators"),
        (
            "--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule 2F2B",
            "a schedule such as",
        ),
        ("--parallelism.fsdp_reshard_after_forward sometimes", "always"),
        ("activation_checkpoint:half", "one of none"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(words, message):
    with pytest.raises(InvalidInput) as caught:
        read_command(START + words, on="h100")
    assert message in str(caught.value)


def test_a_config_of_ones_own_is_read_as_far_as_it_is_said():
    command = "torchrun --nproc_per_node 8 -m torchtitan.train --module mine --config mine_7b --training.seq_len 4096"
    with pytest.raises(InvalidInput, match="names no model"):
        read_command(command, on="h100")
    found = read_command(command, on="h100", model="llama-2-7b-hf")
    assert (found.question["model"], not_understood(found)) == ("llama-2-7b-hf", ["config"])


def test_a_release_that_is_named_is_stronger_than_what_the_keys_tell():
    found = read_file("torchtitan/train_configs/llama3_70b.toml", version="0.1")
    assert (found.question["runtime_version"], found.document.version) == ("0.1", "0.1")


def test_every_flavor_is_a_model_of_the_catalogue():
    for name in FLAVORS.values():
        assert read_model(name, offline=True).name == name
    assert all(recipe.model for recipe in CONFIGS.values())


def test_a_model_has_the_config_that_is_it_alone():
    assert config_of("llama-3.1-8b") == "llama3_8b"
    assert config_of("qwen3-8b") == ""
    assert config_of("llama-3.1-405b") == "llama3_405b"


@every_row(
    "question",
    [
        {"model": "llama-3.1-8b", "on": "8xh100"},
        {"model": "llama-3.1-8b", "on": "2x8xh100", "replicate_size": 2, "recompute": "full", "micro_batch_size": 2},
        {"model": "llama-3.1-8b", "on": "8xh100", "compile": True, "loss": "full", "zero_stage": 2, "max_steps": 20},
        {
            "model": "llama-3.1-70b",
            "on": "4x8xh100",
            "tensor_parallel_size": 8,
            "sequence_parallel": False,
            "recompute": "full",
            "global_batch_size": 16,
        },
        {
            "model": "llama-3.1-70b",
            "on": "8x8xh100",
            "pipeline_parallel_size": 4,
            "pipeline_schedule": "interleaved-1f1b",
            "num_microbatches": 16,
            "micro_batch_size": 2,
            "tensor_parallel_size": 2,
        },
        {"model": "llama-3.1-8b", "on": "8xh100", "offload_parameters": "cpu", "precision": "bf16"},
        {"model": "llama-3.1-8b", "on": "8xh100", "expandable_segments": False, "optimizer_implementation": "foreach"},
        {
            "model": "llama-3.1-405b",
            "on": "64x8xh100",
            "float8": "rowwise",
            "compile": True,
            "tensor_parallel_size": 8,
            "async_tensor_parallel": True,
            "recompute": "full",
        },
        {"model": "qwen3-30b-a3b", "on": "4x8xh100", "expert_parallel_size": 8, "recompute": "selective-op"},
        {"model": "llama-3.1-8b", "on": "8xh100", "context_parallel_size": 4, "sequence_length": 32768},
    ],
)
def test_a_question_survives_writing_and_reading(question):
    check_round_trip("torchtitan", ".sh", question)


@every_row(
    "question, message",
    [
        ({"model": "qwen3-8b", "on": "8xh100"}, "no config of qwen3-8b"),
        ({"model": "llama-3.1-8b", "on": "8xh100", "method": "lora"}, "no words for"),
        ({"model": "llama-3.1-8b", "on": "8xh100", "runtime": "ddp"}, "starts fsdp2"),
        ({"model": "llama-3.1-8b", "on": "8xh100", "recompute": "selective"}, "recompute selective"),
        ({"model": "llama-3.1-8b", "on": "8xh100", "replicate_size": 8}, "DDP where nothing shards"),
        ({"model": "llama-3.1-405b", "on": "64x8xh100", "tensor_parallel_size": 8}, "float8 none"),
    ],
)
def test_what_torchtitan_cannot_say_is_refused(question, message):
    with pytest.raises(InvalidInput) as caught:
        export("torchtitan", "train", question)
    assert message in str(caught.value).replace("--", "")


def test_the_command_is_torchtitans_own():
    text = export("torchtitan", "train", {"model": "llama-3.1-8b", "on": "2x8xh100", "recompute": "full"}).text
    assert text.startswith("#!/usr/bin/env bash\n# tonnage: train --on 2x8xh100\n")
    assert "--module llama3" in text
    assert text.rstrip().endswith("activation_checkpoint:full")
    assert "--nnodes=2" in text


ODD = st.one_of(
    st.booleans(),
    st.integers(-3, 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["auto", "true", "4", "full", "", "no", "8B", "llama3", "AdamW", "selective", "1F1B", "op"]),
    st.lists(st.sampled_from(["model", "float8", ""]), max_size=2),
)


def toml_of(flat):
    """A TOML text of dotted keys."""

    def shown(value):
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return "[" + ", ".join(map(shown, value)) + "]"
        return f'"{value}"' if isinstance(value, str) else repr(value)

    whole = {key: value for key, value in flat.items() if not any(other.startswith(f"{key}.") for other in flat)}
    return "\n".join(f"{key} = {shown(value)}" for key, value in sorted(whole.items()))


LEGACY = [key for key in torchtitan_keys.known() if key not in ("model", "job")]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from([*LEGACY, "no.such_key", "parallelism.tensor_parallel"]), ODD, max_size=8))
def test_any_toml_is_read_or_refused(flat):
    check_reads_or_refuses(toml_of({"model.name": "llama3", **flat}), "config.toml", "torchtitan")


@every_row("text", ["", "a = [", "training = 3\nmodel = 4", "[[training]]\na = 1"])
def test_other_shapes_of_toml_are_refused(text):
    with pytest.raises(InvalidInput):
        read_text(text, "config.toml", tool="torchtitan")


NAMES = st.sampled_from([f"--{key}" for key in (*torchtitan_keys.READ, *torchtitan_keys.OTHERS, "no.such")])
WORDS = st.sampled_from(["1", "8", "-1", "0", "true", "bfloat16", "llama3_8b", "llama3", "full", "a:b", "loss", "#x"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(NAMES, WORDS, st.just("activation_checkpoint:full")), max_size=10))
def test_any_command_is_read_or_refused(words):
    try:
        found = read_command(shlex.join(["torchrun", "-m", "torchtitan.train", *words]), model="llama-3.1-8b")
    except TonnageError as error:
        assert "\n" not in str(error)
        return
    assert found.verb == "train"


def test_a_release_that_nobody_knows_is_read_as_the_newest():
    assert read_file("torchtitan/llama3_8b.sh", on="h100", version="99").document.version == "99"

"""ms-swift's commands and files."""

import shlex

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from every_row import every_row
from interchange.recipe_trips import (
    check_reads_or_refuses,
    keys_of,
    not_understood,
    read_command,
    read_file,
    read_text,
)
from tonnage.interchange.export import export
from tonnage.interchange.parts.recipes import ms_swift_keys
from tonnage.kernel.errors import InvalidInput, TonnageError

USUAL = {
    "optimizer": "adamw",
    "optimizer_implementation": "fused",
    "recompute": "full",
    "attention": "sdpa",
    "data_loader_workers": 1,
}

GOLDEN = [
    (
        "sft_lora.sh",
        {
            **USUAL,
            "on": "1xh100",
            "model": "Qwen/Qwen2.5-7B-Instruct",
            "runtime": "transformers",
            "method": "lora",
            "lora_rank": 8,
            "lora_dropout": True,
            "lora_targets": "all-linear",
            "precision": "bf16-mixed",
            "micro_batch_size": 1,
            "num_microbatches": 16,
            "data_loader_workers": 4,
            "sequence_length": 2048,
        },
        [],
    ),
    (
        "full_zero3.sh",
        {
            **USUAL,
            "on": "2x8xh100",
            "model": "Qwen/Qwen2.5-7B",
            "runtime": "deepspeed",
            "zero_stage": 3,
            "reduce_bucket_size": "auto",
            "overlap_comm": False,
            "contiguous_gradients": True,
            "sub_group_size": 10**9,
            "stage3_prefetch_bucket_size": "auto",
            "stage3_max_live_parameters": 10**9,
            "stage3_max_reuse_distance": 10**9,
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": True,
            "method": "full",
            "precision": "bf16-mixed",
            "micro_batch_size": 1,
            "num_microbatches": 4,
            "max_steps": 10000,
            "sequence_length": 8192,
            "packing": True,
            "attention": "flash",
        },
        [],
    ),
    (
        "rlhf_grpo.sh",
        {
            **USUAL,
            "on": "8xh100",
            "model": "Qwen/Qwen2.5-7B-Instruct",
            "runtime": "deepspeed",
            "zero_stage": 2,
            "reduce_bucket_size": 200_000_000,
            "allgather_bucket_size": 200_000_000,
            "overlap_comm": False,
            "contiguous_gradients": True,
            "method": "full",
            "precision": "bf16-mixed",
            "micro_batch_size": 8,
            "num_microbatches": 1,
            "sequence_length": 4096 + 2048,
            "objective": "grpo",
            "engine_memory_share": 0.5,
        },
        [],
    ),
    (
        "sft.yaml",
        {
            **USUAL,
            "on": "4xh100",
            "model": "Qwen/Qwen3-8B",
            "runtime": "ddp",
            "method": "qlora",
            "base_weights": "nf4-double",
            "upcast_base": False,
            "lora_rank": 8,
            "lora_dropout": True,
            "lora_targets": "q_proj,k_proj,v_proj",
            "precision": "bf16-mixed",
            "micro_batch_size": 2,
            "num_microbatches": 2,
            "liger": True,
            "sequence_length": 4096,
        },
        ["galore_ranks"],
    ),
    (
        "fsdp2.sh",
        {
            **USUAL,
            "on": "8xh100",
            "model": "Qwen/Qwen2.5-7B",
            "runtime": "fsdp2",
            "model_code": "transformers",
            "zero_stage": 3,
            "method": "full",
            "precision": "bf16-mixed",
            "micro_batch_size": 1,
            "num_microbatches": 2,
            "optimizer_implementation": "foreach",
            "sequence_length": 8192,
            "attention": "flash",
        },
        [],
    ),
]


@every_row("path, question, unclear", GOLDEN)
def test_a_file_is_read_as_its_question(path, question, unclear):
    found = read_file(f"ms_swift/{path}", on="h100")
    assert dict(found.question) == question
    assert not_understood(found) == unclear
    assert found.document.tool == "ms-swift"


def test_names_of_release_3_are_read_and_shown_as_they_are_written():
    found = read_file("ms_swift/full_zero3.sh", on="h100")
    assert found.document.version == "3"
    assert "train_type" in keys_of(found, "used")
    assert found.origins["method"] == ("train_type",)


SFT = "swift sft --model llama-3.1-8b --dataset x "


@every_row(
    "words, option, value",
    [
        ("", "num_microbatches", 2),  # sixteen sequences over eight accelerators
        ("--per_device_train_batch_size 4", "num_microbatches", 1),
        ("--lora_dropout 0", "lora_dropout", None),
        ("--tuner_type full", "precision", "bf16"),
        ("--tuner_type full --deepspeed zero2", "precision", "bf16-mixed"),
        ("--torch_dtype float16", "precision", "fp16-mixed"),
        ("--torch_dtype float32 --bf16 false --fp16 false", "precision", "fp32"),
        ("--quant_method bnb --quant_bits 8", "base_weights", "int8"),
        ("--use_dora true", "method", "dora"),
        ("--target_modules q_proj v_proj", "lora_targets", "q_proj,v_proj"),
        ("--gradient_checkpointing false", "recompute", "none"),
        ("--deepspeed zero3_offload", "offload_parameters", "cpu"),
        ("--deepspeed zero3 --zero_hpz_partition_size 4", "zero_hpz_partition_size", 4),
        ("--fsdp fsdp2 --sequence_parallel_size 2", "context_parallel_size", 2),
        ("--attn_impl flash_attn --packing true --max_length 4096", "packing", True),
        ("--optim paged_adamw_8bit", "optimizer", "paged-adamw-8bit"),
        ("--max_length 4_096", "sequence_length", 4096),
    ],
)
def test_an_option_decides_one_of_ours(words, option, value):
    assert read_command(SFT + words).question.get(option) == value


@every_row(
    "words, unclear",
    [
        ("--tuner_type longlora", ["tuner_type"]),
        ("--target_regex model.*", ["target_regex"]),
        ("--freeze_vit false", ["freeze_vit"]),
        ("--padding_free true", ["padding_free"]),
        ("--sequence_parallel_size 4", ["sequence_parallel_size"]),
        ("--modules_to_save embed_tokens", ["modules_to_save"]),
        ("--quant_method hqq --quant_bits 4", ["quant_method"]),
        ("--no_such_option 3", ["no_such_option"]),
        ("--learning_rate 1e-4 --system hello --split_dataset_ratio 0.1", []),
    ],
)
def test_what_changes_memory_and_is_not_estimated_makes_it_unsure(words, unclear):
    assert not_understood(read_command(SFT + words)) == unclear


@every_row(
    "words, message",
    [
        ("--tuner_type lorra", "one of lora, full"),
        ("--per_device_train_batch_size x", "a number"),
        ("--deepspeed zero9", "zero9"),
        ("--rlhf_type x", "one of dpo, grpo"),
        ("--target_modules", "list of names"),
        ("--optim adamx", "one of"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(words, message):
    with pytest.raises(InvalidInput) as caught:
        read_command(SFT + words)
    assert message in str(caught.value)


def test_one_process_over_several_accelerators_is_not_estimated():
    found = read_command("CUDA_VISIBLE_DEVICES=0,1 " + SFT, on="h100")
    assert not_understood(found) == ["CUDA_VISIBLE_DEVICES"]
    assert not not_understood(read_command("NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1 " + SFT, on="h100"))


def test_preference_training_is_the_default_of_rlhf():
    assert read_command("swift rlhf --model llama-3.1-8b --dataset x").question["objective"] == "dpo"


def test_megatron_of_swift_is_no_command_of_this_format():
    with pytest.raises(InvalidInput, match="of no tool"):
        read_command("swift infer --model llama-3.1-8b")


def test_it_is_read_and_not_written():
    with pytest.raises(InvalidInput, match="read here, not written"):
        export("ms-swift", "train", {"model": "llama-3.1-8b", "on": "h100"})


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**40),
    st.floats(allow_nan=True),
    st.sampled_from(["auto", "true", "4", "zero2", "lora", "full", "", "no", "{}", "x y", "fsdp2", "bfloat16"]),
    st.lists(st.sampled_from(["q_proj", "full_shard", "a", ""]), max_size=3),
    st.dictionaries(st.sampled_from(["stage", "version", "NPROC_PER_NODE"]), st.integers(0, 4), max_size=2),
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from([*ms_swift_keys.known(), "no_such_key"]), ODD, max_size=8))
def test_any_config_is_read_or_refused(tree):
    check_reads_or_refuses(yaml.safe_dump({"model": "llama-3.1-8b", **tree}), "config.yaml", "ms-swift")


@every_row("text", ["", "[]", "null", "3", "a: [", "model:\n  a: 1"])
def test_other_shapes_of_yaml_are_refused(text):
    with pytest.raises(InvalidInput):
        read_text(text, "config.yaml", tool="ms-swift")


WORDS = st.sampled_from(
    [f"--{name}" for name in ("model", "tuner_type", "deepspeed", "fsdp", "bf16", "max_length", "x")]
)
VALUES = st.sampled_from(["lora", "full", "1", "0", "-1", "true", "zero3", "fsdp2", "llama-3.1-8b", "a b", "{}", "#x"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(WORDS, VALUES), max_size=10))
def test_any_command_is_read_or_refused(words):
    try:
        found = read_command(shlex.join(["swift", "sft", *words]), model="llama-3.1-8b")
    except TonnageError as error:
        assert "\n" not in str(error)
        return
    assert found.verb == "train"


def test_a_release_that_nobody_knows_is_read_as_the_newest():
    found = read_file("ms_swift/sft.yaml", on="h100", version="99")
    assert (found.document.version, found.question["num_microbatches"]) == ("99", 2)

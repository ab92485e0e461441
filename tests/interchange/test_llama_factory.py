"""LLaMA-Factory's files and commands."""

import pytest
import yaml
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
from tonnage.interchange.formats.trainers import llama_factory
from tonnage.kernel.errors import InvalidInput

BASE = "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\ntemplate: llama3\nbf16: true\n"
# What LLaMA-Factory sets where a file says nothing.
USUAL = {
    "optimizer": "adamw",
    "optimizer_implementation": "fused",
    "recompute": "full",
    "attention": "sdpa",
    "on": "8xh100",
}
DDP = {"runtime": "ddp", "expandable_segments": True}

GOLDEN = [
    (
        "llama3_lora_sft.yaml",
        {
            **USUAL,
            **DDP,
            "model": "meta-llama/Meta-Llama-3-8B-Instruct",
            "method": "lora",
            "lora_rank": 8,
            "lora_targets": "all-linear",
            "precision": "bf16-mixed",
            "sequence_length": 2048,
            "micro_batch_size": 1,
            "num_microbatches": 8,
            "data_loader_workers": 4,
        },
        [],
    ),
    (
        "qwen_full_zero3.yaml",
        {
            **USUAL,
            "model": "Qwen/Qwen2.5-7B",
            "runtime": "deepspeed",
            "zero_stage": 3,
            "offload_optimizer": "cpu",
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
            "sequence_length": 4096,
            "packing": True,
            "micro_batch_size": 1,
            "num_microbatches": 2,
            "attention": "flash",
        },
        [],
    ),
    (
        "llama3_qlora_otfq.yaml",
        {
            **USUAL,
            **DDP,
            "model": "meta-llama/Meta-Llama-3-8B-Instruct",
            "method": "qlora",
            "base_weights": "nf4-double",
            "upcast_base": False,
            "lora_rank": 8,
            "lora_targets": "q_proj,v_proj",
            "lora_dropout": True,
            "precision": "bf16-mixed",
            "sequence_length": 2048,
            "micro_batch_size": 2,
            "num_microbatches": 8,
            "optimizer": "paged-adamw-8bit",
            "optimizer_implementation": None,
            "offload_activations": "cpu",
            "liger": True,
        },
        [],
    ),
    (
        "llama3_lora_dpo.yaml",
        {
            **USUAL,
            **DDP,
            "model": "meta-llama/Meta-Llama-3-8B-Instruct",
            "method": "lora",
            "lora_rank": 8,
            "objective": "dpo",
            "precision": "bf16-mixed",
            "sequence_length": 2048,
            "micro_batch_size": 1,
        },
        [],
    ),
    (
        "galore.yaml",
        {
            **USUAL,
            **DDP,
            "model": "meta-llama/Meta-Llama-3-8B-Instruct",
            "method": "full",
            "precision": "bf16",
            "optimizer": "galore-adamw",
            "optimizer_implementation": None,
            "sequence_length": 2048,
            "micro_batch_size": 1,
            "num_microbatches": 1,
        },
        ["galore_layerwise", "galore_rank", "lora_target_layers"],
    ),
]


@every_row("path, question, unclear", GOLDEN)
def test_a_file_is_read_as_its_question(path, question, unclear):
    found = read_file(f"llama_factory/{path}")
    assert dict(found.question) == {name: value for name, value in question.items() if value is not None}
    assert not_understood(found) == unclear
    assert found.document.tool == "LLaMA-Factory"


def test_its_defaults_are_named_with_their_release():
    found = read_text("model_name_or_path: llama-3.1-8b\ntemplate: x", "c.yaml", tool="llama-factory")
    shown = {key: one.value for key, one in keys_of(found, "assumed").items()}
    # LLaMA-Factory 0.9.5, hparams/*.py; transformers, training_args.py
    defaults = {
        "finetuning_type": "lora",
        "lora_rank": "8",
        "lora_target": "all",
        "cutoff_len": "2048",
        "per_device_train_batch_size": "8",
        "disable_gradient_checkpointing": "false",
    }
    assert {key: shown[key] for key in defaults} == defaults
    assert "0.9.5" in keys_of(found, "assumed")["lora_rank"].why


@every_row(
    "command, expected",
    [
        ("llamafactory-cli train llama_factory/llama3_lora_sft.yaml", {"on": "h100", "runtime": "transformers"}),
        ("llamafactory-cli train llama_factory/llama3_lora_sft.yaml cutoff_len=4096", {"sequence_length": 4096}),
        (
            "FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train llama_factory/llama3_lora_sft.yaml",
            {"on": "2x8xh100", "runtime": "ddp", "expandable_segments": True},
        ),
        ("CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train llama_factory/llama3_lora_sft.yaml", {"on": "2xh100"}),
        (
            (
                "torchrun --nproc_per_node 8 src/train.py --model_name_or_path llama-3.1-8b --stage sft "
                "--finetuning_type full --bf16 true --deepspeed llama_factory/deepspeed/ds_z3_config.json"
            ),
            {"on": "8xh100", "zero_stage": 3, "method": "full", "micro_batch_size": 8},
        ),
        (
            (
                "accelerate launch --config_file llama_factory/accelerate/fsdp_config_offload.yaml src/train.py "
                "llama_factory/llama3_lora_sft.yaml"
            ),
            {"on": "2xh100", "runtime": "fsdp2", "zero_stage": 3, "offload_parameters": "cpu"},
        ),
        (
            (
                "accelerate launch --num_processes 4 --use_deepspeed --zero_stage 3 --offload_param_device cpu "
                "src/train.py llama_factory/llama3_lora_sft.yaml"
            ),
            {"on": "4xh100", "runtime": "deepspeed", "zero_stage": 3, "offload_parameters": "cpu"},
        ),
        (
            "OPTIM_TORCH=0 NPROC_PER_NODE=8 llamafactory-cli train llama_factory/galore.yaml",
            {"expandable_segments": None},
        ),
    ],
)
def test_a_command_says_its_machines(command, expected):
    found = read_command(command, on="h100")
    assert {name: found.question.get(name) for name in expected} == expected


def test_a_published_file_of_deepspeed_is_known_by_its_name():
    text = BASE + "finetuning_type: full\ndeepspeed: examples/deepspeed/ds_z2_offload_config.json"
    question = read_text(text, "c.yaml").question
    assert (question["zero_stage"], question["offload_optimizer"], question["reduce_bucket_size"]) == (
        2,
        "cpu",
        500_000_000,
    )


BATCHES = "finetuning_type: full\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 4\ndeepspeed:\n"


def test_a_config_of_deepspeed_inside_says_the_same_batch_sizes_or_auto():
    found = read_text(f"{BASE}{BATCHES}  train_batch_size: auto\n  zero_optimization: {{stage: 2}}", "c.yaml")
    assert (found.question["micro_batch_size"], found.question["num_microbatches"]) == (2, 4)
    with pytest.raises(InvalidInput, match="per_device_train_batch_size of the training arguments is 2"):
        read_text(f"{BASE}{BATCHES}  train_micro_batch_size_per_gpu: 1\n", "c.yaml")


@every_row(
    "lines, option, value",
    [
        ("deepspeed:\n  zero_optimization: {stage: 3, sub_group_size: 0}", "sub_group_size", 1),
        (
            "deepspeed:\n  bf16: {enabled: true, bf16_master_weights_and_grads: true, bf16_optimizer_states: true}",
            "precision",
            "bf16-master",
        ),
        ("finetuning_type: full\nbf16: false", "precision", "fp32"),
        ("finetuning_type: full\nfp16: true\nbf16: false", "precision", "fp16-mixed"),
        ("finetuning_type: full\npure_bf16: true", "precision", "bf16"),
        ("finetuning_type: freeze\nfreeze_trainable_layers: 4", "trainable_layers", 4),
        ("quantization_bit: 8", "base_weights", "int8"),
        ("quantization_bit: 4\ndouble_quantization: false\nquantization_type: fp4", "base_weights", "fp4"),
        ("use_dora: true", "method", "dora"),
        ("disable_gradient_checkpointing: true", "recompute", "none"),
        ("use_adam_mini: true\nfinetuning_type: full", "optimizer", "adam-mini"),
        ("flash_attn: disabled", "attention", "eager"),
        ("fsdp: full_shard auto_wrap offload", "offload_parameters", "cpu"),
        ("fsdp: true\nfsdp_config:\n  reshard_after_forward: false\n  version: 2", "zero_stage", 2),
        ("lora_target: q_proj,k_proj", "lora_targets", "q_proj,k_proj"),
        ("max_steps: 300", "max_steps", 300),
        ("stage: pt\npacking: true", "sequence_length", 2048),
    ],
)
def test_a_key_decides_an_option(lines, option, value):
    kept = "".join(f"{line}\n" for line in BASE.splitlines() if line.partition(":")[0] not in lines)
    text = f"{kept}finetuning_type: lora\n{lines}" if "finetuning_type" not in lines else kept + lines
    assert read_text(text, "c.yaml").question[option] == value


@every_row(
    "lines, unclear",
    [
        ("shift_attn: true", ["shift_attn"]),
        ("use_badam: true", ["use_badam"]),
        ("upcast_layernorm: true", ["upcast_layernorm"]),
        ("additional_target: embed_tokens", ["additional_target"]),
        ("stage: ppo", ["stage"]),
        ("quantization_bit: 3\nquantization_method: hqq", ["quantization_bit", "quantization_method"]),
        ("optim: adalomo", ["optim"]),
        ("use_unsloth: true", ["use_unsloth"]),
        ("torch_compile: true", ["torch_compile"]),
        ("pure_bf16: true\ndeepspeed: ds_z2_config.json", ["pure_bf16"]),
        ("learning_rate: 1.0e-4\nlogging_steps: 3\nreport_to: none\nval_size: 0.1", []),
    ],
)
def test_what_changes_memory_and_is_not_estimated_makes_it_unsure(lines, unclear):
    kept = "".join(f"{line}\n" for line in BASE.splitlines() if line.partition(":")[0] not in lines)
    assert not_understood(read_text(f"{kept}finetuning_type: lora\n{lines}", "c.yaml")) == unclear


def test_unsloth_is_a_runtime_on_one_accelerator():
    found = read_text(BASE + "finetuning_type: lora\nuse_unsloth: true", "c.yaml", on="h100")
    assert (found.question["runtime"], found.document.is_sure) == ("unsloth", True)


@every_row(
    "lines, message",
    [
        ("finetuning_type: lroa", "lora"),
        ("finetuning_type: full\nquantization_bit: 4", "left out, but with lora"),
        ("finetuning_type: lora\nbf16: true\nfp16: true", "false with bf16"),
        ("finetuning_type: lora\nper_device_train_batch_size: 0", "from 1 on"),
        ("finetuning_type: lora\nstage: sfft", "one of pt, sft"),
        ("finetuning_type: lora\ndeepspeed: nowhere/other.json", "nowhere/other.json"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(lines, message):
    kept = "".join(f"{line}\n" for line in BASE.splitlines() if line.partition(":")[0] not in lines)
    with pytest.raises(InvalidInput) as caught:
        read_text(kept + lines, "c.yaml")
    assert message in str(caught.value)


@every_row(
    "question",
    [
        {"on": "8xh100"},
        {"on": "8xh100", "runtime": "ddp", "method": "lora", "liger": True},
        {"on": "a100", "method": "qlora", "lora_targets": "q_proj,v_proj", "packing": True, "attention": "flash"},
        {"on": "a100", "method": "lora", "base_weights": "fp4", "lora_dropout": True, "recompute": "full"},
        {"on": "8xh100", "runtime": "deepspeed", "zero_stage": 2, "overlap_comm": True, "reduce_bucket_size": "200M"},
        {"on": "8xh100", "runtime": "deepspeed", "zero_stage": 3, "offload_parameters": "cpu", "recompute": "full"},
        {"on": "8xh100", "runtime": "ddp", "method": "freeze", "trainable_layers": 4},
        {"on": "8xh100", "runtime": "ddp", "method": "dora", "objective": "dpo", "max_steps": 10},
        {"on": "8xh100", "zero_stage": 2, "offload_parameters": "cpu", "recompute": "full", "optimizer": "adafactor"},
        {"on": "8xh100", "recompute": "full", "offload_activations": "cpu", "precision": "fp32"},
    ],
)
def test_a_question_survives_writing_and_reading(question):
    check_round_trip("llama-factory", ".yaml", {"model": "llama-3.1-8b", **question})


@every_row(
    "question, message",
    [
        ({"on": "8xh100", "runtime": "megatron"}, "runtime megatron"),
        ({"on": "8xh100", "tensor_parallel_size": 2}, "tensor-parallel-size 2"),
        ({"on": "h100", "method": "lora", "packing": True, "micro_batch_size": 2, "recompute": "full"}, "packs with"),
        ({"on": "8xh100", "loss": "chunked"}, "loss chunked"),
    ],
)
def test_what_llama_factory_cannot_say_is_refused(question, message):
    with pytest.raises(InvalidInput) as caught:
        export("llama-factory", "train", {"model": "llama-3.1-8b", **question})
    assert message in str(caught.value).replace("_", "-").replace("--", "")


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**40),
    st.floats(allow_nan=True),
    st.sampled_from(["auto", "true", "4", "fa2", "lora", "full", "", "no", "{}", "x y", "adamw_torch", "full_shard"]),
    st.lists(st.sampled_from(["q_proj", "full_shard", "a", ""]), max_size=3),
    st.dictionaries(st.sampled_from(["stage", "version", "a", "zero_optimization"]), st.integers(0, 4), max_size=2),
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from([*llama_factory.known(), "no_such_key"]), ODD, max_size=8))
def test_any_config_is_read_or_refused(tree):
    text = yaml.safe_dump({"model_name_or_path": "llama-3.1-8b", **tree})
    check_reads_or_refuses(text, "config.yaml", "llama-factory")


@every_row("text", ["", "[]", "null", "3", "a: [", "model_name_or_path:\n  a: 1"])
def test_other_shapes_of_yaml_are_refused(text):
    with pytest.raises(InvalidInput):
        read_text(text, "config.yaml", tool="llama-factory")

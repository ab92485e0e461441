"""axolotl's files and commands."""

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
from tonnage.interchange.check import recognised
from tonnage.interchange.export import export
from tonnage.interchange.parts.recipes import axolotl_keys
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import text_source
from tonnage.kernel.errors import InvalidInput

BASE = "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 1\nsequence_len: 2048\ndatasets: []\nval_set_size: 0.1\n"

ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"

# What "auto" stands for in a config of DeepSpeed.
FILLED = ("reduce_bucket_size", "stage3_param_persistence_threshold", "stage3_prefetch_bucket_size")
GOLDEN = [
    (
        "llama3_qlora.yml",
        {
            "model": "meta-llama/Llama-3.1-8B",
            "runtime": "ddp",
            "method": "qlora",
            "base_weights": "nf4-double",
            "upcast_base": False,
            "lora_rank": 32,
            "lora_targets": "all-linear",
            "lora_dropout": True,
            "precision": "bf16-mixed",
            "sequence_length": 4096,
            "micro_batch_size": 2,
            "num_microbatches": 4,
            "recompute": "full",
            "attention": "flash",
            "packing": True,
            "optimizer": "paged-adamw",
        },
        ["lora_mlp_kernel"],
        [],
    ),
    (
        "llama3_full_fsdp2.yml",
        {
            "model": "meta-llama/Llama-3.1-8B",
            "runtime": "fsdp2",
            "model_code": "transformers",
            "zero_stage": 3,
            "replicate_size": 2,
            "method": "full",
            "precision": "bf16",
            "sequence_length": 8192,
            "micro_batch_size": 1,
            "num_microbatches": 2,
            "max_steps": 500,
            "recompute": "full",
            "attention": "flash",
            "packing": True,
            "loss": "chunked",
            "optimizer": "adamw",
            "optimizer_implementation": "fused",
        },
        ["fsdp_version"],
        [],
    ),
    (
        "old_fsdp1.yml",
        {
            "model": "NousResearch/Llama-2-7b-hf",
            "runtime": "fsdp2",
            "model_code": "transformers",
            "zero_stage": 3,
            "offload_parameters": "cpu",
            "offload_optimizer": "cpu",
            "method": "full",
            "precision": "bf16-mixed",
            "sequence_length": 4096,
            "micro_batch_size": 4,
            "num_microbatches": 1,
            "recompute": "full",
            "attention": "flash",
            "packing": True,
            "optimizer": "adamw",
            "optimizer_implementation": "foreach",
        },
        ["fsdp_version"],
        [],
    ),
    (
        "qwen_lora_zero3.yml",
        {
            "model": "Qwen/Qwen2.5-7B-Instruct",
            "runtime": "deepspeed",
            "zero_stage": 3,
            "reduce_bucket_size": "auto",
            "overlap_comm": True,
            "contiguous_gradients": True,
            "sub_group_size": 1,
            "stage3_prefetch_bucket_size": "auto",
            "stage3_max_live_parameters": 0,
            "stage3_max_reuse_distance": 0,
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": True,
            "method": "lora",
            "lora_rank": 64,
            "lora_targets": "q_proj,v_proj",
            "precision": "bf16-mixed",
            "sequence_length": 2048,
            "micro_batch_size": 8,
            "num_microbatches": 2,
            "recompute": "full",
            "offload_activations": "cpu",
            "attention": "sdpa",
            "optimizer": "adamw-8bit",
        },
        ["attn_implementation", *(f"deepspeed.zero_optimization.{name}" for name in FILLED), "lora_mlp_kernel"],
        ["liger_rms_norm"],
    ),
    (
        "dpo.yml",
        {
            "model": "Qwen/Qwen2.5-1.5B-Instruct",
            "runtime": "ddp",
            "method": "lora",
            "lora_rank": 16,
            "lora_targets": "all-linear",
            "precision": "bf16-mixed",
            "sequence_length": 1024,
            "micro_batch_size": 4,
            "num_microbatches": 1,
            "recompute": "full",
            "attention": "sdpa",
            "optimizer": "adamw-8bit",
            "objective": "dpo",
        },
        ["gradient_accumulation_steps"],
        ["micro_batch_sizes"],
    ),
]


@every_row("path, question, assumed, unclear", GOLDEN)
def test_a_file_is_read_as_its_question(path, question, assumed, unclear):
    found = read_file(f"axolotl/{path}")
    assert dict(found.question) == {**question, "on": "8xh100"}
    assert sorted(keys_of(found, "assumed")) == assumed
    assert not_understood(found) == unclear
    assert found.document.is_sure == (not unclear)
    assert found.document.tool == "axolotl"


def test_an_old_list_of_fsdp_tells_the_release():
    assert read_file("axolotl/old_fsdp1.yml").document.version == "0.19"
    assert read_file("axolotl/dpo.yml").document.version == "0.21"


def test_a_misspelled_key_gets_the_nearest():
    key = keys_of(read_file("axolotl/dpo.yml"), "not understood")["micro_batch_sizes"]
    assert "did you mean micro_batch_size?" in key.why


@every_row(
    "command, expected",
    [
        ("axolotl train axolotl/dpo.yml", {"micro_batch_size": 4, "on": "h100"}),
        ("axolotl train axolotl/dpo.yml --micro-batch-size 2", {"micro_batch_size": 2}),
        ("axolotl train axolotl/dpo.yml --sequence_len=512 --launcher accelerate", {"sequence_length": 512}),
        ("accelerate launch --num_processes 4 -m axolotl.cli.train axolotl/dpo.yml", {"on": "4xh100"}),
        ("torchrun --nnodes 2 --nproc_per_node=8 -m axolotl.cli.train axolotl/dpo.yml", {"on": "2x8xh100"}),
        ("axolotl train axolotl/dpo.yml --launcher torchrun -- --nproc_per_node=4", {"on": "4xh100"}),
        ("python -m axolotl.cli.train axolotl/dpo.yml", {"on": "h100", "runtime": "transformers"}),
        (
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True axolotl train axolotl/dpo.yml",
            {"expandable_segments": True},
        ),
    ],
)
def test_a_command_names_its_config_and_its_machines(command, expected):
    found = read_command(command, on="h100")
    assert {name: found.question.get(name) for name in expected} == expected


def test_a_command_takes_one_config():
    with pytest.raises(InvalidInput, match="takes one config"):
        read_command("axolotl train")


@every_row(
    "lines, option, value",
    [
        ("bf16: false\nfp16: true", "precision", "fp16"),
        ("bf16: false\nfp16: false\ntf32: false", "precision", "fp32"),
        ("bf16: false\ntf32: true", "precision", "tf32"),
        ("bfloat16: true", "precision", "bf16"),
        ("adapter: lora\nlora_r: 8\nload_in_8bit: true", "base_weights", "int8"),
        ("adapter: lora\nlora_r: 8\npeft_use_dora: true", "method", "dora"),
        ("gradient_checkpointing: offload_disk", "offload_activations", "nvme"),
        ("gradient_checkpointing: true\nactivation_offloading: true", "offload_activations", "cpu"),
        ("batch_size: 8", "num_microbatches", 8),
        ("optimizer: muon", "optimizer", "muon"),
        ("optimizer: ao_adamw_8bit", "optimizer", "adamw-8bit-torchao"),
        ("optimizer: adamw_torch", "optimizer_implementation", "foreach"),
        ("sdp_attention: true", "attention", "sdpa"),
        ("xformers_attention: true", "attention", "efficient"),
        ("deepspeed: deepspeed_configs/zero2.json", "offload_optimizer", "cpu"),
        ("deepspeed: deepspeed_configs/zero1.json", "zero_stage", 1),
        ("fsdp_config:\n  reshard_after_forward: false", "zero_stage", 2),
        ("fsdp_version: 1\nfsdp_config:\n  sharding_strategy: SHARD_GRAD_OP", "zero_stage", 2),
        ("fsdp_version: 1\nfsdp_config:\n  state_dict_type: FULL_STATE_DICT", "precision", "bf16-mixed"),
        ("fsdp_version: 2\nfsdp_config:\n  offload_params: true", "offload_optimizer", "cpu"),
        ("tensor_parallel_size: 2\nfsdp_config:\n  reshard_after_forward: true", "sequence_parallel", False),
        ("sequence_parallel_degree: 2\nfsdp_config:\n  reshard_after_forward: true", "context_parallel_size", 2),
        ("rl: grpo\ntrl:\n  use_vllm: true\n  vllm_mode: colocate", "engine_memory_share", 0.3),
    ],
)
def test_a_key_decides_an_option(lines, option, value):
    assert read_text(BASE + lines, "config.yml").question[option] == value


LIGER = "liger_rope: true\nliger_rms_norm: true\nliger_glu_activation: true\nliger_fused_linear_cross_entropy: true\n"


@every_row(
    "lines, unclear, expected",
    [
        (LIGER, [], {"liger": True}),
        ("cut_cross_entropy: true", ["cut_cross_entropy"], {"loss": None}),
        ("cut_cross_entropy: true\nfsdp_config:\n  reshard_after_forward: true", [], {"loss": "chunked"}),
        ("chunked_cross_entropy: true", ["chunked_cross_entropy"], {}),
        ("plugins: [axolotl.integrations.kd.KDPlugin]", ["plugins"], {}),
        ("lora_modules_to_save: [embed_tokens]", ["lora_modules_to_save"], {}),
        ("selective_checkpointing: true\ngradient_checkpointing: true", ["selective_checkpointing"], {}),
        ("optimizer: dion", ["optimizer"], {}),
        ("rl: kto", ["rl"], {}),
        ("torch_compile: true", ["torch_compile"], {}),
        ("context_parallel_size: 2", ["context_parallel_size"], {"context_parallel_size": None}),
        ("qat:\n  weight_dtype: int8", ["qat.weight_dtype"], {}),
        ("learning_rate: 0.1\nseed: 3\nwandb_project: x\nspecial_tokens:\n  pad_token: x", [], {}),
        ("eval_batch_size: 32", ["eval_batch_size"], {}),
    ],
)
def test_what_changes_memory_and_is_not_estimated_makes_it_unsure(lines, unclear, expected):
    found = read_text(BASE + lines, "config.yml")
    assert not_understood(found) == unclear
    assert {name: found.question.get(name) for name in expected} == expected


@every_row(
    "lines, message",
    [
        ("load_in_4bit: true", "false without an adapter"),
        ("sequence_len: long", "sequence_len must be a number"),
        ("micro_batch_size: 0", "from 1 on"),
        ("optimizer: adamw_toch", "adamw_torch"),
        ("deepspeed: missing.json", "missing.json"),
        ("dp_shard_size: 3\nfsdp_config:\n  offload_params: false", "multiply to 3, of 8 accelerators"),
        ("batch_size: 3\nmicro_batch_size: 2", "multiple of micro_batch_size 2"),
        ("fsdp: {full_shard: 1}\n", "must be a list"),
        ("lora_target_modules: {a: 1}\nadapter: lora", "list of names"),
        ("gradient_checkpointing: sometimes", "true or false"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(lines, message):
    taken = BASE.replace("sequence_len: 2048\n", "") if "sequence_len" in lines else BASE
    taken = taken.replace("micro_batch_size: 1\n", "") if "micro_batch_size" in lines else taken
    try:
        found = read_text(taken + lines, "config.yml")
    except InvalidInput as error:
        assert message in str(error)
    else:
        assert any(message in key.why or key.status == "not understood" for key in found.document.keys)


@every_row(
    "question",
    [
        {"on": "8xh100"},
        {"on": "h100", "method": "qlora", "lora_rank": 32, "packing": True, "sequence_length": 2048},
        {"on": "8xh100", "runtime": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu", "recompute": "full"},
        {
            "on": "2x8xh100",
            "replicate_size": 2,
            "recompute": "full",
            "micro_batch_size": 2,
            "loss": "chunked",
            "tensor_parallel_size": 2,
            "attention": "flash",
        },
        {"on": "8xa100", "runtime": "ddp", "method": "lora", "objective": "dpo", "lora_targets": "q_proj,v_proj"},
        {"on": "a100", "method": "lora", "liger": True, "optimizer": "paged-adamw-8bit", "global_batch_size": 16},
        {"on": "8xh100", "method": "dora", "base_weights": "int8", "offload_activations": "cpu", "recompute": "full"},
        {"on": "8xh100", "zero_stage": 2, "offload_parameters": "cpu", "max_steps": 100, "data_loader_workers": 4},
        {"on": "8xh100", "runtime": "ddp", "precision": "fp32", "optimizer": "adafactor", "expandable_segments": True},
    ],
)
def test_a_question_survives_writing_and_reading(question):
    check_round_trip("axolotl", ".yml", {"model": "llama-3.1-8b", **question})


@every_row(
    "question, message",
    [
        ({"on": "8xh100", "runtime": "megatron"}, "runtime megatron"),
        ({"on": "8xh100", "runtime": "ddp", "precision": "bf16-mixed"}, "precision bf16-mixed"),
        ({"on": "8xh100", "recompute": "selective"}, "recompute selective"),
        ({"on": "8xh100", "method": "freeze"}, "method freeze"),
        ({"on": "h100", "method": "qlora", "base_weights": "fp4"}, "base_weights fp4"),
    ],
)
def test_what_axolotl_cannot_say_is_refused(question, message):
    with pytest.raises(InvalidInput) as caught:
        export("axolotl", "train", {"model": "llama-3.1-8b", **question})
    assert message in str(caught.value).replace("--", "").replace("-weights", "_weights")


def test_the_text_is_axolotls_own():
    text = export("axolotl", "train", {"model": "llama-3.1-8b", "on": "8xh100", "method": "qlora"}).text
    config = yaml.safe_load(text)
    assert (config["adapter"], config["load_in_4bit"], config["base_model"]) == (
        "qlora",
        True,
        "meta-llama/Llama-3.1-8B",
    )
    assert text.startswith("# tonnage: train --on 8xh100")


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**40),
    st.floats(allow_nan=True),
    st.sampled_from(["auto", "true", "4", "flash_attention_2", "lora", "cpu", "", "no", "{}", "x y", "adamw_8bit"]),
    st.lists(st.sampled_from(["q_proj", "full_shard", "a", ""]), max_size=3),
    st.dictionaries(st.sampled_from(["stage", "beta", "a", "zero_optimization"]), st.integers(0, 4), max_size=2),
)


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(st.sampled_from([*axolotl_keys.known(), "no_such_key", "deepspeed"]), ODD, max_size=8))
def test_any_config_is_read_or_refused(tree):
    check_reads_or_refuses(yaml.safe_dump({"base_model": "llama-3.1-8b", **tree}), "config.yml", "axolotl")


@every_row("text", ["", "[]", "- a\n- b", "null", "3", "a: [", "base_model:\n  a: 1"])
def test_other_shapes_of_yaml_are_refused(text):
    with pytest.raises(InvalidInput):
        read_text(text, "config.yml", tool="axolotl")


def test_every_key_is_known_once_and_no_key_is_in_two_classes():
    for key in axolotl_keys.OTHERS:
        assert key not in axolotl_keys.IGNORED


def test_its_files_are_not_taken_for_others():
    for path in ("dpo.yml", "old_fsdp1.yml"):
        assert read_file(f"axolotl/{path}").document.tool == "axolotl"
    assert recognised(text_source(BASE, "x.yml"), Asker()).name == "axolotl"


# axolotl 0.21.0, utils/schemas/{config,training,peft}.py
DEFAULTS = {
    "sequence_len": 512,
    "gradient_accumulation_steps": 1,
    "micro_batch_size": 1,
    "optimizer": "adamw_torch_fused",
    "bf16": "auto",
}


def test_defaults_are_those_of_the_package():
    found = read_text("base_model: llama-3.1-8b\ndatasets: []", "config.yml", tool="axolotl")
    shown = keys_of(found, "assumed")
    assert {key: shown[key].value for key in DEFAULTS} == {key: str(value) for key, value in DEFAULTS.items()}
    assert all("0.21" in shown[key].why for key in DEFAULTS)


def test_a_release_that_nobody_knows_is_read_as_the_newest():
    found = read_file("axolotl/dpo.yml", version="99")
    assert (found.document.version, found.question["method"]) == ("99", "lora")

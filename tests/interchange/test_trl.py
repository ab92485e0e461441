"""TRL's commands, scripts and configs, read as questions."""

import pytest
from hf_cases import FILES, ODD, is_answered_or_refused, keys, of_command, of_file, of_text, why
from hypothesis import given, settings
from hypothesis import strategies as st

from every_row import every_row
from tonnage.interchange.check import answered, recognised
from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.hugging_face.trl_settings import trainer_of
from tonnage.interchange.source import command_source, file_source
from tonnage.kernel.errors import InvalidInput

KNOWN = sorted(format_of("trl").known())
BASE = {"model_name_or_path": "Qwen/Qwen2.5-7B", "per_device_train_batch_size": 2, "dtype": "bfloat16"}
LORA = {**BASE, "use_peft": True}


# ---- Files.


def test_the_command_for_adapters_under_zero_3():
    found = of_file("trl", "sft_lora.sh")
    assert found.question == {
        "model": "Qwen/Qwen2.5-7B",
        "on": "8xh100",
        "runtime": "deepspeed",
        "zero_stage": 3,
        "stage3_gather_16bit_weights_on_model_save": True,
        "objective": "sft",
        "method": "lora",
        "lora_rank": 32,
        "lora_dropout": True,
        "lora_targets": "q_proj,v_proj",
        "micro_batch_size": 2,
        "num_microbatches": 8,
        "precision": "bf16-mixed",
        "sequence_length": 1024,
        "packing": True,
        "recompute": "full",
        "optimizer": "adamw",
    }
    assert keys(found, "assumed") == {
        "lora_dropout": "0.05",
        "lora_target_modules": "q_proj,v_proj",
        "bf16": "true",
        "max_length": "1024",
        "gradient_checkpointing": "true",
        "optim": "adamw_torch_fused",
    }
    assert found.document.is_sure


def test_a_config_of_full_training_loads_fp32():
    found = of_file("trl", "sft_full.yaml")
    assert (found.question["precision"], found.question["sequence_length"]) == ("bf16-mixed", 4096)
    assert found.question["attention"] == "flash"
    assert keys(found, "assumed")["dtype"] == "float32"
    assert found.document.is_sure


def test_a_script_under_accelerate_has_the_defaults_of_trl():
    found = of_file("trl", "dpo_qlora.sh")
    assert (found.question["objective"], found.question["runtime"], found.question["on"]) == ("dpo", "ddp", "4xh100")
    assert (found.question["method"], found.question["base_weights"]) == ("qlora", "nf4-double")
    assert found.question["lora_targets"] == "q_proj,k_proj,v_proj,o_proj"
    assert found.question["dropout"] is False
    assert found.question["recompute"] == "full"
    assert found.document.is_sure


def test_a_config_of_grpo_has_an_engine_beside():
    found = of_file("trl", "grpo.yaml", on="8xh100")
    assert found.question["objective"] == "grpo"
    assert found.question["engine_memory_share"] == 0.4
    assert found.question["sequence_length"] == 1536
    assert (found.question["precision"], found.question["runtime"]) == ("bf16", "ddp")
    assert found.document.is_sure


def test_a_recipe_with_names_that_transformers_4_had():
    found = of_file("trl", "dpo_handbook.yaml", on="8xh100")
    assert found.question == {
        "model": "alignment-handbook/zephyr-7b-sft-full",
        "on": "8xh100",
        "runtime": "ddp",
        "objective": "dpo",
        "micro_batch_size": 8,
        "num_microbatches": 2,
        "precision": "bf16-mixed",
        "sequence_length": 1024,
        "dropout": False,
        "recompute": "full",
        "optimizer": "adamw",
        "optimizer_implementation": "foreach",
    }
    assert found.document.is_sure


def test_a_script_on_one_accelerator():
    found = of_file("trl", "qlora_single.sh")
    assert (found.question["method"], found.question["base_weights"]) == ("qlora", "nf4")
    assert (found.question["runtime"], found.question["recompute"]) == ("transformers", "none")
    assert found.question["lora_targets"] == "all-linear"


@every_row(
    "name, tool",
    [
        ("sft_lora.sh", "trl"),
        ("sft_full.yaml", "trl"),
        ("grpo.yaml", "trl"),
        ("dpo_handbook.yaml", "trl"),
        ("qlora_single.sh", "trl"),
        ("dpo_qlora.sh", "accelerate"),
    ],
)
def test_its_files_are_recognised(name, tool):
    assert recognised(file_source(str(FILES / "trl" / name))).name == tool


@every_row(
    "command, tool",
    [
        ("trl sft --model_name_or_path x", "trl"),
        ("python -m trl dpo --model_name_or_path x", "trl"),
        ("torchrun --nproc_per_node 8 trl/scripts/grpo.py --model_name_or_path x", "trl"),
        ("python examples/scripts/sft.py --model_name_or_path x", "trl"),
    ],
)
def test_its_commands_are_recognised(command, tool):
    assert recognised(command_source([command])).name == tool


# ---- What each setting decides.


@every_row(
    "values, option, value",
    [
        (BASE, "recompute", "full"),
        (BASE, "sequence_length", 1024),
        (BASE, "precision", "bf16"),
        ({**BASE, "dtype": None}, "precision", "bf16-mixed"),
        ({**BASE, "fp16": True, "dtype": "float32"}, "precision", "fp16-mixed"),
        ({**BASE, "bf16": False, "dtype": "float32"}, "precision", "fp32"),
        ({**BASE, "max_seq_length": 2048}, "sequence_length", 2048),
        ({**BASE, "activation_offloading": True}, "offload_activations", "cpu"),
        ({**BASE, "packing": True, "packing_strategy": "wrapped"}, "packing", False),
        ({**BASE, "model_init_kwargs": {"attn_implementation": "eager"}}, "attention", "eager"),
        (LORA, "lora_rank", 16),
        (LORA, "lora_targets", "q_proj,v_proj"),
        ({**LORA, "model_name_or_path": "tiiuae/falcon-7b"}, "lora_targets", "query_key_value"),
        (LORA, "precision", "bf16-mixed"),
        ({**LORA, "lora_dropout": 0}, "lora_dropout", False),
        ({**LORA, "use_dora": True}, "method", "dora"),
        ({**LORA, "load_in_8bit": True}, "base_weights", "int8"),
        ({**LORA, "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}, "base_weights", "fp4"),
        ({**LORA, "lora_target_modules": "q_proj k_proj"}, "lora_targets", "q_proj,k_proj"),
        ({**BASE, "trainer": "dpo"}, "objective", "dpo"),
        ({**BASE, "num_generations": 8, "use_vllm": True}, "engine_memory_share", 0.3),
        ({**BASE, "num_generations": 8, "max_completion_length": 256}, "sequence_length", 768),
        ({**BASE, "num_generations": 4, "max_completion_length": 256}, "num_generations", 4),
        ({**BASE, "num_generations": 8, "max_completion_length": 256}, "max_completion_length", 256),
        ({**BASE, "num_generations": 8, "num_iterations": 2}, "ppo_epochs", 2),
        ({**BASE, "num_generations": 8, "generation_batch_size": 64}, "prompts_per_step", 8),
        ({**BASE, "num_generations": 8}, "rollout_engine", "hf"),
        ({**BASE, "trainer": "grpo", "beta": 0.04}, "beta", 0.04),
        (
            {**BASE, "trainer": "grpo", "use_vllm": True, "vllm_enable_sleep_mode": True},
            "rollout_memory_share",
            0.3,
        ),
        (
            {**BASE, "trainer": "grpo", "use_vllm": True, "vllm_tensor_parallel_size": 2},
            "rollout_tensor_parallel_size",
            2,
        ),
        ({**BASE, "teacher_model_name_or_path": "Qwen/Qwen2.5-14B"}, "teacher", "Qwen/Qwen2.5-14B"),
    ],
)
def test_a_setting_decides_its_option(values, option, value):
    assert of_text("trl", values, model="").question[option] == value


# Defaults of TRL 1.16: trl/trainer/{base_config,model_config,sft_config,dpo_config,grpo_config}.py.
FACTS = [
    ("sft", "bf16", "true"),
    ("sft", "gradient_checkpointing", "true"),
    ("sft", "max_length", "1024"),
    ("sft", "lora_r", "16"),
    ("sft", "lora_dropout", "0.05"),
    ("dpo", "max_length", "1024"),
    ("dpo", "disable_dropout", "true"),
    ("grpo", "max_completion_length", "512"),
    ("grpo", "vllm_gpu_memory_utilization", "0.3"),
]


@every_row("trainer, key, value", FACTS)
def test_a_default_is_assumed_with_the_release_that_it_is_of(trainer, key, value):
    found = of_text("trl", {**LORA, "trainer": trainer, "use_vllm": trainer == "grpo"}, model="")
    assert keys(found, "assumed")[key] == value
    assert why(found, key) == "default of TRL 1.16"


@every_row(
    "values, key",
    [
        ({**LORA, "load_in_4bit": True, "dtype": None}, "dtype"),
        ({**LORA, "lora_target_parameters": ["experts"]}, "lora_target_parameters"),
        ({**BASE, "load_in_4bit": True}, "load_in_4bit"),
        ({**BASE, "trainer": "dpo", "precompute_ref_log_probs": True}, "precompute_ref_log_probs"),
        ({**BASE, "trainer": "dpo", "sync_ref_model": True}, "sync_ref_model"),
        ({**BASE, "trainer": "grpo", "entropy_coef": 0.1}, "entropy_coef"),
        ({**BASE, "trainer": "kto"}, "trainer"),
        ({**BASE, "max_length": None, "trainer": "sft"}, "max_length"),
        ({**BASE, "packin": True}, "packin"),
    ],
)
def test_what_is_not_estimated_makes_the_answer_unsure(values, key):
    found = of_text("trl", values, model="")
    assert list(keys(found, "not understood")) == [key]


# TRL 1.16, trl/trainer/utils.py: create_model_from_path takes float32 where model_init_kwargs names no dtype, whatever
# transformers 5 does by itself, and trl/trainer/model_config.py has the same default.


def test_the_base_below_adapters_is_in_float32_by_default_and_is_estimated_so():
    found = of_text("trl", {**LORA, "dtype": None}, model="", on="h100")
    assert (found.question["base_weights"], found.question["precision"]) == ("fp32", "bf16-mixed")
    assert found.document.is_sure
    assert keys(found, "assumed")["dtype"] == "float32"
    assert why(found, "dtype") == "default of TRL 1.16"


def test_a_base_in_float32_holds_two_bytes_a_parameter_more_than_one_in_16_bits():
    wide, narrow = (of_text("trl", {**LORA, "dtype": dtype}, model="", on="h100") for dtype in ("float32", "bfloat16"))
    assert wide.document.is_sure
    assert "base_weights" not in narrow.question
    held = [base_of(answered(found, {"as_is": True}).memory) for found in (wide, narrow)]
    assert held[0] - held[1] == 2 * 7_615_616_512  # parameters of Qwen2.5-7B, without adapters


def base_of(memory):
    return next(term.value for _, term in memory.walk() if term.name == "base weights")


def test_a_quantised_base_keeps_its_other_weights_as_they_were_loaded():
    found = of_text("trl", {**LORA, "load_in_4bit": True}, model="", on="h100")
    assert found.question["upcast_base"] is False


def test_deepspeed_casts_the_base_whatever_its_dtype():
    found = of_text("trl", {**LORA, "dtype": None, "deepspeed": {"zero_optimization": {"stage": 2}}}, model="")
    assert "base_weights" not in found.question


@every_row("script", ["orpo.py", "cpo.py", "online_dpo.py"])
def test_a_trainer_that_is_estimated_as_another_is_not_sure(script):
    words = f"accelerate launch examples/scripts/{script} --model_name_or_path Qwen/Qwen2.5-7B --dtype bfloat16"
    found = of_command(
        f"{words} --max_length 1024 --per_device_train_batch_size 1 --dataset_train_split train", "8xh100"
    )
    assert found.question["objective"] == "dpo"
    assert list(keys(found, "not understood")) == ["trainer"]


@every_row(
    "values, trainer",
    [
        ({"num_generations": 4}, "grpo"),
        ({"precompute_ref_log_probs": True, "max_prompt_length": 3}, "dpo"),
        ({"max_length": 3}, "sft"),
        ({}, "sft"),
    ],
)
def test_the_trainer_is_known_by_its_settings(values, trainer):
    assert trainer_of(values, "config.yaml") == trainer
    assert trainer_of(values, "config_dpo.yaml") == "dpo"


def test_a_command_is_stronger_than_its_config(tmp_path):
    config = "model_name_or_path: Qwen/Qwen2.5-7B\nmax_length: 4096\nbf16: true\nnum_processes: 4\n"
    config += "env:\n  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True\n  HF_HOME: /data\n"
    (tmp_path / "sft.yaml").write_text(config)
    found = of_command("trl sft --config sft.yaml --max_length 2048 --dtype bfloat16", folder=tmp_path)
    assert found.question["sequence_length"] == 2048
    assert found.question["model"] == "Qwen/Qwen2.5-7B"
    assert found.question["on"] == "4xh100"
    assert found.question["expandable_segments"] is True
    assert found.document.is_sure


@every_row(
    "name, runtime, stage",
    [
        ("single_gpu", "transformers", None),
        ("multi_gpu", "ddp", None),
        ("zero1", "deepspeed", 1),
        ("zero2", "deepspeed", 2),
        ("zero3", "deepspeed", 3),
        ("fsdp1", "fsdp2", 3),
        ("fsdp2", "fsdp2", 3),
    ],
)
def test_the_configs_of_accelerate_that_trl_has(name, runtime, stage):
    found = of_command(f"trl sft --model_name_or_path Qwen/Qwen2.5-7B --dtype bfloat16 --accelerate_config {name}")
    assert (found.question["runtime"], found.question.get("zero_stage")) == (runtime, stage)
    assert found.question["on"] == ("1xh100" if name == "single_gpu" else "8xh100")
    assert found.document.is_sure


def test_zero1_has_one_micro_batch_a_step():
    with pytest.raises(InvalidInput, match="gradient_accumulation_steps is 1, and gradient_accumulation_steps"):
        of_command("trl sft --model_name_or_path x --accelerate_config zero1 --gradient_accumulation_steps 4")


def test_a_file_that_cannot_be_read_makes_the_answer_unsure():
    found = of_command("trl sft --config nowhere.yaml --model_name_or_path Qwen/Qwen2.5-7B")
    assert "cannot be read here" in why(found, "config")


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(KNOWN), ODD, max_size=6))
def test_any_values_are_answered_or_refused(values):
    is_answered_or_refused("trl", values)


WORDS = [*(f"--{name}" for name in KNOWN), "--", "1", "x", "=", "--=", "-1", "true", "{"]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=8))
def test_any_command_is_answered_or_refused(words):
    from tonnage.kernel.errors import TonnageError

    for program in ("trl sft", "accelerate launch --num_processes 2 train.py", "torchrun run_clm.py", "deepspeed t.py"):
        try:
            of_command(" ".join([program, *words]), on="8xh100", model="llama-3.1-8b")
        except TonnageError as error:
            assert str(error)

"""What is written for runs that train adapters is TRL's command; where nobody wrote one down, it is said, and no
other run is started.
"""

import pytest

from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.models import read
from tonnage.search.training.launch.settings import launch_lacks, launch_program, launch_settings

# TRL 1.16, trl/trainer/{model_config,sft_config,dpo_config}.py; transformers 5.23, training_args.py; accelerate 1.15,
# commands/launch.py
KNOWN = {
    "--model_name_or_path",
    "--dtype",
    "--attn_implementation",
    "--use_peft",
    "--lora_r",
    "--lora_target_modules",
    "--lora_dropout",
    "--use_dora",
    "--load_in_8bit",
    "--load_in_4bit",
    "--bnb_4bit_quant_type",
    "--use_bnb_nested_quant",
    "--bnb_4bit_quant_storage",
    "--max_length",
    "--packing",
    "--gradient_checkpointing",
    "--use_liger_kernel",
    "--dataset_name",
    "--per_device_train_batch_size",
    "--gradient_accumulation_steps",
    "--output_dir",
    "--accelerate_config",
    "--num_processes",
    "--zero_stage",
    "--fsdp_reshard_after_forward",
    "--fsdp_offload_params",
    "--offload_optimizer_device",
    "--offload_param_device",
}
LOSS = "loss full (TRL takes it in parts, with less memory)"


def started(on="8xh100", **options):
    model = read("llama-3.1-8b")
    plan = training_plan(model, cluster(on), TrainingOptions(**options), Question())
    return launch_settings(model, plan), launch_lacks(model, plan), launch_program(plan)


@pytest.mark.parametrize(
    ("options", "words", "not_said"),
    [
        (
            {"method": "lora", "lora_rank": 8},
            [
                "--accelerate_config fsdp2",
                "--num_processes 8",
                "--use_peft",
                "--lora_r 8",
                "--lora_target_modules all-linear",
                "--lora_dropout 0.0",
                "--dtype bfloat16",
                "--gradient_checkpointing false",
            ],
            [LOSS],
        ),
        (
            {"method": "lora", "lora_dropout": True, "recompute": "full", "on": "h100"},
            ["--accelerate_config single_gpu", "--gradient_checkpointing true"],
            [LOSS],
        ),
        (
            {"method": "lora", "zero_stage": 2, "offload_parameters": "cpu"},
            ["--fsdp_reshard_after_forward false", "--fsdp_offload_params true"],
            [LOSS],
        ),
        (
            {"method": "qlora"},
            [
                "--load_in_4bit",
                "--bnb_4bit_quant_type nf4",
                "--use_bnb_nested_quant",
                "--bnb_4bit_quant_storage bfloat16",
            ],
            [LOSS],
        ),
        (
            {"method": "lora", "base_weights": "int8", "runtime": "ddp", "liger": True},
            ["--accelerate_config multi_gpu", "--load_in_8bit", "--use_liger_kernel"],
            [LOSS],
        ),
        (
            {"method": "dora", "lora_targets": "q_proj,v_proj", "packing": True},
            ["--use_dora", "--lora_target_modules q_proj v_proj", "--packing"],
            [LOSS],
        ),
        (
            {
                "method": "lora",
                "runtime": "deepspeed",
                "zero_stage": 1,
                "offload_optimizer": "cpu",
                "num_microbatches": 4,
            },
            [
                "--accelerate_config zero2",
                "--zero_stage 1",
                "--offload_optimizer_device cpu",
                "--gradient_accumulation_steps 4",
            ],
            [LOSS],
        ),
        (
            {"method": "lora", "runtime": "deepspeed", "zero_stage": 3, "offload_parameters": "cpu"},
            ["--accelerate_config zero3", "--offload_param_device cpu"],
            [LOSS],
        ),
        ({"method": "lora", "objective": "dpo", "attention": "eager"}, ["trl dpo", "--attn_implementation eager"], []),
        ({"method": "lora", "optimizer": "adamw-8bit"}, ["trl sft"], [LOSS, "optimizer adamw-8bit"]),
    ],
    ids=str,
)
def test_adapters_are_trained_by_a_command_of_trl(options, words, not_said):
    settings, lacks, program = started(**options)
    assert set(words) <= set(settings) and lacks == not_said
    assert settings[0].startswith("trl ") and {each.split()[0] for each in settings[1:]} <= KNOWN
    assert ("--lora_dropout 0.0" in settings) is not options.get("lora_dropout", False)
    assert program.startswith("a command of TRL")


def test_of_a_config_alone_the_path_of_the_checkpoint_is_left_to_be_put_in():
    config = {name: value for name, value in read("llama-3.1-8b").config.items() if name != "_name_or_path"}
    model = read(config)
    plan = training_plan(model, cluster("h100"), TrainingOptions(method="lora"), Question())
    assert "--model_name_or_path MODEL" in launch_settings(model, plan)
    assert launch_lacks(model, plan) == ["the path of the checkpoint where MODEL stands", LOSS]
    assert not any("MODEL" in each for each in started(method="lora")[1])


@pytest.mark.parametrize(
    ("options", "not_said"),
    [
        ({"method": "freeze"}, "how fsdp2 is started for method freeze"),
        ({"objective": "grpo", "method": "lora"}, "how fsdp2 is started for method lora and objective grpo"),
        ({"method": "lora", "tensor_parallel_size": 2}, "how fsdp2 is started for method lora"),
        ({"model_code": "transformers"}, "how fsdp2 is started for model_code transformers"),
        ({"method": "lora", "runtime": "torchtune"}, "how torchtune is started"),
        ({"runtime": "deepspeed"}, "how deepspeed is started"),
    ],
    ids=str,
)
def test_no_settings_are_given_that_would_start_a_run_of_another_kind(options, not_said):
    assert started(**options) == ([], [not_said], "")


def test_a_name_that_a_shell_would_take_apart_is_quoted():
    from tonnage.search.training.launch.trl import trl_command

    model = read({**read("llama-3.1-8b").config, "_name_or_path": "my models/llama; true"})
    plan = training_plan(model, cluster("h100"), TrainingOptions(method="lora"), Question())
    assert "--model_name_or_path 'my models/llama; true'" in trl_command(model, plan)

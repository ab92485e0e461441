"""TrainingArguments of transformers, as files and as commands, read as questions."""

import json

import pytest
from hf_cases import FILES, ODD, is_answered_or_refused, keys, of_command, of_file, of_text, why
from hypothesis import given, settings
from hypothesis import strategies as st
from published_cases import record

from every_row import every_row
from tonnage.interchange.check import recognised
from tonnage.interchange.formats import format_of
from tonnage.interchange.formats.trainers.transformers import recognises
from tonnage.interchange.parts.hugging_face.trainer_names import OPTIMIZERS, OTHER_OPTIMIZERS
from tonnage.interchange.source import command_source, file_source, text_source
from tonnage.kernel.errors import InvalidInput

KNOWN = sorted({*format_of("transformers").known(), "fsdp", "deepspeed"})
BASE = {"per_device_train_batch_size": 2, "bf16": True}


# ---- Files.


def test_a_file_of_training_arguments():
    found = of_file("transformers", "arguments.json")
    assert found.question == {
        "model": "meta-llama/Llama-3.1-8B",
        "on": "h100",
        "runtime": "transformers",
        "micro_batch_size": 1,
        "num_microbatches": 8,
        "precision": "bf16-mixed",
        "recompute": "full",
        "optimizer": "adamw-8bit",
        "data_loader_workers": 4,
    }
    assert keys(found, "assumed") == {"dtype": "float32"}
    assert found.document.is_sure


def test_names_that_4_had_are_read_with_its_defaults():
    found = of_file("transformers", "fsdp.yaml", on="8xh100")
    assert found.document.version == "4.57"
    assert (found.question["runtime"], found.question["zero_stage"]) == ("fsdp2", 3)
    assert (found.question["offload_parameters"], found.question["offload_optimizer"]) == ("cpu", "cpu")
    assert keys(found, "assumed")["fsdp_config.version"] == "1"
    assert found.question["max_steps"] == 1000
    assert found.document.is_sure


def test_an_example_script_loads_weights_as_they_are():
    found = of_file("transformers", "run_clm.sh")
    assert found.question == {
        "model": "Qwen/Qwen2.5-1.5B",
        "on": "2x8xh100",
        "runtime": "ddp",
        "micro_batch_size": 4,
        "num_microbatches": 1,
        "precision": "bf16",
        "sequence_length": 1024,
        "recompute": "none",
        "optimizer": "adamw",
        "liger": True,
    }
    assert keys(found, "assumed")["dtype"] == "auto"
    assert found.document.is_sure


def test_python_on_one_accelerator():
    found = of_file("transformers", "single.sh")
    assert (found.question["runtime"], found.question["on"]) == ("transformers", "1xh100")
    assert found.question["sequence_length"] == 2048
    assert found.document.is_sure


def test_python_alone_on_several_accelerators_is_not_sure():
    found = of_command("python train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2", "8xh100")
    assert found.question["runtime"] == "ddp"
    assert "python alone starts one process" in why(found, "program")


def test_a_deepspeed_config_inside():
    found = of_file("transformers", "with_deepspeed.json", on="8xh100")
    assert (found.question["runtime"], found.question["zero_stage"]) == ("deepspeed", 2)
    assert found.question["offload_optimizer"] == "cpu"
    assert (found.question["micro_batch_size"], found.question["num_microbatches"]) == (4, 2)
    assert found.question["precision"] == "bf16-mixed"
    assert keys(found, "not understood") == {"eval_strategy": "steps"}


@every_row("name", sorted(path.name for path in (FILES / "transformers").iterdir()), at_least=5)
def test_its_files_are_recognised(name):
    assert recognised(file_source(str(FILES / "transformers" / name))).name == "transformers"


@every_row(
    "text, name",
    [
        ({"model_name_or_path": "x", "finetuning_type": "lora", "per_device_train_batch_size": 1}, "LLaMA-Factory's"),
        ({"base_model": "x", "micro_batch_size": 1, "gradient_accumulation_steps": 2, "optim": "x"}, "Axolotl's"),
        ({"optim": "adamw"}, "anybody's"),
    ],
)
def test_files_of_others_are_not_its_own(text, name):
    assert not recognises(text_source(json.dumps(text), "config.json"))


@every_row(
    "command, signs",
    [
        ("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --micro-batch-size 1", 0),
        ("torchrun train.py --per_device_train_batch_size 2 --save_total_limit 1", 2),
        ("python -m torch.distributed.run --nproc_per_node=8 run_clm.py --bf16", 10),
        ("python setup.py install", 0),
        ("uv run torchrun run_clm.py", 10),
    ],
)
def test_commands_are_known_by_their_script_and_options(command, signs):
    assert recognises(command_source([command])) == signs


HUGGING_FACE = ("accelerate", "deepspeed", "transformers", "trl")
EVERY_FILE = [(tool, path.name) for tool in HUGGING_FACE for path in sorted((FILES / tool).iterdir())]


@every_row("tool, name", EVERY_FILE, at_least=26)
def test_every_option_has_the_keys_that_decide_it(tool, name):
    found = of_file(tool, name, "llama-3.1-8b", "2x8xh100" if name == "mesh.yaml" else "8xh100")
    assert set(found.question) - {"model", "on"} <= set(found.origins)
    there = {key.key for key in found.document.keys}
    assert {key for keys_of_option in found.origins.values() for key in keys_of_option} <= there


# ---- What each argument decides.


@every_row(
    "values, option, value",
    [
        ({"gradient_checkpointing": True}, "recompute", "full"),
        ({"activation_checkpointing": True}, "recompute", "full"),
        ({"optim": "adamw_torch"}, "optimizer_implementation", "foreach"),
        ({"optim": "adamw_bnb_8bit"}, "optimizer", "adamw-8bit"),
        ({"optim": "paged_adamw_8bit"}, "optimizer", "paged-adamw-8bit"),
        ({"optim": "adafactor"}, "optimizer", "adafactor"),
        ({"adafactor": True}, "optimizer", "adafactor"),
        ({"use_liger_kernel": True}, "liger", True),
        ({"max_steps": 100}, "max_steps", 100),
        ({"bf16": False, "fp16": True}, "precision", "fp16-mixed"),
        ({"bf16": False}, "precision", "fp32"),
        ({"bf16": False, "tf32": True}, "precision", "tf32"),
        ({"dtype": "bfloat16"}, "precision", "bf16"),
        ({"torch_dtype": "float32"}, "precision", "bf16-mixed"),
        ({"dtype": "bfloat16", "fsdp": True}, "precision", "bf16-mixed"),
        ({"fsdp": True}, "zero_stage", 3),
        ({"fsdp": "shard_grad_op auto_wrap"}, "zero_stage", 2),
        ({"fsdp": "shard_grad_op", "fsdp_config": {"version": 1}}, "zero_stage", 3),
        ({"fsdp": "shard_grad_op", "evaluation_strategy": "no"}, "zero_stage", 2),
        ({"fsdp": "no_shard", "evaluation_strategy": "no"}, "runtime", "ddp"),
        ({"fsdp": ["full_shard", "offload"]}, "offload_parameters", "cpu"),
        ({"fsdp": True, "fsdp_config": {"fsdp_reshard_after_forward": False}}, "zero_stage", 2),
        ({"fsdp": True, "fsdp_config": {"activation_checkpointing": True}}, "recompute", "full"),
        ({"use_peft": True}, "method", "lora"),
        ({"use_peft": True}, "lora_rank", 8),
        ({"use_peft": True}, "precision", "bf16-mixed"),
        ({"gradient_checkpointing": True, "activation_checkpointing": False}, "recompute", "none"),
        ({"use_peft": True, "load_in_4bit": True}, "base_weights", "nf4"),
        ({"max_seq_length": 8192}, "sequence_length", 8192),
        ({"attn_implementation": "flash_attention_2"}, "attention", "flash"),
        ({"attn_implementation": "kernels-community/flash-attn3"}, "attention", "flash"),
        ({"per_device_train_batch_size": "4"}, "micro_batch_size", 4),
    ],
)
def test_an_argument_decides_its_option(values, option, value):
    found = of_text("transformers", {**BASE, **values})
    assert found.question[option] == value


@every_row(
    "values, key",
    [
        ({"auto_find_batch_size": True}, "auto_find_batch_size"),
        ({"torch_compile": True}, "torch_compile"),
        ({"neftune_noise_alpha": 5}, "neftune_noise_alpha"),
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor"),
        ({"use_liger_kernel": True, "fsdp": True}, "use_liger_kernel"),
        ({"optim": "lomo"}, "optim"),
        ({"optim": "galore_adamw_layerwise"}, "optim"),
        ({"optim": "galore_adamw", "optim_args": "rank=64"}, "optim_args"),
        ({"use_liger_kernel": True, "liger_kernel_config": {"rope": False}}, "liger_kernel_config.rope"),
        ({"accelerator_config": {"split_batches": True}}, "accelerator_config.split_batches"),
        ({"eval_strategy": "steps"}, "eval_strategy"),
        ({"eval_strategy": "epoch", "per_device_eval_batch_size": 16}, "per_device_eval_batch_size"),
        ({"load_in_8bit": True}, "load_in_8bit"),
        ({"use_peft": True, "lora_modules_to_save": ["lm_head"]}, "lora_modules_to_save"),
        ({"attn_implementation": "sage"}, "attn_implementation"),
        ({"deepspeed": "nowhere.json"}, "deepspeed"),
        ({"my_own_argument": 3}, "my_own_argument"),
    ],
)
def test_what_is_not_estimated_makes_the_answer_unsure(values, key):
    found = of_text("transformers", {**BASE, **values})
    assert list(keys(found, "not understood")) == [key]


def test_an_evaluation_no_larger_than_training_changes_nothing():
    found = of_text("transformers", {**BASE, "eval_strategy": "steps", "per_device_eval_batch_size": 2})
    assert found.document.is_sure


@every_row(
    "values, message",
    [
        ({"bf16": True, "fp16": True}, "fp16 must be false where bf16 is true"),
        ({"per_device_train_batch_size": 0}, "number from 1"),
        ({"per_device_train_batch_size": "many"}, "a number"),
        ({"gradient_checkpointing": "perhaps"}, "true or false"),
        ({"fsdp": "everything"}, "fsdp must be true"),
        ({"fsdp": "hybrid_shard"}, "others with FSDP1 alone"),
        ({"max_seq_length": -1}, "number from 1"),
        ({"deepspeed": {"zero_optimization": {"stage": 9}}}, "0, 1, 2 or 3"),
    ],
)
def test_values_that_it_cannot_have_are_named(values, message):
    with pytest.raises(InvalidInput) as error:
        of_text("transformers", {**BASE, **values})
    assert message in str(error.value)


@every_row(
    "words, on",
    [
        ("torchrun --nproc_per_node 4", "4xh100"),
        ("torchrun --nproc-per-node=8 --nnodes=2", "2x8xh100"),
        ("torchrun --standalone --nproc_per_node gpu", "h100"),
        ("python -m torch.distributed.launch --nproc_per_node 2", "2xh100"),
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun", "1xh100"),
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node gpu", "2xh100"),
        ("torchrun --nnodes 2", "2x1xh100"),
        ("CUDA_VISIBLE_DEVICES=3 python", "1xh100"),
    ],
)
def test_the_launcher_names_the_machines(words, on):
    found = of_command(f"{words} run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --bf16")
    assert found.question["on"] == on
    assert found.document.is_sure


@every_row("fsdp", ["--fsdp", "--fsdp True", "--fsdp 'full_shard auto_wrap'", "--fsdp full_shard auto_wrap"])
def test_fsdp_of_a_command(fsdp):
    found = of_command(f"torchrun --nproc_per_node 8 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B {fsdp} --bf16")
    assert (found.question["runtime"], found.question["zero_stage"]) == ("fsdp2", 3)
    assert found.document.is_sure


def test_a_number_of_nodes_that_may_change_is_not_sure():
    found = of_command(
        "torchrun --nnodes 2:4 --nproc_per_node 8 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --bf16"
    )
    assert found.question["on"] == "2x8xh100"
    assert list(keys(found, "not understood")) == ["nnodes"]


def test_a_script_may_take_its_arguments_from_a_file(tmp_path):
    (tmp_path / "args.json").write_text(json.dumps({**BASE, "model_name_or_path": "Qwen/Qwen2.5-7B"}))
    found = of_command("torchrun --nproc_per_node 8 run_clm.py args.json", folder=tmp_path)
    assert (found.question["model"], found.question["micro_batch_size"]) == ("Qwen/Qwen2.5-7B", 2)
    assert found.document.is_sure


def test_the_allocator_stands_in_the_environment():
    command = "PYTORCH_CUDA_ALLOC_CONF={} torchrun --nproc_per_node 8 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B"
    assert of_command(command.format("expandable_segments:True")).question["expandable_segments"] is True
    assert not of_command(command.format("max_split_size_mb:128")).document.is_sure


def test_a_version_that_is_named_has_its_own_defaults():
    from tonnage.interchange.check import understood
    from tonnage.interchange.reading import Asker

    command = "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --bf16"
    old = understood(command_source([command]), Asker(on="h100", version="4.46"))
    new = understood(command_source([command]), Asker(on="h100", version="99.0"))
    assert (old.question["precision"], new.question["precision"]) == ("bf16-mixed", "bf16")
    assert (old.document.version, new.document.version) == ("4.46", "99.0")


# ---- Any values, and the package itself.


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(KNOWN), ODD, max_size=6))
def test_any_values_are_answered_or_refused(values):
    is_answered_or_refused("transformers", values)


def test_every_argument_of_the_package_is_read():
    defaults = record("transformers")["options"]["TrainingArguments"]
    usual = {name: value for name, value in defaults.items() if name not in ("per_device_train_batch_size", "bf16")}
    found = of_text("transformers", {**BASE, **usual})
    assert not keys(found, "not understood")


def test_every_optimizer_of_the_package_is_known_or_said_not_to_be():
    names = record("transformers")["options"]["OptimizerNames"]
    assert len(names) > 40
    for name in names:
        found = of_text("transformers", {**BASE, "optim": name})
        assert "optimizer" in found.question or "optim" in keys(found, "not understood"), name
        assert name in OPTIMIZERS or name in OTHER_OPTIMIZERS, name

"""DeepSpeed's config and the commands of its launcher, read as questions, and the config written from answers."""

import json

import pytest
from hf_cases import (
    FILES,
    ODD,
    is_answered_or_refused,
    keys,
    of_command,
    of_file,
    of_text,
    round_trip,
    why,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from published_cases import record

from every_row import every_row
from tonnage.interchange.check import recognised
from tonnage.interchange.export import export
from tonnage.interchange.formats import format_of
from tonnage.interchange.source import file_source
from tonnage.kernel.errors import InvalidInput

KNOWN = sorted(format_of("deepspeed").known())
ZERO2 = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}}


def zero(**section):
    return {**ZERO2, "zero_optimization": {"stage": 2, **section}}


# ---- Files.


def test_a_file_of_numbers_is_read_to_the_letter():
    found = of_file("deepspeed", "zero2_numbers.json", "llama-3.1-8b", "8xh100")
    assert found.question == {
        "model": "llama-3.1-8b",
        "on": "8xh100",
        "runtime": "deepspeed",
        "zero_stage": 2,
        "micro_batch_size": 2,
        "num_microbatches": 4,  # 64 = 2 x 4 x 8
        "precision": "bf16-mixed",
        "optimizer": "adamw",
        "reduce_bucket_size": 200_000_000,
        "allgather_bucket_size": 200_000_000,
        "overlap_comm": True,
        "contiguous_gradients": True,
    }
    assert keys(found, "assumed") == {"gradient_accumulation_steps": "4"}
    assert found.document.is_sure
    assert found.origins["zero_stage"] == ("zero_optimization.stage",)


def test_auto_is_what_the_trainer_fills_in():
    found = of_file("deepspeed", "zero3_auto.json", "llama-3.1-8b", "8xh100")
    assumed = keys(found, "assumed")
    assert assumed["train_micro_batch_size_per_gpu"] == "8"
    assert assumed["gradient_accumulation_steps"] == "1"
    assert assumed["train_batch_size"] == "64"
    assert assumed["bf16.enabled"] == assumed["fp16.enabled"] == "false"
    assert {name for name in found.question if found.question[name] == "auto"} == {
        "reduce_bucket_size",
        "stage3_prefetch_bucket_size",
        "stage3_param_persistence_threshold",
    }
    assert found.question["precision"] == "fp32"
    assert "no training arguments" in found.notes[0]
    assert found.document.is_sure


def test_a_file_of_2020_offloads_with_its_old_name():
    found = of_file("deepspeed", "zero2_cpu_offload_of_2020.json", "llama-3.1-8b", "4xh100")
    assert found.question["offload_optimizer"] == "cpu"
    assert found.question["micro_batch_size"] == 2  # 16 / 2 / 4
    assert found.question["precision"] == "fp16-mixed"
    assert found.origins["offload_optimizer"] == ("zero_optimization.cpu_offload",)


def test_zero_infinity_offloads_to_disks():
    found = of_file("deepspeed", "zero_infinity.json", "llama-3.1-8b", "8xh100")
    assert (found.question["offload_optimizer"], found.question["offload_parameters"]) == ("nvme", "nvme")
    assert found.question["stage3_gather_16bit_weights_on_model_save"] is True
    assert found.origins["stage3_gather_16bit_weights_on_model_save"] == (
        "zero_optimization.stage3_gather_fp16_weights_on_model_save",
    )
    assert found.question["stage3_max_live_parameters"] == 300_000_000
    assert found.document.is_sure


def test_zero_plus_plus_and_16_bit_masters():
    found = of_file("deepspeed", "zero_plus_plus.json", "llama-3.1-8b", "2x8xh100")
    assert found.question["precision"] == "bf16-master"
    assert found.question["zero_hpz_partition_size"] == 8
    assert found.question["zero_quantized_weights"] is True
    assert found.question["zero_quantized_gradients"] is True


def test_tensor_ranks_leave_fewer_replicas():
    found = of_file("deepspeed", "autotp.json", "llama-3.1-8b", "8xh100")
    assert found.question["tensor_parallel_size"] == 4
    assert found.question["sequence_parallel"] is False
    assert found.question["micro_batch_size"] == 4  # 8 / 2 replicas
    with pytest.raises(InvalidInput, match="must divide the 6 accelerators"):
        of_file("deepspeed", "autotp.json", "llama-3.1-8b", "6xh100")


def test_a_command_fills_the_auto_of_the_file_that_it_names():
    found = of_file("deepspeed", "launch.sh")
    assert found.question["on"] == "2x8xh100"
    assert found.question["model"] == "meta-llama/Llama-3.1-8B"
    assert found.question["precision"] == "bf16-mixed"
    assert (found.question["micro_batch_size"], found.question["num_microbatches"]) == (2, 4)
    assert found.question["sequence_length"] == 4096
    assert found.question["recompute"] == "full"
    assert keys(found, "assumed")["deepspeed.train_batch_size"] == "128"
    assert found.document.is_sure


# ---- Batches.


@every_row(
    "batches, micro, steps",
    [
        ({"train_batch_size": 64}, 8, 1),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 4}, 2, 4),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4}, 4, 2),
        ({"train_micro_batch_size_per_gpu": 4}, 4, 1),
        ({"train_micro_batch_size_per_gpu": "auto"}, 8, 1),
        ({"train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto"}, 4, 1),
        ({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "3"}, 3, 1),
        ({}, 8, 1),
    ],
)
def test_the_product_rule_gives_what_is_not_said(batches, micro, steps):
    found = of_text("deepspeed", {**batches, "zero_optimization": {"stage": 2}})
    assert (found.question["micro_batch_size"], found.question["num_microbatches"]) == (micro, steps)


@every_row(
    "batches, message",
    [
        ({"train_batch_size": 63}, "multiple of 8"),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 3}, "multiple of 24"),
        (
            {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2},
            "2 x 2 x 8 = 32. Got 64",
        ),
        ({"train_batch_size": 0}, "number from 1"),
        ({"train_batch_size": [8]}, "must be a number"),
    ],
)
def test_batches_that_do_not_fit_together_name_the_numbers(batches, message):
    with pytest.raises(InvalidInput) as error:
        of_text("deepspeed", batches)
    assert message in str(error.value)


def test_numbers_that_contradict_the_training_arguments_are_refused_as_the_trainer_does(tmp_path):
    (tmp_path / "ds.json").write_text(json.dumps({**ZERO2, "train_micro_batch_size_per_gpu": 4}))
    command = "deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path Qwen/Qwen2.5-7B --bf16"
    with pytest.raises(InvalidInput, match="is 4, and per_device_train_batch_size"):
        of_command(command, folder=tmp_path)
    assert of_command(f"{command} --per_device_train_batch_size 4", folder=tmp_path).question["micro_batch_size"] == 4


# ---- What each setting decides.


@every_row(
    "config, option, value",
    [
        (zero(offload_optimizer={"device": "cpu"}), "offload_optimizer", "cpu"),
        (zero(stage=3, offload_param={"device": "cpu"}), "offload_parameters", "cpu"),
        (zero(stage=3, offload_optimizer={"device": "cpu", "ratio": 0.3}), "optimizer_offload_fraction", 0.3),
        (zero(reduce_bucket_size=5e8), "reduce_bucket_size", 500_000_000),
        (zero(stage=3, prefetch_bucket_size=1000), "stage3_prefetch_bucket_size", 1000),
        ({**ZERO2, "optimizer": {"type": "Muon"}}, "optimizer", "muon"),
        ({**ZERO2, "optimizer": {"type": "SGD", "params": {"momentum": 0.9}}}, "optimizer", "sgd-momentum"),
        ({**ZERO2, "optimizer": {"type": "SGD", "params": {"lr": 0.9}}}, "optimizer", "sgd"),
        ({**ZERO2, "zero_optimization": True}, "zero_stage", 1),
        ({**ZERO2}, "zero_stage", 0),
        ({"train_batch_size": 8, "bfloat16": {"enabled": True}}, "precision", "bf16-mixed"),
        ({"train_batch_size": 8, "expert_parallel": {"enabled": True, "autoep_size": 4}}, "expert_parallel_size", 4),
    ],
)
def test_a_setting_decides_its_option(config, option, value):
    assert of_text("deepspeed", config).question[option] == value


@every_row(
    "config, key",
    [
        ({**ZERO2, "torch_autocast": {"enabled": True, "dtype": "bfloat16"}}, "torch_autocast.enabled"),
        (zero(round_robin_gradients=True), "zero_optimization.round_robin_gradients"),
        (zero(reduce_scatter=False), "zero_optimization.reduce_scatter"),
        (zero(zenflow={"topk_ratio": 0.1}), "zero_optimization.zenflow.topk_ratio"),
        (
            zero(offload_optimizer={"device": "cpu", "pin_memory": False}),
            "zero_optimization.offload_optimizer.pin_memory",
        ),
        ({**ZERO2, "data_types": {"grad_accum_dtype": "fp32"}}, "data_types.grad_accum_dtype"),
        ({**ZERO2, "communication_data_type": "fp32"}, "communication_data_type"),
        (
            {**ZERO2, "activation_checkpointing": {"cpu_checkpointing": True}},
            "activation_checkpointing.cpu_checkpointing",
        ),
        ({**ZERO2, "autotuning": {"enabled": True}}, "autotuning.enabled"),
        ({**ZERO2, "compile": {"deepcompile": True}}, "compile.deepcompile"),
        ({**ZERO2, "sequence_parallel_size": 2, "train_micro_batch_size_per_gpu": 2}, "sequence_parallel_size"),
        ({**ZERO2, "optimizer": {"type": "OneBitAdam"}}, "optimizer.type"),
        ({**ZERO2, "amp": {"enabled": True}}, "amp.enabled"),
        (
            {**ZERO2, "bf16": {"enabled": True, "bf16_master_weights_and_grads": True}},
            "bf16.bf16_master_weights_and_grads",
        ),
        ({**ZERO2, "tensor_parallel": {"tp": {"tp_size": 4}}}, "tensor_parallel.tp.tp_size"),
        ({**ZERO2, "some_new_key": 1}, "some_new_key"),
    ],
)
def test_what_is_not_estimated_makes_the_answer_unsure(config, key):
    found = of_text("deepspeed", config)
    assert list(keys(found, "not understood")) == [key]
    assert not found.document.is_sure


def test_settings_of_another_stage_change_nothing():
    found = of_text(
        "deepspeed", zero(sub_group_size=1e9, stage3_max_live_parameters=1e9, offload_param={"device": "cpu"})
    )
    assert "sub_group_size" not in found.question
    assert "offload_parameters" not in found.question
    assert why(found, "zero_optimization.sub_group_size") == "counts in stage 3 alone"
    assert found.document.is_sure


def test_a_misspelled_key_gets_the_nearest():
    found = of_text("deepspeed", {**ZERO2, "zero_optimization": {"stage": 2, "overlap_com": True}})
    assert "zero_optimization.overlap_comm" in why(found, "zero_optimization.overlap_com")


@every_row(
    "config, message",
    [
        ({**ZERO2, "zero_optimization": {"stage": 4}}, "zero_optimization.stage must be 0, 1, 2 or 3. Got 4"),
        ({**ZERO2, "zero_optimization": "all"}, "zero_optimization must be a section"),
        ({**ZERO2, "zero_optimization": {"stage": [3]}}, "zero_optimization.stage must be a number"),
        (zero(offload_optimizer={"device": "gpu"}), "none"),
        (zero(reduce_bucket_size=-1), "a number from 0"),
        (zero(offload_optimizer={"device": "cpu", "ratio": 0.5}), "stage 3 alone"),
        ({**ZERO2, "fp16": {"enabled": True}}, "cannot both be enabled"),
        ([1, 2], "top level"),
        ([], "top level"),
    ],
)
def test_values_that_it_cannot_have_are_named(config, message):
    with pytest.raises(InvalidInput) as error:
        of_text("deepspeed", json.dumps(config))
    assert message in str(error.value)


# ---- Commands.


@every_row(
    "words, on",
    [
        ("--num_gpus 4", "4xh100"),
        ("--num_gpus=4 --num_nodes=2", "2x4xh100"),
        ("--num_accelerators 8", "8xh100"),
        ("--include localhost:0,2", "2xh100"),
        ("--include worker-0:0,1@worker-1:0,1", "2x2xh100"),
        ("--hostfile hosts", "2x8xh100"),
        ("", "h100"),
    ],
)
def test_the_launcher_names_the_machines(words, on, tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    (folder / "ds.json").write_text(json.dumps({"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}))
    (folder / "hosts").write_text("# nodes\nworker-0 slots=8\nworker-1 slots=8\n")
    command = f"deepspeed {words} train.py --deepspeed ds.json --bf16 True --model_name_or_path Qwen/Qwen2.5-7B"
    found = of_command(command, folder=folder)
    assert found.question["on"] == on
    assert found.document.is_sure


def test_nodes_of_unknown_size_are_to_be_said(tmp_path):
    (tmp_path / "ds.json").write_text(json.dumps(ZERO2))
    command = "deepspeed --num_nodes 2 train.py --deepspeed --deepspeed_config ds.json"
    with pytest.raises(InvalidInput, match="names 2 nodes, and not how many"):
        of_command(command, model="llama-3.1-8b", folder=tmp_path)
    assert of_command(command, "2x8xh100", "llama-3.1-8b", tmp_path).question["on"] == "2x8xh100"


def test_a_script_without_a_trainer_has_the_numbers_of_its_config(tmp_path):
    (tmp_path / "ds.json").write_text(json.dumps({**ZERO2, "train_micro_batch_size_per_gpu": 4}))
    found = of_command(
        "deepspeed --num_gpus 8 pretrain.py --deepspeed --deepspeed_config ds.json --seq_length 2048",
        model="llama-3.1-8b",
        folder=tmp_path,
    )
    assert (found.question["micro_batch_size"], found.question["sequence_length"]) == (4, 2048)
    assert found.document.is_sure


def test_a_file_that_cannot_be_read_makes_the_answer_unsure():
    found = of_command("deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path Qwen/Qwen2.5-7B")
    assert keys(found, "not understood") == {"deepspeed": "ds.json"}
    assert found.question["runtime"] == "deepspeed"


@every_row("name", sorted(path.name for path in (FILES / "deepspeed").iterdir()), at_least=7)
def test_its_files_are_recognised(name):
    assert recognised(file_source(str(FILES / "deepspeed" / name))).name == "deepspeed"


# ---- Any values.


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(KNOWN), ODD, max_size=6))
def test_any_values_are_answered_or_refused(values):
    is_answered_or_refused("deepspeed", values)


def test_every_setting_of_zero_has_the_default_that_deepspeed_has():
    """The defaults of deepspeed/runtime/zero/config.py of DeepSpeed 0.19.8."""
    facts = {
        "contiguous_gradients": True,
        "reduce_scatter": True,
        "use_multi_rank_bucket_allreduce": True,
        "allgather_partitions": True,
        "load_from_fp32_weights": True,
        "elastic_checkpoint": False,
        "stage3_module_granularity_threshold": 0,
        "stage3_use_all_reduce_for_fetch_params": False,
        "stage3_allgather_sequential": False,
        "ignore_unused_parameters": True,
        "legacy_stage1": False,
        "round_robin_gradients": False,
        "parameter_alignment": False,
        "zero_quantized_weights": False,
        "memory_efficient_linear": True,
        "pipeline_loading_checkpoint": False,
        "override_module_apply": True,
        "log_trace_cache_warnings": False,
        "enable_sanity_checks": False,
        "save_muon_momentum_buffer_in_memory": False,
        "compute_grad_norm": True,
        "stage3_model_persistence_threshold": 9223372036854775807,
    }
    found = of_text("deepspeed", zero(**facts))
    assert found.document.is_sure
    usual = of_text("deepspeed", zero())
    assert {**found.question, "contiguous_gradients": True} == {**usual.question, "contiguous_gradients": True}


def test_the_defaults_of_training_arguments_are_those_of_the_package():
    defaults = record("transformers")["options"]["TrainingArguments"]
    assert defaults["per_device_train_batch_size"] == 8
    assert defaults["gradient_accumulation_steps"] == 1
    assert defaults["bf16"] is defaults["fp16"] is False


# ---- Written.


@every_row(
    "question",
    [
        {},
        {"zero_stage": 3, "micro_batch_size": 2, "num_microbatches": 4, "recompute": "full"},
        {"zero_stage": 3, "offload_optimizer": "cpu", "offload_parameters": "cpu", "global_batch_size": 64},
        {"zero_stage": 3, "offload_optimizer": "nvme", "offload_parameters": "nvme"},
        {"zero_stage": 1, "precision": "fp16-mixed", "optimizer": "lion"},
        {"zero_stage": 0, "precision": "fp32"},
        {"precision": "bf16-master", "reduce_bucket_size": "auto", "overlap_comm": True},
        {"zero_stage": 3, "zero_hpz_partition_size": 8, "zero_quantized_weights": True, "on": "2x8xh100"},
        {"tensor_parallel_size": 2, "zero_stage": 1},
        {"method": "lora", "zero_stage": 3, "sub_group_size": "10M", "sequence_length": 2048},
        {"zero_stage": 3, "offload_optimizer": "cpu", "optimizer_offload_fraction": 0.5},
    ],
)
def test_what_is_written_asks_for_the_same_plan(question):
    round_trip("deepspeed", question)


def test_a_file_that_is_there_gets_the_values_and_keeps_the_rest():
    asked = {
        "model": "llama-3.1-8b",
        "on": "8xh100",
        "zero_stage": 3,
        "offload_optimizer": "cpu",
        "micro_batch_size": 2,
    }
    file = file_source(str(FILES / "deepspeed" / "zero3_auto.json"))
    config = json.loads(export("deepspeed", "train", asked, file).text)
    assert config["scheduler"]["params"] == {"warmup_min_lr": "auto"}
    assert config["zero_optimization"]["offload_optimizer"] == {"device": "cpu", "pin_memory": True}
    assert config["train_batch_size"] == 16


def test_what_the_file_has_no_place_for_is_said():
    found = export(
        "deepspeed", "train", {"model": "llama-3.1-8b", "on": "8xh100", "recompute": "full", "zero_stage": 2}
    )
    assert set(found.lacks) == {"--model", "--on", "--recompute"}
    config = json.loads(found.text)
    assert config["zero_optimization"]["stage"] == 2
    assert config["train_batch_size"] == 8


@every_row(
    "option, value",
    [("optimizer", "adamw-8bit"), ("precision", "fp8-te")],
)
def test_what_it_has_no_words_for_is_refused(option, value):
    with pytest.raises(InvalidInput, match="has no words for"):
        export("deepspeed", "train", {"model": "llama-3.1-8b", "on": "8xh100", option: value})

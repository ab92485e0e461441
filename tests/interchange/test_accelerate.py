"""Accelerate's config and `accelerate launch`, read as questions, and the config written from answers."""

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

KNOWN = sorted(format_of("accelerate").known())
MODEL = "llama-3.1-8b"


def config(kind="FSDP", **more):
    return {"distributed_type": kind, "num_processes": 8, "mixed_precision": "bf16", **more}


def fsdp(**more):
    return config(fsdp_config={f"fsdp_{name}": value for name, value in {"version": 2, **more}.items()})


# ---- Files.


def test_fsdp2_is_the_runtime_fsdp2_with_code_of_transformers():
    found = of_file("accelerate", "fsdp2.yaml", MODEL)
    assert found.question == {
        "model": MODEL,
        "on": "8xh100",
        "runtime": "fsdp2",
        "model_code": "transformers",
        "zero_stage": 3,
        "recompute": "full",
        "precision": "bf16-mixed",
    }
    assert not keys(found, "assumed")
    assert found.document.is_sure


def test_fsdp1_says_as_what_it_is_estimated():
    found = of_file("accelerate", "fsdp1_hybrid.yaml", MODEL)
    assert found.question["on"] == "2x8xh100"
    assert (found.question["runtime"], found.question["zero_stage"], found.question["replicate_size"]) == (
        "fsdp2",
        3,
        2,
    )
    assert keys(found, "assumed")["fsdp_config.fsdp_version"] == "1"
    assert "FSDP1 is estimated as FSDP2" in found.notes[0]
    assert found.document.is_sure


def test_settings_of_deepspeed_stand_in_the_file():
    found = of_file("accelerate", "zero3_flags.yaml", MODEL)
    assert found.question == {
        "model": MODEL,
        "on": "8xh100",
        "runtime": "deepspeed",
        "zero_stage": 3,
        "num_microbatches": 4,
        "offload_optimizer": "cpu",
        "offload_parameters": "none",
        "stage3_gather_16bit_weights_on_model_save": True,
        "precision": "bf16-mixed",
    }
    assert found.origins["zero_stage"] == ("deepspeed_config.zero_stage",)
    assert found.document.is_sure


def test_a_deepspeed_file_that_is_named_is_read_too():
    found = of_file("accelerate", "zero_file.yaml", MODEL)
    assert found.question["zero_stage"] == 2
    assert (found.question["micro_batch_size"], found.question["num_microbatches"]) == (2, 4)
    assert found.origins["zero_stage"] == ("deepspeed_config.deepspeed_config_file.zero_optimization.stage",)
    assert found.document.is_sure


def test_multi_gpu_is_ddp():
    found = of_file("accelerate", "ddp.yaml", MODEL)
    assert found.question == {"model": MODEL, "on": "4xh100", "runtime": "ddp", "precision": "fp32"}


def test_a_mesh_has_replicas_shards_tensor_and_context_ranks():
    found = of_file("accelerate", "mesh.yaml", MODEL)
    assert {
        name: found.question[name] for name in ("replicate_size", "tensor_parallel_size", "context_parallel_size")
    } == {
        "replicate_size": 2,
        "tensor_parallel_size": 2,
        "context_parallel_size": 2,
    }
    assert found.question["zero_stage"] == 2
    assert (found.question["offload_parameters"], found.question["offload_optimizer"]) == ("cpu", "cpu")


def test_megatron_has_its_own_sizes():
    found = of_file("accelerate", "megatron.yaml", MODEL)
    assert found.question == {
        "model": MODEL,
        "on": "8xh100",
        "runtime": "megatron",
        "tensor_parallel_size": 4,
        "pipeline_parallel_size": 2,
        "num_microbatches": 4,
        "sequence_parallel": True,
        "zero_stage": 1,
        "recompute": "selective",
        "precision": "bf16-mixed",
    }


def test_options_of_the_command_are_stronger_than_its_file():
    found = of_file("accelerate", "launch.sh")
    assert found.question["on"] == "4xh100"
    assert found.question["offload_parameters"] == "cpu"
    assert found.question["recompute"] == "full"
    assert found.question["model"] == "Qwen/Qwen2.5-7B"
    assert (found.question["micro_batch_size"], found.question["num_microbatches"]) == (4, 2)
    assert found.question["sequence_length"] == 2048
    assert found.question["optimizer_implementation"] == "foreach"
    assert found.document.is_sure


@every_row("name", sorted(path.name for path in (FILES / "accelerate").iterdir()), at_least=8)
def test_its_files_are_recognised(name):
    assert recognised(file_source(str(FILES / "accelerate" / name))).name == "accelerate"


# ---- What each setting decides.


@every_row(
    "values, option, value",
    [
        (fsdp(reshard_after_forward=False), "zero_stage", 2),
        (fsdp(reshard_after_forward="FULL_SHARD", version=1), "zero_stage", 3),
        (fsdp(sharding_strategy=2, version=1), "zero_stage", 2),
        (fsdp(sharding_strategy="NO_SHARD", version=1), "runtime", "ddp"),
        (fsdp(sharding_strategy="HYBRID_SHARD_ZERO2", version=1), "zero_stage", 2),
        (fsdp(offload_params=True), "offload_optimizer", "cpu"),
        (fsdp(activation_checkpointing=True), "recompute", "full"),
        (fsdp(activation_checkpointing_offload=True), "offload_activations", "cpu"),
        (config("DEEPSPEED"), "zero_stage", 2),
        (config("MULTI_GPU", mixed_precision="fp16"), "precision", "fp16-mixed"),
        (config("MULTI_GPU", mixed_precision=False), "precision", "fp32"),
        (config("MULTI_GPU", mixed_precision="fp8", fp8_config={"backend": "TE"}), "precision", "fp8-te"),
        (config("MULTI_GPU", mixed_precision="fp8", fp8_config={"backend": "MSAMP"}), "precision", "msamp-o2"),
        (config(False, num_processes=1), "runtime", "transformers"),
        ({"distributed_type": "MULTI_GPU", "fp16": True, "num_processes": 8}, "precision", "fp16-mixed"),
    ],
)
def test_a_setting_decides_its_option(values, option, value):
    assert of_text("accelerate", values, on=f"{values['num_processes']}xh100").question[option] == value


@every_row(
    "values, key",
    [
        (fsdp(cpu_ram_efficient_loading=False), "fsdp_config.fsdp_cpu_ram_efficient_loading"),
        (fsdp(auto_wrap_policy="SIZE_BASED_WRAP"), "fsdp_config.fsdp_auto_wrap_policy"),
        (fsdp(ignored_modules="lm_head"), "fsdp_config.fsdp_ignored_modules"),
        (config("XLA"), "distributed_type"),
        (config("MULTI_GPU", dynamo_config={"dynamo_backend": "INDUCTOR"}), "dynamo_config.dynamo_backend"),
        (config("MULTI_GPU", use_cpu=True), "use_cpu"),
        (
            config("DEEPSPEED", deepspeed_config={"deepspeed_config_file": "nowhere.json"}),
            "deepspeed_config.deepspeed_config_file",
        ),
        (
            config("MEGATRON_LM", megatron_lm_config={"megatron_lm_use_precision_aware_optimizer": True}),
            "megatron_lm_config.megatron_lm_use_precision_aware_optimizer",
        ),
        (fsdp(reshard=True), "fsdp_config.fsdp_reshard"),
    ],
)
def test_what_is_not_estimated_makes_the_answer_unsure(values, key):
    found = of_text("accelerate", values)
    assert list(keys(found, "not understood")) == [key]
    assert not found.document.is_sure


@every_row(
    "values, message",
    [
        (config("MULTI_GPU", num_processes=7, num_machines=2), "multiple of num_machines. Got 7 and 2"),
        (config("PIPELINE"), "distributed_type must be NO, MULTI_GPU"),
        (config("MULTI_GPU", mixed_precision="int8"), "mixed_precision must be one of"),
        (fsdp(version=3), "1 or 2"),
        (fsdp(reshard_after_forward="SOME"), "true or false"),
        (fsdp(sharding_strategy="SOME", version=1), "one of FULL_SHARD"),
        (
            config(parallelism_config={"parallelism_config_tp_size": 3}, fsdp_config={"fsdp_version": 2}),
            "must give the 8 processes. Got 1 x 1 x 3 x 1 x 1 = 3",
        ),
        (config("MULTI_GPU", num_processes=0), "number from 1"),
    ],
)
def test_values_that_it_cannot_have_are_named(values, message):
    with pytest.raises(InvalidInput) as error:
        of_text("accelerate", values)
    assert message in str(error.value)


def test_a_deepspeed_file_and_other_settings_of_it_do_not_go_together(tmp_path):
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}')
    command = (
        "accelerate launch --use_deepspeed --num_processes 8 --mixed_precision bf16 --deepspeed_config_file ds.json "
        "--zero_stage 2 train.py"
    )
    found = of_command(command, model=MODEL, folder=tmp_path)
    assert "refuses it" in why(found, "deepspeed_config.zero_stage")
    assert (found.question["zero_stage"], found.question["precision"]) == (3, "bf16-mixed")


def test_fsdp1_goes_by_its_strategy_alone():
    """accelerate 1.15, accelerator.py: sharding_strategy, which always has a value, or else reshard_after_forward."""
    found = of_text("accelerate", fsdp(reshard_after_forward="SHARD_GRAD_OP", version=1))
    assert found.question["zero_stage"] == 3
    assert "changes nothing in FSDP1" in found.notes[1]
    assert keys(found, "assumed") == {"fsdp_config.fsdp_sharding_strategy": "FULL_SHARD"}


def test_the_batch_of_a_config_without_a_script_stays_open():
    for kind in ("FSDP", "DEEPSPEED", "MULTI_GPU"):
        question = of_text("accelerate", config(kind)).question
        assert not {"micro_batch_size", "num_microbatches", "optimizer", "sequence_length"} & set(question)


def test_the_launcher_of_another_tool_is_less_sure():
    from tonnage.interchange.formats.trainers.accelerate import recognises
    from tonnage.interchange.source import command_source

    assert recognises(command_source(["accelerate launch -m axolotl.cli.train config.yml"])) == 5
    assert recognises(command_source(["accelerate launch --num_processes 8 train.py"])) == 10
    assert recognises(command_source(["python -m accelerate.commands.launch train.py"])) == 10


# ---- Any values.


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["FSDP", "DEEPSPEED", "MEGATRON_LM", "NO"]),
    st.dictionaries(st.sampled_from(KNOWN), ODD, max_size=6),
)
def test_any_values_are_answered_or_refused(kind, values):
    is_answered_or_refused("accelerate", {"distributed_type": kind, **values})


def test_every_setting_of_fsdp_in_the_package_is_read():
    fields = record("accelerate")["options"]["FullyShardedDataParallelPlugin"]
    known = {name.removeprefix("fsdp_config.fsdp_") for name in KNOWN if name.startswith("fsdp_config.")}
    programs = {"state_dict_config", "optim_state_dict_config", "param_init_fn", "transformer_cls_names_to_wrap"}
    assert {name.removeprefix("fsdp_") for name in fields} - known <= programs  # what only a program can give


def test_every_key_of_the_config_in_the_package_is_read():
    fields = record("accelerate")["options"]["ClusterConfig"]
    known = {name.partition(".")[0] for name in KNOWN} | {"mpirun_config"}
    assert not set(fields) - known
    assert fields["num_machines"] == 1


# ---- Written.


@every_row(
    "question",
    [
        {},
        {"recompute": "full", "micro_batch_size": 2, "zero_stage": 2, "sequence_length": 2048},
        {"tensor_parallel_size": 2, "context_parallel_size": 2},
        {"on": "2x8xh100", "replicate_size": 2, "global_batch_size": 64},
        {"offload_parameters": "cpu", "offload_optimizer": "cpu"},
        {"method": "lora", "lora_rank": 8, "runtime": "ddp"},
        {"runtime": "ddp", "precision": "fp32", "model": "qwen2.5-0.5b", "recompute": "full"},
        {"runtime": "transformers", "on": "h100", "precision": "fp16-mixed", "model": "qwen2.5-0.5b"},
        {"runtime": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu", "num_microbatches": 4},
        {"runtime": "deepspeed", "reduce_bucket_size": "auto", "optimizer": "lion"},
        {"runtime": "megatron", "tensor_parallel_size": 2, "pipeline_parallel_size": 2, "num_microbatches": 8},
        {"runtime": "megatron", "tensor_parallel_size": 4, "sequence_parallel": False, "recompute": "full"},
    ],
)
def test_what_is_written_asks_for_the_same_plan(question):
    round_trip("accelerate", question)


def test_the_comment_says_what_the_file_does_not():
    asked = {"model": "qwen2.5-0.5b", "on": "8xh100", "micro_batch_size": 2, "zero_stage": 2}
    found = export("accelerate", "train", asked)
    first, *rest = found.text.splitlines()
    assert first == "# tonnage: train qwen2.5-0.5b --on 8xh100 --model-code transformers --micro-batch-size 2"
    assert "  fsdp_reshard_after_forward: false" in rest
    assert not found.lacks


@every_row(
    "question",
    [{"runtime": "nanotron"}, {"precision": "bf16"}, {"runtime": "fsdp2", "model_code": "torchtitan"}],
)
def test_what_it_has_no_words_for_is_refused(question):
    with pytest.raises(InvalidInput):
        export("accelerate", "train", {"model": MODEL, "on": "8xh100", **question})

"""OpenRLHF: commands of its four programs as questions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from of_frameworks import (
    ODD,
    check_any,
    check_golden,
    golden,
    keys,
    of_command,
    question_of,
    round_trip,
    same,
    source,
    why,
)

from every_row import every_row
from tonnage.interchange.check import answer
from tonnage.interchange.export import export
from tonnage.interchange.parts.openrlhf.names import KNOWN, SEVERAL, SWITCHES
from tonnage.interchange.parts.openrlhf.read import RENAMED
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source
from tonnage.kernel.errors import InvalidInput, TonnageError

GOLDEN = golden("openrlhf")
SFT = "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --model.model_name_or_path meta-llama/Llama-3.1-8B"
PPO = (
    "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path meta-llama/Llama-3.1-8B "
    "--vllm.enable_sleep --train.colocate_all"
)


def asked(command, on="h100"):
    return of_command(command, on)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_published_script_asks_this_question(name):
    check_golden("openrlhf", name, GOLDEN[name])


@pytest.mark.parametrize(("name", "status"), [("sft.sh", 0), ("rm.sh", 4), ("ppo_colocated.sh", 4)])
def test_a_published_script_is_answered(name, status):
    assert answer(source(f"openrlhf/{name}"), Asker(on="h100")).status == status


# Of the parsers of openrlhf 0.11.2: the program, and what is asked where nothing is said.
DEFAULTS = [
    (SFT, {"zero_stage": 2, "sequence_length": 2048, "micro_batch_size": 8, "global_batch_size": 128}),
    (SFT.replace("sft", "dpo"), {"sequence_length": 512, "micro_batch_size": 8, "objective": "dpo"}),
    (SFT.replace("sft", "rm"), {"sequence_length": 512, "micro_batch_size": 2, "global_batch_size": 256}),
    (PPO, {"sequence_length": 2048, "micro_batch_size": 1, "objective": "ppo", "on": "8xh100"}),
    (SFT, {"precision": "bf16-mixed", "attention": "flash", "recompute": "none", "runtime": "deepspeed"}),
]


@every_row("command, options", DEFAULTS)
def test_what_is_not_said_has_openrlhfs_default(command, options):
    found = asked(command)
    assert {name: found.question.get(name) for name in options} == options


ARGUMENTS = [
    (SFT, "--ds.zero_stage 3 --ds.zpg 4", {"zero_stage": 3, "zero_hpz_partition_size": 4}),
    (SFT, "--ds.adam_offload", {"offload_optimizer": "cpu"}),
    (SFT, "--ds.lora.rank 16 --ds.load_in_4bit", {"method": "qlora", "lora_rank": 16}),
    (SFT, "--ds.lora.rank 16 --ds.lora.target_modules q_proj k_proj", {"lora_targets": "q_proj,k_proj"}),
    (SFT, "--ds.lora.rank 16 --ds.lora.dropout 0.1", {"lora_dropout": True}),
    (SFT, "--ds.param_dtype fp16", {"precision": "fp16-mixed"}),
    (SFT, "--ds.attn_implementation eager", {"attention": "eager"}),
    (SFT, "--ds.tensor_parallel_size 2", {"tensor_parallel_size": 2}),
    (SFT, "--ds.ring_attn_size 2", {"context_parallel_size": 2}),
    (SFT, "--model.gradient_checkpointing_enable", {"recompute": "full"}),
    (SFT, "--ds.overlap_comm", {"overlap_comm": True}),
    (SFT, "--data.dataloader_num_workers 4", {"data_loader_workers": 4}),
    (SFT.replace("--num_gpus", "--num_nodes 2 --num_gpus"), "", {"on": "2x8xh100"}),
    (PPO, "--actor.num_nodes 2", {"on": "2x8xh100"}),
    (PPO, "--train.dynamic_batch_enable --train.max_tokens_per_gpu 4096", {"micro_batch_size": 2}),
    (PPO.replace("--vllm.enable_sleep", ""), "", {"engine_memory_share": 0.95}),
    (PPO.replace("--train.colocate_all", ""), "", {"objective": "grpo", "engine_memory_share": None}),
    (PPO, "--algo.advantage.estimator group_norm --algo.kl.init_coef 0", {"objective": "grpo"}),
    (PPO, "--algo.advantage.estimator rloo --ref.offload", {"objective": "grpo", "beta": None}),
    (PPO, "--algo.advantage.estimator rloo", {"beta": 0.01, "rollout_memory_share": 0.95}),
    (
        PPO,
        "--rollout.n_samples_per_prompt 4 --rollout.batch_size 64 --rollout.max_new_tokens 1500",
        {"num_generations": 4, "prompts_per_step": 64, "max_completion_length": 1500},
    ),
    (PPO, "--ds.enable_sleep --ds.packing_samples", {"rollout_offload": True, "sequence_packing": True}),
    (PPO, "--vllm.tensor_parallel_size 4 --train.max_epochs 2", {"rollout_tensor_parallel_size": 4, "ppo_epochs": 2}),
    (
        PPO.replace("--train.colocate_all", "--train.async_enable"),
        "--vllm.num_engines 4 --vllm.tensor_parallel_size 2",
        {"rollout_accelerators": 8, "async_steps": 1, "rollout_memory_share": None},
    ),
]


@every_row("command, arguments, options", ARGUMENTS, at_least=18)
def test_arguments_decide_options(command, arguments, options):
    found = asked(f"{command} {arguments}")
    assert {name: found.question.get(name) for name in options} == options
    assert not keys(found, "not understood")


UNCLEAR = [
    (SFT, "--ds.use_liger_kernel", "ds.use-liger-kernel"),
    (SFT, "--ds.deepcompile", "ds.deepcompile"),
    (SFT, "--ds.load_in_4bit", "ds.load-in-4bit"),
    (SFT, "--optim muon", "optim"),
    (SFT, "--ds.attn_implementation mine", "ds.attn-implementation"),
    (PPO, "--train.enable_ema", "train.enable-ema"),
    (SFT.replace("sft", "rm"), "", "program"),
    (SFT.replace("sft", "kto"), "", "program"),
    (SFT.replace("sft", "dpo"), "--data.max_len 8192", "program"),
]


@every_row("command, arguments, key", UNCLEAR)
def test_what_is_not_estimated_makes_the_verdict_unsure(command, arguments, key):
    found = asked(f"{command} {arguments}")
    assert key in keys(found, "not understood")
    assert why(found, key)


OLD = [(old, new) for old, new in RENAMED.items() if new in KNOWN and new not in SEVERAL]


@every_row("old, new", OLD, at_least=40)
def test_a_name_before_0_11_is_read_as_the_newer_one(old, new):
    command = PPO if new.partition(".")[0] in ("actor", "critic", "ref", "reward", "vllm", "algo", "rollout") else SFT
    value = "" if new in SWITCHES else "flash_attention_2" if "attn-impl" in new else "bf16" if "dtype" in new else "1"
    value = "0.5" if "utilization" in new else value
    found = asked(f"{command} --{old.replace('-', '_')} {value}")
    assert old in {key.key for key in found.document.keys} or new in {key.key for key in found.document.keys}


def test_names_that_decided_nothing_are_ignored():
    found = asked(f"{SFT} --save_path x --logging_steps 1 --bf16 --flash_attn --apply_chat_template --l2 0")
    assert {"save-path", "logging-steps", "bf16", "flash-attn"} <= keys(found, "ignored")


def test_a_misspelled_argument_gets_the_nearest_one():
    assert "did you mean ds.zero-stage" in why(asked(f"{SFT} --ds.zero_stag 3"), "ds.zero-stag")


@every_row(
    "arguments, message",
    [
        ("--ds.zero_stage 7", "0, 1, 2 or 3"),
        ("--train.micro_batch_size x", "must be a number"),
        ("--ds.param_dtype int8", "bf16"),
        ("--data.max_len 0", "above 0"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(arguments, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        asked(f"{SFT} {arguments}")


@given(
    st.sampled_from(["train_ppo_ray", "train_sft", "train_dpo", "train_rm", "train_kto"]),
    st.lists(st.tuples(st.sampled_from(sorted([*KNOWN, *RENAMED])), ODD), max_size=8),
    st.booleans(),
)
def test_any_arguments_are_understood_or_refused(program, pairs, complete):
    words = [word for key, value in pairs for word in (f"--{key}", value) if word]
    model = ["--pretrain", "gpt2"] if complete else []
    command = ["python3", "-m", f"openrlhf.cli.{program}", *model, *words]
    check_any(command_source(command), "openrlhf", ("deepspeed",))


LONG = (
    "llama-3.1-8b --on 8xh100 --objective grpo --gbs 128 --prompts-per-step 64 --num-generations 4 --ppo-epochs 2 "
    "--max-completion-length 1500 --mean-completion-length 600 --rollout-tensor-parallel-size 2 --beta 0.01 "
    "--rollout-memory-share 0.6 --rollout-offload --sequence-packing --offload-optimizer cpu --zero-stage 3"
)
QUESTIONS = [
    "llama-3.1-8b --on 8xh100 --objective grpo --gbs 128 --seq 3072 --recompute full",
    "llama-3.1-8b --on 2x8xh100 --objective ppo --gbs 128 --seq 3072 --recompute full --zero-stage 3",
    "llama-3.1-8b --on 8xh100 --objective grpo --method lora --lora-rank 32 --engine-memory-share 0.4 --mbs 2",
    LONG,
    "llama-3.1-8b --on 8xh100 --objective grpo --gbs 128 --rollout-accelerators 8 --async-steps 1 --zero-stage 3",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_written_is_read_as_the_same_plan(question):
    first, second, _ = round_trip("openrlhf", {**question_of(question), "runtime": "deepspeed"})
    assert same(first, second)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("rloo", ("estimator rloo", "init_coef 0.05")),
        ("dapo", ("estimator group_norm", "init_coef 0", "dynamic_filtering_enable", "eps_clip_low_high 0.2 0.27")),
    ],
)
def test_rloo_and_dapo_are_written_as_settings_of_openrlhf(objective, words):
    question = {"model": "llama-3.1-8b", "on": "8xh100", "objective": objective, "runtime": "openrlhf"}
    text = export("openrlhf", "train", question).text
    assert all(word in text for word in words)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "grpo, dapo, rloo or ppo"),
        ({"objective": "grpo", "runtime": "fsdp2"}, "deepspeed"),
        ({"objective": "grpo", "recompute": "selective"}, "every layer or none"),
        ({"objective": "grpo", "optimizer": "adamw-8bit"}, "adamw"),
        ({"objective": "grpo", "rollout_engine": "sglang"}, "generates with vllm"),
        ({"objective": "ppo", "rollout_accelerators": 8}, "share the GPUs"),
    ],
)
def test_what_openrlhf_has_no_words_for_is_refused(options, message):
    with pytest.raises(TonnageError, match=message):
        export("openrlhf", "train", {"model": "llama-3.1-8b", "on": "8xh100", **options})

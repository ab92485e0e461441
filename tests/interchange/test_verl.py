"""veRL: commands of its trainer and its YAML as questions, and commands written from answers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from of_frameworks import (
    ODD,
    ODD_OF_FILES,
    check_any,
    check_golden,
    golden,
    keys,
    of_command,
    question_of,
    round_trip,
    same,
    source,
    tree_text,
    why,
)

from every_row import every_row
from tonnage.interchange.check import answer
from tonnage.interchange.export import export
from tonnage.interchange.parts.verl.names import KNOWN
from tonnage.interchange.parts.verl.read import RENAMED
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, text_source
from tonnage.kernel.errors import InvalidInput, TonnageError

GOLDEN = golden("verl")
ARM = "actor_rollout_ref"
BASE = (
    f"{ARM}.model.path=Qwen/Qwen3-8B {ARM}.actor.ppo_micro_batch_size_per_gpu=1 {ARM}.actor.strategy=fsdp2 "
    "algorithm.adv_estimator=grpo trainer.n_gpus_per_node=8 trainer.nnodes=1"
)


def asked(words="", on="h100"):
    return of_command(f"python3 -m verl.trainer.main_ppo {BASE} {words}", on)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_published_script_asks_this_question(name):
    check_golden("verl", name, GOLDEN[name])


@pytest.mark.parametrize(("name", "status"), [("qwen3_14b_lora_awake.sh", 0), ("qwen3_8b_grpo.sh", 0)])
def test_a_published_script_is_answered(name, status):
    assert answer(source(f"verl/{name}"), Asker(on="h100")).status == status


KEYS = [
    ("data.max_prompt_length=1000 data.max_response_length=24", {"sequence_length": 1024}),
    (f"{ARM}.actor.ppo_mini_batch_size=64 {ARM}.rollout.n=4", {"global_batch_size": 256}),
    ("algorithm.adv_estimator=gae", {"objective": "ppo"}),
    ("algorithm.adv_estimator=rloo", {"objective": "grpo"}),
    (f"{ARM}.actor.fsdp_config.model_dtype=bf16", {"precision": "bf16"}),
    (f"{ARM}.actor.fsdp_config.reshard_after_forward=False", {"zero_stage": 2}),
    (f"{ARM}.actor.fsdp_config.fsdp_size=4", {"replicate_size": 2}),
    (f"{ARM}.actor.fsdp_config.fsdp_size=-1", {"replicate_size": None}),
    (
        f"{ARM}.actor.fsdp_config.offload_policy=True",
        {"offload_parameters": "cpu", "offload_optimizer": "cpu"},
    ),
    (
        f"{ARM}.actor.fsdp_config.param_offload=True {ARM}.actor.fsdp_config.optimizer_offload=True",
        {"offload_parameters": None, "offload_optimizer": None},
    ),
    (f"{ARM}.actor.ulysses_sequence_parallel_size=2", {"context_parallel_size": 2}),
    (f"{ARM}.model.enable_gradient_checkpointing=False", {"recompute": "none"}),
    (f"{ARM}.model.enable_activation_offload=True", {"offload_activations": "cpu"}),
    (f"{ARM}.model.lora_rank=8 {ARM}.model.target_modules=[q_proj,v_proj]", {"lora_targets": "q_proj,v_proj"}),
    (f"{ARM}.model.lora_rank=8", {"method": "lora", "lora_rank": 8, "lora_targets": None}),
    (f"{ARM}.actor.optim.optimizer=AdamW8bit", {"optimizer": "adamw-8bit"}),
    (f"{ARM}.rollout.gpu_memory_utilization=0.4", {"engine_memory_share": None}),
    (
        f"{ARM}.rollout.gpu_memory_utilization=0.4 {ARM}.rollout.free_cache_engine=False",
        {"engine_memory_share": 0.4},
    ),
    (f"{ARM}.rollout.free_cache_engine=False {ARM}.rollout.nnodes=1", {"engine_memory_share": None}),
    ("trainer.nnodes=2", {"on": "2x8xh100"}),
    (
        f"trainer.total_training_steps=10 data.train_batch_size=512 {ARM}.actor.ppo_mini_batch_size=256",
        {"max_steps": 10, "prompts_per_step": 512},
    ),
    (
        f"{ARM}.actor.use_dynamic_bsz=True {ARM}.actor.ppo_max_token_len_per_gpu=4096",
        {"micro_batch_size": 4},
    ),
    (
        f"{ARM}.actor.use_kl_loss=True {ARM}.ref.fsdp_config.param_offload=True",
        {"objective": "grpo", "beta": None},
    ),
    (f"{ARM}.actor.use_kl_loss=True", {"beta": 0.001}),
    (f"{ARM}.actor.use_kl_loss=True {ARM}.actor.kl_loss_coef=0.04", {"beta": 0.04}),
    (f"{ARM}.rollout.n=5", {"num_generations": 5, "rollout_tensor_parallel_size": 2, "rollout_memory_share": 0.5}),
    (
        f"data.max_prompt_length=1000 data.max_response_length=24 {ARM}.actor.ppo_epochs=2",
        {"max_completion_length": 24, "ppo_epochs": 2},
    ),
    (
        f"{ARM}.rollout.name=sglang {ARM}.rollout.tensor_model_parallel_size=4 {ARM}.rollout.max_num_seqs=64",
        {"rollout_engine": "sglang", "rollout_tensor_parallel_size": 4, "rollout_max_num_seqs": 64},
    ),
    (f"{ARM}.actor.fsdp_config.optimizer_offload=True", {"rollout_offload": True}),
    (f"{ARM}.model.use_remove_padding=True", {"sequence_packing": True}),
    (f"{ARM}.actor.ppo_micro_batch_size_per_gpu=16", {"loss": "full"}),
    (f"{ARM}.model.use_fused_kernels=True", {"loss": "tiled"}),
    (f"{ARM}.actor.entropy_coeff=0.001", {"loss": "full-entropy"}),
    (
        f"{ARM}.rollout.nnodes=2 {ARM}.rollout.n_gpus_per_node=4",
        {"rollout_accelerators": 8, "rollout_memory_share": None},
    ),
]


@every_row("words, options", KEYS, at_least=20)
def test_keys_decide_options(words, options):
    found = asked(words)
    assert {name: found.question.get(name) for name in options} == options
    assert not keys(found, "not understood")


UNCLEAR = [
    ("algorithm.adv_estimator=mine", "algorithm.adv_estimator"),
    ("reward_model.enable=True", "reward_model.enable"),
    ("distillation.enabled=True", "distillation.enabled"),
    (f"{ARM}.model.use_liger=True", f"{ARM}.model.use_liger"),
    (f"{ARM}.actor.strategy=veomni", f"{ARM}.actor.strategy"),
    (f"+{ARM}.model.override_config.num_hidden_layers=4", f"{ARM}.model.override_config.num_hidden_layers"),
    (f"{ARM}.rollout.temperature=0.7", f"{ARM}.rollout.temperature"),
    (f"{ARM}.actor.entropy_coeff=0.01 {ARM}.actor.use_torch_compile=False", f"{ARM}.actor.use_torch_compile"),
    ("trainer.v1.trainer_mode=separate_async", "trainer.v1.trainer_mode"),
]


@every_row("words, key", UNCLEAR)
def test_what_is_not_estimated_makes_the_verdict_unsure(words, key):
    found = asked(words)
    assert key in keys(found, "not understood")
    assert why(found, key)


def test_a_misspelled_key_gets_the_nearest_one():
    assert "did you mean trainer.nnodes" in why(asked("trainer.nnode=2"), "trainer.nnode")


def test_megatron_has_its_own_sizes():
    found = asked(
        f"--config-name=ppo_megatron_trainer {ARM}.actor.strategy=megatron "
        f"{ARM}.actor.megatron.tensor_model_parallel_size=4 "
        f"+{ARM}.actor.megatron.override_transformer_config.recompute_granularity=selective"
    )
    assert found.question["runtime"] == "megatron"
    assert (found.question["tensor_parallel_size"], found.question["recompute"]) == (4, "selective")
    assert found.question["objective"] == "grpo"


def test_the_critic_beside_an_actor_of_megatron_is_not_estimated():
    found = asked(f"--config-name=ppo_megatron_trainer {ARM}.actor.strategy=megatron algorithm.adv_estimator=gae")
    assert "objective" not in found.question
    assert "algorithm.adv_estimator" in keys(found, "not understood")
    assert any("own step" in note for note in found.notes)


@every_row(
    "words, message",
    [
        (f"{ARM}.actor.ppo_micro_batch_size_per_gpu=7", "must be a multiple of 7"),
        (f"{ARM}.actor.ulysses_sequence_parallel_size=3", "must divide the 8"),
        (f"{ARM}.rollout.gpu_memory_utilization=2", "a share from 0"),
        (f"{ARM}.actor.fsdp_config.fsdp_size=3", "a divisor of 8"),
        ("data.max_prompt_length=long", "must be a number"),
        ("trainer.nnodes=0", "above 0"),
        (f"{ARM}.actor.use_kl_loss=maybe", "true or false"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(words, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        asked(words)


def test_a_micro_batch_is_asked_for():
    with pytest.raises(InvalidInput, match="ppo_micro_batch_size_per_gpu"):
        of_command(f"python3 -m verl.trainer.main_ppo {ARM}.model.path=Qwen/Qwen3-8B")


@every_row("old, new", [(old, new) for old, new in RENAMED.items() if new in KNOWN])
def test_an_older_name_is_read_as_the_newer_one(old, new):
    value = "True" if "offload" in new or "liger" in new else "8"
    words = BASE.replace(" trainer.n_gpus_per_node=8 trainer.nnodes=1", "")
    found = of_command(f"python3 -m verl.trainer.main_ppo {words} {old}={value}", "h100")
    assert old not in keys(found, "not understood") or "liger" in new


def test_a_micro_batch_of_all_gpus_is_shared_by_them():
    words = BASE.replace("ppo_micro_batch_size_per_gpu=1", "ppo_micro_batch_size=16")
    assert of_command(f"python3 -m verl.trainer.main_ppo {words}", "h100").question["micro_batch_size"] == 2


LONG = (
    "qwen3-8b --on 8xh100 --objective grpo --gbs 128 --prompts-per-step 64 --num-generations 4 --prompt-length 300 "
    "--max-completion-length 1500 --rollout-tensor-parallel-size 2 --rollout-memory-share 0.6 --rollout-offload "
    "--rollout-engine sglang --sequence-length 4096 --mean-completion-length 700 --rollout-max-num-seqs 128 "
    "--ppo-epochs 2 --sequence-packing --beta 0.04 --mbs 2"
)
QUESTIONS = [
    "qwen3-8b --on 8xh100 --objective grpo --gbs 256 --seq 3072 --recompute full",
    "qwen3-8b --on 2x8xh100 --objective ppo --gbs 256 --seq 3072 --recompute full --precision bf16",
    "qwen3-8b --on 8xh100 --objective grpo --method lora --lora-rank 32 --engine-memory-share 0.4 --mbs 4",
    "qwen3-8b --on 8xh100 --objective grpo --zero 2 --recompute full --lora-targets q_proj --method lora",
    "qwen3-8b --on 8xh100 --objective grpo --offload-parameters cpu --offload-optimizer cpu --recompute full",
    LONG,
    "qwen3-32b --on 2x8xh100 --objective grpo --gbs 256 --seq 4096 --recompute full",
    "qwen3-8b --on 8xh100 --objective grpo --gbs 256 --seq 3072 --recompute full --loss full",
    "qwen3-8b --on 8xh100 --objective grpo --gbs 256 --seq 3072 --recompute full --loss full-entropy",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_written_is_read_as_the_same_plan(question):
    first, second, found = round_trip("verl", {**question_of(question), "runtime": "fsdp2"})
    assert same(first, second)
    assert found.document.is_sure


@pytest.mark.parametrize(
    ("objective", "lines"),
    [
        ("rloo", ("adv_estimator=rloo", "use_kl_loss=True", "kl_loss_coef=0.05")),
        ("dapo", ("adv_estimator=grpo", "clip_ratio_high=0.28", "recipe dapo alone")),
    ],
)
def test_rloo_and_dapo_are_written_as_settings_of_verl_that_need_as_much(objective, lines):
    question = f"qwen3-8b --on 8xh100 --objective {objective} --gbs 256 --seq 3072 --recompute full"
    asked = {**question_of(question), "runtime": "fsdp2"}
    text = export("verl", "train", asked).text
    assert all(line in text for line in lines)
    first, second, found = round_trip("verl", asked)
    assert found.document.is_sure
    assert first.memory.value == second.memory.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "grpo, dapo, rloo or ppo"),
        ({"objective": "grpo", "precision": "fp16-mixed"}, "bf16"),
        ({"objective": "grpo", "recompute": "selective"}, "every layer or none"),
        ({"objective": "grpo", "optimizer": "lion"}, "adamw"),
        ({"objective": "grpo", "runtime": "deepspeed"}, "fsdp2"),
        (
            {"objective": "grpo", "tensor_parallel_size": 2, "sequence_parallel": False},
            "has no tensor_parallel_size",
        ),
    ],
)
def test_what_verl_has_no_words_for_is_refused(options, message):
    with pytest.raises(TonnageError, match=message):
        export("verl", "train", {"model": "qwen3-8b", "on": "8xh100", **options})


ANY_KEY = st.sampled_from(sorted(KNOWN))


@given(st.lists(st.tuples(ANY_KEY, ODD), max_size=8), st.booleans())
def test_any_keys_are_understood_or_refused(pairs, complete):
    words = [*(BASE.split() if complete else []), *(f"{key}={value}" for key, value in pairs)]
    check_any(command_source(["python3", "-m", "verl.trainer.main_ppo", *words]), "verl", ("fsdp2", "megatron"))


@given(st.dictionaries(ANY_KEY, ODD_OF_FILES, max_size=8))
def test_any_fields_of_its_yaml_are_understood_or_refused(fields):
    base = {f"{ARM}.model.path": "gpt2", f"{ARM}.actor.ppo_micro_batch_size_per_gpu": 1}
    check_any(text_source(tree_text({**base, **fields}), "grpo.yaml"), "verl", ("fsdp2", "megatron"))


def test_empty_files_and_lists_end_in_a_message():
    for text in ("", "[]", "actor_rollout_ref:\n", "null"):
        with pytest.raises(InvalidInput):
            answer(text_source(text, "grpo.yaml"), Asker(on="8xh100", tool="verl"))


# ---- The SFT trainer: verl 0.9.1, verl/trainer/sft_trainer.py.

SFT = "torchrun --nproc_per_node 8 -m verl.trainer.sft_trainer model.path=meta-llama/Llama-3.1-8B "


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {"sequence_length": 1024, "micro_batch_size": 8, "global_batch_size": 256, "precision": "bf16-mixed"}),
        ("data.max_length=4096", {"sequence_length": 4096, "micro_batch_size": 2}),
        ("data.use_dynamic_bsz=False", {"micro_batch_size": 4}),
        ("data.use_dynamic_bsz=False data.micro_batch_size_per_gpu=2", {"micro_batch_size": 2}),
        ("engine.ulysses_sequence_parallel_size=2", {"context_parallel_size": 2, "micro_batch_size": 16}),
        ("engine.model_dtype=bf16", {"precision": "bf16"}),
        ("model.lora_rank=32", {"method": "lora", "lora_rank": 32}),
        ("engine=megatron engine.tensor_model_parallel_size=2", {"runtime": "megatron", "tensor_parallel_size": 2}),
        ("model.enable_gradient_checkpointing=False", {"recompute": "none"}),
    ],
)
def test_keys_of_the_sft_trainer_decide_options(words, options):
    found = of_command(SFT + words, on="h100")
    assert found.document.is_sure
    assert {name: found.question.get(name) for name in options} == options
    assert (found.question["objective"], found.question["on"]) == ("sft", "8xh100")
    assert not {key.key for key in found.document.keys if key.key.startswith("actor_rollout_ref")} - {
        "actor_rollout_ref.actor.strategy",
        "actor_rollout_ref.actor.fsdp_config.model_dtype",
        "actor_rollout_ref.model.enable_gradient_checkpointing",
    }  # these are defaults that are assumed


def test_an_engine_of_the_sft_trainer_that_is_not_estimated_is_said():
    found = of_command(SFT + "engine=veomni", on="h100")
    assert [key.key for key in found.document.keys if key.status == "not understood"] == ["engine"]

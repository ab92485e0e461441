"""What TRL's trainers add to TrainingArguments: objectives, lengths, packing, the engine that generates.

Source: TRL 1.16, trl/trainer/{base,sft,dpo,grpo,kto,rloo,reward,distillation}_config.py.
"""

from tonnage.interchange.parts.hugging_face.keys import default_of, expect
from tonnage.interchange.parts.hugging_face.script_arguments import read_length
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.kernel.message import Message
from tonnage.runtimes.parts.rl_tools import TRL as TOOL

VERSION = TOOL.version
TRL = ("TRL", VERSION)
TRAINERS = {
    "sft": "sft",
    "dpo": "dpo",
    "grpo": "grpo",
    "rloo": "rloo",
    "kto": "dpo",
    "reward": "sft",
    "distillation": "distillation",
    "gkd": "gkd",
    "online_dpo": "dpo",
    "orpo": "dpo",
    "cpo": "dpo",
}
CLOSE = {
    "kto": "KTO is estimated as DPO, which has two sequences of each pair",
    "reward": "a reward model is estimated as the model with its head",
    "online_dpo": "online DPO is estimated as DPO, without the generation of its completions",
    "orpo": "ORPO is estimated as DPO, which has a reference model besides",
    "cpo": "CPO is estimated as DPO, which has a reference model besides",
}
GENERATIONS = {"grpo": 8, "rloo": 2}  # of a prompt: num_generations of TRL's configs
NEW_TOKENS = 128  # of a completion of GKD
PROMPT = 512  # tokens of a prompt, max_prompt_length of TRL before 0.27; TRL 1.16 does not cut prompts
# Names that only TRL's configs have, with the trainers that they are of; () of several.
SIGNS: dict[str, tuple[str, ...]] = {
    "num_generations": ("grpo",),
    "max_completion_length": ("grpo",),
    "num_iterations": ("grpo",),
    "scale_rewards": ("grpo",),
    "reward_weights": ("grpo",),
    "reward_funcs": ("grpo",),
    "vllm_mode": ("grpo",),
    "vllm_gpu_memory_utilization": ("grpo",),
    "steps_per_generation": ("grpo",),
    "precompute_ref_log_probs": ("dpo",),
    "precompute_ref_batch_size": ("dpo",),
    "max_prompt_length": ("dpo",),
    "f_divergence_type": ("dpo",),
    "desirable_weight": ("kto",),
    "undesirable_weight": ("kto",),
    "center_rewards_coefficient": ("reward",),
    "teacher_model_name_or_path": ("distillation",),
    "assistant_only_loss": ("sft",),
    "completion_only_loss": ("sft",),
    "packing_strategy": ("sft",),
    "dataset_train_split": (),
    "dataset_test_split": (),
    "use_peft": (),
    "lora_r": (),
    "lora_target_modules": (),
    "max_length": (),
    "packing": (),
    "use_bnb_nested_quant": (),
    "attn_implementation": (),
    "activation_offloading": (),
    "dataset_text_field": (),
    "accelerate_config": (),
}
HARMLESS = names(
    "beta ld_alpha f_divergence_type f_alpha_divergence_coef label_smoothing use_weighting discopop_tau loss_weights "
    "num_generations num_generations_eval shuffle_dataset generation_batch_size steps_per_generation temperature "
    "top_p top_k min_p generation_kwargs chat_template_kwargs repetition_penalty vllm_model_impl "
    "vllm_structured_outputs_regex vllm_server_base_url vllm_server_host vllm_server_port vllm_server_timeout "
    "vllm_group_port vllm_max_model_length vllm_tensor_parallel_size num_iterations epsilon delta epsilon_high "
    "sapo_temperature_neg sapo_temperature_pos vespo_k_pos vespo_lambda_pos vespo_k_neg vespo_lambda_neg "
    "importance_sampling_level reward_weights multi_objective_aggregation scale_rewards mask_truncated_completions "
    "ref_model_mixup_alpha ref_model_sync_steps max_tool_calling_iterations vllm_importance_sampling_correction "
    "vllm_importance_sampling_mode vllm_importance_sampling_clip_max vllm_importance_sampling_clip_min "
    "vllm_importance_sampling_cap off_policy_mask_threshold use_bias_correction_kl log_completions log_multimodal "
    "num_completions_to_print log_unique_prompts log_completions_hub_repo ds3_gather_for_generation "
    "reward_funcs normalize_advantages reward_clip_range desirable_weight undesirable_weight disable_dropout "
    "center_rewards_coefficient teacher_model_revision teacher_model_init_kwargs pad_to_multiple_of "
    "precompute_ref_batch_size eval_packing router_aux_loss_coef max_prompt_length loss_type gradient_checkpointing "
    "use_adaptive_entropy entropy_coef_min entropy_coef_max entropy_coef_delta "
    "entropy_target"
)
KEYS = names(
    "max_length packing packing_strategy padding_free activation_offloading precompute_ref_log_probs sync_ref_model "
    "lmbda seq_kd max_new_tokens max_completion_length use_vllm vllm_mode vllm_gpu_memory_utilization "
    "vllm_enable_sleep_mode cache_implementation "
    "cast_lm_head_to_fp32 top_entropy_quantile entropy_coef use_transformers_paged "
    "use_transformers_continuous_batching reward_model_name_or_path teacher_model_name_or_path max_seq_length"
)


def trainer_of(values: dict[str, object], hint: str) -> str:
    """The trainer: what a script or a file is called, else what its keys are of."""
    lower = hint.lower()
    if "online_dpo" in lower:
        return "online_dpo"
    for name in ("orpo", "cpo", "grpo", "dpo", "rloo", "kto", "reward", "distillation", "gkd", "sft"):
        if name in lower:
            return name
    votes = [one for key, trainers in SIGNS.items() if key in values for one in trainers]
    return max(sorted(set(votes)), key=votes.count) if votes else "sft"


def read_trainer(r: Reading, trainer: str) -> None:
    """Objective, lengths and what the trainer's own settings decide."""
    objective = TRAINERS[trainer]
    r.put("objective", objective, "trainer", why=CLOSE.get(trainer, ""))
    if trainer in CLOSE:
        r.values.setdefault("trainer", trainer)
        r.unsure("trainer", CLOSE[trainer])
    if objective in (*GENERATIONS, "distillation") and trainer != "gkd":
        _generated(r)
    else:
        _written_length(r)
    if objective == "gkd":
        _student(r)
    if objective == "sft":
        _packing(r)
    _other_models(r, objective)
    _loss(r, objective)
    key = "activation_offloading"
    if r.has(key) and r.flag(key):
        r.put("offload_activations", "cpu", key)
    r.ignore([key, "trainer"])
    if r.has("disable_dropout"):
        r.put("dropout", False if r.flag("disable_dropout") else None, "disable_dropout")
    elif trainer in ("dpo", "kto", "reward", "gkd", "online_dpo", "orpo", "cpo"):
        r.assume("disable_dropout", True, "dropout", why=default_of(*TRL))
        r.question["dropout"] = False
    r.ignore([*HARMLESS, *(f"{name}." for name in HARMLESS if name.endswith("kwargs"))])


def _written_length(r: Reading) -> None:
    if "max_length" in r.values and r.values["max_length"] is None:
        r.unsure("max_length", "sequences are not cut: how long they are is not known")
    elif not read_length(r):
        r.assume("max_length", TOOL.sequence_length, "sequence_length", why=default_of(*TRL))


def _student(r: Reading) -> None:
    """What the student of GKD generates (trl/experimental/gkd/gkd_config.py: max_new_tokens, lmbda)."""
    longest, length = r.size("max_new_tokens", NEW_TOKENS), r.question.get("sequence_length", TOOL.sequence_length)
    if longest < length:
        r.put("max_completion_length", longest, *(["max_new_tokens"] if r.has("max_new_tokens") else []))
        r.assume("max_new_tokens", NEW_TOKENS, "max_completion_length", why=default_of(*TRL))
    if r.has("lmbda"):
        r.put("lmbda", r.number("lmbda"), "lmbda")
    expect(r, ["seq_kd"], False, why="a teacher that generates is not estimated")
    if r.has("beta") and r.number("beta") in (0, 1):
        r.notes.append(
            Message("The divergence is estimated with both models' mixture, which {@beta} 0 and 1 leave out.")
        )


def _generated(r: Reading) -> None:
    """Prompt and completion; the prompt's length is not in TRL's config."""
    completion = r.integer("max_completion_length", 512)
    prompt = r.integer("max_prompt_length", PROMPT)
    if completion < 1 or prompt < 1:
        raise r.wrong("max_completion_length" if completion < 1 else "max_prompt_length", "a number from 1")
    keys = [key for key in ("max_completion_length", "max_prompt_length") if r.has(key)]
    r.put("sequence_length", completion + prompt, *keys)
    if not r.has("max_completion_length"):
        r.assume("max_completion_length", completion, "sequence_length", why=default_of(*TRL))
    if not r.has("max_prompt_length"):
        r.assume(
            "max_prompt_length", prompt, "sequence_length", why="TRL does not cut prompts: their length is a guess"
        )
    r.question["sequence_length"], r.origins["sequence_length"] = completion + prompt, tuple(keys)
    if r.question.get("objective") in GENERATIONS:
        _group(r, completion)
    _engine(r)


def _group(r: Reading, completion: int) -> None:
    """Completions of a prompt, those of a step of generation, and how often they are trained on."""
    r.put("max_completion_length", completion, *(["max_completion_length"] if r.has("max_completion_length") else []))
    usual = GENERATIONS[r.question["objective"]]
    keys = ["num_generations"] if r.has("num_generations") else []
    r.put("num_generations", r.size("num_generations", usual), *keys)
    if r.has("num_iterations"):
        r.put("ppo_epochs", r.size("num_iterations"), "num_iterations")
    key = "generation_batch_size"
    made = r.size(key)
    if not made and r.has("steps_per_generation"):
        key = "steps_per_generation"
        made = r.size(key) * r.size("per_device_train_batch_size", 8) * r.num_accelerators
    if made and r.has("num_generations"):
        r.put("prompts_per_step", made // r.question["num_generations"], key)
    if not (r.has("use_vllm") and r.flag("use_vllm")):
        r.put("rollout_engine", "hf", *(["use_vllm"] if r.has("use_vllm") else []))
    elif r.has("vllm_tensor_parallel_size") and r.text("vllm_mode", "colocate") == "colocate":
        key = "vllm_tensor_parallel_size"
        r.put("rollout_tensor_parallel_size", r.size(key), key)


def _engine(r: Reading) -> None:
    """vLLM that generates on the same accelerators."""
    share = "vllm_gpu_memory_utilization"
    if not (r.has("use_vllm") and r.flag("use_vllm")):
        r.notes.append("generation by transformers itself: the memory of its cache is not estimated.")
        r.ignore([share, "vllm_mode", "use_vllm", "vllm_enable_sleep_mode"], why="vLLM is not used")
    elif r.choice("vllm_mode", {"colocate": "colocate", "server": "server"}, "colocate") == "server":
        r.ignore([share, "vllm_mode", "use_vllm", "vllm_enable_sleep_mode"], why="vLLM runs on other accelerators")
    else:
        sleeps = r.question.get("objective") in GENERATIONS and r.has("vllm_enable_sleep_mode")
        sleeps = sleeps and r.flag("vllm_enable_sleep_mode")
        option = "rollout_memory_share" if sleeps else "engine_memory_share"
        r.put(option, None, "use_vllm", "vllm_mode", *(["vllm_enable_sleep_mode"] if sleeps else []))
        if r.has(share):
            r.put(option, r.number(share), share)
        else:
            r.assume(share, 0.3, option, why=default_of(*TRL))
        expect(
            r, ["vllm_enable_sleep_mode"], False, why="an engine that frees its memory while training is not estimated"
        )
    expect(
        r,
        ["use_transformers_paged", "use_transformers_continuous_batching", "cast_lm_head_to_fp32"],
        False,
        why="it is not estimated",
    )
    expect(r, ["cache_implementation"], why="how it changes the memory of generation is not estimated")
    expect(r, ["top_entropy_quantile"], 1, 1.0, why="the entropy of every token is not estimated")
    expect(r, ["entropy_coef"], 0, 0.0, why="the entropy of every token is not estimated")
    r.ignore(["transformers_continuous_batching_config", "transformers_continuous_batching_config."])


def _packing(r: Reading) -> None:
    if r.has("packing") and r.flag("packing"):
        is_cut = r.text("packing_strategy", "bfd") == "wrapped"
        r.put("packing", not is_cut, "packing", "packing_strategy", why="rows of one text" if is_cut else "")
    r.ignore(["packing", "packing_strategy"])
    r.ignore(["padding_free"], why="full sequences, as are estimated, have no padding")


def _other_models(r: Reading, objective: str) -> None:
    """Models that run beside the one that trains."""
    if r.has("beta") and objective in GENERATIONS:
        r.put("beta", r.number("beta"), "beta")
    if r.has("precompute_ref_log_probs") and r.flag("precompute_ref_log_probs"):
        r.unsure("precompute_ref_log_probs", "the reference model that is estimated is then not in memory")
    r.ignore(["precompute_ref_log_probs"])
    expect(r, ["sync_ref_model"], False, why="a reference model of its own is not estimated")
    expect(r, ["reward_model_name_or_path"], "", why="a reward model on the same accelerators is not estimated")
    r.ignore(["padding_free"], why="full sequences, as are estimated, have no padding")
    key = "teacher_model_name_or_path"
    if r.has(key):
        r.put("teacher", r.text(key), key)


def _loss(r: Reading, objective: str) -> None:
    if objective == "sft":
        r.notes.append(
            Message("{tool} takes the loss in parts; the estimate has all logits at once, which is more.", tool="TRL")
        )

"""What veRL's keys say of the step in which the actor trains: verl 0.9.1, verl/trainer/config and verl/workers/config.

The engine that generates sleeps while the actor trains (rollout.free_cache_engine), and what param_offload and
optimizer_offload move to the host comes back for the update: both change the time of a step, not what it needs.
"""

from tonnage.interchange.parts.verl.actor import read_adapters, read_fsdp, read_megatron, read_model
from tonnage.interchange.parts.verl.generation import read_generation
from tonnage.interchange.parts.verl.names import KNOWN
from tonnage.interchange.parts.verl.values import ACTOR, ARM, FSDP, MEGATRON, MODEL, REF, ROLLOUT, on, size, size_or_0
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

# Older names of keys: old -> new.
RENAMED = {
    f"{ARM}rollout.micro_batch_size": f"{ROLLOUT}log_prob_micro_batch_size",
    f"{ARM}rollout.log_prob_micro_batch_size_per_device": f"{ROLLOUT}log_prob_micro_batch_size_per_gpu",
    f"{ARM}actor.micro_batch_size": f"{ACTOR}ppo_micro_batch_size",
    f"{ARM}actor.fsdp_config.grad_offload": f"{FSDP}param_offload",
    "actor_rollout_ref.model.use_liger_kernel": f"{MODEL}use_liger",
    "algorithm.kl_ctrl.coef": "algorithm.kl_ctrl.kl_coef",
    "trainer.gpus_per_node": "trainer.n_gpus_per_node",
    "trainer.n_nodes": "trainer.nnodes",
}
# Estimators of advantages: those with a critic, and those that compare samples.
WITH_CRITIC = ("gae",)
WITHOUT = (
    "grpo",
    "grpo_passk",
    "grpo_vectorized",
    "reinforce_plus_plus",
    "reinforce_plus_plus_baseline",
    "remax",
    "rloo",
    "rloo_vectorized",
    "opo",
    "gpg",
    "gdpo",
    "optimal_token_baseline",
    "tir_optimal_token_baseline",
)
KL = 0.001  # actor.kl_loss_coef and algorithm.kl_ctrl.kl_coef where nobody says them
# Sections that decide neither memory nor time of the step.
OPEN = (
    "global_profiler.",
    "sandbox_fusion.",
    "ray_kwargs.",
    "ray_init.",
    "skip.",
    "transfer_queue.",
    "hydra.",
    "defaults",
    "reward.custom_reward_function.",
    "reward.reward_manager.",
    "reward.sandbox_fusion.",
    "custom_reward_function.",
    "reward_model.reward_kwargs.",
    f"{ACTOR}policy_loss.",
    f"{ROLLOUT}trace.",
    f"{ROLLOUT}val_kwargs.",
    f"{ROLLOUT}agent.",
    f"{ROLLOUT}multi_turn.",
    f"{ROLLOUT}engine_kwargs.",
    f"{ROLLOUT}prometheus.",
    "data.custom_cls.",
    "data.apply_chat_template_kwargs.",
    "algorithm.rollout_correction.",
    "algorithm.filter_groups.",
    "algorithm.pf_ppo.",
    "algorithm.kl_ctrl.",
)


def read_run(r: Reading) -> None:
    """Read a run of main_ppo. The defaults of the configuration that the command names are in place."""
    r.verb = "train"
    r.rename(RENAMED)
    nodes, per_node = size(r, "trainer.nnodes", 1), size(r, "trainer.n_gpus_per_node", 8)
    r.assume("trainer.nnodes", 1)
    r.assume("trainer.n_gpus_per_node", 8)
    r.count_machines(nodes=nodes, per_node=per_node)
    r.put("on", None, "trainer.nnodes", "trainer.n_gpus_per_node")
    r.put("model", r.text(f"{MODEL}path") if r.has(f"{MODEL}path") else None, f"{MODEL}path")
    r.fill({f"{ACTOR}strategy": "fsdp"})
    strategy = r.text(f"{ACTOR}strategy")
    if strategy not in ("fsdp", "fsdp2", "megatron", "fsdp_multi"):
        r.unsure(f"{ACTOR}strategy", "the actor is estimated with FSDP or Megatron")
    is_megatron = strategy == "megatron"
    r.put("runtime", "megatron" if is_megatron else "fsdp2", f"{ACTOR}strategy")
    _batch(r)
    _algorithm(r, is_megatron)
    _engine(r, is_megatron)
    read_generation(r, is_megatron)
    _steps(r, size(r, f"{ACTOR}ppo_mini_batch_size", 256))
    read_adapters(r, is_megatron)
    if is_megatron:
        read_megatron(r)
    else:
        read_fsdp(r)
    read_model(r, is_megatron)
    read_rest(r)


def _batch(r: Reading) -> None:
    """Tokens of a sequence, sequences of a micro-batch, and those of an update."""
    prompt, response = size(r, "data.max_prompt_length", 512), size(r, "data.max_response_length", 512)
    for key in ("data.max_prompt_length", "data.max_response_length"):
        r.assume(key, 512, "sequence_length")
    length = prompt + response
    r.put("sequence_length", length, "data.max_prompt_length", "data.max_response_length")
    samples = size(r, f"{ROLLOUT}n", 1)
    r.assume(f"{ROLLOUT}n", 1, "")
    prompts = size(r, f"{ACTOR}ppo_mini_batch_size", 256)
    r.assume(f"{ACTOR}ppo_mini_batch_size", 256)
    r.put("global_batch_size", prompts * samples, f"{ACTOR}ppo_mini_batch_size", f"{ROLLOUT}n")
    if on(r, f"{ACTOR}use_dynamic_bsz"):
        tokens = size(r, f"{ACTOR}ppo_max_token_len_per_gpu", 16384)
        r.assume(f"{ACTOR}ppo_max_token_len_per_gpu", 16384, "micro_batch_size")
        tokens *= size(r, f"{ACTOR}ulysses_sequence_parallel_size", 1)
        keys = (f"{ACTOR}ppo_max_token_len_per_gpu", f"{ACTOR}use_dynamic_bsz")
        r.put("micro_batch_size", fitting(r, max(1, tokens // length), prompts * samples), *keys)
    elif r.has(f"{ACTOR}ppo_micro_batch_size_per_gpu"):
        key = f"{ACTOR}ppo_micro_batch_size_per_gpu"
        r.put("micro_batch_size", size(r, key), key)
    elif r.has(f"{ACTOR}ppo_micro_batch_size"):
        key = f"{ACTOR}ppo_micro_batch_size"
        r.put("micro_batch_size", max(1, size(r, key) // replicas(r)), key)
    else:
        raise InvalidInput(
            "{file} needs actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu, or use_dynamic_bsz.",
            file=r.source.name,
        )
    per_gpu = r.question["micro_batch_size"] * replicas(r)
    if prompts * samples % per_gpu:
        raise InvalidInput(
            "{file}: ppo_mini_batch_size {prompts} x n {samples} must be a multiple of {micro} sequences of a "
            "micro-batch x {replicas} replicas.",
            file=r.source.name,
            prompts=prompts,
            samples=samples,
            micro=r.question["micro_batch_size"],
            replicas=replicas(r),
        )


def fitting(r: Reading, most: int, total: int) -> int:
    """The largest micro-batch up to `most` whose replicas divide the batch."""
    per_replica = max(1, total // replicas(r))
    return next(count for count in range(min(most, per_replica), 0, -1) if per_replica % count == 0)


def replicas(r: Reading) -> int:
    """Ranks that see different sequences."""
    if r.text(f"{ACTOR}strategy", "fsdp") == "megatron":
        shared = size(r, f"{MEGATRON}tensor_model_parallel_size", 1)
        shared *= size(r, f"{MEGATRON}pipeline_model_parallel_size", 1)
        shared *= size(r, f"{MEGATRON}context_parallel_size", 1)
    else:
        shared = size(r, f"{ACTOR}ulysses_sequence_parallel_size", 1)
    ranks = r.num_accelerators
    if ranks % shared:
        raise InvalidInput(
            "{file}: {shared} ranks that share a sequence must divide the {ranks} accelerators.",
            file=r.source.name,
            shared=shared,
            ranks=ranks,
        )
    return ranks // shared


def _steps(r: Reading, prompts: int) -> None:
    """Steps of the run; where the actor's own step is estimated, several updates for each batch of prompts."""
    key = "trainer.total_training_steps"
    if r.has(key) and r.integer(key) > 0:
        updates = max(1, size(r, "data.train_batch_size", 1024) // prompts) * size(r, f"{ACTOR}ppo_epochs", 1)
        is_whole = "prompts_per_step" in r.question
        more = () if is_whole else ("data.train_batch_size", f"{ACTOR}ppo_epochs")
        r.put("max_steps", r.integer(key) * (1 if is_whole else updates), key, *more)
    r.ignore(["data.train_batch_size", f"{ACTOR}ppo_epochs", "trainer.total_epochs"], why="the length of the run")


def _algorithm(r: Reading, is_megatron: bool) -> None:
    """The objective, and the models that it holds beside the actor."""
    key = "algorithm.adv_estimator"
    name = r.text(key, "gae").lower()
    if name not in (*WITH_CRITIC, *WITHOUT):
        r.unsure(key, "no estimator of advantages that is known: GRPO is estimated")
    objective = "ppo" if name in WITH_CRITIC else "grpo"
    if is_megatron and objective == "ppo":
        r.notes.append(Message("The actor's own step is estimated: Megatron is estimated with one model alone."))
        r.unsure(key, "the critic that trains beside the actor is not estimated with Megatron")
    else:
        if name in (*WITH_CRITIC, *WITHOUT):
            r.put("objective", objective, key)
        r.assume(key, "gae", "objective")
        r.question["objective"] = objective
    _reference(r, objective)
    scored = on(r, "reward_model.enable") or on(r, "reward.reward_model.enable")
    if objective == "ppo" and not scored:
        r.notes.append(Message("PPO is estimated with a reference and a reward model of the actor's size."))
    for name in ("reward_model.enable", "reward.reward_model.enable"):
        if on(r, name) and objective == "grpo":
            r.unsure(name, "a reward model beside GRPO is not estimated")
    r.ignore(["reward_model.enable", "reward.reward_model.enable"])
    if on(r, "distillation.enabled"):
        r.unsure("distillation.enabled", "a teacher beside reinforcement learning is not estimated")
    if objective == "ppo":
        path, own = r.get("critic.model.path"), r.get(f"{MODEL}path")
        if path is not None and path != own:
            r.unsure("critic.model.path", "the critic is estimated with the actor's size")


def _reference(r: Reading, objective: str) -> None:
    """A reference model of GRPO: held beside the actor, except with adapters, or on the host."""
    keys = [key for key in (f"{ACTOR}use_kl_loss", "algorithm.use_kl_in_reward") if on(r, key)]
    adapters = size_or_0(r, f"{MODEL}lora_rank") or size_or_0(r, f"{MODEL}lora.rank")
    places = (f"{REF}fsdp_config.param_offload", f"{REF}megatron.param_offload")
    offloaded = any(on(r, key) for key in places)
    for key in keys:
        if objective == "ppo" or adapters or offloaded:
            r.ignore([key], why="the reference model is estimated, or needs no memory of the step")
        else:
            number = f"{ACTOR}kl_loss_coef" if key.endswith("kl_loss") else "algorithm.kl_ctrl.kl_coef"
            r.put("beta", r.number(number, KL) or KL, key, number)
    r.ignore([f"{ACTOR}use_kl_loss", "algorithm.use_kl_in_reward", *places])


def _engine(r: Reading, is_megatron: bool) -> None:
    """Memory of the engine that generates: its own while it generates, none in the step where it sleeps."""
    key = f"{ROLLOUT}gpu_memory_utilization"
    share = r.number(key, 0.5) if r.has(key) else 0.5
    if not 0 <= share < 1:
        raise r.wrong(key, "a share from 0 to below 1")
    sleeps = on(r, f"{ROLLOUT}free_cache_engine", True)
    elsewhere = size_or_0(r, f"{ROLLOUT}nnodes") > 0 or not on(r, f"{ARM}hybrid_engine", True)
    stays = not sleeps and not elsewhere and not is_megatron
    why = "" if stays else "the engine sleeps, or is elsewhere, while the actor trains"
    if not sleeps and not elsewhere and is_megatron:
        r.unsure(f"{ROLLOUT}free_cache_engine", "an engine that stays awake is estimated beside FSDP alone")
    r.put("engine_memory_share", share if stays else None, key, f"{ROLLOUT}free_cache_engine", why=why)
    if not is_megatron:
        r.assume(key, 0.5)
        r.assume(f"{ROLLOUT}free_cache_engine", True)
    if not stays and not elsewhere:
        r.notes.append(
            Message("While it generates, the engine takes {share} of each accelerator beside the actor.", share=share)
        )


def read_rest(r: Reading) -> None:
    """What decides nothing: all other keys that veRL has, and sections that are open to any name."""
    r.ignore(OPEN)
    for key in [key for key in r.values if ".profiler." in key or ".checkpoint." in key or key.endswith("_target_")]:
        r.ignore([key])
    trained_in_4_bits = [key for key in r.values if key.endswith(".qat.enable")]
    for key in (f"{ACTOR}freeze_vision_tower", f"{ACTOR}use_prefix_grouper", *trained_in_4_bits):
        r.needs_default(key, "false", "False", why="it is not estimated")
    r.ignore([key for key in r.values if ".qat." in key], why="no weights train in 4 bits")
    r.ignore([key for key in r.values if ".turbo_config." in key], why="of the strategy fsdp_turbo alone")
    if r.text("trainer.v1.trainer_mode", "sync") not in ("sync", "colocate_async"):
        r.unsure(
            "trainer.v1.trainer_mode", "the engine and the actor have machines of their own, which is not estimated"
        )
    r.needs_default(f"{MEGATRON}override_mcore_model_config", {}, why="another model than its config is not read")
    r.ignore([key for key in r.values if key in KNOWN])
    r.ignore([key for key, value in r.values.items() if value is None and key.startswith((ARM, "critic.", "trainer."))])

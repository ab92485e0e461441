"""What veRL's keys say of the completions that a step generates, and of the engine that does: verl 0.9.1,
verl/trainer/config/rollout/rollout.yaml. Its lengths are the longest of prompts and completions: no key has the means.
"""

from tonnage.interchange.parts.verl.values import ACTOR, ARM, FSDP, MEGATRON, MODEL, ROLLOUT, on, size, size_or_0
from tonnage.interchange.reading import Reading

ENGINES = ("vllm", "sglang", "hf")
RANKS = 2  # rollout.tensor_model_parallel_size where nobody says it


def read_generation(r: Reading, is_megatron: bool) -> None:
    """Prompts, completions and the engine of a step. The objective, batch and lengths are read."""
    if "objective" not in r.question:
        _rest(r)
        return
    samples, prompts = size(r, f"{ROLLOUT}n", 1), size(r, f"{ACTOR}ppo_mini_batch_size", 256)
    r.put("num_generations", samples, f"{ROLLOUT}n")
    r.question["num_generations"] = samples
    r.put("max_completion_length", size(r, "data.max_response_length", 512), "data.max_response_length")
    at_once = size(r, "data.train_batch_size", 1024)
    if at_once % prompts == 0:
        r.put("prompts_per_step", at_once, "data.train_batch_size")
        r.assume("data.train_batch_size", 1024, "prompts_per_step")
    r.put("ppo_epochs", size(r, f"{ACTOR}ppo_epochs", 1), f"{ACTOR}ppo_epochs")
    apart = size_or_0(r, f"{ROLLOUT}nnodes") * size(r, f"{ROLLOUT}n_gpus_per_node", 8)
    if apart > 0:
        r.put("rollout_accelerators", apart, f"{ROLLOUT}nnodes", f"{ROLLOUT}n_gpus_per_node")
    _engine(r, apart or r.num_accelerators)
    sleeps = on(r, f"{ROLLOUT}free_cache_engine", True)
    is_beside = apart == 0 and on(r, f"{ARM}hybrid_engine", True)
    key = f"{ROLLOUT}gpu_memory_utilization"
    if is_beside and (sleeps or is_megatron) and r.number(key, 0.5) > 0:
        r.put("rollout_memory_share", r.number(key, 0.5), key)
        r.assume(key, 0.5, "rollout_memory_share")
    section = MEGATRON if is_megatron else FSDP
    keys = [key for key in (f"{section}param_offload", f"{section}optimizer_offload") if on(r, key)]
    if is_beside and keys and not on(r, f"{FSDP}offload_policy"):
        r.put("rollout_offload", True, *keys)
    if r.has(f"{MODEL}use_remove_padding"):
        r.put("sequence_packing", on(r, f"{MODEL}use_remove_padding"), f"{MODEL}use_remove_padding")
    _rest(r)


def _engine(r: Reading, ranks: int) -> None:
    """The engine and its ranks."""
    key = f"{ROLLOUT}name"
    if r.has(key) and r.text(key) in ENGINES:
        r.put("rollout_engine", r.text(key), key)
    key = f"{ROLLOUT}tensor_model_parallel_size"
    usual = RANKS if ranks % RANKS == 0 else 1
    r.put("rollout_tensor_parallel_size", size(r, key, usual), key)
    r.assume(key, usual, "rollout_tensor_parallel_size")
    if r.has(f"{ROLLOUT}max_num_seqs"):
        r.put("rollout_max_num_seqs", size(r, f"{ROLLOUT}max_num_seqs", 256), f"{ROLLOUT}max_num_seqs")


def _rest(r: Reading) -> None:
    r.ignore([f"{ROLLOUT}nnodes", f"{ROLLOUT}n_gpus_per_node", f"{ARM}hybrid_engine"])

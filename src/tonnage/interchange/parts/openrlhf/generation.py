"""What OpenRLHF's arguments say of the completions that a step generates: openrlhf 0.11.2, openrlhf/cli.

`rollout.batch_size` counts prompts, `train.batch_size` completions; `data.max_len` is prompt and completion together.
"""

from tonnage.interchange.reading import Reading

NEW_TOKENS = 1024  # rollout.max_new_tokens, and generate_max_len before 0.9, where nobody says them


def read_generation(r: Reading, shares: bool) -> None:
    """Prompts, completions and the engine of a step; `shares`: the engine runs on the actor's GPUs."""
    samples = r.size("rollout.n-samples-per-prompt", 1)
    r.put("num_generations", samples, "rollout.n-samples-per-prompt")
    r.question["num_generations"] = samples
    prompts, update = r.size("rollout.batch-size", 1024), r.size("train.batch-size", 128)
    if prompts * samples % update == 0:
        r.put("prompts_per_step", prompts, "rollout.batch-size")
        r.assume("rollout.batch-size", 1024, "prompts_per_step")
    old = r.has("generate-max-len") or r.has("prompt-max-len")
    key = "generate-max-len" if old else "rollout.max-new-tokens"
    longest, length = r.size(key, NEW_TOKENS), r.question.get("sequence_length", 2048)
    if longest < length:
        r.put("max_completion_length", longest, key)
        r.assume(key, NEW_TOKENS, "max_completion_length")
    r.put("ppo_epochs", r.size("train.max-epochs", 1), "train.max-epochs")
    ranks, engines = r.size("vllm.tensor-parallel-size", 1), r.size("vllm.num-engines", 0)
    r.put("rollout_tensor_parallel_size", ranks, "vllm.tensor-parallel-size")
    if shares:
        r.put("rollout_offload", True if _on(r, "ds.enable-sleep") else None, "ds.enable-sleep")
    elif engines:
        r.put("rollout_accelerators", engines * ranks, "vllm.num-engines")
        r.put("async_steps", 1 if _on(r, "train.async-enable") else None, "train.async-enable")
    r.put("sequence_packing", True if _on(r, "ds.packing-samples") else None, "ds.packing-samples")


def _on(r: Reading, key: str) -> bool:
    return r.has(key) and r.flag(key)

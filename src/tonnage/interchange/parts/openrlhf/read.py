"""What OpenRLHF's arguments say of a training step: openrlhf 0.11.2, openrlhf/cli and openrlhf/utils/deepspeed."""

from tonnage.interchange.parts.openrlhf.generation import read_generation
from tonnage.interchange.parts.openrlhf.names import KNOWN
from tonnage.interchange.reading import Reading
from tonnage.kernel.message import Message

PROGRAM = "program"
OBJECTIVES = {"train_ppo_ray": "ppo", "train_sft": "sft", "train_dpo": "dpo", "train_rm": "sft", "train_kd": "sft"}
# Names of releases before 0.11, which had no sections: old -> new. `pretrain` is the model of either kind of program.
RENAMED = {
    "actor-num-nodes": "actor.num-nodes",
    "actor-num-gpus-per-node": "actor.num-gpus-per-node",
    "critic-num-nodes": "critic.num-nodes",
    "critic-num-gpus-per-node": "critic.num-gpus-per-node",
    "ref-num-nodes": "ref.num-nodes",
    "ref-num-gpus-per-node": "ref.num-gpus-per-node",
    "reward-num-nodes": "reward.num-nodes",
    "reward-num-gpus-per-node": "reward.num-gpus-per-node",
    "colocate-all-models": "train.colocate-all",
    "colocate-actor-ref": "train.colocate-actor-ref",
    "colocate-critic-reward": "train.colocate-critic-reward",
    "async-train": "train.async-enable",
    "vllm-num-engines": "vllm.num-engines",
    "vllm-tensor-parallel-size": "vllm.tensor-parallel-size",
    "vllm-gpu-memory-utilization": "vllm.gpu-memory-utilization",
    "vllm-enable-sleep": "vllm.enable-sleep",
    "vllm-sync-backend": "vllm.sync-backend",
    "vllm-sync-with-ray": "vllm.sync-with-ray",
    "enable-prefix-caching": "vllm.enable-prefix-caching",
    "enforce-eager": "vllm.enforce-eager",
    "deepspeed-enable-sleep": "ds.enable-sleep",
    "zero-stage": "ds.zero-stage",
    "zpg": "ds.zpg",
    "adam-offload": "ds.adam-offload",
    "overlap-comm": "ds.overlap-comm",
    "deepcompile": "ds.deepcompile",
    "grad-accum-dtype": "ds.grad-accum-dtype",
    "attn-implementation": "ds.attn-implementation",
    "use-liger-kernel": "ds.use-liger-kernel",
    "ds-tensor-parallel-size": "ds.tensor-parallel-size",
    "ring-attn-size": "ds.ring-attn-size",
    "ring-head-stride": "ds.ring-attn-head-stride",
    "packing-samples": "ds.packing-samples",
    "load-in-4bit": "ds.load-in-4bit",
    "lora-rank": "ds.lora.rank",
    "lora-alpha": "ds.lora.alpha",
    "lora-dropout": "ds.lora.dropout",
    "target-modules": "ds.lora.target-modules",
    "param-dtype": "ds.param-dtype",
    "micro-train-batch-size": "train.micro-batch-size",
    "train-batch-size": "train.batch-size",
    "micro-rollout-batch-size": "rollout.micro-batch-size",
    "rollout-batch-size": "rollout.batch-size",
    "n-samples-per-prompt": "rollout.n-samples-per-prompt",
    "use-dynamic-batch": "train.dynamic-batch-enable",
    "train-max-tokens-per-gpu": "train.max-tokens-per-gpu",
    "rollout-max-tokens-per-gpu": "rollout.max-tokens-per-gpu",
    "max-len": "data.max-len",
    "max-samples": "data.max-samples",
    "max-epochs": "train.max-epochs",
    "num-episodes": "train.num-episodes",
    "advantage-estimator": "algo.advantage.estimator",
    "init-kl-coef": "algo.kl.init-coef",
    "use-kl-loss": "algo.kl.use-loss",
    "kl-estimator": "algo.kl.estimator",
    "ref-offload": "ref.offload",
    "ref-reward-offload": "ref.offload",
    "reward-offload": "reward.offload",
    "reward-pretrain": "reward.model-name-or-path",
    "critic-pretrain": "critic.model-name-or-path",
    "ref-pretrain": "ref.model-name-or-path",
    "remote-rm-url": "reward.remote-url",
    "agent-func-path": "train.agent-func-path",
    "enable-ema": "train.enable-ema",
    "optimizer": "optim",
}
# Old names that decide nothing.
OLDER = frozenset(
    (
        *("prompt-data", "dataset", "dataset-probs", "prompt-data-probs", "input-key", "output-key", "label-key"),
        *("apply-chat-template", "input-template", "save-path", "ckpt-path", "save-hf-ckpt", "load-checkpoint"),
        *("save-steps", "logging-steps", "eval-steps", "use-wandb", "wandb-project", "wandb-run-name", "wandb-org"),
        *("use-tensorboard", "actor-learning-rate", "critic-learning-rate", "learning-rate", "lr-warmup-ratio", "seed"),
        *("normalize-reward", "gamma", "lambd", "eps-clip", "eps-clip-low-high", "temperature", "top-p", "l2", "beta"),
        *("disable-fast-tokenizer", "max-ckpt-num", "max-ckpt-mem", "max-norm", "adam-betas", "lr-scheduler", "bf16"),
        *("flash-attn", "disable-ds-ckpt", "use-ds-universal-ckpt", "aux-loss-coef", "chosen-key", "rejected-key"),
        *("prompt-key", "eval-dataset", "eval-split", "prompt-split", "dataset-split", "wandb-group", "use-ms"),
        *("gradient-checkpointing-use-reentrant", "value-head-prefix", "freezing-actor-steps", "loss-type", "ipo"),
        *("save-value-network", "dual-clip", "value-clip", "kl-target", "full-determinism", "tokenizer-chat-template"),
        *("policy-loss-type", "dynamic-filtering", "dynamic-filtering-reward-range", "multiturn", "pretrain-mode"),
        *("no-advantage-std-norm", "entropy-loss-coef", "nll-loss-coef", "label-smoothing", "local-rank", "wandb"),
    )
)
ATTENTION = {
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "kernels-community/flash-attn2": "flash",
    "kernels-community/vllm-flash-attn3": "flash",
    "sdpa": "sdpa",
    "eager": "eager",
}
FEW_TOKENS = 8192  # whose logits in bf16 are 2.5 GB with 150,000 tokens of vocabulary


def read_run(r: Reading) -> None:
    """Read a run of one of the programs."""
    r.verb = "train"
    r.rename(RENAMED)
    program = r.text(PROGRAM)
    is_rl = program == "train_ppo_ray"
    own = "actor" if is_rl else "model"
    r.rename(
        {"pretrain": f"{own}.model-name-or-path", "gradient-checkpointing": f"{own}.gradient-checkpointing-enable"}
    )
    r.rename({"optim": "actor.optim"} if is_rl else {})
    r.put("runtime", "deepspeed", PROGRAM)
    name = f"{own}.model-name-or-path"
    r.put("model", r.text(name) if r.has(name) else None, name)
    _machines(r, is_rl)
    _batch(r, program)
    _objective(r, program)
    _check_logits(r)
    _states(r, own, is_rl)
    _step(r, own)
    _rest(r)


def on(r: Reading, key: str) -> bool:
    return r.has(key) and r.flag(key)


def _machines(r: Reading, is_rl: bool) -> None:
    if is_rl:
        r.assume("actor.num-nodes", 1)
        r.assume("actor.num-gpus-per-node", 8)
        r.count_machines(nodes=r.size("actor.num-nodes", 1), per_node=r.size("actor.num-gpus-per-node", 8))
        r.put("on", None, "actor.num-nodes", "actor.num-gpus-per-node")
        return
    nodes, gpus = r.size("deepspeed.num-nodes", 0), r.size("deepspeed.num-gpus", 0)
    r.count_machines(nodes=nodes, per_node=gpus)
    r.put("on", None, "deepspeed.num-nodes", "deepspeed.num-gpus")
    r.ignore(["deepspeed."])


def _batch(r: Reading, program: str) -> None:
    if r.has("prompt-max-len") or r.has("generate-max-len"):  # before 0.9
        length = r.size("prompt-max-len", 1024) + r.size("generate-max-len", 1024)
        r.put("sequence_length", length, "prompt-max-len", "generate-max-len")
    else:
        default = 512 if program in ("train_dpo", "train_rm") else 2048
        r.assume("data.max-len", default, "sequence_length")
        length = r.size("data.max-len", default)
        r.put("sequence_length", length if r.has("data.max-len") else None, "data.max-len")
    pairs = 2 if program == "train_rm" else 1
    default = 1 if program in ("train_ppo_ray", "train_rm") else 8
    micro = r.size("train.micro-batch-size", default)
    if on(r, "train.dynamic-batch-enable"):
        tokens = r.size("train.max-tokens-per-gpu", 16192)
        per_rank = max(1, r.size("train.batch-size", 128) // r.num_accelerators)
        most = max(1, min(tokens // length, per_rank))
        micro = next(count for count in range(most, 0, -1) if per_rank % count == 0)
        r.put("micro_batch_size", micro, "train.dynamic-batch-enable", "train.max-tokens-per-gpu")
        r.ignore(["train.micro-batch-size"], why="the tokens of a GPU decide")
    else:
        r.put("micro_batch_size", micro * pairs, "train.micro-batch-size")
        r.assume("train.micro-batch-size", default, "micro_batch_size")
    r.question["micro_batch_size"] = micro * pairs
    r.put("global_batch_size", r.size("train.batch-size", 128) * pairs, "train.batch-size")
    r.assume("train.batch-size", 128, "global_batch_size")
    r.question["global_batch_size"] = r.size("train.batch-size", 128) * pairs


def _objective(r: Reading, program: str) -> None:
    if program == "train_rm":
        r.unsure(PROGRAM, "a reward model is estimated as sft of pairs, with a head of the vocabulary's size")
        return
    if program not in OBJECTIVES:
        r.unsure(PROGRAM, "what it trains is not estimated: sft is")
        return
    if program != "train_ppo_ray":
        r.put("objective", OBJECTIVES[program], PROGRAM)
        if program == "train_dpo" and on(r, "ref.offload"):
            r.unsure("ref.offload", "the reference model is estimated on the accelerators")
        return
    shares = on(r, "train.colocate-all")
    estimator = r.text("algo.advantage.estimator", "gae")
    r.assume("algo.advantage.estimator", "gae", "objective")
    with_critic = estimator == "gae" and shares
    if estimator == "gae" and not shares:
        r.notes.append(Message("The actor's own step is estimated: the critic has GPUs of its own."))
    r.put("objective", "ppo" if with_critic else "grpo", "algo.advantage.estimator", "train.colocate-all")
    r.question["objective"] = "ppo" if with_critic else "grpo"
    coefficient = r.number("algo.kl.init-coef", 0.01) if r.has("algo.kl.init-coef") else 0.01
    shares_gpus = shares or on(r, "train.colocate-actor-ref")
    if not with_critic and shares_gpus and coefficient > 0 and not on(r, "ref.offload"):
        r.put("beta", coefficient, "algo.kl.init-coef")
        r.assume("algo.kl.init-coef", coefficient, "beta")
    if with_critic and not r.has("reward.model-name-or-path"):
        r.notes.append(Message("PPO is estimated with a reference and a reward model of the actor's size."))
    _engine(r, shares)
    read_generation(r, shares)


def _check_logits(r: Reading) -> None:
    """The losses of preferences and of rewards are estimated in tiles; OpenRLHF holds a micro-batch's logits whole."""
    length = r.question.get("sequence_length", 2048)
    tokens = r.question["micro_batch_size"] * length * (2 if r.question.get("objective") == "dpo" else 1)
    tokens //= r.size("ds.ring-attn-size", 1)
    if r.question.get("objective", "sft") != "sft" and tokens > FEW_TOKENS:
        why = "the logits of {tokens:,} tokens are held whole: the loss is estimated in tiles"
        r.unsure(PROGRAM, Message(why, tokens=tokens))


def _engine(r: Reading, shares: bool) -> None:
    """The engine's memory, where it stays awake on the actor's GPUs."""
    key = "vllm.gpu-memory-utilization"
    share = r.number(key, 0.95) if r.has(key) else 0.95
    if not 0 <= share < 1:
        raise r.wrong(key, "a share from 0 to below 1")
    stays = shares and not on(r, "vllm.enable-sleep") and not on(r, "train.async-enable")
    keys = [name for name in (key, "vllm.enable-sleep", "train.async-enable") if r.has(name)]
    if shares and share:
        option = "engine_memory_share" if stays else "rollout_memory_share"
        r.put(option, share, *keys)
        r.assume(key, 0.95, option)
    else:
        r.put("engine_memory_share", None, *keys, why="the engine is elsewhere while the actor trains")


def _states(r: Reading, own: str, is_rl: bool) -> None:
    stage = r.integer("ds.zero-stage", 2) if r.has("ds.zero-stage") else 2
    if not 0 <= stage <= 3:
        raise r.wrong("ds.zero-stage", "0, 1, 2 or 3")
    r.put("zero_stage", stage, "ds.zero-stage")
    r.assume("ds.zero-stage", 2, "zero_stage")
    r.question["zero_stage"] = stage
    kinds = {"bf16": "bf16-mixed", "fp16": "fp16-mixed", "fp32": "fp32"}
    dtype = r.choice("ds.param-dtype", kinds, "bf16-mixed")
    r.assume("ds.param-dtype", "bf16", "precision")
    r.put("precision", dtype, "ds.param-dtype")
    r.question["precision"] = dtype
    r.put("offload_optimizer", "cpu" if on(r, "ds.adam-offload") else None, "ds.adam-offload")
    if r.size("ds.zpg", 1) > 1:
        r.put("zero_hpz_partition_size", r.size("ds.zpg", 1), "ds.zpg")
    if r.has("ds.overlap-comm"):
        r.put("overlap_comm", True if on(r, "ds.overlap-comm") else None, "ds.overlap-comm")
    for key in ("optim", f"{own}.optim"):
        if r.has(key):
            kind = r.text(key).lower()
            known = {"adam": "adamw", "adamw": "adamw"}
            if kind in known:
                r.put("optimizer", known[kind], key)
            else:
                r.unsure(key, "the states of Muon in DeepSpeed are not estimated")
    rank = r.integer("ds.lora.rank") if r.has("ds.lora.rank") else 0
    if rank > 0:
        keys = ("ds.lora.rank", "ds.load-in-4bit")
        method = "qlora" if on(r, "ds.load-in-4bit") else "lora"
        r.put("method", method, *(key for key in keys if r.has(key)))
        r.put("lora_rank", rank, "ds.lora.rank")
        targets = r.get("ds.lora.target-modules", "all-linear")
        words = targets if isinstance(targets, list) else [str(targets)]
        text = ",".join(map(str, words))
        r.put("lora_targets", None if text == "all-linear" else text, "ds.lora.target-modules")
        dropout = r.number("ds.lora.dropout") if r.has("ds.lora.dropout") else 0
        r.put("lora_dropout", True if dropout else None, "ds.lora.dropout")
    elif on(r, "ds.load-in-4bit"):
        r.unsure("ds.load-in-4bit", "four bits are estimated with LoRA alone")
    if is_rl and on(r, "actor.freeze-visual-encoder"):
        r.unsure("actor.freeze-visual-encoder", "a part of the model that does not train is not estimated")


def _step(r: Reading, own: str) -> None:
    key = f"{own}.gradient-checkpointing-enable"
    r.put("recompute", "full" if on(r, key) else "none", key)
    r.assume(key, False, "recompute")
    r.question["recompute"] = "full" if on(r, key) else "none"
    r.assume("ds.attn-implementation", "flash_attention_2", "attention")
    kernel = r.text("ds.attn-implementation", "flash_attention_2")
    if kernel not in ATTENTION:
        r.unsure("ds.attn-implementation", "this kernel of attention is not estimated")
    r.put("attention", ATTENTION.get(kernel, "flash"), "ds.attn-implementation")
    r.question["attention"] = ATTENTION.get(kernel, "flash")
    if r.size("ds.tensor-parallel-size", 1) > 1:
        r.put("tensor_parallel_size", r.size("ds.tensor-parallel-size", 1), "ds.tensor-parallel-size")
    if r.size("ds.ring-attn-size", 1) > 1:
        r.put("context_parallel_size", r.size("ds.ring-attn-size", 1), "ds.ring-attn-size")
    workers = r.integer("data.dataloader-num-workers") if r.has("data.dataloader-num-workers") else None
    r.put("data_loader_workers", workers, "data.dataloader-num-workers")
    for name, why in (
        ("ds.use-liger-kernel", "Liger's kernels are estimated with the runtime transformers alone"),
        ("ds.deepcompile", "a compiled step of DeepSpeed is not estimated"),
        ("ds.grad-accum-dtype", "gradients are estimated as DeepSpeed keeps them by itself"),
        ("ds.experts-implementation", "kernels of experts are estimated as transformers has them"),
        ("train.enable-ema", "an average of the weights is not estimated"),
    ):
        r.needs_default(name, "false", "None", why=why)
    r.ignore(["ds.packing-samples"], why="sequences of full length are estimated")
    r.ignore(["ds.enable-sleep"], why="the states come back for the step")


def _rest(r: Reading) -> None:
    r.ignore([key for key in r.values if key in KNOWN or key in OLDER])
    r.ignore(["ray."])

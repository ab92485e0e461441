"""A script that starts Megatron-LM with a plan: its model, parallelism, batch and precision as arguments."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tonnage.interchange.parts.megatron.step import MODULES
from tonnage.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from tonnage.architectures import Model
    from tonnage.interchange.planned_run import PlannedRun
    from tonnage.spec import TrainingPlan
else:
    Model = TrainingPlan = PlannedRun = Any

# Options of ours that the arguments always say.
SAYS = frozenset(
    (
        "sequence_length",
        "micro_batch_size",
        "global_batch_size",
        "num_microbatches",
        "tensor_parallel_size",
        "sequence_parallel",
        "pipeline_parallel_size",
        "virtual_pipeline_size",
        "context_parallel_size",
        "context_parallel_method",
        "expert_parallel_size",
        "expert_tensor_parallel_size",
        "data_parallel_size",
        "zero_stage",
        "recompute",
        "recompute_modules",
        "precision",
        "optimizer",
        "loss",
        "max_steps",
        "runtime",
        "first_stage_layers",
        "last_stage_layers",
        "account_for_embedding_in_pipeline_split",
        "account_for_loss_in_pipeline_split",
        "pipeline_layout",
        "expert_capacity_factor",
        "cuda_graph",
        "tp_comm_overlap",
        "overlap_moe_expert_parallel_comm",
        "moe_token_dispatcher_type",
        "mtp_layers",
        "offload_optimizer",
        "optimizer_offload_fraction",
        "offload_activations",
        "offload_modules",
        "data_loader_workers",
    )
)
OPTIMIZERS = {
    "adamw": "adam",
    "adamw-bf16": "adam",
    "sgd-momentum": "sgd",
    "muon": "muon",
    "lion": "lion",
    "soap": "soap",
}
FP8 = {"fp8-te": "delayed", "mxfp8-te": "mxfp8"}
WIDTH = 100  # characters of a line of arguments


def write(w: PlannedRun) -> str:
    """The script."""
    plan = w.training
    if plan is None or plan.post_training.objective != "sft" or plan.tuning.method != "full":
        raise InvalidInput(
            "Megatron-LM is written for pre-training and sft of all weights: leave method and objective."
        )
    groups = {
        "MODEL_ARGS": _model(w.model, plan),
        "PARALLEL_ARGS": _parallel(w, plan),
        "BATCH_ARGS": _batch(w, plan),
        "STEP_ARGS": [*_states(plan), *_precision(plan), *_recompute(plan), *_timing(w, plan)],
        "DATA_ARGS": ["--tokenizer-type HuggingFaceTokenizer", f"--tokenizer-model {shlex.quote(w.place)}"],
    }
    arrays = "".join(
        _array(name, [argument for argument in arguments if argument]) for name, arguments in groups.items()
    )
    words = " ".join(f'"${{{name}[@]}}"' for name in groups)
    return (
        "#!/bin/bash\n"
        "# Paths and the length of the run stand behind the script's name: --data-path, --train-iters, --save, ...\n"
        f"{arrays}"
        f"torchrun {_machines(w)} pretrain_gpt.py \\\n"
        f'  {words} "$@"\n'
    )


def _array(name: str, arguments: Sequence[str]) -> str:
    lines: list[str] = []
    for argument in arguments:
        if lines and len(lines[-1]) + len(argument) < WIDTH:
            lines[-1] += f" {argument}"
        else:
            lines.append(f"  {argument}")
    return f"{name}=(\n" + "\n".join(lines) + "\n)\n"


def _machines(w: PlannedRun) -> str:
    nodes, per_node = w.cluster.num_hosts, f"--nproc-per-node {w.cluster.accelerators_per_host}"
    if nodes == 1:
        return per_node
    return f'--nnodes {nodes} {per_node} --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:29500"'


def _model(model: Model, plan: TrainingPlan) -> list[str]:
    """Dimensions of a decoder that Megatron-LM builds from arguments: attention or latent attention, and feed-forward
    layers or experts. Of others the sizes alone.
    """
    from tonnage.ops import MLP, Attention, Embedding, Head, LatentAttention, MoE, Norm

    main = model.decoder
    ops = [op for block in main.blocks for op in block.ops]
    flags = [f"--num-layers {main.num_layers}", f"--hidden-size {main.hidden_size}"]
    dense = next((op for op in ops if isinstance(op, MLP)), None)
    mixture = next((op for op in ops if isinstance(op, MoE)), None)
    attention = next((op for op in ops if isinstance(op, Attention)), None)
    latent = next((op for op in ops if isinstance(op, LatentAttention)), None)
    feed = dense or mixture
    if feed is not None:
        flags.append(f"--ffn-hidden-size {feed.intermediate_size}")
        flags += ["--swiglu"] if feed.gated else []
    if latent:
        flags += _latent(latent)
    elif attention:
        flags += _attention(attention)
    if mixture:
        flags += _mixture(mixture, main)
    norm = next((op for op in ops if isinstance(op, Norm)), None)
    flags.append("--normalization RMSNorm" if norm is None or norm.kind == "rms" else "--normalization LayerNorm")
    tables = [op for op in main.before if isinstance(op, Embedding)]
    learned = len(tables) > 1
    positions = tables[1].num_embeddings if learned else max(plan.sequence_length, model.context or 0)
    flags += [f"--max-position-embeddings {positions}"]
    flags += [] if learned else ["--position-embedding-type rope"]
    biased = any(getattr(op, "bias", False) for op in ops if isinstance(op, MLP | MoE))
    flags += [] if biased else ["--disable-bias-linear"]
    head = next((op for op in main.after if isinstance(op, Head)), None)
    flags += ["--untie-embeddings-and-output-weights"] if head is not None and not head.tied else []
    flags.append(f"--vocab-size {model.vocab_size}")
    return flags


def _attention(op: Any) -> list[str]:
    flags = [f"--num-attention-heads {op.heads}"]
    if op.kv_heads != op.heads:
        flags += ["--group-query-attention", f"--num-query-groups {op.kv_heads}"]
    flags.append(f"--kv-channels {op.head_dim}")
    flags += ["--qk-layernorm"] if op.qk_norm else []
    return [*flags, "--add-qkv-bias"] if op.bias and op.out_bias is False else flags


def _latent(op: Any) -> list[str]:
    flags = [f"--num-attention-heads {op.heads}", "--multi-latent-attention"]
    flags += [f"--q-lora-rank {op.q_lora_rank}"] if op.q_lora_rank else []
    return [
        *flags,
        f"--kv-lora-rank {op.kv_lora_rank}",
        f"--qk-head-dim {op.qk_nope_head_dim}",
        f"--qk-pos-emb-head-dim {op.qk_rope_head_dim}",
        f"--v-head-dim {op.v_head_dim}",
    ]


def _mixture(op: Any, main: Any) -> list[str]:
    from tonnage.ops import MoE

    mixed = [any(isinstance(part, MoE) for part in main.blocks[kind].ops) for kind in main.layers]
    dense = mixed.index(True)
    flags = [
        f"--num-experts {op.num_experts}",
        f"--moe-router-topk {op.top_k}",
        f"--moe-ffn-hidden-size {op.intermediate_size}",
        "--moe-grouped-gemm",
    ]
    flags += [f"--moe-shared-expert-intermediate-size {op.shared_size}"] if op.shared_size else []
    flags += ["--moe-router-score-function sigmoid --moe-router-enable-expert-bias"] if op.correction_bias else []
    if dense and all(mixed[dense:]):
        flags.append(f"--moe-layer-freq ([0]*{dense}+[1]*{len(mixed) - dense})".replace("(", "'(").replace(")", ")'"))
    return flags


def _parallel(w: PlannedRun, plan: TrainingPlan) -> list[str]:
    named = {
        "--tensor-model-parallel-size": plan.tensor_parallel_size,
        "--pipeline-model-parallel-size": plan.pipeline_parallel_size,
        "--context-parallel-size": plan.context_parallel_size,
        "--expert-model-parallel-size": plan.expert_parallel_size,
    }
    flags = [f"{name} {value}" for name, value in named.items()]
    own = plan.expert_tensor_parallel_size != plan.tensor_parallel_size and _has_experts(w.model)
    if plan.expert_parallel_size > 1 or own:
        flags.append(f"--expert-tensor-parallel-size {plan.expert_tensor_parallel_size}")
    if w.is_set("pipeline_layout"):
        flags.append(f"--pipeline-model-parallel-layout '{w.question['pipeline_layout']}'")
    elif plan.virtual_pipeline_size > 1:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {plan.virtual_pipeline_size}")
    for end in ("first", "last"):
        if w.is_set(f"{end}_stage_layers"):
            flags.append(f"--decoder-{end}-pipeline-num-layers {w.question[f'{end}_stage_layers']}")
    for end in ("embedding", "loss"):
        if w.question.get(f"account_for_{end}_in_pipeline_split"):
            flags.append(f"--account-for-{end}-in-pipeline-split")
    if plan.sequence_parallel and plan.tensor_parallel_size > 1:
        flags.append("--sequence-parallel")
    if plan.context_parallel_size > 1:
        flags.append(f"--cp-comm-type {plan.megatron.context_parallel_method or 'p2p'}")
    return flags


def _has_experts(model: Model) -> bool:
    from tonnage.ops import MoE

    return any(isinstance(op, MoE) for block in model.decoder.blocks for op in block.ops)


def _batch(w: PlannedRun, plan: TrainingPlan) -> list[str]:
    return [
        f"--seq-length {plan.sequence_length}",
        f"--micro-batch-size {plan.micro_batch_size}",
        f"--global-batch-size {plan.global_batch_size}",
        f"--train-iters {w.question['max_steps']}" if w.is_set("max_steps") else "",
        f"--num-workers {plan.data_loader_workers}",
    ]


def _states(plan: TrainingPlan) -> list[str]:
    if plan.optimizer not in OPTIMIZERS:
        raise InvalidInput(
            "Megatron-LM has the optimizers adamw, adamw-bf16, sgd-momentum, muon, lion and soap. Got {optimizer}.",
            optimizer=plan.optimizer,
        )
    flags = [f"--optimizer {OPTIMIZERS[plan.optimizer]}"]
    if plan.optimizer == "adamw-bf16":
        flags.append("--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16")
    if plan.zero_stage:
        flags.append("--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather")
    if plan.offload.offload_optimizer == "cpu":
        flags += ["--optimizer-cpu-offload", f"--optimizer-offload-fraction {plan.offload.optimizer_offload_fraction}"]
    if plan.offload.offload_activations == "cpu":
        modules = plan.offload.offload_modules.replace(",", " ")
        flags += ["--fine-grained-activation-offloading", f"--offload-modules {modules}" if modules else ""]
    return flags


def _precision(plan: TrainingPlan) -> list[str]:
    narrow = plan.precision.endswith("-16bit-gradients")
    recipe = plan.precision.removesuffix("-16bit-gradients")
    gradients = ["--grad-reduce-in-bf16"] if narrow else []
    primary = recipe.endswith("-primary")
    plain = recipe.removesuffix("-primary")
    if recipe == "bf16-mixed":
        return ["--bf16", *gradients]
    if recipe == "fp16-mixed":
        return ["--fp16", *([] if narrow else ["--accumulate-allreduce-grads-in-fp32"])]
    if plain in FP8:
        low = ["--bf16", "--fp8-format hybrid", f"--fp8-recipe {FP8[plain]}"]
        return [*low, *(["--fp8-param-gather"] if primary else []), *gradients]
    if recipe == "nvfp4-te":
        return ["--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4", *gradients]
    if recipe == "fp32":
        return []
    raise InvalidInput(
        "Megatron-LM has no arguments for precision {precision}: take bf16-mixed, fp16-mixed, fp8-te, mxfp8-te or "
        "nvfp4-te.",
        precision=plan.precision,
    )


def _recompute(plan: TrainingPlan) -> list[str]:
    if plan.recompute == "full":
        return ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"]
    if plan.recompute == "selective":
        modules = [name for name in plan.megatron.recompute_modules.split(",") if name in MODULES]
        return ["--recompute-granularity selective", f"--recompute-modules {' '.join(modules)}"]
    return []


def _timing(w: PlannedRun, plan: TrainingPlan) -> list[str]:
    own = plan.megatron
    rate = {True: 0.1, False: 0.0}
    flags = [f"--hidden-dropout {rate[plan.dropout]}", f"--attention-dropout {rate[plan.attention_dropout]}"]
    kernel = plan.kernels.attention or "flash"
    if w.is_set("attention"):
        flags += {"flash": ["--attention-backend flash"], "eager": ["--attention-backend unfused"]}.get(kernel, [])
    flags += ["--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"] if plan.loss == "fused" else []
    flags += ["--tp-comm-overlap"] if own.tp_comm_overlap else []
    flags += ["--overlap-moe-expert-parallel-comm"] if own.overlap_moe_expert_parallel_comm else []
    flags += [f"--moe-token-dispatcher-type {own.moe_token_dispatcher_type}"] if _has_experts(w.model) else []
    if own.expert_capacity_factor is not None:
        flags.append(f"--moe-expert-capacity-factor {own.expert_capacity_factor} --moe-pad-expert-input-to-capacity")
    flags += [f"--mtp-num-layers {own.mtp_layers}"] if own.mtp_layers else []
    if own.cuda_graph == "full":
        flags.append("--cuda-graph-impl full_iteration")
    elif own.cuda_graph != "none":
        flags.append(f"--cuda-graph-impl transformer_engine --cuda-graph-modules {own.cuda_graph.replace(',', ' ')}")
    return flags

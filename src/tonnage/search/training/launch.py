"""Settings that start a plan in its runtime, by the runtime's own names.

Sources: Megatron-LM, megatron/training/arguments.py; torchtitan, torchtitan/config/configs.py (0.3); transformers, training_args.py.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate._launch_model import place
from tonnage.estimate._pipeline_layout import chunk_layers
from tonnage.formula import ceil_div
from tonnage.precisions import TRAINING_RECIPES
from tonnage.runtimes import HUB, training_runtime
from tonnage.search.training.launch_trl import trains, trl_command
from tonnage.spec import TrainingPlan

MEGATRON = {
    "tensor_parallel_size": "--tensor-model-parallel-size", "pipeline_parallel_size": "--pipeline-model-parallel-size",
    "context_parallel_size": "--context-parallel-size", "expert_parallel_size": "--expert-model-parallel-size",
    "expert_tensor_parallel_size": "--expert-tensor-parallel-size", "virtual_pipeline_size": "--num-virtual-stages-per-pipeline-rank",
}  # fmt: skip
TITAN = {
    "tensor_parallel_size": "--parallelism.tensor_parallel_degree", "pipeline_parallel_size": "--parallelism.pipeline_parallel_degree",
    "context_parallel_size": "--parallelism.context_parallel_degree", "expert_parallel_size": "--parallelism.expert_parallel_degree",
    "expert_tensor_parallel_size": "--parallelism.expert_tensor_parallel_degree",
}  # fmt: skip
TITAN_SCHEDULES = {"1f1b": "1F1B", "interleaved-1f1b": "Interleaved1F1B", "gpipe": "GPipe", "interleaved-zero-bubble": "InterleavedZeroBubble",
                   "zbv": "ZBVZeroBubble", "dualpipev": "DualPipeV"}  # fmt: skip


# What the settings are given to, where these are no command by themselves; in TRL's case what is yours to say.
PROGRAMS = {
    "megatron": "options of Megatron-LM's pretrain_gpt.py, which torchrun starts on each node.",
    "fsdp2": "options of torchtitan's run_train.sh, beside its --module and --config.",
    "transformers": "options of TrainingArguments of transformers' Trainer.",
    "ddp": "options of TrainingArguments of transformers' Trainer, which torchrun starts with one process an accelerator.",
}
TRL = "a command of TRL with peft. On several nodes each has accelerate's --num_machines, --machine_rank and --main_process_ip besides."
# Of a plan, what starts another run where it is not said; and what nobody needs to say.
PLAIN = {
    "method": "full", "optimizer": "adamw", "precision": "bf16-mixed", "loss": "full", "offload_optimizer": "none", "offload_parameters": "none",
    "offload_activations": "none", "base_weights": "", "objective": "sft",
}  # fmt: skip
# Without words for these the settings would start a run of another kind: then there are none.
KINDS = ("method", "objective")
# What the writers below have words for, beside sizes, ZeRO and recomputation.
WRITTEN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "megatron": {"precision": ("fp16-mixed", "fp8-te"), "offload_optimizer": ("cpu",)},
    "fsdp2": {}, "transformers": {"precision": ("fp16-mixed",)}, "ddp": {"precision": ("fp16-mixed",)},
}  # fmt: skip
# And TRL's, which has those for methods, objectives and bases.
OFFLOADED = {"offload_optimizer": ("cpu",), "offload_parameters": ("cpu",)}
OF_TRL: Mapping[str, Mapping[str, tuple[str, ...]]] = {"deepspeed": OFFLOADED, "fsdp2": OFFLOADED}


def launch_settings(model: Model, plan: TrainingPlan) -> list[str]:
    """Options of the runtime for what a search chooses, or a command; none for a runtime that has no words here for such a run."""
    if trains(plan):
        return trl_command(model, plan)
    made = WRITERS.get(plan.runtime)
    if made is None or _unwritten(plan):
        return []
    of_model = {"megatron": _uneven, "fsdp2": _chunked}.get(plan.runtime)
    return [*made(plan), *(of_model(model, plan) if of_model else ())]


def launch_lacks(model: Model, plan: TrainingPlan) -> list[str]:
    """What of a plan the settings do not say, so that they alone would start another run."""
    if trains(plan):
        chunks = ["loss full (TRL takes it in parts, with less memory)"] if plan.loss == "full" else []
        unnamed = [f"the path of the checkpoint where {HUB} stands"] if place(model) == HUB else []
        return [
            *unnamed,
            *chunks,
            *_lacking(plan, OF_TRL.get(plan.runtime, {}), ("method", "objective", "base_weights", "loss")),
        ]
    if plan.runtime not in WRITERS:
        return [f"how {plan.runtime} is started"]
    if other := _unwritten(plan):
        return [f"how {plan.runtime} is started for {' and '.join(other)}"]
    unsaid = _needs_chunks(plan) and not _chunked(model, plan)
    return [
        *_lacking(plan, WRITTEN[plan.runtime]),
        *([f"virtual_pipeline_size {plan.virtual_pipeline_size}"] if unsaid else []),
    ]


def launch_program(plan: TrainingPlan) -> str:
    """What the settings are given to; nothing where there are none."""
    if trains(plan):
        return TRL
    return PROGRAMS[plan.runtime] if plan.runtime in WRITERS and not _unwritten(plan) else ""


def _unwritten(plan: TrainingPlan) -> list[str]:
    found = [f"{name} {value}" for name in KINDS if (value := getattr(plan, name)) != PLAIN[name]]
    others = plan.runtime == "fsdp2" and plan.model_code not in ("", "torchtitan")  # whose settings they are not
    return found or ([f"model_code {plan.model_code}"] if others else [])


def _lacking(plan: TrainingPlan, words: Mapping[str, tuple[str, ...]], said: tuple[str, ...] = ()) -> list[str]:
    found = [(name, getattr(plan, name)) for name in PLAIN if name not in said]
    return [f"{name} {value}" for name, value in found if value != PLAIN[name] and value not in words.get(name, ())]


def _sizes(plan: TrainingPlan, names: Mapping[str, str]) -> list[str]:
    return [f"{flag} {value}" for name, flag in names.items() if (value := getattr(plan, name)) > 1]


def _uneven(model: Model, plan: TrainingPlan) -> list[str]:
    """Megatron splits evenly, or as options say. Of one chunk a stage a layout says it: E is the embedding, t a layer, L the loss. Of several
    chunks, whose number the layout would repeat, the sizes of the ends do, or that table and head count as a layer."""
    layers = chunk_layers(model, training_runtime(plan.runtime), plan)
    if len(set(layers)) == 1:
        return []
    if plan.virtual_pipeline_size == 1:
        stages = ["t" * count for count in layers]
        return [f"--pipeline-model-parallel-layout '{'|'.join(['E' + stages[0], *stages[1:-1], stages[-1] + 'L'])}'"]
    ends = {"first": plan.first_stage_layers, "last": plan.last_stage_layers}
    if any(ends.values()):
        return [f"--decoder-{end}-pipeline-num-layers {size}" for end, size in ends.items() if size]
    most = max(layers)
    counted = {"embedding": layers[0] < most, "loss": layers[-1] < most}
    return [f"--account-for-{end}-in-pipeline-split" for end, is_counted in counted.items() if is_counted]


def _needs_chunks(plan: TrainingPlan) -> bool:
    """torchtitan gives a rank one stage, or two under a looped schedule, unless it is told otherwise."""
    return plan.runtime == "fsdp2" and plan.virtual_pipeline_size > 2


def _chunked(model: Model, plan: TrainingPlan) -> list[str]:
    """Layers of a stage that make as many stages; nothing where no number does. torchtitan 0.3.0, distributed/pipeline_parallel.py: table
    and head count as a layer each, and the stages are rounded up."""
    if not _needs_chunks(plan):
        return []
    count, layers = plan.pipeline_parallel_size * plan.virtual_pipeline_size, model.num_layers + 2
    each = ceil_div(layers, count)
    return [f"--parallelism.pipeline_parallel_layers_per_stage {each}"] if ceil_div(layers, each) == count else []


def _megatron(plan: TrainingPlan) -> list[str]:
    made = _sizes(plan, MEGATRON)
    if plan.expert_parallel_size > 1 and plan.expert_tensor_parallel_size == 1 and plan.tensor_parallel_size > 1:
        made.append("--expert-tensor-parallel-size 1")  # else it is the tensor size
    made += ["--sequence-parallel"] if plan.sequence_parallel and plan.tensor_parallel_size > 1 else []
    made += [
        f"--micro-batch-size {plan.micro_batch_size}",
        f"--global-batch-size {plan.global_batch_size}",
        f"--seq-length {plan.sequence_length}",
    ]
    made += ["--use-distributed-optimizer"] if plan.zero_stage else []
    made += _again(plan)
    made += ["--tp-comm-overlap"] if plan.tp_comm_overlap else []
    made += ["--overlap-moe-expert-parallel-comm"] if plan.overlap_moe_expert_parallel_comm else []
    # Without it Megatron's experts gather every token of every rank.
    dispatched = plan.expert_parallel_size > 1
    made += [f"--moe-token-dispatcher-type {plan.moe_token_dispatcher_type}"] if dispatched else []
    made += ["--optimizer-cpu-offload"] if plan.offload_optimizer == "cpu" else []
    if plan.precision == "fp8-te":
        return [*made, "--bf16", "--fp8-format hybrid"]
    return [*made, "--fp16" if TRAINING_RECIPES[plan.precision].compute == "fp16" else "--bf16"]


def _again(plan: TrainingPlan) -> list[str]:
    if plan.recompute == "full":
        return ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"]
    if plan.recompute == "selective":
        return ["--recompute-granularity selective", f"--recompute-modules {plan.recompute_modules.replace(',', ' ')}"]
    return []


def _titan(plan: TrainingPlan) -> list[str]:
    made = _sizes(plan, TITAN)
    if plan.pipeline_parallel_size > 1:
        local = plan.micro_batch_size * plan.num_microbatches
        made.append(f"--parallelism.pipeline_parallel_schedule {TITAN_SCHEDULES[plan.pipeline_schedule]}")
        made.append(f"--parallelism.pipeline_parallel_microbatch_size {plan.micro_batch_size}")
    else:
        local = plan.micro_batch_size
    made += [
        f"--training.local_batch_size {local}",
        f"--training.global_batch_size {plan.global_batch_size}",
        f"--training.seq_len {plan.sequence_length}",
    ]
    made.append(f"--parallelism.fsdp_reshard_after_forward {'always' if plan.zero_stage == 3 else 'never'}")
    kind = {"none": "none", "full": "full", "selective": "selective", "selective-op": "selective"}[plan.recompute]
    return [*made, f"--activation_checkpoint.mode {kind}"]


def _trainer(plan: TrainingPlan) -> list[str]:
    made = [
        f"--per_device_train_batch_size {plan.micro_batch_size}",
        f"--gradient_accumulation_steps {plan.num_microbatches}",
    ]
    made += ["--gradient_checkpointing true"] if plan.recompute != "none" else []
    compute = TRAINING_RECIPES[plan.precision].compute
    return [*made, f"--{compute} true"] if compute in ("bf16", "fp16") else made


WRITERS: Mapping[str, Callable[[TrainingPlan], list[Any]]] = {
    "megatron": _megatron,
    "fsdp2": _titan,
    "transformers": _trainer,
    "ddp": _trainer,
}

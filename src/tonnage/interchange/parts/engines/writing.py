"""What formats of engines write."""

from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.errors import InvalidInput

PLACEHOLDERS = ("PATH-OR-ID-OF-A-", "MODEL")  # how names begin that stand for a checkpoint in a launch command
AT = "\\\n  "
# Options of ours that commands of vLLM and SGLang say.
ENGINE_OPTIONS = frozenset(
    {
        "model",
        "engine",
        "context",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "expert_parallel_size",
        "attention_data_parallel_size",
        "redundant_experts",
        "kv_cache",
        "max_num_batched_tokens",
        "max_num_seqs",
        "gpu_memory_utilization",
        "enforce_eager",
        "weights_on_host",
        "lora_adapters",
        "lora_rank",
        "lora_on_host",
        "kv_offload",
        "kv_offload_size",
        "draft_model",
        "draft_tokens",
        "speculative",
    }
)


def command_of(w: PlannedRun) -> str:
    """The command that starts the engine, one option a line, and below it what the user must still fill in."""
    launch = w.answer.serving.launch if w.answer.serving is not None else ""
    first, end, rest = str(launch).partition("\n")
    parts = first.split(" --")
    return " ".join([parts[0], *(f"{AT}--{part}" for part in parts[1:])]) + f"{end}{rest}\n"


def check_experts(w: PlannedRun) -> None:
    """InvalidInput for a plan whose experts vLLM does not deal out so: over all ranks, or over none."""
    from tonnage.estimate.plan.rule import expert_counts

    plan = w.serving
    if plan is None:
        return
    groups, experts = int(plan.attention_data_parallel_size), int(plan.expert_parallel_size)
    ranks = int(plan.tensor_parallel_size) * groups
    if experts not in (1, ranks):
        raise InvalidInput(
            "vLLM deals experts to all ranks of a stage, or to none: {@expert_parallel_size} is {ranks} or 1. Got "
            "{experts}.",
            ranks=ranks,
            experts=experts,
        )
    if groups > 1 and not expert_counts(w.model):
        raise InvalidInput(
            "vLLM's data-parallel ranks of {model}, which has no experts, are whole copies: leave out "
            "{@attention_data_parallel_size}. Got {groups}.",
            model=w.model.name,
            groups=groups,
        )


def unnamed(w: PlannedRun) -> frozenset[str]:
    """Options that the command has a stand-in for: the model, where no checkpoint of it is known."""
    launch = str(w.answer.serving.launch if w.answer.serving is not None else "")
    return frozenset({"model"} if any(f" {name}" in launch for name in PLACEHOLDERS) else ())

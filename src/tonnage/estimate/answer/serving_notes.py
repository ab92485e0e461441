"""What an answer about a served model has to say beside its numbers: pages, files, host memory, whole contexts."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.weights.storage import is_gguf_type, storage
from tonnage.kernel.units import counted, human
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

MUCH_MORE = 1.5  # times what is kept


def warn_of_blocks(engine: str, made: ServingMemory, question: Question) -> None:
    """Where an engine sets aside much more than a request's keys and values, people look for the reason."""
    rank = made.fullest
    if rank.per_request.value > MUCH_MORE * rank.kept.value > 0:
        question.warn(
            f"{engine} sets aside {human(rank.per_request.value, 'bytes')} of cache for a request that keeps "
            f"{human(rank.kept.value, 'bytes')}: "
            "its blocks hold layers of several kinds, and a window also the tokens in flight. A smaller "
            "--max-num-batched-tokens helps."
        )


def warn_of_gguf(model: Model, plan: ServingPlan, made: ServingMemory, question: Question) -> None:
    """GGUF files under an engine that does not keep them as they are."""
    engine = serving_runtime(plan.engine, plan.engine_version)
    if engine.gguf or not is_gguf_type(storage(model, plan.weights)):
        return
    if engine.dequantizes_gguf:
        question.warn(
            f"{plan.engine} dequantises GGUF weights when it loads them: they are counted in "
            f"{made.stored.name}. --engine llama.cpp keeps them as stored."
        )
    else:
        question.warn(
            f"GGUF is judged as {plan.engine} would run it; --engine llama.cpp is what most people run it with."
        )


def warn_of_emulation(plan: ServingPlan, cluster: Cluster, made: ServingMemory, question: Question) -> None:
    """Formats that the engine reads without kernels for them, which costs time that no term counts."""
    engine = serving_runtime(plan.engine, plan.engine_version)
    if engine.weights_note is not None and (note := engine.weights_note(made.stored.name, cluster.accelerator)):
        question.warn(note)


def warn_of_host(cluster: Cluster, made: ServingMemory, question: Question) -> None:
    """Host memory that the engine needs and the node does not have."""
    if made.host is None or cluster.node is None or cluster.node.host_memory_bytes is None:
        return
    if made.host.value > cluster.node.host_memory_bytes:
        question.warn(
            f"host memory does not suffice: {human(made.host.value, 'bytes')} are needed, and {cluster.node.name} has "
            f"{human(cluster.node.host_memory_bytes, 'bytes')}."
        )


def warn_of_context(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    made: ServingMemory,
    usable: int,
    tokens: float,
    question: Question,
) -> None:
    """The verdict holds every request at the whole context, which few reach: what those of this load need, and
    whether the engine starts.
    """
    if made.memory.value <= usable or tokens >= plan.context or not made.fullest.per_token.value:
        return
    needs, alone = (
        serving_memory(model, replace(plan, **change), cluster.accelerator).memory.value
        for change in ({"context": int(tokens)}, {"concurrency": plan.attention_data_parallel_size})
    )
    starts = serving_runtime(plan.engine, plan.engine_version).queues and alone <= usable
    if needs > usable and not starts:
        return
    said = (
        f"the verdict holds {counted(plan.concurrency, 'requests')} of a replica at the whole context of "
        f"{plan.context:,} tokens. With the {tokens:,.0f} tokens "
        f"of a prompt and its answer they need {human(needs, 'bytes')}, which "
        f"{'fits' if needs <= usable else 'does not fit either'}."
    )
    if starts:
        said += (
            f" {plan.engine} starts all the same, as one whole request fits, and lets those wait for which there "
            "is no room."
        )
    question.warn(said)

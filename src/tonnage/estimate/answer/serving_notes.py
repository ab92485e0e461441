"""What an answer about a served model has to say beside its numbers: pages, files, host memory, whole contexts."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.host.memory import HostMemory
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.weights.storage import is_gguf_type, storage
from tonnage.estimate.serving_time.towers import is_timed
from tonnage.kernel.message import Message, joined
from tonnage.kernel.units import counted, human
from tonnage.models.purpose import purpose
from tonnage.ops import MoE
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

MUCH_MORE = 1.5  # times what is kept
MUCH_IN_FLIGHT = 0.25  # of what a request holds between steps


def warn_of_blocks(plan: ServingPlan, memory: ServingMemory, question: Question) -> None:
    """Where an engine sets aside much more than a request's keys and values, people look for the reason."""
    rank, engine = memory.fullest, plan.engine
    if rank.per_request.value > MUCH_MORE * rank.kept.value > 0:
        cells = serving_runtime(engine, plan.engine_version).cells
        question.warn(
            Message(
                "{engine} sets aside {per_request} of cache for a request that needs {kept}: layers with a window keep "
                "every token too."
                if cells is not None and cells.unpacks
                else "{engine} sets aside {per_request} of cache for a request that keeps {kept}: its blocks "
                "hold layers of several kinds.",
                engine=engine,
                per_request=human(rank.per_request.value, "bytes"),
                kept=human(rank.kept.value, "bytes"),
            )
        )
    if rank.in_flight > MUCH_IN_FLIGHT * rank.per_request.value > 0:
        question.warn(
            Message(
                "{engine} prints fewer requests when it starts: it counts each with {in_flight} of cache for the "
                "tokens of a step, which all requests share.",
                engine=engine,
                in_flight=human(rank.in_flight, "bytes"),
            )
        )


def warn_of_gguf(model: Model, plan: ServingPlan, memory: ServingMemory, question: Question) -> None:
    """GGUF files under an engine that does not keep them as they are."""
    engine = serving_runtime(plan.engine, plan.engine_version)
    if engine.gguf or not is_gguf_type(storage(model, plan.weights)):
        return
    if engine.dequantizes_gguf:
        question.warn(
            Message(
                "{engine} dequantises GGUF weights when it loads them: they are counted in {stored}. "
                "{--engine} llama.cpp keeps them as stored.",
                engine=plan.engine,
                stored=memory.stored.name,
            )
        )
    else:
        question.warn(
            Message(
                "GGUF is judged as {engine} would run it; {--engine} llama.cpp is what most people run it with.",
                engine=plan.engine,
            )
        )


def warn_of_emulation(plan: ServingPlan, cluster: Cluster, memory: ServingMemory, question: Question) -> None:
    """Formats that the engine reads without kernels for them, which costs time that no term counts."""
    engine = serving_runtime(plan.engine, plan.engine_version)
    if engine.weights_note is not None and (note := engine.weights_note(memory.stored.name, cluster.accelerator)):
        question.warn(note)


def warn_of_kernels(plan: ServingPlan, cluster: Cluster, question: Question) -> None:
    """What a user sets so that the engine runs the kernels that its times are of."""
    engine = serving_runtime(plan.engine, plan.engine_version)
    if engine.kernels_note is not None and (note := engine.kernels_note(cluster.accelerator)):
        question.warn(note, first=True)


def warn_of_slow_experts(model: Model, plan: ServingPlan, memory: ServingMemory, question: Question) -> None:
    """Formats of weights for which the engine's kernels of routed experts are not optimised: how slow, nobody says."""
    engine, stored = serving_runtime(plan.engine, plan.engine_version), memory.stored.name
    mixtures = any(isinstance(op, MoE) for block in model.decoder.blocks for op in block.ops)
    if mixtures and engine.slow_experts and stored.startswith(engine.slow_experts):
        question.warn(
            Message(
                "{engine} has no optimised kernels for routed experts in {stored} ({source}): they take several "
                "times as long as shown here. A newer {--engine-version} has, and {--weights} awq.",
                engine=engine.version,
                stored=stored,
                source=engine.slow_experts_source,
            )
        )


def host_of(
    memory: ServingMemory, plan: ServingPlan, cluster: Cluster, stated: int | None, question: Question
) -> HostMemory | None:
    """Host memory of a node where the verdict must name it: somebody says how much there is, or it does not suffice.
    None elsewhere; nothing is known of hosts that the catalogue does not describe.
    """
    known = cluster.node.host_memory_bytes if cluster.node is not None else None
    capacity = known if stated is None else stated
    if memory.host is not None and capacity is None and plan.adapters.lora_on_host:
        question.warn(
            Message(
                "{number:,} adapters take {host} of host memory, and no source says how much {machine} has: "
                "{--host-memory} says it.",
                number=plan.adapters.lora_on_host,
                host=human(memory.host.value, "bytes"),
                machine=cluster.name,
            )
        )
    if memory.host is None or capacity is None:
        return None
    missing = memory.host.value - capacity
    if missing > 0:
        ways = serving_runtime(plan.engine, plan.engine_version).host_experts is not None
        fewer = Message(" More {--gpu-experts} or a narrower {--host-method} need less.") if ways else ""
        question.warn(
            Message(
                "host memory does not suffice: {host} are needed of {capacity}, {missing} are missing.{fewer}",
                host=human(memory.host.value, "bytes"),
                capacity=human(capacity, "bytes"),
                missing=human(missing, "bytes"),
                fewer=fewer,
            ),
            first=True,
        )
    return HostMemory(memory.host, None, capacity) if missing > 0 or stated is not None else None


def warn_of_context(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    memory: ServingMemory,
    usable: int,
    tokens: float,
    question: Question,
) -> None:
    """The verdict holds every request at the whole context, which few reach: what those of this load need, and
    whether the engine starts.
    """
    if memory.memory.value <= usable or tokens >= plan.context or not memory.fullest.per_token.value:
        return
    needs, alone = (
        serving_memory(model, replace(plan, **change), cluster.accelerator).memory.value
        for change in ({"context": int(tokens)}, {"concurrency": plan.attention_data_parallel_size})
    )
    starts = serving_runtime(plan.engine, plan.engine_version).queues and alone <= usable
    if needs > usable and not starts:
        return
    lengths_given = (
        Message(
            "the verdict holds {concurrency} of a replica at the whole context of {context:,} tokens. With "
            "the {tokens:,.0f} tokens of a prompt and its answer they need {needs}, which fits.",
            concurrency=counted(plan.concurrency, "requests"),
            context=plan.context,
            tokens=tokens,
            needs=human(needs, "bytes"),
        )
        if needs <= usable
        else Message(
            "the verdict holds {concurrency} of a replica at the whole context of {context:,} tokens. With "
            "the {tokens:,.0f} tokens of a prompt and its answer they need {needs}, which does not fit "
            "either.",
            concurrency=counted(plan.concurrency, "requests"),
            context=plan.context,
            tokens=tokens,
            needs=human(needs, "bytes"),
        )
    )
    if starts:
        lengths_given += Message(
            " {engine} starts all the same, as one whole request fits, and lets those wait for which there is no room.",
            engine=plan.engine,
        )
    question.warn(lengths_given)


def warn_of_denoising(plan: ServingPlan, question: Question) -> None:
    """When the tokens of a diffusion language model appear, and what its times rest on."""
    if plan.denoising is None:
        return
    if plan.denoising.cache == "block":
        question.warn(
            Message(
                "tokens appear {block} at a time: TTFT is that of the first block, and TPOT the mean time of a token. "
                "A threshold of confidence takes fewer passes than {--denoising-steps} {steps:,}; how many depends on "
                "the text.",
                block=plan.denoising.block,
                steps=plan.denoising.steps,
            )
        )
    else:
        question.warn(
            Message(
                "the answer is returned when all of it is denoised: TTFT is the time of the whole answer, and TPOT the "
                "mean time of a token, in {steps:,} passes.",
                steps=plan.denoising.steps,
            )
        )


def warn_of_media(model: Model, plan: ServingPlan, question: Question) -> None:
    """What an answer leaves out of images and sounds: all of them where the requests are text alone. Models that
    write speech down leave out none.
    """
    towers = [branch.name for branch in model.branches if branch.kind in ("vision", "audio")]
    if plan.media is not None:
        question.warn(
            "the time in which the host decodes, resizes and cuts images and sounds is not counted: no source gives it."
        )
        engine = serving_runtime(plan.engine, plan.engine_version)
        most = engine.frame_pixels.get(model.family)
        if plan.media.video is not None and most and plan.media.width * plan.media.height > most:
            question.warn(
                Message(
                    "{engine} shrinks the frames of a video to {most:,} pixels before the model's own processor: they "
                    "have fewer tokens than counted here.",
                    engine=engine.name,
                    most=most,
                )
            )
        if not is_timed(model, plan.media):
            question.warn("the time of the vision tower is not counted: its convolutions see images of several sizes.")
    elif towers and purpose(model) != "transcribe":
        question.warn(
            Message(
                "{towers}: the answer is for text alone. {--images} and {--audio-seconds} add the tokens, memory and "
                "time of images and sounds.",
                towers=joined(" and ", towers),
            )
        )

"""A run that names a tool, such as axolotl: the options on its runtime, with the tool's own defaults."""

from math import prod, sqrt
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question, own_of
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.rollout_options import OWN_GENERATE, generates, usual_engine
from tonnage.kernel.errors import InvalidInput, InvalidPlan, shown
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.registry import letters_of
from tonnage.question.amounts import duration
from tonnage.runtimes import has_training_runtime, training_runtime
from tonnage.runtimes.parts.tool import Tool
from tonnage.runtimes.parts.tools import names_version, peft_targets, runtime_needed, runtime_of, tool_named
from tonnage.spec import Cluster

USUAL_FPS = 2.0  # frames a second of LLaMA-Factory, hparams/model_args.py: video_fps
SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "data_parallel_size")
ADAPTERS = ("lora", "dora", "qlora")
# Sizes by which the model itself is divided.
DIVIDED = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "expert_parallel_size")


class RunOfTool(Struct, frozen=True):
    """The options with which the tool's runtime is estimated, and those of them that are its own defaults."""

    tool: Tool
    options: TrainingOptions
    own: dict[str, Any]


def runtime_named(options: TrainingOptions) -> str | None:
    """The runtime that is asked for: of a tool, that which it runs on."""
    tool = tool_of(options)
    return options.runtime if tool is None else runtime_of(tool, options)


def run_of_tool(model: Model, cluster: Cluster, options: TrainingOptions) -> RunOfTool | None:
    """The run on the tool's runtime; None where no tool is named. MissingDatum of a tool that is not estimated."""
    tool = tool_of(options)
    if tool is None:
        return None
    if tool.refusal:
        raise runtime_needed(tool)
    for lacking in tool.lacks:
        check_lacking(tool, lacking, getattr(options, lacking))
    name = runtime_of(tool, options)
    several = training_runtime(name).on_several
    on = several.runtime if several is not None and cluster.size > 1 else name
    options = _without_version(tool, name, options)
    defaults = _defaults(tool, on, model, cluster, options)
    own = {option: value for option, value in defaults.items() if getattr(options, option) is None}
    shrunk = {"image_size": size} if (size := _shrunk(tool, options)) else {}
    return RunOfTool(tool, replace(options, **own, **shrunk, runtime=name), own)


def check_lacking(tool: Tool, name: str, size: int | None) -> None:
    """InvalidPlan where a size is asked for that the tool lacks."""
    if size in (None, 1):
        return
    raise InvalidPlan(
        "{tool} has no {option} on {runtime}: it must be 1. Got {size}. Its sizes are of {source}. Nearest: {@runtime} "
        "{nearest}.",
        tool=tool.title,
        option=option_name(name),
        runtime=tool.runtime,
        size=size,
        source=tool.lacks_source,
        nearest=tool.lacks_nearest,
    )


def _without_version(tool: Tool, runtime: str, o: TrainingOptions) -> TrainingOptions:
    """The options without a version that is the tool's own, as which it is estimated anyway; one of the runtime stays.
    InvalidInput of any other.
    """
    wanted = o.runtime_version
    if wanted is None:
        return o
    newest = training_runtime(runtime)
    versions = [each.version for each in (newest, *newest.older.values())]
    if wanted in versions:
        return o
    named = {letters_of(version.split()[0]) for version in versions}
    if named & {letters_of(tool.name), *tool.aliases}:  # torchtitan, by either name
        return o
    if tool.version and names_version(tool.version, wanted):
        return replace(o, runtime_version=None)
    values = {"tool": tool.title, "runtime": runtime, "versions": listed(map(repr, versions)), "wanted": shown(wanted)}
    if tool.version:
        raise InvalidInput(
            "{tool} is estimated as of its version {version}, and {@runtime_version} names versions of {runtime}, on "
            "which it runs: {versions}. Got {wanted}: leave it out.",
            version=tool.version,
            **values,
        )
    raise InvalidInput(
        "{tool} is estimated as of one state of its source, and {@runtime_version} names versions of {runtime}, on "
        "which it runs: {versions}. Got {wanted}: leave it out.",
        **values,
    )


def divided(cluster: Cluster, o: TrainingOptions) -> tuple[Cluster, TrainingOptions]:
    """The machine that trains, and the options with the accelerators that generate apart: half of the machine, where
    the tool generates apart or steps overlap, and nobody says how many do. As they are where they take turns, and where
    stated sizes of parallelism need more than that half.
    """
    if o.rollout_accelerators is not None or cluster.size < 2 or not generates(o.objective or "sft"):
        return cluster, o
    tool = tool_of(o)
    if not o.async_steps and not (tool and tool.generates_apart):
        return cluster, o
    if (o.rollout_engine or usual_engine(o.objective or "")) == OWN_GENERATE:
        return cluster, o
    if cluster.num_nodes > 1:
        train = replace(cluster, num_nodes=cluster.num_nodes - cluster.num_nodes // 2)
    else:
        train = replace(cluster, accelerators_per_node=cluster.size - cluster.size // 2)
    if train.size % prod(getattr(o, name) or 1 for name in SIZES):
        return cluster, o
    return train, replace(o, rollout_accelerators=cluster.size - train.size)


def note_divided(whole: Cluster, cluster: Cluster, o: TrainingOptions, question: Question) -> None:
    """Say how many accelerators train and how many generate."""
    if not question.is_read:
        return
    question.warn(
        Message(
            "of {whole}, {train} train and {apart} generate: {--rollout-accelerators} says how many generate beside "
            "those of {--on}; with 0 all take turns.",
            whole=whole.name,
            train=cluster.size,
            apart=o.rollout_accelerators,
        ),
        first=True,
    )


def _shrunk(tool: Tool, o: TrainingOptions) -> str:
    """The size to which the tool shrinks images or frames of a video; empty where it leaves them (LLaMA-Factory,
    data/mm_plugin.py: _preprocess_image).
    """
    most = _most_pixels(tool, o)
    if not most:
        return ""
    from tonnage.estimate.media import USUAL_SIZE  # most runs are on text
    from tonnage.estimate.media.asked import image_sides

    width, height = image_sides(o.image_size or USUAL_SIZE)
    factor = sqrt(most / (width * height))
    return f"{int(width * factor)}x{int(height * factor)}" if factor < 1 else ""


def _most_pixels(tool: Tool, o: TrainingOptions) -> int:
    """Pixels to which the tool shrinks what the sequences hold; 0: there is no limit, or text alone."""
    if o.images is not None:
        return tool.image_pixels
    return tool.video_pixels if o.video_seconds is not None else 0


def note_tool(run: RunOfTool, runtime: str, question: Question) -> None:
    """Say what the tool runs on, and which values are its own."""
    if not question.is_read:
        return
    for name, value in run.own.items():
        if name in question:
            question.put(name, value, "runtime", own_of(run.tool.shown))
    given = question.entries["runtime"]
    question.put("runtime", given.value, "given", run.tool.shown, tool=run.tool.name)
    for sentence in reversed(tool_notes(run, runtime)):
        question.warn(sentence, first=True)
    if most := _most_pixels(run.tool, run.options):
        question.warn(
            Message(
                "{tool} shrinks images to {most:,} pixels at most: they are of {size} here.",
                tool=run.tool.shown,
                most=most,
                size=question.entries["image_size"].value,
            )
        )


def tool_notes(run: RunOfTool, runtime: str) -> list[str]:
    """Notes on what differs, on what the tool runs on, and on its own defaults."""
    facts = training_runtime(runtime)
    shown = facts.version if facts.version.lower().startswith(f"{facts.name} ") else facts.name
    if run.own:
        values = [Message("{name} {value}", name=option_name(name), value=value) for name, value in run.own.items()]
        sentence = Message(
            "{tool} runs on {runtime}. Its own defaults: {values}.",
            tool=run.tool.shown,
            runtime=shown,
            values=listed(values),
        )
    else:
        sentence = Message("{tool} runs on {runtime}.", tool=run.tool.shown, runtime=shown)
    differs = Message("{tool}: {differs}.", tool=run.tool.shown, differs=run.tool.differs)
    return [differs, sentence] if run.tool.differs else [sentence]


def tool_of(options: TrainingOptions) -> Tool | None:
    """The tool that the options name in place of a runtime; None where they name none."""
    name = options.runtime
    return None if name is None or has_training_runtime(name) else tool_named(name)


def _defaults(tool: Tool, runtime: str, model: Model, cluster: Cluster, o: TrainingOptions) -> dict[str, Any]:
    """What the tool sets where nobody says it: option -> value."""
    is_quantised = o.method == "qlora" or o.base_weights not in (None, "16 bit")
    found = tool.settings(runtime, o.method, is_quantised=is_quantised, tensor=o.tensor_parallel_size)
    if tool.freezes_tower and o.method in (None, "full") and any(branch.kind == "vision" for branch in model.branches):
        found["vision_tower"] = "frozen"
    if tool.video_frames and o.video_seconds is not None:
        seconds = duration("video_seconds", o.video_seconds) or 0.0
        if seconds * USUAL_FPS > tool.video_frames:
            found["video_fps"] = tool.video_frames / seconds
    if tool.replicates and all((getattr(o, size) or 1) == 1 for size in DIVIDED):
        found["replicate_size"] = cluster.size
    if tool.data_loader_workers:
        found["data_loader_workers"] = tool.data_loader_workers
    if o.method in ADAPTERS:
        found |= _adapters(tool, model)
    says_length = generates(o.objective or "sft") and o.max_completion_length is not None
    if tool.sequence_length and not says_length:
        found["sequence_length"] = min(tool.sequence_length, model.context or tool.sequence_length)
    if tool.checkpoints is not None:
        found["recompute"] = "full" if tool.checkpoints else "none"
    if generates(o.objective or "sft"):
        awake = o.engine_memory_share is not None
        found |= tool.settings_of_rollouts(o.objective or "", apart=bool(o.rollout_accelerators), awake=awake)
    if o.global_batch_size is None:
        found |= _batch(tool, cluster, o)
    return found


def _adapters(tool: Tool, model: Model) -> dict[str, Any]:
    """Rank, dropout and places of adapters."""
    found: dict[str, Any] = {}
    if tool.lora_rank:
        found["lora_rank"] = tool.lora_rank
    if tool.lora_dropout:
        found["lora_dropout"] = True
    if tool.peft_targets:
        found["lora_targets"] = peft_targets(model.name)
    return found


def _batch(tool: Tool, cluster: Cluster, o: TrainingOptions) -> dict[str, int]:
    """Sequences of a micro-batch, and how many of them a step has."""
    found: dict[str, int] = {}
    if tool.micro_batch_size:
        found["micro_batch_size"] = tool.micro_batch_size
    if tool.step_sequences:
        micro = o.micro_batch_size or tool.micro_batch_size
        found["num_microbatches"] = max(1, -(-tool.step_sequences // (micro * cluster.size)))
    return found

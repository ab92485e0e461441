"""A question that names a tool which runs on an engine, such as vllm-ascend: the options on its engine."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question, own_of
from tonnage.estimate.serving.engine_checks import answers, loads, runs_on, stored_format
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, listed, option_name
from tonnage.runtimes import has_serving_runtime, serving_runtime, serving_runtimes
from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS, EngineTool
from tonnage.runtimes.parts.tool import find_tool
from tonnage.spec import Accelerator, Cluster

MAX_NEAREST = 5  # engines that an error names


class RunOfTool(Struct, frozen=True):
    """The options with which the tool's engine is estimated, and those of them that are its own defaults."""

    tool: EngineTool
    options: ServingOptions
    own: dict[str, Any]


def run_of_tool(model: Model, cluster: Cluster, options: ServingOptions) -> RunOfTool | None:
    """The run on the tool's engine; None where no tool is named. InvalidPlan on a machine that the tool does not run
    on.
    """
    name = options.engine
    tool = None if name is None or has_serving_runtime(name) else find_tool(ENGINE_TOOLS, name)
    if tool is None:
        return None
    _check_machine(tool, cluster.accelerator)
    own = {name: value for name, value in tool.defaults.items() if getattr(options, name) is None}
    if "context" in own:
        own["context"] = min(own["context"], model.context or own["context"])
    engine = _engine(tool, model, cluster.accelerator, options)
    return RunOfTool(tool, replace(options, **own, engine=engine), own)


def _engine(tool: EngineTool, model: Model, accelerator: Accelerator, options: ServingOptions) -> str:
    """The engine that the tool takes for these weights on this accelerator."""
    stored = stored_format(model, options.weights)
    of_format = next((engine for form, engine in tool.of_formats.items() if stored.startswith(form)), "")
    if of_format:
        return of_format
    running = [name for name in tool.engines if runs_on(serving_runtime(name), accelerator)]
    loading = [name for name in running if loads(serving_runtime(name), stored)]
    return (*loading, *running, *tool.engines)[0]


def _check_machine(tool: EngineTool, accelerator: Accelerator) -> None:
    runs_here = not tool.vendors or accelerator.vendor in tool.vendors
    if runs_here and (not tool.kinds or accelerator.kind in tool.kinds):
        return
    known = dict.fromkeys((*tool.engines, *serving_runtimes()))
    nearest = [name for name in known if runs_on(serving_runtime(name), accelerator) and answers(name)]
    if not runs_here:
        raise InvalidPlan(
            "{@engine}: {version} runs on accelerators of {vendors}. Got {accelerator} of {vendor}. "
            "Nearest: {nearest}.",
            version=tool.shown,
            vendors=listed(tool.vendors),
            accelerator=accelerator.name,
            vendor=accelerator.vendor,
            nearest=listed(nearest[:MAX_NEAREST]),
        )
    raise InvalidPlan(
        "{@engine}: {version} has no backend for a {kind} of {vendor} ({backends_source}). Got "
        "{accelerator}. Nearest: {nearest}.",
        version=tool.shown,
        kind=accelerator.kind,
        vendor=accelerator.vendor,
        backends_source=tool.source,
        accelerator=accelerator.name,
        nearest=listed(nearest[:MAX_NEAREST]),
    )


def check_requests(tool: EngineTool, concurrency: Number) -> None:
    """InvalidPlan for more requests of a replica at once than the tool runs."""
    if tool.one_request and concurrency > 1:
        raise InvalidPlan(
            "{@engine}: {tool} runs one request at a time, and {@concurrency} asks for {concurrency} of a replica. "
            "Nearest: {@concurrency} 1, or {@engine} {nearest}.",
            tool=tool.shown,
            concurrency=concurrency,
            nearest=tool.engines[0],
        )


def note_tool(run: RunOfTool, question: Question) -> None:
    """Say what the tool runs on, and which values are its own."""
    if not question.is_read:
        return
    tool, entries = run.tool, question.entries
    for name, value in run.own.items():
        named = serving_runtime(str(entries["engine"].value)).setting if name == "gpu_memory_utilization" else name
        if named in entries:
            question.put(named, value, "runtime", own_of(tool.shown))
    question.put("engine", entries["engine"].value, "given", tool.shown, tool=tool.name)
    engine = entries["engine_version"].value
    values = [Message("{name} {value}", name=option_name(name), value=value) for name, value in run.own.items()]
    sentence = (
        Message(
            "{tool} runs on {runtime}. Its own defaults: {values}.",
            tool=tool.shown,
            runtime=engine,
            values=listed(values),
        )
        if values
        else Message("{tool} runs on {runtime}.", tool=tool.shown, runtime=engine)
    )
    if tool.differs:
        question.warn(Message("{tool}: {differs}.", tool=tool.shown, differs=tool.differs), first=True)
    question.warn(sentence, first=True)

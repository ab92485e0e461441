"""The command that starts an engine as a plan has it."""

from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.serving.denoising import OWN_CODE
from tonnage.estimate.serving.placement import HEADS, drafting
from tonnage.estimate.serving.weights.storage import storage
from tonnage.kernel.message import Message, joined
from tonnage.kernel.units import counted
from tonnage.numerics.quantization import FILE_TYPES
from tonnage.runtimes import HUB, ServingRuntime, Spread, Start, serving_runtime
from tonnage.runtimes.parts.plugins import plugin_for
from tonnage.runtimes.parts.start import DECODE, PREFILL, Roles
from tonnage.spec import Accelerator, Cluster, ServingPlan

# ---- What a launch command calls the model, and what it says of how weights are stored.

# What stands in a command where the model that drafts has no name that a loader knows.
DRAFT = "DRAFT_MODEL"
ELSEWHERE = ("/", ".", "~")  # how a path of the machine that saved a config begins
DTYPES = {"bf16": "bfloat16", "fp16": "half", "fp32": "float32"}


class Loaded(Struct, frozen=True, kw_only=True):
    """`name` of the checkpoint that the engine is given, `words` with which it is loaded, `notes` for who runs them."""

    name: str
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def place(model: Model, unknown: str = HUB) -> str:
    """The model as a loader finds it: by its id on a hub or its path, else by the id that its config says; `unknown`
    where it says none. What only we call it, such as a pasted config, would be looked for on a hub.
    """
    if model.place or "/" in model.name:
        return model.place or model.name
    path = str(model.config.get("_name_or_path") or "").strip()
    return unknown if not path or path.startswith(ELSEWHERE) or ":" in path else path


def draft_place(model: Model, plan: ServingPlan) -> str:
    """The same of the model, or the head, that drafts; nothing where none does."""
    if plan.drafting.speculative in HEADS:
        from tonnage.estimate.serving.speculative import published_head

        return plan.drafting.draft_model or published_head(model, plan.drafting.speculative) or DRAFT
    draft = drafting(model, plan)
    return place(draft, DRAFT) if draft is not None else ""


def to_be_named(engine: ServingRuntime, *names: str) -> list[str]:
    """What a command with these names leaves to whoever runs it: the checkpoints of which only a config was read."""
    named = (
        Message("{word} stands for a checkpoint of which only the config is known: put its path there.", word=word)
        if engine.loads_files
        else Message(
            "{word} stands for a checkpoint of which only the config is known: put its path there, or its id on a hub.",
            word=word,
        )
        for word in (HUB, DRAFT)
        if word in names
    )
    return list(named)


def loaded(model: Model, plan: ServingPlan, accelerator: Accelerator) -> Loaded:
    """The checkpoint that the engine can hold as the plan stores it: the model itself, or one that somebody has
    quantised.
    """
    engine = serving_runtime(plan.engine, plan.engine_version)
    stored, own = storage(model, plan.weights).name, storage(model, None).name
    if stored == own:
        return Loaded(name=place(model), words=_halved(model, engine, accelerator))
    if engine.loads_files:
        return Loaded(name=place(model))
    if own in DTYPES:
        if engine.exports and stored.startswith(engine.exports):
            return Loaded(name=place(model))
        if stored in DTYPES and engine.dtype_flag:
            return Loaded(name=place(model), words=(f"{engine.dtype_flag} {DTYPES[stored]}",))
        word = engine.at_load.get(stored)
        if word:
            return Loaded(name=place(model), words=(word, *_halved(model, engine, accelerator)))
    weights = plan.weights or stored
    note = Message(
        "{engine} does not make {weights} out of {model} ({own}): give it a checkpoint that is stored so.",
        engine=plan.engine,
        weights=weights,
        model=place(model),
        own=own,
    )
    return Loaded(
        name=f"PATH-OR-ID-OF-A-{weights}-CHECKPOINT", words=_halved(model, engine, accelerator), notes=(note,)
    )


def file_name(name: str, model: Model, plan: ServingPlan) -> str:
    """The GGUF file: that which was read, or one called as converters call theirs, by model and type."""
    if name.endswith(".gguf"):
        return name
    kind = storage(model, plan.weights).name
    plain = name.rstrip("/").rpartition("/")[2].lstrip(".") or HUB
    return f"{plain}-{kind.upper()}.gguf" if kind in FILE_TYPES else f"{plain}.gguf"


def _halved(model: Model, engine: ServingRuntime, accelerator: Accelerator) -> tuple[str, ...]:
    """vLLM, vllm/platforms/cuda.py, check_if_supports_dtype: bfloat16 needs an accelerator of compute capability
    8.0.
    """
    peaks = accelerator.dense_flops
    lacks = accelerator.vendor == "NVIDIA" and "fp16" in peaks and "bf16" not in peaks
    return (f"{engine.dtype_flag} half",) if lacks and engine.dtype_flag and model.dtype != "float16" else ()


# ---- Where a launch command runs: on each node of several, and as how many servers.


def spread(model: Model, plan: ServingPlan, cluster: Cluster) -> Spread:
    """vLLM's data-parallel ranks are of one server on all nodes. SGLang's are of one node, where they share no
    attention; the rest know none.

    vLLM, docs/serving/data_parallel_deployment.md: data-parallel ranks of a mixture share its experts and wait for each
    other, so that replicas that are whole are servers of their own.
    """
    ranks = int(plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.attention_data_parallel_size)
    copies, node = int(plan.data_parallel_size), cluster.accelerators_per_host
    shares = serving_runtime(plan.engine, plan.engine_version).copies_in_server
    if shares == "all-nodes" and not expert_counts(model):
        return Spread(nodes=min(cluster.num_hosts, -(-ranks * copies // node)), copies=copies, servers=1)
    nodes = max(-(-ranks // node), 1)
    own = max(node // ranks, 1) if shares == "one-node" and plan.attention_data_parallel_size == 1 else 1
    own = own if copies % own == 0 else 1
    return Spread(nodes=nodes, copies=min(own, copies), servers=copies // min(own, copies))


def launch_command(
    model: Model, plan: ServingPlan, cluster: Cluster, *more_notes: str, roles: Roles | None = None
) -> str:
    """One line for a shell, or several where the engine is told by its environment and a file, and comments on what
    it leaves to the user. What the engine's default is, is not said. `more_notes`: further
    comments. `roles`: prefill and decode servers of their own, each with a line, and the line of a router.
    """
    engine = serving_runtime(plan.engine, plan.engine_version)
    if engine.launch is None:
        return Message("# How {engine} is started is not known.", engine=plan.engine)
    if plan.denoising is not None and plan.engine == OWN_CODE:
        return Message(
            "# {model} is denoised by the generate() of its own code (trust_remote_code); no server starts it.",
            model=place(model),
        )
    if roles is None:
        command, notes = _one_command(model, plan, cluster, spread(model, plan, cluster), Role())
        return _with_notes([command], [*notes, *more_notes])
    one = replace(spread(model, replace(plan, data_parallel_size=1), cluster), copies=1)
    lines, notes = list[str](), list[str]()
    for role, servers in ((PREFILL, roles.prefill), (DECODE, roles.decode)):
        started = Role(name=role, transfer=roles.transfer)
        command, own = _one_command(model, plan, cluster, replace(one, servers=1), started)
        number = counted(servers, "servers")
        prefills = Message("prefill: {servers}", servers=number)
        comment = prefills if role == PREFILL else Message("decode: {servers}", servers=number)
        lines.append(_with_comment(command, comment))
        notes += [note for note in own if note not in notes]
    if one.nodes == 1 and plan.tensor_parallel_size * plan.pipeline_parallel_size < cluster.accelerators_per_host:
        notes.append(Message("Servers on one node need accelerators and ports of their own."))
    if engine.router is not None:
        lines.append(_with_comment(engine.router(roles), Message("router")))
    return _with_notes(lines, [*notes, *more_notes])


def _with_comment(command: str, comment: str) -> str:
    return joined("  # ", (command, comment))


class Role(Struct, frozen=True, kw_only=True):
    """What a server does of disaggregated serving: `name` is prefill or decode, "" for one that does both."""

    name: str = ""
    transfer: str = ""


def _one_command(
    model: Model, plan: ServingPlan, cluster: Cluster, place_of: Spread, role: Role
) -> tuple[str, list[str]]:
    """The command of one server, and notes on it."""
    model_place, engine = loaded(model, plan, cluster.accelerator), serving_runtime(plan.engine, plan.engine_version)
    start = Start(
        model=model,
        plan=plan,
        cluster=cluster,
        engine=engine.version,
        name=model_place.name,
        place=place(model),
        file=quote(file_name(model_place.name, model, plan)),
        draft=draft_place(model, plan),
        words=list(model_place.words),
        spread=place_of,
        notes=list(model_place.notes),
        role=role.name,
        transfer=role.transfer,
    )
    variable = engine.longer_variable if plan.context > (model.context or plan.context) else ""
    command = f"{variable} {_started(start, engine)}".lstrip()
    plugin = plugin_for(engine.plugins, cluster.accelerator)
    if plugin is not None:
        start.notes.append(
            Message(
                "On {accelerator} it runs with the package {package} beside it.",
                accelerator=cluster.accelerator.name,
                package=plugin.package,
            )
        )
    unnamed = to_be_named(engine, start.name, start.draft if start.draft in command else "")
    return command, [*start.notes, *unnamed]


def _started(start: Start, engine: ServingRuntime) -> str:
    """The engine's command, or that of the tool which runs it."""
    assert engine.launch is not None
    if not start.plan.engine_tool:
        return engine.launch(start)
    from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS

    write = ENGINE_TOOLS[start.plan.engine_tool].launch
    return engine.launch(start) if write is None else write(start, engine.launch)


def _with_notes(commands: list[str], notes: list[str]) -> str:
    return joined("\n", [*commands, *(Message("# {note}", note=note) for note in notes)])

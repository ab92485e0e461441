"""What every answer says of its question: model, machine, and the memory that can be used."""

from tonnage.architectures import Model
from tonnage.estimate.bands.forms import Band
from tonnage.estimate.inputs import Question
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.units import human
from tonnage.spec import Cluster

# What `usable_bytes` starts from, and the fact that has its source.
USABLE = {
    "runtime": ("the total that the runtime gives programs", "runtime_mib"),
    "driver": ("the total that the driver reports", "reported_mib"),
    "nominal": ("the memory as sold", "nominal_gib"),
}


def about(model: Model, cluster: Cluster, advise: bool = True) -> Question:
    question = Question()
    question.put("model", model.name, "given", model.source)
    question.put(
        "parameters",
        model.num_parameters(),
        "model",
        Message("family {family}, {architecture}", family=model.family, architecture=model.architecture)
        if model.architecture
        else Message("family {family}", family=model.family),
    )
    question.put("on", cluster.name, "given")
    question.put("accelerators", cluster.size, "cluster")
    if not advise:
        question.put("advice", False, "given")
    for note in (*([cluster.note] if cluster.note else ()), *model.notes):
        question.warn(note)
    if model.assumed:
        shown = listed(f"{key}={value!r}" for key, value in list(model.assumed.items())[:8])
        question.warn(Message("the config leaves these to the family's defaults: {shown}.", shown=shown))
    return question


def usable_bytes(cluster: Cluster, reserve_bytes: int, question: Question) -> int:
    chip, memory = cluster.accelerator, cluster.accelerator.memory
    what, key = USABLE[memory.usable_from]
    if memory.system_bytes:
        what, key = Message("{what}, less what the system keeps", what=what), "system_gib"
    fact = chip.fact(f"memory.{key}")
    why = joined("; ", (what, fact.source)) if fact else what
    question.put("usable_memory", memory.usable_from, "catalogue", why)
    question.put("reserve_bytes", reserve_bytes, "given" if reserve_bytes else "default")
    if memory.usable_from == "driver":
        question.warn(
            Message(
                "no source says how much memory the runtime of {chip} gives programs: what its driver reports is "
                "used, of which a program can get a little less.",
                chip=chip.name,
            )
        )
    elif memory.usable_from == "nominal" and not memory.system_bytes:
        question.warn(
            Message(
                "no source says what the driver of {chip} reports or its runtime gives programs: its nominal "
                "memory is used, of which a program gets less.",
                chip=chip.name,
            )
        )
    if not 0 <= reserve_bytes < memory.usable_bytes:
        raise InvalidInput(
            "{@reserve} must leave some of the {usable_bytes} that {accelerator} has. Got {reserve_bytes}.",
            usable_bytes=human(memory.usable_bytes, "bytes"),
            accelerator=cluster.accelerator.name,
            reserve_bytes=human(reserve_bytes, "bytes"),
        )
    return memory.usable_bytes - reserve_bytes


def warn_of_towers(model: Model, question: Question) -> None:
    towers = [branch.name for branch in model.branches if branch.kind in ("vision", "audio")]
    if towers:
        question.warn(
            Message(
                "{towers}: weights are counted, activations of images and sounds are not.",
                towers=joined(" and ", towers),
            )
        )


def put_band(band: Band | None, question: Question) -> Band | None:
    """The band, which the question names where there is one."""
    if band is not None:
        factors = Message("x {low:.3g} to x {high:.3g}", low=band.low, high=band.high)
        question.put("error_band", factors, "measurements", band.what)
    return band

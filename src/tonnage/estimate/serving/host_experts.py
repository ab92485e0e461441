"""Routed experts that an engine keeps in host memory beside those of each layer that the accelerators hold."""

from typing import Any

from msgspec import Struct

from tonnage.architectures import Block, Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import rate
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.serving.weights.storage import Storage, block_bytes, is_gguf_type, storage
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.kernel.units import counted
from tonnage.numerics.quantization import is_file_type
from tonnage.ops import MoE
from tonnage.question.subjects.serving import ServingOptions
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.runtimes.parts.host_experts import HostExperts, HostMethod
from tonnage.spec import Cluster, ServingPlan

WORKSTATION_BANDWIDTH = 2 * 8 * 5600e6  # bytes a second of two channels, each 8 bytes wide, of DDR5-5600


class HeldExperts(Struct, frozen=True, eq=False):
    """How a plan's experts lie in host memory: the method, as a user names it, and their bytes."""

    rules: HostExperts
    name: str
    method: HostMethod
    stored: Storage


def held_experts(model: Model, plan: ServingPlan) -> HeldExperts | None:
    """None where the engine keeps no experts there, or the model has none."""
    rules = serving_runtime(plan.engine, plan.engine_version).host_experts
    if rules is None or not expert_counts(model):
        return None
    name = _method_name(model, rules, plan.host.host_method, plan.weights)
    method = rules.method(name)
    return HeldExperts(rules, name, method, storage(model, method.weights or name))


def _method_name(model: Model, rules: HostExperts, named: str, weights: str | None) -> str:
    """A method, or a GGUF file type in place of the one that reads files."""
    own = storage(model, weights)
    file_type = own.name.lower() if is_gguf_type(own) else rules.file_type
    if not named:
        if is_gguf_type(own):
            return file_type
        fitting = (name for name, each in rules.methods.items() if own.name.startswith(each.taken_for or ("?",)))
        chosen = next(fitting, rules.default)
        return file_type if chosen == rules.of_files else chosen
    word = named.upper().replace("-", "_")
    if word == rules.of_files:
        return file_type
    if word in rules.methods:
        return word
    if rules.of_files in rules.methods and is_file_type(named):
        return named.lower()
    raise unknown("{@host_method}", named, [*rules.methods, "q4_k_m"])


def host_experts_plan(
    model: Model, o: ServingOptions, engine: ServingRuntime, bandwidth: float | None, q: Question
) -> dict[str, Any]:
    """The plan's fields of experts in host memory, each with its reason."""
    rules = engine.host_experts
    if rules is None:
        return {}
    counts = expert_counts(model)
    if not counts:
        raise NotApplicable(
            Message(
                "{@engine}: {engine} keeps routed experts in host memory, and {model} has none. Nearest: {nearest}.",
                engine=engine.name,
                model=model.name,
                nearest=engine.passes_in,
            ),
            "engine",
            ("model",),
        )
    most = min(counts)
    if not 0 <= (o.gpu_experts or 0) <= most:
        raise InvalidPlan(
            "{@gpu_experts} must be from 0 to the {most} experts of a layer of {model}. Got {gpu_experts}. "
            "Nearest: {nearest}.",
            most=most,
            model=model.name,
            gpu_experts=o.gpu_experts,
            nearest=most,
        )
    name = _method_name(model, rules, o.host_method or "", o.weights)
    method = rules.method(name)
    why = Message("the processor needs {needs}", needs=method.needs)
    settings = {
        "gpu_experts": q.take("gpu_experts", o.gpu_experts, 0, "default", "all others are in host memory"),
        "host_cores": _host_cores(rules, o, bandwidth, q),
        "host_method": q.put("host_method", name, "given" if o.host_method else "runtime", why),
    }
    if o.gpu_prefill_tokens:
        if not (method.is_native and rules.link_share):
            native = [name for name, each in rules.methods.items() if each.is_native and rules.link_share]
            raise InvalidPlan(
                "{@gpu_prefill_tokens}: {version} loads experts onto the GPU in formats that it multiplies too: "
                "{native}. Got {@host_method} {name}.",
                version=engine.version,
                native=listed(native) or "none",
                name=name,
            )
        settings["gpu_prefill_tokens"] = q.put("gpu_prefill_tokens", o.gpu_prefill_tokens, "given")
    return settings


def host_bandwidth(cluster: Cluster, o: ServingOptions, q: Question, engine: ServingRuntime) -> float | None:
    """Bytes a second of the host's memory. Assumed where layers stay there and the card is one of a workstation; None:
    nobody says, as of servers, whose hosts have 4 to 24 channels.
    """
    given = rate("host_bandwidth", o.host_bandwidth)
    multiplies = o.layers_on_accelerator is not None or bool(o.expert_layers_on_host or engine.host_experts)
    if given is not None or not multiplies or cluster.node is not None:
        return given
    if not (cluster.accelerator.memory.kind or "").startswith("GDDR"):
        return None
    q.warn(
        Message(
            "host memory of {rate:.1f} GB/s is assumed (two channels of DDR5-5600); others have 51 (DDR4-3200) to 102 "
            "(DDR5-6400): set {--host-bandwidth}.",
            rate=WORKSTATION_BANDWIDTH / 1e9,
        )
    )
    return float(q.take("host_bandwidth", None, WORKSTATION_BANDWIDTH))


def _host_cores(rules: HostExperts, o: ServingOptions, bandwidth: float | None, q: Question) -> int | None:
    """Cores that multiply experts in host memory; None where neither they nor the bandwidth are known."""
    if o.host_cores is not None:
        return int(q.put("host_cores", o.host_cores, "given"))
    if bandwidth is None:
        return None
    usual = usual_cores(rules, bandwidth)
    q.warn(
        Message(
            "{cores} of the processor are assumed, as many as belong to {rate:.1f} GB/s of host memory in the "
            "machine that KTransformers was measured on (2 x Xeon Gold 6454S: 64 cores, 614 GB/s): set "
            "{--host-cores}.",
            cores=counted(usual, "cores"),
            rate=bandwidth / 1e9,
        )
    )
    return int(q.put("host_cores", usual, "default"))


def usual_cores(rules: HostExperts, bandwidth: float) -> int:
    """Cores that are assumed of a host with this bandwidth."""
    return max(round(bandwidth / rules.bytes_per_core), 1)


def resident_share(block: Block, plan: ServingPlan) -> float:
    """How much the accelerators hold of a layer's routed experts, as a share of them: less than one where the engine
    keeps others in host memory, more than one with redundant experts.
    """
    counts = [op.num_experts for op in block.ops if isinstance(op, MoE)]
    if not counts:
        return 1.0
    if plan.redundant_experts:
        return 1 + plan.redundant_experts / counts[0]
    return plan.host.gpu_experts / counts[0]


def host_expert_bytes(model: Model, plan: ServingPlan, held: HeldExperts) -> Term:
    """Bytes of all experts that no accelerator holds: once for each replica, by the engine's first rank."""
    parts = []
    for block, count in zip(model.decoder.blocks, model.decoder.counts(), strict=True):
        for (cut, _), (number, size) in block_bytes(model, held.stored, block).items():
            away = round(number * (1 - resident_share(block, plan))) if cut == "expert" else 0
            if away:
                of_one = Term.of(
                    "bytes per parameter", f.mean_bytes_per_parameter, source=held.stored.source, M=size, N=number
                )
                parameters = Term.of("experts that no GPU holds", f.whole_parameters, N=away, z=1)
                layers = Term.of("layers", f.layers_on_rank, l=count)
                one = Term.product("one layer", "bytes", of_one, parameters)
                parts.append(Term.product(Message("experts of {block}s", block=block.name), "bytes", layers, one))
    return Term.sum("host memory", *parts, unit="bytes")


def loaded_layer(model: Model, plan: ServingPlan, stored: Storage, ranks: float) -> Term | None:
    """Room on each accelerator for the experts of one layer, which prompts are computed with; None where none are
    loaded.
    """
    if not plan.host.gpu_prefill_tokens:
        return None
    largest = max(
        size
        for block in model.decoder.blocks
        for (cut, _), (_, size) in block_bytes(model, stored, block).items()
        if cut == "expert"
    )
    return Term.of("experts of one layer, loaded for a prompt", g.weights_share_bytes, M=largest, t=ranks)

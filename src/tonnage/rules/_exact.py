"""The exact figure beside a rule: the estimators on the same case."""

from typing import Any

from tonnage.architectures import Model
from tonnage.catalogue import accelerator, cluster
from tonnage.estimate.layers import layers as count
from tonnage.estimate.layers.layers import training_flops
from tonnage.estimate.memory import training_memory
from tonnage.estimate.serving.memory import serving_memory
from tonnage.formulas import memory as f
from tonnage.formulas import time as g
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.spec import ServingPlan, TrainingPlan


def parameters(model: Model) -> Term:
    return count.parameters(model).named(Message("parameters of {model}", model=model.name))


def weights(model: Model, w: float) -> Term:
    """Every parameter at w bytes."""
    each = Term.of("bytes per parameter", f.bytes_per_parameter, w=w)
    return Term.product(Message("weights of {model}", model=model.name), "bytes", each, parameters(model))


def training(model: Model, part: str = "", on: str = "", **plan: Any) -> Term:
    """Memory of the fullest GPU, or one part of it; without `on`, one accelerator of no name."""
    defaults = {"sequence_length": 2048, "runtime": "megatron", "zero_stage": 0, "sequence_parallel": False}
    made = training_memory(model, TrainingPlan.of_fields(**{**defaults, **plan}), cluster(on) if on else None)
    memory = made.memory
    if part == "activations":  # the part is largest where the loss is, whichever phase is the peak
        memory = max(made.fullest.phases, key=lambda phase: phase.child(part).value)
    return (memory.child(part) if part else memory).named(
        Message("{part} of {model}, exact", part=part or "training memory", model=model.name)
    )


def serving(model: Model, part: str = "", **plan: Any) -> Term:
    """Memory of one rank of a replica, or one part of it."""
    defaults = {"context": 2048, "engine": "transformers"}
    memory = serving_memory(model, ServingPlan.of_fields(**{**defaults, **plan})).memory
    return (memory.child(part) if part else memory).named(
        Message("{part} of {model}, exact", part=part or "serving memory", model=model.name)
    )


def token_cache(model: Model, **plan: Any) -> Term:
    """What one more token of context adds to the cache."""
    defaults = {"context": 2048, "engine": "transformers"}
    return serving_memory(model, ServingPlan.of_fields(**{**defaults, **plan})).fullest.per_token.named(
        Message("cache of one more token of {model}, exact", model=model.name)
    )


def request_cache(model: Model, **plan: Any) -> Term:
    """Cache of one request."""
    defaults = {"context": 2048, "engine": "transformers"}
    return serving_memory(model, ServingPlan.of_fields(**{**defaults, **plan})).fullest.per_request.named(
        Message("cache of one request of {model}, exact", model=model.name)
    )


def flops(model: Model, tokens: float, sequence_length: int) -> Term:
    """Training compute with attention, without recomputation."""
    return training_flops(model, tokens, sequence_length).named(
        Message("training compute of {model}, attention included", model=model.name)
    )


def recomputed_flops(model: Model, tokens: float, sequence_length: int) -> Term:
    """Training compute with attention and one more forward pass."""
    from tonnage.estimate.layers.layers import forward_flops
    from tonnage.formulas.flops import passes

    four = Term.of("forward, recomputed forward, and backward of twice that", passes, x=4)
    return Term.product(
        Message("training compute of {model} with recomputation, attention included", model=model.name),
        "FLOP",
        four,
        forward_flops(model, tokens, sequence_length),
    )


def seconds(work: Term, name: str, n: float, u: float, precision: str = "bf16") -> Term:
    """Time of that work on n accelerators of this name at the share u of the peak that the catalogue has."""
    chip = accelerator(name)
    rate = Term.of(
        Message("{chip} x {n:.0f} at {u:.0%}", chip=chip.name, n=n, u=u), g.fleet_rate, n=n, P=chip.peak(precision), u=u
    )
    return Term.ratio(Message("time on {n:.0f} {chip}", n=n, chip=chip.name), "seconds", work, rate)


def fleet(work: Term, name: str, tau: float, u: float, precision: str = "bf16") -> Term:
    """Accelerators of this name that do the work in tau seconds, rounded up."""
    chip = accelerator(name)
    return Term.of(
        Message("{chip} for {tau:.0f} days", chip=chip.name, tau=tau / 86400),
        g.accelerators_for_time,
        C=work.value,
        tau=tau,
        P=chip.peak(precision),
        u=u,
    )


def accelerators_for(memory: Term, name: str) -> Term:
    """Accelerators whose usable memory together holds it, rounded up."""
    chip = accelerator(name)
    return Term.of(
        Message("{chip} for {memory}", chip=chip.name, memory=memory.name),
        g.accelerators_for_memory,
        M=memory.value,
        U=chip.memory.usable_bytes,
    )


def program(batch: int) -> Term:
    """Document E's program, tensor by tensor as PyTorch keeps them after one step; what the allocator adds is the
    tracer's to say.
    """
    width, layers = 1024, 12
    sizes = {"weights": width * width, "biases": width}
    parts = []
    for copy in ("weights", "gradients", "first moments", "second moments"):
        tensors = [Term.of(name, f.state_bytes, N=layers * size, w=4) for name, size in sizes.items()]
        parts.append(Term.sum(copy, *tensors))
    parts.append(Term.of("inputs and targets", f.state_bytes, N=2 * batch * width, w=4))
    parts.append(Term.of("outputs of every ReLU", f.state_bytes, N=layers * batch * width, w=4))
    return Term.sum("tensors after the optimizer's step", *parts)

"""The program that a user traces: a model with its training, or a function that runs everything itself. Needs no torch.

A dataclass, not a msgspec struct: the same programs are measured on machines that have torch and nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed

STAGES = ("After forward", "After loss", "After backward", "After optimizer step")


@dataclass(kw_only=True)
class Program:
    """One training program.

    `inputs`: positional (tuple), by name (mapping) or a single one. `loss`: a function of the model's output to a
    scalar; None: the output's own `loss`. `optimizer`: a function of the parameters; None: forward and backward only.
    `keeps_output`: a script's variables stay alive through backward and the step, a trainer's do not. `autocast`:
    "bf16" or "fp16", for torch.autocast on the accelerator.
    """

    model: Any
    inputs: Any
    loss: Callable[[Any], Any] | None = None
    optimizer: Callable[[Any], Any] | None = None
    keeps_output: bool = True
    autocast: str | None = None
    clip_grad_norm: float | None = None
    num_microbatches: int = 1


def as_program(returned: Any, where: str) -> Program:
    """A user function's result as a Program: a Program, a mapping of its fields, or (model, inputs, loss,
    optimizer).
    """
    if isinstance(returned, Program):
        return returned
    if isinstance(returned, Mapping):
        known = [field.name for field in fields(Program)]
        unknown = sorted(set(returned) - set(known))
        if unknown or not {"model", "inputs"} <= set(returned):
            raise InvalidInput(
                "{where} must return model and inputs, and may return {known}. Got {made}.",
                where=where,
                known=listed(known[2:]),
                made=sorted(returned),
            )
        return Program(**returned)
    if isinstance(returned, tuple) and 2 <= len(returned) <= 4:
        return Program(**dict(zip(("model", "inputs", "loss", "optimizer"), returned, strict=False)))
    raise InvalidInput(
        "{where} must return a Program, a dict of its fields, or (model, inputs, loss, optimizer). Got {type}.",
        where=where,
        type=type(returned).__name__,
    )


def arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Inputs split into positional and named arguments."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (tuple(inputs), {}) if isinstance(inputs, tuple | list) else ((inputs,), {})

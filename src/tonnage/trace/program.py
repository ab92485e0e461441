"""What a user gives to be traced: a model with what trains it, or a function that does everything itself. Needs no
torch.

A dataclass, not a msgspec struct: the same programs are measured on machines that have torch and nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed

STAGES = ("After forward", "After loss", "After backward", "After optimizer step")


@dataclass(kw_only=True)
class Program:
    """One training program.

    `inputs`: positional (tuple), by name (mapping) or a single one. `loss`: of the model's output, a scalar; None: the
    output's own `loss`. `optimizer`: of the parameters; None: forward and backward only. `keeps_output`: a script's
    variables live on through backward and the step, a trainer's do not. `autocast`: "bf16" or "fp16", for
    torch.autocast on the accelerator.
    """

    model: Any
    inputs: Any
    loss: Callable[[Any], Any] | None = None
    optimizer: Callable[[Any], Any] | None = None
    keeps_output: bool = True
    autocast: str | None = None
    clip_grad_norm: float | None = None
    num_microbatches: int = 1


def as_program(made: Any, where: str) -> Program:
    """What a user's function returned, as a Program: one already, a mapping of its fields, or (model, inputs, loss,
    optimizer).
    """
    if isinstance(made, Program):
        return made
    if isinstance(made, Mapping):
        known = [field.name for field in fields(Program)]
        unknown = sorted(set(made) - set(known))
        if unknown or not {"model", "inputs"} <= set(made):
            raise InvalidInput(
                Message(
                    "{where} must return model and inputs, and may return {known}. Got {made}.",
                    where=where,
                    known=listed(known[2:]),
                    made=sorted(made),
                )
            )
        return Program(**made)
    if isinstance(made, tuple) and 2 <= len(made) <= 4:
        return Program(**dict(zip(("model", "inputs", "loss", "optimizer"), made, strict=False)))
    raise InvalidInput(
        Message(
            "{where} must return a Program, a dict of its fields, or (model, inputs, loss, optimizer). Got {type}.",
            where=where,
            type=type(made).__name__,
        )
    )


def arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Inputs as positional arguments and arguments by name."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (tuple(inputs), {}) if isinstance(inputs, tuple | list) else ((inputs,), {})

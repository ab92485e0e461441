"""Runs a training program step by step under the recorder, and sets the category of its memory."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.trace.program import STAGES, Program, arguments
from tonnage.trace.record.fake.bitsandbytes import scales_of

if TYPE_CHECKING:  # measuring runs the same steps, on machines where the recorder may not even be imported
    from tonnage.trace.record.fake.recorder import Recorder

Progress = Callable[[str], None]
_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def train(recorder: "Recorder", program: Program, steps: int = 2, progress: Progress = lambda stage: None) -> None:
    """Run `steps` steps with a mark at the end of each stage; optimizer states and buckets are allocated in the first,
    and stay.
    """
    model = program.model
    recorder.modules.name(model)
    optimizer = program.optimizer(model.parameters()) if callable(program.optimizer) else program.optimizer
    _check(program, model, optimizer)
    scales = dict(scales_of(model))
    # in one call: a meter keeps the last tensors of a category
    recorder.sort_named([*model.named_parameters(), *scales.items()], "parameter")
    recorder.sort_named(((name, buffer) for name, buffer in model.named_buffers() if name not in scales), "buffer")
    recorder.sort(_tensors_in(program.inputs), "buffer")
    recorder.mark("Initial", "forward")
    output: Any = None
    loss: Any = None
    for step in range(steps):
        suffix = "" if step == 0 else Message(" (step {step})", step=step + 1)
        for _ in range(program.num_microbatches):
            output, loss = None, None
            progress(Message("step {step}: forward", step=step + 1))
            output, loss = _forward(recorder, program, suffix)
            if not program.keeps_output:
                output = None
            recorder.sort_live("forward", "activation")
            recorder.phase = "backward"
            progress(Message("step {step}: backward", step=step + 1))
            loss.backward()
            recorder.sort_named(((n, p.grad) for n, p in model.named_parameters() if p.grad is not None), "gradient")
            recorder.mark(STAGES[2] + suffix, "optimizer step")
        if optimizer is not None:
            progress(Message("step {step}: optimizer", step=step + 1))
            _step(program, model, optimizer)
            recorder.sort_named(_states(model, optimizer), "optimizer")
            recorder.mark(STAGES[3] + suffix, "forward")
            if step + 1 < steps:
                optimizer.zero_grad()
    recorder.keep(program, optimizer, output, loss)


def _check(program: Program, model: Any, optimizer: Any) -> None:
    """Refuse programs that would run and mean something else. Raises InvalidInput."""
    count = program.num_microbatches
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidInput("{@num_microbatches} must be a whole number of at least 1. Got {count!r}.", count=count)
    if optimizer is None:
        return
    if not hasattr(optimizer, "param_groups"):
        raise InvalidInput(
            "{@optimizer} must be a function of the parameters, or a torch optimizer. Got {optimizer!r}.",
            optimizer=str(optimizer)[:80],
        )
    own = {id(parameter) for parameter in model.parameters()}
    if not any(id(parameter) in own for group in optimizer.param_groups for parameter in group["params"]):
        raise InvalidInput(
            Message(
                "{@optimizer}: none of its parameters is the model's. Moving a model to another device "
                "makes new ones here: build the optimizer afterwards, or give a function of the "
                "parameters, such as torch.optim.AdamW."
            )
        )


def _forward(recorder: "Recorder", program: Program, suffix: str) -> tuple[Any, Any]:
    recorder.phase = "forward"
    positional, named = arguments(program.inputs)
    dtype = _AUTOCAST.get(program.autocast or "")
    with (
        nullcontext()
        if dtype is None
        else torch.autocast("cpu" if recorder.device_type == "cpu" else "cuda", dtype=dtype)
    ):
        output = program.model(*positional, **named)
        recorder.mark(STAGES[0] + suffix, "forward")
        loss = _loss_of(output) if program.loss is None else program.loss(output)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
        shape = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        free = " that no parameter has a part in" if isinstance(loss, torch.Tensor) and loss.numel() == 1 else ""
        raise InvalidInput(
            "{@loss} must be a tensor of one number that depends on the parameters. Got {shape}{free}.",
            shape=shape,
            free=free,
        )
    recorder.mark(STAGES[1] + suffix, "forward")
    return output, loss


def _loss_of(output: Any) -> Any:
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if loss is not None:
        return loss
    first = output[0] if isinstance(output, tuple | list) else getattr(output, "logits", output)
    return first.float().mean()


def _step(program: Program, model: Any, optimizer: Any) -> None:
    if program.clip_grad_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), program.clip_grad_norm)
    optimizer.step()


def _states(model: Any, optimizer: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors of an optimizer's states, each with the name of its parameter."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, state in optimizer.state.items():
        for tensor in _tensors_in(state):
            yield names.get(id(parameter), ""), tensor


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors_in(item)

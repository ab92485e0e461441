"""Measures one program: its stages, then the time of a step."""

import gc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from tonnage.kernel.errors import MissingDatum
from tonnage.measure.device import Device, is_out_of_memory
from tonnage.measure.meter import Meter, Silent, Stage

MAX_EVENTS = 1_000_000  # of a snapshot; PyTorch's own ring buffer


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """`held`: bytes of tensors by category after the last step; `step_seconds`: of each timed step; `process_bytes` and
    `device_bytes`: what the driver counts after the stages; `failure`: PyTorch's message where memory ran out."""

    stages: tuple[Stage, ...]
    held: dict[str, int]
    step_seconds: tuple[float, ...]
    process_bytes: int | None
    device_bytes: int | None
    parameters: int
    failure: str | None

    @property
    def peak_allocated(self) -> int:
        return max((stage.peak_allocated for stage in self.stages), default=0)

    @property
    def peak_reserved(self) -> int:
        return max((stage.peak_reserved for stage in self.stages), default=0)

    @property
    def step_time(self) -> float | None:
        """Median seconds of a step; None where none was timed."""
        return median(self.step_seconds) if self.step_seconds else None


@dataclass(frozen=True, kw_only=True)
class Timing:
    """`repeats` timed steps after `warmup` ones; no further one is begun when `seconds` have passed."""

    warmup: int = 2
    repeats: int = 5
    seconds: float = 60


def measure(
    device: Device,
    run: Callable[[Meter], None],
    timing: Timing | None = None,
    *,
    snapshot: Path | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Measurement:
    """Build a program with `run` and train it under the meter. If memory runs out, the measurement says so; other
    errors are raised.
    """
    meter = Meter(device, progress)
    failure: str | None = None
    seconds: tuple[float, ...] = ()
    history = _history(device) if snapshot is not None else None
    try:
        run(meter)
    except BaseException as error:
        if not is_out_of_memory(error):
            raise
        failure = str(error)
        meter.failed()
    if snapshot is not None:
        _dump(history, snapshot)
    process, used = device.process_bytes(), device.used_bytes()
    held, parameters = meter.held, _parameters(meter)
    if failure is None and timing is not None and len(meter.live) == 4:
        progress("step time")
        try:
            seconds = _timed(meter, device, timing)
        except BaseException as error:
            if not is_out_of_memory(error):
                raise
    meter.model, meter.live = None, ()
    gc.collect()
    device.empty_cache()
    return Measurement(
        stages=tuple(meter.stages),
        held=held,
        step_seconds=seconds,
        process_bytes=process,
        device_bytes=used,
        parameters=parameters,
        failure=failure,
    )


def _parameters(meter: Meter) -> int:
    return 0 if meter.model is None else sum(parameter.numel() for parameter in meter.model.parameters())


def _timed(meter: Meter, device: Device, timing: Timing) -> tuple[float, ...]:
    """Seconds of steps that continue the measured ones: the same model, states and inputs."""
    from tonnage.trace.record.train import train

    program, optimizer, *_ = meter.live
    meter.live = ()  # outputs of the last step
    again = replace(program, optimizer=optimizer)
    silent: Any = Silent(device)

    def step() -> None:
        (program.model if optimizer is None else optimizer).zero_grad(set_to_none=True)
        train(silent, again, steps=1)
        silent.live = ()

    started = perf_counter()
    timed: list[float] = []
    for number in range(timing.warmup + timing.repeats):
        if timed and perf_counter() - started > timing.seconds:
            break
        duration = device.seconds(step)
        if number >= timing.warmup or perf_counter() - started > timing.seconds:
            timed.append(duration)
    return tuple(timed)


def _history(device: Device) -> Any:
    """Starts PyTorch's recording of allocations; returns what stops it and writes."""
    if device.kind != "cuda":
        raise MissingDatum("a snapshot is of a GPU's allocator: the host's has none.")
    import torch

    memory: Any = torch.cuda.memory
    try:
        memory._record_memory_history(enabled="all", context="alloc", stacks="python", max_entries=MAX_EVENTS)
    except TypeError:  # before PyTorch 2.1
        memory._record_memory_history(True)
    return memory


def _dump(memory: Any, path: Path) -> None:
    memory._dump_snapshot(str(path))
    with suppress(TypeError):
        memory._record_memory_history(enabled=None)

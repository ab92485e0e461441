"""Traces of PyTorch's profiler: Chrome JSON, with one "[memory]" instant for each allocation and free.

torch.profiler.profile(profile_memory=True).export_chrome_trace writes them (torch/csrc/profiler/collection.cpp and
kineto_shim.cpp): args hold "Addr", "Bytes" (negative for a free; blocks, so rounded), "Total Allocated", "Total
Reserved" after it, "Device Type" (c10/core/DeviceType.h) and "Device Id". The origin is told by the spans around it on
its thread: cpu_op spans, nn.Module calls (with_stack=True), evaluate_function of the autograd engine, and
Optimizer.step.
"""

from collections import Counter, defaultdict
from typing import Any

import msgspec
from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.trace.events import Allocation
from tonnage.trace.foreign._foreign import Device, Foreign
from tonnage.trace.foreign._history import History, checked, notes_of, walk
from tonnage.trace.foreign._lifetimes import BACKWARD, FORWARD, STEP, ZERO, sort_by_lifetime

FORMAT = "PyTorch profiler trace"
KEY = "traceEvents"
_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 17: "meta", 18: "hpu", 20: "privateuseone"}
_ENGINE, _STEP, _ZERO, _MODULE = (
    "autograd::engine::evaluate_function",
    "Optimizer.step#",
    "Optimizer.zero_grad#",
    "nn.Module: ",
)


class _Event(Struct):
    """One event; `args` are decoded on demand."""

    name: str = ""
    ph: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: int | str = 0
    tid: int | str = 0
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _File(Struct):
    traceEvents: list[_Event]  # noqa: N815 - the key of the file


class _Args(
    Struct,
    rename={
        "address": "Addr",
        "bytes": "Bytes",
        "kind": "Device Type",
        "device": "Device Id",
        "allocated": "Total Allocated",
        "reserved": "Total Reserved",
    },
):
    address: int = 0
    bytes: int = 0
    kind: int = 0
    device: int = -1
    allocated: int | None = None
    reserved: int | None = None

    @property
    def where(self) -> str:
        name = _TYPES.get(self.kind, Message("device type {kind}", kind=self.kind))
        return name if self.device < 0 or self.kind == 0 else f"{name}:{self.device}"


def from_json(data: bytes, where: str, device: int | None = None) -> Foreign:
    """Memory of one accelerator: number `device`, or the one with most allocations; the CPU where there is no other."""
    try:
        events = (
            msgspec.json.decode(data, type=_File).traceEvents
            if data.lstrip()[:1] == b"{"
            else msgspec.json.decode(data, type=list[_Event])
        )
        memory = [(event, msgspec.json.decode(event.args, type=_Args)) for event in events if event.name == "[memory]"]
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput("{where} is no trace of PyTorch's profiler: {error}.", where=where, error=error) from None
    if not memory:
        raise InvalidInput(
            "{where} is a trace without memory: record it with torch.profiler.profile(profile_memory=True).",
            where=where,
        )
    memory.sort(key=lambda entry: entry[0].ts)
    devices = _devices(memory)
    chosen = _choose(devices, device, where)
    picked = [entry for entry in memory if entry[1].where == chosen]
    return _read(picked, events, where, chosen, tuple(devices.values()))


def _devices(memory: list[tuple[_Event, _Args]]) -> dict[str, Device]:
    actions = Counter(args.where for _, args in memory)
    most: Counter[str] = Counter()
    for _, args in memory:
        most[args.where] = max(most[args.where], args.allocated or 0)
    return {name: Device(name, count, most[name]) for name, count in actions.items()}


def _choose(devices: dict[str, Device], wanted: int | None, where: str) -> str:
    accelerators = [name for name in devices if name != "cpu"]
    if wanted is not None:
        matches = [name for name in accelerators if name.endswith(f":{wanted}")]
        if not matches:
            raise InvalidInput(
                "{where} tells nothing of device {wanted}. It knows {actions}.",
                where=where,
                wanted=wanted,
                actions=listed(devices),
            )
        return matches[0]
    return max(accelerators or devices, key=lambda name: devices[name].actions)


def _read(
    memory: list[tuple[_Event, _Args]], events: list[_Event], where: str, device: str, devices: tuple[Device, ...]
) -> Foreign:
    history, unseen = History(), 0
    origins = _spans(events, [event for event, _ in memory])
    for event, args in memory:
        size = checked(abs(args.bytes), where)
        operation, module, phase = origins.get(id(event), ("", "", ""))
        if args.bytes >= 0:
            history.allocate(args.address, Allocation(size, 0, operation, module, phase))
        else:
            history.free(args.address, Allocation(size), phase or None)
        if args.reserved is not None:
            history.hold(checked(args.reserved, where, "what is held"))
    allocated = [checked(args.allocated, where, "what is in use") for _, args in memory if args.allocated is not None]
    if allocated and memory[0][1].allocated is not None:
        unseen = allocated[0] - memory[0][1].bytes - sum(history.events.allocations[n].bytes for n in history.unseen())
        if unseen > 0:
            history.before(Allocation(checked(unseen, where)))
    count, size = history.finish()
    notes = list(notes_of(history, count, size))
    if sort_by_lifetime(history):
        notes.append("phases are told by the spans around an allocation, and categories by the phase that frees it")
    history.settle()
    peak, position, end, stages = walk(history, lambda block: block)
    return Foreign(
        format=FORMAT,
        source=where,
        device=device,
        devices=devices,
        events=history.events,
        allocated_peak=max(allocated, default=peak),
        reserved_peak=max((held for _, held in history.reserved), default=0) or None,
        allocated_end=allocated[-1] if allocated else end,
        reserved_end=(history.reserved[-1][1] if history.reserved else 0) or None,
        by_category=history.by_category(position),
        told=history.known_categories(),
        stages=stages,
        notes=tuple(notes),
    )


def _spans(events: list[_Event], memory: list[_Event]) -> dict[int, tuple[str, str, str]]:
    """(operation, module, phase) of each memory event, from the spans of its thread that it is in."""
    threads: dict[Any, list[_Event]] = defaultdict(list)
    with_memory = {(event.pid, event.tid) for event in memory}
    for event in events:
        if event.ph == "X" and (event.pid, event.tid) in with_memory and _is_origin(event):
            threads[event.pid, event.tid].append(event)
    for event in memory:
        threads[event.pid, event.tid].append(event)
    origins = {}
    for thread in threads.values():
        # of two spans with the same start the outer one comes first, and a span comes before events at its first moment
        thread.sort(key=lambda entry: (entry.ts, entry.ph != "X", -entry.dur))
        inside: list[_Event] = []
        for event in thread:
            while inside and inside[-1].ts + inside[-1].dur < event.ts:
                inside.pop()
            if event.ph == "X":
                inside.append(event)
            else:
                origins[id(event)] = _origin(inside)
    return origins


def _is_origin(event: _Event) -> bool:
    return event.cat in ("cpu_op", "user_annotation") or event.name.startswith(_MODULE)


def _origin(inside: list[_Event]) -> tuple[str, str, str]:
    modules = [event.name.removeprefix(_MODULE) for event in inside if event.name.startswith(_MODULE)]
    operation = next((event.name for event in reversed(inside) if event.name.startswith("aten::")), "")
    phase = ""
    for event in inside:
        if event.name.startswith(_ENGINE):
            phase = BACKWARD
        elif event.name.startswith(_STEP):
            phase = STEP
        elif event.name.startswith(_ZERO):
            phase = ZERO
    return operation.replace("::", "."), ".".join(modules), phase or (FORWARD if modules or operation else "")

"""Stands where the tracer's recorder stands, and reads the device's counters at the end of each stage."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tonnage.kernel.message import Message
from tonnage.measure.device import Device


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Bytes at the end of a stage, and their peaks within it."""

    name: str
    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int


class Silent:
    """A recorder that notes nothing: steps under it cost what they cost."""

    def __init__(self, device: Device):
        self.device_type = device.kind
        self.phase = ""
        self.kept: tuple[Any, ...] = ()
        self.modules = self

    def name(self, model: Any) -> None: ...

    def mark(self, name: str, phase: str = "") -> None: ...

    def sort(self, tensors: Iterable[Any], category: str) -> None: ...

    def sort_named(self, tensors: Iterable[tuple[str, Any]], category: str) -> None: ...

    def sort_live(self, phase: str, category: str) -> None: ...

    def keep(self, *things: Any) -> None:
        self.kept = things


class Meter(Silent):
    """`stages`, in their order; `held`: bytes of the tensors of each known category at the end; `kept`: what lives
    on.
    """

    def __init__(self, device: Device, progress: Callable[[str], None] = lambda stage: None):
        super().__init__(device)
        self.device = device
        self.progress = progress
        self.model: Any = None
        self.stages: list[Stage] = []
        self._storages: dict[str, dict[int, int]] = {}
        device.reset_peaks()

    def name(self, model: Any) -> None:
        self.model = model

    def mark(self, name: str, phase: str = "") -> None:
        """The end of a stage: the next one starts with its own peaks."""
        self.device.synchronize()
        figures = self.device.figures()
        self.stages.append(Stage(name=name, **figures._asdict()))
        self.device.reset_peaks()
        self.phase = phase
        self.progress(name)

    def sort(self, tensors: Iterable[Any], category: str) -> None:
        """Later tensors of a category take the place of earlier ones, since gradients and states are made anew;
        buffers gather.
        """
        found = self._storages.setdefault(category, {})
        if category != "buffer":
            found.clear()
        for tensor in tensors:
            if tensor.device.type == self.device_type:
                storage = tensor.untyped_storage()
                found[storage.data_ptr()] = int(storage.nbytes())

    def sort_named(self, tensors: Iterable[tuple[str, Any]], category: str) -> None:
        self.sort((tensor for _, tensor in tensors), category)

    @property
    def held(self) -> dict[str, int]:
        return {category: sum(found.values()) for category, found in self._storages.items()}

    def failed(self) -> None:
        """What the counters say where a stage broke off; it has no end of its own."""
        figures = self.device.figures()
        after = self.stages[-1].name if self.stages else "the start"
        self.stages.append(Stage(name=Message("Out of memory after {after}", after=after), **figures._asdict()))

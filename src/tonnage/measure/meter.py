"""Takes the place of the tracer's recorder, and reads the device's counters at the end of each stage."""

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
    """A recorder that records nothing, so that timed steps have no overhead."""

    def __init__(self, device: Device):
        self.device_type = device.kind
        self.phase = ""
        self.live: tuple[Any, ...] = ()
        self.modules = self

    def name(self, model: Any) -> None: ...

    def mark(self, name: str, phase: str = "") -> None: ...

    def sort(self, tensors: Iterable[Any], category: str) -> None: ...

    def sort_named(self, tensors: Iterable[tuple[str, Any]], category: str) -> None: ...

    def sort_live(self, phase: str, category: str) -> None: ...

    def keep(self, *tensors: Any) -> None:
        self.live = tensors


class Meter(Silent):
    """`stages`, in their order; `held`: bytes of the tensors of each known category at the end; `live`: objects that
    stay alive after a step.
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
        """End a stage; the next one starts with its own peaks."""
        self.device.synchronize()
        figures = self.device.figures()
        self.stages.append(Stage(name=name, **figures._asdict()))
        self.device.reset_peaks()
        self.phase = phase
        self.progress(name)

    def sort(self, tensors: Iterable[Any], category: str) -> None:
        """Note tensors of a category. They replace earlier ones, since gradients and states are allocated anew; buffers
        add up.
        """
        storages = self._storages.setdefault(category, {})
        if category != "buffer":
            storages.clear()
        for tensor in tensors:
            if tensor.device.type == self.device_type:
                storage = tensor.untyped_storage()
                storages[storage.data_ptr()] = int(storage.nbytes())

    def sort_named(self, tensors: Iterable[tuple[str, Any]], category: str) -> None:
        self.sort((tensor for _, tensor in tensors), category)

    @property
    def held(self) -> dict[str, int]:
        return {category: sum(storages.values()) for category, storages in self._storages.items()}

    def failed(self) -> None:
        """Read the counters where a stage broke off without an end of its own."""
        figures = self.device.figures()
        after = self.stages[-1].name if self.stages else "the start"
        self.stages.append(Stage(name=Message("Out of memory after {after}", after=after), **figures._asdict()))

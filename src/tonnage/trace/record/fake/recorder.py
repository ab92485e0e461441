"""The recorder: it sees every operation that PyTorch dispatches, and records when storages are allocated and freed."""

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tonnage.trace.events import Allocation, Category, Events
from tonnage.trace.overlays import Call, overlays
from tonnage.trace.profiles import Profile
from tonnage.trace.record.fake import policies
from tonnage.trace.record.fake.modules import ModulePath
from tonnage.trace.record.fake.streams import current_stream
from tonnage.trace.recording import Answered, Fired, Recording, unmodelled

aten = torch.ops.aten
_WRAPPERS = ("_fn", "inner")  # torch's wrappers of a mode's __torch_dispatch__


class Recorder(TorchDispatchMode):
    """Records allocations of one device type: "meta", "cuda" (fake tensors), or "cpu" (real ones, for comparison).

    Enter it after FakeTensorMode, so that it also sees what autograd dispatches. `events`: the recording; `fired`: the
    overlays' calls and bytes by name; `answers`: the answers to data-dependent operations; `calls`: how often each
    operation ran.
    """

    supports_higher_order_operators = True

    def __init__(self, device_type: str, profile: Profile):
        super().__init__()
        self.device_type, self.profile = device_type, profile
        self.events = Events()
        self.phase = "setup"
        self.modules = ModulePath()
        self.calls: Counter[str] = Counter()
        self.fired: dict[str, Fired] = {}
        self.answers: Counter[tuple[str, str, str]] = Counter()
        self.paused = 0
        self.attention: Any = None
        self.composites: dict[
            Any, Callable[..., Any]
        ] = {}  # implementations of composite operations that arrive undivided
        self.on_question: Callable[[str], None] = lambda operation: None  # called before a yes or no is invented
        self._overlays = overlays(profile)
        self._live: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._sizes: dict[int, int] = {}  # of live allocations, by number
        self._odd: set[int] = set()  # storages that are larger than their tensors
        self._workspaces: set[tuple[str, bool]] = set()
        self._held: list[Any] = []
        self._depth = 0
        self._undo: list[Any] = []

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self._undo = [self._watch_resize(), self.modules.watch(), policies.watch_sharding(self)]
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            for undo in reversed(self._undo):
                undo()
            self._live.clear()  # frees from now on are not the program's
        super().__exit__(*error)

    def mark(self, name: str, phase: str | None = None) -> None:
        """End a stage; later events are in `phase`."""
        self.events.mark(name)
        self.phase = name if phase is None else phase

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Ignore operations inside, which are not the device's."""
        self.paused += 1
        try:
            yield
        finally:
            self.paused -= 1

    def number_of(self, tensor: torch.Tensor) -> int | None:
        """The number of the allocation that holds a tensor; None if it is not on the device."""
        entry = self._live.get(tensor.untyped_storage()._cdata)
        return None if entry is None else entry[1]

    def sort(self, tensors: Iterable[torch.Tensor], category: Category) -> None:
        """Set the category of these tensors' allocations. The first one set stays."""
        self.sort_named((("", tensor) for tensor in tensors), category)

    def sort_named(self, tensors: Iterable[tuple[str, torch.Tensor]], category: Category) -> None:
        """Set the category, and the name of their parameter or buffer in place of the module that happened to run."""
        for name, tensor in tensors:
            number = self.number_of(_plain(tensor))
            if number is not None and self.events.allocations[number].category == "temporary":
                allocation = self.events.allocations[number]
                allocation.category, allocation.module = category, name or allocation.module

    def sort_live(self, phase: str, category: Category) -> None:
        """Set the category of allocations of `phase` that are still alive and have none."""
        for _, number in self._live.values():
            allocation = self.events.allocations[number]
            if allocation.phase == phase and allocation.category == "temporary":
                allocation.category = category

    def recording(self, program: str = "", notes: tuple[str, ...] = ()) -> Recording:
        """The recording, without torch."""
        return Recording(
            events=self.events,
            profile=self.profile.name,
            front_end=self.device_type,
            program=program,
            torch=str(torch.__version__),
            operations=sum(self.calls.values()),
            overlays=tuple(self.fired.values()),
            notes=notes,
            answers=tuple(Answered(*key, times) for key, times in self.answers.items()),
            attention=dict(self.attention.chosen) if self.attention is not None else {},
            unmodelled=unmodelled(self.calls, self._overlays),
        )

    def keep(self, *objects: Any) -> None:
        """Hold objects from a program's end, so that its end is not recorded as frees."""
        self._held.extend(objects)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = dict(kwargs or {})
        if self.paused:
            return func(*args, **keywords)
        if policies.desugars(types):
            return NotImplemented
        done, result = policies.answer(self, func, types, args, keywords)
        if done:
            return result
        result = func(*args, **keywords)
        name = str(func)
        self.calls[name] += 1
        if func is aten.add.Tensor and _in_backward() and _called_by_engine(sys._getframe(1)):
            self._sum_in_place(args[0], result)
        effects = self._effects(name, args, keywords, result)
        storage = next((effect.storage for _, effect in effects if effect.storage is not None), None)
        for tensor in _tensors(result):
            if tensor.device.type == self.device_type:
                self.track(tensor, name, storage)
        for overlay, effect in effects:
            for key, size in effect.workspaces:
                self._keep(overlay, key, size)
            self._take_and_give(overlay, effect.temporaries)
        return result

    def _effects(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> list[Any]:
        tensors: list[Any] = []
        if not any(tensor.device.type == self.device_type for tensor in _tensors(result)):
            return tensors  # it ran on the CPU
        for overlay in self._overlays.get(name, ()):
            effect = overlay.effect(Call(args, keywords, result, self.profile))
            if effect is not None:
                tensors.append((overlay, effect))
        return tensors

    def track(self, tensor: torch.Tensor, operation: str, bytes_held: int | None = None) -> None:
        """Record a tensor's storage as allocated by this operation, or as resized if it is known."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        entry = self._live.get(key)
        size = storage.nbytes() if bytes_held is None else bytes_held
        if entry is not None:
            if self._sizes[entry[1]] != size and entry[1] not in self._odd:
                self._resize(key, size, operation)
            return
        number = self._allocate(size, operation)
        if bytes_held is not None:
            self._odd.add(number)
        self._live[key] = (weakref.ref(storage, lambda _: self._died(key)), number)

    def _sum_in_place(self, first: torch.Tensor, total: torch.Tensor) -> None:
        """Where gradients of one tensor meet, autograd adds to the first in place if nothing else holds it.

        It does not while a mode watches it (input_buffer.cpp, accumulate), so here the sum takes over the storage.
        """
        old = first.untyped_storage()._cdata
        entry = self._live.get(old)
        if entry is None or first.dtype != total.dtype or first.shape != total.shape or not _held_once(first):
            return
        del self._live[old]
        storage = total.untyped_storage()
        key = storage._cdata
        self._live[key] = (weakref.ref(storage, lambda _: self._died(key)), entry[1])

    def _allocate(self, size: int, operation: str, overlay: bool = False) -> int:
        recomputed = self.modules.current and not overlay and _in_backward()
        category: Category = "activation" if recomputed else "temporary"
        allocation = Allocation(size, current_stream(), operation, self.modules.current, self.phase, category, overlay)
        number = self.events.allocate(allocation)
        self._sizes[number] = size
        return number

    def _free(self, number: int) -> None:
        self._sizes.pop(number, None)
        self.events.free(number)

    def _died(self, key: int) -> None:
        entry = self._live.pop(key, None)
        if entry is not None:
            self._free(entry[1])

    def _resize(self, key: int, size: int, operation: str) -> None:
        """Record a storage of another size as another allocation."""
        reference, number = self._live[key]
        category = self.events.allocations[number].category
        self._free(number)
        allocation = self._allocate(size, operation)
        self.events.allocations[allocation].category = category
        self._live[key] = (reference, allocation)

    def _take_and_give(self, overlay: Any, sizes: tuple[int, ...]) -> None:
        allocated = [self._allocate(size, overlay.name, overlay=True) for size in sizes if size > 0]
        for number in reversed(allocated):
            self._free(number)
        if allocated:
            self._fire(overlay, sum(sizes))

    def _keep(self, overlay: Any, key: str, size: int) -> None:
        """Record a workspace for each thread that uses it: the program's own, and that of backward."""
        thread = (key, _in_backward())
        if thread in self._workspaces:
            return
        self._workspaces.add(thread)
        number = self._allocate(size, overlay.name, overlay=True)
        self.events.allocations[number].category = "buffer"
        before = self.fired.get(overlay.name)
        self._fire(overlay, size + (before.bytes if before is not None else 0))

    def _fire(self, overlay: Any, size: int) -> None:
        before = self.fired.get(overlay.name)
        calls, most = (before.calls, before.bytes) if before is not None else (0, 0)
        self.fired[overlay.name] = Fired(overlay.name, calls + 1, max(most, size), overlay.exact, overlay.source)

    def _watch_resize(self) -> Any:
        """Watch resizes: FSDP frees storages by resizing them to 0, which dispatches no operation."""
        original = torch.UntypedStorage.resize_
        recorder = self

        def resize_(storage: torch.UntypedStorage, size: int) -> Any:
            done = original(storage, size)
            key = storage._cdata
            if key in recorder._live and not recorder.paused:
                recorder._resize(key, int(size), "resize_")
            return done

        torch.UntypedStorage.resize_ = resize_  # type: ignore[method-assign, assignment]

        def undo() -> None:
            torch.UntypedStorage.resize_ = original  # type: ignore[method-assign]

        return undo


def _in_backward() -> bool:
    return bool(torch._C._current_graph_task_id() != -1)


def _called_by_engine(frame: Any) -> bool:
    """Whether the engine itself called, not Python code of a node or module: on its own thread, or directly under
    backward.
    """
    while frame is not None and frame.f_code.co_name in _WRAPPERS:
        frame = frame.f_back
    return frame is None or frame.f_code.co_name == "_engine_run_backward"


def _held_once(tensor: torch.Tensor) -> bool:
    """Whether only the engine's buffer holds this storage; the second reference is the wrapper here."""
    counted: int = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)
    return counted <= 2 and torch._prims_common.is_non_overlapping_and_dense_or_false(tensor)


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, tuple | list):
        for item in result:
            yield from _tensors(item)


def _plain(tensor: Any) -> torch.Tensor:
    """The local tensor of a DTensor, or the tensor itself."""
    local: torch.Tensor = getattr(tensor, "_local_tensor", tensor)
    return local

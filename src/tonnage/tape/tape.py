"""Storages that live as long as something holds them, nodes that keep what their derivative needs, and backward.

Reference counting is Python's own, as it is in PyTorch: a local variable of a forward pass holds its tensor as long as
that of the real model does.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from tonnage.tape._work import Exchange, Extent, Work, Worked

Kind = Literal["activation", "temporary"]


class Key(NamedTuple):
    """A line of an account: bytes of this kind, per token, pair of tokens, or parameter."""

    kind: Kind
    extent: Extent


TOKEN, TENSOR = Extent("token", "whole"), Extent("token", "tensor")
Account = dict[Key, float]


def without(live: Account, unit: str) -> Account:
    """An account without the lines that grow with this unit."""
    return {key: size for key, size in live.items() if key.extent.unit != unit}


class Storage:
    """Bytes that are live as long as this object is held."""

    __slots__ = ("bytes", "full", "key", "live", "name", "tape", "width")

    def __init__(self, tape: "Tape", name: str, key: Key, elements: float, width: float):
        self.tape, self.live = tape, tape.live
        self.name, self.key, self.width = name, key, width
        self.bytes = self.full = elements * width
        self.live[key] += self.bytes
        tape.worked.written[key.extent] += self.bytes
        tape.grown = True

    def empty(self) -> None:
        """Free the bytes and keep the object (resize_(0))."""
        self.live[self.key] -= self.bytes
        self.bytes = 0

    def refill(self) -> None:
        """Count the bytes of an emptied storage again."""
        self.live[self.key] += self.full - self.bytes
        self.bytes = self.full

    def __del__(self) -> None:
        if self.tape.watches:
            self.tape.mark()
        self.live[self.key] -= self.bytes


class Slot:
    """The place where gradients of one tensor are summed. `leaf`: parameters whose gradient ends here."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Extent | None = None):
        self.leaf = leaf


class Tensor:
    """`elements` numbers of `width` bytes for each unit of its extent. `storage`: None where others hold it all along
    (parameters).

    `slot`: None where no gradient is asked for. `is_view`: its base is held too, so autograd does not add to it in
    place.
    """

    __slots__ = ("elements", "extent", "is_view", "slot", "storage", "width")

    def __init__(
        self,
        storage: Storage | None,
        elements: float,
        width: float,
        extent: Extent,
        slot: Slot | None = None,
        is_view: bool = False,
    ):
        self.storage, self.elements, self.width, self.extent = storage, elements, width, extent
        self.slot, self.is_view = slot, is_view

    def alias(self, slot: Slot | None = None, *, elements: float | None = None, is_view: bool = False) -> "Tensor":
        """The same storage under another name; `elements`: a part of it."""
        return Tensor(
            self.storage, self.elements if elements is None else elements, self.width, self.extent, slot, is_view
        )


Gradients = Sequence[Tensor | None]
Derivative = Callable[[Gradients], Gradients]


class Node:
    """One recorded operation: its outputs' slots, what it saved, and its derivative."""

    __slots__ = ("derivative", "exchange", "inputs", "name", "outputs", "repeats", "saved", "work")

    def __init__(
        self, name: str, outputs: list[Slot], inputs: list[Slot | None], saved: list[Any], derivative: Derivative
    ):
        self.name, self.outputs, self.inputs = name, outputs, inputs
        self.saved, self.derivative = saved, derivative
        self.work: list[Work] = []
        self.exchange: Exchange | None = None
        self.repeats = 1.0


class Tape:
    """`live`: bytes now. `moments`: live bytes at each local peak, with the operation that had just run."""

    def __init__(self) -> None:
        self.live: Account = defaultdict(float)
        self.nodes: list[Node] = []
        self.moments: list[tuple[str, Account]] = []
        self.grown = False
        self.kind: Kind = "activation"
        self.scope: list[str] = []
        self.where = ""
        self.records = True
        self.quantised = False  # operands of products may be narrower than 16 bit
        self.worked = Worked()
        self.watches = False  # record a moment before every release of memory

    # ---- forward ----

    def new(self, elements: float, width: float, extent: Extent = TOKEN, name: str = "") -> Tensor:
        """A new tensor, counted as live while something holds it."""
        key = Key(self.kind, extent)
        return Tensor(Storage(self, name, key, elements, width), elements, width, extent)

    def like(self, other: Tensor, width: float | None = None) -> Tensor:
        """A new tensor of the size of another one."""
        return self.new(other.elements, other.width if width is None else width, other.extent)

    def note(
        self,
        name: str,
        out: Sequence[Tensor],
        inputs: Sequence[Tensor | None],
        saved: Sequence[Tensor | None],
        derivative: Derivative,
        exchange: Exchange | None = None,
    ) -> None:
        """Record an operation if one of its inputs needs a gradient. `exchange`: its collective, where ranks
        communicate.
        """
        slots = [tensor.slot if tensor is not None else None for tensor in inputs]
        work = self.worked.forward(name, ".".join([*self.scope, name]), out, inputs, self.quantised, exchange)
        if not self.records or not any(slots):
            return
        tensors = []
        for tensor in out:
            tensor.slot = Slot()
            tensors.append(tensor.slot)
            if tensor.storage is not None and not tensor.storage.name:
                tensor.storage.name = ".".join([*self.scope, name])
        storages = [tensor.storage for tensor in saved if tensor is not None and tensor.storage is not None]
        self.nodes.append(Node(".".join([*self.scope, name]), tensors, slots, storages, derivative))
        self.nodes[-1].work, self.nodes[-1].repeats, self.nodes[-1].exchange = work, self.worked.repeats, exchange

    def saved_storages(self) -> list[Storage]:
        """The storages that the nodes hold, each once, in the order in which they were saved."""
        return list(dict.fromkeys(storage for node in self.nodes for storage in node.saved))

    def checkpoint(self, run: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Run keeping only the inputs, and run again when their gradients are needed."""
        records, self.records = self.records, False
        out = run(*inputs)
        self.records = records
        shapes = [
            (tensor.storage, tensor.elements, tensor.width, tensor.extent, tensor.slot is not None) for tensor in inputs
        ]

        def derivative(gradients: Gradients) -> Gradients:
            outer, self.nodes = self.nodes, []
            kind, self.kind = self.kind, "activation"
            when, self.worked.when = self.worked.when, "again"
            self.watches = True
            slots = [Slot() if shape[4] else None for shape in shapes]
            outputs = run(*(Tensor(*shape[:4], slot) for shape, slot in zip(shapes, slots, strict=True)))
            self.mark()
            self.watches = False
            self.worked.when = when
            slot = outputs.slot
            del outputs
            gradients_by_slot: dict[Slot, Tensor] = {}
            if slot is not None and gradients[0] is not None:
                gradients_by_slot = self.backward([(slot, _handed_over(gradients))])
            self.nodes, self.kind = outer, kind
            return [gradients_by_slot.get(slot) if slot is not None else None for slot in slots]

        self.note("checkpoint", [out], inputs, inputs, derivative)
        return out

    # ---- backward ----

    def backward(self, outputs: Sequence[tuple[Slot, Tensor]]) -> dict[Slot, Tensor]:
        """Run all nodes from these gradients on, and return the gradients of slots that no node produced."""
        self.kind = "temporary"
        waiting: dict[Slot, Tensor] = {}
        for end, first in outputs:
            self._deliver(waiting, end, first)
            del first
        del outputs
        while self.nodes:
            node = self.nodes.pop()
            self.where = node.name
            gradients = [waiting.pop(slot, None) for slot in node.outputs]
            if not any(gradients):
                continue
            results = list(node.derivative(gradients))
            self.mark()
            self.worked.backward(node, gradients)
            gradients.clear()
            node.saved.clear()
            node.derivative = _done
            slots = node.inputs
            while slots:
                to, gradient = slots.pop(0), results.pop(0)
                if to is not None and gradient is not None:
                    self._deliver(waiting, to, gradient)
                del gradient
        return waiting

    def mark(self) -> None:
        """Record a moment: memory is about to shrink."""
        if self.grown:
            self.moments.append((self.where, dict(self.live)))
            self.grown = False

    def _deliver(self, waiting: dict[Slot, Tensor], slot: Slot, gradient: Tensor) -> None:
        if slot.leaf is not None:
            self.live[Key("temporary", slot.leaf)] += gradient.elements
            return
        old = waiting.get(slot)
        if old is None:
            waiting[slot] = gradient
        elif old.is_view or old.storage is None or sys.getrefcount(old.storage) > 2:
            waiting[slot] = self.like(old, max(old.width, gradient.width))
            self.mark()


def _handed_over(gradients: Gradients) -> Tensor:
    """The gradient, which the node no longer holds: without reentrance the layer's own nodes are the graph's."""
    assert isinstance(gradients, list)
    gradient: Tensor = gradients.pop()
    return gradient


def _done(_: Gradients) -> Gradients:
    raise RuntimeError("a node runs once")

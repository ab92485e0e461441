"""The result of a tape: the tensors that a layer keeps, and the moments of its backward at which memory can peak."""

from collections.abc import Callable, Mapping, Sequence
from operator import ge
from typing import Any

from msgspec import Struct

from tonnage.tape._code import Code
from tonnage.tape._work import Work, together
from tonnage.tape.tape import TOKEN, Account, Extent, Gradients, Key, Node, Slot, Tape, Tensor


class Kept(Struct, frozen=True):
    """A tensor that stays from forward to backward: `elements` of `width` bytes for each unit of its extent."""

    name: str
    key: Key
    elements: float
    width: float

    @property
    def bytes(self) -> float:
        return self.elements * self.width


class Moment(Struct, frozen=True, eq=False):
    """Bytes that are live right after an operation, by key, including what the layer still keeps."""

    name: str
    live: Account
    forward: bool = False


class Layer(Struct, frozen=True, eq=False):
    """The costs of one layer: `kept` between forward and backward; `moments`, none of which is below another in every
    key.

    `trained`: parameters that a gradient was made for, by what cuts them. `work`: what its kernels do.
    """

    kept: tuple[Kept, ...]
    moments: tuple[Moment, ...]
    trained: Mapping[Extent, float] = {}
    work: tuple[Work, ...] = ()


def layer(code: Code, run: Callable[[Tensor], Tensor], hidden: float, width: float, asks: bool = True) -> Layer:
    """Runs one layer on `hidden` numbers a token of `width` bytes, and then its backward.

    Its input counts if it is kept, and has a gradient if `asks`; its output is the next one's input. Moments of the
    forward are those that `run` marks.
    """
    x = code.new(hidden, width, TOKEN, "input of the layer")
    x.slot = Slot() if asks else None
    code.worked.written.clear()
    out = run(x)
    slot, shape = out.slot, (out.elements, out.width, out.extent)
    del x, out
    saved = tuple(
        Kept(storage.name, storage.key, storage.bytes / storage.width, storage.width)
        for storage in code.saved_storages()
        if storage.bytes
    )
    code.kind, code.grown = "temporary", False
    forward = _undominated(code.moments, True)
    code.moments.clear()
    if slot is not None:
        code.backward([(slot, _first(code, shape))])
    trained = {key.extent: count for key, count in code.live.items() if key.extent.unit == "gradient" and count}
    return Layer(saved, (*forward, *_undominated(code.moments, False)), trained, together(code.worked.done))


def _first(code: Code, shape: tuple[float, float, Extent]) -> Tensor:
    """The gradient that the next layer hands over."""
    output = code.new(*shape)
    code.worked.written.clear()
    return output


def forward(
    code: Code, run: Callable[[Tensor], Tensor], hidden: float, width: float, *, records: bool
) -> tuple[Moment, ...]:
    """The peak moments of one layer's forward pass, its input included; `records`: with what autograd keeps."""
    x = code.new(hidden, width, TOKEN, "input of the layer")
    x.slot = Slot() if records else None
    code.records = records
    plain = code.new

    def noted(*args: Any, **keywords: Any) -> Tensor:
        output = plain(*args, **keywords)
        code.where = ".".join(code.scope)
        code.mark()
        return output

    code.new = noted  # type: ignore[method-assign]
    run(x)
    return tuple(_undominated(code.moments, True))


def _undominated(moments: list[tuple[str, Account]], forward: bool) -> list[Moment]:
    """The moments that no other one exceeds in every key, in their order."""
    keys = list(dict.fromkeys(key for _, account in moments for key in account))
    sizes = [tuple(account.get(key, 0) for key in keys) for _, account in moments]
    left: list[int] = []
    for index in sorted(range(len(moments)), key=lambda moment: -sum(sizes[moment])):  # only a larger one can exceed it
        size = sizes[index]
        if not any(all(map(ge, sizes[other], size)) for other in reversed(left)):
            left.append(index)
    return [
        Moment(moments[index][0], {key: size for key, size in moments[index][1].items() if size > 0}, forward)
        for index in sorted(left)
    ]


# ---- Recomputation that drops a function's outputs, not what it keeps (Megatron-core, tensor_parallel/random.py:
# CheckpointWithoutOutput).
#
# The function runs without a graph; once its consumers have saved the outputs, their bytes are freed. When the gradient
# of a later tensor arrives, the function runs again and refills them.


class Discarded:
    """A function whose `outputs` are used as any tensors, then freed by `drop`.

    `shares`: the recomputed outputs become the storage of the old tensors (from core 0.17 on); else they are copied,
    and both are held.
    """

    def __init__(self, tape: Tape, run: Callable[..., Sequence[Tensor]], *inputs: Tensor, shares: bool = True):
        self.tape, self.run, self.shares = tape, run, shares
        records, tape.records = tape.records, False
        self.outputs = list(run(*inputs))
        tape.records = records
        self.shapes = [
            (tensor.storage, tensor.elements, tensor.width, tensor.extent, tensor.slot is not None) for tensor in inputs
        ]
        self.again: list[Tensor] = []
        self.slots: list[Slot | None] = []
        self.nodes: list[Node] = []
        self.storages = [tensor.storage for tensor in self.outputs if tensor.storage is not None]  # all have one
        tape.note("recomputed", self.outputs, inputs, inputs, self._derivative)

    def drop(self, hook: Tensor) -> Tensor:
        """Free the outputs' bytes until the gradient of `hook` arrives; the returned tensor replaces `hook`."""
        self.outputs.clear()
        for storage in self.storages:
            storage.empty()
        out = hook.alias(hook.slot)
        self.tape.note("recompute", [out], [hook], [], self._fill)
        return out

    def _fill(self, gradients: Gradients) -> Gradients:
        tape = self.tape
        outer, tape.nodes = tape.nodes, []
        kind, tape.kind = tape.kind, "activation"
        when, tape.worked.when = tape.worked.when, "again"
        self.slots = [Slot() if shape[4] else None for shape in self.shapes]
        self.again = list(
            self.run(*(Tensor(*shape[:4], slot) for shape, slot in zip(self.shapes, self.slots, strict=True)))
        )
        self.nodes, tape.nodes, tape.kind = tape.nodes, outer, kind
        tape.worked.when = when
        for tensor, storage in zip(self.again, self.storages, strict=True):
            storage.refill()
            if self.shares:
                tensor.storage = storage
        tape.grown = True
        tape.mark()
        self.storages.clear()
        gradient = gradients[0]
        return [gradient.alias() if gradient is not None else None]

    def _derivative(self, gradients: Gradients) -> Gradients:
        tape = self.tape
        outer, tape.nodes = tape.nodes, self.nodes
        pairs = [
            (tensor.slot, gradient.alias())
            for tensor, gradient in zip(self.again, gradients, strict=True)
            if tensor.slot and gradient
        ]
        self.nodes = []
        gradients_in = tape.backward(pairs)
        self.again, tape.nodes = [], outer
        return [gradients_in.get(slot) if slot is not None else None for slot in self.slots]

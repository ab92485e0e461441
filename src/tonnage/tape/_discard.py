"""Recomputation that drops a function's outputs, not what it keeps (Megatron-core, tensor_parallel/random.py:
CheckpointWithoutOutput).

The function runs without a graph; once its consumers have saved the outputs, their bytes are freed. When the gradient
of a later tensor arrives, the function runs again and refills them.
"""

from collections.abc import Callable, Sequence

from tonnage.tape.tape import Gradients, Node, Slot, Tape, Tensor


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

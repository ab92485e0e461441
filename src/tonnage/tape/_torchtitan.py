"""torchtitan's layers: PyTorch's norms, rotary positions in complex numbers, sequence parallelism that gathers inputs,
and what it keeps.

Compiled, a chain of elementwise operations is one kernel: nothing between its ends is held, and backward recomputes it
(torch, _functorch/partitioners.py: min_cut_rematerialization_partition).
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from tonnage.tape._attending import Held, Setting
from tonnage.tape._code import Code
from tonnage.tape._work import Exchange
from tonnage.tape.tape import TENSOR, TOKEN, Extent, Gradients, Slot, Storage, Tensor

GATHERED = Extent("token", "gathered")
GATHER, SCATTER = Exchange("tensor parallel", "all_gather"), Exchange("tensor parallel", "reduce_scatter")


class Own(Struct, frozen=True, kw_only=True):
    """What the plan sets for a framework's own layers. `ring`: context ranks pass keys and values around;
    `float8`: operands of products are cast; `cast_bytes`: bytes of a number of these, with its scales;
    `keeps_casts`: those of input and weight stay for backward, not the input itself; `gathers_float8`: tensor ranks
    gather what is cast already."""

    compiled: bool = False
    tensor_parallel: bool = False
    ring: bool = False
    float8: bool = False
    cast_bytes: float = 1
    keeps_casts: bool = False
    gathers_float8: bool = True


class Titan(Own, frozen=True, kw_only=True):
    """Differences between versions, in torchtitan, models/llama3 and distributed/activation_checkpoint.py.

    `fuses_projections`: one matrix for queries, keys and values; `compiles_loss`: with the model; `decomposes_norm`:
    PyTorch before 2.9 has no kernel for an eager RMSNorm and takes it apart in fp32; `repeats_heads`: keys and values
    are copied to all heads;
    `keeps_cudnn`: selective recomputation by operation keeps what cuDNN's attention gives; `prefers_cudnn`: it is the
    first choice.
    """

    fuses_projections: bool = True
    compiles_loss: bool = True
    decomposes_norm: bool = False
    repeats_heads: bool = False
    keeps_cudnn: bool = True
    prefers_cudnn: bool = True


class Pending(Tensor):
    """The output of an activation function that a compiled kernel applies at its use; until then it is the input."""

    __slots__ = ()


class TitanCode(Code):
    """The operations of a layer as torchtitan writes them."""

    groups_experts = True  # models/common/moe.py: torch._grouped_mm

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.own: Titan = setting.own or Titan()
        self.fuses_projections = self.own.fuses_projections
        self.cached: list[list[Storage]] | None = None
        self.again: list[list[Storage]] | None = None
        self.products = 0
        self.last_joined: Storage | None = None
        self.is_summed = False

    # ---- tensor parallelism ----

    def run(self, op: Any, x: Tensor) -> Tensor:
        """A module that tensor ranks share gathers its input (PrepareModuleInput)."""
        if (
            self.own.tensor_parallel
            and x.extent == TOKEN
            and any(weight.split in ("tensor", "kv") for weight in op.weights())
        ):
            x = self.gather(x)
        return super().run(op, x)

    def gather(self, x: Tensor) -> Tensor:
        """All-gather over the sequence; the gradient is reduce-scattered."""
        out = self.new(x.elements, 1 if self.own.float8 and self.own.gathers_float8 else x.width, GATHERED)
        shape = x.elements, x.width, x.extent
        self.note("all_gather", [out], [x], [], lambda _: [self.new(*shape)], GATHER)
        out.width = x.width  # cast to float8 on the way, and its gradient is not
        return out

    def scatter(self, x: Tensor) -> Tensor:
        """Reduce-scatter over the sequence; the gradient is gathered."""
        out = self.new(x.elements, x.width, TOKEN)
        shape = x.elements, x.width, x.extent
        self.note("reduce_scatter", [out], [x], [], lambda _: [self.new(*shape)], SCATTER)
        return out

    def linear(
        self,
        name: str,
        x: Tensor,
        weights: Sequence[Held],
        out: float,
        extent: Extent = TOKEN,
        *,
        is_module: bool = True,
    ) -> Tensor:
        """The products that end a module leave a partial sum on every rank."""
        x = self._settled(x)
        if self.own.tensor_parallel and extent == TENSOR and x.extent == TOKEN:
            x = self.gather(x)
        if self.own.tensor_parallel and extent == TOKEN and x.extent == TENSOR:
            self.is_summed = self.own.compiled
            partial = super().linear(name, x, weights, out, GATHERED, is_module=is_module)
            self.is_summed = False
            return self.scatter(partial)
        return super().linear(name, x, weights, out, extent, is_module=is_module)

    def product(
        self,
        x: Tensor,
        weights: Sequence[Tensor],
        elements: float,
        extent: Extent = TOKEN,
        biases: Sequence[Tensor] = (),
    ) -> Tensor:
        """In float8, backward casts the gradient, the input and the weight (torchao, float8/float8_linear.py,
        prototype/mx_formats/mx_linear.py).
        """
        self.quantised = self.own.float8
        out = super().product(x, weights, elements, extent, biases)
        self.quantised = False
        if not self.own.float8 or out.slot is None:
            return out
        node, cast = (
            self.nodes[-1],
            [(elements, extent), (x.elements, x.extent), *((weight.elements, weight.extent) for weight in weights)],
        )
        plain = node.derivative
        if self.own.keeps_casts:
            kept = [self.new(count, self.own.cast_bytes, cut).storage for count, cut in cast[1:]]
            others = [storage for storage in node.saved if storage is not x.storage]
            node.saved = [*others, *(storage for storage in kept if storage is not None)]

        def derivative(gradients: Gradients) -> Gradients:
            held = [self.new(count, self.own.cast_bytes, cut) for count, cut in cast]
            gradients_out = plain(gradients)
            self.mark()
            del held
            return gradients_out

        node.derivative = derivative
        return out

    # ---- attention ----

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        if self.own.decomposes_norm and not self.own.compiled and weight is not None:
            h = self.to(x, 4)
            h = self.mul(h, self.mapped("rsqrt", self.mean(self.square(h), groups), saves="output"))
            return self.to(self.mul(weight, h), x.width)
        return self.layer_norm(x, [weight] if weight is not None else [], statistics=groups, centred=False)

    def turned_heads(self, x: Tensor) -> Tensor:
        return x

    def turned(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        """view_as_complex(x.float()) * freqs_cis, and back; of packed rows torchtune picks cosines and sines by each
        token's position, which copies them for queries and again for keys (modules/position_embeddings.py).
        """
        if self.own.compiled:
            return self.mapped("rotary", x)
        of = tables[0].elements
        table = self.new(of, 4, TOKEN, "positions") if self.packed else self.constant(of, 4)
        return self.to(self.mul(self.to(x, 4), table), x.width)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        out: float,
        *,
        kv_heads: int = 1,
        by_heads: bool = False,
        is_masked: bool = False,
        sinks: bool = False,
        causal: bool = True,
        cross: bool = False,
    ) -> Tensor:
        q, k, v = self._settled(q), self._settled(k), self._settled(v)
        if self.own.repeats_heads and k.elements != q.elements:
            k, v = self.copy(k, q.elements), self.copy(v, out)
        if sinks and self.implementation != "eager":  # FlexAttention, and its log-sum-exp for the sinks
            heads_output = self._flash(q, k, v, heads, out)
        else:
            heads_output = super().attend(
                q, k, v, heads, out, kv_heads=kv_heads, is_masked=is_masked, sinks=sinks, causal=causal, cross=cross
            )
        if self.own.ring:
            self._merged(heads_output)
        return heads_output

    def _merged(self, heads_output: Tensor) -> None:
        """Note the merging of ring attention's blocks in fp32: the sum so far, the block's part, their difference and
        the new sum (_SDPAMerger).
        """
        sums = [self.like(heads_output, 4) for _ in range(4)]
        self.mark()
        del sums

    def _sdpa(
        self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float, kv_heads: int, is_masked: bool, is_copied: bool
    ) -> Tensor:
        """The backends are listed with cuDNN first, and it takes shared heads where they are not repeated before."""
        return self.core(lambda q, k, v: self.attention(q, k, v, heads, out, "cudnn"), q, k, v)

    # ---- feed-forward ----

    def activation(self, x: Tensor) -> Tensor:
        if not self.own.compiled:
            return super().activation(x)
        return Pending(x.storage, x.elements, x.width, x.extent, x.slot, x.is_view)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """activation(x) * y in one kernel keeps both its inputs."""
        if not isinstance(x, Pending) and not isinstance(y, Pending):
            return super().mul(x, y)
        out = self.like(x)
        shapes = [(factor.elements, factor.width, factor.extent) if factor.slot else None for factor in (x, y)]
        self.note("gate", [out], [x, y], [x, y], lambda _: [self.new(*factor) if factor else None for factor in shapes])
        return out

    def _settled(self, x: Tensor) -> Tensor:
        return self.mapped("activation", x, saves="input") if isinstance(x, Pending) else x

    def joined(self, residual: Tensor, x: Tensor) -> Tensor:
        self.last_joined = x.storage
        return super().joined(residual, x)

    # ---- selective recomputation by operation ----

    def selective(self, run: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Run keeping only the input and the results of some operations, and run again in backward."""
        self.cached, self.products = [], 0
        self.worked.is_first = True
        out = run(x)
        self.worked.is_first = False
        cached, self.cached = self.cached or [], None
        if self.own.compiled:  # nothing reads the last product: the residual stream holds the sum
            cached = [[storage for storage in storages if storage is not self.last_joined] for storages in cached]
        self.nodes.clear()
        self.last_joined = None
        saved = [
            Tensor(storage, storage.bytes / storage.width, storage.width, storage.key.extent)
            for storages in cached
            for storage in storages
        ]
        shape = x.storage, x.elements, x.width, x.extent
        held: list[list[Storage]] = []

        def derivative(gradients: Gradients) -> Gradients:
            held.pop()[1:] = []  # from here on they are those of the second run
            outer, self.nodes = self.nodes, []
            kind, self.kind = self.kind, "activation"
            when, self.worked.when = self.worked.when, "again"
            slot = Slot()
            self.again, self.products = list(cached), 0
            cached.clear()
            output = run(Tensor(*shape, slot))
            self.again, self.worked.when = None, when
            self.mark()
            end, gradient = output.slot, gradients[0]
            del output
            gradients_by_slot: dict[Slot, Tensor] = {}
            if end is not None and gradient is not None:
                self.kind = "temporary"
                gradients_by_slot = self.backward([(end, gradient.alias())])
            self.nodes, self.kind = outer, kind
            return [gradients_by_slot.get(slot)]

        out.slot = None
        self.note("checkpoint", [out], [x], [x, *saved], derivative)
        held.append(self.nodes[-1].saved)
        return out

    def note(
        self,
        name: str,
        out: Sequence[Tensor],
        inputs: Sequence[Tensor | None],
        saved: Sequence[Tensor | None],
        derivative: Callable[[Gradients], Gradients],
        exchange: Exchange | None = None,
    ) -> None:
        if self._is_saved(name):
            before = {id(tensor.storage) for tensor in inputs if tensor is not None}
            tensors = [
                tensor
                for tensor in dict.fromkeys([*out, *saved])
                if tensor is not None and tensor.storage is not None and id(tensor.storage) not in before
            ]
            if self.cached is not None:
                self.cached.append([tensor.storage for tensor in tensors if tensor.storage is not None])
            elif self.again:
                storages = self.again.pop(0)
                self.worked.is_known = True
                if len(storages) == len(tensors):
                    for tensor, old in zip(tensors, storages, strict=True):
                        tensor.storage = old
        super().note(name, out, inputs, saved, derivative, exchange)
        self.worked.is_known = False

    def _is_saved(self, name: str) -> bool:
        """Whether selective recomputation keeps this result: every second product, attention, a reduce-scatter."""
        if self.cached is None and self.again is None:
            return False
        if name == "mm":
            self.products += 1
            if self.quantised and self.own.keeps_casts:  # _scaled_mm_v2 is not among the operations that it keeps
                return False
            return (
                self.products % 2 == 1 and not self.is_summed
            )  # compiled: the sum over ranks is kept, and nobody reads its parts
        if name == "attention":
            return self.own.keeps_cudnn or self.implementation != "sdpa"
        return name == "reduce_scatter"

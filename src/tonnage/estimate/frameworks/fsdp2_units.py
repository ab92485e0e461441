"""FSDP2's units on one pipeline stage: what is gathered, fetched ahead and on its way to be reduced at each moment, and
the pools of the allocator, one for each stream, in which all that lies.

torch, distributed/fsdp/_fully_shard: _fsdp_param_group.py (unshard, wait_for_unshard, post_backward),
_fsdp_collectives.py (foreach_all_gather, foreach_reduce). The gathered copy of the next unit lies in the all-gather's
stream until it is copied out; the input of a reduce-scatter is held until the next one begins.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from functools import cached_property, lru_cache

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.points import Point, running
from tonnage.estimate.step.rank import Shares, op_parameters, repeated
from tonnage.estimate.step.views import RankView
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import precision
from tonnage.ops import Op
from tonnage.tape import TOKEN

NOTHING = Term.sum("nothing", unit="parameters")
REDUCTION, END = "the reduction of its gradients", "the last reduction"


def role_of(point: Point) -> str:
    """Which kind of moment this is."""
    if point.operation in (REDUCTION, END):
        return point.operation
    if point.phase == "embedding":
        return "embedding"
    if point.moment == "loss":
        return "forward" if point.position >= 0 else "loss"
    return "layer"


def _second(plain: tuple[Point, ...], order: tuple[Block, ...]) -> list[Point]:
    """The moments of the second layer of backward: the first one that has a reduction beside it. One of another kind
    has them already.
    """
    if len(order) < 3 or order[-1] is not order[-2]:
        return []
    last, block = len(order) - 1, order[-1]
    of_last = [point for point in plain if point.position == last and point.moment != "loss"]
    below, above = Counter(order[:-2]), {block: 1}
    return [replace(point, kept=below, made=above, position=last - 1, place=-1) for point in of_last]


@lru_cache(maxsize=1024)
def unit_points(
    plain: tuple[Point, ...], order: tuple[Block, ...], head_reduced: bool, accumulates: bool
) -> tuple[Point, ...]:
    """The moments of a stage, and those at which gradients are copied to be reduced.

    `head_reduced`: the head is a unit of its own. `accumulates`: gradients of micro-batches are summed whole, so that
    moments differ in the backward of the first one, of those between, and of the last one, which alone reduces them.
    """
    moments: list[Point] = []
    seen: set[int] = set()
    for point in (*plain, *([] if head_reduced else _second(plain, order))):
        if point.phase == "embedding":
            at = {"head_made": head_reduced, "table_made": False, "is_later": accumulates, "is_last": accumulates}
            moments += [replace(point, **at), replace(point, operation=END, live={}, bytes={}, **at)]
        elif point.moment == "loss":
            moments.append(point)
        else:
            of_layer = [replace(point, head_made=head_reduced)]
            if point.position not in seen:
                seen.add(point.position)
                of_layer.append(replace(point, operation=REDUCTION, live={}, bytes={}, head_made=head_reduced))
            moments += of_layer
            if accumulates:
                moments += [
                    replace(moment, is_later=True, is_last=last) for last in (False, True) for moment in of_layer
                ]
    places: dict[tuple[int, str, bool, bool], int] = {}
    keys = [(moment.place, role_of(moment), moment.is_later, moment.is_last) for moment in moments]
    moments = [
        replace(moment, place=places.setdefault(key, len(places))) for moment, key in zip(moments, keys, strict=True)
    ]
    return tuple(moments)


class Buffers(Struct, frozen=True, eq=False):
    """What FSDP2 holds at a moment. `ahead`: of this, what lies in the all-gather's pool."""

    gathered: tuple[Term, ...] = ()
    ahead: Term | None = None
    reduced: tuple[Term, ...] = ()
    gradients: tuple[Term, ...] = ()

    @property
    def buffers(self) -> Term:
        parts = (*self.gathered, *((self.ahead,) if self.ahead is not None else ()), *self.reduced)
        return Term.sum("communication buffers", *parts, unit="bytes")


class Units:
    """The units of a stage: the layers, and the root of all that is outside of them, or table and head on their own."""

    def __init__(self, rank: RankView, width: float = 0, *, loss_outside: bool = False):
        """`width`: bytes of a number as units gather and reduce it, where the precision does not say. `loss_outside`:
        the loss is no part of the model, whoever wrote its layers.
        """
        self.rank, step, stage = rank, rank.step, rank.stage
        self.plan, self.order = step.plan, running(stage, rank.frozen)
        self.compute, self.reduce = width or step.recipe.compute_bytes, width or step.recipe.reduce_bytes
        # transformers' code, whose loss is inside the root
        self.is_theirs = step.setting.own is None and not loss_outside
        before = _unit("table", stage.before, step.whole)
        after = _unit("norm, lm_head", stage.after, step.whole)
        one = self.is_theirs or step.runtime.root_unit or bool(stage.table)
        self.root = _unit("embedding, norm, lm_head", stage.before + stage.after, step.whole) if one else NOTHING
        self.table, self.head = (NOTHING, NOTHING) if one else (before, after)
        self.head_gradient = (
            after if not (one and stage.table) else _unit("norm, lm_head", stage.after + stage.table, step.whole)
        )
        self.table_gradient = before
        self.reshards = step.plan.zero_stage >= 3
        self.keeps_last = step.runtime.keeps_last and not self.is_theirs
        self.accumulates = step.plan.pipeline_parallel_size > 1 and self.reduce != self.compute
        self.trains = step.trains_all
        self.shards = step.sharded.z
        self._found: dict[tuple[str, int, bool, bool], Buffers] = {}

    def at(self, point: Point) -> Buffers:
        """What is held at a moment; that of one layer is made once for all its moments."""
        reduces = not self.accumulates or point.is_last
        key = (role_of(point), -1 if point.everything else point.position, reduces, point.is_later)
        if key not in self._found:
            make: dict[str, Callable[[], Buffers]] = {
                "loss": self.loss,
                "forward": lambda: self.forward(point.position),
                "layer": lambda: self.at_layer(point.position),
                REDUCTION: lambda: (
                    self.reduction(point.position) if reduces else self.addition(point.position, point.is_later)
                ),
                "embedding": self.embedding,
                END: self.end,
            }
            buffers = make[key[0]]()
            self._found[key] = buffers if reduces else replace(buffers, reduced=())
        return self._found[key]

    # ---- widths ----

    def gathered_bytes(self, block: Block) -> float:
        """Bytes a parameter of a gathered layer: float8 all-gather casts the weights of its linear layers before,
        and quantised ones are gathered as they are.
        """
        narrow = (
            precision(self.plan.tuning.base_weights).bits_per_weight / 8
            if self.plan.tuning.base_weights
            else 1
            if self.plan.kernels.float8_all_gather
            else 0
        )
        if not narrow:
            return self.compute
        total = linear = 0
        for weight in block.weights():
            total += weight.num_parameters
            linear += weight.num_parameters if weight.linear and weight.part in ("attention", "mlp") else 0
        return self.compute - linear / total * (self.compute - narrow)

    def layer(self, name: str, block: Block) -> Term:
        return copies(name, self.gathered_bytes(block), self.rank.step.held[block])

    # ---- moments ----

    def loss(self) -> Buffers:
        """While the loss runs; a chunked one sums the head's gradient in fp32."""
        gathered = self._outside(with_head=True) if self.reshards else self._all(len(self.order))
        ahead = None
        if self.reshards and self.order:
            if self.keeps_last:
                gathered = (*gathered, self.layer("all-gather buffer (last layer)", self.order[-1]))
            elif self.is_theirs:
                ahead = self.layer("prefetch buffer (last layer)", self.order[-1])
        gradients: tuple[Term, ...] = ()
        if self.plan.loss == "chunked" and self.head_gradient.children and self.trains and not self.is_theirs:
            gradients = (copies("gradient of the head, summed over chunks", self.reduce, self.head_gradient),)
        return Buffers(gathered, ahead, (), gradients)

    def forward(self, position: int) -> Buffers:
        """Forward of a layer: the one before it is resharded, the next one is fetched."""
        if not self.reshards:
            return Buffers(self._all(len(self.order)))
        after = self.order[position + 1] if position + 1 < len(self.order) else None
        ahead = self.layer("prefetch buffer (next layer)", after) if after is not None else None
        return Buffers((*self._outside(), self.layer("all-gather buffer (current layer)", self.order[position])), ahead)

    def at_layer(self, position: int) -> Buffers:
        """Backward of the layer at this position."""
        last = position == len(self.order) - 1
        reduced = self._reduce_input(self.head if last else self._trained(self.order[position + 1]))
        if not self.reshards:
            gathered, ahead = self._all(position + 1), None
        else:
            gathered = (*self._outside(), self.layer("all-gather buffer (current layer)", self.order[position]))
            ahead = self._next(position)
        return Buffers(gathered, ahead, reduced, self._of_root())

    def reduction(self, position: int) -> Buffers:
        """The layer's gradients are copied into the input of their reduce-scatter."""
        trained = self._trained(self.order[position])
        gathered = (
            self._outside() if self.reshards else self._all(position if not self.accumulates else len(self.order))
        )
        ahead = self._next(position) if self.reshards else None
        unreduced = () if self.accumulates else (copies("gradients of the layer", self.compute, trained),)
        return Buffers(gathered, ahead, self._reduce_input(trained), (*unreduced, *self._of_root()))

    def addition(self, position: int, is_later: bool) -> Buffers:
        """The layer's gradients are added to those of earlier micro-batches, or, of the first one, become their
        beginning.
        """
        trained = self._trained(self.order[position])
        terms = [copies("gradients of the layer", self.compute, trained)]
        if not is_later:
            terms.append(copies("gradients summed before they are reduced, of the layer", self.reduce, trained))
        return Buffers(self._all(len(self.order)), None, (), (*terms, *self._of_root()))

    def embedding(self) -> Buffers:
        """Backward of the table: its gradient beside the reduce-scatter of the first layer."""
        reduced = self._reduce_input(self._trained(self.order[0])) if self.order else ()
        table = [copies("gradient of the table", self.compute, self.table_gradient)]
        if self.rank.stage.table and self.root.children:  # and its sum with the head's
            table.append(copies("gradient of the tied table", self.compute, self.table_gradient))
        return Buffers(
            self._outside() if self.reshards or not self.accumulates else self._all(len(self.order)),
            None,
            reduced,
            (*table, *self._of_root()),
        )

    def end(self) -> Buffers:
        """The last unit is reduced: the root, or the table."""
        unit = self.root if self.root.children else self.table
        gathered = () if self.reshards or not self.accumulates else self._all(len(self.order))
        unreduced = () if self.accumulates else (copies("gradients of the last unit", self.compute, unit),)
        return Buffers(gathered, None, self._reduce_input(unit), unreduced)

    # ---- pieces ----

    def _outside(self, with_head: bool = False) -> tuple[Term, ...]:
        """The units outside of the layers that are gathered."""
        units = [self.root, *((self.head,) if with_head else ())]
        return tuple(
            copies(Message("all-gather buffer ({unit})", unit=unit.name), self.compute, unit)
            for unit in units
            if unit.children
        )

    def _all(self, layers: int) -> tuple[Term, ...]:
        """Nothing is resharded before its backward; under a pipeline not before the step is over."""
        if self.accumulates:
            return (copies("all-gather buffer (all units)", self.compute, self.rank.whole),)
        outside = [
            copies(Message("all-gather buffer ({unit})", unit=unit.name), self.compute, unit)
            for unit in (self.root, self.table)
            if unit.children
        ]
        counts = Counter(self.order[:layers])
        return (
            *outside,
            *(
                repeated(
                    Message("all-gather buffer ({block}s)", block=block.name), count, self.layer(block.name, block)
                )
                for block, count in counts.items()
            ),
        )

    def _next(self, position: int) -> Term | None:
        if position:
            return self.layer("prefetch buffer (next layer)", self.order[position - 1])
        return copies("prefetch buffer (embedding)", self.compute, self.table) if self.table.children else None

    def _reduce_input(self, unit: Term) -> tuple[Term, ...]:
        return (copies("input of the reduce-scatter", self.reduce, unit),) if unit.children and self.trains else ()

    def made(self, parameters: Number) -> Term:
        """Gradients of the unit at work so far."""
        return copies(
            "gradients that the unit at work has made",
            self.compute,
            Term.of("parameters", f.whole_parameters, N=parameters, z=1),
        )

    def _of_root(self) -> tuple[Term, ...]:
        """The root is reduced when backward is over: the gradient of its head waits."""
        if not self.root.children or not self.head_gradient.children or not self.trains:
            return ()
        return (copies("gradients of the head, which wait for the table's", self.compute, self.head_gradient),)

    @cached_property
    def after_step(self) -> Term:
        """In the optimizer's step nothing is gathered, but where nothing is resharded before the next one."""
        gathered = self._all(len(self.order)) if self.accumulates else ()
        return Term.sum("communication buffers", *gathered, unit="bytes")

    @cached_property
    def accumulated(self) -> Term:
        """Under a pipeline gradients of earlier micro-batches are held whole, in the type of the reduction."""
        carried = Term.of("gradients of earlier micro-batches", f.gradients_carried, m=self.plan.num_microbatches)
        return Term.product(
            "gradients summed before they are reduced",
            "bytes",
            carried,
            copies("whole gradients", self.reduce, self.rank.whole),
        )

    @cached_property
    def edges(self) -> tuple[Term, ...]:
        """What the stages of a pipeline hand on: results until their backward, and buffers to receive in, for every
        micro-batch.
        """
        if self.plan.pipeline_parallel_size == 1:
            return ()
        step, stage = self.rank.step, self.rank.stage
        one = step.sizes.term("hidden states of a micro-batch", step.model.hidden_size, self.compute, TOKEN)
        every = Term.of(
            "micro-batches", f.microbatches_in_flight, p=self.plan.num_microbatches, i=0, m=self.plan.num_microbatches
        )
        terms: tuple[Term, ...] = ()
        if not stage.is_last:
            terms += (
                Term.product("results handed on", "bytes", self.rank.in_flight, one),
                Term.product("gradients to receive", "bytes", every, one),
            )
        if stage.rank:
            terms += (Term.product("hidden states to receive", "bytes", every, one),)
        return terms

    def _trained(self, block: Block) -> Term:
        return self.rank.step.trained_held[block]

    # ---- the allocator ----

    @cached_property
    def pool(self) -> Term:
        """The most that the all-gather's stream holds: two units that follow one another, and the cast shard of the
        larger.
        """
        sizes = [copies("table", self.compute, unit) for unit in (self.root, self.table) if unit.children]
        sizes += [self.layer(block.name, block) for block in dict.fromkeys(self.order)]
        head = [copies("head", self.compute, self.head)] if self.head.children else []
        again = (
            [self.layer(self.order[-1].name, self.order[-1])] if self.order else []
        )  # the last layer follows one of its kind
        every = [*sizes, *head] or [Term.sum("no unit", unit="bytes")]
        pairs = [*itertools.pairwise(sizes), *itertools.pairwise([*again, *again, *head])]
        most = Term.max("two units", *(Term.sum("two units", *pair) for pair in pairs), *every)
        return Term.of(
            "pool of the all-gather", f.gather_pool_bytes, M=most.value, x=Term.max("unit", *every).value, z=self.shards
        )


def _unit(name: str, ops: tuple[Op, ...], shares: Shares) -> Term:
    return Term.sum(name, *(term for op in ops for term in op_parameters(op, shares)), unit="parameters")

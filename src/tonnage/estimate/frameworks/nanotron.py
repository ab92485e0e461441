"""nanotron in the walk: its buffers of tensor parallelism, DDP's buckets, 16-bit gradients that wait to be added to
the fp32 ones.
"""

from msgspec.structs import replace

from tonnage.estimate.frameworks.base import FRAMEWORKS
from tonnage.estimate.frameworks.fsdp2 import Compiled
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import Stage, first_of, layer_count
from tonnage.estimate.step.views import RankView, StepView
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number, minimum
from tonnage.kernel.term import Term
from tonnage.tape import TOKEN, Extent, Layer

ALLOCATOR = (
    "PyTorch, c10/cuda/CUDACachingAllocator.cpp: segments of their own from 10 MiB on; simulated with nanotron's "
    "operations"
)
GATHERED = Extent("token", "gathered")


class Nanotron(Compiled):
    """A run of nanotron."""

    adds_tied_gradients = False  # counted with the gradients that wait

    def __init__(self, step: StepView):
        super().__init__(step)
        self.unit_gradient_width = self.recipe.compute_bytes

    def loss(self, stage: Stage) -> Layer | None:
        if not (stage.is_last and stage.after):
            return None
        return tapes.loss_layer(
            stage.after, self.step.setting, self.step.model.hidden_size, "sharded", 1, self.runtime.logits_split
        )

    def points(self, rank: RankView, plain: tuple[Point, ...]) -> tuple[Point, ...]:
        """The end of the forward pass is a place of its own: what the allocator keeps counts there."""
        return tuple(replace(point, place=-1) if point.everything and not point.live else point for point in plain)

    def lasting(self, rank: RankView) -> list[Term]:
        """MemoryBuffer of parallel/tensor_parallel: one gathered input of forward, one gathered gradient of
        backward, for ever.
        """
        terms = []
        if first_of(self.plan.tensor_parallel_size) > 1:
            one = [
                rank.sizes.term(name, self.step.model.hidden_size, self.recipe.compute_bytes, GATHERED)
                for name in ("buffer of gathered inputs", "buffer of gathered gradients")
            ]
            terms += one
        buckets = Term.of(
            "buckets beside another rank's",
            f.parallel_bytes,
            M=self.recipe.compute_bytes,
            n=self.plan.data_parallel_size,
        )
        terms.append(
            Term.product(
                "DDP's buckets",
                "bytes",
                Term.of("bytes per parameter", f.bytes_per_parameter, w=buckets.value),
                rank.whole,
            )
        )
        return terms

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        """param.grad of all that this backward has passed: added to the fp32 gradients, and dropped, when it is
        over.
        """
        if point.moment == "loss":
            return self._results(rank)
        width = self.recipe.compute_bytes
        parts = [
            Term.product(block.name, "parameters", layer_count(count), self.step.held[block])
            for block, count in point.made.items()
        ]
        parts += [rank.after] if rank.after.children else []
        if rank.stage.table and not rank.after.children:
            parts.append(rank.table)
        here = rank.sizes.made(point.bytes)
        parts.append(Term.of("current unit", f.whole_parameters, N=here, z=1))
        parameters = Term.sum("parameters", *parts, unit="parameters")
        return [copies("gradients in 16 bit", width, parameters), *self._results(rank)]

    def _results(self, rank: RankView) -> list[Term]:
        """What a stage has handed on is held until its backward."""
        if rank.stage.is_last:
            return []
        one = rank.sizes.term(
            "hidden states of a micro-batch", self.step.model.hidden_size, self.recipe.compute_bytes, TOKEN
        )
        return [Term.product("results handed on", "bytes", rank.in_flight, one)]

    def reserve(self, rank: RankView, point: Point | None, gradients: Number) -> list[Term]:
        """The classic allocator joins nothing across segments: what the 16-bit gradients of a backward leave, the
        next forward's tensors do not fit into. The moments of AdamW are born after the first backward, into what it
        left, and take their part of that.
        """
        if point is None or point.phase != "forward" or not point.everything or point.live:
            return []
        freed = copies("gradients in 16 bit", self.recipe.compute_bytes, rank.trained)
        saved = sum(rank.step.kept[block].value * count * rank.in_flight.value for block, count in rank.counts.items())
        moments = sum(term.value for term in rank.optimizer.children if "moment" in term.name)
        room = saved + freed.value
        used = minimum(moments / (room + (room == 0) * 1.0), 1)  # a stage may have no layers
        return [
            Term.of(
                "allocator reserve: freed gradients", f.reserve_bytes, source=ALLOCATOR, M=freed.value, rho=1 - used
            )
        ]


FRAMEWORKS.add("nanotron", Nanotron)

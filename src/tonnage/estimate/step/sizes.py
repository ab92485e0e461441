"""From coefficients to bytes: what a byte for each token, pair of tokens or parameter is on one rank of a plan."""

from collections.abc import Mapping

from tonnage.estimate.layers.losses import TOKENS
from tonnage.estimate.step.objective import sequences
from tonnage.estimate.step.rank import Group, Shares, share
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.message import joined
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan
from tonnage.tape import Account, Extent, Kept

NAMES = {
    "whole": "of the residual stream",
    "gathered": "on every tensor rank",
    "tensor": "cut by tensor parallelism",
    "expert": "of routed experts",
    "kv": "of keys and values",
    "vocab": "of the vocabulary",
    "replicated": "of whole weights",
}
UNITS = {
    "pair": "for pairs of tokens",
    "parameter": "for parameters",
    "row": "at experts",
    "tile": "for a tile of tokens",
}


class Sizes:
    """The lengths and ranks of a plan; they may be arrays. `joined`: the rows of a micro-batch are one."""

    def __init__(
        self, plan: TrainingPlan, sequence_parallel: bool, shares: Shares, rows: Number = 0, joined: bool = False
    ):
        self.s, self.b, self.c, self.t = (
            plan.sequence_length,
            sequences(plan),
            plan.context_parallel_size,
            plan.tensor_parallel_size,
        )
        if joined:
            self.s, self.b = self.s * self.b, 1
        self.sequence_parallel, self.shares, self.rows = sequence_parallel, shares, rows
        self._factors: dict[Extent, Number] = {}

    def factor(self, extent: Extent) -> Number:
        """Bytes on this rank for each byte of a coefficient."""
        factor = self._factors.get(extent)
        if factor is None:
            factor = self._factors[extent] = self.term("", 1, 1, extent).value
        return factor

    def term(self, name: str, elements: float, width: float, extent: Extent) -> Term:
        """A tensor, or a sum of tensors that are cut alike."""
        if extent.unit == "row":
            cut = self.shares.q if extent.split == "expert" else 1
            return Term.of(name, f.row_bytes, x=elements, w=width, Rx=self.rows, q=cut)
        if extent.unit == "tile":
            return Term.of(name, f.tile_bytes, x=elements, w=width, s=self.s, b=self.b, c=self.c, xi=TOKENS)
        if extent.split == "expert tensor":
            return Term.of(name, f.split_state_bytes, N=elements, w=width, t=self.shares.q)
        if extent.unit in ("parameter", "gradient"):
            held = share(Group(extent.split, extent.heads, 1), self.shares).value
            return Term.of(name, f.state_bytes, N=elements * held, w=width)
        sizes = {"x": elements, "w": width, "s": self.s, "b": self.b, "c": self.c}
        if extent.unit == "pair":
            return Term.of(name, f.saved_scores_bytes, **sizes, t=1 if extent.split == "gathered" else self.t)
        if extent.split == "gathered" or (extent.split == "whole" and not self.sequence_parallel):
            return Term.of(name, f.saved_bytes, **sizes)
        return Term.of(name, f.saved_split_bytes, **sizes, t=self.t)

    def positions(self, name: str, elements: float, width: float) -> Term:
        """Numbers for each position of a sequence, whatever the batch."""
        return Term.of(name, f.saved_bytes, x=elements, w=width, s=self.s, b=1, c=self.c)

    def total(self, by_extent: Mapping[Extent, float]) -> Number:
        """Bytes of a moment, but for the gradients that it has made."""
        total: Number = 0
        for extent, size in by_extent.items():
            if extent.unit != "gradient":
                total = total + size * self.factor(extent)
        return total

    def made(self, by_extent: Mapping[Extent, float]) -> Number:
        """Parameters whose gradients a moment has made."""
        total: Number = 0
        for extent, count in by_extent.items():
            if extent.unit == "gradient":
                total = total + count * self.factor(extent)
        return total

    def kept(self, name: str, tensors: tuple[Kept, ...]) -> Term:
        """What one layer keeps, tensor by tensor."""
        return Term.sum(
            name,
            *(self.term(tensor.name, tensor.elements, tensor.width, tensor.key.extent) for tensor in tensors),
            unit="bytes",
        )

    def account(self, live: Account, kind: str) -> list[Term]:
        """A moment's bytes of one kind, by what cuts them."""
        totals: dict[tuple[str, Extent], float] = {}
        for key, size in live.items():
            if key.kind == kind and key.extent.unit != "gradient":
                named = self._named(key.extent)
                totals[named] = totals.get(named, 0.0) + size
        return [self.term(name, size, 1, extent) for (name, extent), size in totals.items()]

    def _named(self, extent: Extent) -> tuple[str, Extent]:
        """What a size is, and what it grows with: on one tensor rank what is cut and what is not are one."""
        alone = not hasattr(self.t, "ndim") and self.t == 1
        what = UNITS.get(extent.unit, "")
        if alone and extent.unit in ("token", "pair") and extent.split in ("tensor", "gathered"):
            return _of(what, "temporaries of the layer"), Extent(extent.unit, "gathered")
        if alone and extent.split == "tensor":
            return _of(what, "of matrices"), extent
        return _of(what, NAMES[extent.split]), extent


def _of(grows_with: str, cut: str) -> str:
    """The name of a size: what it grows with, where that is not tokens, and what cuts it."""
    return joined(", ", (grows_with, cut)) if grows_with else cut

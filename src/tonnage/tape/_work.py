"""The work of operations: arithmetic, bytes read and written, bytes sent.

The tape notes them as operations happen, so recomputation, frozen weights and fused kernels count as they do in the run
itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

# ---- What a size grows with, and what shards it.

# A "row" is one copy of a token that arrived at the experts of a rank: capacity, padding and imbalance decide how many
# there are.
# "tile": as a token, but no more of them than a tile of TRL's losses has.
Unit = Literal["token", "row", "pair", "tile", "parameter", "gradient"]
# What shards a size: only sequence parallelism ("whole"), tensor ranks, expert ranks, the vocabulary; "gathered":
# nothing.


class Extent(NamedTuple):
    """What a size grows with, and what shards it. `heads`: a rank holds at least one of this many."""

    unit: Unit
    split: str
    heads: int = 0


WorkKind = Literal["product", "experts", "attention", "scan", "move", "exchange"]
Pass = Literal["forward", "again", "backward"]
Group = Literal["tensor parallel", "context parallel", "expert parallel", "expert tensor parallel"]
Collective = Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send"]

PRODUCTS = ("mm", "mm_4bit")
# work inside of these is noted on its own; an all-to-all that is no exchange here belongs to attention over context
# ranks
INSIDE = (
    "checkpoint",
    "recomputed",
    "recompute",
    "fused_linear_cross_entropy",
    "fused_cross_entropy",
    "chunked_cross_entropy",
    "chunked_logprob",
    "chunked_divergence",
    "all_to_all",
)
BACK: dict[Collective, Collective] = {
    "all_gather": "reduce_scatter",
    "reduce_scatter": "all_gather",
    "all_to_all": "all_to_all",
}
ATTENTION_BACKWARD = 2.5  # five products for two (Dao2023, sec. 3.2): the scores are recomputed


class Exchange(NamedTuple):
    """A collective of the ranks of a group. `beside`: it can overlap the kernel that it is for, as ring attention
    does. `along`: a dispatcher with kernels of its own sends it in the messages of the exchange before.
    """

    group: Group
    collective: Collective
    beside: bool = False
    along: bool = False


class Work(NamedTuple):
    """One kernel, or a few that run one after the other.

    `flops` for each unit of `per`; `bytes` read and written, or sent, by extent. For a product: `outer` are the rows of
    the weight, `is_cut` where ranks shard them; `quantised`: its operands may be narrower than 16 bit. `kernels`: how
    many kernels this entry counts. `causal`: in attention, a token sees no later one; `fused`: its kernel skips what is
    masked. `exchange`: the collective that sends these bytes, for communication alone. `name` is for people: no code
    reads it.
    """

    name: str
    kind: WorkKind
    when: Pass
    flops: float = 0
    per: Extent = Extent("token", "whole")
    bytes: Mapping[Extent, float] = {}
    outer: float = 0
    copies: float = 1
    is_cut: bool = False
    quantised: bool = False
    wgrad: bool = False
    kernels: int = 1
    causal: bool = True
    fused: bool = True
    exchange: Exchange | None = None


class SizedTensor(Protocol):
    """The attributes of a tensor that counting work reads: `elements` numbers of `width` bytes per unit of its extent.

    `slot` is None where no gradient is asked for.
    """

    @property
    def elements(self) -> float: ...

    @property
    def width(self) -> float: ...

    @property
    def extent(self) -> Extent: ...

    @property
    def slot(self) -> object: ...


class Operation(Protocol):
    """The attributes of an operation that counting the work of its derivative reads; `saved` are storages."""

    @property
    def name(self) -> str: ...

    @property
    def work(self) -> list[Work]: ...

    @property
    def exchange(self) -> Exchange | None: ...

    @property
    def saved(self) -> list[Any]: ...

    @property
    def repeats(self) -> float: ...


class Worked:
    """Collects work as a tape runs. `written`: bytes of tensors created since the last operation."""

    def __init__(self) -> None:
        self.done: list[Work] = []
        self.written: defaultdict[Extent, float] = defaultdict(float)
        self.when: Pass = "forward"
        self.copies = 1.0
        self.causal = True  # of the current attention
        self.is_first = False  # selective recomputation by operation: a first run, whose derivatives are not used
        self.repeats = 1.0  # parts of the sequence that pass one after the other
        self.expanded: list[
            tuple[float, float, float, Extent]
        ] = []  # elements, bytes packed and whole, of the next product's weights
        self.is_known = False  # the result is there already: the operation is skipped, its derivative is not

    def forward(
        self,
        name: str,
        scope: str,
        out: Sequence[SizedTensor],
        inputs: Sequence[SizedTensor | None],
        quantised: bool,
        exchange: Exchange | None,
    ) -> list[Work]:
        """Note an operation, and return the work of its derivative besides moving bytes."""
        count = len(self.done)
        operands = [tensor for tensor in inputs if tensor is not None]
        if exchange is not None:
            self._exchanged(
                scope, self.when, exchange, operands[0] if exchange.collective == "reduce_scatter" else out[0]
            )
            back = []
        else:
            back = self._forward(name, scope, out, operands, quantised)
        if self.is_known:
            del self.done[count:]
        if self.repeats != 1:
            self.done[count:] = [_times(tensor, self.repeats) for tensor in self.done[count:]]
            back = [_times(tensor, self.repeats) for tensor in back]
        return back

    def _forward(
        self, name: str, scope: str, out: Sequence[SizedTensor], operands: Sequence[SizedTensor], quantised: bool
    ) -> list[Work]:
        if name in INSIDE:
            self.written.clear()
            return []
        if name in PRODUCTS:
            self.written.clear()
            return self._product(scope, out[0], operands, quantised)
        if name in ("bmm", "attention"):
            self.written.clear()
            return self._attention(scope, name, out[0], operands)
        if not self.written:
            return []
        moved = _sum(self.written.items(), ((tensor.extent, _size(tensor)) for tensor in operands))
        self.written.clear()
        self.done.append(Work(scope, "move", self.when, bytes=moved))
        return []

    def expand(self, packed: float, shapes: Iterable[tuple[float, float, Extent]]) -> None:
        """The weights of the next product are dequantised before it, and again for the gradient of its input:
        bitsandbytes, autograd/_functions.py (MatMul4Bit). `packed`: bytes a parameter as stored; `shapes`: parameters,
        bytes a parameter when dequantised.
        """
        self.expanded = [(elements, packed, unpacked, extent) for elements, unpacked, extent in shapes]

    def head(self, name: str, inner: float, outer: float, *, trains: bool) -> None:
        """Note the products of a head that is fused with its loss: forward, and the gradients, computed at once."""
        per, parameters = Extent("token", "tensor"), Extent("parameter", "vocab")
        moved = {Extent("token", "gathered"): 2 * outer, parameters: 2 * inner * outer}
        product = Work(name, "product", self.when, 2 * inner * outer, per, moved, outer, is_cut=True)
        self.done += [
            product,
            product._replace(when="backward"),
            *([product._replace(when="backward", wgrad=True)] if trains else []),
        ]

    def matrix(
        self, name: str, inner: float, outer: float, split: str, heads: int, *, trains: bool, records: bool
    ) -> None:
        """Note the product of a linear layer that is not written out."""
        per = Extent("token", "tensor" if split in ("tensor", "kv", "vocab") else "whole")
        moved = {per: 2 * (inner + outer), Extent("parameter", split, heads): 2 * inner * outer}
        product = Work(name, "product", self.when, 2 * inner * outer, per, moved, outer, is_cut=True, quantised=True)
        self.done.append(product)
        if records and not self.is_first:
            self.done.append(product._replace(when="backward"))
            if trains:
                self.done.append(product._replace(when="backward", wgrad=True))

    def scan(self, name: str, flops: float, *, pairs: bool, records: bool) -> None:
        """Note arithmetic without weights, per token or per pair of tokens."""
        work = Work(
            name, "attention" if pairs else "scan", self.when, flops, Extent("pair" if pairs else "token", "tensor")
        )
        self.done.append(work)
        if records and not self.is_first:
            self.done.append(work._replace(when="backward", flops=2 * flops))

    def send(self, name: str, when: Pass, exchange: Exchange, sent: Mapping[Extent, float]) -> None:
        """Note a collective inside an operation."""
        self.done.append(Work(name, "exchange", when, bytes=sent, exchange=exchange))

    def _exchanged(self, name: str, when: Pass, exchange: Exchange, full_tensor: SizedTensor) -> None:
        """Note a collective that is an operation: bytes of the full tensor of which ranks send parts."""
        self.written.clear()
        self.send(name, when, exchange, {full_tensor.extent: full_tensor.elements * full_tensor.width})

    def _product(self, scope: str, out: SizedTensor, operands: Sequence[SizedTensor], quantised: bool) -> list[Work]:
        expanded, self.expanded = self.expanded, []
        x, weights = operands[0], [tensor for tensor in operands[1:] if tensor.extent.unit == "parameter"]
        inner, outer = x.elements / self.copies, out.elements / self.copies
        extents = [*(tensor.extent for tensor in weights), *(extent for *_, extent in expanded)]
        split = extents[0].split if extents else "replicated"
        routed = split == "expert" or x.extent.unit == "row"
        per, is_cut = _per(x, split, routed)
        moved = _sum(
            ((tensor.extent, _size(tensor)) for tensor in (*operands, out)),
            ((extent, elements * unpacked) for elements, _, unpacked, extent in expanded),
        )
        product = Work(
            scope,
            "experts" if routed else "product",
            self.when,
            2 * inner * outer * self.copies,
            per,
            moved,
            outer,
            self.copies,
            is_cut,
            quantised,
        )
        # packed weights are read and dequantised ones written, which the product then reads
        passing = _sum((extent, elements * (packed + unpacked)) for elements, packed, unpacked, extent in expanded)
        first = [Work(scope, "move", self.when, bytes=passing, kernels=len(expanded))] if expanded else []
        self.done += [*first, product]
        back = [tensor._replace(when="backward") for tensor in (*first, product)] if x.slot is not None else []
        if any(tensor.slot is not None for tensor in weights):
            back.append(product._replace(when="backward", wgrad=True))
        return back

    def _attention(self, scope: str, name: str, out: SizedTensor, operands: Sequence[SizedTensor]) -> list[Work]:
        """Note the work of scores and weighted values for each pair of tokens; a fused kernel skips masked pairs."""
        moved = _sum((tensor.extent, _size(tensor)) for tensor in (*operands, out))
        cut = "gathered" if out.extent.split == "gathered" else "tensor"
        if name == "attention":
            work = Work(
                scope,
                "attention",
                self.when,
                2 * (operands[0].elements + out.elements),
                Extent("pair", cut),
                moved,
                causal=self.causal,
            )
            return self._noted(work, ATTENTION_BACKWARD)
        inner = operands[0].elements if out.extent.unit == "pair" else out.elements
        work = Work(scope, "attention", self.when, 2 * inner, Extent("pair", cut), moved, fused=False)
        return self._noted(work, 2)

    def _noted(self, work: Work, passes: float) -> list[Work]:
        self.done.append(work)
        back = {extent: passes * size for extent, size in work.bytes.items()}
        return [work._replace(when="backward", flops=passes * work.flops, bytes=back)]

    def backward(self, node: Operation, gradients: Iterable[SizedTensor | None]) -> None:
        """Note the work of a derivative, which was handed these gradients and has read what the node saved."""
        if node.exchange is not None:
            first = next(tensor for tensor in gradients if tensor is not None)
            back = node.exchange._replace(collective=BACK[node.exchange.collective])
            self._exchanged(node.name, "backward", back, first)
            return
        if node.name.rpartition(".")[2] in INSIDE:
            self.written.clear()
            return
        if node.work:
            self.written.clear()
            self.done += node.work
            return
        if not self.written:
            return
        read = [(tensor.extent, _size(tensor)) for tensor in gradients if tensor is not None]
        saved = [(tensor.key.extent, tensor.full) for tensor in dict.fromkeys(node.saved)]
        work = Work(node.name, "move", "backward", bytes=_sum(self.written.items(), read, saved))
        self.done.append(_times(work, node.repeats))
        self.written.clear()


def together(done: Sequence[Work]) -> tuple[Work, ...]:
    """Merge all work that only reads and writes into one entry per pass: its time is the sum of its bytes."""
    moves: dict[Pass, list[Work]] = {}
    for work in done:
        if work.kind == "move":
            moves.setdefault(work.when, []).append(work)
    summed = [
        Work("reads and writes", "move", when, bytes=_sum(*(work.bytes.items() for work in many)), kernels=len(many))
        for when, many in moves.items()
    ]
    return (*(work for work in done if work.kind != "move"), *summed)


def _times(work: Work, repeats: float) -> Work:
    return work._replace(
        flops=work.flops * repeats, bytes={extent: size * repeats for extent, size in work.bytes.items()}
    )


def _per(x: SizedTensor, split: str, routed: bool) -> tuple[Extent, bool]:
    """The extent that the arithmetic grows with, and whether the rows of the weight are sharded, not its columns."""
    if routed:
        if x.extent.unit == "row":
            return Extent("row", "expert"), x.extent.split != "expert"
        return x.extent, False
    if split in ("tensor", "kv", "vocab"):
        return Extent("token", "tensor"), x.extent.split != "tensor"
    return Extent(x.extent.unit, x.extent.split), False


def _size(tensor: SizedTensor) -> float:
    return tensor.elements * tensor.width


def _sum(*many: Iterable[tuple[Extent, float]]) -> dict[Extent, float]:
    total: dict[Extent, float] = {}
    for sizes in many:
        for extent, size in sizes:
            if size:
                total[extent] = total.get(extent, 0) + size
    return total

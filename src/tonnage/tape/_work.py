"""What operations do while they run: arithmetic, bytes that they read and write, bytes that they send.

The tape notes them as operations happen, so recomputation, frozen weights and fused kernels count as they do in the run
itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from tonnage.tape._extent import Extent

WorkKind = Literal["product", "experts", "attention", "scan", "move", "exchange"]
Pass = Literal["forward", "again", "backward"]
Group = Literal["tensor parallel", "context parallel", "expert parallel", "expert tensor parallel"]
Collective = Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send"]

PRODUCTS = ("mm", "mm_4bit")
# what runs inside of these is noted by itself; an all-to-all that is no exchange here is part of attention's over
# context ranks
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
ATTENTION_BACKWARD = 2.5  # five products for two (Dao2023, sec. 3.2): the scores are made again


class Exchange(NamedTuple):
    """What the ranks of a group do with the parts that they have. `beside`: it can run beside the kernel that it is
    for, as a ring can beside attention.
    """

    group: Group
    collective: Collective
    beside: bool = False


class Work(NamedTuple):
    """One kernel, or a few that run one after the other.

    `flops` for each unit of `per`; `bytes` read and written, or sent, by extent. Of a product: `outer` are the
    rows of the weight, `is_cut` where ranks share them; `quantised`: its operands may be narrower than 16 bit.
    `kernels`: how many this stands for. `causal`: of attention, a token sees none after it; `fused`: its kernel
    skips what the mask takes out. `exchange`: what ranks do to send these bytes, of such work alone. `name` is for
    people: nothing reads it.
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
    """What counting work reads of a tensor: `elements` numbers of `width` bytes for each unit of its extent.

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
    """What counting the work of a derivative reads of the operation that it belongs to; `saved` are storages."""

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
    """Collects work as a tape runs. `written`: bytes of tensors that were made since the last operation."""

    def __init__(self) -> None:
        self.done: list[Work] = []
        self.written: defaultdict[Extent, float] = defaultdict(float)
        self.when: Pass = "forward"
        self.copies = 1.0
        self.causal = True  # the attention at work
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
        """Notes an operation; what its derivative will do besides moving bytes is given back."""
        count = len(self.done)
        given = [tensor for tensor in inputs if tensor is not None]
        if exchange is not None:
            self._exchanged(scope, self.when, exchange, given[0] if exchange.collective == "reduce_scatter" else out[0])
            back = []
        else:
            back = self._forward(name, scope, out, given, quantised)
        if self.is_known:
            del self.done[count:]
        if self.repeats != 1:
            self.done[count:] = [_times(tensor, self.repeats) for tensor in self.done[count:]]
            back = [_times(tensor, self.repeats) for tensor in back]
        return back

    def _forward(
        self, name: str, scope: str, out: Sequence[SizedTensor], given: Sequence[SizedTensor], quantised: bool
    ) -> list[Work]:
        if name in INSIDE:
            self.written.clear()
            return []
        if name in PRODUCTS:
            self.written.clear()
            return self._product(scope, out[0], given, quantised)
        if name in ("bmm", "attention"):
            self.written.clear()
            return self._attention(scope, name, out[0], given)
        if not self.written:
            return []
        moved = _sum(self.written.items(), ((tensor.extent, _size(tensor)) for tensor in given))
        self.written.clear()
        self.done.append(Work(scope, "move", self.when, bytes=moved))
        return []

    def expand(self, packed: float, shapes: Iterable[tuple[float, float, Extent]]) -> None:
        """The weights of the next product are made whole before it, and for the gradient of its input once more:
        bitsandbytes, autograd/_functions.py (MatMul4Bit). `packed`: bytes a parameter as stored; `shapes`:
        parameters, bytes a parameter when whole.
        """
        self.expanded = [(elements, packed, whole, extent) for elements, whole, extent in shapes]

    def head(self, name: str, inner: float, outer: float, *, trains: bool) -> None:
        """The products of a head whose loss is one kernel with it: forward, and the gradients, which it makes at
        once.
        """
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
        """The product of a linear layer that is not written out."""
        per = Extent("token", "tensor" if split in ("tensor", "kv", "vocab") else "whole")
        moved = {per: 2 * (inner + outer), Extent("parameter", split, heads): 2 * inner * outer}
        product = Work(name, "product", self.when, 2 * inner * outer, per, moved, outer, is_cut=True, quantised=True)
        self.done.append(product)
        if records and not self.is_first:
            self.done.append(product._replace(when="backward"))
            if trains:
                self.done.append(product._replace(when="backward", wgrad=True))

    def scan(self, name: str, flops: float, *, pairs: bool, records: bool) -> None:
        """Arithmetic that no weight does: of each token, or of each pair of tokens."""
        work = Work(
            name, "attention" if pairs else "scan", self.when, flops, Extent("pair" if pairs else "token", "tensor")
        )
        self.done.append(work)
        if records and not self.is_first:
            self.done.append(work._replace(when="backward", flops=2 * flops))

    def send(self, name: str, when: Pass, exchange: Exchange, sent: Mapping[Extent, float]) -> None:
        """Notes an exchange that an operation does inside."""
        self.done.append(Work(name, "exchange", when, bytes=sent, exchange=exchange))

    def _exchanged(self, name: str, when: Pass, exchange: Exchange, whole: SizedTensor) -> None:
        """Notes one that is an operation: bytes of the whole tensor that ranks send each other parts of."""
        self.written.clear()
        self.send(name, when, exchange, {whole.extent: whole.elements * whole.width})

    def _product(self, scope: str, out: SizedTensor, given: Sequence[SizedTensor], quantised: bool) -> list[Work]:
        expanded, self.expanded = self.expanded, []
        x, weights = given[0], [tensor for tensor in given[1:] if tensor.extent.unit == "parameter"]
        inner, outer = x.elements / self.copies, out.elements / self.copies
        extents = [*(tensor.extent for tensor in weights), *(extent for *_, extent in expanded)]
        split = extents[0].split if extents else "replicated"
        routed = split == "expert" or x.extent.unit == "row"
        per, is_cut = _per(x, split, routed)
        moved = _sum(
            ((tensor.extent, _size(tensor)) for tensor in (*given, out)),
            ((extent, elements * whole) for elements, _, whole, extent in expanded),
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
        # packed weights are read, whole ones written, which the product then reads
        passing = _sum((extent, elements * (packed + whole)) for elements, packed, whole, extent in expanded)
        first = [Work(scope, "move", self.when, bytes=passing, kernels=len(expanded))] if expanded else []
        self.done += [*first, product]
        back = [tensor._replace(when="backward") for tensor in (*first, product)] if x.slot is not None else []
        if any(tensor.slot is not None for tensor in weights):
            back.append(product._replace(when="backward", wgrad=True))
        return back

    def _attention(self, scope: str, name: str, out: SizedTensor, given: Sequence[SizedTensor]) -> list[Work]:
        """Scores and weighted values of each pair of tokens; a fused kernel skips what the mask takes out."""
        moved = _sum((tensor.extent, _size(tensor)) for tensor in (*given, out))
        cut = "gathered" if out.extent.split == "gathered" else "tensor"
        if name == "attention":
            work = Work(
                scope,
                "attention",
                self.when,
                2 * (given[0].elements + out.elements),
                Extent("pair", cut),
                moved,
                causal=self.causal,
            )
            return self._noted(work, ATTENTION_BACKWARD)
        inner = given[0].elements if out.extent.unit == "pair" else out.elements
        work = Work(scope, "attention", self.when, 2 * inner, Extent("pair", cut), moved, fused=False)
        return self._noted(work, 2)

    def _noted(self, work: Work, passes: float) -> list[Work]:
        self.done.append(work)
        back = {extent: passes * size for extent, size in work.bytes.items()}
        return [work._replace(when="backward", flops=passes * work.flops, bytes=back)]

    def backward(self, node: Operation, gradients: Iterable[SizedTensor | None]) -> None:
        """Notes what a derivative has just done; it has been given these gradients, and has read what the node
        saved.
        """
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
    """The same work, with all that only reads and writes in one for each pass: its time is the sum of its bytes."""
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
    """What the arithmetic grows with, and whether the rows of the weight are cut, not its columns."""
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

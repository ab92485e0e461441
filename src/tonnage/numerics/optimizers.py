"""Optimizers, by the states that they keep. Adding one is adding one entry.

The master copy of the weights belongs to the training recipe, not to the optimizer. Step counters, a few bytes a
tensor, are left out. `Optimizer.states(rows, columns)` counts one tensor exactly; `bytes_per_parameter` is its limit
for large ones.
"""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number, ceil_div, maximum, minimum
from tonnage.kernel.registry import Registry, unknown

# What a state has one number for: every parameter, every row or column (factored second moments), one block of rows,
# the whole tensor, (rank x longer side) of a low-rank gradient, (rank x shorter side) of its projector, a square of the
# rows or columns.
Shape = Literal["parameter", "row", "column", "head", "scalar", "low-rank", "projector", "row square", "column square"]
# How optimizers tell tensors apart: matrices of the layers, tables (embedding and head), vectors (norms, biases).
Role = Literal["matrix", "table", "vector"]
LARGEST_PRECONDITIONER = 10_000  # SOAP leaves a longer side without one: soap.py, max_precondition_dim


class State(Struct, frozen=True):
    """One state of an optimizer. `width`: bytes an element, None for the width of the updated weights.

    `block`: number of elements that share an fp32 scale in a quantised state.
    """

    name: str
    shape: Shape = "parameter"
    width: float | None = None
    block: int = 0


class Optimizer(Struct, frozen=True, kw_only=True):
    """An optimizer: its states for the matrices of the layers, and for tables and vectors where those differ.

    A quantised state of fewer than `smallest` elements is kept in fp32 (`small_width`; None: as wide as the weights);
    `whole_blocks`: also one that its blocks do not divide. `paged`: states of at least 100 000 elements are in CUDA
    managed memory, which moves to the host when the device is full. `rank`: default rank of the low-rank gradient.
    `products`: what an update multiplies or factorises, besides reading and writing the states; `work`: FLOP of that
    for a matrix of rows x columns, as the mean of many updates, None where no formula says them; `work_type`: the peak
    that they are multiplied at. `unworked`: what of the products these FLOP leave out.
    """

    name: str
    matrix: tuple[State, ...]
    source: str
    table: tuple[State, ...] | None = None
    vector: tuple[State, ...] | None = None
    smallest: int = 0
    small_width: float | None = 4
    whole_blocks: bool = False
    paged: bool = False
    rank: int = 0
    note: str = ""
    products: str = ""
    work: Callable[[float, float], float] | None = None
    work_type: str = "bf16"
    unworked: str = ""

    def of(self, role: Role) -> tuple[State, ...]:
        """The states of a tensor of this role."""
        if role == "matrix":
            return self.matrix
        if role == "table":
            return self.matrix if self.table is None else self.table
        return self.of("table") if self.vector is None else self.vector

    def states(
        self,
        rows: Number,
        columns: Number = 1,
        *,
        copies: Number = 1,
        role: Role | None = None,
        heads: Number = 0,
        rank: int | None = None,
        update_bytes: float = 4,
        full_precision: bool = False,
    ) -> dict[str, Number]:
        """Bytes of each state for `copies` tensors of rows x columns (rows: output features).

        `heads`: query or key heads of the tensor, for Adam-mini. `update_bytes`: width of the weights that are updated.
        `full_precision`: the framework keeps this tensor's states in fp32 (transformers' Trainer does so for embeddings
        under 8-bit bitsandbytes). A tensor without columns is a vector; a matrix is taken for one of a layer unless
        `role` says otherwise.
        """
        role = role or ("vector" if type(columns) is int and columns == 1 else "matrix")
        size = _Size(rows, columns, heads, rank or self.rank)
        return {state.name: copies * self._bytes(state, size, update_bytes, full_precision) for state in self.of(role)}

    def total_bytes(self, rows: Number, columns: Number = 1, **how: Any) -> Number:
        """Bytes of all states of one tensor, as `states` counts them."""
        return sum(self.states(rows, columns, **how).values())

    def bytes_per_parameter(self, update_bytes: float = 4) -> float:
        """Bytes of state per parameter of a large matrix, where factored states vanish. MissingDatum where it depends
        on the shape.
        """
        odd = [state.shape for state in self.matrix if state.shape in ("low-rank", "row square", "column square")]
        if odd:
            raise MissingDatum(
                "bytes per parameter of {name!r} depend on the shape ({odd}): ask states(...).",
                name=self.name,
                odd=odd[0],
            )
        return sum(
            _width(state, update_bytes) + (4 / state.block if state.block else 0)
            for state in self.matrix
            if state.shape == "parameter"
        )

    @property
    def elementwise(self) -> bool:
        """Whether every tensor takes bytes_per_parameter: no factors, no blocks, no roles."""
        plain = all(state.shape == "parameter" and not state.block for state in self.matrix)
        return plain and self.table is None and self.vector is None

    def _bytes(self, state: State, size: "_Size", update_bytes: float, full_precision: bool) -> Number:
        elements = size.count(state.shape)
        if not state.block:
            return elements * _width(state, update_bytes)
        quantised = elements * _width(state, update_bytes) + ceil_div(elements, state.block) * 4
        plain = elements * (4 if full_precision else self.small_width or update_bytes)
        if full_precision:
            return plain
        large = elements >= self.smallest
        return _choose(large & (elements % state.block == 0) if self.whole_blocks else large, quantised, plain)


NEWTON_SCHULZ_STEPS = 5  # torch/optim/_muon.py: ns_steps
PRECONDITION_EVERY = 10  # soap.py: precondition_frequency


def newton_schulz_flops(rows: float, columns: float) -> float:
    """FLOP of Muon's Newton-Schulz steps: a X + (b A + c A A) X with A = X X^T, X being as wide as it is or wider
    (Jordan2024; torch/optim/_muon.py: zeropower_via_newtonschulz5).
    """
    short, long = min(rows, columns), max(rows, columns)
    return NEWTON_SCHULZ_STEPS * (4 * short**2 * long + 2 * short**3)


def soap_flops(rows: float, columns: float) -> float:
    """FLOP of a SOAP update: statistics of each side, the gradient and the first moment into their bases, the update
    back, and every tenth time a product with each basis and its QR decomposition (Vyas2024, algorithm 3;
    Golub2013, sec. 5.2: 4/3 n^3 for R and as much for Q).
    """
    total = 0.0
    for side, other in ((rows, columns), (columns, rows)):
        if side <= LARGEST_PRECONDITIONER:
            total += 4 * 2 * side**2 * other + (2 + 8 / 3) * side**3 / PRECONDITION_EVERY
    return total


def projection_flops(rank: int) -> Callable[[float, float], float]:
    """FLOP of projecting a gradient to this rank, and of the update back (Zhao2024, algorithm 1)."""
    return lambda rows, columns: 4 * rows * columns * min(rank, rows, columns)


class _Size(Struct, frozen=True):
    """The sizes of a tensor that the shapes of its states depend on."""

    rows: Number
    columns: Number
    heads: Number
    rank: int

    def count(self, shape: Shape) -> Number:
        """Elements of a state of this shape."""
        rows, columns = self.rows, self.columns
        match shape:
            case "parameter":
                return rows * columns
            case "row":
                return rows
            case "column":
                return columns
            case "head":
                return self.heads or rows
            case "scalar":
                return 1
            case "low-rank":
                return minimum(minimum(rows, columns), self.rank) * maximum(rows, columns)
            case "projector":
                return minimum(minimum(rows, columns), self.rank) * minimum(rows, columns)
            case "row square":
                return _choose(rows <= LARGEST_PRECONDITIONER, rows * rows, 0)
        return _choose(columns <= LARGEST_PRECONDITIONER, columns * columns, 0)


def _choose(test: Any, yes: Number, no: Number) -> Number:
    """`yes` where the test holds, else `no`, element by element."""
    if isinstance(test, bool):
        return yes if test else no
    import numpy as np

    return np.where(test, yes, no)


def _width(state: State, update_bytes: float) -> float:
    return update_bytes if state.width is None else state.width


OPTIMIZERS: Registry[Optimizer] = Registry("optimizer")
ALIASES: dict[str, str] = {
    "adamw_torch": "adamw", "adamw_torch_fused": "adamw", "adamw_hf": "adamw", "adamw_anyprecision": "adamw-bf16",
    "adamw_bnb_8bit": "adamw-8bit", "adam-8bit": "adamw-8bit", "adamw_torch_8bit": "adamw-8bit-torchao",
    "adamw_torch_4bit": "adamw-4bit-torchao", "paged_adamw_32bit": "paged-adamw", "lion_32bit": "lion-fp32",
    "paged_lion_32bit": "paged-lion", "galore_adamw_8bit": "galore-8bit", "galore": "galore-adamw",
    "apollo_adamw": "apollo", "dist_muon": "muon", "momentum": "sgd-momentum", "fusedadam": "adam", "cpuadam": "adam",
}  # fmt: skip


def optimizer(name: str) -> Optimizer:
    """The optimizer of this name, as we, transformers' `optim` or DeepSpeed's `optimizer.type` spell it."""
    plain = name.strip().lower()
    for spelled in (plain, plain.replace("_", "-"), ALIASES.get(plain, ""), ALIASES.get(plain.replace("-", "_"), "")):
        if spelled in OPTIMIZERS:
            return OPTIMIZERS[spelled]
    raise unknown("optimizer", name, [*OPTIMIZERS, *ALIASES])


def role_of(part: str, columns: int) -> Role:
    """The role of a tensor of an op: `part` as in ops.Weight."""
    if columns == 1:
        return "vector"
    return "table" if part in ("embedding", "head") else "matrix"


def _add(name: str, source: str, *matrix: State, **options: Any) -> None:
    OPTIMIZERS.add(name, Optimizer(name=name, matrix=matrix, source=source, **options))


_FIRST, _SECOND = State("first moment"), State("second moment")
_ADAM = (_FIRST, _SECOND)
_ADAM_FP32 = (State("first moment", width=4), State("second moment", width=4))
_ADAM_BF16 = (State("first moment", width=2), State("second moment", width=2))
_FACTORS = (State("second moment, rows", "row", 4), State("second moment, columns", "column", 4))
_ADAM_8BIT = (State("first moment", "parameter", 1, 256), State("second moment", "parameter", 1, 256))
_LOW_RANK = (State("first moment", "low-rank"), State("second moment", "low-rank"), State("projector", "projector"))
_TORCH, _BNB = "PyTorch, torch/optim", "bitsandbytes, optim/optimizer.py"
_FULL = {"table": _ADAM}
_ADAFACTOR = "Shazeer2018; transformers, optimization.py (Adafactor)"

_add("sgd", f"{_TORCH}/sgd.py")
_add("sgd-momentum", f"Rajbhandari2020, sec. 3.1; {_TORCH}/sgd.py", State("momentum"))
_add("adam", f"Kingma2014; {_TORCH}/adam.py", *_ADAM)
_add(
    "adamw",
    f"Loshchilov2017; {_TORCH}/adamw.py",
    *_ADAM,
    note="states as wide as the weights that it updates: fp32 under a master copy, bf16 in pure bf16 training",
)
_add("adamw-fp32", "Rajbhandari2020, sec. 3.1; Megatron-LM; DeepSpeed", *_ADAM_FP32)
_add("adamw-bf16", "DeepSeek2024V3, sec. 3.3.3; Megatron-LM, --exp-avg-dtype", *_ADAM_BF16)
_add("amsgrad", f"{_TORCH}/adam.py", *_ADAM, State("largest second moment"))
_add("adamw-8bit", f"Dettmers2022; {_BNB}", *_ADAM_8BIT, smallest=4096)
_add("paged-adamw", f"Dettmers2023; {_BNB}", *_ADAM_FP32, paged=True)
_add("paged-adamw-8bit", f"Dettmers2023; {_BNB}", *_ADAM_8BIT, smallest=4096, paged=True)
_add("adamw-8bit-torchao", "torchao, optim/adam.py", *_ADAM_8BIT, smallest=4096, small_width=None, whole_blocks=True)
_add(
    "adamw-4bit-torchao",
    "torchao, optim/adam.py",
    State("first moment", "parameter", 0.5, 128),
    State("second moment", "parameter", 0.5, 128),
    smallest=4096,
    small_width=None,
    whole_blocks=True,
)
_add("adamw-fp8-torchao", "torchao, optim/adam.py", *_ADAM_8BIT, smallest=4096, small_width=None, whole_blocks=True)
_add("adafactor", _ADAFACTOR, *_FACTORS, vector=(State("second moment", width=4),))
_add("adafactor-momentum", _ADAFACTOR, _ADAM_FP32[0], *_FACTORS, vector=_ADAM_FP32)
_add("lion", "Chen2023; pytorch-optimizer, lion.py", State("momentum"))
_add("lion-fp32", "Chen2023; bitsandbytes, optim/lion.py", State("momentum", width=4))
_add("lion-8bit", f"Chen2023; {_BNB}", State("momentum", "parameter", 1, 256), smallest=4096)
_add("paged-lion", f"Chen2023; {_BNB}", State("momentum", width=4), paged=True)
_add("paged-lion-8bit", f"Chen2023; {_BNB}", State("momentum", "parameter", 1, 256), smallest=4096, paged=True)
_add(
    "muon",
    f"Jordan2024; {_TORCH}/_muon.py",
    State("momentum"),
    **_FULL,
    note="AdamW for embedding, head and vectors; its Newton-Schulz steps work in bf16 copies that are not states",
    products="five Newton-Schulz steps of each whole matrix, which shards are gathered for",
    work=newton_schulz_flops,
)
_add(
    "adam-mini",
    "Zhang2024; adam-mini, adam_mini.py",
    _FIRST,
    State("second moment, a block", "head"),
    vector=(_FIRST, State("second moment, the tensor", "scalar")),
    note="one second moment a query or key head, else an output row; biases keep Adam's",
)
_SVD = (
    "a singular value decomposition of each gradient every few hundred updates, and products with the projector in each"
)
_DECOMPOSED = "singular value decompositions every few hundred updates"
_PROJECTED = "products of each gradient with its projector"
_OF_RANK = {"work": projection_flops(128), "unworked": _DECOMPOSED}
_add("galore-adamw", "Zhao2024; galore-torch, adamw.py", *_LOW_RANK, **_FULL, rank=128, products=_SVD, **_OF_RANK)
_add(
    "galore-8bit",
    "Zhao2024; galore-torch, adamw8bit.py",
    State("first moment", "low-rank", 1, 256),
    State("second moment", "low-rank", 1, 256),
    State("projector", "projector"),
    table=_ADAM_8BIT,
    smallest=4096,
    rank=128,
    products=_SVD,
    **_OF_RANK,
)
_add(
    "apollo",
    "Zhu2024; apollo-torch, apollo.py",
    *_LOW_RANK,
    **_FULL,
    rank=128,
    products=_PROJECTED,
    work=projection_flops(128),
    note="the paper draws the projector from a seed each time; the released code keeps it",
)
_add(
    "apollo-mini",
    "Zhu2024; apollo-torch, apollo.py",
    *_LOW_RANK,
    **_FULL,
    rank=1,
    products=_PROJECTED,
    work=projection_flops(1),
)
_add("sophia", "Liu2023; sophia-opt", _FIRST, State("diagonal of the Hessian"))
_add("adagrad", f"{_TORCH}/adagrad.py", State("sum of squares"))
_add("rmsprop", f"{_TORCH}/rmsprop.py", _SECOND)
_add("lamb", "You2019; bitsandbytes, optim/lamb.py", *_ADAM)
_add("ademamix", "Pagliardini2024; bitsandbytes, optim/ademamix.py", _FIRST, State("slow first moment"), _SECOND)
_add(
    "came",
    "Luo2023; pytorch-optimizer, came.py",
    _FIRST,
    *_FACTORS,
    State("instability, rows", "row", 4),
    State("instability, columns", "column", 4),
    vector=_ADAM,
)
_add(
    "soap",
    "Vyas2024; pytorch-optimizer, soap.py",
    *_ADAM,
    State("left statistics", "row square"),
    State("right statistics", "column square"),
    State("left basis", "row square"),
    State("right basis", "column square"),
    vector=_ADAM,
    note="a side longer than 10 000 has no preconditioner",
    products=(
        "statistics of each matrix, its rotation into their bases and back, and a QR decomposition every few updates"
    ),
    work=soap_flops,
    work_type="fp32",
)

"""Operations as the estimators read them: their weights, caches, tensors kept for backward, and the core's arithmetic.

An op states structure - shapes, and how parallelism may shard them - and contains no formula.
Ops compare by identity: a model is read once, and results derived from its ops are cached per op.
"""

from typing import Literal

from msgspec import Struct

from tonnage.formulas.parameters import tensor_parameters
from tonnage.tape import Code, Extent, Held, Tensor

# How parallelism may cut a tensor: not at all, over tensor ranks, over tensor ranks but never below one KV head,
# over tensor ranks with padding of the vocabulary, over expert ranks.
Split = Literal["replicated", "tensor", "kv", "vocab", "expert"]
SavedSplit = Literal["whole", "tensor", "expert"]
Part = Literal["embedding", "attention", "mixer", "mlp", "experts", "router", "norm", "head", "vision", "other"]


class Weight(Struct, frozen=True, eq=False):
    """One tensor, or `copies` equal ones (experts). Names are those of the checkpoint, without the layer's prefix."""

    name: str
    rows: int  # output features
    columns: int = 1  # input features; 1 for a vector
    copies: int = 1
    active: int | None = None  # copies that one token passes through; None: all
    split: Split = "replicated"
    heads: int = 0  # for split "kv": a rank holds at least one of these heads
    linear: bool = False  # a matrix product with every token that reaches it
    part: Part = "other"

    @property
    def quantizable(self) -> bool:
        """Weight-only quantisers store the matrix products of the layers in fewer bits, not router, table and head."""
        return self.linear and self.part not in ("router", "embedding", "head")

    @property
    def num_parameters(self) -> int:
        return tensor_parameters.evaluate(self.rows, self.columns, self.copies)

    @property
    def num_active_parameters(self) -> int:
        copies = self.copies if self.active is None else self.active
        return tensor_parameters.evaluate(self.rows, self.columns, copies)


class TokenCache(Struct, frozen=True, eq=False):
    """A cache entry of a layer for every token of a request.

    `heads` is what tensor parallelism can split; 0: every rank keeps all of it. `window` is the number of tokens kept,
    None for all. `bytes_per_element` is set where the engine's KV type does not decide. `stride`: tokens per entry of
    `elements`; the entry is written with the last of them (DeepSeek-V4's compressed caches).
    """

    name: str
    elements: int
    heads: int = 0
    window: int | None = None
    bytes_per_element: float | None = None
    stride: int = 1


class StateCache(Struct, frozen=True, eq=False):
    """A layer's state for a request, of a size independent of its length: of a recurrence or a convolution.

    `of_pages`: an engine with pools keeps one for every page of the layer's window (DeepSeek-V4's groups that overlap).
    """

    name: str
    elements: int
    heads: int = 0
    bytes_per_element: float | None = None  # None: the type of the activations
    of_pages: bool = False


class Saved(Struct, frozen=True, eq=False):
    """A tensor that autograd keeps for backward: `elements` per token (per token and key if `per_key`).

    `split` says what cuts it: "tensor" ranks, expert-tensor ranks, or "whole": only sequence parallelism does.
    `core` marks what selective recomputation drops (the inside of attention).
    """

    name: str
    elements: float
    split: SavedSplit = "whole"
    bytes_per_element: float | None = None  # None: the type of the activations
    core: bool = False
    per_key: bool = False


class Core(Struct, frozen=True, eq=False):
    """Arithmetic that no weight does: FLOP per token, or per token and attended key if `per_key`."""

    name: str
    flops: float
    per_key: bool = False
    window: int | None = None  # keys that a token can see, None for all before it
    causal: bool = True  # False: a token sees the keys after it too


class Kernels(Struct, frozen=True):
    """The choices of a runtime that decide what is kept for backward.

    `dropout`: after attention's projection and after the feed-forward layer; `attention_dropout`: inside attention,
    None: as `dropout`. `upcast_softmax`: eager attention computes its softmax in fp32 and casts the result, so both are
    kept.
    """

    attention: Literal["flash", "sdpa", "efficient", "eager"] = "flash"
    fused_norm: bool = True  # the norm keeps its input; else also copies in fp32
    fused_activation: bool = True  # act(gate) * up in one kernel
    dropout: bool = False
    attention_dropout: bool | None = None
    upcast_softmax: bool = False

    @property
    def drops_attention(self) -> bool:
        return self.dropout if self.attention_dropout is None else self.attention_dropout


class Op(Struct, frozen=True, eq=False):
    """Abstract base of an operation of a layer."""

    def weights(self) -> tuple[Weight, ...]:
        return ()

    def caches(self) -> tuple[TokenCache | StateCache, ...]:
        return ()

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return ()

    def core(self) -> tuple[Core, ...]:
        return ()

    def forward(self, code: Code, x: Tensor) -> Tensor:
        """Write the operation on the tape; by default as one opaque step that keeps the tensors of `saved`."""
        saved_tensors = [
            (
                saved.elements,
                saved.bytes_per_element or code.types.compute,
                Extent("pair" if saved.per_key else "token", saved.split),
            )
            for saved in self.saved(code.kernels)
        ]
        held = [_held(weight) for weight in self.weights()]
        for weight in self.weights():
            if weight.linear:
                code.worked.matrix(
                    weight.name,
                    weight.columns,
                    weight.rows * (weight.active or 1),
                    weight.split,
                    weight.heads,
                    trains=code.trains,
                    records=code.records,
                )
        for core in self.core():
            code.worked.scan(core.name, core.flops, pairs=core.per_key, records=code.records)
        return code.opaque(type(self).__name__, x, saved_tensors, held, x.elements)

    def held(self, name: str) -> list[Held]:
        """The parameters of the linear layer `name`, or of the norm."""
        ours = (f"{name}.weight", f"{name}.bias")
        return [_held(weight) for weight in self.weights() if weight.name in ours]


def _held(weight: Weight) -> Held:
    return Held(weight.num_parameters, weight.split, weight.heads, weight.name.endswith(".bias"))


def matrix(
    name: str,
    columns: int,
    rows: int,
    *,
    bias: bool = False,
    split: Split = "replicated",
    bias_split: Split | None = None,
    heads: int = 0,
    copies: int = 1,
    active: int | None = None,
    part: Part = "other",
    linear: bool = True,
) -> tuple[Weight, ...]:
    """A linear layer: its weight and, if it has one, its bias.

    A bias is cut like its weight if the outputs are cut; a row-parallel layer (inputs cut) keeps it whole:
    `bias_split`.
    """
    weight = Weight(f"{name}.weight", rows, columns, copies, active, split, heads, linear, part)
    if not bias:
        return (weight,)
    return weight, Weight(f"{name}.bias", rows, 1, copies, active, bias_split or split, heads, False, part)

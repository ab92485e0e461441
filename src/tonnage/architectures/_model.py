"""The model that the estimators read: branches of layers, layers of blocks, blocks of operations."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from tonnage.ops import Op, Weight

# A "draft" branch (multi-token prediction) is in the checkpoint, and transformers does not load it.
BranchKind = Literal["decoder", "encoder", "vision", "audio", "draft"]


class Block(Struct, frozen=True, eq=False):
    """A kind of layer: the operations of one layer, in the order in which they run."""

    name: str
    ops: tuple[Op, ...]

    def weights(self) -> Iterator[Weight]:
        for op in self.ops:
            yield from op.weights()


class Branch(Struct, frozen=True, eq=False, kw_only=True):
    """A stack of layers with the operations before and after it.

    `layers[i]` is the index in `blocks` of layer i, so patterns (five sliding, one full) need no rule of their own.
    """

    name: str
    kind: BranchKind
    hidden_size: int
    before: tuple[Op, ...] = ()
    blocks: tuple[Block, ...] = ()
    layers: tuple[int, ...] = ()
    after: tuple[Op, ...] = ()

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    def counts(self, first: int = 0, end: int | None = None) -> tuple[int, ...]:
        """Number of layers of each block, from layer `first` up to `end`."""
        part = self.layers[first:end]
        if len(self.blocks) > 16:  # a kind for each layer, as searched models have them
            counter = Counter(part)
            return tuple(counter[index] for index in range(len(self.blocks)))
        return tuple(part.count(index) for index in range(len(self.blocks)))

    def weighted(self) -> Iterator[tuple[Weight, int]]:
        """Every weight with the number of layers that have it."""
        for op in self.before + self.after:
            for weight in op.weights():
                yield weight, 1
        for block, count in zip(self.blocks, self.counts(), strict=True):
            for weight in block.weights():
                yield weight, count


class TensorGroup(Struct, frozen=True):
    """The sums of the stored tensors of one part, type and role.

    `dtype` is the type as the file names it ("BF16", "F8_E4M3", "I32" for packed 4-bit weights, "Q4_K"). `parameters`
    are the model's own: packed values unpacked, and none for scales and buffers.
    """

    part: str  # embedding, head, attention, mixer, mlp, experts, router, norm, vision, audio, draft, other
    dtype: str
    role: Literal["weight", "scale", "buffer"]
    tensors: int
    elements: int
    parameters: int
    bytes: int


class TensorSummary(Struct, frozen=True, kw_only=True):
    """Exact sums from the headers of a model's files, without its config."""

    format: Literal["safetensors", "gguf"]
    files: int
    groups: tuple[TensorGroup, ...]

    @property
    def num_tensors(self) -> int:
        return sum(group.tensors for group in self.groups)

    @property
    def num_parameters(self) -> int:
        """The model's parameters in all files, the multi-token-prediction layers and a twice-stored table included."""
        return sum(group.parameters for group in self.groups)

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors as stored, without the files' headers."""
        return sum(group.bytes for group in self.groups)

    @property
    def parameters_by_dtype(self) -> dict[str, int]:
        return _added(self.groups, "dtype", "parameters")

    @property
    def bytes_by_dtype(self) -> dict[str, int]:
        return _added(self.groups, "dtype", "bytes")

    @property
    def bytes_by_part(self) -> dict[str, int]:
        """Bytes of each part, its scales included."""
        return _added(self.groups, "part", "bytes")

    @property
    def parameters_by_part(self) -> dict[str, int]:
        return _added(self.groups, "part", "parameters")

    @property
    def scale_bytes(self) -> int:
        """Bytes of scales, zero points and the like."""
        return sum(group.bytes for group in self.groups if group.role == "scale")

    @property
    def bits_per_parameter(self) -> float:
        """Stored bits per model parameter, scales included."""
        return 8 * self.total_bytes / self.num_parameters if self.num_parameters else 0.0


def _added(groups: tuple[TensorGroup, ...], key: str, what: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for group in groups:
        sums[getattr(group, key)] = sums.get(getattr(group, key), 0) + getattr(group, what)
    return sums


class Model(Struct, frozen=True, eq=False, kw_only=True):
    """A model read from a file, a hub, the catalogue or its dimensions.

    `dtype` is the checkpoint's own type; `quantization` its quantization_config, unchanged; `assumed` the fields that
    the config left to the family's defaults; `notes` remarks for the user on how it was read; `tensors` the sums of its
    files, where they were read; `source` how it was read; `place` the name that a loader takes, its id on a hub or a
    path; empty where it has none.
    """

    name: str
    family: str
    architecture: str
    hidden_size: int
    vocab_size: int
    context: int | None
    branches: tuple[Branch, ...]
    tied: bool = False
    dtype: str | None = None
    quantization: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = {}
    assumed: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    tensors: TensorSummary | None = None
    source: str = ""
    place: str = ""

    @property
    def decoder(self) -> Branch:
        """The branch that holds the language model: the decoder, or the encoder of a model that only encodes."""
        for kind in ("decoder", "encoder"):
            for branch in self.branches:
                if branch.kind == kind:
                    return branch
        return self.branches[0]

    @property
    def num_layers(self) -> int:
        return self.decoder.num_layers

    def branch(self, name: str) -> Branch | None:
        return next((branch for branch in self.branches if branch.name == name), None)

    def weighted(self, drafts: bool = False) -> Iterator[tuple[Weight, int]]:
        """Every weight with the number of layers that have it; `drafts`: with the multi-token-prediction layers."""
        for branch in self.branches:
            if drafts or branch.kind != "draft":
                yield from branch.weighted()

    def num_parameters(self, drafts: bool = False) -> int:
        """Parameters as transformers loads them, without non-persistent buffers (rotary tables)."""
        return sum(weight.num_parameters * count for weight, count in self.weighted(drafts))

    def num_active_parameters(self) -> int:
        """Parameters that one token of text passes through: only the chosen experts, no towers."""
        branches = (branch for branch in self.branches if branch.kind in ("decoder", "encoder"))
        return sum(weight.num_active_parameters * count for branch in branches for weight, count in branch.weighted())

    def num_embedding_parameters(self) -> int:
        """Parameters of embedding and head, which Kaplan2020 and model cards leave out of "non-embedding"."""
        return sum(
            weight.num_parameters * count for weight, count in self.weighted() if weight.part in ("embedding", "head")
        )

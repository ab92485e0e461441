"""Forms of what `models` and `accelerators` answer."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.document import SCHEMA, Document
from tonnage.kernel.term import TermDocument
from tonnage.spec import Accelerator, Fact, Node


class BranchDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A stack of layers of a model: its decoder, its encoder, a tower, a draft."""

    name: str
    kind: str
    layers: int


class PublishedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A published count: an exact number, or a text such as "8.03B"; `counts` says what was counted."""

    parameters: int | str
    counts: str
    source: str
    as_of: str


class ModelDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `models NAME` answers. The keys from `hub` on are the catalogue's: other models have none."""

    name: str
    family: str
    architecture: str
    hidden_size: int
    num_layers: int
    vocab_size: int
    context: int | None
    dtype: str | None
    tied: bool
    source: str
    parameters: TermDocument
    active_parameters: TermDocument
    embedding_parameters: TermDocument
    non_embedding_parameters: TermDocument
    draft_parameters: TermDocument | UnsetType = UNSET
    kv_bytes_per_token: TermDocument | UnsetType = UNSET
    kv_bytes_per_request: TermDocument | UnsetType = UNSET
    branches: list[BranchDocument]
    hub: str | UnsetType = UNSET
    released: str | UnsetType = UNSET
    license: str | UnsetType = UNSET
    aliases: list[str] | UnsetType = UNSET
    published: list[PublishedDocument] | UnsetType = UNSET
    sources: dict[str, Fact] | UnsetType = UNSET
    warnings: list[str]


class ModelRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """A line of the catalogue of models. `experts`: that a layer's router chooses from, 0 in a dense model.
    `released`: YYYY-MM-DD, or shorter where that is all that is known.
    """

    name: str
    hub: str
    family: str
    parameters: int
    active_parameters: int
    layers: int
    experts: int
    context: int | None
    released: str


class ModelsDocument(Document, kw_only=True, forbid_unknown_fields=True):
    models: list[ModelRow]


class AcceleratorDocument(
    Accelerator, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="schema", tag=SCHEMA
):
    """What `accelerators NAME` answers: bytes, bytes a second in one direction, dense FLOP/s, watts."""

    kind: Literal["gpu", "tpu", "npu", "cpu", "apple"]


class NodeDocument(Node, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="schema", tag=SCHEMA):
    """What `accelerators NAME` answers about a node."""

    kind: Literal["node"]


class AcceleratorsDocument(Document, kw_only=True, forbid_unknown_fields=True):
    accelerators: list[Accelerator]
    nodes: list[Node]
    aliases: dict[str, str]  # other name of an accelerator -> its name in `accelerators`

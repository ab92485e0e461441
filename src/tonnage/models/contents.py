"""The content of a model's files, before config and tensors are reconciled."""

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from tonnage.models.tensors import Tensor


class Contents(Struct, kw_only=True):
    """The fields of a model's config and its tensors, where the files have them. `place`: the name or path that a
    loader takes.
    """

    name: str
    source: str
    where: str
    fields: dict[str, Any] | None = None
    tensors: "list[Tensor] | None" = None
    form: Literal["safetensors", "gguf"] = "safetensors"
    files: int = 0
    notes: list[str] = []
    place: str = ""

"""What was read of a model, before config and tensors are brought together."""

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from tonnage.models.tensors import Tensor


class Contents(Struct, kw_only=True):
    """What a model's files say: the fields of its config and its tensors, where they have them. `place`: what a
    loader finds it by.
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

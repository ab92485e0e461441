"""The catalogue of models: catalogue/models/*.toml -> a config.json's fields, with what was published about the model."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from tonnage.catalogue import _files
from tonnage.catalogue._files import Source
from tonnage.errors import InvalidInput, shown


class Published(Struct, forbid_unknown_fields=True):
    """A published count. A number is exact; a text such as "8.03B" is rounded, and must agree to its last digit.

    `counts` says what was counted: "all" (the whole checkpoint, multi-token prediction included if it has that),
    "model" (what transformers loads), "text" (the language model without its towers), "non-embedding", "active" (parameters
    that a token passes through), "active without table" (less the input table), "active non-embedding".
    """

    parameters: int | str
    source: str
    as_of: str
    counts: str = "model"


class ModelFile(Struct, forbid_unknown_fields=True):
    """The form of a file. `config` has the keys of the model's own config.json, those that decide its size."""

    name: str
    hub: str
    config: dict[str, Any]
    sources: dict[str, Source]
    published: list[Published]
    aliases: list[str] = []
    released: str = ""
    license: str = ""
    why: dict[str, str] = {}
    note: str = ""


COUNTS = ("all", "model", "text", "non-embedding", "active", "active without table", "active non-embedding")


def model_file(name: str) -> ModelFile:
    """The entry of this name, alias or Hub id."""
    path = find(name)
    if path is None:
        raise _files.missing("models", "model", name)
    return load(path)


def find(name: str) -> Path | None:
    """The file of this model, the user's own first; None where no catalogue has it."""
    return _files.find("models", name)


def model_names() -> list[str]:
    """Names of all models, shipped and the user's own."""
    return _files.names("models")


def load(path: Path) -> ModelFile:
    """Read one file, strictly."""
    form = _files.read(path, ModelFile)
    for published in form.published:
        if published.counts not in COUNTS:
            raise InvalidInput(
                f"{path}: published.counts must be one of {', '.join(COUNTS)}. Got {shown(published.counts)}."
            )
    return form

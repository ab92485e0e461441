"""The catalogue of models: catalogue/models/*.toml -> a config.json's fields, with what was published about the model."""

import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from tonnage.catalogue import _checks, _files
from tonnage.catalogue._files import Source
from tonnage.errors import InvalidInput, shown
from tonnage.units import LARGEST


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
    """The form of a file. `config` has the keys of the model's own config.json, those that decide its size.

    A shipped file has `hub`, `sources` and `published` too; who describes a model of his own may leave them out.
    """

    name: str
    config: dict[str, Any]
    hub: str = ""
    sources: dict[str, Source] = {}
    published: list[Published] = []
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
    _checks.sourced((), form.sources, str(path))
    for number, published in enumerate(form.published, 1):
        where = f"{path}: published {number}"
        _checks.one_of(published.counts, COUNTS, f"{where}: counts")
        _checks.date(published.as_of, f"{where}: as_of")
        if not published.source.strip():
            raise InvalidInput(f"{where}: source is empty.")
        _check_count(published.parameters, f"{where}: parameters")
    return form


def _check_count(count: int | str, where: str) -> None:
    right = re.fullmatch(r"\d{1,6}(\.\d{1,6})?[KMBT]", count) if isinstance(count, str) else 0 < count < LARGEST
    if not right:
        raise InvalidInput(f"{where} must be a whole number, or a text such as 8.03B. Got {shown(count)}.")

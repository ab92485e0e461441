"""Forms of what only the HTTP API answers; all else is of `tonnage.documents.schema`."""

from typing import Literal

from msgspec import Struct

from tonnage.documents.document import Document
from tonnage.documents.explain import FormulaDocument, LetterDocument, WordDocument
from tonnage.estimate.bands.part_errors import PartError


class LaunchDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `POST /v1/launch` answers. `launch`: a command, or the settings that the runtime is given, empty where
    nobody wrote down how it is started; `notes`: what it is given to, and what of the plan it does not say.
    """

    verb: Literal["train", "serve"]
    runtime: str
    launch: str
    notes: list[str]


class OptionRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """One option of a verb. `kind`: a switch is true or false. `choices`: names that it takes, and nothing else
    unless it is `open`.
    """

    name: str
    help: str
    unit: str
    default: str
    group: str
    kind: Literal["text", "switch"]
    choices: list[str]
    open: bool


class FormulasDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """Every formula, as `tonnage explain NAME` has it."""

    formulas: list[FormulaDocument]


class GlossaryDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """The letters of the formulas, and the words of the answers."""

    letters: list[LetterDocument]
    words: list[WordDocument]


class ServerDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What this server may do: ask model hubs, read a folder of models, say what `local` is, save plans; its limits
    in bytes and seconds. `part_errors`: how far parts of the memory lie from published measurements.
    `exports`: verb -> the formats that a question to it can be written in.
    """

    version: str
    hubs: bool
    files: bool
    local: bool
    saves: bool
    body_bytes: int
    answer_seconds: float
    part_errors: tuple[PartError, ...]
    exports: dict[str, list[str]]


class HealthDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    status: Literal["ok"]
    version: str

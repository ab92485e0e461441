"""The form of what was read of another tool's file or command."""

from typing import Any, Literal

from msgspec import Struct

KeyStatus = Literal["used", "assumed", "ignored", "not understood"]


class KeyDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of the file. `used`: it decides `options` of the question. `assumed`: it is not in the file, and `value`
    is the tool's default. `ignored`: it changes neither memory nor time. `not understood`: it may change them. `why`
    says what else there is to say, of a default the version that it is of.
    """

    key: str
    value: str
    status: KeyStatus
    options: tuple[str, ...] = ()
    why: str = ""


class ReadDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was read. `file`: its name; `tool` and `version`: whose it is, and the release whose keys and defaults were
    taken; `inside`: formats that carry it, such as a script of Slurm, the outermost first. `is_sure`: whether every
    key that may change memory or time was understood, or the asker said that others do not matter. `verb` and `asks`:
    the question that the file asks, with the model and the machine that were said beside it, as HTTP takes it.
    """

    file: str
    tool: str
    version: str
    inside: tuple[str, ...] = ()
    keys: tuple[KeyDocument, ...] = ()
    is_sure: bool = True
    verb: Literal["train", "serve"] = "train"
    asks: dict[str, Any] = {}

"""The formats: a module for each tool, in the folder of its kind: `engines`, `trainers`, and `jobs`, which carry the
command of another. Every module below here is imported and adds a `Format` to FORMATS; no list names it.

A module has the names of the keys that a tool's file or command may have, what each decides, and what its file is
written from. What several formats share stands in `interchange/parts`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from msgspec import Struct

from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.registry import Registry


class Format(Struct, frozen=True, kw_only=True):
    """A tool's file or command.

    name: as `--tool` and `export` have it; `tool`: as people write it
    version: the newest release of it whose keys and defaults were read; `source`: where they were read
    recognises: how many signs a source has that it is one of these, 0 for none. A sign is a key that hardly any other
        tool has; a command's own program is 10 of them
    values: the keys and values of a source, as `Reading.values` has them
    read: says of every key what it means
    known: names of keys that the tool has, for who misspells one
    verbs: of the questions that it asks; `sets`: verb -> the runtime or engine that it starts, where that is one
    fills: options that a question to be written has where it does not say them, as the tool alone runs it; it takes
        the verb and the question
    write: the file or command that starts what was answered; None where the tool only reads here
    ending: of the file that is written, `.sh` of a command
    has_comments: whether model and machine can stand in the file, in a comment
    says: the options of ours that its keys can say; all others stand in the comment
    omits: of these, what the text that was written says nothing of, such as a model without a checkpoint
    carries: those that the command can say which a file of this format carries
    counts: whether the file says how many nodes and accelerators there are, so that its comment names the accelerator
    """

    name: str
    tool: str
    version: str
    source: str
    recognises: Callable[[Source], int]
    values: Callable[[Source], dict[str, Any]]
    read: Callable[[Reading], None]
    known: Callable[[], Iterable[str]] = tuple
    verbs: tuple[str, ...]
    sets: Mapping[str, str] = {}
    fills: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] | None = None
    write: Callable[[PlannedRun], str] | None = None
    ending: str = ".sh"
    has_comments: bool = True
    says: frozenset[str] = frozenset()
    omits: Callable[[PlannedRun], frozenset[str]] | None = None
    carries: Callable[[PlannedRun], frozenset[str]] | None = None
    counts: Callable[[PlannedRun], bool] | None = None

    def put_comment(self, text: str, comment: str) -> str:
        """The text with a comment above it, below a first line that says the program of a script."""
        first, end, rest = text.partition("\n")
        return f"{first}{end}{comment}{rest}" if first.startswith("#!") else f"{comment}{text}"


FORMATS: Registry[Format] = Registry("format")


@cache
def formats() -> tuple[Format, ...]:
    """Every format, by name."""
    for module in walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
    return tuple(FORMATS[name] for name in sorted(FORMATS))


def format_of(name: str) -> Format:
    """The format of this name; UnknownName with the nearest where there is none."""
    formats()
    return FORMATS[name]


def writable() -> dict[str, list[str]]:
    """Verb -> the formats that its questions can be written in."""
    return {
        verb: [form.name for form in formats() if form.write is not None and verb in form.verbs]
        for verb in ("train", "serve")
    }

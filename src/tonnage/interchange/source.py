"""A file, a text or a command of another tool, taken apart as far as that goes without knowing whose it is."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct

from tonnage.interchange.here_documents import parted
from tonnage.interchange.shell import MAX_LINE, Shell, check_size, joined_quotes, logical_lines, program_name
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.reach import allowed_file, called
from tonnage.user_files import read_text

LARGEST = 2_000_000  # bytes of a config; the longest of published recipes has 60 kB
MARK = "tonnage:"  # begins the comment that says the model and the machine of a file
COMMENTS = ("#", "//", ";", "--")
TREES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
COMMAND = "command"
MAX_COMMANDS = 2000  # of a script, with those that set variables or are of no tool
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SPECIAL = re.compile(r"[^!-~ \t\n\r]|['\"\\\\;&|<>#]")  # what is more than a letter of a word, or a blank
_YAML = re.compile(r"---(\s|$)|[A-Za-z_][\w.-]*:(\s|$)")  # how the first line of YAML begins
_DUPLICATED = re.compile(r"(?<=\s)\d?>&\d(?=[\s;|&'\")]|$)")  # such as 2>&1
_REDIRECTED = re.compile(r"\d?>{1,2}(?!=)[^(]*|<|<<-?\w+|<<<")
_TO_NEXT = (">", ">>", "1>", "2>", "1>>", "2>>", "<", "<<<")
_BETWEEN = ("&&", "||", ";", "|", "&", "|&")  # end one command and begin another


class Command(Struct, frozen=True, kw_only=True):
    """A command: the words, and the environment that is set for it."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = {}


class Source(Struct, frozen=True, kw_only=True, dict=True):
    """What was given. `name`: of the file, or the words for it; `text`: all of it; `folder`: where files that it names
    are looked for, None where none may be read; `words`: of a command that was given as words; `script`: the script
    that it was taken from, which says its variables and files.
    """

    name: str
    text: str
    folder: Path | None = None
    words: tuple[str, ...] = ()
    script: str = ""

    @cached_property
    def kind(self) -> str:
        """`json`, `yaml`, `toml`, `command`, or `text`: by the ending of the name, else by how the text begins. A text
        without a name is YAML where its first line is a key of it, as manifests that are piped begin.
        """
        if self.words:
            return COMMAND
        if kind := TREES.get(PurePath(self.name).suffix.lower(), ""):
            return kind
        start = self.text.lstrip()
        if start.startswith("{") and '"' in start[:200]:
            return "json"
        return "yaml" if PurePath(self.name).suffix == "" and _is_yaml(start) else "text"

    @cached_property
    def documents(self) -> tuple[Any, ...]:
        """The values of a file that is JSON, YAML or TOML; YAML may have several documents. Nothing of other files."""
        if self.kind == "json":
            from tonnage.user_files import json_text

            return (json_text.parse(self.text.encode(), self.name),)
        if self.kind == "yaml":
            from tonnage.user_files import yaml_text

            return tuple(yaml_text.parse(part, self.name) for part in _yaml_documents(self.text))
        if self.kind == "toml":
            from tonnage.user_files import toml_text

            return (toml_text.parse(self.text, self.name),)
        return ()

    @cached_property
    def tree(self) -> Mapping[str, Any]:
        """The names and values of a file with one document; nothing of others."""
        first = self.documents[0] if len(self.documents) == 1 else None
        return first if isinstance(first, Mapping) else {}

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """The commands of a script, or the one that was given, with its variables put in."""
        if self.words:
            return (_command(self.words, {}),)
        return tuple(commands_of(parted(self.text)[0], self.name)) if self.kind == "text" else ()

    @property
    def whole_script(self) -> str:
        """The script that this is, or was taken from; "" of another file."""
        return self.script or (self.text if self.kind == "text" else "")

    @property
    def unread_lines(self) -> tuple[int, ...]:
        """Numbers of the lines of a script whose here-document is not read."""
        return parted(self.whole_script)[2]

    @cached_property
    def mark(self) -> tuple[str, ...]:
        """The words behind `# tonnage:` in a comment of the file: a question, which says what the file has no words
        for.
        """
        for line in self.text.splitlines():
            plain = line.strip()
            for comment in COMMENTS:
                if plain.startswith(comment) and plain.removeprefix(comment).strip().startswith(MARK):
                    return tuple(_split(plain.removeprefix(comment).strip().removeprefix(MARK), self.name))
        return ()

    def sibling(self, path: str) -> "Source":
        """A file that this one names, from the folder of this one, or as a here-document of it writes it."""
        written = {PurePath(name): text for name, text in parted(self.whole_script)[1].items()}
        if PurePath(path) in written:
            return Source(name=path, text=written[PurePath(path)], folder=self.folder)
        if self.folder is None:
            raise InvalidInput(
                "{name} names a file, which cannot be read here. Got {path}.", name=self.name, path=shown(path)
            )
        return file_source(str(self.folder / path), called_as=path)


def file_source(path: str, called_as: str = "") -> Source:
    """A file that a user names."""
    place = allowed_file(path, instead="paste what it holds")
    return Source(name=called_as or called(place), text=read_text(place, LARGEST), folder=place.parent)


def text_source(text: str, name: str = "the text", folder: Path | None = None) -> Source:
    """A text that was pasted or piped."""
    if len(text) > LARGEST:
        raise InvalidInput("{name} is larger than {largest:,} MB.", name=name, largest=LARGEST // 10**6)
    return Source(name=name, text=text, folder=folder)


def command_source(words: Sequence[str], folder: Path | None = None) -> Source:
    """A command: its words, or one text with all of them."""
    split = _split(words[0], "the command") if len(words) == 1 else words
    return Source(name="the command", text=shlex.join(split), folder=folder, words=tuple(split))


def commands_of(script: str, name: str = "the script") -> Iterator[Command]:
    """The commands of a shell script, with the values of variables and arrays that it sets itself. Of an `if` whose
    condition is known, the branch that runs. Lines that are no commands for this reader (loops, functions) come as they
    stand: nobody recognises them. InvalidInput, with the `name` of the script, where it is too long to be read.
    """
    check_size(script, name)
    shell = Shell()
    count = 0
    for line in joined_quotes(logical_lines(script, name)):
        if not shell.runs(line) or shell.take_array(line):
            continue
        try:
            words = _tokens(shell.computed(line))
        except ValueError:  # a quote that is not closed: no command that can be read
            continue
        for part in _parted(words):
            count += bool(part)
            if count > MAX_COMMANDS:
                raise InvalidInput(
                    "{file} has more than {most:,} commands: give the one that trains or serves.",
                    file=name,
                    most=MAX_COMMANDS,
                )
            filled = shell.put_in(part)
            command = _command(filled[1:] if filled[:1] == ["export"] else filled, shell.variables)
            if command.words:
                yield command
            else:
                shell.variables |= command.environment


def _command(words: Sequence[str], known: Mapping[str, str]) -> Command:
    """Assignments before the first word are its environment, beside what the script has exported."""
    environment = dict(known)
    left = list(words)
    if left and program_name(left[0]) == "env":
        left = left[1:]
    while left and (assigned := _ASSIGNED.fullmatch(left[0])):
        environment[assigned[1]] = assigned[2]
        left.pop(0)
    return Command(words=tuple(left), environment=environment)


def _tokens(line: str) -> list[str]:
    """The words of a line, without those that say where its input and output go."""
    if not _SPECIAL.search(line):  # most lines: what shlex takes long for
        return line.split()
    plain = _DUPLICATED.sub(" ", _without_comment(line)).replace("&>", ">")
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    is_target = False
    for word in lexer:
        if not is_target and not _REDIRECTED.fullmatch(word):
            words.append(word)
        is_target = word in _TO_NEXT
    return words


def _without_comment(line: str) -> str:
    """The line up to a # that begins a word: inside of one, as in `dataset#500`, it is a letter."""
    if "#" not in line:
        return line
    quote, before = "", " "
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote and (quote == "'" or before != "\\") else quote
        elif letter in "'\"" and before != "\\":
            quote = letter
        elif letter == "#" and (before.isspace() or before in ";&|"):
            return line[:at]
        before = letter
    return line


def _parted(words: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word in _BETWEEN:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _split(text: str, name: str) -> list[str]:
    if len(text) > MAX_LINE:
        raise InvalidInput("{file} has more than {most:,} characters in one line.", file=name, most=MAX_LINE)
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidInput(
            "{name} is no command: {error}. Got {text}.", name=name, error=error, text=shown(text)
        ) from None


def _is_yaml(text: str) -> bool:
    if text.startswith("#!"):
        return False
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return _YAML.match(next(lines, "")) is not None


def _yaml_documents(text: str) -> Iterator[str]:
    """The texts between lines of ---."""
    part: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.rstrip() == "---" or line.startswith("--- "):
            if "".join(part).strip() and not all(row.lstrip().startswith("#") or not row.strip() for row in part):
                yield "".join(part)
            part = []
        else:
            part.append(line)
    if "".join(part).strip():
        yield "".join(part)

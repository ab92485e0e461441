"""Here-documents of shell scripts, and values that a script takes from commands, which are not run here."""

import re
from functools import lru_cache
from pathlib import PurePath

from tonnage.interchange.shell import Shell
from tonnage.kernel.message import Message

_START = re.compile(r"(?<!<)<<(-?)\s*(['\"]?)([A-Za-z_]\w*)\2(?!<)")
_TARGET = re.compile(r"(?:(?<![<>\d&])>{1,2}|\btee(?:\s+-a)?)\s*(['\"]?)([^\s'\"<>|;&]+)\1")
_ASSIGNED = re.compile(r"\s*(?:export\s+|local\s+|readonly\s+)?([A-Za-z_]\w*)=(.*)")
_USED = re.compile(r"\$\{?([A-Za-z_]\w*)")
_COMMAND = re.compile(r"\$\((?!\()|`")
SHELLS = ("bash", "sh", "zsh", "dash", "sbatch", "ssh")  # programs that run what they are given


@lru_cache(maxsize=16)
def parted(script: str) -> tuple[str, dict[str, str], tuple[int, ...]]:
    """The script without its here-documents, with as many lines; the files that they write, by path; and the numbers of
    lines whose document goes to another program than a shell, which is not read. A document for a shell is a part of
    the script.
    """
    if "<<" not in script:
        return script, {}, ()
    lines, files, unread = script.splitlines(), {}, []
    kept: list[str] = []
    shell = Shell()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        start = None if line.lstrip().startswith("#") else _START.search(line)
        if not start:
            kept.append(line)
            _assign(shell, line)
            continue
        body, closed = _body(lines, at, start[3], has_tabs=bool(start[1]))
        if not closed:
            kept.append(line)
            continue
        first, target = line[: start.start()] + line[start.end() :], _TARGET.search(line)
        if target:
            files[shell.filled(target[2])] = "".join(f"{row if start[2] else shell.filled(row)}\n" for row in body)
        elif _is_shell(first):
            kept += ["", *body, ""]
            at += len(body) + 1
            continue
        else:
            unread.append(at)
        kept += [first, *[""] * (len(body) + 1)]
        at += len(body) + 1
    return "\n".join(kept) + "\n", files, tuple(unread)


def _body(lines: list[str], at: int, end: str, *, has_tabs: bool) -> tuple[list[str], bool]:
    """The lines up to the word that ends them, and whether it is there."""
    body: list[str] = []
    for line in lines[at:]:
        plain = line.lstrip("\t") if has_tabs else line
        if plain == end:
            return body, True
        body.append(plain)
    return body, False


def _is_shell(line: str) -> bool:
    """Whether the words of a line are a shell, and its options."""
    words = [PurePath(word).name for word in line.split() if not word.startswith("-") and "=" not in word]
    return bool(words) and (words[0] in SHELLS or (words[0] in ("srun", "sudo") and words[-1] in SHELLS))


def _assign(shell: Shell, line: str) -> None:
    match = _ASSIGNED.fullmatch(line)
    if match and not _COMMAND.search(match[2]):
        shell.variables[match[1]] = shell.filled(match[2].strip().strip("'\""))


def why_unknown(script: str, value: object) -> str:
    """Why a value of a script is not known: it is that of a command, or of a variable that one sets; "" for others."""
    if not isinstance(value, str) or ("$" not in value and "`" not in value):
        return ""
    if _COMMAND.search(value):
        return Message("it is what a command prints, which is not run here")
    name = next((match[1] for match in _USED.finditer(value)), "")
    if not name:
        return ""
    for number, line in enumerate(script.splitlines(), 1):
        match = _ASSIGNED.match(line)
        if match and match[1] == name and _COMMAND.search(match[2]):
            return Message("line {number} sets {name} by a command, which is not run here", number=number, name=name)
    return Message("nothing in it sets {name}", name=name)

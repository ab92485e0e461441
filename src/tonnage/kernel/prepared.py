"""What shipped files say, in a form that is read fast: beside the package's TOML and formulas lies, once it is
prepared, a pack for each folder.

The sources are what holds. A pack says of each file how large it was and when it was changed, and is asked only for a
file that still is so: one call of the system, where reading a source again costs milliseconds. What was edited, added
or checked out since is read from its source, and so is everything where nothing was prepared. In a wheel the times of
files are those of the installation, so their sizes alone are compared: its files are replaced together, with the packs.

    python -m tonnage.kernel.prepared        prepares this checkout, as `pip install -e .` does

A pack is one line of JSON, name -> [size, time, offset, length], and the contents, JSON each.
"""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes 3 ms
FOLDER = os.path.join(PACKAGE, "prepared")  # noqa: PTH118
ENDING = ".pack"
ALIASES = "aliases"  # the entry that has the aliases of all files of its folder; no file has this name
MAKER = ""  # the entry of this file: packs of an older one say other things
ANY_TIME = 0
Entry = tuple[int, int, int, int]  # size and time of the source; offset and length of the content


def content(source: str) -> bytes | None:
    """The JSON of what a shipped file says: the tables of a TOML, of Python `expressions`. None where it is not
    prepared, or has changed since.
    """
    folder, _, name = source.rpartition(os.sep)
    pack = _pack(folder)
    if pack is None or name not in pack.entries:
        return None
    try:
        state = os.stat(source)  # noqa: PTH116
    except OSError:
        return None
    return pack.read(name) if pack.is_of(name, state) else None


def tables(source: str, form: Any = dict[str, Any]) -> Any:
    """The tables of a shipped TOML as a `form`."""
    said = content(source)
    if said is not None:
        from msgspec.json import decode

        return decode(said, type=form)
    from msgspec.toml import decode as decode_toml

    with open(source, "rb") as file:  # noqa: PTH123
        return decode_toml(file.read(), type=form)


def aliases(folder: str) -> dict[str, str] | None:
    """Alias -> the name of the TOML that lists it, of a folder of the catalogue. None where it is not prepared, or a
    file was changed, added or taken away since.
    """
    pack = _pack(folder)
    if pack is None or ALIASES not in pack.entries:
        return None
    names = set()
    with os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(".toml"):
                if not pack.is_of(file.name, file.stat()):
                    return None
                names.add(file.name)
    if names != pack.entries.keys() - {ALIASES, MAKER}:
        return None
    said = pack.read(ALIASES)
    if said is None:
        return None
    from msgspec.json import decode

    return decode(said, type=dict[str, str])


class _Pack:
    def __init__(self, path: str):
        from msgspec.json import decode

        self.path = path
        with open(path, "rb") as file:  # noqa: PTH123
            state = os.fstat(file.fileno())
            self.made = (state.st_ino, state.st_mtime_ns, state.st_size)
            index = file.readline()
        self.start, self.entries = len(index), decode(index, type=dict[str, Entry])
        if not self.is_of(MAKER, os.stat(__file__)):  # noqa: PTH116
            raise ValueError(path)  # the pack of an older version

    def is_of(self, name: str, state: os.stat_result) -> bool:
        """Whether what is prepared is of a file in this state."""
        size, time, _, _ = self.entries.get(name, (-1, ANY_TIME, 0, 0))
        return state.st_size == size and time in (ANY_TIME, state.st_mtime_ns)

    def read(self, name: str) -> bytes | None:
        """What is prepared; None where the pack has been made anew since its index was read, or is gone."""
        _, _, offset, length = self.entries[name]
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123
                now = os.fstat(file.fileno())
                if (now.st_ino, now.st_mtime_ns, now.st_size) != self.made:
                    return None
                file.seek(self.start + offset)
                return file.read(length)
        except OSError:
            return None


@cache
def _pack(folder: str) -> _Pack | None:
    if not folder.startswith(PACKAGE + os.sep):
        return None
    try:
        return _Pack(_place(FOLDER, folder[len(PACKAGE) :]))
    except (OSError, ValueError):  # not prepared, or by another version
        return None


def _place(packs: str, folder: str) -> str:
    """Where the pack of a folder inside the package lies."""
    return os.path.join(packs, folder.strip(os.sep).replace(os.sep, ".") + ENDING)  # noqa: PTH118


# ---- How it is made. Nothing but the standard library, so that a build needs nothing else.


def prepare(package: str = PACKAGE, packs: str = FOLDER, *, installed: bool = False) -> list[str]:
    """Write the packs of a package, and return their paths. `installed`: times of files do not count."""
    os.makedirs(packs, exist_ok=True)  # noqa: PTH103
    written = []
    for folder, names in _sources(package):
        entries: dict[str, Entry] = {}
        contents = b""
        for name, source, said in [(MAKER, __file__, b""), *_said(folder, names)]:
            state = os.stat(source)  # noqa: PTH116
            time = ANY_TIME if installed else state.st_mtime_ns
            entries[name] = (state.st_size, time, len(contents), len(said))
            contents += said
        written.append(_place(packs, folder[len(package) :]))
        _write(written[-1], _json(entries) + b"\n" + contents)
    for file in os.scandir(packs):  # of folders that are no more
        if file.path not in written:
            os.remove(file.path)  # noqa: PTH107
    return written


def _sources(package: str) -> Iterator[tuple[str, list[str]]]:
    for folder, _, files in os.walk(package):
        ending = ".py" if folder == os.path.join(package, "formulas") else ".toml"  # noqa: PTH118
        names = sorted(name for name in files if name.endswith(ending))
        if names:
            yield folder, names


def _said(folder: str, names: list[str]) -> Iterator[tuple[str, str, bytes]]:
    """Name, path and content of each source, and of a catalogue's folder the aliases. What cannot be read is left out:
    who asks for it reads the source, and is told what is wrong with it.
    """
    import tomllib

    files: dict[str, str] = {}
    for name in names:
        source = os.path.join(folder, name)  # noqa: PTH118
        try:
            with open(source, encoding="utf-8") as file:  # noqa: PTH123
                text = file.read()
            fields: Any = expressions(text) if name.endswith(".py") else tomllib.loads(text)
            said = _json(fields)
        except (SyntaxError, ValueError, TypeError):  # TypeError: a date, which no entry has
            continue
        if isinstance(fields, dict):
            for alias in fields.get("aliases", ()):
                files.setdefault(alias, name.removesuffix(".toml"))
        yield name, source, said
    if os.path.basename(os.path.dirname(folder)) == "catalogue":  # noqa: PTH119, PTH120
        yield ALIASES, folder, _json(files)


def _json(value: Any) -> bytes:
    import json

    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _write(path: str, data: bytes) -> None:
    """Whole or not at all: another process may read."""
    new = f"{path}.{os.getpid()}"
    with open(new, "wb") as file:  # noqa: PTH123
        file.write(data)
    os.replace(new, path)  # noqa: PTH105


def expressions(text: str) -> list[tuple[str, int, str, bool, bool]]:
    """Of every function of a source: its name, its first line, the text of its return expression, whether that is all
    it has beside its docstring, and whether it branches.
    """
    import ast

    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            last = body[-1] if body else None
            value = last.value if isinstance(last, ast.Return) else None
            branches = any(isinstance(part, ast.IfExp | ast.Compare | ast.BoolOp) for part in ast.walk(node))
            first = min([decorator.lineno for decorator in node.decorator_list], default=node.lineno)
            text_of = ast.unparse(value) if value is not None else ""
            found.append((node.name, first, text_of, len(body) == 1 and value is not None, branches))
    return found


if __name__ == "__main__":
    import compileall

    prepare()
    compileall.compile_dir(PACKAGE, quiet=1)

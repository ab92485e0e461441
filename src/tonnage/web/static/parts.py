"""What a page without a server is made of besides tonnage: Pyodide, msgspec built for it and, where it can be had,
numpy. From files that the user has, or fetched when asked to: by npm and pip, and of Pyodide's own distribution.
"""

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, MissingDatum, Unreachable, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.reach import is_file, is_folder
from tonnage.user_files import read_bytes, too_large

MAX_FILE_BYTES = 100_000_000  # bytes of a file of Pyodide, or of a wheel

PYODIDE = "pyodide@314.0.7"
MSGSPEC = "msgspec==0.22.0"
PACKED, WHEEL = "pyodide-314.0.7.tgz", "msgspec-0.22.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
# As npm and PyPI have them: what is fetched is this, to the byte.
FETCHED = {
    PACKED: "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    WHEEL: "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022",
}
NPM = ("npm", "pack", PYODIDE, "--silent")
PIP = (
    "download",
    MSGSPEC,
    "--no-deps",
    "--only-binary",
    ":all:",
    "--implementation",
    "cp",
    "--python-version",
    "3.14",
    "--abi",
    "cp314",
    "--platform",
    "pyemscripten_2026_0_wasm32",
    "--quiet",
    "--disable-pip-version-check",
)
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
WASM = "_wasm32.whl"
NEEDED = ("msgspec",)
HOW = Message(
    "a page without a server needs Pyodide (npm: {pyodide}) and msgspec built for it (PyPI: {msgspec}, the "
    "wheel that ends in {wasm}). Give them, --pyodide FOLDER_OR_TGZ --wheel FILE, or --fetch: npm and pip "
    "get them.",
    pyodide=PYODIDE,
    msgspec=MSGSPEC,
    wasm=WASM,
)
GIVEN = {
    "--pyodide": "the npm package pyodide, a folder or a .tgz",
    "--wheel": Message("a file whose name ends in {wasm}", wasm=WASM),
}


LOCK = "pyodide-lock.json"
NUMPY = "numpy"
# Where Pyodide keeps the packages of a version, numpy among them: no registry has it for this ABI.
DISTRIBUTION = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{name}"
SECONDS = 60  # that it may take to answer


class Parts(Struct, frozen=True):
    """`core`: files of Pyodide; `wheels`: packages that are built for it; `lacks`: what the page cannot answer, and
    why, in a sentence each.
    """

    core: dict[str, bytes]
    wheels: dict[str, bytes]
    lacks: tuple[str, ...] = ()


class Locked(Struct, frozen=True):
    """The package that Pyodide's list names: its file with its digest."""

    file_name: str
    sha256: str


def parts(pyodide: Path | None, wheels: Sequence[Path], *, fetch: bool) -> Parts:
    """What was given, and what was not, fetched where that is asked for."""
    for option, path in (("--pyodide", pyodide), *(("--wheel", wheel) for wheel in wheels)):
        if path is not None and not (is_file(path) or (option == "--pyodide" and is_folder(path))):
            raise InvalidInput(
                "{option} is {given}. There is none called {path}.",
                option=option,
                given=GIVEN[option],
                path=shown(str(path), 300),
            )
    lacking = {_package(path.name) for path in wheels}.isdisjoint(NEEDED)
    if not fetch and (pyodide is None or lacking):
        raise InvalidInput(HOW)
    with TemporaryDirectory() as folder:
        if fetch:
            pyodide = pyodide or _fetched(NPM, PACKED, Path(folder))
            pip = (sys.executable, "-m", "pip", *PIP)
            wheels = [*wheels, _fetched(pip, WHEEL, Path(folder))] if lacking else wheels
        core = _core(pyodide)
        taken = {path.name: _wheel(path) for path in wheels}
        numpy, lacks = _numpy(core[LOCK], taken, pyodide, fetch=fetch)
        return Parts(core, {**taken, **numpy}, lacks)


def _numpy(
    lock: bytes, taken: Mapping[str, bytes], pyodide: Path | None, *, fetch: bool
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """numpy as Pyodide's list has it: among the wheels that were given, beside the list, or of the distribution; and
    else why it is not there.
    """
    if any(_package(name) == NUMPY for name in taken):
        return {}, ()
    named = locked(lock, NUMPY)
    if named is None:
        return {}, (Message("without numpy, which {file} does not name: {left}", file=LOCK, left=LEFT_OUT),)
    beside = _beside(pyodide, named.file_name)
    if beside is None and not fetch:
        return {}, (Message("without {name}, which is not beside {file}: {left}", **_told(named), left=LEFT_OUT),)
    try:
        content = beside if beside is not None else _downloaded(named.file_name)
    except OSError as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        told = Message(
            "without {name}, which could not be fetched ({error}): {left}",
            **_told(named),
            left=LEFT_OUT,
            error=shown(reason, 200),
        )
        return {}, (told,)
    if sha256(content).hexdigest() != named.sha256:
        raise InvalidInput("{name} is not the file that {file} names: its digest is another.", **_told(named))
    return {named.file_name: content}, ()


LEFT_OUT = Message("plan, the frontier and simulated loads ask for tonnage web.")


def _told(named: Locked) -> dict[str, str]:
    return {"name": shown(named.file_name, 200), "file": LOCK}


def locked(lock: bytes, package: str) -> Locked | None:
    """What Pyodide's list says of a package; None where it has none, or is no list."""
    try:
        return msgspec.json.decode(lock, type=_Lock).packages.get(package)
    except msgspec.MsgspecError:
        return None


class _Lock(Struct, frozen=True):
    packages: dict[str, Locked]


def _beside(where: Path | None, name: str) -> bytes | None:
    """A file beside Pyodide's list, in its folder or its archive."""
    if where is None or PurePosixPath(name).name != name:
        return None
    if is_folder(where):
        return read_bytes(where / name, MAX_FILE_BYTES) if is_file(where / name) else None
    return dict(_packed(where, (name,))).get(name)


def _downloaded(name: str) -> bytes:
    """A file of Pyodide's distribution. OSError where it cannot be had."""
    from urllib.parse import quote
    from urllib.request import urlopen

    address = DISTRIBUTION.format(version=PYODIDE.partition("@")[2], name=quote(name))
    with urlopen(address, timeout=SECONDS) as reply:  # https, of an address that is written here
        content: bytes = reply.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise OSError(f"larger than {MAX_FILE_BYTES} bytes")
    return content


def _fetched(command: Sequence[str], name: str, folder: Path) -> Path:
    """The file that a client of a registry brings: the one that was looked at, or none."""
    program = shutil.which(command[0])
    if program is None:
        raise MissingDatum(
            "{command} is not installed, which fetches {name}. Or give the file: {how}",
            command=command[0],
            name=name,
            how=HOW,
        )
    try:
        done = subprocess.run(
            [program, *command[1:]], cwd=folder, capture_output=True, text=True, check=False, timeout=600
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable("{name} could not be fetched: {error}.", name=name, error=error) from None
    path = folder / name
    if done.returncode or not path.is_file():
        output = (done.stderr or done.stdout).strip().splitlines() or ["no reason was said"]
        raise Unreachable("{name} could not be fetched: {error}.", name=name, error=shown(output[-1], 300))
    if sha256(path.read_bytes()).hexdigest() != FETCHED[name]:
        raise InvalidInput("{name} is not the file that this version of tonnage knows: it was not taken.", name=name)
    return path


def _core(where: Path | None) -> dict[str, bytes]:
    """The files of Pyodide, of a folder or an archive of npm."""
    if where is None:
        raise InvalidInput(HOW)
    try:
        files = (
            dict(_packed(where))
            if where.is_file()
            else {name: read_bytes(where / name, MAX_FILE_BYTES) for name in CORE if (where / name).is_file()}
        )
    except (OSError, tarfile.TarError, EOFError) as error:
        raise InvalidInput("--pyodide {where} cannot be read: {error}.", where=shown(str(where)), error=error) from None
    missing = [name for name in CORE if name not in files]
    if missing:
        raise InvalidInput(
            "--pyodide is the npm package, a folder or a .tgz, with {core}. {where} lacks {missing}.",
            core=listed(CORE),
            where=shown(str(where)),
            missing=listed(missing),
        )
    return files


def _packed(where: Path, names: Sequence[str] = CORE) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(where) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if member.isfile() and path.name in names and len(path.parts) == 2:
                if member.size > MAX_FILE_BYTES:
                    raise too_large(where / path.name, MAX_FILE_BYTES)
                read = archive.extractfile(member)
                yield path.name, read.read() if read else b""


def _package(name: str) -> str:
    return name.partition("-")[0].lower()


def _wheel(path: Path) -> bytes:
    content = read_bytes(path, MAX_FILE_BYTES)
    if not path.name.endswith((WASM, "-none-any.whl")) or not zipfile.is_zipfile(io.BytesIO(content)):
        raise InvalidInput(
            "--wheel is a package built for browsers, whose name ends in {wasm} or -none-any.whl. Got {path}.",
            wasm=WASM,
            path=shown(path.name),
        )
    return content

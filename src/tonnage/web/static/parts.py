"""What a page without a server is made of besides tonnage: Pyodide, and msgspec built for it. From files that the
user has, or fetched by npm and pip when asked to.
"""

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

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


class Parts(Struct, frozen=True):
    """`core`: files of Pyodide; `wheels`: packages that are built for it."""

    core: dict[str, bytes]
    wheels: dict[str, bytes]


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
        return Parts(_core(pyodide), {path.name: _wheel(path) for path in wheels})


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


def _packed(where: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(where) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if member.isfile() and path.name in CORE and len(path.parts) == 2:
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

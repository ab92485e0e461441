"""`tonnage web --static`: the page as files for any static host. The lists are what the server answers, written
down; questions are answered by the same Python in the browser (browser.py).
"""

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from errno import ENOSPC
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

import tonnage
from tonnage.cli.common.print import Unwritable
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import why
from tonnage.web.app import create_app
from tonnage.web.palette import made_files
from tonnage.web.settings import Settings
from tonnage.web.static.parts import Parts

HERE = Path(__file__).parents[1]
PAGE = HERE / "page"
# What the page asks for before any question (js/api.js): the same for all, so that it is written down.
LISTS = (
    "/v1/models",
    "/v1/accelerators",
    "/v1/prices",
    "/v1/formulas",
    "/v1/glossary",
    "/v1/server",
    "/v1/options/train",
    "/v1/options/serve",
    "/locale/en.json",
    "/locale/zh.json",
    "/schema/openapi.json",
)
# The page's own JavaScript, and WebAssembly, from where the page is; nothing else from anywhere.
ONLY_SELF = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'"
)
HEAD = f'<meta http-equiv="Content-Security-Policy" content="{ONLY_SELF}">\n'
STYLE = '<link rel="stylesheet" href="static.css">\n'
MAIN = '<script type="module" src="js/main.js"></script>'
STATIC = '<script type="module" src="js/static.js"></script>\n'
LINE = '<p class="python" role="progressbar" aria-valuemin="0" aria-valuemax="100" id="python"></p>\n'
KNOWN = "new Set(/* the lists that were written beside the page */ [])"
COUNTED = ("pyodide.asm.wasm", "python_stdlib.zip")  # of Pyodide, what a browser reads as it starts
MARK = "tonnage-static.json"  # of a folder that may be written again
# Of the package, what a browser runs: no server, no page, nothing compiled. (`web` has the files that answer.)
LEFT_OUT = frozenset({"mcp_server", "measure", "__pycache__"})
OF_WEB = frozenset(
    f"web/{name}.py"
    for name in (
        "__init__",
        "answer",
        "batch",
        "static/browser",
        "launch",
        "settings",
        "timeline",
        "words",
        "jobs/__init__",
        "jobs/limits",
        "schema/__init__",
        "schema/documents",
    )
)
SUFFIXES = frozenset({".py", ".toml", ".yaml", ".yml", ".json", ".csv", ".txt", ".md", ".mo"})


def check(folder: Path) -> None:
    """InvalidInput where the page cannot be written there; nothing is changed."""
    try:
        there = folder.exists()
        if there and not (folder.is_dir() and ((folder / MARK).is_file() or not any(folder.iterdir()))):
            raise InvalidInput(
                "--static writes into a new folder, an empty one, or one that it wrote before. Got {folder}.",
                folder=shown(str(folder)),
            )
    except OSError as error:
        raise _unwritable(folder, why(error)) from None
    above = next(
        folder_above for folder_above in (folder.absolute(), *folder.absolute().parents) if folder_above.exists()
    )
    if not above.is_dir():
        raise _unwritable(folder, Message("{parent} is no folder", parent=shown(str(above))))
    try:
        TemporaryFile(dir=above).close()
    except OSError as error:
        raise _unwritable(folder, f"{shown(str(above))}: {why(error)}") from None


def _unwritable(folder: Path, reason: str) -> InvalidInput:
    return InvalidInput("--static {folder} cannot be written: {reason}.", folder=shown(str(folder), 300), reason=reason)


def write(folder: Path, parts: Parts) -> list[str]:
    """Write the page into a new folder, or one that holds such a page; the lines that say what it is."""
    check(folder)
    files = dict(_files(parts))
    try:
        if folder.exists():
            shutil.rmtree(folder)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        if error.errno == ENOSPC:
            raise Unwritable(
                Message("--static {folder} cannot be written: {why}.", folder=shown(str(folder), 300), why=why(error))
            ) from None
        raise _unwritable(folder, why(error)) from None
    size = sum(map(len, files.values()))
    return [
        f"{len(files)} files, {size / 1e6:.1f} MB, in {folder}",
        f"to look at it: python -m http.server --directory {folder}",
        "any static host will do, under any path; it needs no server, and asks nothing elsewhere",
        *parts.lacks,
    ]


def _files(parts: Parts) -> Iterator[tuple[str, bytes]]:
    """Path below the folder -> content."""
    for path in sorted(PAGE.rglob("*")):
        if path.is_file():
            yield path.relative_to(PAGE).as_posix(), path.read_bytes()
    yield from made_files().items()
    yield "index.html", _index().encode()
    yield (
        "js/static.js",
        _replaced((PAGE / "js" / "static.js").read_text("utf-8"), KNOWN, f"new Set({json.dumps(LISTS)})").encode(),
    )
    for address, content in lists():
        yield address.removeprefix("/").removesuffix(".json") + ".json", content
    for name, content in parts.core.items():
        yield f"pyodide/{name}", content
    packages = {**parts.wheels, "yaml.zip": _yaml(), "tonnage.zip": _tonnage()}
    for name, content in packages.items():
        yield f"python/{name}", content
    loaded = sum(len(parts.core.get(name, b"")) for name in COUNTED) + sum(map(len, packages.values()))
    yield "python/packages.json", json.dumps({"names": [*packages], "bytes": loaded}).encode()
    yield MARK, json.dumps({"tonnage": tonnage.__version__}).encode()


def _index() -> str:
    text = (PAGE / "index.html").read_text("utf-8")
    text = _replaced(text, MAIN, STYLE + STATIC + MAIN)
    return _replaced(_replaced(text, "<title>", f"{HEAD}<title>"), "</body>", f"{LINE}</body>")


def _replaced(text: str, old: str, new: str) -> str:
    """A page that has changed under this module is an error when it is written, not when it is opened."""
    if text.count(old) != 1:
        raise RuntimeError(f"{old!r} stands {text.count(old)} times where static_page.py needs it once")
    return text.replace(old, new)


def lists() -> Iterator[tuple[str, bytes]]:
    """What a server that reaches nothing answers to each path."""
    from litestar.testing import TestClient

    with TestClient(create_app(Settings(host="0.0.0.0", offline=True)), base_url="http://127.0.0.1") as client:
        for path in LISTS:
            reply = client.get(path)
            if reply.status_code != 200:
                raise RuntimeError(f"{path} is answered with status {reply.status_code}: {reply.text[:200]}")
            yield path, reply.content


def _tonnage() -> bytes:
    """The package, as far as a browser needs it."""
    root = HERE.parent
    files = {
        f"tonnage/{path.relative_to(root).as_posix()}": path
        for path in sorted(root.rglob("*"))
        if _runs(path.relative_to(root))
    }
    return _zipped(files)


def _runs(path: Path) -> bool:
    if path.suffix not in SUFFIXES or not LEFT_OUT.isdisjoint(path.parts):
        return False
    return path.parts[0] != "web" or path.as_posix() in OF_WEB


def _yaml() -> bytes:
    """PyYAML without its compiled part, which it does without."""
    spec = find_spec("yaml")
    if spec is None or spec.origin is None:
        raise RuntimeError("PyYAML is not installed")
    folder = Path(spec.origin).parent
    return _zipped({f"yaml/{path.name}": path for path in sorted(folder.glob("*.py"))})


def _zipped(files: dict[str, Path]) -> bytes:
    """The same bytes for the same files: no time of the day is in them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, path in files.items():
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()

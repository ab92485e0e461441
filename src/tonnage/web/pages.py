"""The page: the files of `page/`, and the words of a language. A name is looked up in a list of the files that there
are, so that no path leads elsewhere.
"""

from functools import cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from tonnage.kernel.encoding import encode
from tonnage.web.palette import made_files
from tonnage.web.wire.query import ANY

FILE = "/{path:path}"  # takes what no other route does
FOLDER = Path(__file__).with_name("page")
TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


class File(msgspec.Struct, frozen=True):
    content: bytes
    kind: str
    tag: str


@cache
def files() -> dict[str, File]:
    """Name of each file of the page, with / between folders -> the file."""
    written = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*")) if path.is_file()}
    contents = {name: path.read_bytes() for name, path in written.items()} | made_files()
    return {name: _file(PurePosixPath(name), content) for name, content in contents.items()}


def _file(path: PurePosixPath, content: bytes) -> File:
    kind = TYPES.get(path.suffix) or guess_type(path.name)[0] or "application/octet-stream"
    return File(content, kind, f'"{sha256(content).hexdigest()[:32]}"')


@get(["/", FILE], sync_to_thread=False, query=ANY, as_it_is=True)
def page(request: Request[Any, Any, Any]) -> Response[bytes]:
    """A file of the page."""
    file = files().get(str(request.path_params.get("path", "index.html")).removeprefix("/"))
    if file is None:
        raise NotFoundException("There is no such page.")
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, headers=headers, media_type=file.kind)
    return Response(file.content, media_type=file.kind, headers=headers)


@get("/locale/{name:str}", sync_to_thread=False)
def locale(name: FromPath[str]) -> Response[bytes]:
    """{LANGUAGE}.json: what the page says in another language, English text to text."""
    words = _words(name.removesuffix(".json")) if name.endswith(".json") else None
    if words is None:
        raise NotFoundException("There is no such language.")
    return Response(words, media_type="application/json", headers={"Cache-Control": "no-cache"})


@cache
def _all_words() -> dict[str, bytes]:
    catalogues: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
    try:
        from tonnage.language import LANGUAGES, page_catalogue

        catalogues |= {language: page_catalogue(language) for language in LANGUAGES}
    except ImportError:
        pass
    return {language: encode(words) for language, words in catalogues.items()}


def _words(language: str) -> bytes | None:
    return _all_words().get(language)


ROUTES = [page, locale]

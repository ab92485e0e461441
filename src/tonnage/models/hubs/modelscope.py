"""Models of ModelScope: the list of files, config.json, and headers of the weights by parts of files.

Paths and tokens are those of modelscope-hub 0.5.1: GET /api/v1/models/{id}/repo/files?Revision=&Recursive= and
/api/v1/models/{id}/repo?Revision=&FilePath=, the token as a bearer and as the cookie m_session_id.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from tonnage.kernel.errors import AccessDenied, InvalidInput, MissingDatum, UnknownName, Unreachable, shown
from tonnage.kernel.message import Message
from tonnage.models import names
from tonnage.models.contents import Contents
from tonnage.models.hubs import web
from tonnage.models.hubs.hugging_face import is_offline
from tonnage.models.hubs.remote import RemoteFile
from tonnage.models.local import Folder
from tonnage.models.location import read
from tonnage.models.names import Reference
from tonnage.models.places import File

LARGEST_LISTING = 64_000_000
DEFAULT_REVISION = "master"


class _Entry(msgspec.Struct):
    Path: str = ""
    Type: str = "blob"


class _Data(msgspec.Struct):
    Files: list[_Entry] = []


class _Listing(msgspec.Struct):
    Code: int
    Data: _Data | None = None
    Message: str = ""


class Repository:
    """The files of a repository at a revision."""

    def __init__(self, reference: Reference, files: Sequence[str]):
        self.name, self.revision = reference.repository, reference.revision or DEFAULT_REVISION
        self.label = f"{self.name}@{self.revision} on {_host()}"
        self.names = files

    def small(self, name: str, largest: int) -> bytes:
        answer = _get(self._url(name), largest)
        _refuse(answer, self.name, self.revision, name)
        return answer.body

    def open(self, name: str) -> File:
        def part(url: str, span: tuple[int, int]) -> web.Answer:
            answer = _get(url, span[1], span)
            _refuse(answer, self.name, self.revision, name)
            return answer

        remote = RemoteFile(part, self._url(name), f"{self.label}: {name}")
        return File(remote.read, remote.size)

    def read_each(self, names: Sequence[str], read: Callable[[str], Any]) -> list[Any]:
        return web.call_each(names, read)

    def _url(self, name: str) -> str:
        return _api(self.name, "repo", Revision=self.revision, FilePath=name)


def contents(reference: Reference, offline: bool | None) -> Contents:
    """The content of the repository: from ModelScope, or from its SDK's cache where it cannot be reached."""
    if not is_offline(offline):
        try:
            return read(_resolve(reference), reference.file)
        except Unreachable as error:
            reason = str(error)
    else:
        reason = Message("Offline mode forbids to ask {host}.", host=_host())
    folder = _cached(reference)
    if folder is None:
        raise Unreachable(
            Message(
                "{reason} {reference} is not in ModelScope's cache either.", reason=reason, reference=reference.text
            )
        )
    contents = read(Folder(folder), reference.file)
    contents.name = reference.repository
    contents.notes.append(Message("Read from ModelScope's cache. {reason}", reason=reason))
    return contents


def _resolve(reference: Reference) -> Repository:
    revision = reference.revision or DEFAULT_REVISION
    answer = _get(_api(reference.repository, "repo/files", Revision=revision, Recursive="true"), LARGEST_LISTING)
    _refuse(answer, reference.repository, revision, None)
    try:
        listing = msgspec.json.decode(answer.body, type=_Listing)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreachable(
            Message("{host} does not answer as ModelScope does; MODELSCOPE_ENDPOINT may be wrong.", host=_host())
        ) from None
    if listing.Code != 200 or listing.Data is None:
        raise UnknownName(_absent(reference.repository, revision, listing.Message))
    files = [entry.Path for entry in listing.Data.Files if entry.Type != "tree" and names.is_plain_path(entry.Path)]
    return Repository(reference, files)


def _cached(reference: Reference) -> Path | None:
    """The folder that one of ModelScope's SDKs downloaded the model to; modelscope-hub 0.5.1, _download.py and
    _cache_manager.py.
    """
    base = Path(os.environ.get("MODELSCOPE_CACHE") or Path.home() / ".cache" / "modelscope")
    owner, _, name = reference.repository.partition("/")
    revision = reference.revision or DEFAULT_REVISION
    encoded = name.replace(".", "___")
    places = [base / "models" / f"{owner}--{name}" / "snapshots" / revision]
    if reference.revision is None:  # the older layouts keep one revision, and do not say which
        places += [base / start / owner / encoded for start in ("hub/models", "models", "hub", "")]
    return next((place for place in places if place.is_dir()), None)


def _api(repository: str, path: str, **query: str) -> str:
    return f"{names.endpoint('modelscope')}/api/v1/models/{repository}/{path}?{urlencode(query)}"


def _get(url: str, largest: int, span: tuple[int, int] | None = None) -> web.Answer:
    credentials = {"User-Agent": "tonnage"}
    token = (os.environ.get("MODELSCOPE_API_TOKEN") or "").strip()
    if token:
        if not (token.isascii() and token.isprintable()) or any(character in token for character in " ;,"):
            raise InvalidInput("the token in MODELSCOPE_API_TOKEN holds characters that no token has.")
        credentials |= {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"}
    return web.get(url, names.endpoint("modelscope"), credentials, largest, span)


def _refuse(answer: web.Answer, repository: str, revision: str, file: str | None) -> None:
    """Raise the error for the answer's status, unless it is a success."""
    if answer.status in (200, 206):
        return
    if answer.status == 401:
        raise InvalidInput(
            "{host} refuses the token in MODELSCOPE_API_TOKEN, or wants one for {repository}.",
            host=_host(),
            repository=repository,
        )
    if answer.status == 403:
        raise AccessDenied(
            Message(
                "{repository} on {host} may not be read: open its page there, and set MODELSCOPE_API_TOKEN.",
                repository=repository,
                host=_host(),
            )
        )
    if answer.status == 404 and file:
        raise MissingDatum(
            "{repository} has no file {file} at revision {revision} on {host}.",
            repository=repository,
            file=file,
            revision=shown(revision),
            host=_host(),
        )
    if answer.status == 404:
        raise UnknownName(_absent(repository, revision, ""))
    raise Unreachable(
        Message("{host} answers {status} for {repository}.", host=_host(), status=answer.status, repository=repository)
    )


def _absent(repository: str, revision: str, detail: str) -> str:
    detail = f" ({detail[:200]})" if detail else ""
    return Message(
        "there is no model {repository} with a revision {revision} on {host}, or it is private{said}.",
        repository=shown(repository),
        revision=shown(revision),
        host=_host(),
        said=detail,
    )


def _host() -> str:
    address = web.origin(names.endpoint("modelscope"))
    return address[1] if address else "MODELSCOPE_ENDPOINT"

"""Models of the Hugging Face Hub: config through its cache, headers of the weights by parts of files.

All requests are for one commit: the revision is resolved first, with the list of files, in one request.
"""

import difflib
import os
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from tonnage.kernel.errors import (
    AccessDenied,
    InvalidInput,
    MissingDatum,
    TonnageError,
    UnknownName,
    Unreachable,
    shown,
)
from tonnage.kernel.message import Message
from tonnage.models import names
from tonnage.models.contents import Contents
from tonnage.models.formats import safetensors
from tonnage.models.hubs import web
from tonnage.models.hubs.hugging_face_cache import COMMIT, Cache, commit_of
from tonnage.models.hubs.remote import RemoteFile
from tonnage.models.location import read
from tonnage.models.names import Reference
from tonnage.models.places import File
from tonnage.user_files import read_bytes

LARGEST_LISTING = 64_000_000
DEFAULT_REVISION = "main"
_PROBED = ("config.json", "model.safetensors.index.json", "model.safetensors")


class _Sibling(msgspec.Struct):
    rfilename: str


class _Info(msgspec.Struct):
    sha: str
    siblings: list[_Sibling] = []


class Repository:
    """The files of a repository at a commit; `offline`: no requests."""

    def __init__(self, reference: Reference, commit: str, files: Sequence[str], offline: bool):
        self.name, self.commit, self.offline = reference.repository, commit, offline
        self.label = f"{reference.repository}@{commit[:12]} on {_host()}"
        self.names: Sequence[str] = files
        self._cache = Cache(reference.repository, commit)
        self._read: dict[str, RemoteFile] = {}

    def small(self, name: str, largest: int) -> bytes:
        path = self._cache.path(name)
        if path is not None:
            return read_bytes(path, largest)
        self._may_ask(name)
        answer = _get(self._url(name), largest)
        _refuse(answer, self.name, name)
        self._cache.store(name, answer.body, answer.headers.get("etag", ""))
        return answer.body

    def open(self, name: str) -> File:
        path = self._cache.path(name)
        if path is not None:
            from tonnage.models.local import Folder

            return Folder(path.parent, only=path.name).open(path.name)
        known = self._cache.header(name)
        if known is not None:
            start, size = known
            return File(lambda first, length: start[first : first + length], size)
        self._may_ask(name)
        remote = self._read[name] = RemoteFile(
            lambda url, span: self._part(url, span, name), self._url(name), f"{self.label}: {name}"
        )
        return File(remote.read, remote.size)

    def read_each(self, names: Sequence[str], read: Callable[[str], Any]) -> list[Any]:
        results = web.call_each(names, read)
        for name, remote in self._read.items():
            self._keep(name, remote)
        self._read.clear()
        return results

    def _keep(self, name: str, remote: RemoteFile) -> None:
        """Store the header that was read in the cache; for safetensors without the data behind it."""
        end = 8 + int.from_bytes(remote.start[:8], "little") if name.endswith(".safetensors") else len(remote.start)
        if remote.size is not None:
            self._cache.store_header(name, bytes(remote.start[:end]), remote.size)

    def _part(self, url: str, span: tuple[int, int], name: str) -> web.Answer:
        answer = _get(url, span[1], span)
        if answer.status == 416:
            raise InvalidInput("{label}: {name} has no byte {span}.", label=self.label, name=name, span=span[0])
        _refuse(answer, self.name, name)
        return answer

    def _url(self, name: str) -> str:
        return f"{names.endpoint('hub')}/{self.name}/resolve/{self.commit}/{quote(name)}"

    def _may_ask(self, name: str) -> None:
        if self.offline:
            raise Unreachable(
                Message(
                    "{label}: {name} is not in the cache of huggingface_hub, and offline mode forbids to ask.",
                    label=self.label,
                    name=name,
                )
            )


def contents(reference: Reference, offline: bool | None) -> Contents:
    """The content of the repository: from the Hub, or from the cache where the Hub cannot be reached."""
    if is_offline(offline):
        contents = _cached(reference)
        if contents is None:
            raise Unreachable(
                Message(
                    "{reference} is not in the cache of huggingface_hub, and offline mode forbids to ask "
                    "{host}.{catalogued}",
                    reference=reference.text,
                    host=_host(),
                    catalogued=_catalogued(reference.repository),
                )
            )
        return contents
    try:
        repository = _resolve(reference)
    except Unreachable as error:
        contents = _cached(reference)
        if contents is None:
            raise Unreachable(
                Message("{error}{catalogued}", error=error, catalogued=_catalogued(reference.repository))
            ) from None
        contents.notes.append(
            Message("Read from the cache, because {error}{error2}", error=str(error)[0].lower(), error2=str(error)[1:])
        )
        return contents
    return read(repository, reference.file)


def is_offline(offline: bool | None) -> bool:
    """Whether to make no requests: as the caller says, else as HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE say."""
    if offline is not None:
        return offline
    from huggingface_hub import constants

    setting = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return constants.HF_HUB_OFFLINE or setting.upper() in ("1", "ON", "YES", "TRUE")


def _cached(reference: Reference) -> Contents | None:
    commit = commit_of(reference.repository, reference.revision or DEFAULT_REVISION)
    if commit is None:
        return None
    files = Cache(reference.repository, commit).names()
    return read(Repository(reference, commit, files, offline=True), reference.file) if files else None


def _resolve(reference: Reference) -> Repository:
    """The files at the commit that the revision names now."""
    revision = reference.revision or DEFAULT_REVISION
    answer = _get(
        f"{names.endpoint('hub')}/api/models/{reference.repository}/revision/{quote(revision, safe='')}",
        LARGEST_LISTING,
    )
    if answer.status == 404 and "x-error-code" not in answer.headers:
        return _probe(reference, revision)
    _refuse(answer, reference.repository, None, revision)
    try:
        info = msgspec.json.decode(answer.body, type=_Info)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreachable(
            Message("{host} does not answer as a Hugging Face Hub does; HF_ENDPOINT may be wrong.", host=_host())
        ) from None
    if not COMMIT.fullmatch(info.sha):
        raise Unreachable(Message("{host} names no commit for {reference}.", host=_host(), reference=reference.text))
    files = [sibling.rfilename for sibling in info.siblings if names.is_plain_path(sibling.rfilename)]
    Cache(reference.repository, info.sha).list(files, revision)
    return Repository(reference, info.sha, files, offline=False)


def _probe(reference: Reference, revision: str) -> Repository:
    """The files of an endpoint that serves files and lists none: request those that a model has."""
    present, commit = [], ""
    answer = None
    named = [reference.file] if reference.file and "." in reference.file else []
    for name in (*named, *_PROBED):
        url = f"{names.endpoint('hub')}/{reference.repository}/resolve/{quote(revision, safe='')}/{quote(name)}"
        answer = _get(url, 1, (0, 1))
        if answer.status in (200, 206):
            commit = answer.headers.get("x-repo-commit", commit)
            present.append(name)
    if answer is not None and not COMMIT.fullmatch(commit):
        _refuse(answer, reference.repository, None, revision)
        raise Unreachable(
            Message("{host} does not answer as a Hugging Face Hub does; HF_ENDPOINT may be wrong.", host=_host())
        )
    repository = Repository(reference, commit, present, offline=False)
    if _PROBED[1] in present:
        index = repository.small(_PROBED[1], LARGEST_LISTING)
        repository.names = sorted(
            {*present, *safetensors.parse_index(index, f"{repository.label}: {_PROBED[1]}").values()}
        )
    Cache(reference.repository, commit).list(list(repository.names), revision)
    return repository


def _get(url: str, largest: int, span: tuple[int, int] | None = None) -> web.Answer:
    return web.get(url, names.endpoint("hub"), _credentials(), largest, span)


def _credentials() -> dict[str, str]:
    from huggingface_hub import constants, get_token

    headers = {"User-Agent": "tonnage"}
    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return headers
    try:
        token = web.within(get_token, web.PATIENCE * web.timeout(), "the token service")
    except TonnageError:
        raise
    except Exception as error:  # noqa: BLE001 - the exchange of a short-lived token fails in the ways of its service
        raise InvalidInput("huggingface_hub cannot give a token: {type}.", type=type(error).__name__) from None
    if token:
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise InvalidInput("the token in HF_TOKEN holds characters that no token has.")
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _refuse(answer: web.Answer, repository: str, file: str | None, revision: str = "") -> None:
    """Raise the error for the answer's status, unless it is a success."""
    if answer.status in (200, 206):
        return
    code = answer.headers.get("x-error-code", "")
    message = answer.headers.get("x-error-message", "")
    has_token = "Authorization" in _credentials()
    if answer.status == 401 and has_token and (not code or "credentials" in message.lower()):
        raise InvalidInput(
            "{host} refuses the token in HF_TOKEN (or the one that `hf auth login` saved): it is wrong or expired.",
            host=_host(),
        )
    if code == "GatedRepo" or (answer.status == 403 and code != "RepoNotFound"):
        raise AccessDenied(_gated(repository, has_token))
    if code == "RevisionNotFound":
        raise InvalidInput(
            "{repository} has no revision {revision} on {host}.",
            repository=repository,
            revision=shown(revision),
            host=_host(),
        )
    if code == "EntryNotFound" or (answer.status == 404 and file and code != "RepoNotFound"):
        raise MissingDatum("{repository} has no file {file} on {host}.", repository=repository, file=file, host=_host())
    if answer.status in (401, 404):
        raise UnknownName(_absent(repository, has_token))
    if answer.status == 429:
        wait = answer.headers.get("retry-after", "")
        raise Unreachable(
            Message("{host} asks for fewer requests; try again in {wait} seconds.", host=_host(), wait=wait)
            if wait.isdecimal()
            else Message("{host} asks for fewer requests; try again later.", host=_host())
        )
    raise Unreachable(
        Message("{host} answers {status} for {repository}.", host=_host(), status=answer.status, repository=repository)
    )


def _gated(repository: str, has_token: bool) -> str:
    how = (
        "accept its terms there with the account of your token"
        if has_token
        else "accept its terms there, and set HF_TOKEN"
    )
    return Message(
        "{repository} is gated: open https://huggingface.co/{repository}, {how}.{catalogued}",
        repository=repository,
        how=how,
        catalogued=_catalogued(repository),
    )


def _absent(repository: str, has_token: bool) -> str:
    private = (
        "or it is private and your token may not read it" if has_token else "or it is private, and HF_TOKEN is not set"
    )
    return Message(
        "there is no model {repository} on {host}, {private}.{catalogued}",
        repository=shown(repository),
        host=_host(),
        private=private,
        catalogued=_catalogued(repository) or _nearest(repository),
    )


def _catalogued(repository: str) -> str:
    """A text that offers the catalogue's entry, which needs no Hub; empty where there is none."""
    from tonnage.catalogue.models import find, model_file

    entry = model_file(repository).name if find(repository) else None
    return Message(" The catalogue describes it without any network: {found!r}.", found=entry) if entry else ""


def _nearest(repository: str) -> str:
    from tonnage.catalogue import aliases, model_names

    known = [*model_names(), *aliases("models")]
    near = difflib.get_close_matches(repository.lower(), known, n=1, cutoff=0.5)
    near = near or difflib.get_close_matches(repository.lower().rpartition("/")[2], known, n=1, cutoff=0.5)
    return Message(" The nearest in the catalogue is {near!r}.", near=near[0]) if near else ""


def _host() -> str:
    address = web.origin(names.endpoint("hub"))
    return address[1] if address else "HF_ENDPOINT"

"""Parses the name of a model: a repository of the Hugging Face Hub or of ModelScope, with a revision and a file.

Only the names are taken from a URL. Its host decides which site is meant, and is never connected to.
"""

import os
import re
from typing import Literal

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message

Site = Literal["hub", "modelscope"]

HUB_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co")
MODELSCOPE_HOSTS = (
    "modelscope.cn",
    "www.modelscope.cn",
    "modelscope.com",
    "www.modelscope.com",
    "modelscope.ai",
    "www.modelscope.ai",
)
HUB_ENDPOINT = "https://huggingface.co"
MODELSCOPE_ENDPOINT = "https://modelscope.cn"  # modelscope-hub 0.5.1, constants.py: DEFAULT_ENDPOINT

_PREFIXES: dict[str, Site] = {"hf": "hub", "huggingface": "hub", "modelscope": "modelscope", "ms": "modelscope"}
# Patterns are compiled when they are used: a name of the catalogue needs none.
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_OWNED = rf"({_PART}/{_PART})(?:@([^:@]+))?(?::([^:]+))?"
_NAMED = rf"({_PART}(?:/{_PART})?)(?:@([^:@]+))?(?::([^:]+))?"
# hf://owner/name@revision/path, huggingface_hub's own form: only refs/... is a revision of more than one part.
_IN_REPOSITORY = rf"({_PART}/{_PART})(?:@(refs/[^:@/]+/[^:@/]+|[^:@/]+))?(?:/([^:]+))?"
_REVISION = r"[A-Za-z0-9_](?:[A-Za-z0-9_./+-]{0,253}[A-Za-z0-9_])?"
_VERBS = ("tree", "blob", "resolve", "raw", "commit", "commits", "file", "files", "discussions", "summary")
_NOT_MODELS = ("datasets", "spaces", "kernels", "buckets", "papers", "collections", "docs", "studios")
MAX_NAME = 4096  # characters of a name


class Reference(Struct, frozen=True):
    """A repository of a site; `file` is a path in it, a folder of it, or the name of a GGUF quantisation."""

    site: Site
    repository: str
    revision: str | None = None
    file: str | None = None

    @property
    def text(self) -> str:
        at = f"@{self.revision}" if self.revision else ""
        file = f":{self.file}" if self.file else ""
        return f"{self.repository}{at}{file}"


def endpoint(site: Site) -> str:
    """The site's address: $HF_ENDPOINT, $MODELSCOPE_ENDPOINT or $MODELSCOPE_DOMAIN, else the site's own."""
    if site == "hub":
        address = os.environ.get("HF_ENDPOINT") or HUB_ENDPOINT
    else:
        address = os.environ.get("MODELSCOPE_ENDPOINT") or os.environ.get("MODELSCOPE_DOMAIN") or MODELSCOPE_ENDPOINT
    address = address.strip().rstrip("/")
    return address if address.lower().startswith(("http://", "https://")) else f"https://{address}"


def explicit(text: str) -> Reference | None:
    """The repository that a URL or a prefix such as hf: names; None where the text has neither."""
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() in _PREFIXES:
        return _prefixed(_PREFIXES[scheme.lower()], rest, text)
    if "://" in text:
        return _from_url(text)
    host = text.partition("/")[0].lower()
    if "/" in text and host in (*HUB_HOSTS, *MODELSCOPE_HOSTS):
        return _from_url(f"https://{text}")
    return None


def repository(text: str) -> Reference | None:
    """The Hub repository of a bare owner/name, with @revision and :file if they are there."""
    match = re.fullmatch(_OWNED, text)
    return checked(Reference("hub", *match.groups())) if match else None


def checked(reference: Reference) -> Reference:
    """The same reference; InvalidInput where its revision or its file could leave the repository."""
    name, revision, file = reference.repository, reference.revision, reference.file
    if ".." in name or "--" in name:
        raise InvalidInput("a repository's name has no '..' and no '--'. Got {name}.", name=shown(name))
    if revision is not None and (not re.fullmatch(_REVISION, revision) or ".." in revision or "//" in revision):
        raise InvalidInput("{@revision} must be a branch, a tag or a commit. Got {revision}.", revision=shown(revision))
    if file is not None:
        plain_path(file, Message("the file of {name}", name=name))
    return reference


def plain_path(path: str, what: str) -> str:
    """`path` if it is a relative path without a way out of its folder; else InvalidInput."""
    parts = path.split("/")
    odd = any(part in ("", ".", "..") for part in parts) or any(character in path for character in "\\\0?#%:\n\r\t")
    if odd or len(path) > 1024:
        raise InvalidInput("{what} must be a plain relative path. Got {path}.", what=what, path=shown(path))
    return path


def is_plain_path(path: str) -> bool:
    try:
        plain_path(path, "a file")
    except InvalidInput:
        return False
    return True


def _prefixed(site: Site, rest: str, text: str) -> Reference:
    form = _IN_REPOSITORY if rest.startswith("//") else _NAMED
    rest = rest.lstrip("/").removeprefix("models/").rstrip("/")
    match = re.fullmatch(form, rest) or re.fullmatch(_NAMED, rest)
    if not match or (site == "modelscope" and "/" not in match[1]):
        raise InvalidInput(
            "write {text}:owner/name, with @revision and :file if need be. Got {text2}.",
            text=text.partition(":")[0],
            text2=shown(text),
        )
    return checked(Reference(site, *match.groups()))


def _from_url(text: str) -> Reference:
    from urllib.parse import unquote, urlsplit

    try:
        url = urlsplit(text)
        host, port = (url.hostname or "").lower(), url.port
    except ValueError as error:
        raise InvalidInput("{text} is not a URL: {error}.", text=shown(text), error=error) from None
    if url.scheme.lower() not in ("http", "https"):
        raise InvalidInput("a model's URL begins with https://. Got {text}.", text=shown(text))
    site = _site(host, url.netloc)
    if site is None:
        raise InvalidInput(_other_host(host))
    if "@" in url.netloc or (port is not None and urlsplit(endpoint(site)).netloc.lower() != url.netloc.lower()):
        raise InvalidInput(
            "a model's URL names a site alone, without user, password or port. Got one of {host}.", host=host
        )
    parts = [unquote(part) for part in url.path.split("/") if part]
    return checked(_from_path(site, parts, text))


def _site(host: str, netloc: str) -> Site | None:
    """The site that a host belongs to: one of its own hosts, or the mirror that the environment sets."""
    from urllib.parse import urlsplit

    if host in HUB_HOSTS:
        return "hub"
    if host in MODELSCOPE_HOSTS:
        return "modelscope"
    sites: tuple[Site, Site] = ("hub", "modelscope")
    return next((site for site in sites if urlsplit(endpoint(site)).netloc.lower() == netloc.lower()), None)


def _from_path(site: Site, parts: list[str], text: str) -> Reference:
    if parts[:1] == ["api"]:
        parts = parts[2:] if parts[1:2] == ["v1"] else parts[1:]
    if parts and parts[0] in _NOT_MODELS:
        raise InvalidInput("{text} is in {parts}, and tonnage reads models.", text=shown(text), parts=parts[0])
    if parts[:1] == ["models"]:
        parts = parts[1:]
    length = 1 if site == "hub" and (len(parts) == 1 or (parts[1:2] and parts[1] in _VERBS)) else 2
    name, rest = "/".join(parts[:length]), parts[length:]
    name, _, quantization = name.partition(":")  # hf.co/owner/name:Q4_K_M, as llama.cpp and Ollama write it
    if not re.fullmatch(_NAMED, name) or len(parts) < length:
        raise InvalidInput("{text} names no model: a model's URL holds owner/name.", text=shown(text))
    if not rest or (site == "hub" and rest[0] not in _VERBS[:6]):
        return Reference(site, name, file=quantization or None)
    return Reference(site, name, *_revision_and_file(site, rest))


def _revision_and_file(site: Site, rest: list[str]) -> tuple[str | None, str | None]:
    """The revision and the file of tree/REV/..., blob/REV/...; a reference such as refs/pr/1 has three parts.
    ModelScope: file/view/REV/...
    """
    verb, rest = rest[0], rest[1:]
    if site == "modelscope":
        if verb not in ("file", "resolve", "tree") or (verb == "file" and rest[:1] != ["view"]):
            return None, None
        rest = rest[1:] if verb == "file" else rest
    if not rest:
        return None, None
    length = 3 if rest[0] == "refs" and len(rest) >= 3 else 1
    revision, file = "/".join(rest[:length]), "/".join(rest[length:])
    return revision, file if file and verb not in ("commit", "commits") else None


def _other_host(host: str) -> str:
    mirror = (
        " For a mirror of the Hub, set HF_ENDPOINT to its URL and name the model as owner/name." if "hf" in host else ""
    )
    return Message(
        "models are read from huggingface.co and modelscope.cn, not from {host!r}.{mirror}",
        host=host or "a URL without host",
        mirror=mirror,
    )

"""Models that llama.cpp and Ollama are given: files of GGUF, repositories of them, and names of Ollama's library."""

import re
from pathlib import PurePath

from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message
from tonnage.kernel.reach import is_there

DEFAULT = "Q4_K_M"  # what -hf and Ollama's library take where no type is named
_TYPE = re.compile(r"(?:^|[-._])((?:UD-)?(?:I?Q|TQ)\d(?:_[A-Z0-9]+)+|BF16|F16|F32|FP16|MXFP4(?:_MOE)?)$", re.IGNORECASE)
_PART = re.compile(r"-\d{5}-of-\d{5}$")
_URL = re.compile(
    r"https?://(?:huggingface\.co|hf\.co|modelscope\.cn(?:/models)?)/([^/]+/[^/]+)/(?:resolve|blob)/[^/]+/(.+)"
)
HUBS = ("hf.co/", "huggingface.co/", "https://hf.co/", "https://huggingface.co/")
LATEST = ":latest"
KINDS = ("-instruct", "-chat", "-text", "-it", "-base", "-qat", "-fp16", "-it-qat")


def parted(name: str) -> tuple[str, str]:
    """The name of a model and the type of its weights, in small letters, that the name of a file ends in."""
    stem = _PART.sub("", name.removesuffix(".gguf"))
    match = _TYPE.search(stem)
    if match is None:
        return stem, ""
    kind = match[1].lower().removeprefix("ud-")
    return stem[: match.start()], {"fp16": "f16"}.get(kind, kind)


def put_file(r: Reading, key: str, path: str) -> None:
    """A file of GGUF: itself where it is there, else the model that its name says."""
    place = str(r.source.folder / path) if r.source.folder is not None else path
    if r.source.folder is not None and is_there(place):
        r.put("model", place, key)
        return
    model, weights = parted(PurePath(path.replace("\\", "/")).name)
    r.put("model", model or path, key)
    if weights:
        put_type(r, key, weights)


def put_type(r: Reading, key: str, weights: str) -> None:
    """The type of the weights; of a file whose publisher deals types out otherwise, the nearest that llama.cpp has."""
    from tonnage.numerics.quantization import is_file_type

    if not is_file_type(weights):
        base = weights.removesuffix("_xl")
        near = next((name for name in (f"{base}_m", f"{base}_l", base) if is_file_type(name)), "")
        if near:
            why = Message("its layers have types of their own: the bytes are those of {type}", type=near.upper())
            r.unsure(key, why)
        weights = near or weights
    r.put("weights", weights, key)


def put_url(r: Reading, key: str, url: str) -> None:
    """A file of a hub."""
    match = _URL.fullmatch(url.partition("?")[0])
    if match is None:
        put_file(r, key, url)
    else:
        put_repository(r, key, match[1], match[2])


def put_repository(r: Reading, key: str, repository: str, file: str = "", *more: str) -> None:
    """A repository of a hub, `user/name:type`, and a file in it."""
    name, _, kind = repository.partition(":")
    if file:
        kind = parted(PurePath(file).name)[1] or kind
    if not kind and "gpt-oss" in name.lower():
        kind = "MXFP4"  # its only files
    r.put("model", f"{name}:{kind.upper()}" if kind else name, key, *more)


def put_library(r: Reading, key: str, name: str) -> None:
    """A model of Ollama's library, `name:tag`, whose weights are in 4 bits where the tag does not say otherwise; or
    one of a hub.
    """
    for hub in HUBS:
        if name.lower().startswith(hub):
            put_repository(r, key, name[len(hub) :])
            return
    base, _, tag = name.removesuffix(LATEST).partition(":")
    plain = tag
    weights = ""
    if match := _TYPE.search(tag):
        plain, weights = tag[: match.start()], {"fp16": "f16"}.get(match[1].lower(), match[1].lower())
    r.put("model", _readable(base, plain), key)
    if weights:
        r.put("weights", weights, key)
    elif "gpt-oss" not in base:
        r.assume("type of the weights", DEFAULT, "weights", why="what Ollama's library has where the tag names none")
        r.question["weights"] = DEFAULT.lower()


def _readable(base: str, tag: str) -> str:
    """A name that stands for the model here, of those that Ollama's may have."""
    from tonnage.models import read

    names = [f"{base}:{tag}" if tag else base]
    names += [f"{base}:{tag.removesuffix(kind)}" for kind in KINDS if tag.endswith(kind)]
    names += [base] if tag in KINDS or tag.lstrip("-") in [kind.lstrip("-") for kind in KINDS] else []
    for name in names:
        try:
            read(name, offline=True)
        except TonnageError:
            continue
        return name
    return names[0]

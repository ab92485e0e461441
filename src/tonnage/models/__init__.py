"""Reading a model from whatever names it: a file, a catalogue name, a repository of a model hub, or its dimensions."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tonnage.architectures import DIMENSIONS, Model
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName, Unreachable, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import check_hubs
from tonnage.models import local, names
from tonnage.models.contents import Contents
from tonnage.models.names import Reference

_NOTHING: Mapping[str, Any] = {}


def read(
    text: str | Mapping[str, Any] | None,
    *,
    overrides: Mapping[str, Any] = _NOTHING,
    revision: str | None = None,
    offline: bool | None = None,
) -> Model:
    """Return the Model that a text names: its layers, parameters, context and config.

    text: in this order a folder or file of this machine (config.json, safetensors, GGUF); a URL, or hf: and modelscope:
        names; a name of the catalogue, which never touches the network; owner/name of the Hugging Face Hub. None: the
        model whose dimensions are `overrides`; a mapping is the content of a config.json
    overrides: fields of config.json -> other values
    revision: a branch, tag or commit of a hub
    offline: forbids the network, or allows it, whatever HF_HUB_OFFLINE says
    """
    from tonnage.models.reconcile import assemble

    if not isinstance(overrides, Mapping):
        raise InvalidInput(
            "overrides must map fields of config.json to values. Got {type}.", type=type(overrides).__name__
        )
    if text is None:
        return _of_dimensions(overrides)
    if isinstance(text, Mapping):
        return assemble(_pasted(text), overrides)
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("a model is named by a text. Got {text}.", text=shown(text))
    text = _of_url(text.strip())
    if not overrides and revision is None and kind(text) == "catalogue":
        from tonnage.catalogue import models as catalogue

        file = catalogue.find(text)
        return _of_catalogue(text, file, file.stat().st_mtime_ns if file is not None else 0)
    return assemble(_contents(text, revision, offline), overrides)


@lru_cache(maxsize=1024)  # more than the catalogue has: a few kilobytes each
def _of_catalogue(text: str, file: object, changed: int) -> Model:
    """A model of the catalogue, built once per version of its file, so that results cached with its layers stay
    valid.
    """
    from tonnage.models.reconcile import assemble

    contents = _catalogued(text)
    if contents is None:
        raise _unknown(text)
    return assemble(contents, _NOTHING)


def _of_url(text: str) -> str:
    """owner/name in place of a URL of a repository that the catalogue describes: it needs no network."""
    if "/" not in text or local.looks_like_path(text):
        return text
    lowered = text.lower()
    if not any(f"{host}/" in lowered for host in names.HUB_HOSTS):
        return text
    reference = names.explicit(text)
    if reference is None or reference.revision is not None:
        return text
    known = _catalogued(reference.text) is not None or _derived(reference.text) is not None
    return reference.text if known else text


def _derived(text: str) -> Contents | None:
    """The contents of a quantised copy of a model of the catalogue."""
    from tonnage.models.derivatives import contents

    return contents(text)


def kind(text: str) -> str:
    """The place where `read` would look: "path", "hub", "modelscope", "catalogue", "derivative" or "unknown". Needs no
    network.
    """
    if local.looks_like_path(text) or local.find(text) is not None:
        return "path"
    reference = names.explicit(text)
    if reference is not None:
        return reference.site
    if _catalogued(text) is not None:
        return "catalogue"
    if _derived(text) is not None:
        return "derivative"
    return "hub" if names.repository(text) is not None and not local.is_missing_file(text) else "unknown"


def _contents(text: str, revision: str | None, offline: bool | None) -> Contents:
    if len(text) > names.MAX_NAME:
        raise InvalidInput(
            "a model's name has at most {longest} characters. Got {count}.", longest=names.MAX_NAME, count=len(text)
        )
    path = local.find(text)
    if path is not None:
        _no_revision(revision, Message("the local path {text}", text=shown(text)))
        return local.contents(path)
    reference = names.explicit(text)
    if reference is None and revision is None:
        contents = _catalogued(text) or _derived(text)
        if contents is not None:
            return contents
    if reference is None and local.is_missing_file(text) and _catalogued(text) is None:
        raise local.no_such_file(text)
    reference = reference or names.repository(text)
    if reference is not None:
        return _remote(reference, revision, offline)
    if _catalogued(text) is not None:
        _no_revision(revision, Message("the catalogue's {text}", text=shown(text)))
    raise _unknown(text)


def _pasted(config: Mapping[str, Any]) -> Contents:
    """The content of a config.json, which may state the model's name."""
    import json

    from tonnage.models.formats.config_json import parse

    fields = parse(json.dumps(dict(config)).encode(), "the config given")
    name_or_path = config.get("_name_or_path")
    name = name_or_path.rstrip("/").rpartition("/")[2][: names.MAX_NAME] if isinstance(name_or_path, str) else ""
    return Contents(name=name or "pasted config", source="the config given", where="the config given", fields=fields)


def _of_dimensions(overrides: Mapping[str, Any]) -> Model:
    from tonnage.models.reconcile import assemble

    if not overrides:
        raise InvalidInput(
            Message("name a model, or give its dimensions: {@hidden_size}, {@num_hidden_layers} and so on.")
        )
    named = overrides.get("architectures") or overrides.get("model_type")
    fields: dict[str, Any] = {} if named else {"architectures": ["GenericDecoder"]}
    contents = Contents(name="unnamed model", source=DIMENSIONS, where=DIMENSIONS, fields=fields)
    return assemble(contents, overrides)


def _catalogued(text: str) -> Contents | None:
    from tonnage.catalogue import models as catalogue

    file = catalogue.find(text) if "\0" not in text else None
    if file is None:
        return None
    form = catalogue.named(catalogue.load(file), text)
    notes = [form.note] if form.note else []
    return Contents(
        name=form.name,
        source=Message("catalogue entry {name}, variant {variant}", name=file.stem, variant=form.name)
        if "variant" in form.sources
        else Message("catalogue entry {name}", name=file.stem),
        where=str(file.name),
        fields=dict(form.config),
        notes=notes,
        place=catalogue.hub_id(form, text),
    )


def _remote(reference: Reference, revision: str | None, offline: bool | None) -> Contents:
    check_hubs(reference.text)
    if revision is not None:
        if reference.revision not in (None, revision):
            raise InvalidInput(
                "{text} names a revision already. Got revision={revision} too.",
                text=reference.text,
                revision=shown(revision),
            )
        reference = names.checked(Reference(reference.site, reference.repository, revision, reference.file))
    if reference.site == "hub":
        from tonnage.models.hubs.hugging_face import contents
    else:
        from tonnage.models.hubs.modelscope import contents
    try:
        remote = contents(reference, offline)
    except Unreachable as error:
        from tonnage.models.derivatives import unreachable

        raise (unreachable(reference.repository, str(error)) or error) from None
    remote.place = reference.repository
    return remote


def _no_revision(revision: str | None, what: str) -> None:
    if revision is not None:
        raise InvalidInput(
            "revision belongs to a repository of a model hub, and {what} has none. Got {revision}.",
            what=what,
            revision=shown(revision),
        )


def _unknown(text: str) -> TonnageError:
    from tonnage.catalogue import aliases, model_names
    from tonnage.kernel.registry import unknown
    from tonnage.models.derivatives import not_yet, other_speech

    held = local.held_back(text) or other_speech(text) or not_yet(text)
    if held is not None:
        return held
    nearest = unknown(
        "model",
        text[:200],
        model_names(),
        aliases("models"),
        examples=("llama-3.1-8b", "qwen3-32b"),
        command="tonnage models",
    )
    return UnknownName(
        Message(
            "{found} Or give a folder, a config.json, owner/name of the Hugging Face Hub, or modelscope:owner/name.",
            found=nearest,
        )
    )

"""Errors for what looks like a model and is none: adapters, projectors, pipelines, tokenizers; each says what to give
instead.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, shown
from tonnage.kernel.message import Message

if TYPE_CHECKING:
    from tonnage.models.places import Choice, Location
    from tonnage.models.tensors import Tensor

ADAPTER_CONFIG = "adapter_config.json"
PIPELINE = "model_index.json"
_LORA = (
    ".lora_A.",
    ".lora_B.",
    ".lora_embedding_",
    ".lora_down.",
    ".lora_up.",
    ".lora_magnitude_vector",
    "lora_unet_",
    "lora_te",
)
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "merges.txt", "spiece.model")
# general.type and general.architecture of GGUF files that hold a part of a model or something about one (gguf 0.19,
# GGUFType).
_GGUF_KINDS = {
    "adapter": "an adapter",
    "mmproj": "the projector (mmproj) of a model's images or sounds",
    "clip": "the projector (mmproj) of a model's images or sounds",
    "imatrix": "an importance matrix, which quantisation uses",
    "controlvector": "a control vector",
}


def refuse(location: "Location", file: str | None, choice: "Choice") -> None:
    """Raise InvalidInput if the file is an adapter's, or if the folder holds only an adapter or a diffusers
    pipeline.
    """
    file_name = (file or "").rpartition("/")[2]
    if file_name == ADAPTER_CONFIG or file_name.startswith("adapter_model"):
        raise InvalidInput(
            "{location}: {file} is an adapter{base}",
            location=location.label,
            file=file,
            base=_base(location, choice.adapter),
        )
    if choice.config or choice.index:
        return
    if choice.adapter and all(name.rpartition("/")[2].startswith("adapter_model") for name in choice.weights):
        raise InvalidInput(
            "{lacks_all} of a model; it is an adapter{base}",
            lacks_all=_lacks_all(location),
            base=_base(location, choice.adapter),
        )
    if file is None and PIPELINE in location.names:
        raise InvalidInput(
            "{location} has no config.json; it is a diffusion pipeline ({pipeline}), which tonnage does not estimate.",
            location=location.label,
            pipeline=PIPELINE,
        )


def refuse_adapters_tensors(tensors: "Sequence[Tensor]", where: str) -> None:
    """Raise InvalidInput for tensors without a config if most of them are a LoRA's."""
    count = sum(any(word in tensor.name for word in _LORA) for tensor in tensors)
    if 2 * count > len(tensors):
        raise InvalidInput(
            "{where} is an adapter: {count} of its {count2} tensors are a LoRA's. Give the model that it "
            "was trained on.",
            where=where,
            count=count,
            count2=len(tensors),
        )


def refuse_other_gguf(metadata: Mapping[str, Any], tensors: "Sequence[Tensor]", where: str) -> None:
    """Raise InvalidInput for a GGUF file without a language model."""
    kind = metadata.get("general.type")
    kind = metadata.get("general.architecture") if kind in (None, "model") else kind
    what = _GGUF_KINDS.get(kind) if isinstance(kind, str) else None
    if what is not None or metadata.get("general.type") not in (None, "model"):
        known = (
            Message("{what} (general.type or architecture {kind})", what=what, kind=shown(kind))
            if what
            else Message("of general.type {kind}", kind=shown(kind))
        )
        raise InvalidInput(
            "{where} is no model: it is {known}. Give {gguf_base}.",
            where=where,
            known=known,
            gguf_base=_gguf_base(metadata),
        )
    if not tensors:
        raise InvalidInput(
            "{where} holds no tensors, a vocabulary at most. Give the GGUF file of the model.", where=where
        )


def nothing_there(location: "Location", pickles: bool) -> TonnageError:
    """The error for a folder that has no file of a model; it lists what is there."""
    if pickles:
        text = "its weights are pickle files, which tonnage does not open, and nothing says what the model is"
        return MissingDatum("{lacks}; {text}.", lacks=_lacks_all(location), text=text)
    return InvalidInput(_holds(location))


def _holds(location: "Location") -> str:
    names = [name.rpartition("/")[2] for name in location.names]
    text = _lacks_all(location)
    if not names:
        return Message("{text}: it is empty.", text=text)
    aside = next((name for name in names if name.endswith(".gguf")), None)
    if aside:
        return Message(
            "{text} of a model: {aside} is a projector or an importance matrix. Give the GGUF file of the model.",
            text=text,
            aside=shown(aside),
        )
    tokenizer = next((name for name in _TOKENIZERS if name in names), None)
    if tokenizer:
        return Message("{text}; it holds a tokenizer ({tokenizer}) and no model.", text=text, tokenizer=tokenizer)
    return Message("{text}, so nothing says what the model is.", text=text)


def _lacks_all(location: "Location") -> str:
    return Message("{location} has no config.json, no safetensors and no GGUF file", location=location.label)


def _base(location: "Location", adapter: str | None) -> str:
    """Text that names the base model of an adapter's config."""
    base = None
    if adapter:
        from tonnage.models.formats import config_json  # and json, which a name of the catalogue does without

        try:
            fields = config_json.parse(location.small(adapter, config_json.LARGEST), adapter)
            base = fields.get("base_model_name_or_path")
        except TonnageError:
            base = None
    if isinstance(base, str) and base.strip():
        return Message(" of {base}: give that model instead.", base=shown(base))
    return ": give the model that it was trained on."


def _gguf_base(metadata: Mapping[str, Any]) -> str:
    for key in ("general.base_model.0.repo_url", "general.base_model.0.name"):
        base = metadata.get(key)
        if isinstance(base, str) and base.strip():
            return Message("the model that it belongs to, {found}", found=shown(base))
    return "the GGUF file of the model that it belongs to"

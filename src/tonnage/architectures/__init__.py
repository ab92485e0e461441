"""Config -> Model. Every module of this package whose name has no underscore is one family; adding one is adding a
file.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import _wiring as wiring  # noqa: F401
from tonnage.architectures._config import ATTENTION_DROPOUT as ATTENTION_DROPOUT
from tonnage.architectures._config import DIMENSIONS as DIMENSIONS
from tonnage.architectures._config import HIDDEN_DROPOUT as HIDDEN_DROPOUT
from tonnage.architectures._config import Config as Config
from tonnage.architectures._config import check_numbers, refuse_unread
from tonnage.architectures._model import Block as Block
from tonnage.architectures._model import Branch as Branch
from tonnage.architectures._model import BranchKind as BranchKind
from tonnage.architectures._model import Model as Model
from tonnage.architectures._model import TensorGroup as TensorGroup
from tonnage.architectures._model import TensorSummary as TensorSummary
from tonnage.architectures._model import style_of as style_of
from tonnage.architectures._registry import ARCHITECTURES as ARCHITECTURES
from tonnage.architectures._registry import MODEL_TYPES as MODEL_TYPES
from tonnage.architectures._registry import TOWERS as TOWERS
from tonnage.architectures._registry import architecture as architecture
from tonnage.architectures._registry import class_name as class_name
from tonnage.architectures._registry import dressed, language_models
from tonnage.architectures._registry import families as families
from tonnage.architectures._registry import find as find
from tonnage.architectures._registry import load_all as load_all
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName, shown
from tonnage.kernel.message import Message, listed

HOW_TO_ADD = "add a family: one file in tonnage/architectures/ (CONTRIBUTING.md says how)"
_DTYPES = {"float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "int8"}


def build(fields: Mapping[str, Any], name: str, where: str = "config.json", user_fields: Iterable[str] = ()) -> Model:
    """Build the Model of a config.json's fields. `user_fields`: dotted names of those that the user set.

    Raises MissingDatum for an unknown architecture, with the nearest known one and how to add it, and InvalidInput for
    a user's field that the family does not read, with the nearest one that it does.
    """
    user_fields = tuple(user_fields)
    config = Config(fields, where, lookups={} if user_fields else None)
    built = family_of(config)(config)
    if class_name(config) not in ARCHITECTURES:
        built = dressed(built, config)
    dtype = config.text("dtype", "torch_dtype", default=None) or _inner_dtype(config)
    quantization = _quantization(config)
    check_numbers(config, list(_language_parts(config)))
    refuse_unread(config, built.family, user_fields)
    return replace(
        built,
        name=name,
        architecture=class_name(config),
        dtype=_known_dtype(dtype, where),
        quantization=quantization,
        config=fields,
        assumed=dict(config.assumed),
    )


def family_of(config: Config) -> Callable[[Config], Model]:
    """The function that builds this config's model: by its class name, by its model type, or by its family's language
    model.
    """
    name, model_type = class_name(config), config.text("model_type", default=None)
    relatives = [(ARCHITECTURES, relative) for relative in language_models(name)]
    for registry, key in ((ARCHITECTURES, name), (MODEL_TYPES, model_type), *relatives):
        if key:
            try:
                # a bare class whose type is known is of that type's family, unless a file names the class itself
                return find(registry, key, everywhere=not (key == name and relatives and model_type))
            except UnknownName:
                pass
    if not name and not model_type:
        part = config.raw("_class_name")
        hint = (
            Message(" It is the {part} of a diffusion pipeline, which tonnage does not estimate.", part=shown(part))
            if part
            else ""
        )
        raise InvalidInput(
            "{where} names neither architectures nor model_type, so nobody can tell what it is.{hint}",
            where=config.where,
            hint=hint,
        )
    raise MissingDatum(_unknown_architecture(name or model_type, config.where))


def _unknown_architecture(name: str, where: str) -> str:
    return Message(
        "{where} is of architecture {name}, which no family in tonnage describes.{nearest} Point tonnage at "
        "the model's safetensors or GGUF file for its exact weights, or {how_to_add}.",
        where=where,
        name=shown(name),
        nearest=_nearest(name),
        how_to_add=HOW_TO_ADD,
    )


def needs_family(model: Model, what: str) -> MissingDatum:
    """The error for a question that a model known only by its tensors cannot answer."""
    name = model.architecture
    why = (
        Message("its architecture {name} is of no family", name=shown(name))
        if name
        else "it has no config.json that names its family"
    )
    return MissingDatum(
        Message(
            "{what} of {model} is not known: {why}, and its tensors tell its weights and nothing "
            "else.{nearest} If it is built like one, say so with {--family} and the dimensions; or "
            "{how_to_add}.",
            what=what,
            model=shown(model.name),
            why=why,
            nearest=_nearest(name),
            how_to_add=HOW_TO_ADD,
        )
        if name
        else Message(
            "{what} of {model} is not known: {why}, and its tensors tell its weights and nothing "
            "else.{nearest} If it is built like one, say so with {--family} and the dimensions; or "
            "{how_to_add}.",
            what=what,
            model=shown(model.name),
            why=why,
            nearest=_nearest(model.name, 0.6),
            how_to_add=HOW_TO_ADD,
        )
    )


def _nearest(name: str, likeness: float = 0.3) -> str:
    from difflib import get_close_matches

    load_all()
    near = get_close_matches(name[:200], [*ARCHITECTURES, *MODEL_TYPES], n=1, cutoff=likeness)
    return Message(" The nearest known one is {near!r}.", near=near[0]) if near else ""


def _quantization(config: Config) -> Mapping[str, Any] | None:
    """The quantization_config of the model, or of its language model alone."""
    for part in _language_parts(config):
        for name in ("quantization_config", "compression_config"):
            section = part.raw(name)
            if section is not None and not isinstance(section, Mapping):
                raise InvalidInput(
                    "{where}: {name} must be an object. Got {found}.",
                    where=part.where,
                    name=name,
                    found=shown(section),
                )
            if section:
                return section
    return None


def _language_parts(config: Config) -> list[Config]:
    """The config, and its sections that describe a language model."""
    inner = [config.section(section, required=False) for section in _LANGUAGE_SECTIONS]
    return [config, *(part for part in inner if part is not None)]


_LANGUAGE_SECTIONS = ("text_config", "llm_config", "thinker_config")


def _inner_dtype(config: Config) -> str | None:
    for section in _LANGUAGE_SECTIONS:
        inner = config.section(section, required=False)
        if inner is not None:
            return inner.text("dtype", "torch_dtype", default=None)
    return None


def _known_dtype(dtype: str | None, where: str) -> str | None:
    if dtype in (None, "auto"):
        return None
    short = dtype.removeprefix("torch.")
    if short not in _DTYPES:
        raise InvalidInput(
            "{where}: dtype must be one of {dtypes}. Got {dtype}.",
            where=where,
            dtypes=listed(sorted(_DTYPES)),
            dtype=shown(dtype),
        )
    return short

"""The catalogue of models: catalogue/models/*.toml -> a config.json's fields, with published counts of parameters."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.catalogue import toml_files
from tonnage.catalogue.toml_files import Source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import called
from tonnage.kernel.units import LARGEST


class Published(Struct, forbid_unknown_fields=True):
    """A published parameter count. A number is exact; a text such as "8.03B" is rounded, and must agree to its last
    digit.

    `counts` says what was counted: "all" (the whole checkpoint, multi-token prediction included if it has that),
    "model" (what transformers loads), "text" (the language model without its towers), "non-embedding", "active"
    (parameters that a token passes through), "active without table" (less the input table), "active non-embedding".
    """

    parameters: int | str
    source: str
    as_of: str
    counts: str = "model"


class Variant(Struct, forbid_unknown_fields=True):
    """The differences in the config.json of another checkpoint of the same shape, under that checkpoint's name.

    A table such as text_config is a section, of which only the listed fields change; any other value,
    quantization_config and rope_scaling too, is replaced as a whole. `also`: further aliases of the file that mean this
    checkpoint; its name behind an owner is one without being listed.
    """

    config: dict[str, Any]
    source: str
    as_of: str
    hub: str = ""
    also: list[str] = []
    published: list[Published] = []
    note: str = ""


class ModelFile(Struct, forbid_unknown_fields=True):
    """The form of a file. `config` has the keys of the model's own config.json that decide its size.

    `nulls`: keys that its config.json sets to null, which TOML cannot hold, where a class has another default; `load`
    puts them into `config`. A shipped file has `hub`, `sources` and `published` too; a user's own file may omit them.
    """

    name: str
    config: dict[str, Any]
    nulls: list[str] = []
    hub: str = ""
    sources: dict[str, Source] = {}
    published: list[Published] = []
    aliases: list[str] = []
    released: str = ""
    license: str = ""
    why: dict[str, str] = {}
    note: str = ""
    variants: dict[str, Variant] = {}


OF_MODELSCOPE = (
    "llm-research",
    "ai-modelscope",
    "modelscope",
)  # owners of copies that the Hugging Face Hub does not have
COUNTS = ("all", "model", "text", "non-embedding", "active", "active without table", "active non-embedding")


def model_file(name: str) -> ModelFile:
    """The entry of this name, alias or Hub id: of the variant with that name, else of the file."""
    path = find(name)
    if path is None:
        raise toml_files.missing("models", "model", name)
    return named(load(path), name)


def named(form: ModelFile, name: str) -> ModelFile:
    """The entry that `name` selects from a file and its variants; `aliases` are then the names of that one."""
    meant = _variant(form, name)
    aliases = [alias for alias in form.aliases if _variant(form, alias) == meant]
    if meant is None:
        return replace(form, aliases=aliases)
    variant = form.variants[meant]
    return replace(
        form,
        name=meant,
        hub=variant.hub,
        aliases=aliases,
        note=variant.note,
        config=_changed(form.config, variant.config),
        published=variant.published or form.published,
        variants={},
        released="",
        why={},
        sources={**form.sources, "variant": Source(variant.source, variant.as_of)},
    )


def hub_id(form: ModelFile, name: str) -> str:
    """The id on the Hugging Face Hub of the checkpoint that `name` selects: an alias of its own, such as an instruct
    variant's, else `hub`.

    Case does not matter to the Hub.
    """
    if f"{toml_files.key(name)}-hf" in (*form.aliases, form.name):  # the files of Llama 2 in the Hub's own form
        name = f"{name}-hf"
    owner_in_name, _, wanted = toml_files.key(name).rpartition("/")
    if owner_in_name and owner_in_name not in OF_MODELSCOPE:
        return form.hub if toml_files.key(name) == toml_files.key(form.hub) else name
    if form.name.startswith(f"{wanted}-"):  # qwen2-audio-7b for short is the instruct model, where that is described
        return form.hub
    owner = toml_files.key(form.hub).rpartition("/")[0]
    return f"{owner}/{wanted}" if f"{owner}/{wanted}" in form.aliases and wanted != form.name else form.hub


def _variant(form: ModelFile, name: str) -> str | None:
    """The variant that a name selects: by its own name, with or without owner, or by the names that it lists."""
    wanted = toml_files.key(name)
    for variant, fields in form.variants.items():
        if wanted.rpartition("/")[2] == variant or wanted in fields.also:
            return variant
    return None


def _changed(config: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """`config` with other values for some fields; a section keeps its other fields."""
    sections = {
        name: _changed(config[name], value) for name, value in fields.items() if _is_section(name, config, value)
    }
    return {**config, **fields, **sections}


def _is_section(name: str, config: Mapping[str, Any], value: Any) -> bool:
    """Whether a field is a section of the config with fields of its own; a quantization config counts as one value."""
    tables = isinstance(value, dict) and isinstance(config.get(name), dict)
    return tables and name.endswith("_config") and name != "quantization_config"


def find(name: str) -> Path | None:
    """The file of this model, the user's own first; None where no catalogue has it."""
    return toml_files.find("models", name)


def model_names() -> list[str]:
    """Names of all models, shipped and the user's own."""
    return toml_files.names("models")


def load(path: Path) -> ModelFile:
    """Read one file, strictly."""
    form = toml_files.read(path, ModelFile)
    toml_files.sourced((), form.sources, called(path))
    _check_published(form.published, called(path))
    for name, variant in form.variants.items():
        _check_variant(form, name, variant, Message("{where}: variants.{name}", where=called(path), name=name))
    for null in form.nulls:
        form = replace(form, config=_with_null(form.config, null, Message("{called}: nulls", called=called(path))))
    return form


def _with_null(config: Mapping[str, Any], path: str, where: str) -> dict[str, Any]:
    """`config` with a null at a dotted path, as in text_config.sliding_window."""
    field, _, rest = path.partition(".")
    if not rest:
        if field in config:
            raise InvalidInput("{where}: config has {field} already.", where=where, field=shown(field))
        return {**config, field: None}
    if not isinstance(config.get(field), dict):
        raise InvalidInput("{where}: config has no section {field}.", where=where, field=shown(field))
    return {**config, field: _with_null(config[field], rest, where)}


def _check_published(counts: list[Published], place: str) -> None:
    for number, published in enumerate(counts, 1):
        where = Message("{place}: published {number}", place=place, number=number)
        toml_files.one_of(published.counts, COUNTS, Message("{where}: counts", where=where))
        toml_files.date(published.as_of, f"{where}: as_of")
        if not published.source.strip():
            raise InvalidInput("{where}: source is empty.", where=where)
        _check_count(published.parameters, Message("{where}: parameters", where=where))


def _check_variant(form: ModelFile, name: str, variant: Variant, where: str) -> None:
    """Check that its names are aliases of the file, its fields differ from the file's, and it has a source."""
    for alias in (name, *variant.also):
        toml_files.one_of(
            alias, [toml_files.key(known) for known in form.aliases], Message("{where}: its name", where=where)
        )
    _check_changes(form.config, variant.config, Message("{where}: config", where=where))
    toml_files.date(variant.as_of, f"{where}: as_of")
    if not variant.source.strip():
        raise InvalidInput("{where}: source is empty.", where=where)
    _check_published(variant.published, where)


def _check_changes(config: Mapping[str, Any], fields: Mapping[str, Any], where: str) -> None:
    if not fields:
        raise InvalidInput("{where} is empty: a variant names the fields that differ.", where=where)
    for field, value in fields.items():
        if _is_section(field, config, value):
            _check_changes(config[field], value, f"{where}.{field}")
        elif config.get(field) == value:
            raise InvalidInput(
                "{where}.{field} is what the file says already: {value}.",
                where=where,
                field=field,
                value=shown(value),
            )


def _check_count(count: int | str, where: str) -> None:
    right = re.fullmatch(r"\d{1,6}(\.\d{1,6})?[KMBT]", count) if isinstance(count, str) else 0 < count < LARGEST
    if not right:
        raise InvalidInput(
            "{where} must be a whole number, or a text such as 8.03B. Got {count}.", where=where, count=shown(count)
        )

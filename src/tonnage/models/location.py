"""Reads a model from a location - a folder, a repository - and chooses which of its files make the model."""

import re
from collections.abc import Iterable, Sequence

from tonnage.kernel.errors import InvalidInput, MissingDatum, Unreachable, shown
from tonnage.kernel.message import Message, listed
from tonnage.models import not_models
from tonnage.models.contents import Contents
from tonnage.models.formats import config_json, gguf, safetensors
from tonnage.models.places import Choice, Location
from tonnage.models.tensors import Tensor

LARGEST_INDEX = 64_000_000  # bytes of a model.safetensors.index.json; DeepSeek-V3's has 9 MB
_SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.(safetensors|gguf)")
_ASIDE = ("mmproj", "imatrix", "adapter_model", "training_args", "optimizer", "scheduler", "consolidated")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
MAX_SHARDS = 2_000


def read(location: Location, file: str | None = None) -> Contents:
    """The content of the headers and the config of the model at `location`."""
    choice = choose(location.names, file, location.label)
    contents = Contents(name=location.name, source=location.label, where=location.label)
    if choice.form == "gguf":
        _read_gguf(location, choice, contents)
        return contents
    not_models.refuse(location, file, choice)
    if choice.config:
        contents.where = f"{location.label}: {choice.config}"
        contents.fields = config_json.parse(location.small(choice.config, config_json.LARGEST), contents.where)
        _add_quantization(location, choice, contents)
    try:
        read_weights(location, choice, contents)
    except Unreachable as error:
        if contents.fields is None:
            raise
        contents.notes.append(
            Message(
                "The headers of the weights could not be read, so the counts come from the config alone: {error}",
                error=error,
            )
        )
    if contents.fields is None:
        if contents.tensors is None:
            raise not_models.nothing_there(location, choice.pickles)
        not_models.refuse_adapters_tensors(contents.tensors, contents.where)
    return contents


def read_weights(location: Location, choice: Choice, contents: Contents) -> None:
    """The tensors of the safetensors files, by their index where they have one."""
    shards: dict[str, str] | None = None
    files = choice.weights
    if choice.index:
        where = f"{location.label}: {choice.index}"
        shards = safetensors.parse_index(location.small(choice.index, LARGEST_INDEX), where)
        folder = choice.index.rpartition("/")[0]
        files = tuple(sorted({f"{folder}/{file}" if folder else file for file in shards.values()}))
    else:
        files = tuple(sorted({part for file in files for part in expected_shards(file)}))
    missing = sorted(set(files).difference(location.names))
    if missing:
        _lacks(location, choice, contents, missing, len(files))
        return
    if len(files) > MAX_SHARDS:
        raise InvalidInput(
            "{location} has {count:,} shards; more than {most_shards:,} are not read.",
            location=location.label,
            count=len(files),
            most_shards=MAX_SHARDS,
        )
    if files:
        contents.tensors = _joined(location, files, shards)
        contents.files = len(files)
    elif choice.pickles:
        contents.notes.append(
            "The weights are pickle files, which tonnage does not open; the counts come from the config."
        )


def _lacks(location: Location, choice: Choice, contents: Contents, missing: list[str], total: int) -> None:
    text = Message(
        "{location} lacks {count} of {total} weight files ({missing})",
        location=location.label,
        count=len(missing),
        total=total,
        missing=missing[0],
    )
    if contents.fields is None:
        raise MissingDatum("{text}, and has no config.json.", text=text)
    contents.notes.append(Message("{text}: the counts come from the config alone.", text=text))


def _joined(location: Location, files: Sequence[str], shards: dict[str, str] | None) -> list[Tensor]:
    """The tensors of all files; each may be in one file only."""

    read_so_far: list[int] = []  # tensors of each file; files may be read at the same time

    def header(item: str) -> list[Tensor]:
        number, _, name = item.partition(" ")
        opened = location.open(name)
        tensors = safetensors.read_header(opened.read, opened.size, f"{location.label}: {name}", int(number))
        read_so_far.append(len(tensors))
        _check_count(sum(read_so_far), location.label)
        return tensors

    by_name: dict[str, Tensor] = {}
    count = 0
    for tensors in location.read_each([f"{number} {name}" for number, name in enumerate(files)], header):
        count += len(tensors)
        by_name.update((tensor.name, tensor) for tensor in tensors)
    if not any(tensor.elements for tensor in by_name.values()):
        raise InvalidInput(
            "{location}: {files} holds no tensors, or empty ones alone.", location=location.label, files=files[0]
        )
    if count != len(by_name):
        raise InvalidInput(
            "{location}: {count} tensors are stored in two files.",
            location=location.label,
            count=count - len(by_name),
        )
    if shards is not None and (absent := next((name for name in shards if name not in by_name), None)) is not None:
        raise InvalidInput(
            "{location}: the index places {absent} in {shards}, which does not hold it.",
            location=location.label,
            absent=shown(absent),
            shards=shards[absent],
        )
    return list(by_name.values()) if shards is None else [tensor for name, tensor in by_name.items() if name in shards]


def _check_count(tensors: int, label: str) -> None:
    if tensors > safetensors.MAX_TENSORS:
        raise InvalidInput(
            "{label}: its files list more than {most_tensors:,} tensors.",
            label=label,
            most_tensors=safetensors.MAX_TENSORS,
        )


def _read_gguf(location: Location, choice: Choice, contents: Contents) -> None:
    from tonnage.models.formats.gguf_config import config_of, name_of

    read_so_far: list[int] = []

    def header(item: str) -> gguf.Header:
        number, _, name = item.partition(" ")
        opened = location.open(name)
        opened_header = gguf.read_header(opened.read, opened.size, f"{location.label}: {name}", int(number))
        read_so_far.append(len(opened_header.tensors))
        _check_count(sum(read_so_far), location.label)
        return opened_header

    headers = location.read_each([f"{number} {name}" for number, name in enumerate(choice.weights)], header)
    contents.where = f"{location.label}: {choice.weights[0]}"
    contents.form, contents.files = "gguf", len(headers)
    contents.tensors = [tensor for opened_header in headers for tensor in opened_header.tensors]
    if len({tensor.name for tensor in contents.tensors}) != len(contents.tensors):
        raise InvalidInput(
            "{location}: the parts of {weights} hold a tensor twice.",
            location=location.label,
            weights=choice.weights[0],
        )
    not_models.refuse_other_gguf(headers[0].metadata, contents.tensors, contents.where)
    contents.fields, notes = config_of(headers[0].metadata, contents.tensors, contents.where)
    contents.notes += notes
    contents.name = name_of(headers[0].metadata) or contents.name
    contents.source = contents.where


def _add_quantization(location: Location, choice: Choice, contents: Contents) -> None:
    """Add the quantisation that ModelOpt's older exports state in a file of their own."""
    fields = contents.fields or {}
    folder = (choice.config or "").rpartition("/")[0]
    name = f"{folder}/hf_quant_config.json" if folder else "hf_quant_config.json"
    if fields.get("quantization_config") is not None or name not in location.names:
        return
    extra = config_json.parse(location.small(name, config_json.LARGEST), f"{location.label}: {name}").get(
        "quantization"
    )
    if isinstance(extra, dict):
        contents.fields = {**fields, "quantization_config": {"quant_method": "modelopt", **extra}}


def choose(names: Sequence[str], file: str | None, label: str) -> Choice:
    """The files to read: `file` if it is set, else the safetensors of the top folder, else its one GGUF file."""
    if file and file not in names and not any(name.startswith(f"{file}/") for name in names):
        return _gguf_choice(names, file, label)
    if file and file in names and file.endswith(".gguf"):
        return Choice(form="gguf", weights=shards_of(file, names, label))
    folder = file if file and file not in names else (file or "").rpartition("/")[0]
    here = [name for name in names if name.rpartition("/")[0] == folder]
    chosen = _safetensors_choice(here, file)
    if not chosen.weights and not chosen.index and any(_is_gguf(name) for name in here):
        return _gguf_choice(here if folder else names, None, label)
    if not chosen.config and not chosen.weights and not chosen.index and any(_is_gguf(name) for name in names):
        return _gguf_choice(names, None, label)
    return chosen


def _safetensors_choice(here: list[str], file: str | None) -> Choice:
    base = {name.rpartition("/")[2]: name for name in here}
    adapter = base.get("adapter_config.json")
    config = base.get("config.json") or (
        file if file and file.endswith(".json") and not file.endswith("index.json") else None
    )
    pickles = any(name.endswith(_PICKLES) for name in here)
    if file and file.endswith(".safetensors") and not _SHARD.fullmatch(file):
        return Choice(config, None, (file,), adapter=adapter)
    indexes = [name for name in here if name.endswith(".safetensors.index.json")]
    single = base.get("model.safetensors") if file not in indexes else None
    index = (
        file
        if file in indexes
        else base.get("model.safetensors.index.json") or (indexes[0] if len(indexes) == 1 else None)
    )
    if single:  # transformers takes the one file before the shards
        return Choice(config, None, (single,), adapter=adapter)
    stored = [name for name in here if name.endswith(".safetensors") and "adapter_model" not in name]
    weights = tuple(sorted(name for name in stored if not _aside(name)) or sorted(stored))
    return Choice(config, index, weights, pickles=pickles, adapter=adapter)


def _gguf_choice(names: Sequence[str], wanted: str | None, label: str) -> Choice:
    """The one GGUF model among the names, or the one of the wanted quantisation."""
    ggufs = [name for name in names if _is_gguf(name)]
    firsts = [name for name in ggufs if not (shard := _SHARD.fullmatch(name)) or int(shard[2]) == 1]
    matching = [name for name in firsts if wanted is None or _has_tag(name, wanted)]
    if len(matching) > 1 and wanted is not None:
        matching = [name for name in matching if not re.search(rf"UD-{re.escape(wanted)}", name, re.I)] or matching
    if len(matching) == 1:
        return Choice(form="gguf", weights=shards_of(matching[0], names, label))
    if wanted is not None and not firsts:
        raise InvalidInput("{label} has no file or folder {wanted}.", label=label, wanted=shown(wanted))
    what = (
        Message("no GGUF file {wanted}", wanted=shown(wanted))
        if not matching
        else Message("{count} GGUF models", count=len(matching))
    )
    raise InvalidInput(
        "{label} has {what}. Say which with NAME:FILE: {some}.",
        label=label,
        what=what,
        some=_some(matching or firsts),
    )


def expected_shards(name: str) -> tuple[str, ...]:
    """The names of all files of a model that is split as -00001-of-00003, or the name alone."""
    shard = _SHARD.fullmatch(name)
    if not shard or int(shard[3]) < 2:
        return (name,)
    stem, total, ending = shard[1], int(shard[3]), shard[4]
    if total > MAX_SHARDS:
        raise InvalidInput(
            "{name} says that it is one of {total:,} files; more than {most_shards:,} are not read.",
            name=name,
            total=total,
            most_shards=MAX_SHARDS,
        )
    return tuple(f"{stem}-{number:05}-of-{total:05}.{ending}" for number in range(1, total + 1))


def shards_of(name: str, names: Iterable[str], label: str) -> tuple[str, ...]:
    """All shards that the file belongs to, or the file alone if it is complete; MissingDatum where some are missing."""
    wanted = expected_shards(name)
    missing = sorted(set(wanted).difference(names))
    if missing:
        raise MissingDatum(
            "{label} lacks {count} of the {count2} files of {name}: {some}.",
            label=label,
            count=len(missing),
            count2=len(wanted),
            name=name,
            some=_some(missing),
        )
    return wanted


def _is_gguf(name: str) -> bool:
    return name.endswith(".gguf") and not _aside(name)


def _aside(name: str) -> bool:
    """Whether a file is not the model's own weights: projectors, adapters, optimizer states, second copies."""
    return name.rpartition("/")[2].lower().startswith(_ASIDE) or "mmproj" in name.lower()


def _has_tag(name: str, tag: str) -> bool:
    return re.search(rf"(?:^|[-._/]){re.escape(tag)}(?=[-./]|$)", name.removesuffix(".gguf"), re.I) is not None


def _some(names: Sequence[str]) -> str:
    return listed(names[:12]) + (Message(" and {count} more", count=len(names) - 12) if len(names) > 12 else "")

"""Reads fields of a config.json: each with its type and range, each error with the name of the field."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, joined, listed, option_name

_REQUIRED: Any = object()
_NO_SIZES = frozenset({"architectures", "quantization_config", "compression_config"})
DIMENSIONS = "the dimensions given"  # where a model has no file: its fields are options, which have one name
LARGEST_SIZE = 2**34  # no width, vocabulary or context of this field comes near it
LARGEST_DEPTH = 20_000  # layers, and experts of a layer: ten times what anybody has built


def _lacks(where: str, names: tuple[str, ...]) -> str:
    if where == DIMENSIONS:
        return Message(
            "the dimensions given lack {names}, which decides the model's size.", names=option_name(names[0])
        )
    return Message("{where} lacks {names}, which decides the model's size.", where=where, names=joined(" or ", names))


class Config:
    """A config.json (or one of its sections) with checked access; names may be given with their historic aliases.

    `assumed` collects the fields that the config left out and the family's own default filled; `lookups`, if it is a
    dict, the fields that were read, each with the alias under which it was found.
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        where: str,
        assumed: dict[str, Any] | None = None,
        path: str = "",
        lookups: dict[str, str] | None = None,
    ):
        if not isinstance(fields, Mapping):
            raise InvalidInput("{where} must hold a JSON object. Got {fields}.", where=where, fields=shown(fields))
        self._fields = fields
        self.where = where
        self.assumed: dict[str, Any] = {} if assumed is None else assumed
        self.path = path  # of this section within the file, with a dot at its end: "vision_config."
        self.lookups = lookups

    @property
    def fields(self) -> Mapping[str, Any]:
        """All fields, unchecked."""
        return self._fields

    def __contains__(self, name: str) -> bool:
        return self._first_present((name,)) is not None

    def raw(self, name: str, default: Any = None) -> Any:
        """The field, unchecked."""
        self._first_present((name,))
        return self._fields.get(name, default)

    def size(self, *names: str, default: Any = _REQUIRED, smallest: int = 1, largest: int = LARGEST_SIZE) -> int:
        """A whole number within bounds. `default` may be None where the field may be absent."""
        name, value = self._find(names, default)
        number: Any = int(value) if isinstance(value, float) and value.is_integer() else value
        if number is not None and not (_plain(number, int) and smallest <= number <= largest):
            raise InvalidInput(
                "{where}: {name} must be a whole number from {smallest} to {largest}. Got {value}.",
                where=self.where,
                name=name,
                smallest=smallest,
                largest=largest,
                value=shown(value),
            )
        return number

    def depth(self, *names: str, default: Any = _REQUIRED, smallest: int = 1) -> int:
        """A number of layers or of experts."""
        return self.size(*names, default=default, smallest=smallest, largest=LARGEST_DEPTH)

    def number(self, *names: str, default: Any = _REQUIRED) -> float:
        """A finite number."""
        name, value = self._find(names, default)
        if value is not None and not (type(value) in (int, float) and abs(value) <= 1e30):
            raise InvalidInput(
                "{where}: {name} must be a finite number. Got {value}.",
                where=self.where,
                name=name,
                value=shown(value),
            )
        return value

    def flag(self, *names: str, default: Any = False) -> bool:
        """True or false."""
        name, value = self._find(names, default)
        if not isinstance(value, bool):
            raise InvalidInput(
                "{where}: {name} must be true or false. Got {value}.",
                where=self.where,
                name=name,
                value=shown(value),
            )
        return value

    def text(self, *names: str, default: Any = _REQUIRED) -> str:
        """A string."""
        name, value = self._find(names, default)
        if value is not None and not _plain(value, str):
            raise InvalidInput(
                "{where}: {name} must be a string. Got {value}.", where=self.where, name=name, value=shown(value)
            )
        return value

    def items(self, *names: str, default: Any = _REQUIRED, length: int | None = None) -> list[Any]:
        """A list, of `length` items if it is set."""
        name, value = self._find(names, default)
        if value is not None and not (isinstance(value, list | tuple) and len(value) <= LARGEST_DEPTH):
            raise InvalidInput(
                "{where}: {name} must be a list. Got {value}.", where=self.where, name=name, value=shown(value)
            )
        if value is not None and length is not None and len(value) != length:
            raise InvalidInput(
                "{where}: {name} must have {length} items, one for each layer. Got {count}.",
                where=self.where,
                name=name,
                length=length,
                count=len(value),
            )
        listed: Any = list(value) if isinstance(value, tuple) else value
        return listed

    def layers(self, *names: str, default: Any = _REQUIRED) -> frozenset[int]:
        """A list of numbers of layers."""
        layers = self.items(*names, default=default)
        if not all(_plain(layer, int) for layer in layers):
            raise InvalidInput(
                "{where}: {names} must hold numbers of layers. Got {given}.",
                where=self.where,
                names=names[0],
                given=shown(layers),
            )
        return frozenset(layers)

    def one_of(self, name: str, choices: Mapping[str, Any] | tuple[str, ...], default: Any = _REQUIRED) -> str:
        """A string among `choices`."""
        value = self.text(name, default=default)
        if value is not None and value not in choices:
            raise InvalidInput(
                "{where}: {name} must be one of {choices}. Got {value}.",
                where=self.where,
                name=name,
                choices=listed(choices),
                value=shown(value),
            )
        return value

    @overload
    def section(self, *names: str) -> "Config": ...

    @overload
    def section(self, *names: str, required: bool) -> "Config | None": ...

    def section(self, *names: str, required: bool = True) -> "Config | None":
        """A nested object: text_config, vision_config."""
        name = self._first_present(names)
        if name is not None:
            if not isinstance(self._fields[name], Mapping):
                raise InvalidInput(
                    "{where}: {name} must be an object. Got {found}.",
                    where=self.where,
                    name=name,
                    found=shown(self._fields[name]),
                )
            where, path = f"{self.where}: {name}", f"{self.path}{name}."
            return Config(self._fields[name], where, self.assumed, path, self.lookups)
        if required:
            raise InvalidInput("{where} lacks {names}.", where=self.where, names=joined(" or ", names))
        return None

    def absent_section(self, name: str) -> "Config":
        """An empty section, for one that the config leaves out."""
        return Config({}, self.where, self.assumed, f"{self.path}{name}.", self.lookups)

    def with_fields(self, fields: Mapping[str, Any]) -> "Config":
        """A copy of this part of the config with other fields."""
        return Config(fields, self.where, self.assumed, self.path, self.lookups)

    def with_defaults(self, defaults: Mapping[str, Any]) -> "Config":
        """The same config with the family's own defaults for absent fields; those used are noted in `assumed`."""
        return _Defaulted(self, defaults)

    def _default(self, names: tuple[str, ...]) -> Any:
        return _REQUIRED

    def _first_present(self, names: tuple[str, ...]) -> str | None:
        """The first of the names that the config has; None where it has none."""
        present = None
        for name in names:
            if self._fields.get(name) is not None:
                present = name
                break
        if self.lookups is not None:
            self._note(self.lookups, names, present)
        return present

    def _note(self, lookups: dict[str, str], names: tuple[str, ...], present: str | None) -> None:
        for name in names:
            here = f"{self.path}{name}"
            if name == present or lookups.get(here) != here:
                lookups[here] = here if present is None else f"{self.path}{present}"

    def _find(self, names: tuple[str, ...], default: Any) -> tuple[str, Any]:
        present = self._first_present(names)
        if present is not None:
            return present, self._fields[present]
        inherited = self._default(names)
        if inherited is not _REQUIRED:
            return names[0], inherited
        if default is _REQUIRED:
            raise InvalidInput(_lacks(self.where, names))
        return names[0], default


class _Defaulted(Config):
    _defaults: Mapping[str, Any]

    def __init__(self, config: Config, defaults: Mapping[str, Any]):
        super().__init__(config.fields, config.where, config.assumed, config.path, config.lookups)
        # later defaults rank below earlier ones: a wrapper's win over those of the family that it wraps
        self._defaults = {**defaults, **config._defaults} if isinstance(config, _Defaulted) else defaults

    def _default(self, names: tuple[str, ...]) -> Any:
        for name in names:
            if name in self._defaults:
                self.assumed[f"{self.path}{name}"] = self._defaults[name]
                return self._defaults[name]
        return _REQUIRED


def refuse_unread(config: Config, family: str, user_fields: Iterable[str]) -> None:
    """Raise InvalidInput for one of the user's fields (dotted, as in Config.lookups) that the family never read."""
    lookups = config.lookups or {}
    for path in user_fields:
        read_as = lookups.get(path)
        if read_as == path or (read_as is None and (_inside_whole(path, lookups) or _is_dropout(path))):
            continue
        where = f"{config.where}: {shown(path)}"
        if read_as is not None:
            raise InvalidInput(
                "{where} is not read, because {read_as} comes before it. Give {read_as}.",
                where=where,
                read_as=read_as,
            )
        near = Message(" The nearest that it reads is {nearest!r}.", nearest=_nearest(path, lookups))
        raise InvalidInput(
            "{where} is no field that the family {family} reads, so giving it changes nothing.{near}",
            where=where,
            family=family,
            near=near,
        )


def _is_dropout(path: str) -> bool:
    """Whether training reads the field, though no family does."""
    return path.rpartition(".")[2] in (*HIDDEN_DROPOUT, *ATTENTION_DROPOUT)


def _inside_whole(path: str, lookups: Mapping[str, str]) -> bool:
    """Whether a field is in an object that is read as a whole: quantization_config."""
    parent = path.rpartition(".")[0]
    return parent in lookups and not any(name.startswith(f"{parent}.") for name in lookups)


def _nearest(path: str, lookups: Iterable[str]) -> str:
    from difflib import SequenceMatcher

    name = path[:200].rpartition(".")[2]
    likeness = SequenceMatcher(b=name)

    def like(other: str) -> float:
        likeness.set_seq1(other.rpartition(".")[2])
        return likeness.ratio()

    return max((other for other in lookups if other not in _NO_SIZES), key=like, default="model_type")


def is_one_of(value: Any, known: Iterable[str]) -> bool:
    """Whether an item of a config's list is one of these names; it may be of any type."""
    return _plain(value, str) and value in known


def _plain(value: Any, kind: type) -> bool:
    """Whether a value is of exactly this type: true is not a number."""
    return type(value) is kind


# ---- The names of dropout fields in configs. No layer's size depends on dropout; the memory kept for backward does.

# GPT-2, GPT-NeoX and Falcon, BERT, BART, T5, GPT-Neo, StarCoder2 and Seed-OSS
HIDDEN_DROPOUT = (
    "resid_pdrop",
    "hidden_dropout",
    "hidden_dropout_prob",
    "dropout",
    "dropout_rate",
    "resid_dropout",
    "residual_dropout",
)
ATTENTION_DROPOUT = (
    "attn_pdrop",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attention_dropout_prob",
    "attn_dropout",
    "dropout_rate",
)


# ---- Checks a config's numbers that no family reads, since estimates read some of them from the config itself.
#
# A family checks the numbers that decide its weights (`Config.size`, `Config.number`).

LARGEST = 1e31  # any number: some files hold the model_max_length of a tokenizer without one, 1e30
ROTARY_SECTIONS = ("rope_scaling", "rope_parameters")
_FACTOR = (1e-6, 1e6)
_SIDE = (0, 2**20)  # pixels, or patches
ROTARY = {
    "factor": _FACTOR,
    "original_max_position_embeddings": (1, LARGEST_SIZE),
    "partial_rotary_factor": (0, 1),
    "rope_pct": (0, 1),
}
LANGUAGE = {
    "partial_rotary_factor": (0, 1),
    "rotary_pct": (0, 1),
    "rotary_emb_fraction": (0, 1),
    "rope_pct": (0, 1),
    "rotary_dim": (0, LARGEST_SIZE),
    "max_position_embeddings": (-1, LARGEST_SIZE),
    "head_dim": (0, LARGEST_SIZE),
    "qk_rope_head_dim": (0, LARGEST_SIZE),
    "hidden_size": (0, LARGEST_SIZE),
    "num_attention_heads": (0, LARGEST_SIZE),
    "n_embd": (0, LARGEST_SIZE),
    "n_head": (0, LARGEST_SIZE),
}
VISION = {
    "image_size": _SIDE,
    "patch_size": _SIDE,
    "spatial_merge_size": _SIDE,
    "merge_kernel_size": _SIDE,
    "temporal_patch_size": _SIDE,
}
# Numbers of any size, which estimates use only if they are numbers.
UNBOUNDED = (
    "attention_dropout",
    "initializer_range",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "norm_eps",
    "rms_norm_eps",
    "rope_theta",
    "rotary_emb_base",
    "sliding_window",
)
WHOLE_MODEL = {"mm_tokens_per_image": _SIDE}


def check_numbers(config: Config, language_parts: list[Config]) -> None:
    """Raise InvalidInput for a number out of any plausible range, or a rotary section without its numbers."""
    for path, value in _numbers(config.fields):
        if not abs(value) <= LARGEST and value not in (float("inf"), float("-inf")):  # time_step_limit may be infinite
            raise InvalidInput(
                "{where}: {path} is a number out of range. Got {value}.",
                where=config.where,
                path=path,
                value=shown(value),
            )
    _check_ranges(config.fields, WHOLE_MODEL, config.where)
    vision = config.fields.get("vision_config")
    if isinstance(vision, Mapping):
        _check_ranges(vision, VISION, f"{config.where}: vision_config")
    for part in language_parts:
        _check_ranges(part.fields, LANGUAGE, part.where)
        for name in UNBOUNDED:
            if isinstance(entry := part.fields.get(name), str):
                raise InvalidInput(
                    "{where}: {name} must be a finite number. Got {value}.",
                    where=part.where,
                    name=name,
                    value=shown(entry),
                )
        _check_rotary(part)


def _numbers(fields: Mapping[str, Any]) -> Iterator[tuple[str, int | float]]:
    """The numbers of a config with their dotted fields, without recursion."""
    waiting: list[tuple[str, Any]] = [("", fields)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend((f"{path}.{name}" if path else str(name), inner) for name, inner in value.items())
        elif isinstance(value, list | tuple):
            waiting.extend((path, inner) for inner in value)
        elif isinstance(value, int | float):
            yield path, value


def _check_ranges(fields: Mapping[str, Any], ranges: Mapping[str, tuple[float, float]], where: str) -> None:
    for name, (low, high) in ranges.items():
        entry = fields.get(name)
        for value in entry if isinstance(entry, list | tuple) else (entry,):
            if isinstance(value, str | bool):
                raise InvalidInput(
                    "{where}: {name} must be a number from {low:,} to {high:,}. Got {value}.",
                    where=where,
                    name=name,
                    low=low,
                    high=high,
                    value=shown(value),
                )
            if isinstance(value, int | float) and not low <= value <= high:
                raise InvalidInput(
                    "{where}: {name} must be from {low:,} to {high:,}. Got {value}.",
                    where=where,
                    name=name,
                    low=low,
                    high=high,
                    value=shown(value),
                )


def _check_rotary(part: Config) -> None:
    """Check the rotary sections; each kind of layer may have an object of its own."""
    for name in ROTARY_SECTIONS:
        section_fields = part.fields.get(name)  # read past Config.lookups: setting it changes no model
        if section_fields is None:
            continue
        if not isinstance(section_fields, Mapping):
            raise InvalidInput(
                "{where}: {name} must be an object. Got {found}.",
                where=part.where,
                name=name,
                found=shown(section_fields),
            )
        for rotary in (section_fields, *(inner for inner in section_fields.values() if isinstance(inner, Mapping))):
            section = Config(rotary, f"{part.where}: {name}")
            for number in ROTARY:
                section.number(number, default=None)
            _check_ranges(rotary, ROTARY, section.where)

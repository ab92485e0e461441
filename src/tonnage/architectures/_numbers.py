"""Checks a config's numbers that no family reads, since estimates read some of them from the config itself.

A family checks the numbers that decide its weights (`Config.size`, `Config.number`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.architectures._config import LARGEST_SIZE, Config
from tonnage.kernel.errors import InvalidInput, shown

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

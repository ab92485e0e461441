"""What a config says of its rotary positions: checked once, for estimates read it where no family does."""

from collections.abc import Mapping

from tonnage.architectures._config import Config
from tonnage.errors import InvalidInput, shown

SECTIONS = ("rope_scaling", "rope_parameters")
NUMBERS = ("factor", "original_max_position_embeddings", "partial_rotary_factor")


def check_rotary(config: Config) -> None:
    """InvalidInput where it is no object, or holds no number where one belongs. Each kind of layer may have an object of its own."""
    for name in SECTIONS:
        found = config.fields.get(name)  # not asked for: giving it changes no model
        if found is None:
            continue
        if not isinstance(found, Mapping):
            raise InvalidInput(f"{config.where}: {name} must be an object. Got {shown(found)}.")
        for each in (found, *(inner for inner in found.values() if isinstance(inner, Mapping))):
            section = Config(each, f"{config.where}: {name}")
            for number in NUMBERS:
                section.number(number, default=None)

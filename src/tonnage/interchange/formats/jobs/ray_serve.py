"""Ray Serve LLM: LLMConfig in YAML, alone or in a config of Serve."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.carriers import ray_serve
from tonnage.interchange.parts.launching.carried import read_carried
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import OR, listed

SIGNS = 30


def recognises(source: Source) -> int:
    return SIGNS if source.kind in ("yaml", "json") and ray_serve.is_config(source) else 0


def values(source: Source) -> dict[str, Any]:
    """Of the first model; the keys of Serve around it stand in front of its own."""
    configs = ray_serve.configs(source)
    if not configs:
        return {}
    own = flattened(configs[0], ray_serve.UNFLATTENED)
    return {**ray_serve.outer(source), **own}


def read(r: Reading) -> None:
    configs = ray_serve.configs(r.source)
    names = [ray_serve.model_of(one) or "?" for one in configs]
    if len(configs) != 1:
        raise InvalidInput(
            "{file} must have one model. Got {names}: give the LLMConfig of one.",
            file=r.source.name,
            names=listed(names, OR) or "none",
        )
    line = ray_serve.command(r)
    ray_serve.count(r)
    r.inside = ("ray-serve",)
    for key in [key for key in r.values if key.startswith("engine_kwargs.") or key == "engine_kwargs"]:
        del r.values[key]
    read_carried(r, ray_serve.commands_of_configs(r, line))
    ray_serve.classify(r)


FORMATS.add(
    "ray-serve",
    Format(
        name="ray-serve",
        tool="Ray Serve LLM",
        version="2.60",
        source="Ray, python/ray/llm/_internal/serve/core/configs/llm_config.py",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: ray_serve.KNOWN,
        verbs=("serve",),
    ),
)

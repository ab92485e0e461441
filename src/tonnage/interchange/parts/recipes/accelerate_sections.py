"""accelerate's own file and options, where a trainer is started with `accelerate launch`."""

from typing import Any

from tonnage.interchange.parts.hugging_face import accelerate_settings as accelerate
from tonnage.interchange.parts.hugging_face.keys import tree_of
from tonnage.interchange.parts.recipes.trainer_launches import PREFIX
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source

FILE = f"{PREFIX}config-file"
SHARDING = (*accelerate.KIND_KEYS, "use_parallelism_config", "mixed_precision")


def accelerate_values(source: Source, launch: dict[str, Any]) -> dict[str, Any]:
    """The keys of the file that a launch names; its own options are above them, and are taken out of `launch`."""
    values: dict[str, Any] = {}
    if isinstance(path := launch.get(FILE), str):
        file = source.sibling(path)
        values = flattened(tree_of(file))
        accelerate.put_deepspeed_file(values, file)
    for name in [name for name in launch if name.startswith(PREFIX)]:
        option = name.removeprefix(PREFIX).replace("-", "_")
        if option in (*SHARDING, *accelerate.ZERO) or option.startswith(tuple(accelerate.PREFIXES)):
            values[accelerate.key_of(option)] = launch.pop(name)
    return values


def read_accelerate(r: Reading) -> str:
    """Count the machines, and give the trainer accelerate's mixed precision. Returns how processes work together, ""
    where accelerate says nothing.
    """
    r.ignore([FILE])
    if not any(r.has(key) for key in SHARDING):
        return ""
    accelerate.count_machines(r)
    kind, mixed = accelerate.distribution(r), accelerate.mixed_precision(r)
    if mixed == "fp8":
        r.unsure("mixed_precision", "8 bits under this trainer are not estimated")
    elif mixed and not (r.has("bf16") or r.has("fp16")):
        r.values[mixed] = True
    r.put("precision", None, "mixed_precision")
    accelerate.read_rest(r, kind)
    return kind

"""The machine of a row: its GPU's text -> the catalogue's accelerator, or a plain one of the memory that the text
states.
"""

import re
from functools import cache

from rows.training.config import Config
from tonnage.catalogue import accelerator, accelerator_names, aliases
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.units import GIB
from tonnage.spec import Accelerator, Cluster, Memory

NAMES = ("gpu", "gpu_type", "gpu_name", "accelerator", "device", "hardware", "tpu", "chip")
COUNTS = ("gpus", "num_gpus", "n_gpus", "world_size", "accelerators", "devices", "chips")
NODES = ("nodes", "num_nodes", "n_nodes")
UNKNOWN = "an accelerator that is not named"
NODE_SIZE = 8
LARGEST = 10_000_000  # accelerators
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(gib|gb|g)\b")


def accelerator_of(config: Config) -> tuple[Accelerator, str]:
    """The row's accelerator, and what was assumed about it."""
    name, value = config.find(*NAMES)
    text = str(value).lower() if name else ""
    sizes = [float(size) for size, _ in _SIZE.findall(text)]
    found = accelerator_name(text) if text else None
    if found is None:
        return _plain(text, sizes)
    chip = accelerator(found)
    nominal = chip.memory.nominal_bytes / GIB
    if sizes and not any(abs(size - nominal) <= 0.08 * nominal for size in sizes):
        made = Memory(nominal_bytes=round(sizes[0] * GIB), kind=chip.memory.kind)
        return Accelerator(
            name=f"{chip.name} of {sizes[0]:g} GB",
            vendor=chip.vendor,
            kind=chip.kind,
            generation=chip.generation,
            memory=made,
            dense_flops=chip.dense_flops,
        ), f"the catalogue's {chip.name} with {sizes[0]:g} GB"
    return chip, ""


def is_known(chip: Accelerator) -> bool:
    """Whether the row says how much memory its accelerator has."""
    return chip.name != UNKNOWN


def cluster_of(config: Config, sizes: int) -> tuple[Cluster, str]:
    """The row's machine. `sizes` is the product of its parallel sizes, which counts where the row names no number."""
    chip, note = accelerator_of(config)
    count = config.size(*COUNTS) or sizes
    if count > LARGEST:
        raise InvalidInput(f"config: at most {LARGEST:,} accelerators are read. Got {count:,}.")
    nodes = config.size(*NODES)
    if nodes and count % nodes:
        raise InvalidInput(f"config: {count} accelerators are not dealt evenly over {nodes} nodes.")
    each = count // nodes if nodes else NODE_SIZE if count % NODE_SIZE == 0 else count
    return Cluster(accelerator=chip, num_nodes=count // each, accelerators_per_node=each), note


def _plain(text: str, sizes: list[float]) -> tuple[Accelerator, str]:
    """An accelerator that no catalogue knows: of the memory that the text states, where it does."""
    share = re.search(r"(\d+(?:\.\d+)?)\s*gi?b is (\d+(?:\.\d+)?)\s*% of", text)
    stated = max([*sizes, *([100 * float(share[1]) / float(share[2])] if share and float(share[2]) else [])], default=0)
    if text and not stated and "not named" not in text:
        raise InvalidInput(f"config.gpu names no accelerator of the catalogue and states no memory. Got {shown(text)}.")
    memory = Memory(nominal_bytes=round((stated or 80) * GIB))
    if stated:
        name = f"an accelerator of {stated:.1f} GiB"
        return Accelerator(
            name=name, vendor="NVIDIA", kind="gpu", generation="", memory=memory, dense_flops={}
        ), f"{name} is taken for the GPU"
    made = Accelerator(name=UNKNOWN, vendor="NVIDIA", kind="gpu", generation="", memory=memory, dense_flops={})
    return made, "the row names no GPU: one of NVIDIA's is taken, of any size"


def accelerator_name(text: str) -> str | None:
    """The catalogue's accelerator whose name or alias has most words of the text, the first in it where two have as
    many.
    """
    words = split_words(text)
    at: dict[str, int] = {}
    for index, word in enumerate(words):
        at.setdefault(word, index)
    best: tuple[int, int, str] | None = None
    for parts, name in _index():
        if all(part in at for part in parts):
            rank = (len(parts), -sum(at[part] for part in parts), name)
            if best is None or rank[:2] > best[:2]:
                best = rank
    return best[2] if best else None


@cache
def _index() -> tuple[tuple[tuple[str, ...], str], ...]:
    """Words of each name and alias, and the accelerator that it is. Numbers alone ("4090" aside) would match lengths
    and rates.
    """
    pairs = [(name, name) for name in accelerator_names()] + list(aliases("accelerators").items())
    made = ((tuple(split_words(alias)), name) for alias, name in pairs)
    return tuple((words, name) for words, name in made if any(not word.isdigit() or len(word) == 4 for word in words))


def split_words(text: str) -> list[str]:
    """ "H100 80 GB SXM" -> h100, 80gb, sxm; "8xH100" -> h100."""
    text = re.sub(r"(?<!\.)\b\d+\s*x\s*(?=[a-z])", " ", text.lower())
    text = re.sub(r"(\d)\s*(?:gib|gb|g)\b", r"\1gb ", text)
    return re.findall(r"[a-z0-9.]*[a-z0-9]", text)

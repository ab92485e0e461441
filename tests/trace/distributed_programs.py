"""A small Llama and what the tests of distributed programs ask of a recording."""

import math

from tonnage.trace.events import Events
from tonnage.trace.profiles import profile

PROFILE = profile("torch-2.13-h100")
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 136,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}
# Rows and columns of each weight by hand: table and head, then a layer's.
ENDS = [(136, 64), (136, 64), (64,)]
LAYER = [(64, 64), (32, 64), (32, 64), (64, 64), (96, 64), (96, 64), (64, 96), (64,), (64,)]
SHAPES = [*ENDS, *LAYER * 3]


def elements(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def padded(shape: tuple[int, ...], ranks: int) -> int:
    """Elements that FSDP2 keeps of a weight on each rank: equal shares of its rows, rounded up."""
    return -(-shape[0] // ranks) * math.prod(shape[1:])


def own(shape: tuple[int, ...], ranks: int, rank: int) -> int:
    """Elements of a weight that are truly a rank's."""
    share = -(-shape[0] // ranks)
    return max(min(share, shape[0] - rank * share), 0) * math.prod(shape[1:])


def live(events: Events, stage: str, category: str) -> int:
    """Bytes of a category, overlays apart, that are alive at the end of a stage."""
    position = next(mark.position for mark in events.marks if mark.name == stage)
    alive = (events.allocations[number] for number in events.live_at(position))
    return sum(each.bytes for each in alive if each.category == category and not each.overlay)


def peak(events: Events, start: int = 0, overlays: bool = False) -> int:
    """The most that is alive after event `start`, in blocks of 512 bytes, as PyTorch's trackers count."""
    now = most = 0
    for position, event in enumerate(events.order):
        made = events.allocations[event if event >= 0 else ~event]
        if made.overlay and not overlays:
            continue
        size = -(-made.bytes // 512) * 512
        now += size if event >= 0 else -size
        if position >= start:
            most = max(most, now)
    return most

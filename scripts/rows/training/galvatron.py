"""Hetu-Galvatron's memory profiler (core/profiler/runtime_profiler.py): states after backward, what forward leaves,
and the peak less the states, each of max_memory_allocated / 2^20. It profiles with fully sharded states, one layer
count at a time.
"""

from rows.training.config import Config
from rows.training.reader import Options, Reader


def options(c: Config) -> Options:
    return {} if c.has("zero", "zero_stage", "sdp", "sharding") else {"zero_stage": 3}


READER = Reader(
    name="Hetu-Galvatron",
    runtime="fsdp2",
    frameworks=r"galvatron",
    sources=r"hetu-galvatron",
    figure="beyond-states",
    activations="forward",
    options=options,
)

"""nanotron, as its scaling benchmarks ran it (scripts/scaling_benchmarks.py). Its table has max_memory_allocated and max_memory_reserved, each
divided by 2^30 (logging: "Mem Alloc (GB)", "Mem Res (GB)"); a figure that does not say which is taken for the former."""

from tonnage.validation._training._reader import Reader

READER = Reader(
    name="nanotron", runtime="nanotron", frameworks=r"nanotron|picotron", sources=r"nanotron|ultra-scale playbook"
)

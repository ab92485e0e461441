"""nanotron, as its scaling benchmarks ran it (scripts/scaling_benchmarks.py). Its table has max_memory_allocated and
max_memory_reserved, each divided by 2^30 (logging: "Mem Alloc (GB)", "Mem Res (GB)"); the plot of its runs does not say
which it shows, and lies above
what their tensors take: it is read as the latter."""

from rows.training.reader import Reader

READER = Reader(
    figure="reserved",
    name="nanotron",
    runtime="nanotron",
    frameworks=r"nanotron|picotron",
    sources=r"nanotron|ultra-scale playbook",
)

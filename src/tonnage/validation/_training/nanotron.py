"""nanotron, as its scaling benchmarks ran it (scripts/scaling_benchmarks.py). Whether its figure is allocated or reserved is not said:
trainer.py logs max_memory_allocated and max_memory_reserved, and the benchmark table took the former."""

from tonnage.validation._training._reader import Reader

READER = Reader(
    name="nanotron", runtime="nanotron", frameworks=r"nanotron|picotron", sources=r"nanotron|ultra-scale playbook"
)

"""Written by scripts/fit_bands.py from validation/train_memory.yaml: do not edit."""

from tonnage.estimate.bands import Band, Table

TRAIN_MEMORY = Table(
    all=Band(kind="all runtimes", low=0.9894, high=1.0922, rows=25, sources=5),
    runtimes={
        "megatron": Band(kind="megatron", low=0.9894, high=1.0922, rows=10, sources=1),
        "nanotron": Band(kind="nanotron", low=0.8916, high=1.2342, rows=109, sources=1),
    },
    vendors=("NVIDIA",),
    methods=("full", "lora", "qlora",),
)  # fmt: skip

"""Written by scripts/fit_rl.py from validation/recent: do not edit."""

from tonnage.estimate.bands import Band
from tonnage.estimate.post_training.overheads import Overheads

OVERHEADS = Overheads(
    pass_seconds=0.00285,
    ranks_seconds=4.84e-05,
    update_factors={"": 1.586, "deepspeed": 1.625, "fsdp2": 1.786, "megatron": 1.439},
    forward_factor=1.153,
    tensor_seconds=0.000758,
    host_bytes_per_second=3840000000.0,
    sources={
        "pass_seconds": "nemo-rl-0.3",
        "update_factors": "nemo-rl-0.3, openrlhf-2024, skyrl-2025, trl-async-lora",
        "forward_factor": "nemo-rl-0.3",
        "tensor_seconds": "nemo-rl-0.3, trl-weight-sync, verl-fully-async",
    },
)
BAND: Band | None = Band(
    low=0.6785,
    high=1.3217,
    rows=26,
    sources=5,
    runtime="rl",
    kind="step",
    only="",
    held=0.769,
)

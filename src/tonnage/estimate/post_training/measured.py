"""Written by scripts/fit_rl.py from validation/recent: do not edit."""

from tonnage.estimate.bands import Band
from tonnage.estimate.post_training.overheads import Overheads

OVERHEADS = Overheads(
    pass_seconds=0.00285,
    ranks_seconds=0.00388,
    update_factors={"": 1.477, "deepspeed": 1.389, "fsdp2": 1.524, "megatron": 1.317},
    forward_factor=1.153,
    tensor_seconds=0.00102,
    host_bytes_per_second=3900000000.0,
    sources={
        "pass_seconds": "nemo-rl-0.3",
        "update_factors": "nemo-rl-0.3, openrlhf-2024",
        "forward_factor": "nemo-rl-0.3",
        "tensor_seconds": "nemo-rl-0.3, verl-fully-async",
    },
)
BAND: Band | None = Band(
    low=0.6171,
    high=1.7417,
    rows=15,
    sources=3,
    runtime="rl",
    kind="step",
    only="",
    held=0.867,
)

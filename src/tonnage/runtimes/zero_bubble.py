"""Zero Bubble Pipeline Parallelism: the authors' Megatron-LM, whose pipelines split backward in two."""

from msgspec.structs import replace

from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import TRAINING_RUNTIMES

TRAINING_RUNTIMES.add(
    "zero-bubble",
    replace(
        training_runtime("megatron"),
        name="zero-bubble",
        version="zero-bubble-pipeline-parallelism of 2024",
        source="ZeroBubble, README.md: --enable-zero-bubble, --zero-bubble-max-pending-backward, "
        "--zero-bubble-v-schedule, --enable-optimizer-post-validation, estimated as megatron-core 0.19",
        schedules=("1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zbv"),
        listed=11,
        export="",
        takes_objectives=False,
        packs_completions=False,
        trains=("full",),
    ),
)

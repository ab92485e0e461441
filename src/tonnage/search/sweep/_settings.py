"""Which options are axes of which sort."""

from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import COLUMNS
from tonnage.estimate.serving.options import ServingOptions

FORMS = {"train": (TrainingOptions,), "serve": (ServingOptions, LoadOptions)}
# A pipeline's stages are a loop: plans of one array share them.
BLOCK_AXES = ("pipeline_parallel_size", "virtual_pipeline_size")
INNER = {"train": (*(name for name in COLUMNS if name not in BLOCK_AXES), "global_batch_size"), "serve": ()}
# What other options of a frontier would contradict, or would take it apart.
NOT_SWEPT = {
    "train": ("teacher",),
    "serve": (
        "concurrency",
        "request_rate",
        "trace",
        "ttft",
        "tpot",
        "simulate",
        "reserve_bytes",
        "percentile",
        "num_requests",
        "seed",
        "price_per_accelerator_hour",
    ),
}

"""Which options are axes of which sort."""

from tonnage.estimate.batch import COLUMNS
from tonnage.estimate.load_options import LoadOptions
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.training_options import TrainingOptions

FORMS = {"train": (TrainingOptions,), "serve": (ServingOptions, LoadOptions)}
# A pipeline's stages are a loop: plans of one array share them.
BLOCK_AXES = ("pipeline_parallel_size", "virtual_pipeline_size")
INNER = {
    "train": (*(name for name in COLUMNS if name not in BLOCK_AXES), "global_batch_size"),
    "serve": (),
}
# What other options of a frontier would contradict, or would take it apart.
NOT_SWEPT = {
    "train": ("teacher",),
    "serve": ("concurrency", "request_rate", "trace", "ttft", "tpot", "simulate", "reserve_bytes", "percentile", "num_requests", "seed",
              "price_per_accelerator_hour"),
}  # fmt: skip

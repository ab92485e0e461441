"""PyTorch DistributedDataParallel: every rank keeps everything, and gradients once more in flat buckets."""

from msgspec.structs import replace

from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import ALWAYS, TRAINING_RUNTIMES, Bucket

TRAINING_RUNTIMES.add(
    "ddp",
    replace(
        training_runtime("transformers"),
        name="ddp",
        version="torch 2.13",
        source="PyTorch, torch/nn/parallel/distributed.py: gradient_as_bucket_view is False by default",
        buckets=(Bucket(name="gradient buckets", copy="gradient", stages=(0,), moments=ALWAYS),),
        gradients_persist=False,
        listed=4,
        on_several=None,
        launch_program=(
            "options of TrainingArguments of transformers' Trainer, which torchrun starts with one process an "
            "accelerator."
        ),
        trl_config="multi_gpu",
    ),
)

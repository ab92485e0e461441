"""Unsloth on its own: gradient checkpointing "unsloth" (full, offloaded), LoRA on all linear layers of rank 16 as in
its notebooks.
"""

from rows.training.config import Config
from rows.training.reader import LENGTH, METHOD, MICRO, RECOMPUTE, Options, Reader, is_4_bit


def options(c: Config) -> Options:
    text = " ".join(c.text(name) for name in METHOD)
    made: Options = {"lora_rank": c.size("lora_rank", "lora_r") or 16, "attention": "flash"}
    if not c.has("lora_targets"):
        made["lora_targets"] = "all-linear"
    if not c.has(*RECOMPUTE):
        made["recompute"] = "full"
    if is_4_bit(text):
        made["method"] = "qlora"
    if not c.has(*MICRO):
        made["micro_batch_size"] = 1
    if not c.has(*LENGTH):
        made["sequence_length"] = 2048  # max_seq_length of the notebooks
    return made | {"optimizer": "adamw-8bit"} if not c.has("optimizer") else made


READER = Reader(
    name="Unsloth",
    runtime="unsloth",
    frameworks=r"unsloth",
    sources=r"unsloth\.ai|unslothai",
    figure="process",
    plain_16_bit="true",
    options=options,
)

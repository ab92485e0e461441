"""The QLoRA paper (arXiv 2305.14314): NF4 with double quantisation, paged AdamW, LoRA of rank 64 on all linear
layers, sequences of 512 tokens, one at a time, with gradient checkpointing (its scripts/finetune*.sh).
"""

from rows.training.config import Config
from rows.training.reader import LENGTH, MICRO, RECOMPUTE, Options, Reader


def options(c: Config) -> Options:
    made: Options = {
        "method": "qlora",
        "lora_rank": c.size("lora_rank", "lora_r") or 64,
        "lora_targets": "all-linear",
        # qlora.py: after prepare_model_for_kbit_training embedding and head are turned to bf16 again
        "upcast_base": False,
        "precision": "bf16",
    }
    if not c.has("optimizer"):
        made["optimizer"] = "paged-adamw"
    if not c.has(*RECOMPUTE):
        made["recompute"] = "full"
    if not c.has(*MICRO):
        made["micro_batch_size"] = 1
    if not c.has(*LENGTH):
        made["sequence_length"] = 512
    return made


READER = Reader(
    name="QLoRA",
    runtime="transformers",
    frameworks=r"\bqlora\b",
    sources=r"2305\.14314|artidoro/qlora",
    figure="process",
    options=options,
)

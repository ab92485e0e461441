"""Hugging Face PEFT's own examples on Accelerate (examples/conditional_generation): weights in fp32, eight short
sequences, LoRA of rank 8 on queries and values; with DeepSpeed: ZeRO-3 with parameters and optimizer on the host.
"""

from rows.training.config import Config
from rows.training.reader import LENGTH, METHOD, MICRO, PRECISION, Options, Reader


def options(c: Config) -> Options:
    text = " ".join(c.text(name) for name in METHOD)
    made: Options = (
        {"lora_rank": c.size("lora_rank", "lora_r") or 8, "lora_targets": c.text("lora_targets") or "q_proj,v_proj"}
        if "lora" in text
        else {}
    )
    if "deepspeed" in text:
        made |= {"runtime": "deepspeed", "zero_stage": 3}
        if "offload" in text:
            made |= {"offload_optimizer": "cpu", "offload_parameters": "cpu"}
    if not c.has(*PRECISION):
        made["precision"] = "fp32"  # no mixed precision is set
    if not c.has(*MICRO):
        made["micro_batch_size"] = 8  # batch_size = 8
    if not c.has(*LENGTH):
        made["sequence_length"] = 64  # max_length = 64
    return made


READER = Reader(
    name="PEFT",
    runtime="transformers",
    frameworks=r"\bpeft\b",
    sources=r"huggingface/peft",
    figure="process",
    options=options,
)

"""torchtune: recipes/configs/*.yaml. Peaks are max_memory_allocated in GiB (training/memory.py: get_memory_stats)."""

from rows.training.config import Config
from rows.training.reader import METHOD, MICRO, RECOMPUTE, Options, Reader

# recipes/configs/llama3_1/8B_lora_single_device.yaml: lora_rank, lora_attn_modules and apply_lora_to_mlp, as they were
# in 0.3.1, whose
# README was the first to have the table that these rows come from
RANK, TARGETS = 8, "q_proj,v_proj"
# That README has two lines for a method, on cards of 24 and of 48 GB, and the same work: what differs is the configs'
# one switch for it.
# It does not say so; 18.9 and 37.4 GiB are with checkpointing and without.
LARGER_CARDS = ("a6000",)


def options(c: Config) -> Options:
    text = " ".join(c.text(name) for name in METHOD)
    single = (c.size("gpus", "num_gpus") or 1) == 1
    made: Options = {
        "zero_stage": 0 if single else 3,
        "loss": "chunked",
    }  # modules/loss: LinearCrossEntropyLoss, in eight parts
    if not c.has(*RECOMPUTE):
        without = single and any(card in c.text("gpu", "gpu_type", "hardware") for card in LARGER_CARDS)
        made["recompute"] = "none" if without else "full"  # enable_activation_checkpointing: True
    if not c.has(*MICRO):
        made["micro_batch_size"] = 2  # batch_size: 2
    if "lora" in text or "dora" in text:
        made |= {"lora_rank": c.size("lora_rank", "lora_r") or RANK, "lora_targets": TARGETS}
    elif not c.has("optimizer"):
        paged = single or "paged" in text  # the single-device recipes of full fine-tuning
        made |= {
            "optimizer": "paged-adamw-8bit" if paged else "adamw",
            "optimizer_in_backward": single or "in-bwd" in text,
        }
    return made


READER = Reader(
    name="torchtune",
    runtime="torchtune",
    frameworks=r"torchtune",
    sources=r"pytorch/torchtune",
    plain_16_bit="true",
    options=options,
)

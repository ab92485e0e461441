"""LitGPT's resource tables: finetune scripts print max_memory_allocated / 1e9; LoRA of rank 8 on queries and values,
with dropout 0.05 (litgpt/finetune/lora.py).
"""

import re

from rows.training.config import Config
from rows.training.reader import METHOD, Options, Reader, is_4_bit
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.units import GB

VERSIONS = "litgpt 0.4, bitsandbytes 0.42"  # pyproject.toml of 0.4.0: bitsandbytes==0.42.0
RANK, TARGETS = 8, "q_proj,v_proj"


def options(c: Config) -> Options:
    text = " ".join(c.text(name) for name in METHOD)
    adapter = re.search(r"adapter(_v2)?", text)
    if adapter:
        raise MissingDatum(f"method {adapter[0]} is not estimated yet")
    made: Options = {"zero_stage": 3 if (c.size("gpus", "num_gpus", "devices") or 1) > 1 else 0}
    if "lora" in text:
        made |= {
            "method": "qlora" if is_4_bit(text) else "lora",
            "lora_rank": c.size("lora_rank", "lora_r") or RANK,
            "lora_targets": TARGETS,
            "lora_dropout": True,
        }
        if is_4_bit(text):
            made["base_weights"] = "nf4-double" if "-dq" in text else "nf4"
    if not c.has("version", "runtime_version"):
        made["runtime_version"] = VERSIONS
    return made


READER = Reader(
    name="LitGPT",
    runtime="litgpt",
    frameworks=r"litgpt|lit-gpt",
    sources=r"lightning-ai/litgpt",
    gigabyte=GB,
    plain_16_bit="true",
    options=options,
)

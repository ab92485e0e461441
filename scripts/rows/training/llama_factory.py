"""LLaMA-Factory: its Trainer, or Unsloth's; "impl" says which, how attention runs, and how the base is stored.
How the wiki measured is not said: its figures are taken for what nvidia-smi shows, in 10^9 bytes."""

from rows.training.config import Config
from rows.training.reader import RECOMPUTE, Options, Reader, is_4_bit
from tonnage.kernel.units import GB

VERSIONS = "transformers 4.39, bitsandbytes 0.43, unsloth 2024.4"  # of April 2024, when the wiki's table was made


def options(c: Config) -> Options:
    how = c.text("impl", "implementation", "backend")
    text = f"{how} {c.text('quant', 'quantization', 'quantization_bit')}"
    made: Options = {"runtime": "unsloth" if "unsloth" in how else "transformers"}
    if not c.has(*RECOMPUTE):
        made["recompute"] = "full"  # model/model_utils/checkpointing.py: on unless disable_gradient_checkpointing
    made["method"] = "qlora" if is_4_bit(text) or text.strip() == "4" else "full" if "full" in text else "lora"
    if "freeze" in text:
        made["method"] = "freeze"
    if made["method"] == "qlora":
        made["upcast_base"] = (
            # model/model_utils/checkpointing.py: prepare_model_for_training upcasts norms only, and where
            # upcast_layernorm asks
            False
        )
    if made["method"] in ("lora", "qlora"):
        made |= {"lora_rank": c.size("lora_rank") or 8}  # hparams/finetuning_args.py: lora_rank 8, lora_target all
        if not c.has("lora_targets", "lora_target"):
            made["lora_targets"] = "all-linear"
    if "fa2" in how or "unsloth" in how:
        made["attention"] = "flash"
    elif how:
        made["attention"] = "eager"  # model/patcher.py of 0.6: sdpa only from 0.7 on, where flash_attn is "auto"
    if not c.has("precision", "dtype"):
        made["precision"] = (
            # bf16: autocast; a frozen base is in 16 bits, and what trains is cast to fp32 (model/adapter.py)
            "bf16-mixed"
        )
    if not c.has("version", "runtime_version"):
        made["runtime_version"] = VERSIONS
    return made


READER = Reader(
    name="LLaMA-Factory",
    runtime="transformers",
    frameworks=r"llama-?_?factory",
    sources=r"llama-?factory",
    figure="process",
    gigabyte=GB,
    options=options,
)

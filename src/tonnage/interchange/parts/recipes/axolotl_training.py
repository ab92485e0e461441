"""What axolotl's keys of adapters, numbers, batches and kernels mean."""

from tonnage.interchange.parts.hugging_face.machines import expands_segments
from tonnage.interchange.parts.hugging_face.trainer_names import put_attention, put_targets
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer
from tonnage.interchange.parts.recipes.axolotl_sharding import FSDP1
from tonnage.interchange.parts.recipes.trainer_options import (
    ADAPTERS,
    DEEPSPEED,
    PLAIN,
    put_chunked_loss,
    put_liger,
)
from tonnage.interchange.reading import Reading
from tonnage.kernel.message import Message
from tonnage.runtimes.parts.tools import AXOLOTL

FUSED = "axolotl's fused adapters, which need less memory than is estimated"


def read_method(r: Reading) -> None:
    four, eight = r.flag("load_in_4bit"), r.flag("load_in_8bit")
    adapter = r.text("adapter")
    if adapter not in ("", "lora", "qlora"):
        r.unsure("adapter", "adapters of this kind are not estimated: LoRA is")
        adapter = "lora"
    if not adapter:
        if four or eight:
            raise r.wrong("load_in_4bit" if four else "load_in_8bit", "false without an adapter, as axolotl has it")
        r.put("method", "full", "adapter")
        r.ignore(["load_in_4bit", "load_in_8bit", "lora_r", "lora_dropout", "lora_target_modules"])
        r.ignore(["lora_target_linear", "peft_use_dora"], why="belongs to an adapter")
        return
    dora = r.flag("peft_use_dora")
    r.put("method", "dora" if dora else "qlora" if four else "lora", "adapter", "load_in_4bit")
    r.put("method", None, "peft_use_dora")
    if eight and four:
        raise r.wrong("load_in_8bit", "false with load_in_4bit")
    if four:
        r.put("base_weights", "nf4-double", "load_in_4bit")
    elif eight:
        r.put("base_weights", "int8", "load_in_8bit")
    r.ignore(["load_in_4bit", "load_in_8bit"])
    if r.has("lora_r"):
        r.put("lora_rank", r.integer("lora_r"), "lora_r")
    if r.flag("lora_target_linear"):
        r.put("lora_targets", "all-linear", "lora_target_linear")
        r.ignore(["lora_target_modules"])
    elif r.has("lora_target_modules"):
        put_targets(r, "lora_target_modules", ("all-linear",))
    r.ignore(["lora_target_linear"])
    r.put("lora_dropout", True if r.number("lora_dropout") else None, "lora_dropout")
    kernels = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel", "lora_embedding_kernel")
    if not (eight or r.flag("trust_remote_code") or r.has("rl") or any(r.has(key) for key in kernels)):
        r.assume("lora_mlp_kernel", True, why=FUSED)
        r.notes.append("axolotl's fused kernels of adapters are not estimated: the run needs somewhat less memory.")


def _autocast(r: Reading) -> tuple[bool, bool]:
    """Whether autocast is in bf16, and whether it is in fp16. axolotl 0.21, utils/config/__init__.py."""
    brain, half = r.get("bf16", "auto"), r.flag("fp16")
    return (not half if brain in ("auto", None) else brain == "full" or r.flag("bf16")), half


def batches_of(r: Reading) -> Trainer:
    """What fills in what a config of DeepSpeed leaves "auto"."""
    micro = r.integer("micro_batch_size", 1)
    steps = r.integer("gradient_accumulation_steps", 1)
    if r.has("batch_size") and not r.has("gradient_accumulation_steps") and micro > 0:
        steps = r.integer("batch_size") // micro
    is_brain, half = _autocast(r)
    return Trainer(micro_batch_size=micro, accumulation=steps, precision="bf16" if is_brain else "fp16" if half else "")


def read_precision(r: Reading, sharded: str) -> None:
    """axolotl 0.21, utils/config/__init__.py: resolve_dtype. Weights are loaded in the type of autocast, and no copy
    in fp32 is made but DeepSpeed's and FSDP1's (accelerate, accelerator.py): axolotl has a prepare_model of FSDP2 of
    its own (monkeypatch/accelerate/fsdp2.py).
    """
    is_brain, half = _autocast(r)
    trains_all = r.question.get("method") not in ADAPTERS
    r.assume("bf16", "auto", "")
    if sharded == DEEPSPEED and (is_brain or half):
        recipe = r.question["precision"]
    elif r.flag("bfloat16") and not r.has("bf16"):
        recipe = "bf16"
    elif r.flag("float16") and not (is_brain or half):
        recipe = "fp16"
    elif is_brain or half:
        kind = "bf16" if is_brain else "fp16"
        recipe = kind if trains_all and sharded != FSDP1 else f"{kind}-mixed"
    else:
        recipe = "tf32" if r.get("tf32", "auto") == "auto" or r.flag("tf32") else "fp32"
    r.put("precision", recipe, "bf16", "fp16", "bfloat16", "float16")
    r.ignore(["tf32", "float32"])


def read_batch(r: Reading) -> None:
    if not r.has("sequence_len"):
        r.assume("sequence_len", AXOLOTL.sequence_length, "sequence_length")
    else:
        r.put("sequence_length", r.integer("sequence_len"), "sequence_len")
    micro = r.positive("micro_batch_size")
    r.assume("micro_batch_size", AXOLOTL.micro_batch_size, "micro_batch_size")
    r.put("micro_batch_size", micro, "micro_batch_size")
    if r.has("gradient_accumulation_steps") or not r.has("batch_size"):
        r.assume("gradient_accumulation_steps", 1, "num_microbatches")
        if r.has("gradient_accumulation_steps"):
            r.put("num_microbatches", r.integer("gradient_accumulation_steps"), "gradient_accumulation_steps")
        r.ignore(["batch_size"])
    else:
        total = r.integer("batch_size")
        if total < micro or total % micro:
            raise r.wrong("batch_size", Message("a multiple of micro_batch_size {micro}", micro=micro))
        r.put("num_microbatches", total // micro, "batch_size")
    steps = r.integer("max_steps")
    r.put("max_steps", steps if steps > 0 else None, "max_steps")
    for key, own in (("eval_batch_size", micro), ("eval_sequence_len", r.integer("sequence_len", 512))):
        if r.has(key) and r.integer(key) > own:
            r.unsure(key, "evaluation with more tokens at a time than training is not estimated")
        r.ignore([key])
    if r.has("dataloader_num_workers"):
        r.put("data_loader_workers", r.integer("dataloader_num_workers"), "dataloader_num_workers")


def read_activations(r: Reading) -> None:
    how, offload = r.get("gradient_checkpointing", False), r.get("activation_offloading", False)
    places = {"offload": "cpu", "offload_disk": "nvme"}
    wrapped = "fsdp_config.activation_checkpointing"
    saves = (isinstance(how, str) and how in places) or bool(r.flag("gradient_checkpointing")) or r.flag(wrapped)
    r.put("recompute", "full" if saves else "none", "gradient_checkpointing", wrapped)
    if isinstance(how, str) and how in places:
        r.put("offload_activations", places[how], "gradient_checkpointing")
    words = {"legacy": "cpu", "hidden_states": "cpu", "disk": "nvme"}
    if isinstance(offload, str) and offload in words:
        r.put("offload_activations", words[offload], "activation_offloading")
    elif r.flag("activation_offloading"):
        r.put("offload_activations", "cpu", "activation_offloading")
    r.ignore(["activation_offloading", "gradient_checkpointing_kwargs"])


def read_kernels(r: Reading, sharded: str) -> None:
    put_attention(r, "attn_implementation", "sdpa")
    if r.flag("sample_packing") and r.integer("context_parallel_size", 1) > 1:
        r.unsure("sample_packing", "packed sequences that context ranks share are estimated as one long sequence")
    elif r.flag("sample_packing"):
        r.put("packing", True, "sample_packing")
    r.ignore(["sample_packing"])
    plugins = r.get("plugins", [])
    names = [plugins] if isinstance(plugins, str) else plugins
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise r.wrong("plugins", "a list of names")
    others = [name for name in names if not any(part in name.lower() for part in ("liger", "cutcrossentropy"))]
    if others:
        r.unsure("plugins", "plugins other than those of Liger and cut cross entropy are not read")
    else:
        r.ignore(["plugins"])
    cuts = r.flag("cut_cross_entropy", default=any("cutcrossentropy" in name.lower() for name in names))
    parts = ("liger_rope", "liger_rms_norm", "liger_glu_activation")
    on = [key for key in (*parts, "liger_cross_entropy", "liger_fused_linear_cross_entropy") if r.flag(key)]
    in_parts = ["cut_cross_entropy" if r.has("cut_cross_entropy") else "plugins"] if cuts else []
    fused = "liger_fused_linear_cross_entropy"
    in_parts += [fused] if fused in on else []
    all_parts = bool(in_parts) and all(key in on for key in parts)
    if all_parts and sharded == PLAIN:
        put_liger(r, [*on, *in_parts], all_kernels=True)
    else:
        put_liger(r, [key for key in on if key != fused], all_kernels=False)
        if in_parts:
            put_chunked_loss(r, *in_parts)
    r.ignore(["cut_cross_entropy", *parts, "liger_cross_entropy", fused])
    expands = expands_segments(r)
    if expands is not None and sharded != DEEPSPEED:
        r.put("expandable_segments", expands)

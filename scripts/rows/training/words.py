"""Words of sources -> the names that TrainingOptions has. Each function takes a text in small letters and gives None
for what is not said.
"""

import re

# Beginnings of the texts that name an optimizer, the longest first.
OPTIMIZERS = (
    ("paged.?adamw.?8", "paged-adamw-8bit"),
    ("paged.?adamw.?32|paged.?adamw", "paged-adamw"),
    ("8.?bit.?adam|adamw?.?8.?bit", "adamw-8bit"),
    ("adafactor", "adafactor"),
    ("muon", "muon"),
    ("lion", "lion"),
    ("adam.?mini", "adam-mini"),
    ("galore", "galore-adamw"),
    ("apollo", "apollo"),
    ("sophia", "sophia"),
    ("adagrad", "adagrad"),
    ("adam", "adamw"),
    ("sgd.*momentum", "sgd-momentum"),
    ("sgd", "sgd"),
)
# Precisions below 16 bits, in which the matrix products run.
EIGHT = re.compile(r"fp8|float8|mxfp8|nvfp4|fp4|e4m3")


def recompute(text: str) -> str | None:
    """none, selective, selective-op, memory-budget or full."""
    if text in ("true", "on", "yes"):
        return "full"
    if text in ("false", "off", "no") or re.match(r"none\b|no recomput|minimal_offloaded$", text):
        return "none"
    if "budget" in text:
        return "memory-budget"
    if re.search(r"per.?op|\(op\)|selective.?op|\bsac\b", text):
        return "selective-op"
    if re.search(r"selective|(?<![a-z])sel(?![a-z])|seqsel|core.attn", text):
        return "selective"
    if re.search(r"full|remat|block|uniform|checkpointing", text):
        return "full"
    return None


def attention(text: str) -> str | None:
    if re.search(r"flash|fa[123]\b|fa-?[23]|cudnn|xformers|memory.efficient", text):
        return "flash"
    if "sdpa" in text:
        return "sdpa"
    return "eager" if re.search(r"eager|math|unfused|no flash|^none$|^torch$|core", text) else None


def optimizer(text: str) -> str | None:
    return next((name for pattern, name in OPTIMIZERS if re.search(pattern, text)), None)


def optimizer_implementation(text: str) -> str | None:
    found = re.search(r"\b(fused|foreach|for.?loop)\b", text)
    return found[1].replace("_", "-").replace("for loop", "for-loop") if found else None


def precision(text: str, plain: str) -> str | None:
    """The training recipe. `plain` is what a bare "bf16" means in this source: "mixed" (with an fp32 master copy) or
    "true".
    """
    if not text:
        return None
    for width in ("bf16", "fp16"):
        if width in text or text.startswith({"bf16": "bfloat16", "fp16": "float16"}[width]):
            mixed = re.search(r"mixed|amp|fp32 master|master|16\+", text)
            pure = re.search(r"true|pure", text)
            return f"{width}-mixed" if mixed or (plain == "mixed" and not pure) else width
    if re.match(r"(fp32|float32|32)", text):
        return "fp32"
    return "bf16-mixed" if EIGHT.search(text) else None


def eight_bit(text: str) -> str | None:
    """How narrow products are scaled: none, tensorwise, rowwise, mxfp8 or nvfp4; None where nothing is said."""
    if not text:
        return None
    for blocks in ("mxfp8", "nvfp4"):
        if blocks in text:
            return blocks
    if "row" in text:
        return "rowwise"
    return "tensorwise" if EIGHT.search(text) or text == "true" else "none"


def schedule(text: str) -> str | None:
    if not text:
        return None
    if re.search(r"interleaved.?zero.?bubble", text):
        return "interleaved-zero-bubble"
    for word in ("zbv", "dualpipev", "dualpipe"):
        if word in text:
            return word
    if re.search(r"zero.?bubble|zb1p|zb-?h1", text):
        return "zb-h1"
    if "interleaved" in text:
        return "interleaved-1f1b"
    return "gpipe" if "gpipe" in text else "1f1b" if "1f1b" in text else None


def method(text: str) -> str | None:
    """What trains: full, lora, dora, qlora, freeze, or an adapter of another kind."""
    for word in ("qlora", "dora", "lora", "freeze", "adapter_v2", "adapter"):
        if word in text:
            return word
    return "full" if re.search(r"full|pre-?train|sft", text) else None


def base_weights(text: str) -> str | None:
    """The type in which bitsandbytes stores a base; None for one that it does not quantise."""
    if re.search(r"int8|8.?bit", text):
        return "int8"
    found = re.search(r"(nf4|fp4)(.?double)?", text)
    return f"{found[1]}-double" if found and found[2] else found[1] if found else None


def objective(text: str) -> str | None:
    for word in ("dpo", "grpo", "ppo", "distillation"):
        if word in text:
            return word
    return "sft" if re.search(r"sft|fine.?tun", text) else None


def sharding(text: str) -> int | None:
    """The ZeRO stage that FSDP's names of its strategies stand for, or that is written out ("ZeRO-1")."""
    for name, stage in (
        ("full_shard", 3),
        ("shard_grad_op", 2),
        ("no_shard", 0),
        ("hybrid_shard", 3),
        ("_hybrid_shard_zero2", 2),
    ):
        if name in text:
            return stage
    found = re.search(r"\b(?:zero|stage)?[ -]?([0-3])\b", text)
    return int(found[1]) if found else None


def offload(text: str, default: str = "cpu") -> str | None:
    if not text:
        return None
    return "nvme" if "nvme" in text else "none" if text in ("false", "no", "none", "off") else default


def lora_targets(text: str) -> str | None:
    """all-linear, or the matrices by name, as in "q_proj,v_proj"."""
    if not text:
        return None
    if re.search(r"\ball\b", text):
        return "all-linear"
    return ",".join(re.findall(r"[a-z_]*(?:proj|linear|[qkvo]\b)[a-z_]*", text)) or None

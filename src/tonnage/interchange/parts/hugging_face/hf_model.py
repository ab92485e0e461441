"""The model, its weights' type, its kernels and its adapters, as scripts of transformers, TRL and PEFT name them.

Sources: TRL 1.16, trl/trainer/model_config.py; PEFT 0.21, peft/utils/constants.py; transformers 5.24,
transformers/modeling_utils.py: from_pretrained.
"""

from tonnage.interchange.parts.hugging_face.keys import default_of, expect
from tonnage.interchange.parts.hugging_face.trainer_names import ATTENTION, FLEX, NO_KERNEL, put_targets
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.kernel.message import Message
from tonnage.runtimes.parts.rl_tools import TRL as TOOL
from tonnage.runtimes.parts.tools import TARGETS

TRL = ("TRL", "1.16")
RENAMED = {
    "model_init_kwargs.dtype": "dtype",
    "model_init_kwargs.torch_dtype": "dtype",
    "model_init_kwargs.attn_implementation": "attn_implementation",
    "torch_dtype": "dtype",
    "model_name": "model_name_or_path",
    "use_lora": "use_peft",
    "use_peft_lora": "use_peft",
    "peft_lora_r": "lora_r",
    "lora_rank": "lora_r",
    "lora_target": "lora_target_modules",
    "use_4bit_quantization": "load_in_4bit",
    "use_8bit_quantization": "load_in_8bit",
    "use_nested_quant": "use_bnb_nested_quant",
    "bnb_4bit_use_double_quant": "use_bnb_nested_quant",
    "q_lora": "load_in_4bit",
}
HARMLESS = names(
    "model_revision trust_remote_code lora_alpha use_rslora lora_task_type bnb_4bit_quant_storage "
    "bnb_4bit_quant_storage_dtype bnb_4bit_compute_dtype tokenizer_name tokenizer_name_or_path config_name cache_dir "
    "use_fast_tokenizer token use_auth_token low_cpu_mem_usage model_init_kwargs model_init_kwargs.use_cache "
    "lora_weight_path lora_bias model_init_kwargs.trust_remote_code"
)
KEYS = names(
    "model_name_or_path dtype attn_implementation use_flash_attn use_peft lora_r lora_dropout lora_target_modules "
    "lora_target_parameters lora_modules_to_save use_dora load_in_8bit load_in_4bit bnb_4bit_quant_type "
    "use_bnb_nested_quant"
)
DTYPES = {
    "float32": "fp32",
    "fp32": "fp32",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "half": "fp16",
    "float": "fp32",
}


def rename(r: Reading) -> None:
    r.rename(RENAMED)


def read_model(r: Reading) -> None:
    """The model, and the kernel of its attention."""
    key = "model_name_or_path"
    if r.has(key):
        r.put("model", r.text(key).rstrip("/"), key)
    if r.has("attn_implementation"):
        name = r.text("attn_implementation").partition("@")[0]
        kernel = ATTENTION.get(name.removeprefix("paged|"))
        if "flash-attn" in name or "flash-attention" in name or "flash_attn" in name:
            kernel = "flash"
        if kernel:
            r.put("attention", kernel, "attn_implementation", why=FLEX if name == "flex_attention" else "")
        else:
            r.unsure("attn_implementation", NO_KERNEL)
    elif r.has("use_flash_attn"):
        r.put("attention", "flash" if r.flag("use_flash_attn") else None, "use_flash_attn")
    r.ignore(HARMLESS)


def read_precision(r: Reading, flag: str, mixed: str, loads: str, why: str) -> None:
    """The recipe. `flag`: of the training arguments, `mixed`: of the launcher, both bf16, fp16 or ""; `loads`: the type
    that weights are loaded in where `dtype` is not there, `why` so.
    """
    compute = flag or mixed
    keys = [key for key in ("bf16", "fp16") if flag and r.has(key)] or (["mixed_precision"] if mixed else [])
    casts = r.question["runtime"] in ("deepspeed", "fsdp2")  # whose master weights are fp32 in any case
    named = r.text("dtype", loads).removeprefix("torch.").lower()
    if not (r.has("dtype") or casts):
        r.assume("dtype", loads, why=why)
    width = DTYPES.get(named, "16 bits")
    is_full = r.question.get("method", "full") == "full"
    if width == "fp32" or (casts and compute):
        recipe = f"{compute}-mixed" if compute else "fp32"
    else:
        own = (compute or "bf16") if width == "16 bits" else width
        recipe = own if is_full and not casts else f"{own}-mixed"
    r.put("precision", recipe, *keys, "dtype")
    r.put("precision", recipe, *(key for key in ("bf16", "fp16") if r.has(key)))
    r.origins["precision"] = tuple(dict.fromkeys(r.original_name(key) for key in (*keys, "dtype") if r.has(key)))
    r.ignore(["bf16", "fp16"])


def read_adapters(r: Reading, *, is_trl: bool) -> None:
    """LoRA, DoRA and quantised bases. `is_trl`: defaults of TRL's ModelConfig count."""
    quantised = _base(r)
    if not (r.has("use_peft") and r.flag("use_peft")):
        if quantised:
            r.unsure(quantised, "a quantised model trains with adapters alone: use_peft is not on")
        r.ignore(KEYS[4:], why="no adapters train")
        return
    method = "qlora" if quantised == "load_in_4bit" else "lora"
    keys = [key for key in ("use_peft", quantised) if key]
    if r.has("use_dora") and r.flag("use_dora"):
        r.put("method", "dora", *keys, "use_dora")
    else:
        r.put("method", method, *keys)
    r.ignore(["use_dora"])
    why = default_of(*TRL) if is_trl else default_of("PEFT", "0.21")
    rank = TOOL.lora_rank if is_trl else 8
    if r.has("lora_r"):
        r.put("lora_rank", r.integer("lora_r"), "lora_r")
    else:
        r.assume("lora_r", rank, "lora_rank", why=why)
    if r.has("lora_dropout"):
        r.put("lora_dropout", r.number("lora_dropout") > 0, "lora_dropout")
    else:
        r.assume("lora_dropout", 0.05 if is_trl else 0.0, "lora_dropout", why=why)
        r.question["lora_dropout"] = is_trl and TOOL.lora_dropout
    _targets(r)
    expect(r, ["lora_modules_to_save"], "", [], why="modules that train whole beside adapters are not estimated")
    expect(r, ["lora_target_parameters"], "", [], why="adapters on parameters of experts are not estimated")


def _base(r: Reading) -> str:
    """The key that quantises the base; "" where none does."""
    four = r.has("load_in_4bit") and r.flag("load_in_4bit")
    eight = r.has("load_in_8bit") and r.flag("load_in_8bit")
    if not (four or eight):
        r.ignore(["load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type", "use_bnb_nested_quant"])
        return ""
    if eight and not four:
        r.put("base_weights", "int8", "load_in_8bit")
        r.ignore(["load_in_4bit", "bnb_4bit_quant_type", "use_bnb_nested_quant"])
        return "load_in_8bit"
    kind = r.choice("bnb_4bit_quant_type", {"nf4": "nf4", "fp4": "fp4"}, "nf4")
    double = r.has("use_bnb_nested_quant") and r.flag("use_bnb_nested_quant")
    keys = ("load_in_4bit", "bnb_4bit_quant_type", "use_bnb_nested_quant")
    r.put("base_weights", f"{kind}-double" if double else kind, *keys)
    r.ignore(["load_in_8bit"])
    return "load_in_4bit"


def _targets(r: Reading) -> None:
    key = "lora_target_modules"
    if r.has(key):
        put_targets(r, key)
        return
    model = (r.asker.model or str(r.question.get("model", ""))).lower()
    targets_of_family = next(targets for words, targets in TARGETS if any(word in model for word in words))
    why = default_of("PEFT", "0.21")
    if targets_of_family == "all-linear":
        why = "PEFT 0.21 has no default for this model: all are estimated"
    r.assume(key, targets_of_family, "lora_targets", why=why)


def read_base(r: Reading, loads: str, reason: str, *, is_trl: bool) -> None:
    """The type of the weights that adapters stand beside. `loads`: where `dtype` is not there, `reason` so. Products
    with 4-bit weights compute in the type of `dtype` (TRL, trainer/utils.py: get_quantization_config), and TRL's
    trainers leave norms, embedding and head in it.
    """
    named = r.text("dtype", loads).removeprefix("torch.").lower()
    base = str(r.question.get("base_weights", ""))
    if DTYPES.get(named) != "fp32" or "mixed" not in str(r.question.get("precision", "")):
        if is_trl and base and r.question["runtime"] in ("transformers", "ddp"):
            key = "load_in_4bit" if base.startswith(("nf4", "fp4")) else "load_in_8bit"
            r.put("upcast_base", False, key, why="TRL leaves norms, embedding and head as they were loaded")
        return
    if base.startswith(("nf4", "fp4")):
        why = "bitsandbytes computes in the type of dtype: fp32 takes more memory and time than is estimated"
    elif not base and r.question.get("method") in ("lora", "dora") and r.question["runtime"] in ("transformers", "ddp"):
        if r.has("dtype"):
            r.put("base_weights", "fp32", "dtype")
        else:
            r.assume("dtype", named, "base_weights", why=reason)
            r.question["base_weights"] = "fp32"
        return
    elif not base and r.question.get("method") in ("lora", "dora") and r.question["runtime"] != "deepspeed":
        why = "frozen weights in fp32 are estimated with ddp and transformers alone: 16 bits are"
    else:
        return
    has_type = r.has("dtype")
    r.values["dtype"] = named
    r.unsure("dtype", why if has_type else Message("{default}: {why}", default=default_of(*TRL), why=why))

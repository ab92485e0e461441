"""Names of optimizers, attention and adapted layers that transformers' Trainer and trainers built on it have."""

import re
from collections.abc import Iterable

from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import nearest

# Names of optimizers -> (ours, torch's implementation where torch has several). transformers 5.24,
# training_args.py: OptimizerNames; axolotl 0.21, utils/schemas/enums.py: CustomSupportedOptimizers.
OPTIMIZERS: dict[str, tuple[str, str]] = {
    "adamw_torch": ("adamw", "foreach"),
    "adamw_torch_fused": ("adamw", "fused"),
    "adamw_hf": ("adamw", "for-loop"),
    "adamw_apex_fused": ("adamw", ""),
    "adamw_torch_npu_fused": ("adamw", ""),
    "stable_adamw": ("adamw", ""),
    "schedule_free_adamw": ("adamw", ""),
    "schedule_free_radam": ("adamw", ""),
    "schedule_free_sgd": ("sgd-momentum", ""),
    "adamw_anyprecision": ("adamw-bf16", ""),
    "adamw_torch_8bit": ("adamw-8bit-torchao", ""),
    "adamw_torch_4bit": ("adamw-4bit-torchao", ""),
    "ao_adamw_8bit": ("adamw-8bit-torchao", ""),
    "ao_adamw_4bit": ("adamw-4bit-torchao", ""),
    "ao_adamw_fp8": ("adamw-fp8-torchao", ""),
    "adamw_bnb_8bit": ("adamw-8bit", ""),
    "adamw_8bit": ("adamw-8bit", ""),
    "paged_adamw_32bit": ("paged-adamw", ""),
    "paged_adamw": ("paged-adamw", ""),
    "paged_adamw_8bit": ("paged-adamw-8bit", ""),
    "lion_32bit": ("lion-fp32", ""),
    "lion_8bit": ("lion-8bit", ""),
    "paged_lion_32bit": ("paged-lion", ""),
    "paged_lion_8bit": ("paged-lion-8bit", ""),
    "adafactor": ("adafactor", ""),
    "sgd": ("sgd", ""),
    "adagrad": ("adagrad", ""),
    "rmsprop": ("rmsprop", ""),
    "rmsprop_bnb": ("rmsprop", ""),
    "rmsprop_bnb_32bit": ("rmsprop", ""),
    "ademamix": ("ademamix", ""),
    "galore_adamw": ("galore-adamw", ""),
    "galore_adamw_8bit": ("galore-8bit", ""),
    "apollo_adamw": ("apollo", ""),
    "came_pytorch": ("came", ""),
    "muon": ("muon", ""),
}
# Optimizers of trainers that are not estimated.
OTHER_OPTIMIZERS = frozenset(
    names(
        """
        adamw_torch_xla ademamix_8bit paged_ademamix_32bit paged_ademamix_8bit rmsprop_bnb_8bit galore_adafactor
        galore_adamw_layerwise galore_adamw_8bit_layerwise galore_adafactor_layerwise lomo adalomo grokadamw
        apollo_adamw_layerwise flash_adamw flash_adam flash_sgd flash_sgdw flash_lion optimi_adamw
        adopt_adamw adamc muon_8bit dion sinkgd polora scao q_galore_adamw8bit
        """
    )
)
UNKNOWN_STATES = "the states of this optimizer are not known: AdamW's are estimated"
# Names of attention -> ours.
ATTENTION = {
    "eager": "eager",
    "disabled": "eager",
    "sdpa": "sdpa",
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "flash_attention_4": "flash",
    "flash_attention_torch": "flash",
    "flash_attn": "flash",
    "fa2": "flash",
    "fa3": "flash",
    "kernels-community/flash-attn2": "flash",
    "kernels-community/flash-attn3": "flash",
    "kernels-community/vllm-flash-attn3": "flash",
    "xformers": "efficient",
    "flex_attention": "flash",
}
NO_KERNEL = "this attention kernel is not estimated: that of the runtime is"
FLEX = "FlexAttention keeps for backward what flash attention keeps"
OTHER_ATTENTION = ("sage", "fp8", "varlen", "kernels-community/sage-attention")


def put_optimizer(r: Reading, key: str, default: str) -> None:
    """The optimizer by a trainer's name; a config of DeepSpeed that names one is stronger."""
    if not r.has(key):
        name, kind = OPTIMIZERS[default]
        if "optimizer" not in r.question:
            r.assume(key, default, "optimizer")
            r.question["optimizer"] = name
            r.put("optimizer_implementation", kind)
        return
    text = r.text(key)
    if text.startswith("OptimizerNames."):
        text = text.removeprefix("OptimizerNames.").lower()
    if text in OPTIMIZERS:
        name, kind = OPTIMIZERS[text]
        stronger = r.question.get("optimizer")
        r.put("optimizer", stronger or name, key)
        if not stronger:
            r.put("optimizer_implementation", kind, key)
    elif text in OTHER_OPTIMIZERS:
        r.unsure(key, UNKNOWN_STATES)
    else:
        raise unknown_value(r, key, text, (*OPTIMIZERS, *OTHER_OPTIMIZERS))


def put_attention(r: Reading, key: str, default: str) -> None:
    """The attention kernel by a trainer's name."""
    if not r.has(key) or r.is_auto(key):
        if r.has(key):
            r.put("attention", default, key)
        else:
            r.assume(key, default, "attention")
        return
    name = r.text(key).partition("@")[0].partition(":")[0].strip()
    if name in ATTENTION:
        r.put("attention", ATTENTION[name], key, why=FLEX if name == "flex_attention" else "")
    elif name in OTHER_ATTENTION or "/" in name:
        r.unsure(key, NO_KERNEL)
    else:
        raise unknown_value(r, key, name, (*ATTENTION, *OTHER_ATTENTION))


def put_targets(r: Reading, key: str, everything: Iterable[str] = ("all-linear", "all")) -> None:
    """Layers with adapters: names in a list or a text; `everything`: words for all linear layers."""
    targets = r.get(key)
    texts = [targets] if isinstance(targets, str) else targets
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise r.wrong(key, "a list of names of layers")
    layers = [name.rpartition(".")[2] for text in texts for name in re.split(r"[\s,\[\]'\"]+", text) if name]
    if not layers:
        raise r.wrong(key, "a list of names of layers")
    if any(name in everything for name in layers):
        r.put("lora_targets", "all-linear", key)
    elif all(name.replace("_", "").isalnum() for name in layers):
        r.put("lora_targets", ",".join(dict.fromkeys(layers)), key)
    else:
        r.unsure(key, "a pattern of names: adapters beside all linear layers are estimated")
        r.put("lora_targets", "all-linear")


def unknown_value(r: Reading, key: str, value: str, known: Iterable[str]) -> InvalidInput:
    names_there = tuple(known)
    near = nearest(value, names_there) or list(names_there)
    return r.wrong(key, Message("one of {names}", names=listed(near[:8])))

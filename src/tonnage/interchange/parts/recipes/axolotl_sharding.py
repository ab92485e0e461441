"""How axolotl's files say what shards over accelerators."""

from typing import Any

from tonnage.interchange.parts.hugging_face import accelerate_settings as accelerate
from tonnage.interchange.parts.hugging_face.fsdp_arguments import words_of
from tonnage.interchange.parts.hugging_face.fsdp_settings import STRATEGIES, read_fsdp
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer
from tonnage.interchange.parts.recipes.shipped_deepspeed import AXOLOTL, read_deepspeed
from tonnage.interchange.parts.recipes.trainer_arguments import sharding_of
from tonnage.interchange.parts.recipes.trainer_options import DEEPSPEED, FSDP, put_parallel
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput

FSDP1 = "fsdp1"
SECTION = "fsdp_config."
OWN_HARMLESS = ("cpu_offload_pin_memory", "final_state_dict_type", "backward_prefetch_policy")
NEEDS_FSDP = "estimated under FSDP alone: one rank holds all of it here"


def read_sharding(r: Reading, kind: str, zero: Trainer) -> str:
    """The runtime: DeepSpeed, FSDP, or what one accelerator and DDP do. `kind`: how processes work together by
    accelerate's own file; `zero`: what fills in what a config of DeepSpeed leaves "auto".
    """
    named = r.get("fsdp")
    if not (named is None or isinstance(named, str) or _are_texts(named)):
        raise r.wrong("fsdp", "a list such as [full_shard, auto_wrap]")
    if r.has("deepspeed"):
        read_deepspeed(r, AXOLOTL, zero)
        r.ignore([SECTION, "fsdp", "fsdp_version"], why="DeepSpeed is stronger")
        return DEEPSPEED
    if r.under(SECTION) or named:
        return _fsdp(r, words_of(named or []), kind)
    accelerate.read_distribution(r, kind)
    if kind == "DEEPSPEED":
        accelerate.read_deepspeed(r, zero)
    r.ignore(["fsdp_version"])
    return sharding_of(r)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _fsdp(r: Reading, words: list[str], kind: str) -> str:
    """FSDP, or FSDP1: the default until 0.19, and of accelerate; it turns weights that train to fp32."""
    usual = 1 if r.version.startswith("0.1") or kind == "FSDP" else 2
    is_first = r.integer("fsdp_version", usual) == 1
    reshard, strategy = f"{SECTION}reshard_after_forward", f"{SECTION}sharding_strategy"
    if is_first and r.text(reshard).upper() in STRATEGIES:
        r.rename({reshard: strategy})  # FSDP1 has its strategy under this name too
    if "offload" in words:
        r.values.setdefault(f"{SECTION}offload_params", True)
    if "shard_grad_op" in words:
        name, value = (strategy, "SHARD_GRAD_OP") if is_first else (reshard, False)
        r.values.setdefault(name, value)
    r.needs_default(f"{SECTION}mixed_precision_policy", "bf16", "fp16", why="another mixed precision of FSDP")
    r.ignore(f"{SECTION}{name}" for name in OWN_HARMLESS)
    read_fsdp(r, SECTION, ("axolotl", r.version), usual, {}, version_key="fsdp_version")
    r.put("runtime", r.question["runtime"], "fsdp")
    return FSDP1 if is_first and sharding_of(r) == FSDP else sharding_of(r)


def read_ranks(r: Reading) -> None:
    put_parallel(
        r,
        {
            "tensor_parallel_size": "tensor_parallel_size",
            "context_parallel_size": "context_parallel_size",
            "expert_parallel_size": "expert_parallel_size",
            "dp_replicate_size": "replicate_size",
        },
        NEEDS_FSDP,
    )
    if not r.has("dp_shard_size"):
        return
    sizes = {key: r.integer(key, 1) for key in ("dp_shard_size", "dp_replicate_size", "tensor_parallel_size")}
    sizes["context_parallel_size"] = r.integer("context_parallel_size", 1)
    product = 1
    for size in sizes.values():
        product *= size
    if product != r.num_accelerators:
        raise InvalidInput(
            "{file}: {names} multiply to {product}, of {count} accelerators.",
            file=r.source.name,
            names=" x ".join(f"{name} {size}" for name, size in sizes.items()),
            product=product,
            count=r.num_accelerators,
        )
    r.put("replicate_size", None, "dp_shard_size")

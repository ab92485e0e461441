"""FSDP as accelerate's config and TrainingArguments have it, versions 1 and 2.

Sources: accelerate 1.15, accelerate/utils/dataclasses.py: FullyShardedDataParallelPlugin; transformers 5.24,
transformers/training_args.py: _process_fsdp_args.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.hugging_face.keys import default_of, expect
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.kernel.message import Message

# The name of a strategy, or its number.
_KINDS = {
    "FULL_SHARD": "full",
    "SHARD_GRAD_OP": "gradients",
    "NO_SHARD": "none",
    "HYBRID_SHARD": "hybrid",
    "HYBRID_SHARD_ZERO2": "hybrid gradients",
}
STRATEGIES = {
    **_KINDS,
    **{name.lower(): kind for name, kind in _KINDS.items()},
    **{str(number): kind for number, kind in enumerate(_KINDS.values(), 1)},
    "_HYBRID_SHARD_ZERO2": "hybrid gradients",
}
ONE = "FSDP1 is estimated as FSDP2: its flat parameters and what it gathers ahead take somewhat more memory"
HARMLESS = names(
    "state_dict_type use_orig_params sync_module_states transformer_layer_cls_to_wrap min_num_params "
    "limit_all_gathers xla xla_fsdp_v2 xla_fsdp_grad_ckpt mixed_precision_policy"
)
KEYS = names(
    "version reshard_after_forward sharding_strategy offload_params cpu_offload activation_checkpointing "
    "activation_checkpointing_offload cpu_ram_efficient_loading auto_wrap_policy backward_prefetch forward_prefetch "
    "ignored_modules"
)


def read_fsdp(
    r: Reading, at: str, tool: tuple[str, str], version: int, defaults: Mapping[str, Any], version_key: str = ""
) -> None:
    """The settings. `at`: what stands before their names; `tool`, `version`, `defaults`: whose defaults they have, the
    version of FSDP among them, and the values; `version_key`: that of the version, where it stands elsewhere.
    """
    why = default_of(*tool)
    one = version_key or f"{at}version"
    if r.has(one):
        version = r.integer(one)
        if version not in (1, 2):
            raise r.wrong(one, "1 or 2")
        r.put("runtime", "fsdp2", one, why=ONE if version == 1 else "")
    else:
        r.assume(
            one, version, "runtime", why=Message("{default}: {one}", default=why, one=ONE) if version == 1 else why
        )
        r.question["runtime"] = "fsdp2"
    if version == 1:
        r.notes.append(ONE)
    r.put("model_code", "transformers")
    _strategy(r, at, version, why)
    _offload(r, at)
    if r.has(f"{at}activation_checkpointing") and r.flag(f"{at}activation_checkpointing"):
        r.put("recompute", "full", f"{at}activation_checkpointing")
    r.ignore([f"{at}activation_checkpointing"])
    key = f"{at}activation_checkpointing_offload"
    if r.has(key) and r.flag(key):
        r.put("offload_activations", "cpu", key)
    r.ignore([key])
    _loading(r, at, bool(defaults.get("cpu_ram_efficient_loading", True)), why)
    _units(r, f"{at}auto_wrap_policy")
    expect(r, [f"{at}forward_prefetch"], False, True, why="what is gathered ahead is not known")
    expect(r, [f"{at}backward_prefetch"], *PREFETCH, why="what is gathered ahead is not known")
    expect(r, [f"{at}ignored_modules"], "", why="weights that are not sharded are not estimated")
    r.ignore([f"{at}{name}" for name in HARMLESS])


PREFETCH = ("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH", "backward_pre", "backward_post", "no_prefetch", 1, 2, 3)


def _strategy(r: Reading, at: str, version: int, why: str) -> None:
    """What is sharded. FSDP2 has `reshard_after_forward`; FSDP1 goes by `sharding_strategy` (accelerator.py)."""
    reshard, strategy = f"{at}reshard_after_forward", f"{at}sharding_strategy"
    if version == 2:
        r.ignore([strategy], why="counts in FSDP1 alone")
        if not r.has(reshard):
            r.assume(reshard, True, why=why)
        r.put("zero_stage", 3 if not r.has(reshard) or r.flag(reshard) else 2, reshard)
        return
    kind = str(r.choice(strategy, STRATEGIES, "full")) if r.has(strategy) else "full"
    if not r.has(strategy):
        r.assume(strategy, "FULL_SHARD", why=why)
    if r.has(reshard) and STRATEGIES.get(r.text(reshard), STRATEGIES.get(r.text(reshard).upper())) != kind:
        r.notes.append(
            Message("{key} changes nothing in FSDP1: sharding_strategy counts.", key=r.original_name(reshard))
        )
    r.ignore([reshard], why="FSDP1 goes by sharding_strategy")
    if kind == "none":
        r.put("runtime", "ddp", strategy, why="NO_SHARD is DistributedDataParallel")
        r.question.pop("model_code", None)
        return
    r.put("zero_stage", 2 if "gradients" in kind else 3, strategy)
    if "hybrid" in kind:
        from tonnage.catalogue import cluster

        r.put("replicate_size", cluster(r.on).num_nodes, strategy, why="nodes shard on their own")


def _offload(r: Reading, at: str) -> None:
    for key in (f"{at}offload_params", f"{at}cpu_offload"):
        if r.has(key) and r.flag(key):
            r.put("offload_parameters", "cpu", key)
            r.put("offload_optimizer", "cpu", key)
        r.ignore([key])


def _loading(r: Reading, at: str, usual: bool, why: str) -> None:
    key = f"{at}cpu_ram_efficient_loading"
    if (r.flag(key) if r.has(key) else usual) or r.num_accelerators == 1:
        r.ignore([key])
    elif r.has(key):
        r.unsure(key, "each rank holds all weights in host memory while it loads, which is not estimated")
    else:
        r.assume(key, False, why=Message("{default}: each rank loads all weights to host memory", default=why))


def _units(r: Reading, key: str) -> None:
    """What is gathered together: a layer, as is estimated, or as many parameters as min_num_params says."""
    if r.has(key) and r.text(key).upper() not in ("TRANSFORMER_BASED_WRAP", "0"):
        r.unsure(key, "other units than a layer each are not estimated")
    r.ignore([key])

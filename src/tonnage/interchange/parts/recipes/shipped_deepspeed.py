"""DeepSpeed configs that tools ship, and the one that a file names or holds."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from tonnage.interchange.parts.hugging_face.keys import tree_of
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer
from tonnage.interchange.parts.hugging_face.zero_settings import read_zero
from tonnage.interchange.reading import AUTO, Reading, flattened
from tonnage.interchange.source import text_source
from tonnage.kernel.errors import InvalidInput

KEY = "deepspeed"
_CAREFUL = {"contiguous_gradients": True, "overlap_comm": True, "reduce_bucket_size": AUTO}
_STAGE_3 = {
    **_CAREFUL,
    "stage3_prefetch_bucket_size": AUTO,
    "stage3_param_persistence_threshold": AUTO,
    "stage3_gather_16bit_weights_on_model_save": True,
}
_AXOLOTL_3 = {**_STAGE_3, "sub_group_size": 0, "stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 0}
_PLAIN_3 = {
    **_STAGE_3,
    "overlap_comm": False,
    "sub_group_size": 1e9,
    "stage3_max_live_parameters": 1e9,
    "stage3_max_reuse_distance": 1e9,
}
_HOST = {"device": "cpu"}


def _buckets(size: float) -> dict[str, Any]:
    return {
        "allgather_bucket_size": size,
        "reduce_bucket_size": size,
        "overlap_comm": False,
        "contiguous_gradients": True,
    }


# Files that tools ship or that their examples name: the sections that decide. axolotl, deepspeed_configs;
# LLaMA-Factory, examples/deepspeed; ms-swift 4.6, swift/config.
AXOLOTL: dict[str, Mapping[str, Any]] = {
    "zero1.json": {"stage": 1, "overlap_comm": True},
    "zero2.json": {"stage": 2, "offload_optimizer": _HOST, "contiguous_gradients": True, "overlap_comm": True},
    "zero3.json": {"stage": 3, **_AXOLOTL_3},
    "zero3_bf16.json": {"stage": 3, **_AXOLOTL_3},
    "zero3_bf16_cpuoffload_all.json": {
        "stage": 3,
        "offload_optimizer": _HOST,
        "offload_param": _HOST,
        **_AXOLOTL_3,
    },
    "zero3_bf16_cpuoffload_params.json": {"stage": 3, "offload_param": _HOST, **_AXOLOTL_3},
}
LLAMA_FACTORY: dict[str, Mapping[str, Any]] = {
    "ds_z0_config.json": {"stage": 0, **_buckets(5e8)},
    "ds_z2_config.json": {"stage": 2, **_buckets(5e8)},
    "ds_z2_offload_config.json": {"stage": 2, "offload_optimizer": _HOST, **_buckets(5e8)},
    "ds_z3_config.json": {"stage": 3, **_PLAIN_3},
    "ds_z3_offload_config.json": {"stage": 3, "offload_optimizer": _HOST, "offload_param": _HOST, **_PLAIN_3},
}
MS_SWIFT: dict[str, Mapping[str, Any]] = {
    "zero0": {"stage": 0, **_buckets(2e8)},
    "zero1": {"stage": 1, **_buckets(2e8)},
    "zero2": {"stage": 2, **_buckets(2e8)},
    "zero2_offload": {"stage": 2, "offload_optimizer": _HOST, **_buckets(2e8)},
    "zero3": {"stage": 3, **_PLAIN_3},
    "zero3_offload": {"stage": 3, "offload_optimizer": _HOST, "offload_param": _HOST, **_PLAIN_3},
}


def read_deepspeed(r: Reading, shipped: Mapping[str, Mapping[str, Any]], trainer: Trainer) -> None:
    """Read the config under `deepspeed`: a mapping, a file beside this one, or one that the tool ships by that name."""
    r.put("runtime", "deepspeed", KEY)
    r.values.update({f"{KEY}.{name}": value for name, value in flattened(_tree(r, shipped)).items() if name})
    read_zero(r, f"{KEY}.", trainer)


def _tree(r: Reading, shipped: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    config = r.get(KEY)
    if isinstance(config, Mapping):
        return config
    path = r.text(KEY)
    if path.lstrip().startswith("{"):
        return text_source(path, KEY).tree
    known = shipped.get(PurePath(path).name)
    try:
        tree = tree_of(r.source.sibling(path))
    except InvalidInput:
        if known is None:
            raise
        return {"zero_optimization": known}
    if not isinstance(tree, Mapping) or not tree:
        raise r.wrong(KEY, "a file of JSON with settings of DeepSpeed")
    return tree

"""Models and configs of torchtitan: models/*/__init__.py and models/*/config_registry.py of 0.3, and of 0.1 and 0.2."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

# (module, flavor in small letters) -> our name.
FLAVORS: Mapping[tuple[str, str], str] = {
    ("llama2", "7b"): "llama-2-7b-hf",
    ("llama2", "13b"): "llama-2-13b-hf",
    ("llama2", "70b"): "llama-2-70b-hf",
    ("llama3", "1b"): "llama-3.2-1b",
    ("llama3", "3b"): "llama-3.2-3b",
    ("llama3", "8b"): "llama-3.1-8b",
    ("llama3", "70b"): "llama-3.1-70b",
    ("llama3", "405b"): "llama-3.1-405b",
    ("llama4", "17bx16e"): "llama-4-scout-17b-16e-instruct",
    ("llama4", "17bx128e"): "llama-4-maverick-17b-128e-instruct",
    ("qwen3", "0.6b"): "qwen3-0.6b",
    ("qwen3", "1.7b"): "qwen3-1.7b",
    ("qwen3", "4b"): "qwen3-4b",
    ("qwen3", "8b"): "qwen3-8b",
    ("qwen3", "14b"): "qwen3-14b",
    ("qwen3", "32b"): "qwen3-32b",
    ("qwen3", "30b-a3b"): "qwen3-30b-a3b",
    ("qwen3", "235b-a22b"): "qwen3-235b-a22b",
    ("qwen3_5", "0.8b"): "qwen3.5-0.8b",
    ("qwen3_5", "2b"): "qwen3.5-2b",
    ("qwen3_5", "4b"): "qwen3.5-4b",
    ("qwen3_5", "9b"): "qwen3.5-9b",
    ("qwen3_5", "27b"): "qwen3.5-27b",
    ("qwen3_5", "35b-a3b"): "qwen3.5-35b-a3b",
    ("qwen3_5", "122b-a10b"): "qwen3.5-122b-a10b",
    ("qwen3_5", "397b-a17b"): "qwen3.5-397b-a17b",
    ("deepseek_v3", "16b"): "deepseek-v2-lite",  # DeepSeek-V2-Lite's dimensions
    ("deepseek_v3", "236b"): "deepseek-v2",
    ("deepseek_v3", "671b"): "deepseek-v3",
    ("gpt_oss", "20b"): "gpt-oss-20b",
    ("gpt_oss", "120b"): "gpt-oss-120b",
    ("kimi_k2_7", "moonlight-16b-a3b"): "moonlight-16b-a3b",
    ("kimi_k2_7", "kimi-vl-a3b"): "kimi-vl-a3b-instruct",
    ("kimi_k2_7", "kimi-k2.5"): "kimi-k2.5",
}
ENDINGS = ("_flex", "_varlen", "_flex_attn", "_varlen_attn", "_irope")  # flavors that differ by attention alone


class Recipe(Struct, frozen=True, kw_only=True):
    """What a config of the registry sets. `sets`: key of the command line -> value; `float8`: scales of a converter;
    `muon`: most weights train with it; `unsure`: why it is not estimated as it is.
    """

    module: str
    flavor: str
    sets: Mapping[str, Any]
    checkpoints: str = "selective"
    float8: str = ""
    muon: bool = False
    unsure: str = ""

    @property
    def model(self) -> str:
        return FLAVORS[self.module, self.flavor]


def _recipe(module: str, flavor: str, batch: int, length: int, steps: int, **more: Any) -> Recipe:
    of_recipe = {name: more.pop(name) for name in ("checkpoints", "float8", "muon", "unsure") if name in more}
    sizes = {"tp": "parallelism.tensor_parallel_degree", "ep": "parallelism.expert_parallel_degree"}
    sets: dict[str, Any] = {
        "training.local_batch_size": batch,
        "training.seq_len": length,
        "training.steps": steps,
        **{sizes[name]: more.pop(name) for name in tuple(sizes) if name in more},
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return Recipe(module=module, flavor=flavor, sets=sets, **of_recipe)


_LOSS_ALONE = {"compile__enable": True, "compile__components": ["loss"]}
_LOOPED = {"parallelism__pipeline_parallel_schedule": "Interleaved1F1B"}
_NARROW = "products in MXFP8 and NVFP4 are not estimated here"
_COMPILED = {"compile__enable": True, "compile__components": ["model"]}
CONFIGS: Mapping[str, Recipe] = {
    "llama3_8b": _recipe("llama3", "8b", 1, 8192, 1000),
    "llama3_8b_mxfp8": _recipe("llama3", "8b", 1, 8192, 1000, unsure=_NARROW, **_COMPILED),
    "llama3_8b_first_85_pct_layers_nvfp4": _recipe("llama3", "8b", 1, 8192, 1000, unsure=_NARROW, **_COMPILED),
    "llama3_70b": _recipe("llama3", "70b", 8, 8192, 1000, tp=8, checkpoints="full"),
    "llama3_405b": _recipe(
        "llama3",
        "405b",
        2,
        8192,
        3000,
        tp=8,
        checkpoints="full",
        float8="rowwise",
        compile__enable=True,
        compile__enable_async_tensor_parallel=True,
    ),
    "qwen3_0_6b": _recipe("qwen3", "0.6b", 4, 4096, 10),
    "qwen3_1_7b": _recipe("qwen3", "1.7b", 4, 4096, 100),
    "qwen3_14b": _recipe("qwen3", "14b", 4, 4096, 3000, checkpoints="full"),
    "qwen3_32b": _recipe("qwen3", "32b", 2, 4096, 3000, checkpoints="full"),
    "qwen3_30b_a3b": _recipe("qwen3", "30b-a3b", 2, 4096, 3000, checkpoints="full"),
    "qwen3_8b_first_85_pct_layers_nvfp4": _recipe("qwen3", "8b", 1, 2048, 180, unsure=_NARROW, **_COMPILED),
    "sft_qwen3_8b_math": _recipe("qwen3", "8b", 1, 2048, 180),
    "qwen35_0_8b": _recipe("qwen3_5", "0.8b", 4, 4096, 1000),
    "qwen35_2b": _recipe("qwen3_5", "2b", 4, 4096, 1000),
    "qwen35_4b": _recipe("qwen3_5", "4b", 4, 4096, 1000, checkpoints="full"),
    "qwen35_9b": _recipe("qwen3_5", "9b", 4, 4096, 1000, tp=2, checkpoints="full"),
    "qwen35_27b": _recipe("qwen3_5", "27b", 4, 4096, 1000, tp=4, checkpoints="full"),
    "qwen35_35b_a3b": _recipe("qwen3_5", "35b-a3b", 4, 4096, 1000, tp=2, ep=8, checkpoints="full"),
    "qwen35_122b_a10b": _recipe("qwen3_5", "122b-a10b", 4, 4096, 1000, tp=4, ep=8, checkpoints="full"),
    "qwen35_397b_a17b": _recipe("qwen3_5", "397b-a17b", 4, 4096, 1000, tp=8, ep=16, checkpoints="full"),
    "deepseek_v3_16b": _recipe("deepseek_v3", "16b", 4, 4096, 1000, ep=8, **_LOSS_ALONE, **_LOOPED),
    "deepseek_v3_671b": _recipe("deepseek_v3", "671b", 4, 4096, 10000, ep=2, **_LOSS_ALONE, **_LOOPED),
    "deepseek_v3_671b_float8": _recipe(
        "deepseek_v3", "671b", 4, 4096, 10000, ep=2, float8="rowwise", **_LOSS_ALONE, **_LOOPED
    ),
    "gpt_oss_20b": _recipe("gpt_oss", "20b", 1, 8192, 10000, checkpoints="full"),
    "gpt_oss_120b": _recipe("gpt_oss", "120b", 1, 8192, 10000, checkpoints="full"),
    "moonlight_16b_a3b": _recipe("kimi_k2_7", "moonlight-16b-a3b", 4, 4096, 10000, ep=8, checkpoints="full", muon=True),
    "kimi_vl_a3b": _recipe("kimi_k2_7", "kimi-vl-a3b", 1, 4096, 10000, ep=8, checkpoints="full", muon=True),
    "kimi_k2_5": _recipe(
        "kimi_k2_7", "kimi-k2.5", 4, 4096, 10000, ep=8, checkpoints="full", muon=True, **_LOSS_ALONE, **_LOOPED
    ),
}
OWN_DATA = ("sft_qwen3_8b_math",)  # configs that are of one data set


def model_of(module: str, flavor: str) -> str:
    """Our name of a flavor; nothing for one of tests."""
    plain = flavor.lower()
    for ending in ENDINGS:
        plain = plain.removesuffix(ending)
    return FLAVORS.get((module, plain), "")


def config_of(model: str) -> str:
    """The name of a config of this model, as it is without other products; nothing where there is none."""
    for name, recipe in CONFIGS.items():
        if recipe.model == model and not recipe.unsure and name not in OWN_DATA:
            return name
    return ""

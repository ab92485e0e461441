"""Megatron-Bridge's recipes by model, accelerator, precision and release: what they recompute, put into CUDA graphs and
overlap.

scripts/performance/configs/{llama,deepseek,qwen,gpt_oss,kimi,nemotronh}/*_workload_base_configs.py,
utils/{overrides,precision}.py.
"""

import re
from typing import Literal

from msgspec import Struct

from rows.speed.run import Run
from tonnage.kernel.errors import MissingDatum, shown

Low = Literal["bf16", "fp8", "mxfp8", "nvfp4"]
NARROW_GRADIENTS: dict[Low, str] = {
    "bf16": "bf16-mixed-16bit-gradients",
    "fp8": "fp8-te-primary-16bit-gradients",
    "mxfp8": "mxfp8-te-primary-16bit-gradients",
    "nvfp4": "nvfp4-te-16bit-gradients",
}
GRAPHED = 2602  # the release from which recipes capture parts of layers of experts
ONE_STAGE = 2604  # from which Qwen3 30B on H100 spreads its experts over 16 accelerators and has no pipeline
WHOLE_STEP = 2606  # and whole steps, with experts' exchanges overlapped, for MXFP8 on Blackwell
RACKS = ("GB200", "GB300")
HYBRID = ("GB200", "GB300", "B300")  # whose recipes dispatch with HybridEP
FULL = "full"


class Recipe(Struct, frozen=True, kw_only=True):
    """What a recipe sets beyond the table. `graphs`: "full", or the modules that are captured."""

    low: Low
    recompute_modules: tuple[str, ...] = ()
    graphs: str = ""
    overlaps_experts: bool = False
    overlaps_tensor_parallel: bool = True
    dispatcher: str = "alltoall"


def recipe_of(run: Run) -> Recipe:
    """The recipe of a row."""
    release = re.search(r"(\d\d)\.(\d\d)", run.config.text("framework"))
    if release is None:
        raise MissingDatum(
            f"config.framework names no release of Megatron-Bridge. Got {shown(run.config.text('framework'))}."
        )
    number = int(release[1]) * 100 + int(release[2])
    gpu, low = run.config.text("gpu").upper().replace("DGX-", "").strip(), precision_of(run.config.text("precision"))
    late = number >= WHOLE_STEP and low == "mxfp8" and gpu in HYBRID
    modules, graphs, overlaps = _captured(run, gpu, low, number, late)
    tensor = low != "nvfp4" and "deepseek" not in run.name and not ("235b" in run.name and gpu == "H100")
    dispatcher = _dispatcher(run, gpu, low, number)
    return Recipe(
        low=low,
        recompute_modules=modules,
        graphs=graphs,
        overlaps_experts=overlaps,
        overlaps_tensor_parallel=tensor,
        dispatcher=dispatcher,
    )


def precision_of(text: str) -> Low:
    """ "FP8-MX" -> mxfp8; "FP8" alone is current scaling in tables of 26.x."""
    words = text.upper()
    if "NVFP4" in words:
        return "nvfp4"
    if words.startswith(("MXFP8", "FP8-MX", "FP8_MX")):
        return "mxfp8"
    return "bf16" if words.startswith("BF16") else "fp8"


def _dispatcher(run: Run, gpu: str, low: Low, number: int) -> str:
    """moe_flex_dispatcher_backend; "alltoall" where a recipe has none."""
    name = run.name
    if "qwen3-30b" in name and gpu == "H100":
        return "hybridep" if number >= ONE_STAGE else "alltoall"
    if "qwen3-235b" in name:
        return "hybridep" if gpu in RACKS else "alltoall"
    if "gpt-oss" in name:
        return "hybridep" if gpu == "B300" or (gpu in RACKS and low == "mxfp8") else "alltoall"
    if "nemotron-3" in name:
        return "hybridep"  # on B300 DeepEP
    return "hybridep" if gpu in HYBRID else "deepep" if "deepseek" in name else "alltoall"


Captured = tuple[tuple[str, ...], str, bool]


def _captured(run: Run, gpu: str, low: Low, number: int, late: bool) -> Captured:
    """Modules that are recomputed, what is in CUDA graphs, whether the experts' exchanges run beside compute."""
    name = run.name
    if "deepseek-v3" in name:
        return _deepseek(run, gpu, number, late)
    if "kimi-k2" in name:
        return ("mla_up_proj",), "moe_router, moe_preprocess" if gpu == "GB200" else "", False
    if "gpt-oss" in name:
        if late and gpu in RACKS:
            return (), FULL, True
        if gpu in ("GB200", "B200", "H100"):
            return ("layernorm", "moe_act"), "", gpu == "GB200"
        return (), "attn, moe_router, moe_preprocess", False
    if "qwen3" in name:
        plain = gpu in ("H100", "B200") or ("235b" in name and gpu == "B300") or number < GRAPHED
        overlaps = "235b" in name and (gpu == "H100" or (gpu == "B300" and run.size("virtual_pipeline") > 1))
        return (), "" if plain else "moe_router, moe_preprocess", overlaps
    if "nemotron-3-nano" in name or "nemotron-3-super" in name:
        return _nemotron(run, gpu, low)
    if name in ("llama-3-8b", "llama3-8b"):
        return (), "" if gpu == "H100" else FULL, False
    return (), "mlp" if re.search(r"sft|lora", run.config.text("task")) and "llama" in name else "", False


def _deepseek(run: Run, gpu: str, number: int, late: bool) -> Captured:
    modules: tuple[str, ...] = ("mla_up_proj", "mlp") if gpu == "H100" else ("mla_up_proj",)
    if late and gpu == "GB300" and run.options.get("micro_batch_size") == 1:
        modules = ()
    some = "attn, moe_router, moe_preprocess" if gpu in ("GB200", "B300") and number >= GRAPHED else ""
    return modules, FULL if late else some, late


def _nemotron(run: Run, gpu: str, low: Low) -> Captured:
    graphs, modules = "attn, mamba, moe_router, moe_preprocess", ()
    if gpu == "H100":
        return ("moe", "layernorm", *(("core_attn", "moe_act") if low != "bf16" else ())), graphs, False
    if "super" in run.name and gpu == "B200":
        return ("moe_act", "layernorm", "core_attn"), "", False
    if "super" in run.name and gpu == "GB200" and low != "nvfp4" and run.size("tensor_parallel") == 1:
        return ("moe_act", "layernorm", "core_attn", "moe"), graphs, False
    return modules, graphs, False

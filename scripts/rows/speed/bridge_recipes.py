"""Megatron-Bridge's recipes: what they recompute, put into CUDA graphs and overlap, beyond the sizes that its tables of
releases print.

NVIDIA-NeMo/Megatron-Bridge, folder scripts/performance: each entry of RECIPES is a preset of a file there at a commit.
The tables name no commit. So an entry holds for a row where the release lies in its range and all sizes of the row are
the preset's; the settings of any other row are guessed from the entry nearest in release of the same model and GPU.
"""

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rows.speed.run import Run
from tonnage.kernel.errors import MissingDatum, shown

Low = Literal["bf16", "fp8", "mxfp8", "nvfp4"]
NARROW_GRADIENTS: dict[Low, str] = {
    "bf16": "bf16-mixed-16bit-gradients",
    "fp8": "fp8-te-primary-16bit-gradients",
    "mxfp8": "mxfp8-te-primary-16bit-gradients",
    "nvfp4": "nvfp4-te-16bit-gradients",
}
FULL = "full"
ROUTER = "moe_router,moe_preprocess"
ATTENTION = f"attn,{ROUTER}"
MAMBA = f"attn,mamba,{ROUTER}"
ALL: tuple[Low, ...] = ("bf16", "fp8", "mxfp8", "nvfp4")
MX: tuple[Low, ...] = ("mxfp8",)
BF: tuple[Low, ...] = ("bf16",)
F8: tuple[Low, ...] = ("fp8",)

# Files under scripts/performance/configs, with the commit at which they were read.
FIRST = "0fa501acee1ebfe3d1ab8088b638e2089d800df6"
LLAMA3 = "llama/llama3_workload_base_configs.py at 00919dcf1fe13c0acf65e131f244378f0a6cd2b5"
LLAMA3_FIRST = f"llama3/workload_base_configs.py at {FIRST}"
LLAMA31 = "llama/llama31_workload_base_configs.py at 0013c9a8ed4d655cd4e8ad8f918b11588e53c85d"
DEEPSEEK_FIRST = f"deepseek/workload_base_configs.py at {FIRST}"
DEEPSEEK = "deepseek/deepseek_workload_base_configs.py at f0e2c37e3f82c57f9d0e95aa8ae98b3470a91107"
DEEPSEEK_FUSED = "deepseek/deepseek_workload_base_configs.py at 042641823051ce167c52b0ae289941a227c11535"
GPT_OSS = "gpt_oss/gpt_oss_workload_base_configs.py at 07eea52d4523a69fc8975cef34938d61ae13f9e2"
QWEN_FIRST = f"qwen3/workload_base_configs.py at {FIRST}"
QWEN = "qwen/qwen3_workload_base_configs.py at f29a269f8728ff9075f88a226f92e554196a7e41"
QWEN_LATER = "qwen/qwen3_workload_base_configs.py at 01b2977e518f0a58ec870daba2fb2c04d76a91b2"
NEMOTRON = "nemotronh/nemotron_3_workload_base_configs.py at f601ba97141a81998ff6a5d5a348a5ad5826f932"
KIMI = "kimi/kimi_workload_base_configs.py at 013180a7520fc3c253a1bc09dd2c33c3a089089d"
# Guides to the 26.06 container print what its preset of Qwen3 30B on GB200 in MXFP8 loads; no stored version of the
# file has it.
QWEN_FUSED = "as guides to the 26.06 container print the preset of Qwen3 30B on GB200: no stored version has it"
NO_END = 9999  # later than any release


class Recipe(Struct, frozen=True, kw_only=True):
    """What a preset sets beyond the table.

    `model`: a pattern of its name; `gpus`, `lows`: which it is of; `sizes`: tensor, pipeline, virtual pipeline, context
    and expert parallel sizes and the micro-batch, "" where no stored version says; `since`, `until`: the releases, as
    year and month; `source`: its file and commit, or why it is a guess. `graphs`: "full", or the modules that are
    captured.
    """

    model: str
    gpus: tuple[str, ...]
    lows: tuple[Low, ...] = ALL
    sizes: str = ""
    since: int = 2602
    until: int = 2604
    source: str
    recompute_modules: tuple[str, ...] = ()
    graphs: str = ""
    overlaps_experts: bool = False
    dispatcher: str = "alltoall"

    def is_of(self, name: str, gpu: str) -> bool:
        return bool(re.search(self.model, name)) and gpu in self.gpus


def _preset(model: str, gpus: str, lows: tuple[Low, ...], sizes: str, source: str, **others: object) -> Recipe:
    return Recipe(model=model, gpus=tuple(gpus.split()), lows=lows, sizes=sizes, source=source, **others)  # type: ignore[arg-type]


L8, L70, L405 = r"llama-?3-8b", r"llama-?3-70b", r"llama-?3\.1-405b"
V3, OSS, KIMI_K2, Q30, Q235 = "deepseek-v3", "gpt-oss-120b", "kimi-k2", "qwen3-30b", "qwen3-235b"
SUPER, NANO = "nemotron-3-super", "nemotron-3-nano"
HYBRID = {"dispatcher": "hybridep"}
UP = {"recompute_modules": ("mla_up_proj",), **HYBRID}
LATER = {"since": 2606, "until": NO_END}
FUSED = {"graphs": FULL, "overlaps_experts": True, **HYBRID, **LATER}
OFF = {"recompute_modules": ("layernorm", "moe_act")}

RECIPES = (
    _preset(L8, "H100", F8, "1 1 1 1 1 1", LLAMA3_FIRST, since=2509),
    _preset(L8, "GB300 B300", F8 + MX, "1 1 1 1 1 4", LLAMA3, since=2511, graphs=FULL),
    _preset(L8, "GB200 B200", F8 + MX, "1 1 1 1 1 2", LLAMA3, since=2511, graphs=FULL),
    _preset(L70, "GB300", F8, "1 1 1 1 1 2", LLAMA3, since=2511, until=NO_END),
    _preset(L70, "GB300", (*MX, "nvfp4"), "1 4 5 1 1 1", LLAMA3, until=NO_END),
    _preset(L70, "GB200 B200", (*MX, "nvfp4"), "2 4 5 1 1 1", LLAMA3, until=NO_END),
    _preset(L70, "H100", F8, "4 8 5 1 1 1", LLAMA3, since=2509, until=NO_END),
    _preset(L405, "GB300", (*F8, "nvfp4"), "4 8 4 1 1 1", LLAMA31, until=NO_END),
    _preset(L405, "GB300", MX, "2 8 4 2 1 1", LLAMA31, until=NO_END),
    _preset(L405, "H100", F8, "8 8 8 2 1 1", LLAMA31, since=2509, until=NO_END),
    _preset(V3, "GB200", BF, "1 4 4 1 64 1", DEEPSEEK_FIRST, since=2511, until=2511, **UP),
    _preset(V3, "GB200", MX, "1 4 4 1 64 1", DEEPSEEK, graphs=ATTENTION, **UP),
    _preset(V3, "GB200", MX, "1 4 4 1 64 1", DEEPSEEK_FUSED, recompute_modules=("mla_up_proj",), **FUSED),
    _preset(V3, "GB300", MX, "1 2 8 1 32 2", DEEPSEEK, **UP),
    _preset(V3, "GB300", MX, "1 2 8 1 32 1", DEEPSEEK_FUSED, **FUSED),
    _preset(V3, "B300", MX, "1 16 1 1 8 1", DEEPSEEK, **UP),
    _preset(V3, "B300", MX, "1 8 2 1 8 1", DEEPSEEK_FUSED, recompute_modules=("mla_up_proj",), **FUSED),
    _preset(V3, "B200", MX, "1 16 1 1 8 1", DEEPSEEK, since=2511, **UP),
    _preset(V3, "H100", F8, "2 8 4 1 64 1", DEEPSEEK, since=2511, recompute_modules=("mla_up_proj", "mlp"), **HYBRID),
    _preset(OSS, "GB300", BF, "1 1 1 1 64 4", GPT_OSS, graphs=ATTENTION),
    _preset(OSS, "GB300", MX, "1 1 1 1 16 4", GPT_OSS, **FUSED),
    _preset(OSS, "GB200", BF, "1 1 1 1 64 4", GPT_OSS, overlaps_experts=True, **OFF),
    _preset(OSS, "GB200", MX, "1 1 1 1 64 4", GPT_OSS, **FUSED),
    _preset(OSS, "B300", BF, "1 1 1 1 8 4", GPT_OSS, graphs=ATTENTION, **HYBRID),
    _preset(OSS, "B200", BF, "1 1 1 1 8 4", GPT_OSS, **OFF),
    _preset(OSS, "H100", BF, "1 4 1 1 8 1", GPT_OSS, **OFF),
    _preset(KIMI_K2, "GB300", ALL, "", f"of other precisions: {KIMI}, where MXFP8 has another batch", **UP),
    _preset(KIMI_K2, "GB200", ALL, "1 4 4 1 64 1", KIMI, graphs=ROUTER, **UP),
    _preset(KIMI_K2, "B300", ALL, "1 16 1 1 16 2", KIMI, recompute_modules=("mla_up_proj",)),
    _preset(KIMI_K2, "B200", ALL, "1 16 1 1 16 1", KIMI, recompute_modules=("mla_up_proj",)),
    _preset(KIMI_K2, "H100", ALL, "8 16 2 1 64 1", KIMI, recompute_modules=("mla_up_proj", "mlp")),
    _preset(Q30, "GB300 GB200", ALL, "", "before graphs of experts' parts", since=2511, until=2511, **HYBRID),
    _preset(Q30, "GB300 B300", MX, "1 1 1 1 8 8", QWEN, graphs=ROUTER, **HYBRID),
    _preset(Q30, "GB200", MX, "1 1 1 1 8 4", QWEN, graphs=ROUTER, **HYBRID),
    _preset(Q30, "GB300 B300 GB200", MX, "", QWEN_FUSED, **FUSED),
    _preset(Q30, "B200", MX, "1 1 1 1 8 1", QWEN, graphs=ROUTER),
    _preset(Q30, "H100", F8, "", "no stored version has a pipeline with these sizes", since=2511, until=2602),
    _preset(Q30, "H100", F8, "1 1 1 1 16 1", QWEN, since=2604, **HYBRID),
    _preset(Q235, "GB200", BF, "", "before graphs of experts' parts", since=2511, until=2511, **HYBRID),
    _preset(Q235, "GB200", MX, "1 8 1 1 32 1", QWEN, until=2602, graphs=ATTENTION, **HYBRID),
    _preset(Q235, "GB200", MX, "1 8 3 1 32 1", QWEN_LATER, since=2604, graphs=ATTENTION, **HYBRID),
    _preset(Q235, "GB300", MX, "1 4 12 1 32 2", QWEN_LATER, since=2604, graphs=ATTENTION, **HYBRID),
    _preset(Q235, "GB200 GB300", MX, "", QWEN_FUSED, **FUSED),
    _preset(Q235, "B300", MX, "1 8 4 1 8 1", QWEN, until=2602, overlaps_experts=True),
    _preset(Q235, "B300", MX, "1 8 1 1 8 1", QWEN_LATER, since=2604),
    _preset(Q235, "B200", MX, "1 8 2 1 8 1", QWEN_FIRST, since=2511, until=2511),
    _preset(Q235, "B200", MX, "1 8 1 1 8 1", QWEN),
    _preset(Q235, "H100", F8, "2 8 4 1 32 1", QWEN, overlaps_experts=True),
    _preset(SUPER, "GB200", ALL, "2 1 1 1 64 1", NEMOTRON, since=2604, until=NO_END, graphs=MAMBA, **HYBRID),
    _preset(SUPER, "GB300", ALL, "1 1 1 1 64 1", NEMOTRON, since=2604, until=NO_END, graphs=MAMBA, **HYBRID),
    _preset(SUPER, "B200", ALL, "1 1 1 1 64 1", NEMOTRON, recompute_modules=("moe_act", "layernorm"), **HYBRID),
    _preset(NANO, "GB300 B300", ALL, "1 1 1 1 8 4", NEMOTRON, until=NO_END, graphs=MAMBA, **HYBRID),
    _preset(NANO, "GB200 B200", ALL, "1 1 1 1 8 2", NEMOTRON, until=NO_END, graphs=MAMBA, **HYBRID),
)  # fmt: skip
NOTHING = Recipe(model="", gpus=(), source="nothing beyond the table is taken: no preset of it was read")
# SFT and LoRA of Llama capture the MLP, in the same file.
TUNED = replace(NOTHING, graphs="mlp", source=f"graphs of the MLP, as in {LLAMA3}")


class Found(Struct, frozen=True, kw_only=True):
    """The recipe of a row. `is_cited`: its preset is of the row's release and sizes; else `why` it is a guess."""

    low: Low
    recipe: Recipe
    overlaps_tensor_parallel: bool
    is_cited: bool
    why: str


def recipe_of(run: Run) -> Found:
    """The recipe of a row: its own preset, or the nearest."""
    release = re.search(r"(\d\d)\.(\d\d)", run.config.text("framework"))
    if release is None:
        raise MissingDatum(
            f"config.framework names no release of Megatron-Bridge. Got {shown(run.config.text('framework'))}."
        )
    number = int(release[1]) * 100 + int(release[2])
    gpu, low = run.config.text("gpu").upper().replace("DGX-", "").strip(), precision_of(run.config.text("precision"))
    recipe, is_cited, why = _nearest(run, gpu, low, number)
    # CommOverlapConfig in qwen/qwen3_llm_pretrain.py at 826618be9ea5c3b4cf11e582089dc1dee8586fe9 and
    # llama/llama31_llm_pretrain.py at 0013c9a8ed4d655cd4e8ad8f918b11588e53c85d; other models set none.
    tensor = low != "nvfp4" and "deepseek" not in run.name and not ("235b" in run.name and gpu == "H100")
    return Found(low=low, recipe=recipe, overlaps_tensor_parallel=tensor, is_cited=is_cited, why=why)


def _nearest(run: Run, gpu: str, low: Low, number: int) -> tuple[Recipe, bool, str]:
    if re.search(r"sft|lora", run.config.text("task")):
        tuned = TUNED if "llama" in run.name else NOTHING
        return tuned, False, tuned.source
    own = [each for each in RECIPES if each.is_of(run.name, gpu)]
    if not own:
        return NOTHING, False, NOTHING.source
    near = min(own, key=lambda each: (max(each.since - number, number - each.until, 0), low not in each.lows))
    has_low, in_time = low in near.lows, near.since <= number <= near.until
    if not near.sizes:
        return near, False, near.source
    if has_low and in_time and near.sizes == sizes_of(run):
        return near, True, near.source
    what = "another precision" if not has_low else "another release" if not in_time else "other sizes"
    return near, False, f"of {what}: {near.source}"


def sizes_of(run: Run) -> str:
    """Tensor, pipeline, virtual pipeline, context and expert parallel sizes and the micro-batch."""
    names = ("tensor_parallel", "pipeline_parallel", "virtual_pipeline", "context_parallel", "expert_parallel")
    return " ".join([*(str(run.size(name)) for name in names), str(run.options.get("micro_batch_size") or 1)])


def precision_of(text: str) -> Low:
    """ "FP8-MX" -> mxfp8; "FP8" alone is current scaling in tables of 26.x."""
    words = text.upper()
    if "NVFP4" in words:
        return "nvfp4"
    if words.startswith(("MXFP8", "FP8-MX", "FP8_MX")):
        return "mxfp8"
    return "bf16" if words.startswith("BF16") else "fp8"

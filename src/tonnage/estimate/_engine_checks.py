"""What an engine refuses, in its own words: sizes, formats, contexts, settings that it does not have."""

from tonnage.architectures import Model
from tonnage.errors import InvalidPlan, NotApplicable, TonnageError
from tonnage.estimate._checks import shares_heads
from tonnage.estimate._nearest import divisors, near
from tonnage.estimate._storage import is_gguf_type, storage
from tonnage.ops import Attention, LatentAttention
from tonnage.precisions import PRECISIONS
from tonnage.runtimes import ServingRuntime, serving_runtime, serving_runtimes
from tonnage.spec import Accelerator

# Where an engine says that tensor ranks must divide the heads.
HEADS = {
    "vllm": "vLLM, vllm/config/model.py, verify_with_parallel_config: total number of attention heads must be divisible by tensor parallel size",
    "sglang": "SGLang, sglang/srt/models/llama.py: total_num_heads % tp_size == 0",
    "tensorrt-llm": "TensorRT-LLM, tensorrt_llm/_torch/modules/attention.py: num_heads % tp_size == 0",
}
NOT_ON_METAL = ("awq",)
METAL = "transformers, docs/source/en/quantization/overview.md"
# vLLM, pull request 46963: its configuration is refused on SM90 and SM12x, whose kernels read no nvfp4
FP4_CACHE = "vLLM, vllm/v1/attention/backends/flashinfer.py, supports_kv_cache_dtype and supports_combination"
SGLANG_FP4_CACHE = "SGLang, pull requests 21601 (SM120) and 36340 (SM100); 23354 (SM80, SM90) is open"
UNREAD_HEAD = 64
OFFLOADS = ("vllm", "sglang")  # --cpu-offload-gb
ADAPTERS = ("vllm", "sglang", "tensorrt-llm", "generic", "llama.cpp", "ollama")
GROUPS = ("vllm", "sglang", "tensorrt-llm")
DRAFTS = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "gpt-fast", "transformers")


def check_heads(model: Model, t: int, ranks: int, engine: ServingRuntime) -> None:
    """Tensor ranks that the engine's layers cannot share the query heads among, with its own rule. `ranks`: there is room for."""
    rule = HEADS.get(engine.name)
    if rule is None or t == 1:
        return
    heads = [
        op.heads for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention | LatentAttention)
    ]
    for count in heads:
        if count % t:
            nearest = near(t, [n for n in divisors(ranks) if shares_heads(model, n)])
            raise InvalidPlan(
                f"tensor_parallel_size must divide num_attention_heads of {model.name} ({count}) under {engine.name}. Got {t}. "
                f"Nearest: {nearest}. ({rule}.)"
            )


def stored_format(model: Model, weights: str | None) -> str:
    """What the weights are stored in, by a name that engines are asked about; nothing where it is a mixture without one."""
    stored = storage(model, weights)
    if is_gguf_type(stored):
        return "gguf"
    name = stored.name
    return name if name in PRECISIONS else ""


def is_gguf(model: Model, weights: str | None) -> bool:
    """Whether the weights are asked for, or were read, as a GGUF file."""
    try:
        return stored_format(model, weights) == "gguf" or (
            not weights and (model.quantization or {}).get("quant_method") == "gguf"
        )
    except TonnageError:
        return False  # what cannot be is refused where it is used


def loads(engine: ServingRuntime, found: str) -> bool:
    return engine.formats is None or not found or found.startswith(engine.formats)


def runs_on(engine: ServingRuntime, accelerator: Accelerator) -> bool:
    """Whether the engine has a backend for the accelerator, as far as is known."""
    if engine.vendors and accelerator.vendor not in engine.vendors:
        return False
    return accelerator.vendor in engine.backends.get(accelerator.kind, (accelerator.vendor,))


def _check_machine(found: str, engine: ServingRuntime, accelerator: Accelerator) -> None:
    if runs_on(engine, accelerator):
        return
    others = [name for name in serving_runtimes() if runs_on(serving_runtime(name), accelerator)]
    nearest = [name for name in others if loads(serving_runtime(name), found)] or others
    if engine.vendors:
        raise InvalidPlan(
            f"engine: {engine.version} runs on accelerators of {', '.join(engine.vendors)}. Got {accelerator.name} of {accelerator.vendor}. "
            f"Nearest: {', '.join(nearest)}."
        )
    raise InvalidPlan(
        f"engine: {engine.version} has no backend for a {accelerator.kind} of {accelerator.vendor} ({engine.backends_source}). "
        f"Got {accelerator.name}. Nearest: {', '.join(nearest)}."
    )


def check_format(model: Model, weights: str | None, engine: ServingRuntime, accelerator: Accelerator) -> None:
    """An accelerator that the engine does not run on; a format that it does not load, or not there."""
    found = stored_format(model, weights)
    _check_machine(found, engine, accelerator)
    if not loads(engine, found):
        others = [name for name in serving_runtimes() if name != engine.name and loads(serving_runtime(name), found)]
        known = ", ".join(engine.formats or ())
        raise InvalidPlan(
            f"weights: {engine.version} loads {known} ({engine.formats_source}). Got {storage(model, weights).name}. "
            f"Engines that load it: {', '.join(others) or 'none'}."
        )
    if engine.name == "transformers" and accelerator.kind == "apple" and found.startswith(NOT_ON_METAL):
        raise InvalidPlan(
            f"weights: {engine.version} has no Metal kernels for {found} ({METAL}). Got {accelerator.name}. Nearest: q4_k_m or q8_0 under llama.cpp."
        )
    old = next((names for prefix, names in engine.too_old.items() if found.startswith(prefix)), ())
    if accelerator.generation in old:
        raise InvalidPlan(
            f"weights: {engine.version} has no kernels of {found} for {accelerator.generation} ({engine.too_old_source}). Got {accelerator.name}. "
            "Nearest: gptq, or q8_0 or q4_k_m under llama.cpp."
        )
    need = next((peak for prefix, peak in engine.peaks.items() if found.startswith(prefix)), None)
    if need and accelerator.dense_flops and need not in accelerator.dense_flops:
        other = "fp8" if need == "fp4" and "fp8" in accelerator.dense_flops else "awq"
        raise InvalidPlan(
            f"weights: {engine.version} needs an accelerator with {need} arithmetic for {found} ({engine.formats_source}), and "
            f"{accelerator.name} has none. Nearest: {other}, or another engine."
        )


def check_cache(model: Model, kind: str, engine: ServingRuntime, accelerator: Accelerator) -> None:
    """vLLM reads a cache in nvfp4 by FlashInfer's kernels alone: those before Blackwell have not every shape of head. SGLang reads it on
    Blackwell alone."""
    if (
        kind == "nvfp4"
        and engine.name == "sglang"
        and not ("fp4" in accelerator.dense_flops and accelerator.vendor == "NVIDIA")
    ):
        raise InvalidPlan(
            f"kv_cache: {engine.version} holds nvfp4 on NVIDIA's Blackwell alone ({SGLANG_FP4_CACHE}). Got {accelerator.name}. Nearest: fp8."
        )
    is_wide = "fp4" in accelerator.dense_flops and accelerator.scale_up is not None  # SM100, and not the cards of SM120
    if kind != "nvfp4" or engine.name != "vllm" or is_wide:
        return
    why = "vLLM's kernels for nvfp4 are those of B200 and its like" if "fp4" in accelerator.dense_flops else ""
    if accelerator.vendor != "NVIDIA" or ("fp16" in accelerator.dense_flops and "bf16" not in accelerator.dense_flops):
        why = f"{accelerator.name} is none of NVIDIA's from Ampere on"
    if accelerator.generation == "Hopper":
        why = "FlashInfer's kernels of Hopper read no nvfp4"
    heads = [op for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention)]
    if not why and any(op.head_dim == UNREAD_HEAD or op.sinks for op in heads):
        why = f"before Blackwell it reads neither heads of {UNREAD_HEAD} nor sinks, and {model.name} has them"
    if why:
        raise InvalidPlan(
            f"kv_cache: {engine.version} cannot hold nvfp4 there: {why} ({FP4_CACHE}). Got {accelerator.name}. Nearest: fp8."
        )


def check_layers(kept: int | None) -> None:
    """llama.cpp's -ngl 0 is a machine without the accelerator, as far as weights and cache go."""
    if kept == 0:
        raise InvalidPlan(
            "layers_on_accelerator must be from 1, which is the head alone. Got 0: with all layers on the processor, that is the machine. "
            "Name it: --on desktop-ddr5-64gb, --on epyc-9654, ..."
        )


def check_settings(engine: ServingRuntime, said: dict[str, object]) -> None:
    """Settings that another engine has."""
    own = {
        "weights_on_host": OFFLOADS, "lora_adapters": ADAPTERS, "attention_data_parallel_size": GROUPS, "draft_tokens": DRAFTS,
        "layers_on_accelerator": ("llama.cpp", "ollama"), "expert_layers_on_host": ("llama.cpp",),
    }  # fmt: skip
    for name, engines in own.items():
        if said.get(name) and engine.name not in engines:
            text = f"{name} is a setting of {', '.join(engines)}. Got engine {engine.name}."
            if name == "lora_adapters":  # what users ask for, and no setting that another engine can do without
                raise InvalidPlan(text)
            raise NotApplicable(text, name, ("engine",))

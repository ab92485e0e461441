"""What a launch command calls the model, and what it says of how weights are stored."""

from collections.abc import Mapping

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.serving.placement import drafting
from tonnage.estimate.serving.weights.storage import storage
from tonnage.numerics.quantization import FILE_TYPES
from tonnage.spec import Accelerator, ServingPlan

# What stands in a command where the model, or the one that drafts, has no name that a loader knows.
HUB, DRAFT = "MODEL", "DRAFT_MODEL"
ELSEWHERE = ("/", ".", "~")  # how a path of the machine that saved a config begins
# What an engine makes by itself of weights of 16 bits while it loads them, and how it is told.
AT_LOAD: Mapping[str, Mapping[str, str]] = {
    # vllm/config/quantization.py, _ONLINE_SHORTHANDS: those that the linear layers have too
    "vllm": {
        "fp8-e4m3": "--quantization fp8",
        "fp8-block": "--quantization fp8_per_block",
        "fp8-channel": "--quantization fp8_per_channel",
        "mxfp8": "--quantization mxfp8",
    },
    # sglang/srt/arg_groups/choices.py: QUANTIZATION_CHOICES; sglang/srt/model_loader/loader.py: BitsAndBytesModelLoader
    "sglang": {
        "fp8-e4m3": "--quantization fp8",
        "mxfp8": "--quantization mxfp8",
        "nf4": "--load-format bitsandbytes --quantization bitsandbytes",
    },
    # transformers/cli/serving/model_manager.py
    "transformers": {"nf4": "--quantization bnb-4bit", "int8": "--quantization bnb-8bit"},
    # text-generation-inference, launcher/src/main.rs: Quantization
    "generic": {
        "fp8-e4m3": "--quantize fp8",
        "nf4": "--quantize bitsandbytes-nf4",
        "fp4": "--quantize bitsandbytes-fp4",
        "int8": "--quantize bitsandbytes",
    },
    "jetstream": {
        "int8": "quantization=int8",
        "fp8-e4m3": "quantization=fp8",
    },  # MaxText, src/MaxText/configs/base.yml
}
# Earlier vLLM had bitsandbytes, and of what it has now fp8 alone.
BEFORE = {"fp8-e4m3": "--quantization fp8", "nf4": "--quantization bitsandbytes"}
BY_FILE = ("llama.cpp", "ollama", "gpt-fast")  # the file's name says it
DTYPES = {"bf16": "bfloat16", "fp16": "half", "fp32": "float32"}
TYPED = {"vllm": "--dtype", "sglang": "--dtype"}


class Loaded(Struct, frozen=True, kw_only=True):
    """`name` of the checkpoint that the engine is given, `words` with which it is loaded, `notes` for who runs them."""

    name: str
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def place(model: Model, unknown: str = HUB) -> str:
    """The model as a loader finds it: by its id on a hub or its path, else by the id that its config says; `unknown` where it says none. What
    only we call it, such as a pasted config, would be looked for on a hub."""
    if model.place or "/" in model.name:
        return model.place or model.name
    said = str(model.config.get("_name_or_path") or "").strip()
    return unknown if not said or said.startswith(ELSEWHERE) or ":" in said else said


def draft_place(plan: ServingPlan) -> str:
    """The same of the model that drafts; nothing where none is named."""
    draft = drafting(plan.draft_model)
    return place(draft, DRAFT) if draft is not None else ""


def to_be_named(engine: str, *names: str) -> list[str]:
    """What a command with these names leaves to whoever runs it: the checkpoints of which only a config was read."""
    put = "put its path there" if engine in BY_FILE else "put its path there, or its id on a hub"
    return [
        f"{word} stands for a checkpoint of which only the config is known: {put}."
        for word in (HUB, DRAFT)
        if word in names
    ]


def loaded(model: Model, plan: ServingPlan, accelerator: Accelerator) -> Loaded:
    """The checkpoint that the engine can hold as the plan stores it: the model itself, or one that somebody has quantised."""
    stored, own = storage(model, plan.weights).name, storage(model, None).name
    if stored == own:
        return Loaded(name=place(model), words=_halved(model, plan, accelerator))
    if plan.engine in BY_FILE:
        return Loaded(name=place(model))
    if own in DTYPES:
        if stored in DTYPES and plan.engine in TYPED:
            return Loaded(name=place(model), words=(f"{TYPED[plan.engine]} {DTYPES[stored]}",))
        word = (BEFORE if plan.engine == "vllm" and plan.engine_version else AT_LOAD.get(plan.engine, {})).get(stored)
        if word:
            return Loaded(name=place(model), words=(word, *_halved(model, plan, accelerator)))
    asked = plan.weights or stored
    note = f"{plan.engine} does not make {asked} out of {place(model)} ({own}): give it a checkpoint that is stored so."
    return Loaded(name=f"PATH-OR-ID-OF-A-{asked}-CHECKPOINT", words=_halved(model, plan, accelerator), notes=(note,))


def file_name(name: str, model: Model, plan: ServingPlan) -> str:
    """The GGUF file: that which was read, or one called as converters call theirs, by model and type."""
    if name.endswith(".gguf"):
        return name
    kind = storage(model, plan.weights).name
    plain = name.rstrip("/").rpartition("/")[2].lstrip(".") or HUB
    return f"{plain}-{kind.upper()}.gguf" if kind in FILE_TYPES else f"{plain}.gguf"


def _halved(model: Model, plan: ServingPlan, accelerator: Accelerator) -> tuple[str, ...]:
    """vLLM, vllm/platforms/cuda.py, check_if_supports_dtype: bfloat16 needs an accelerator of compute capability 8.0."""
    peaks = accelerator.dense_flops
    lacks = accelerator.vendor == "NVIDIA" and "fp16" in peaks and "bf16" not in peaks
    return (f"{TYPED[plan.engine]} half",) if lacks and plan.engine in TYPED and model.dtype != "float16" else ()

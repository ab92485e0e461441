"""Words of sources about serving, and the names that the estimator has for them."""

import re

from tonnage.kernel.errors import MissingDatum, shown

# How sources write an engine, the first that fits.
ENGINES = (
    (r"vllm", "vllm"),
    (r"sglang|\bsgl\b", "sglang"),
    (r"tensorrt|trt-?llm", "tensorrt-llm"),
    (r"ollama", "ollama"),
    (r"llama\.?cpp|gguf|ggml", "llama.cpp"),
    (r"transformers|hugging ?face|\bhf\b", "transformers"),
    (r"litgpt", "litgpt"),
)  # fmt: skip
# Words for what weights are stored in, the first that fits. A method's bare name is what most of its checkpoints are.
WEIGHTS = (
    (r"nf4.?(dq|double)", "nf4-double"), (r"nf4", "nf4"), (r"mxfp4", "mxfp4"), (r"nvfp4", "nvfp4"),
    (r"gptq.*(int ?8|8.?bit|w8)", "gptq-int8"), (r"gptq", "gptq"), (r"awq", "awq"),
    (r"w4a16|int ?4", "int4"), (r"w8a8|w8a16|int ?8", "int8"),
    (r"fp8.?block|block.?fp8", "fp8-block"), (r"fp8|float8|fbgemm", "fp8"),
    (r"bf16|bfloat16", "bf16"), (r"fp16|float16|\bf16|half", "fp16"), (r"fp32|float32", "fp32"),
)  # fmt: skip
# Ends of the names of checkpoints that others quantised: what is left is the model that they started from.
_QUANTISED = re.compile(
    r"[-_.](quantized[-_.])?(fp8([-_](dynamic|static|block|kv))?|w4a16|w8a8|w8a16|awq([-_]int4)?|gptq([-_]int[48])?|int[48]|nvfp4|mxfp4|bnb[-_]4bit|gguf)$",
    re.IGNORECASE,
)


def engine_of(framework: str, form: str) -> str:
    """The engine that a row's framework names; a file alone is llama.cpp's."""
    for text in (framework, form):
        for pattern, name in ENGINES:
            if re.search(pattern, text):
                return name
    if framework:
        raise MissingDatum(f"config.framework {shown(framework)} names no engine that is known")
    raise MissingDatum("config.framework is missing: the row does not say what served the model")


def version_of(framework: str, name: str) -> str:
    """The version behind the engine's own name: "transformers 4.46.0, torch 2.3.1" -> 4.46.0; nothing where none
    stands.
    """
    pattern = next(pattern for pattern, engine in ENGINES if engine == name)
    found = re.search(rf"(?:{pattern})\S*\s+(?:v[01]\s+)?v?(\d+\.\d+[\w.]*)", framework)
    return found[1] if found else ""


def weights_of(text: str) -> str | None:
    """What the words say that weights are stored in; None where they say nothing."""
    return next((name for pattern, name in WEIGHTS if re.search(pattern, text)), None)


def without_format(name: str) -> str:
    """A checkpoint's name without its publisher and what it was quantised to."""
    bare = name.rpartition("/")[2]
    while (shorter := _QUANTISED.sub("", bare)) != bare:
        bare = shorter
    return bare

"""Speed benchmarks in Qwen's documentation: one request at a time, an answer of 2,048 tokens behind prompts of
several lengths.
"""

import re

from rows.serving_speed.run import Run, Source
from tonnage.kernel.errors import MissingDatum, shown

ENGINES = {"sglang": "sglang", "vllm": "vllm", "transformers": "transformers"}
# In the documents' words; Qwen publishes FP8 with a scale for 128 x 128 weights, and GPTQ and AWQ with one for 128 in a
# row.
WEIGHTS = {
    "bf16": None,
    "fp8": "fp8-block",
    "gptq-int8": "gptq-8bit-128g",
    "gptq-int4": "gptq-4bit-128g",
    "awq": "awq-4bit-128g",
    "awq-int4": "awq-4bit-128g",
}


def rules(run: Run) -> None:
    framework = run.config.text("framework")
    found = re.match(r"(\w+) ([\d.]+(?:post\d+)?)", framework)
    if not found or found[1] not in ENGINES:
        raise MissingDatum(f"the engine of {shown(framework)} is not known")
    weights = run.config.text("weight_quant")
    if weights not in WEIGHTS:
        raise MissingDatum(f"weight_quant {shown(weights)} is not known; known: {', '.join(WEIGHTS)}")
    share = re.search(r"(?:mem_fraction_static|gpu_memory_utilization) ([\d.]+)", framework)
    gpus = run.config.size("gpus") or 1
    run.precision = weights.replace("gptq-", "").replace("awq-", "").replace("awq", "int4")
    # transformers spreads layers (device_map), the engines cut them
    run.plan |= {
        "engine": ENGINES[found[1]],
        "engine_version": found[2],
        "weights": WEIGHTS[weights],
        "kv_cache": "bf16",
        "gpu_memory_utilization": float(share[1]) if share else None,
        "pipeline_parallel_size" if found[1] == "transformers" else "tensor_parallel_size": gpus,
    }
    run.load |= {
        "input_tokens": run.config.size("input_len"),
        "output_tokens": run.config.size("output_len"),
        "concurrency": 1,
    }
    if framework.startswith("transformers"):
        run.note("attention by flash-attn; GPTQ by AutoGPTQ's kernels, AWQ by AutoAWQ's")


SOURCES = (
    Source(
        name="qwen3-documentation",
        pattern=r"docs/source/getting_started/speed_benchmark\.md",
        rules=rules,
        accelerators={"H20": "H20-96GB"},
    ),
    Source(
        name="qwen2.5-documentation",
        pattern=r"docs/source/benchmark/speed_benchmark\.rst",
        rules=rules,
        accelerators={"A100 80GB": "A100-SXM-80GB"},
    ),
)

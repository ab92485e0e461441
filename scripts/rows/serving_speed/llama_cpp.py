"""llama-bench of llama.cpp: prompts alone (pp), answers alone from nothing on (tg), behind a context that is there
(@d).
"""

import re

from rows.serving_speed.run import Run, Source
from tonnage.kernel.errors import MissingDatum, shown

MICRO_BATCH = 512  # tools/llama-bench: n_ubatch
# Builds of a month that a source names: one whose rules are known, as they were in the whole month.
BUILDS = {"may 2024": "b2900"}
# Apple's chips as people name them; memory does not change their speed.
APPLE = {
    r"M1 Max": "Apple-M1-Max-64GB",
    r"M2 Ultra": "Apple-M2-Ultra-192GB",
    r"M3 Max": "Apple-M3-Max-64GB",
    r"\bM4\b": "Apple-M4-16GB",
    r"\bM5\b": "Apple-M5-16GB",
}
CARDS = {
    r"^3080 10GB": "RTX-3080-10GB",
    r"^3090": "RTX-3090",
    r"^4090": "RTX-4090",
    r"^4070 Ti": "RTX-4070-Ti",
    r"A100 PCIe": "A100-PCIe-80GB",
    r"A100 SXM": "A100-SXM-80GB",
    r"H100 PCIe": "H100-PCIe-80GB",
}


def rules(run: Run) -> None:
    config = run.config
    weights = str(config.find("weight_quant", "weights")[1] or "")
    run.precision = weights.lower()
    run.plan |= {
        "engine": "llama.cpp",
        "engine_version": _build(run),
        "weights": weights,
        "kv_cache": "fp16",
        "pipeline_parallel_size": config.size("gpus") or 1,  # --split-mode layer
        "max_num_batched_tokens": config.size("ubatch") or MICRO_BATCH,
    }
    run.load |= {"concurrency": 1, **_test(config.text("test"))}


def _build(run: Run) -> str:
    """A pull request, or the month; it is what the row says of the version."""
    text = run.config.text("framework")
    found = re.search(r"pr #(\d+)|(\w+ 20\d\d)", text)
    if not found:
        return ""
    return f"PR {found[1]}" if found[1] else BUILDS.get(found[2], found[2])


def _test(text: str) -> dict[str, int]:
    """Lengths of a test, in llama-bench's short words or in long ones."""
    prompt = re.search(r"(?:\bpp|prompt processing )(\d+)", text)
    answer = re.search(r"(?:\btg|text generation )(\d+)", text)
    depth = re.search(r"@d(\d+)", text)
    if not prompt and not answer:
        raise MissingDatum(f"what the test {shown(text)} does is not known")
    before = int(depth[1]) if depth else 0
    return {
        "input_tokens": before + (int(prompt[1]) if prompt else 1),
        "output_tokens": int(answer[1]) if answer else 1,
        "cached_tokens": before,
    }


SOURCES = (
    Source(
        name="gpu-benchmarks-on-llm-inference",
        pattern=r"XiongjieDai/GPU-Benchmarks",
        rules=rules,
        accelerators={**APPLE, **CARDS},
    ),
    Source(
        name="llama.cpp-pull-requests", pattern=r"ggml-org/llama\.cpp PR", rules=rules, accelerators={**APPLE, **CARDS}
    ),
    Source(name="normiebench", pattern=r"normiebench", rules=rules, accelerators=APPLE),
)

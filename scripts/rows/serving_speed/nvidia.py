"""NVIDIA's own pages: TensorRT-LLM's performance overview, and the benchmarks of NIM."""

import re

from rows.serving_speed.run import Run, Source
from tonnage.kernel.errors import MissingDatum

SYSTEMS = {
    r"^H100": "H100-SXM-80GB",
    r"^H200": "H200-SXM-141GB",
    r"^B200": "B200-SXM-180GB",
    r"^GB200": "GB200-186GB",
    r"RTX PRO 6000 SE": "RTX-PRO-6000-Blackwell-Server",
}
MODELOPT = {"fp8": "FP8", "nvfp4": "NVFP4"}


def overview(run: Run) -> None:
    """trtllm-bench throughput: all requests are there at the start, and as many run as the engine takes."""
    found = re.search(r"\d+\.\d+(\.\d+)?", run.config.text("framework"))
    _common(run, "tensorrt-llm", found[0] if found else "")
    run.load |= {"input_tokens": run.config.size("isl"), "output_tokens": run.config.size("osl")}
    run.guess("concurrency", "as many requests run as the cache holds: the page does not print the engine's limits")


def nim(run: Run) -> None:
    if not run.config.has("gpu"):
        raise MissingDatum("the row does not say on which accelerator it ran")
    if not run.config.has("tp", "isl"):
        run.plan["tensor_parallel_size"] = 2
        run.load |= {"input_tokens": 5000, "output_tokens": 500}
        run.precision = "fp8"
        run.guess(
            "layout",
            (
                "2 accelerators, fp8, prompts of 5,000 tokens and answers of 500 are guessed: as in the rows of "
                "the next version"
            ),
        )
    _common(
        run, "tensorrt-llm", ""
    )  # what it runs on these, in a version that the row, which has NIM's own, does not say
    if run.config.has("isl"):
        run.load |= {"input_tokens": run.config.size("isl"), "output_tokens": run.config.size("osl")}
    run.load["concurrency"] = run.config.size("concurrency")


def _common(run: Run, engine: str, version: str) -> None:
    run.precision = run.precision or run.config.text("weights")
    if run.precision not in MODELOPT:
        raise MissingDatum("the row does not say what the weights are in")
    run.plan |= {"engine": engine, "engine_version": version, "kv_cache": "fp8"}
    run.plan.setdefault("tensor_parallel_size", run.config.size("tp") or 1)
    run.quantization = {
        "quant_method": "modelopt",
        "quant_algo": MODELOPT[run.precision],
        "ignore": ["lm_head", "router", "gate"],
    }


SOURCES = (
    Source(
        name="tensorrt-llm-overview",
        pattern=r"TensorRT-LLM docs/source/performance",
        rules=overview,
        accelerators=SYSTEMS,
    ),
    Source(name="nim", pattern=r"NVIDIA NIM", rules=nim, accelerators=SYSTEMS),
)

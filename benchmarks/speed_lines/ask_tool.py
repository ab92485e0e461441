"""Runs in the environment of another tool: how long it takes for one answer, from its imports on.

    python -P ask_tool.py TOOL once < QUESTION         imports it and answers one question: a whole process
    python -P ask_tool.py TOOL SECONDS < QUESTION      then answers for so long, each time another question

Each tool is asked through its own functions, given what it would otherwise ask the Hub for, and prints as JSON what it
said and what it took.
"""

import contextlib
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "peer_tables"))
Ask = Callable[[int], Any]  # a number makes the question another one


def llm_analysis(asked: dict[str, Any]) -> Ask:
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import GPUConfig, ModelConfig, ParallelismConfig, get_dtype_config_by_name
    from llm_analysis.logger import logger

    logger.setLevel("CRITICAL")

    def ask(at: int) -> Any:
        found = LLMAnalysis(
            ModelConfig(name="asked", **asked["model"]),
            GPUConfig("H100", 10_000, 3350, 450, 8e-6, 989, inter_node_bandwidth_in_GB_per_sec=50),
            get_dtype_config_by_name("w16a16e16"),
            ParallelismConfig(dp_size=8),
            flops_efficiency=0.5,
            hbm_memory_efficiency=0.9,
        ).training(
            batch_size_per_gpu=1,
            gradient_accumulation_steps=1,
            global_batch_size=8,
            seq_len=4096 + 64 * at,
            ds_zero=DSZeRO(3),
            activation_recomputation=ActivationRecomputation(0),
            flash_attn=True,
        )
        return {
            "GiB": found["(weight+op_state+grad+act)_memory_per_gpu"] / 2**30,
            "step seconds": found["latency_per_iter"],
        }

    return ask


def accelerate(asked: dict[str, Any]) -> Ask:
    from ask_accelerate import training

    return lambda at: {"GiB": training(asked["config"] | {"num_hidden_layers": 32 - at % 2})["float16"]}


def fitcheck_llm(asked: dict[str, Any]) -> Ask:
    from fitcheck.config_parser import ModelConfig
    from fitcheck.estimator import TrainingConfig, estimate
    from fitcheck.gpu_db import get_gpu

    model, gpu = ModelConfig(**asked["model"]), get_gpu(vram_mib=81_079)

    def ask(at: int) -> Any:
        report = estimate(model, TrainingConfig(lora_rank=None, seq_len=4096 + 64 * at, flash_attn=True), gpu)
        return {"GiB": report.total_mib / 1024}

    return ask


def hf_mem(asked: dict[str, Any]) -> Ask:
    from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size, resolve_kv_cache_dtype
    from hf_mem.safetensors.metadata import parse_safetensors_metadata

    def ask(at: int) -> Any:
        weights = parse_safetensors_metadata({"Transformer": asked["tensors"]})
        cache = resolve_kv_cache_dtype(asked["config"], "bfloat16", weights, "asked")
        kept = compute_safetensors_kv_cache_size(asked["config"], cache, 1280 + 8 * at, 16)
        return {"GiB": (weights.bytes_count + kept) / 2**30}

    return ask


def kvfit(asked: dict[str, Any]) -> Ask:
    from kvfit.architectures import estimate_cache
    from kvfit.hardware import parse_hardware
    from kvfit.planner import plan_topologies, summarize_concurrency

    def ask(at: int) -> Any:
        cache = estimate_cache(asked["config"], context_tokens=1280 + 8 * at, kv_bytes=2.0)
        layouts = plan_topologies(
            cache, weight_bytes=asked["weights"], hardware=parse_hardware("h100-80"), gpus=1, utilization=0.9
        )
        users = summarize_concurrency(layouts, active_sequences_per_user=1)
        return {
            "GiB": (asked["weights"] + 16 * cache.total_bytes) / 2**30,
            "users": users["recommended"]["concurrent_users"],
        }

    return ask


def aiconfigurator(asked: dict[str, Any]) -> Ask:
    from ask_aiconfigurator import answer

    def ask(at: int) -> Any:
        said = answer(asked | {"isl": asked["isl"] + 8 * at})
        if "problem" in said:
            raise ValueError(said["problem"])
        return {"TTFT ms": said["ttft"], "TPOT ms": said["tpot"]}

    return ask


TOOLS: dict[str, Callable[[dict[str, Any]], Ask]] = {
    "llm-analysis": llm_analysis,
    "accelerate": accelerate,
    "fitcheck-llm": fitcheck_llm,
    "hf-mem": hf_mem,
    "kvfit": kvfit,
    "aiconfigurator": aiconfigurator,
}


def looped(ask: Ask, seconds: float) -> dict[str, float]:
    """The least CPU seconds of one answer, and answers a second of CPU time, at least three."""
    least, count, begun = float("inf"), 0, time.process_time()
    while count < 3 or time.process_time() - begun < seconds:
        start = time.process_time()
        ask(count % 1000 + 1)
        least = min(least, time.process_time() - start)
        count += 1
    return {"seconds": least, "answers per second": count / (time.process_time() - begun)}


if __name__ == "__main__":
    _, tool, length = sys.argv
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(sys.stderr):
        ask = TOOLS[tool](json.load(sys.stdin))
        said = ask(0)
        took = looped(ask, float(length)) if length != "once" else {}
    print(json.dumps({"said": said, **took}))

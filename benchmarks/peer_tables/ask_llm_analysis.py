"""Runs in the environment of llm-analysis alone: questions come in as JSON, answers go out as JSON after a line of
their own.
"""

import json
import sys
import time
from collections.abc import Callable
from statistics import median

from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import GPUConfig, ModelConfig, ParallelismConfig, get_dtype_config_by_name
from llm_analysis.logger import logger

RECOMPUTE = {"none": 0, "selective": 1, "full": 2}
# Large enough for every run: it refuses batches that its figure says do not fit.
GPU = GPUConfig("large", 10_000, 2000, 300, 8e-6, 300)


def analysis(name: str, model: dict, parallel: ParallelismConfig) -> LLMAnalysis:
    config = ModelConfig(name=name, **model)
    return LLMAnalysis(config, GPU, get_dtype_config_by_name("w16a16e16"), parallel, flops_efficiency=0.5)


def count(name: str, model: dict) -> dict:
    found = analysis(name, model, ParallelismConfig())
    kept = found.get_memory_kv_cache_per_layer(1, 1) * model["num_layers"]
    return {"parameters": found.get_num_params_total(), "kv_bytes_per_token": kept}


def train(name: str, plan: dict) -> float:
    """Its total in GiB: weights, gradients, optimizer and activations."""
    parallel = ParallelismConfig(tp_size=plan["tp"], pp_size=plan["pp"], dp_size=plan["dp"])
    summary = analysis(name, plan["model"], parallel).training(
        batch_size_per_gpu=1,
        gradient_accumulation_steps=plan["micro_batches"],
        global_batch_size=plan["micro_batches"] * plan["dp"],
        seq_len=plan["sequence_length"],
        ds_zero=DSZeRO(plan["zero_stage"]),
        mlp_gated_linear_units=plan["gated"],
        activation_recomputation=ActivationRecomputation(RECOMPUTE[plan["recompute"]]),
        flash_attn=plan["flash"],
    )
    return summary["(weight+op_state+grad+act)_memory_per_gpu"] / 2**30


SHARES = (0.5, *(share / 100 for share in range(20, 101, 5)))  # of the peak, an input of it


def step(name: str, asked: dict, share: float) -> float:
    """Seconds of a step."""
    gpu = asked["gpu"]
    # It has no word for 8-bit products: the peak that it is told is that of the row.
    config = GPUConfig(
        "row",
        10_000,
        gpu["memory"],
        gpu["inside"],
        8e-6,
        gpu["peak"],
        inter_node_bandwidth_in_GB_per_sec=gpu["outside"],
    )
    sizes = {f"{kind}_size": asked[kind] for kind in ("tp", "pp", "dp", "ep")}
    found = LLMAnalysis(
        ModelConfig(name=name, **asked["model"]),
        config,
        get_dtype_config_by_name("w16a16e16"),
        ParallelismConfig(**sizes),
        flops_efficiency=share,
        hbm_memory_efficiency=0.9,
    )
    summary = found.training(
        batch_size_per_gpu=asked["micro_batch_size"],
        gradient_accumulation_steps=asked["micro_batches"],
        global_batch_size=asked["micro_batch_size"] * asked["micro_batches"] * asked["dp"],
        seq_len=asked["sequence_length"],
        ds_zero=DSZeRO(asked["zero_stage"]),
        activation_recomputation=ActivationRecomputation(RECOMPUTE.get(asked["recompute"], 1)),
        flash_attn=asked["flash"],
        mlp_gated_linear_units=asked["gated"],
    )
    return summary["latency_per_iter"]


def steps(questions: dict) -> tuple[dict, float]:
    """Seconds of a step by share of the peak and row, and milliseconds that an answer takes."""
    taken, found = [], {}
    for share in sorted(set(SHARES)):
        found[str(share)] = {}
        for name, asked in questions.items():
            start = time.perf_counter()
            found[str(share)][name] = step(name, asked, share)
            taken.append(time.perf_counter() - start)
    return found, 1000 * median(taken)


def answered(kind: Callable, questions: dict) -> dict:
    return {name: kind(name, asked) for name, asked in questions.items()}


if __name__ == "__main__":
    questions = json.load(sys.stdin)
    logger.setLevel("CRITICAL")
    counts = answered(count, questions.pop("counts"))
    speed, milliseconds = steps(questions.pop("speed"))
    tables = {table: answered(train, runs) for table, runs in questions.items()}
    print("\nANSWERS")
    json.dump({"counts": counts, "speed": speed, "milliseconds": milliseconds, **tables}, sys.stdout)

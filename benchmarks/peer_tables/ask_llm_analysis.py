"""Runs in the environment of llm-analysis alone: questions come in as JSON, answers go out as JSON after a line of their own."""

import json
import sys
from collections.abc import Callable

from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import GPUConfig, ModelConfig, ParallelismConfig, get_dtype_config_by_name

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
        batch_size_per_gpu=1, gradient_accumulation_steps=plan["micro_batches"], global_batch_size=plan["micro_batches"] * plan["dp"],
        seq_len=plan["sequence_length"], ds_zero=DSZeRO(plan["zero_stage"]), mlp_gated_linear_units=plan["gated"],
        activation_recomputation=ActivationRecomputation(RECOMPUTE[plan["recompute"]]), flash_attn=plan["flash"],
    )  # fmt: skip
    return summary["(weight+op_state+grad+act)_memory_per_gpu"] / 2**30


def answered(kind: Callable, questions: dict) -> dict:
    return {name: kind(name, asked) for name, asked in questions.items()}


if __name__ == "__main__":
    questions = json.load(sys.stdin)
    counts = answered(count, questions.pop("counts"))
    print("\nANSWERS")
    json.dump({"counts": counts, **{table: answered(train, runs) for table, runs in questions.items()}}, sys.stdout)

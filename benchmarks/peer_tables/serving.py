"""Measured times of serving, asked of tonnage and of other tools: the rows of validation/infer_speed.yaml that
aiconfigurator publishes.

answers_serving.yaml keeps what the tools said: milliseconds of the first token and of one more by row, and why others
have none.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import mean, median
from typing import Any

import numpy as np

from _serving_cases import FILE, ROWS, Case, cases
from peer_tables import scaling_book
from rows.source import read
from tonnage.estimate.serving_time.rates import serving_rates

# aiconfigurator's own configs (it asks the Hub for others), where a row's model is one of them by another name.
BUNDLED = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
    "zhipuai/GLM-5": "zai-org/GLM-5",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-R1",
}
CACHES = {"bf16": "bfloat16", "fp8": "fp8"}  # types of a cache in its words
LISTED = {
    "llama-3.1-70b": "meta-llama/Llama-3.1-70B",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
}  # models that GenZ has
Times = Mapping[str, Sequence[float]]  # milliseconds of the first token and of one more, by row
TEXT = """## Measured times of serving

{rows} rows of validation/infer_speed.yaml, which aiconfigurator publishes (sweeps of InferenceX, and NVIDIA's own runs): prefill and decode on the same
accelerators, each question once, what was run known. Sizes of the errors; a number in brackets: the rows that a tool answers, where they are
fewer. What was fitted: {fitted}; aiconfigurator on single kernels; GenZ and the roofline on nothing.

aiconfigurator is asked as its own evaluation asks it (aggregated, measured kernels, then those that it fills in), with the sizes and the type of the
cache that were run: the sizes of its table multiply tensor by expert ranks (validation/sources/README.md) and, like the type that it takes itself,
suit it worse. GenZ has no requests that arrive: its TTFT, like the roofline's, is that of a prompt alone.
"""
FITTED = (
    "tonnage with {fitted}, these among them (src/tonnage/estimate/serving_time/rates.toml has its errors on "
    "cells that a fit has not seen)"
)
FIRST_GUESS = "tonnage on nothing yet (its rates are a first guess)"
SPEED = """aiconfigurator refuses {refused} rows (memory that does not suffice, kernels that nobody measured), and answers {answered}.
An answer on {asked}, on one core of one machine: {theirs} ms with the files kept that it would read anew (a second and more without), tonnage {ours} ms.
"""
QUANTITIES = {"TPOT": ("tpot_seconds", 1), "TTFT": ("ttft_seconds", 0)}


@cache
def told() -> tuple[Case, ...]:
    """The rows, each once: prefill and decode on the same accelerators, what was run known."""
    return tuple(case for case in cases() if case.asked.publication == "silicon-sample")


def aiconfigurator() -> dict[str, Any]:
    """By row: what its own evaluation asks it, with the sizes and the type of the cache that were run."""
    configs = {row.id: row.config for row in read([str(ROWS / "sources" / FILE)])}
    return {case.id: _configured(case, configs[case.id]) for case in told()}


def _configured(case: Case, config: Mapping[str, Any]) -> dict[str, Any]:
    plan, load, name = case.plan, case.asked.load, str(config["hf_model"])
    groups, experts = plan.attention_data_parallel_size, plan.expert_parallel_size
    asked: dict[str, Any] = {
        "model_path": BUNDLED.get(name, name),
        "system_name": config["gpu"],
        "backend_name": config["framework"],
        "isl": load.input_tokens,
        "osl": load.output_tokens,
        "batch_size": -(-int(load.concurrency) // groups),
        "tp_size": plan.tensor_parallel_size,
        "attention_dp_size": groups,
        "kvcache_quant_mode": CACHES[str(plan.kv_cache)],
    }
    if "moe_ep" in config:
        asked |= {"moe_tp_size": plan.tensor_parallel_size * groups // experts, "moe_ep_size": experts}
    if "gpt-oss" not in name:  # in its own type, whatever the table says
        asked |= {"gemm_quant_mode": config.get("gemm_quant"), "moe_quant_mode": config.get("moe_quant")}
    return asked


def genz() -> dict[str, Any]:
    """By row of the models that it has, on one set of tensor ranks: the accelerator's datasheet and the sizes."""
    return {case.id: _listed(case) for case in told() if case.asked.model.name in LISTED}


def _listed(case: Case) -> dict[str, Any]:
    asked, chip = case.asked, case.asked.cluster.accelerator
    system = {
        "Flops": chip.peak("bf16") / 1e12,
        "Memory_size": 10_000,
        "Memory_BW": chip.memory.bytes_per_second / 1e9,
        "ICN": chip.scale_up.bytes_per_second / 1e9,
        "real_values": True,
    }
    return {
        "model": LISTED[asked.model.name],
        "system": system,
        "bits": {"nvfp4": "fp4"}.get(asked.precision, asked.precision),
        "tp": asked.plan.tensor_parallel_size,
        "batch": int(asked.load.concurrency),
        "input": int(asked.load.input_tokens),
        "output": int(asked.load.output_tokens),
    }


def kept(said: Mapping[str, Any], genz_said: Times) -> tuple[dict[str, Any], dict[str, Times]]:
    """What is recorded of the tools' answers: about them, and times."""
    answers = said["answers"]
    able = {name: one for name, one in answers.items() if "problem" not in one}
    about = {
        "milliseconds": {"theirs": round(said["milliseconds"]), "ours": milliseconds()},
        "modes": dict(Counter(one["mode"] for one in able.values())),
        "refused": {name: one["problem"] for name, one in answers.items() if "problem" in one},
    }
    return about, {
        "aiconfigurator": {name: _short((one["ttft"], one["tpot"])) for name, one in able.items()},
        "GenZ": {name: _short(times) for name, times in genz_said.items()},
    }


def _short(times: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in times]


def milliseconds() -> float:
    """What one of our answers takes."""
    taken = []
    for case in told():
        start = time.perf_counter()
        case.asked.times()
        taken.append(time.perf_counter() - start)
    return round(1000 * median(taken), 1)


def ours() -> dict[str, list[float]]:
    found = {case.id: case.asked.times() for case in told()}
    return {name: [1000 * times.ttft_seconds, 1000 * times.tpot_seconds] for name, times in found.items()}


def section(answers: Mapping[str, Any]) -> tuple[str, list[Sequence[str]], str]:
    """The text, the table and a sentence on what was refused and on speed."""
    columns: dict[str, Times] = {
        "tonnage (computed)": ours(),
        "aiconfigurator (live)": answers["aiconfigurator"],
        "GenZ (live)": answers["GenZ"],
        "roofline (computed)": {case.id: scaling_book.milliseconds(case.asked) for case in told()},
    }
    lines: list[Sequence[str]] = [("mean / median / p90", "rows", *columns)]
    able, is_llama = answers["aiconfigurator"], _is_llama
    kinds: tuple[tuple[str, Callable[[Case], bool]], ...] = (
        ("every row", lambda case: True),
        ("that aiconfigurator answers", lambda case: case.id in able),
        ("Llama", is_llama),
        ("Llama that aiconfigurator answers", lambda case: is_llama(case) and case.id in able),
    )
    for quantity in QUANTITIES:
        for name, belongs in kinds:
            chosen = [case for case in told() if belongs(case)]
            errors = (_errors(quantity, chosen, found) for found in columns.values())
            lines.append((f"{quantity}, {name}", str(len(chosen)), *errors))
    fitted = serving_rates().fitted
    text = TEXT.format(rows=len(told()), fitted=FITTED.format(fitted=fitted) if fitted else FIRST_GUESS)
    return text, lines, _sentence(answers)


def _is_llama(case: Case) -> bool:
    return case.asked.model.name.startswith("llama")


def _errors(quantity: str, of: Sequence[Case], found: Times) -> str:
    """Of the sizes of the errors; with the number of rows where a tool has no answer to all of them."""
    name, place = QUANTITIES[quantity]
    sizes = [abs(found[case.id][place] / 1000 / case.measured[name] - 1) for case in of if case.id in found]
    said = " / ".join(f"{100 * size:.1f}" for size in (mean(sizes), median(sizes), np.percentile(sizes, 90)))
    return f"{said} %" + (f" ({len(sizes)})" if len(sizes) < len(of) else "")


def _sentence(answers: Mapping[str, Any]) -> str:
    modes = " and ".join(f"{count} in mode {mode}" for mode, count in answers["modes"].items())
    return SPEED.format(
        refused=len(answers["refused"]), answered=modes, asked=answers["asked"], **answers["milliseconds"]
    )

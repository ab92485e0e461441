"""What many questions at once cost: CPU seconds of tables of mixed rows, beside the same rows asked one by one, and of
walks over arrays of few plans. Writes results_many.json: a list of {name, value, unit}.

    python benchmarks/many.py [--rows 10000] [--out FILE]

CPU time of this process, the least of several runs: the wall clock of a shared machine is noise.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.models import read
from tonnage.search.many import serving, training

HERE = Path(__file__).parent
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "gemma-3-27b", "gpt2")
MACHINES = ("8xH100-SXM-80GB", "8xA100-SXM-80GB", "4x8xH100-SXM-80GB", "8xMI300X")
WALKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dense": ("llama-3.1-8b", "8xH100-SXM-80GB", {}),
    "pipeline": (
        "llama-3.1-70b",
        "8x8xH100-SXM-80GB",
        {"runtime": "megatron", "tensor_parallel_size": 8, "pipeline_parallel_size": 2},
    ),
    "experts": (
        "deepseek-v3",
        "32x8xH800-SXM-80GB",
        {"runtime": "megatron", "pipeline_parallel_size": 16, "expert_parallel_size": 16, "recompute": "full"},
    ),
}


def least(call: Callable[[], object], times: int) -> float:
    """CPU seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def training_table(count: int) -> dict[str, list[Any]]:
    """Mixed rows: models, machines, runtimes and policies beside sizes; some do not fit, some cannot be."""
    draw = random.Random(0)
    choices: dict[str, tuple[Any, ...]] = {
        "model": MODELS,
        "on": MACHINES,
        "runtime": (None, "fsdp2", "megatron"),
        "recompute": (None, "full"),
        "tensor_parallel_size": (1, 1, 2, 4),
        "sequence_length": (1024, 2048, 4096, 8192),
        "micro_batch_size": (1, 2, 4, 8),
        "num_microbatches": (1, 2, 4, 8, 16, 32),
    }
    return {name: [draw.choice(values) for _ in range(count)] for name, values in choices.items()}


def serving_table(count: int) -> dict[str, list[Any]]:
    """Mixed rows: models and machines beside users and lengths."""
    draw = random.Random(0)
    choices: dict[str, tuple[Any, ...]] = {
        "model": MODELS[:5],
        "on": MACHINES,
        "tensor_parallel_size": (2, 4, 8),
        "concurrency": (1, 4, 16, 64, 128, 256),
        "input_tokens": (256, 1024, 4096),
        "output_tokens": (64, 256, 1024),
    }
    return {name: [draw.choice(values) for _ in range(count)] for name, values in choices.items()}


def tables(rows: int, repeats: int) -> list[dict[str, Any]]:
    """Each table at once, and a part of its rows by the answer that a single question gets, without suggestions."""
    results = []
    for verb, table, module in (
        ("train", training_table(rows), training),
        ("serve", serving_table(rows), serving),
    ):
        ask: Callable[..., Any] = getattr(tonnage, f"{verb}_many")
        seconds = least(lambda ask=ask, table=table: ask(table), repeats)
        results.append({"name": f"{verb}_many, {rows:,} mixed rows", "value": seconds, "unit": "s"})
        seconds = least(lambda module=module, table=table, verb=verb: one_by_one(module, verb, table), 1)
        results.append({"name": f"{verb}, the same rows one by one", "value": seconds, "unit": "s"})
    return results


def one_by_one(module: Any, verb: str, table: dict[str, list[Any]]) -> None:
    """The rows of a table, each by a call of its own."""
    from tonnage.estimate.answer import answers

    form = TrainingOptions if verb == "train" else tonnage.ServingOptions
    models, machines = {name: read(name) for name in MODELS}, {name: cluster(name) for name in MACHINES}
    for values in zip(*table.values(), strict=True):
        row = dict(zip(table, values, strict=True))
        model, machine = models[row.pop("model")], machines[row.pop("on")]
        load = {name: row.pop(name) for name in ("input_tokens", "output_tokens") if name in row}
        more = [tonnage.LoadOptions(**load)] if verb == "serve" else []
        try:
            getattr(answers, verb)(model, machine, form(**row), *more, advise=False)
        except tonnage.TonnageError:
            continue


def walks(repeats: int) -> list[dict[str, Any]]:
    """Memory and time of plans as one array, and as numbers where there is one."""
    results = []
    for name, (model_name, machine_name, options) in WALKS.items():
        model, machine = read(model_name), cluster(machine_name)
        plan = training_plan(model, machine, TrainingOptions(**options), Question())
        for count in (0, 1, 10, 100, 1000):
            draw = np.random.default_rng(0)
            sizes = {
                "sequence_length": draw.choice([2048.0, 4096.0, 8192.0], count),
                "micro_batch_size": draw.choice([1.0, 2.0, 4.0], count),
                "num_microbatches": draw.integers(8, 64, count).astype(float),
            }
            several = replace(plan, **sizes) if count else plan

            def walk(model: Any = model, machine: Any = machine, several: Any = several) -> None:
                step = Step(model, several, machine)
                assert step.walk().needed is not None
                assert Timing(model, several, machine, step).seconds is not None

            what = f"an array of {count}" if count else "numbers"
            results.append({"name": f"walk of {name}, {what}", "value": least(walk, repeats) * 1e3, "unit": "ms"})
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results_many.json")
    given = parser.parse_args()
    results = [*walks(given.repeats * 10), *tables(given.rows, given.repeats)]
    for result in results:
        print(f"{result['name']:<50} {result['value']:>10.4g} {result['unit']}")
    given.out.write_text(f"{json.dumps(results, indent=1)}\n", "utf-8")


if __name__ == "__main__":
    main()

"""What an answer costs: whole process, in-process, and plans as arrays. Writes results.json: a list of {name, value, unit}.

    make bench

Absolute times on a shared machine are noise; the ratio to a bare start of Python with numpy and msgspec is the figure to watch.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import search_serving
import search_training
import tonnage
from search_pool import pool_rows
from tonnage.catalogue import cluster
from tonnage.estimate._question import Question
from tonnage.estimate.answers import serve, train
from tonnage.estimate.batch import bytes_and_seconds, needed_bytes
from tonnage.estimate.frontier import frontier
from tonnage.estimate.load import Policy, requests_of, simulate, steady
from tonnage.estimate.load_options import LoadOptions
from tonnage.estimate.my_machine import my_machine
from tonnage.estimate.plans import training_plan
from tonnage.estimate.serving import serving_memory
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.time import Timing
from tonnage.estimate.training import training_memory
from tonnage.estimate.training_options import TrainingOptions
from tonnage.formula import Number
from tonnage.models.catalogued import every
from tonnage.spec import Load, ServingPlan, TrainingPlan

HERE = Path(__file__).parent
PLANS = 100_000
REQUESTS = 100_000
LOADS = 10_000
CASES = (("llama-3.1-8b", "8xH100-SXM-80GB"), ("deepseek-v3", "32x8xH800-SXM-80GB"))


def best(call: Callable[[], object], times: int) -> float:
    """The least of several runs, in seconds: what the machine's other work adds is not ours."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def process(*arguments: str) -> float:
    return best(lambda: subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=False), 15)


def columns(generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Plans as a search makes them: sizes that are powers of two, four sequence lengths."""
    powers = {
        "tensor_parallel_size": 4,
        "pipeline_parallel_size": 4,
        "context_parallel_size": 3,
        "micro_batch_size": 4,
        "data_parallel_size": 10,
    }
    made = {name: 2 ** generator.integers(0, top, PLANS) for name, top in powers.items()}
    return made | {
        "sequence_length": generator.choice([2048, 4096, 8192, 32768], PLANS),
        "num_microbatches": generator.integers(1, 33, PLANS),
    }


Note = Callable[[str, float, str], None]


def processes(note: Note) -> None:
    """Whole commands, beside a bare start."""
    bare = process("-c", "import numpy, msgspec")
    note("bare start of Python with numpy and msgspec, whole process", bare, "s")
    for model, on in CASES:
        taken = process("-m", "tonnage", "train", model, "--on", on, "--json")
        note(f"tonnage train {model} --on {on} --json, whole process", taken, "s")
        note(f"tonnage train {model} --on {on} --json, over the bare start", taken / bare, "ratio")


def breakdowns(name: str, on: str, note: Note) -> None:
    """One full breakdown, in-process."""
    model, machine = tonnage.read(name), cluster(on)
    plan = training_plan(model, machine, TrainingOptions(), Question())
    note(
        f"breakdown of {name} on {on}, in-process", best(lambda: training_memory(model, plan, machine).memory, 200), "s"
    )

    def both() -> None:
        made = training_memory(model, plan, machine)
        timing = Timing(model, plan, machine, made.ranks[0].stage.step)
        _ = made.memory, timing.term, timing.bound_by, timing.figures(1e15), timing.traffic

    note(f"breakdown of memory and time of {name} on {on}, in-process", best(both, 100), "s")
    note(f"answer of {name} on {on} with its next moves, in-process", best(lambda: train(model, machine), 20), "s")
    serving = ServingPlan(context=8192, tensor_parallel_size=8)
    note(
        f"serving breakdown of {name}, in-process",
        best(lambda: serving_memory(model, serving, machine.accelerator).memory, 200),
        "s",
    )


def served(name: str, on: str, note: Note) -> None:
    """Answers of serving: memory, times and their trees, and 10,000 configurations of a frontier."""
    model, machine = tonnage.read(name), cluster(on)
    options, load = ServingOptions(concurrency=64), LoadOptions(input_tokens=1024, output_tokens=256)
    note(
        f"serving answer of {name} on {on}, memory and times, in-process",
        best(lambda: serve(model, machine, options, load, advise=False), 100),
        "s",
    )
    note(
        f"serving answer of {name} on {on} with its next moves, in-process",
        best(lambda: serve(model, machine, options, load), 30),
        "s",
    )
    found = frontier(model, machine, load=load, points=1024)
    configurations = sum(len(curve.concurrency) for curve in found.curves)
    taken = best(lambda: frontier(model, machine, load=load, points=1024), 10)
    note(f"frontier of {name} on {on}, {configurations} configurations", taken, "s")
    note(f"configurations of a frontier of {name} on {on}, one core", configurations / taken, "configurations/s")


def compared(name: str, on: str, note: Note) -> None:
    """Cells of a table: machines that are said, and the fewest of them."""
    options = {"weights": [None, "fp8", "awq"], "context": [4096, 8192, 16384, 32768], "concurrency": [1, 16]}
    for words, where in ((on, on), (f"the fewest {on.rpartition('x')[2]}", on.rpartition("x")[2])):
        taken = best(lambda: tonnage.compare(name, where, **options), 3)  # noqa: B023
        note(f"cells of a comparison of {name} on {words}, one core", 24 / taken, "cells/s")


def catalogued(note: Note) -> None:
    """What runs on one consumer card: the whole catalogue, models read beforehand."""
    models, machine = list(every()), cluster("rtx-4090")
    note(f"what of {len(models)} models runs on an RTX-4090", best(lambda: my_machine(machine, models), 3), "s")


def arrays(name: str, note: Note) -> None:
    """Many plans together, and a part of them one by one."""
    sizes, model = columns(np.random.default_rng(0)), tonnage.read(name)
    names = {"runtime": "megatron", "zero_stage": 1, "recompute": "full"}
    taken = best(lambda: needed_bytes(model, sizes, **names), 3)
    note(f"{PLANS} training plans of {name} as arrays, one core", taken, "s")
    note(f"training plans of {name} as arrays, one core", PLANS / taken, "plans/s")
    machine = cluster("128x8xH100-SXM-80GB")
    taken = best(lambda: bytes_and_seconds(model, sizes, machine, **names), 3)
    note(f"training plans of {name} as arrays, memory and time, one core", PLANS / taken, "plans/s")
    plans = [
        TrainingPlan(**{key: int(values[i]) for key, values in sizes.items()}, **names) for i in range(0, PLANS, 500)
    ]
    alone = best(lambda: [training_memory(model, one).needed for one in plans], 3)
    note(f"training plans of {name} one by one", len(plans) / alone, "plans/s")


class Clock:
    """A pass of an 8B model on one H100, nearly: the engine's own time, weights or arithmetic, keys."""

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        return 1e-3 + np.maximum(5.7e-3, 2.7e-5 * (prompt_tokens + requests)) + 9e-10 * prompt_keys + 4.7e-8 * keys


def loads(note: Note) -> None:
    """A replica under load: requests one by one, and many loads in closed form."""
    for policy, words in ((Policy(), ""), (Policy(pool_tokens=40_000), ", some sent back")):
        requests = requests_of(Load(input_tokens=1000, output_tokens=200, requests_per_second=15, spread=0.8), REQUESTS)
        taken = best(lambda: simulate(Clock(), policy, requests), 1)  # noqa: B023
        note(f"{REQUESTS} requests simulated{words}, one core", taken, "s")
        note(f"requests simulated{words}, one core", 60 * REQUESTS / taken, "requests/min")
    generator = np.random.default_rng(0)
    lengths = {
        "input_tokens": generator.integers(100, 20_000, LOADS),
        "output_tokens": generator.integers(10, 3000, LOADS),
    }
    for name, values in (
        ("concurrency", generator.integers(1, 500, LOADS)),
        ("requests_per_second", generator.uniform(0.01, 5, LOADS)),
    ):
        load = Load(**lengths, **{name: values}, spread=0.2)
        note(f"{LOADS} loads of {name} in closed form, one core", best(lambda: steady(Clock(), Policy(), load), 5), "s")  # noqa: B023


def main() -> None:
    results: list[dict[str, object]] = []

    def note(name: str, value: float, unit: str) -> None:
        results.append({"name": name, "value": value, "unit": unit})
        print(f"{name:<76} {value:12.4g} {unit}")

    processes(note)
    for name, on in CASES:
        breakdowns(name, on, note)
        served(name, on, note)
        compared(name, on, note)
        arrays(name, note)
    catalogued(note)
    loads(note)
    for row in pool_rows():
        note(**row)
    search_serving.searches(note)
    search_training.searches(note)
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    main()

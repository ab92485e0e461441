"""What an answer costs: whole process, in-process, and plans as arrays. Writes results.json: a list of {name, value,
unit}.

    make bench
    python benchmarks/run.py --small --out FILE        every benchmark at a small size, as the tests run it

Absolute times on a shared machine are noise; the ratio to a bare start of Python with numpy and msgspec is the figure
to watch.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

import search_serving
import search_training
import tonnage
from search_pool import pool_rows
from sizes import FULL, SMALL, Sizes
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import serve, train
from tonnage.estimate.answer.frontier import frontier
from tonnage.estimate.answer.my_machine import my_machine
from tonnage.estimate.inputs import Question
from tonnage.estimate.load import Policy, requests_of, simulate, steady
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import bytes_and_seconds, needed_bytes
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.formula import Number
from tonnage.models.catalogued import every
from tonnage.spec import Load, ServingPlan, TrainingPlan

HERE = Path(__file__).parent
CASES = (("llama-3.1-8b", "8xH100-SXM-80GB"), ("deepseek-v3", "32x8xH800-SXM-80GB"))


def best(call: Callable[[], object], times: int) -> float:
    """The least of several runs, in seconds: what the machine's other work adds is not ours."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def processes_in_turn(sizes: Sizes, commands: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Name -> the least seconds of a whole process and of its CPU, of runs in turn: a busy minute is busy for all."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    of_cpu: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(min(20, sizes.repeats)):
        for name, words in commands.items():
            before, start = cpu_of_children(), time.perf_counter()
            subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=False, env=ENVIRONMENT)
            seconds[name].append(time.perf_counter() - start)
            of_cpu[name].append(cpu_of_children() - before)
    return {name: (min(seconds[name]), min(of_cpu[name])) for name in commands}


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def columns(generator: np.random.Generator, plans: int) -> dict[str, np.ndarray]:
    """Plans as a search makes them: sizes that are powers of two, four sequence lengths."""
    powers = {
        "tensor_parallel_size": 4,
        "pipeline_parallel_size": 4,
        "context_parallel_size": 3,
        "micro_batch_size": 4,
        "data_parallel_size": 10,
    }
    made = {name: 2 ** generator.integers(0, top, plans) for name, top in powers.items()}
    return made | {
        "sequence_length": generator.choice([2048, 4096, 8192, 32768], plans),
        "num_microbatches": generator.integers(1, 33, plans),
    }


Note = Callable[[str, float, str], None]


BARE = "bare start of Python with numpy and msgspec"


def processes(note: Note, sizes: Sizes) -> None:
    """Whole commands, each with its suggestions, beside a bare start: as JSON, as text, and the help."""
    questions = [("train", model, "--on", on) for model, on in CASES[: sizes.cases]]
    questions += [("serve", CASES[0][0], "--on", "1xH100-SXM-80GB")]
    asked = [words for question in questions for words in ((*question, "--json"), question)]
    asked += [("train", "--help"), ("serve", "--help")]
    commands = {f"tonnage {' '.join(words)}": ("-m", "tonnage", *words) for words in asked}
    taken = processes_in_turn(sizes, {BARE: ("-c", "import numpy, msgspec"), **commands})
    for name, (seconds, of_cpu) in taken.items():
        note(f"{name}, whole process", seconds, "s")
        if name != BARE:
            note(f"{name}, over the bare start", seconds / taken[BARE][0], "ratio")
            note(f"{name}, CPU over that of the bare start", of_cpu / taken[BARE][1], "ratio")


def breakdowns(name: str, on: str, note: Note, sizes: Sizes) -> None:
    """One full breakdown, in-process."""
    model, machine = tonnage.read(name), cluster(on)
    plan = training_plan(model, machine, TrainingOptions(), Question())
    note(
        f"breakdown of {name} on {on}, in-process",
        best(lambda: training_memory(model, plan, machine).memory, min(200, sizes.repeats)),
        "s",
    )

    def both() -> None:
        made = training_memory(model, plan, machine)
        timing = Timing(model, plan, machine, made.ranks[0].stage.step)
        _ = made.memory, timing.term, timing.bound_by, timing.figures(1e15), timing.traffic

    note(f"breakdown of memory and time of {name} on {on}, in-process", best(both, min(100, sizes.repeats)), "s")
    note(
        f"answer of {name} on {on} with its next moves, in-process",
        best(lambda: train(model, machine), min(20, sizes.repeats)),
        "s",
    )
    serving = ServingPlan(context=8192, tensor_parallel_size=8)
    note(
        f"serving breakdown of {name}, in-process",
        best(lambda: serving_memory(model, serving, machine.accelerator).memory, min(200, sizes.repeats)),
        "s",
    )


def served(name: str, on: str, note: Note, sizes: Sizes) -> None:
    """Answers of serving: memory, times and their trees, and 10,000 configurations of a frontier."""
    model, machine = tonnage.read(name), cluster(on)
    options, load = ServingOptions(concurrency=64), LoadOptions(input_tokens=1024, output_tokens=256)
    note(
        f"serving answer of {name} on {on}, memory and times, in-process",
        best(lambda: serve(model, machine, options, load, advise=False), min(100, sizes.repeats)),
        "s",
    )
    note(
        f"serving answer of {name} on {on} with its next moves, in-process",
        best(lambda: serve(model, machine, options, load), min(30, sizes.repeats)),
        "s",
    )
    found = frontier(model, machine, load=load, points=sizes.points)
    configurations = sum(len(curve.concurrency) for curve in found.curves)
    taken = best(lambda: frontier(model, machine, load=load, points=sizes.points), min(10, sizes.repeats))
    note(f"frontier of {name} on {on}, {configurations} configurations", taken, "s")
    note(f"configurations of a frontier of {name} on {on}, one core", configurations / taken, "configurations/s")


def compared(name: str, on: str, note: Note, sizes: Sizes) -> None:
    """Cells of a table: machines that are said, and the fewest of them."""
    options = {"weights": [None, "fp8", "awq"], "context": [4096, 8192, 16384, 32768], "concurrency": [1, 16]}
    for words, where in ((on, on), (f"the fewest {on.rpartition('x')[2]}", on.rpartition("x")[2])):
        taken = best(lambda: tonnage.compare(name, where, **options), min(3, sizes.repeats))  # noqa: B023
        note(f"cells of a comparison of {name} on {words}, one core", 24 / taken, "cells/s")


def catalogued(note: Note, sizes: Sizes) -> None:
    """What runs on one consumer card: the whole catalogue, models read beforehand."""
    models, machine = list(every())[: sizes.models], cluster("rtx-4090")
    note(
        f"what of {len(models)} models runs on an RTX-4090",
        best(lambda: my_machine(machine, models), min(3, sizes.repeats)),
        "s",
    )


def arrays(name: str, note: Note, sizes: Sizes) -> None:
    """Many plans together, and a part of them one by one."""
    columns_of_plans, model = columns(np.random.default_rng(0), sizes.plans), tonnage.read(name)
    names = {"runtime": "megatron", "zero_stage": 1, "recompute": "full"}
    taken = best(lambda: needed_bytes(model, columns_of_plans, **names), min(3, sizes.repeats))
    note(f"{sizes.plans} training plans of {name} as arrays, one core", taken, "s")
    note(f"training plans of {name} as arrays, one core", sizes.plans / taken, "plans/s")
    machine = cluster("128x8xH100-SXM-80GB")
    taken = best(lambda: bytes_and_seconds(model, columns_of_plans, machine, **names), min(3, sizes.repeats))
    note(f"training plans of {name} as arrays, memory and time, one core", sizes.plans / taken, "plans/s")
    plans = [
        TrainingPlan.of_fields(**{key: int(values[i]) for key, values in columns_of_plans.items()}, **names)
        for i in range(0, sizes.plans, 500)
    ]
    alone = best(lambda: [training_memory(model, one).needed for one in plans], min(3, sizes.repeats))
    note(f"training plans of {name} one by one", len(plans) / alone, "plans/s")


class Clock:
    """A pass of an 8B model on one H100, nearly: the engine's own time, weights or arithmetic, keys."""

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        return 1e-3 + np.maximum(5.7e-3, 2.7e-5 * (prompt_tokens + requests)) + 9e-10 * prompt_keys + 4.7e-8 * keys


def loads(note: Note, sizes: Sizes) -> None:
    """A replica under load: requests one by one, and many loads in closed form."""
    for policy, words in ((Policy(), ""), (Policy(pool_tokens=40_000), ", some sent back")):
        requests = requests_of(
            Load(input_tokens=1000, output_tokens=200, requests_per_second=15, spread=0.8), sizes.requests
        )
        taken = best(lambda: simulate(Clock(), policy, requests), min(1, sizes.repeats))  # noqa: B023
        note(f"{sizes.requests} requests simulated{words}, one core", taken, "s")
        note(f"requests simulated{words}, one core", 60 * sizes.requests / taken, "requests/min")
    generator = np.random.default_rng(0)
    lengths = {
        "input_tokens": generator.integers(100, 20_000, sizes.loads),
        "output_tokens": generator.integers(10, 3000, sizes.loads),
    }
    for name, values in (
        ("concurrency", generator.integers(1, 500, sizes.loads)),
        ("requests_per_second", generator.uniform(0.01, 5, sizes.loads)),
    ):
        load = Load(**lengths, **{name: values}, spread=0.2)
        note(
            f"{sizes.loads} loads of {name} in closed form, one core",
            best(lambda: steady(Clock(), Policy(), load), min(5, sizes.repeats)),  # noqa: B023
            "s",
        )


def main(sizes: Sizes, out: Path) -> None:
    results: list[dict[str, object]] = []

    def note(name: str, value: float, unit: str) -> None:
        results.append({"name": name, "value": value, "unit": unit})
        print(f"{name:<76} {value:12.4g} {unit}")

    processes(note, sizes)
    for name, on in CASES[: sizes.cases]:
        breakdowns(name, on, note, sizes)
        served(name, on, note, sizes)
        compared(name, on, note, sizes)
        arrays(name, note, sizes)
    catalogued(note, sizes)
    loads(note, sizes)
    for row in pool_rows(sizes.cases):
        note(**row)
    search_serving.searches(note, sizes)
    search_training.searches(note, sizes)
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--small", action="store_true", help="each figure once, of small inputs: its values mean nothing"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results.json", help="the file to write")
    given = parser.parse_args()
    if not given.small and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    main(SMALL if given.small else FULL, given.out)

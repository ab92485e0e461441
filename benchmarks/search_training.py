"""How many complete plans of training (memory, time and cost) a search sees in a second on one core; called by run.py.

A plan counts when it is valid: invalid ones cost next to nothing and are left out. `unpruned`: every valid plan is
walked whole. `bounds
first`: the same answer with cheap bounds first, which turn most plans away. Memory is what a process of its own has at
its peak.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tonnage
from sizes import FULL, SMALL, Sizes
from tonnage.catalogue import cluster
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.search.training.search import BestPlans, search
from tonnage.search.training.space import Space

Note = Callable[[str, float, str], None]
CASES = (("llama-3.1-70b", "H100-SXM-80GB"), ("gpt3-175b", "A100-SXM-80GB"), ("deepseek-v3", "H100-SXM-80GB"))
SEQUENCES, BATCHES = (2048, 4096, 8192, 16384), (512, 1024, 2048, 4096)
INVALID = ("divide", "interleaving needs", "must")


def space_of(name: str, accelerator: str, sizes: Sizes, times: int = 1, **options: str) -> Space:
    """All layouts of one model on `sizes.nodes` nodes, for `sizes.lengths` lengths of sequences and as many batches, or
    so many `times` of both.
    """
    machines = [cluster(f"{nodes}x8x{accelerator}" if nodes > 1 else f"8x{accelerator}") for nodes in sizes.nodes]
    lengths = [length * (at + 1) for length in SEQUENCES[: sizes.lengths] for at in range(times)]
    batches = [batch * (at + 1) for batch in BATCHES[: sizes.lengths] for at in range(times)]
    vary = {"sequence_length": tuple(lengths), "global_batch_size": tuple(batches)}
    given = TrainingOptions(runtime="megatron", **options)
    return Space(tonnage.read(name), machines, given, vary, usd=np.full(len(machines), 3.0))


def valid(found: BestPlans) -> int:
    """Plans that hold every constraint but memory."""
    return found.tally.considered - sum(
        each.plans for each in found.tally if "fits the accelerator" not in each.constraint
    )


def rates(note: Note, sizes: Sizes) -> None:
    for name, accelerator in CASES[: sizes.cases]:
        space = space_of(name, accelerator, sizes)
        usable = space.largest.accelerator.memory.usable_bytes
        answers = []
        for bounded, words in ((False, "unpruned"), (True, "bounds first")):
            start = time.process_time()
            found = search(space, usable, most=1, bounded=bounded)
            taken = time.process_time() - start
            answers.append([[(one.order, one.options) for one in best] for best in found.best])
            note(f"plans of {name}, {words}: valid plans", valid(found), "plans")
            note(f"plans of {name}, {words}, memory, time and cost, one core", valid(found) / taken, "plans/s")
        if answers[0] != answers[1]:
            raise SystemExit(f"bounds changed the answer for {name}")


def memory(note: Note, sizes: Sizes) -> None:
    """Peak memory of a search, and of one with four times the plans."""
    peaks = []
    for times in (1, 2):
        code = f"import search_training as s; print(*s.peak({times}, {sizes is SMALL}))"
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parent
        )
        plans, peak = map(float, done.stdout.split())
        note(f"peak memory of a search over {plans:,.0f} plans", peak, "bytes")
        peaks.append(peak)
    note("peak memory of a search over that of one with a quarter of the plans", peaks[1] / peaks[0], "ratio")


def peak(times: int, small: bool) -> tuple[int, int]:
    """Plans considered, and the most bytes that this process has held."""
    space = space_of("llama-3.1-70b", "H100-SXM-80GB", SMALL if small else FULL, times, recompute="full")
    found = search(space, space.largest.accelerator.memory.usable_bytes, most=1, bounded=False)
    status = Path("/proc/self/status").read_text(
        encoding="ascii"
    )  # ru_maxrss keeps what the process was before it was this one
    return found.tally.considered, 1024 * int(status.partition("VmHWM:")[2].split()[0])


# Whole questions, as a user asks them: their words, the model and the machines (none: the catalogue).
QUESTIONS = (
    ("one machine of 64 accelerators", "llama-3.1-70b", ("8x8xH100-SXM-80GB",)),
    ("two types of machines", "llama-3.1-70b", ("H100-SXM-80GB", "H200-SXM-141GB")),
    ("two types of machines, DeepSeek-V3", "deepseek-v3", ("H100-SXM-80GB", "H200-SXM-141GB")),
    ("the whole catalogue", "llama-3.1-8b", ()),
    ("the whole catalogue, 70B", "llama-3.1-70b", ()),
)


def questions(note: Note, sizes: Sizes) -> None:
    """Seconds of a core for `tonnage.plan_training`, with uneven stages and interleaving, to the answer and to the
    first plan; after one short question, which imports what all need.
    """
    tonnage.plan_training("llama-3.2-1b", on="2xH100-SXM-80GB", recompute="full", runtime="fsdp2")
    for words, model, on in QUESTIONS[: sizes.cases]:
        first: list[float] = []
        start = time.process_time()

        def hear(progress: tonnage.SearchProgress, since: float = start, first: list[float] = first) -> None:
            if progress.best is not None and not first:
                first.append(time.process_time() - since)

        answer = tonnage.plan_training(model, on=on, tell=hear)
        taken, considered = time.process_time() - start, answer.to_dict()["considered"]
        note(f"plan over {words}: plans", considered, "plans")
        note(f"plan over {words}, one core", taken, "seconds")
        note(f"plan over {words}, one core, plans decided", considered / taken, "plans/s")
        note(f"plan over {words}, one core, to the first plan", first[0], "seconds")


def searches(note: Note, sizes: Sizes) -> None:
    questions(note, sizes)
    rates(note, sizes)
    memory(note, sizes)


if __name__ == "__main__":
    searches(lambda name, value, unit: print(f"{name:<76} {value:12.4g} {unit}", flush=True), FULL)

"""Measured step times, asked of tonnage and of llm-analysis: rows of validation/train_speed.yaml that say all, as
far as llm-analysis has words for them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median
from typing import Any

import numpy as np

from _speed_cases import Case, cases
from search_training import CASES, space_of, valid
from sizes import FULL
from tonnage.estimate.hardware.network import Level
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.memory import training_memory
from tonnage.estimate.step_time.step import StepTime
from tonnage.estimate.step_time.time import Timing
from tonnage.search.training.search import search

SAID = "0.5"  # of the peak: what llm-analysis says that Megatron-LM reaches
TIMED = 40  # rows that the speed of both tools is measured on, evenly over all
TEXT = """## Measured step times

{told} of the {rows} rows of validation/train_speed.yaml that say all and that tonnage's rates were fitted on; of the others llm-analysis cannot be
told (context parallelism, adapters, recurrences). It is given the model's dimensions, the peak of the narrowest type that the row multiplies in, the links and
0.9 of the memory's bandwidth; the share of the peak that is reached is an input of it: once 0.5, as its source says of
Megatron-LM, and once the share that suits these very rows best. docs/accuracy.md has tonnage's errors on rows that a fit has not seen.
"""
SPEED = """One plan after the other on one core of one machine on {asked}, memory and time of a step: llm-analysis {theirs:.2f} ms; tonnage {ours:.2f} ms
(ratio {ratio:.2f}), or {trees:.2f} ms with the trees that explain every number. As its search takes plans, all layouts of one model on 8 to 2,048
accelerators, {plans:,} valid ones: {walked:,.0f} plans a second each walked whole, {whole:,.0f} times what llm-analysis answers, and {searched:,.0f} a second
with cheap bounds first and the same best plans.
"""


def told() -> list[Case]:
    """The rows that both can be asked."""
    return [case for case in cases() if _is_told(case)]


def _is_told(case: Case) -> bool:
    plan = case.question.plan
    scans = any(work.kind == "scan" for layer in case.step.layers.values() for work in layer.work)
    return plan.context_parallel_size == 1 and plan.tuning.method == "full" and not scans


def questions(dimensions: Callable[[Any], Mapping[str, object]]) -> dict[str, Any]:
    """By row: the model, the machine and the plan in llm-analysis's words."""
    return {case.id: _question(case, dimensions(case.question.model)) for case in told()}


def _question(case: Case, model: Mapping[str, object]) -> dict[str, Any]:
    plan, walk = case.question.plan, StepTime(case.step, rates())
    chip = walk.kernels.chip
    narrow = walk.kernels.narrow if walk.kernels.narrow in chip.dense_flops else walk.kernels.wide
    return {
        "model": {**model, "max_seq_len": int(plan.sequence_length)},
        "gpu": {
            "peak": chip.peak(narrow) / 1e12,
            "memory": chip.memory.bytes_per_second / 1e9,  # type: ignore[operator]
            "inside": _rate(walk.network.inside),
            "outside": _rate(walk.network.outside),
        },
        "tp": plan.tensor_parallel_size,
        "pp": plan.pipeline_parallel_size,
        "dp": plan.data_parallel_size,
        "ep": plan.expert_parallel_size,
        "micro_batch_size": plan.micro_batch_size,
        "micro_batches": plan.num_microbatches,
        "sequence_length": plan.sequence_length,
        "zero_stage": plan.zero_stage,
        "recompute": plan.recompute,
        "flash": plan.kernels.attention != "eager",
        "gated": any(getattr(op, "gated", False) for block in case.step.layers for op in block.ops),
    }


def _rate(level: Level) -> float:
    """GB/s of a link; of one that is not there, any."""
    return level.plain / 1e9 if level.link else 100.0


def kept(theirs: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Of llm-analysis's answers by share of the peak those of the share that it names, and of that whose median
    error is least.
    """
    of = told()

    def error(share: str) -> float:
        return median(abs(theirs[share][case.id] / case.measured - 1) for case in of)

    chosen = {"said": SAID, "best": min(theirs, key=error)}
    return {
        f"{why} {share}": {name: float(f"{value:.4g}") for name, value in theirs[share].items()}
        for why, share in chosen.items()
    }


def seconds(of: Sequence[Case]) -> dict[str, float]:
    """Seconds of a step, by row."""
    return {case.id: case.seconds(rates()) for case in of}


def milliseconds(of: Sequence[Case]) -> dict[str, float]:
    """What an answer costs us: the median over some rows of memory and time, without and with trees."""
    some = of[:: max(1, len(of) // TIMED)]
    return {"plain": _median(_plain, some), "trees": _median(_trees, some), **searched()}


def searched() -> dict[str, float]:
    """A search over all layouts of one model: valid plans, and how many a second, each walked whole and with bounds
    first.
    """
    space = space_of(*CASES[0], FULL)
    usable, made = space.largest.accelerator.memory.usable_bytes, {}
    for bounded, name in ((False, "walked"), (True, "searched")):
        start = time.process_time()
        found = search(space, usable, most=1, bounded=bounded)
        made[name] = round(valid(found) / (time.process_time() - start))
        made["plans"] = valid(found)
    return made


def _plain(case: Case) -> None:
    asked = case.question
    made = training_memory(asked.model, asked.plan, asked.cluster)
    _ = made.fullest, Timing(asked.model, asked.plan, asked.cluster, made.fullest.stage.step).seconds


def _trees(case: Case) -> None:
    asked = case.question
    made = training_memory(asked.model, asked.plan, asked.cluster)
    _ = made.memory, Timing(asked.model, asked.plan, asked.cluster, made.fullest.stage.step).term


def _median(call: Callable[[Case], None], of: Sequence[Case]) -> float:
    taken = []
    for case in of:
        call(case)  # the first of a kind fills caches, as llm-analysis's imports do
        start = time.perf_counter()
        call(case)
        taken.append(time.perf_counter() - start)
    return 1000 * median(taken)


def section(answers: Mapping[str, Any]) -> tuple[str, list[Sequence[str]], str]:
    """The text, the table and the sentence on speed. `answers`: what llm-analysis said, seconds by row and share of
    the peak.
    """
    of = told()
    ours, theirs = seconds(of), answers["llm-analysis"]["speed"]
    columns = {
        "tonnage (computed)": ours,
        **{f"llm-analysis, {share} of the peak (live)": found for share, found in theirs.items()},
    }
    lines: list[Sequence[str]] = [("mean / median / p90", "rows", *columns)]
    kinds: tuple[tuple[str, Callable[[Case], bool]], ...] = (
        ("all", lambda case: True),
        ("dense", lambda case: case.kind == "dense"),
        ("mixtures of experts", lambda case: case.kind == "moe"),
        *(
            (f"{name}", lambda case, name=name: case.generation == name)
            for name in sorted({case.generation for case in of})
        ),
    )
    for name, belongs in kinds:
        chosen = [case for case in of if belongs(case)]
        lines.append((name, str(len(chosen)), *(_errors(chosen, found) for found in columns.values())))
    spent = answers["milliseconds"]
    speed = SPEED.format(
        asked=answers["asked"],
        theirs=spent["llm-analysis"],
        ours=spent["tonnage"]["plain"],
        trees=spent["tonnage"]["trees"],
        ratio=spent["tonnage"]["plain"] / spent["llm-analysis"],
        whole=spent["tonnage"]["walked"] * spent["llm-analysis"] / 1000,
        **{name: spent["tonnage"][name] for name in ("plans", "walked", "searched")},
    )
    return TEXT.format(told=len(of), rows=len(cases())), lines, speed


def _errors(of: Sequence[Case], found: Mapping[str, float]) -> str:
    sizes = [abs(found[case.id] / case.measured - 1) for case in of]
    return " / ".join(f"{100 * size:.1f}" for size in (mean(sizes), median(sizes), np.percentile(sizes, 90))) + " %"

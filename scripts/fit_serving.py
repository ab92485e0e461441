"""Fits the rates of serving to published TTFT and TPOT (validation/infer_speed.yaml) and writes
src/tonnage/estimate/serving_time/rates.toml.

python scripts/fit_serving.py [--quick] [--recent]    needs scipy; with --quick without the errors of what is left out;
with --recent rows of new sources (validation/recent) count too, all but those that are left out for good.
python scripts/fit_serving.py --only mlx    fits one engine beside the shipped rates of all others, with rows of new
sources, and writes its block and its errors alone.

A row's TPOT is a decoding pass and a share of the passes of prompts, its TTFT some passes of prompts: how many, the
steady state of its load says, and it is asked again after each fit. So a fit is least squares over seconds of passes.
Errors are those of the steady state itself.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median

import numpy as np
from msgspec.structs import replace
from scipy.optimize import least_squares

from _serving_bounds import CORE, ENGINES, HOST_STEP, OF_ENGINE, OTHERS, VERSIONS, at_bounds, count
from _serving_cases import Case, Side, cases, predicted, sides
from tonnage.estimate.serving_time.rates import BEFORE, ON, Engine, ServingRates, serving_rates
from tonnage.kernel.errors import MissingDatum

WHERE = Path(__file__).parents[1] / "src" / "tonnage" / "estimate" / "serving_time" / "rates.toml"
EAGER = ("transformers",)
FIXED = (
    (
        "product: aiconfigurator-core 0.12.0, systems/data, gemm_perf: 16-bit products of few rows take 4 to 5 "
        "us beyond the reading of their weights"
    ),
    (
        "unpack: the same, A100, TensorRT-LLM 1.0: products with weights of 8 or 4 bits alone start 7.2 and 9.0 "
        "us later than 16-bit ones, and 8-bit weights are then read as fast (78 % of the memory's bandwidth "
        "beside 77)"
    ),
    "attention: the same, generation_attention_perf: 8 to 15 us of one request with 1 024 tokens",
    "reduce: the same, custom_allreduce_perf: 4 to 7 us of 128 bytes over 2 to 8 accelerators, in graphs",
)
OTHER_PROGRAMS = ("litgpt",)  # that stand under the engine nearest to them: in errors, not in its rates
PROCESSES = 2
VOTES = {"ttft_seconds": 0.4}  # beside a TPOT: what a client's clock and a queue make of it scatters more
SCALE = 0.08  # a relative error from which on a row pulls less
# How far a rate is held at its first guess, for each row: so that cells left out are nearest (decision 0048).
PULL, PULL_ALONE = 1.2, 0.02
MEASURED = 20  # rows from which on a generation has the band of those that were measured, and not that of unseen ones
STEP = 1e-6  # of a logarithm, for a derivative
ROUNDS, STEPS = 3, 12  # how often the steady states are asked again, and steps of least squares between
ROUNDS_NEAR, STEPS_NEAR = 2, 4  # from the fit of all rows, for those without some of them


class Fit:
    """Rates of these sides; what no row of them says stays near the first guess."""

    def __init__(self, chosen: list[Side]):
        self.sides = chosen
        self.engines = [name for name in ENGINES if any(side.cases[0].plan.engine == name for side in chosen)]
        own = dict.fromkeys(self.engines, OF_ENGINE)
        own |= {version: names for version, names in VERSIONS.items() if engine_of(version) in self.engines}
        self.own = own
        self.names = [*CORE, *(f"{owner} {name}" for owner, names in own.items() for name in names)]
        bounds = np.log([*CORE.values(), *(each for names in own.values() for each in names.values())])
        self.low, self.guess, self.high = bounds[:, 0], bounds[:, 1], bounds[:, 2]

    def rates(self, x) -> ServingRates:
        found = dict(zip(self.names, np.exp(x).tolist(), strict=True))
        engines = {
            engine: Engine(
                step=HOST_STEP,
                mixtures=1.0,  # kernels around experts are the same in all: free ones are 0.98, 1.02 and 1.22
                **{name: found[f"{engine} {name}"] for name in OF_ENGINE},
            )
            for engine in self.engines
        }
        engines["generic"] = Engine(
            step=HOST_STEP,
            **{
                name: float(np.exp(np.mean([np.log(found[f"{engine} {name}"]) for engine in self.engines])))
                for name in OF_ENGINE
            },
        )
        for version, names in self.own.items():
            if version not in engines:
                values = {name: found[f"{version} {name}"] for name in names}
                engines[version] = replace(engines[engine_of(version)], **values)
        return replace(serving_rates(), engines=engines, **{name: found[name] for name in CORE})

    def residuals(self, x):
        rates = self.rates(x)
        found = np.concatenate([self.of_side(side, rates) for side in self.sides])
        return np.concatenate([found, self.pull * (x - self.guess)])

    @staticmethod
    def of_side(side: Side, rates: ServingRates) -> list[float]:
        """Weighted logarithms of what is predicted over what was measured."""
        made = side.times(rates)
        return [
            np.sqrt(case.vote(name)) * VOTES.get(name, 1) * np.log(made[name][n] / value)
            for n, case in enumerate(side.cases)
            for name, value in case.measured.items()
        ]

    @property
    def pull(self) -> float:
        """Towards the first guess."""
        return PULL * np.sqrt(sum(self.sizes) / 200)

    @cached_property
    def sizes(self) -> list[int]:
        return [sum(len(case.measured) for case in side.cases) for side in self.sides]

    def slopes(self, x):
        """The derivatives of `residuals`: a rate of one engine is asked of its own sides alone."""
        rates, ends = self.rates(x), np.cumsum([0, *self.sizes])
        here = [np.array(self.of_side(side, rates)) for side in self.sides]
        found = np.zeros((ends[-1] + len(x), len(x)))
        for column, name in enumerate(self.names):
            step = STEP if x[column] + STEP < self.high[column] else -STEP
            moved = np.array(x)
            moved[column] += step
            tried = self.rates(moved)
            for number, side in enumerate(self.sides):
                plan = side.cases[0].plan
                same = tried.engine(plan.engine, plan.engine_version) == rates.engine(plan.engine, plan.engine_version)
                if same and name not in CORE:
                    continue
                rows = slice(ends[number], ends[number + 1])
                found[rows, column] = (self.of_side(side, tried) - here[number]) / step
            found[ends[-1] + column, column] = self.pull
        return found

    def start(self, rates: ServingRates) -> np.ndarray:
        """The unknowns of rates that another fit found."""
        values = [getattr(rates, name) for name in CORE]
        values += [getattr(rates.engines[owner], name) for owner, names in self.own.items() for name in names]
        return np.clip(np.log(values), self.low + 1e-6, self.high - 1e-6)

    def run(self, near: ServingRates | None = None) -> ServingRates:
        """The rates; `near`: of a fit to nearly the same rows, from where fewer steps are needed."""
        x = self.guess if near is None else self.start(near)
        for _ in range(ROUNDS if near is None else ROUNDS_NEAR):
            for side in self.sides:
                side.settle(self.rates(x))
            x = least_squares(
                self.residuals,
                x,
                jac=self.slopes,
                bounds=(self.low, self.high),
                loss="soft_l1",
                f_scale=SCALE,
                max_nfev=STEPS if near is None else STEPS_NEAR,
            ).x
        return self.rates(x)


def engine_of(version: str) -> str:
    """The engine of "vllm before 0.8" and of "llama.cpp on Apple"."""
    return version.partition(BEFORE)[0].partition(ON)[0]


def fit_engine(
    engine: str, found: list[Case], rates: ServingRates, near: ServingRates | None = None
) -> dict[str, Engine]:
    """The numbers of an engine besides those of all, and of its earlier versions, from its own rows."""
    own = {engine: OTHERS[engine], **{name: each for name, each in VERSIONS.items() if engine_of(name) == engine}}
    names = [(owner, name) for owner, each in own.items() for name in each]
    # a program of one user: no server stands before it
    first = replace(
        rates.engines["generic"], replays=engine not in EAGER, prompt=2e-6, arrive=1e-3, step=1e-4, mixtures=1.0
    )
    bounds = np.log([values for each in own.values() for values in each.values()])

    def made(x) -> dict[str, Engine]:
        values: dict[str, dict[str, float]] = {owner: {} for owner in own}
        for (owner, name), value in zip(names, np.exp(x).tolist(), strict=True):
            values[owner][name] = value
        base = replace(first, **values[engine])
        return {owner: base if owner == engine else replace(base, **values[owner]) for owner in own}

    def residuals(x):
        tried = replace(rates, engines={**rates.engines, **made(x)})
        away = [
            np.sqrt(case.vote(name)) * VOTES.get(name, 1) * np.log(getattr(says, name) / value)
            for case in found
            for says in [predicted(case, tried)]
            for name, value in case.measured.items()
            if getattr(says, name)
        ]
        return np.concatenate([away, PULL_ALONE * np.sqrt(len(away) / 50) * (x - bounds[:, 1])])

    begin = bounds[:, 1]
    if near is not None:
        begin = np.clip(
            np.log([getattr(near.engines[owner], name) for owner, name in names]),
            bounds[:, 0] + 1e-6,
            bounds[:, 2] - 1e-6,
        )
    steps = 8 if near is None else STEPS_NEAR
    return made(
        least_squares(
            residuals, begin, bounds=(bounds[:, 0], bounds[:, 2]), loss="soft_l1", f_scale=SCALE, max_nfev=steps
        ).x
    )


def all_rates(
    core: list[Case], others: list[Case], *, keep: ServingRates | None = None, near: ServingRates | None = None
) -> ServingRates:
    """Rates of all engines: of the three first, then of each other one beside them. `keep`: with those of the three."""
    rates = keep or Fit(sides(core)).run(near)
    for engine in OTHERS:
        own = [case for case in others if case.plan.engine == engine and case.asked.publication not in OTHER_PROGRAMS]
        if own:
            rates = replace(rates, engines={**rates.engines, **fit_engine(engine, own, rates, near)})
    return rates


def errors(found: list[Case], rates: ServingRates) -> dict[str, list[tuple[Case, float]]]:
    """Signed relative errors of every figure, as the product makes it."""
    made = defaultdict(list)
    for case in found:
        try:
            says = predicted(case, rates)
        except MissingDatum:  # of a load that the memory bounds, where the memory is not known
            continue
        for name, value in case.measured.items():
            if getattr(says, name):
                made[name].append((case, getattr(says, name) / value - 1))
    return made


def line(what: str, found: list[float]) -> str:
    size = sorted(abs(each) for each in found)
    return (
        f"{what}: n {len(size)} mean {100 * mean(size):.1f} median {100 * median(size):.1f} p90 "
        f"{100 * size[int(0.9 * (len(size) - 1))]:.1f} "
        f"bias {100 * mean(found):+.1f}"
    )


def left_out(
    core: list[Case], others: list[Case], key, near: ServingRates, groups: int = 0
) -> dict[str, list[tuple[Case, float]]]:
    """Errors of each group by rates of all others; `groups`: so many parts of them; `near`: the rates of all."""
    names = sorted({str(key(case)) for case in (*core, *others)})
    part = {name: n % groups if groups else n for n, name in enumerate(names)}
    every = (*core, *others)
    FOLDS[:] = [core, others, [part[str(key(case))] for case in every], near]
    made = defaultdict(list)
    with get_context("fork").Pool(PROCESSES) as pool:
        for found in pool.imap(_fold, sorted(set(part.values())), chunksize=1):
            for name, pairs in found.items():
                made[name] += [(every[number], error) for number, error in pairs]
    return made


FOLDS: list = []  # what processes find when they are forked


def _fold(n: int) -> dict[str, list[tuple[int, float]]]:
    """Errors of one part, as (number of the case, error), by rates of the others."""
    core, others, parts, near = FOLDS
    every = (*core, *others)
    kept = [part != n for part in parts]
    rates = all_rates(
        [case for case, keep in zip(core, kept[: len(core)], strict=True) if keep],
        [case for case, keep in zip(others, kept[len(core) :], strict=True) if keep],
        keep=near if all(kept[: len(core)]) else None,
        near=near,
    )
    numbers = {id(case): number for number, case in enumerate(every)}
    own = [case for case, keep in zip(every, kept, strict=True) if not keep]
    print("part", n, "without", len(own), "rows", flush=True)
    return {name: [(numbers[id(case)], error) for case, error in pairs] for name, pairs in errors(own, rates).items()}


def is_core(case: Case) -> bool:
    """Rows of these engines that say how many requests ran at once."""
    return case.plan.engine in ENGINES and bool(case.asked.load.concurrency)


SLICES = {
    "silicon sample": lambda case: case.asked.publication == "silicon-sample",
    "silicon sample, full": lambda case: case.asked.publication == "silicon-sample" and case.completeness == "full",
    "silicon sample, Llama": lambda case: case.asked.publication == "silicon-sample" and "llama" in case.asked.name,
    "others": lambda case: case.asked.publication != "silicon-sample" and not case.is_recent,
    "others, full": lambda case: (
        case.asked.publication != "silicon-sample" and not case.is_recent and case.completeness == "full"
    ),
    "new sources": lambda case: case.is_recent,
}


def report(found, title: str) -> list[str]:
    lines = []
    for slice_name, holds in SLICES.items():
        for name, pairs in sorted(found.items()):
            own = [error for case, error in pairs if holds(case)]
            if own:
                lines.append(line(f"{title}, {slice_name}, {name}", own))
    main = [
        error
        for name, pairs in found.items()
        for case, error in pairs
        if SLICES["others, full"](case) and name != "ttft_seconds"
    ]
    if main:
        lines.append(line(f"{title}, others, full, all figures but TTFT", main))
    return lines


def bands(found) -> dict[str, tuple[float, float, int]]:
    """Measured over predicted: where 9 of 10 lie of what was left out."""
    made = {}
    for name, pairs in found.items():
        ratios = sorted(1 / (1 + error) for _, error in pairs)
        made[name] = (ratios[int(0.05 * len(ratios))], ratios[int(0.95 * len(ratios))], len(ratios))
    return made


def written(
    rates: ServingRates,
    lines: list[str],
    found: dict[str, tuple[float, float, int]],
    unseen: dict[str, tuple[float, float, int]],
    rows: Sequence[Case],
) -> str:
    new_sources = " and validation/recent" * any(case.is_recent for case in rows)
    read_from = f"validation/infer_speed.yaml{new_sources}"
    out = [
        f"# Made by scripts/fit_serving.py from {read_from}. Errors in percent of what was measured:",
        *(f"# {each}" for each in lines),
        "#",
        "# Fixed:",
        *(f"# {each}" for each in FIXED),
        "# At a bound, so that rows alone would go further: " + (", ".join(at_bounds(rates)) or "none"),
        "",
        f'fitted = "{count(rates)} rates on {len(rows)} rows"',
    ]
    numbers = Counter(case.asked.cluster.accelerator.generation for case in rows)
    out += [f"generations = {json.dumps(sorted(name for name, number in numbers.items() if number >= MEASURED))}"]
    out += [f"{name} = {getattr(rates, name):.4g}" for name in (*CORE, "product", "unpack", "attention", "reduce")]
    for engine, own in rates.engines.items():
        out += ["", *of_engine(engine, own)]
    for kind, each in (("bands", found), ("unseen", unseen)):
        for name, (low, high, number) in each.items():
            out += ["", f"[{kind}.{name}]", f"low = {low:.3f}", f"high = {high:.3f}", f"rows = {number}"]
    return "\n".join(out) + "\n"


def of_engine(engine: str, own: Engine) -> list[str]:
    """The block of an engine in rates.toml."""
    apart = ("replays", "generations")
    numbers = [f"{name} = {getattr(own, name):.4g}" for name in own.__struct_fields__ if name not in apart]
    numbers += [f"generations = {json.dumps(own.generations)}"] if own.generations else []
    return [f'[engines."{engine}"]', *numbers, f"replays = {str(own.replays).lower()}"]


def fit_one(engine: str) -> None:
    """Fit one engine beside the shipped rates, and write its block and its errors."""
    own = [case for case in cases(recent=True) if case.plan.engine == engine]
    rates = serving_rates()
    known = tuple(sorted({case.asked.cluster.accelerator.generation for case in own} - {*rates.generations}))
    found = {name: replace(each, generations=known) for name, each in fit_engine(engine, own, rates).items()}
    rates = replace(rates, engines={**rates.engines, **found})
    compared = errors(own, rates)
    lines = [line(f"seen, {engine}, {name}", [error for _, error in pairs]) for name, pairs in sorted(compared.items())]
    bounds = [each for each in at_bounds(rates) if each.startswith(f"{engine} ")]
    lines += [f"at a bound, {engine}: {', '.join(bounds)}"] if bounds else []
    print("\n".join(lines))
    blocks = WHERE.read_text().split("\n\n")
    made = ["\n".join(of_engine(name, each)) for name, each in rates.engines.items() if engine_of(name) == engine]
    kept = [block for block in blocks if not block.startswith((f'[engines."{engine}"]', f'[engines."{engine} '))]
    head = [each for each in kept[0].splitlines() if f", {engine}, " not in each and f", {engine}:" not in each]
    place = next(number for number, block in enumerate(kept) if block.startswith(("[bands.", "[unseen.")))
    head += [f"# {each}" for each in lines]
    WHERE.write_text("\n\n".join(["\n".join(head), *kept[1:place], *made, *kept[place:]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the errors of what is left out, nothing written")
    parser.add_argument("--recent", action="store_true", help="rows of new sources too, but those left out for good")
    parser.add_argument("--cells", action="store_true", help="errors of each cell")
    parser.add_argument("--others", action="store_true", help="fit the other engines alone, the three as they ship")
    parser.add_argument("--only", metavar="ENGINE", help="fit this engine alone, all others as they ship")
    arguments = parser.parse_args()
    if arguments.only:
        fit_one(arguments.only)
        return
    every = cases(arguments.recent)
    core = [case for case in every if is_core(case)]
    others = [case for case in every if case.plan.engine in OTHERS]
    print(len(core), "rows of three engines,", len(others), "of others")
    rates = all_rates(core, others, keep=serving_rates() if arguments.others else None)
    lines = report(errors(every, rates), "seen")
    print(written(rates, lines, {}, {}, [*core, *others]))
    if arguments.cells:
        for name, pairs in errors(every, rates).items():
            groups = defaultdict(list)
            for case, error in pairs:
                cell = case.asked.cell
                groups[cell.model, cell.accelerator, cell.engine, case.plan.engine_version, cell.precision].append(
                    error
                )
            for key, own in sorted(groups.items()):
                print(line(f"{name} {' '.join(key)}", own))
    shipped = [
        {name: (band.low, band.high, band.rows) for name, band in each.items()}
        for each in (serving_rates().bands, serving_rates().unseen)
    ]
    if arguments.others:
        kept = [
            each.removeprefix("# ")
            for each in WHERE.read_text().splitlines()
            if each.startswith("# ") and "left out" in each
        ]
        WHERE.write_text(written(rates, lines + kept, *shipped, [*core, *others]))
    if arguments.quick or arguments.others:
        return
    WHERE.write_text(written(rates, lines, *shipped, [*core, *others]))  # each stage takes minutes
    cells = left_out(core, others, lambda case: case.asked.cell, rates, 6)
    stages = {
        "cells": lambda: cells,
        "engines": lambda: left_out(core, [], lambda case: case.plan.engine, rates),
        "generations": lambda: left_out(core, others, lambda case: case.asked.cluster.accelerator.generation, rates),
    }
    unseen = shipped[1]
    for title, run in stages.items():
        made = run()
        lines += report(made, f"{title} left out")
        unseen = bands(made) if title == "generations" else unseen
        WHERE.write_text(written(rates, lines, bands(cells), unseen, [*core, *others]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()

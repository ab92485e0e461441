"""Fits the rates of serving to published TTFT and TPOT (validation/infer_speed.yaml) and writes src/tonnage/estimate/inference/rates.toml.

python scripts/fit_serving.py [--quick]    needs scipy (pip install scipy); with --quick without the errors of what is left out.

A row's TPOT is a decoding pass and a share of the passes of prompts, its TTFT some passes of prompts: how many, the steady state of its load says,
and it is asked again after each fit. So a fit is least squares over seconds of passes. Errors are those of the steady state itself.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

import numpy as np
from msgspec.structs import replace
from scipy.optimize import least_squares

from _serving_cases import Case, Side, cases, predicted, sides
from tonnage.estimate.inference._rates import Engine, ServingRates, serving_rates

WHERE = Path(__file__).parents[1] / "src" / "tonnage" / "estimate" / "inference" / "rates.toml"
ENGINES = ("vllm", "sglang", "tensorrt-llm")
# (least, first guess, most): physical limits, not what a row would like
CORE = {
    "weights": (0.6, 0.85, 0.95), "cache": (0.6, 0.85, 0.92), "cast": (0.5e-6, 3e-6, 12e-6), "mixture": (2e-6, 10e-6, 80e-6), "mixture_launches": (2, 15, 100),
    "other": (0.3e-6, 1.5e-6, 5e-6), "products": (0.5, 0.8, 1.3), "experts": (0.15, 0.5, 1.2),
    "packed": (0.5, 0.85, 1.0),
}  # fmt: skip
OF_ENGINE = {"step": (5e-5, 5e-4, 5e-3), "request": (1e-7, 3e-6, 5e-5), "prompt": (3e-7, 30e-6, 2e-4), "arrive": (1e-3, 20e-3, 60e-3), "floors": (0.3, 1.0, 2.0)}
VOTES = {"ttft_seconds": 0.4}  # beside a TPOT: what a client's clock and a queue make of it scatters more
SCALE = 0.08  # a relative error from which on a row pulls less


class Fit:
    """Rates of these sides; what no row of them says stays near the first guess."""

    def __init__(self, chosen: list[Side]):
        self.sides = chosen
        self.engines = [name for name in ENGINES if any(side.cases[0].plan.engine == name for side in chosen)]
        self.names = [*CORE, *(f"{engine} {name}" for engine in self.engines for name in OF_ENGINE)]
        bounds = np.log([*CORE.values(), *(list(OF_ENGINE.values()) * len(self.engines))])
        self.low, self.guess, self.high = bounds[:, 0], bounds[:, 1], bounds[:, 2]

    def rates(self, x) -> ServingRates:
        found = dict(zip(self.names, np.exp(x).tolist(), strict=True))
        engines = {engine: Engine(**{name: found[f"{engine} {name}"] for name in OF_ENGINE}) for engine in self.engines}
        engines["generic"] = Engine(**{name: float(np.exp(np.mean([np.log(found[f"{engine} {name}"]) for engine in self.engines]))) for name in OF_ENGINE})
        return replace(serving_rates(), engines=engines, **{name: found[name] for name in CORE})

    def residuals(self, x):
        rates, found = self.rates(x), []
        for side in self.sides:
            made = side.times(rates)
            for n, case in enumerate(side.cases):
                for name, value in case.measured.items():
                    found.append(VOTES.get(name, 1) * np.log(made[name][n] / value))
        return np.concatenate([found, 0.02 * np.sqrt(len(found) / 200) * (x - self.guess)])

    def run(self, rounds: int = 3) -> ServingRates:
        x = self.guess
        for _ in range(rounds):
            for side in self.sides:
                side.settle(self.rates(x))
            x = least_squares(self.residuals, x, bounds=(self.low, self.high), loss="soft_l1", f_scale=SCALE, max_nfev=12).x
        return self.rates(x)


def errors(found: list[Case], rates: ServingRates) -> dict[str, list[tuple[Case, float]]]:
    """Signed relative errors of every figure, as the product makes it."""
    made = defaultdict(list)
    for case in found:
        says = predicted(case, rates)
        for name, value in case.measured.items():
            made[name].append((case, getattr(says, name) / value - 1))
    return made


def line(what: str, found: list[float]) -> str:
    size = sorted(abs(each) for each in found)
    return (f"{what}: n {len(size)} mean {100 * mean(size):.1f} median {100 * median(size):.1f} p90 {100 * size[int(0.9 * (len(size) - 1))]:.1f} "
            f"bias {100 * mean(found):+.1f}")  # fmt: skip


def left_out(found: list[Case], key) -> dict[str, list[tuple[Case, float]]]:
    """Errors of each group by rates of all others."""
    groups, made = defaultdict(list), defaultdict(list)
    for case in found:
        groups[key(case)].append(case)
    for own in groups.values():
        others = [case for case in found if case not in own]
        for name, pairs in errors(own, Fit(sides(others)).run(2)).items():
            made[name] += pairs
    return made


def is_core(case: Case) -> bool:
    """Rows of these engines that say how many requests ran at once."""
    return case.plan.engine in ENGINES and case.completeness != "indicative" and bool(case.asked.load.concurrency) and not case.asked.is_guessed


def report(found, title):
    for name, pairs in sorted(found.items()):
        print(line(f"{title}, {name}", [error for _, error in pairs]))
        for source in sorted({case.asked.source.name for case, _ in pairs}):
            print(line(f"{title}, {name}, {source}", [error for case, error in pairs if case.asked.source.name == source]))
        for model in ("llama",):
            own = [error for case, error in pairs if model in case.asked.name]
            if own:
                print(line(f"{title}, {name}, {model}", own))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cells", action="store_true")
    arguments = parser.parse_args()
    found = [case for case in cases() if is_core(case)]
    print(len(found), "rows")
    rates = Fit(sides(found)).run()
    for name in CORE:
        print(name, f"{getattr(rates, name):.4g}")
    for engine, own in rates.engines.items():
        print(engine, " ".join(f"{name}={getattr(own, name):.3g}" for name in OF_ENGINE))
    seen = errors(found, rates)
    report(seen, "seen")
    if arguments.cells:
        for name, pairs in seen.items():
            groups = defaultdict(list)
            for case, error in pairs:
                cell = case.asked.cell
                groups[cell.model, cell.accelerator, cell.engine, case.plan.engine_version, cell.precision].append(error)
            for key, own in sorted(groups.items()):
                print(line(f"{name} {' '.join(key)}", own))


if __name__ == "__main__":
    main()

"""Fit what engines reach that keep routed experts in host memory (src/tonnage/runtimes/ktransformers.py), from the rows
of validation/recent/ktransformers.yaml that are not left out.

One constant at a time, by the least mean of |log(predicted / measured)| over all figures that are not indicative, until
none changes. Prints the constants, the errors of rows that were seen and of those left out, and the bands: between
which measured / predicted lies for nine in ten of those seen, where each publication is predicted without its own rows,
and with the constants of the nearest kernels or version in place of those that it alone decides.

python scripts/fit_host_experts.py [--check]      --check: only the neighbours of the shipped constants
"""

import sys
from collections.abc import Mapping
from math import exp, log
from statistics import mean, median, quantiles

from msgspec.structs import replace

from _rows_for_fits import RECENT
from tonnage.runtimes import ServingRuntime, ktransformers, serving_runtime
from tonnage.runtimes.parts.host_experts import HostMethod
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.validation import Row, read
from tonnage.validation.serving import ServingRow, time_figure

NAME = "ktransformers"
# Constants of ktransformers.py, each with the grid that it is sought on: steps of a tenth.
SHARES = ("BANDWIDTH_SHARE", "HOST_SHARE", "LINK_SHARE", "OLD_LINK_SHARE")
RATES = ("LLAMAFILE", "AMX", "NATIVE", "LAYER_SECONDS", "OLD_LAYER_SECONDS")
# What a publication alone decides, and what stands in for it.
ALONE = {
    "ktransformers-deepseek-v3": {"LLAMAFILE": "NATIVE", "OLD_LAYER_SECONDS": "LAYER_SECONDS"},
    "ktransformers-deepseek-v3-amx": {"AMX": "NATIVE"},
    "ktransformers-avx2": {
        "NATIVE": "LLAMAFILE", "LINK_SHARE": "OLD_LINK_SHARE", "LAYER_SECONDS": "OLD_LAYER_SECONDS",
    },
    "ktransformers-kimi-k2": {"OLD_LINK_SHARE": "LINK_SHARE"},
}  # fmt: skip
MOST_OF_A_LINK = 0.95  # of PCIe, what headers of packets leave
STEPS = [0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25]
ROUNDS = 12
TIMES = ("ttft_seconds", "tpot_seconds")


def shipped() -> dict[str, float]:
    return {name: getattr(ktransformers, name) for name in (*SHARES, *RATES)}


def runtime_with(constants: Mapping[str, float], engine: ServingRuntime) -> ServingRuntime:
    """One version of the engine with these constants in place of those that ship."""
    held = engine.host_experts
    assert held is not None
    own = engine.limits[0].requests == 1  # its own server
    return replace(
        engine,
        host_experts=replace(
            held,
            methods={name: replace(each, core_flops=constants[kernel(each)]) for name, each in held.methods.items()},
            bandwidth_share=constants["BANDWIDTH_SHARE"],
            layer_seconds=constants["OLD_LAYER_SECONDS" if own else "LAYER_SECONDS"],
            host_share=constants["HOST_SHARE"] if held.host_share else 0.0,
            link_share=constants["LINK_SHARE" if held.overlaps_loading else "OLD_LINK_SHARE"] * bool(held.link_share),
        ),
    )


def kernel(method: HostMethod) -> str:
    """The constant that a method's kernels have."""
    return "LLAMAFILE" if not method.weights else "AMX" if method.needs == "AMX" else "NATIVE"


def ratios(rows: list[Row], constants: Mapping[str, float]) -> list[tuple[Row, str, float]]:
    """Of each figure its row, the time that it follows from, and predicted over measured seconds."""
    before = serving_runtime(NAME)
    older = {version: runtime_with(constants, each) for version, each in before.older.items()}
    _set(replace(runtime_with(constants, before), older=older))
    try:
        found = []
        for row in rows:
            question = ServingRow(row)
            times = question.times()
            for measured in (row.measured, *row.also):
                figure = time_figure(measured, question)
                ratio = figure.value(times) / measured.value
                found.append((row, figure.of, 1 / ratio if figure.rate else ratio))
        return found
    finally:
        _set(before)


def _set(engine: ServingRuntime) -> None:
    SERVING_RUNTIMES.remove(NAME)
    SERVING_RUNTIMES.add(NAME, engine)


def error(rows: list[Row], constants: Mapping[str, float]) -> float:
    return mean(abs(log(ratio)) for _, _, ratio in ratios(rows, constants))


def fitted(rows: list[Row], steps: list[float], rounds: int) -> dict[str, float]:
    """The constants at which no step makes the error less."""
    best = shipped()
    least = error(rows, best)
    for _ in range(rounds):
        before = dict(best)
        for name in best:
            for step in steps:
                most = MOST_OF_A_LINK if name in SHARES else float("inf")
                tried = {**best, name: min(float(f"{before[name] * step:.3g}"), most)}
                if (now := error(rows, tried)) < least - 1e-4:
                    best, least = tried, now
        if best == before:
            break
    return best


def without(publication: str, rows: list[Row], *, check: bool) -> list[tuple[Row, str, float]]:
    """The figures of a publication by constants that its rows had no part in."""
    others = [row for row in rows if row.labels["publication"] != publication]
    found = fitted(others, STEPS, 1 if check else ROUNDS)
    found |= {name: found[kin] for name, kin in ALONE[publication].items()}
    return ratios([row for row in rows if row.labels["publication"] == publication], found)


def main(*words: str) -> dict[str, float]:
    every = [row for row in read([str(RECENT / "ktransformers.yaml")]) if not row.completeness.startswith("indicative")]
    seen = [row for row in every if not row.left_out]
    check = "--check" in words
    best = fitted(seen, [0.8, 1.25] if check else STEPS, 1 if check else ROUNDS)
    for name, value in best.items():
        print(f"{name} = {value:.3g}")
    for left_out in (False, True):
        found = ratios([row for row in every if row.left_out == left_out], best)
        for of in TIMES:
            errors = [abs(ratio - 1) for _, name, ratio in found if name == of]
            word = "left out" if left_out else "seen"
            print(f"{word}, {of}: n {len(errors)} median {100 * median(errors):.1f} % mean {100 * mean(errors):.1f} %")
    unseen = [each for name in ALONE for each in without(name, seen, check=check)]
    for of in TIMES:
        cuts = quantiles([-log(ratio) for _, name, ratio in unseen if name == of], n=20, method="inclusive")
        print(f"band of {of}: {exp(cuts[0]):.2f} to {exp(cuts[-1]):.2f}")
    return best


if __name__ == "__main__":
    main(*sys.argv[1:])

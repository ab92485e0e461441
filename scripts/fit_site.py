"""How errors vary among sites and inside of one: fits src/tonnage/estimate/site/priors.toml over the publications of
validation/, each taken for a site, and tries the corrections that follow.

make site-priors
python scripts/fit_site.py [--check]     --check: the trial alone, with the priors that are there

The trial: sites are dealt into folds, the priors are fitted without the sites of a fold, and of every site in it half
of the rows, drawn eight times, correct the other half. The table of docs/commands/calibrate.md is what comes out.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch
from msgspec.structs import replace

from _rows_for_fits import ROOT, rows_for_fits
from tonnage.calibration.compared import compared
from tonnage.estimate.site.cases import Compared
from tonnage.estimate.site.corrections import JITTER, NINE_IN_TEN, TOGETHER, Corrections, Level, Prior, alike_cases
from tonnage.estimate.site.terms import Correction

WHERE = ROOT / "src" / "tonnage" / "estimate" / "site" / "priors.toml"
RESULTS = ROOT / "validation" / "calibration.json"
FILES = ("train_speed", "train_memory", "infer_speed")
LEVELS = (
    ((), ""),
    (("accelerator",), ""),
    (("accelerator", "runtime"), ""),
    (("model",), ""),
    (("precision",), ""),
    (("runtime",), "grows"),
    (("accelerator", "runtime", "release"), "near_and_model"),
    (("accelerator", "runtime", "release", "precision"), "near_and_model"),
    (("runtime", "model"), "near"),
    (("accelerator", "runtime", "release", "model", "precision"), "near"),
)
USUAL_LEVEL, USUAL_NOISE, USUAL_LENGTH, USUAL_TOGETHER = -2.8, -3.0, 1.0, 0.5  # where the fit starts, and is drawn to
DRAWN = 0.1  # how strongly: of a squared logarithm
LOUDER = (1.0, 4.0, 16.0)  # factors on the noise of one site
MOST_ROWS = 100  # of a site that the likelihood takes, so that no site outweighs all others
FOLDS, DRAWS, FEWEST, ITERATIONS = 5, 8, 8, 30
Site = tuple[Compared, ...]


def sites() -> dict[str, Site]:
    """The compared rows by publication; rows that are left out for good are read by no fit."""
    found: defaultdict[str, list[Compared]] = defaultdict(list)
    for row in rows_for_fits([ROOT / "validation" / f"{name}.yaml" for name in FILES], recent=True):
        for one in compared(row):
            found[row.labels.get("publication") or row.source.partition(",")[0]].append(one)
    return {name: tuple(runs) for name, runs in found.items()}


class Fit:
    """The vector that is fitted: logarithms of the deviations of levels, of the noise and of the lengths; then of the
    scales of all quantities but the first, and what their correlations are made from.
    """

    def __init__(self, quantities: tuple[str, ...], dimensions: int):
        self.quantities, self.dimensions = quantities, dimensions
        others = len(quantities) - 1
        self.parts = (len(LEVELS), 1, dimensions, others, len(quantities) * others // 2)
        usual = (USUAL_LEVEL, USUAL_NOISE, USUAL_LENGTH, 0.0, USUAL_TOGETHER)
        self.usual = torch.cat(
            [torch.full((count,), value, dtype=torch.float64) for count, value in zip(self.parts, usual, strict=True)]
        )

    def split(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Deviations, noise, lengths, scales, correlations."""
        levels, noise, lengths, scales, pairs = torch.split(values, self.parts)
        count = len(self.quantities)
        lower = torch.eye(count, dtype=torch.float64)
        rows, columns = torch.tril_indices(count, count, -1)
        lower = lower.index_put((rows, columns), pairs)
        lower = lower / lower.norm(dim=1, keepdim=True)
        one = torch.ones(1, dtype=torch.float64)
        return levels.exp(), noise.exp(), lengths.exp(), torch.cat([one, scales.exp()]), lower @ lower.T

    def prior(self, values: torch.Tensor) -> Prior:
        levels, noise, lengths, scales, together = (part.tolist() for part in self.split(values))
        return Prior(
            quantities=self.quantities,
            noise=noise[0],
            lengths=tuple(lengths),
            levels=tuple(
                Level(alike=alike, sizes=sizes, deviation=deviation)
                for (alike, sizes), deviation in zip(LEVELS, levels, strict=True)
            ),
            scales=tuple(scales),
            together=tuple(map(tuple, together)),
            widening=1.0,
        )

    def fitted(self, found: Sequence[Site], iterations: int, at: torch.Tensor | None = None) -> torch.Tensor:
        """The vector that makes the errors of all sites likeliest."""
        generator = np.random.default_rng(0)
        likelihoods = [Likelihood(_some(runs, generator), self) for runs in found]
        values = (self.usual if at is None else at).clone().requires_grad_()
        search = torch.optim.LBFGS([values], max_iter=iterations, line_search_fn="strong_wolfe")

        def unlikely() -> torch.Tensor:
            search.zero_grad()
            total = sum(likelihood(values) for likelihood in likelihoods)
            total = total + DRAWN * ((values - self.usual) ** 2).sum()
            total.backward()
            return total

        search.step(unlikely)
        return values.detach()


class Likelihood:
    """Minus the logarithm of how likely the errors of one site are."""

    def __init__(self, runs: Site, fit: Fit):
        self.fit = fit
        rows = torch.tensor([one.case.sizes for one in runs], dtype=torch.float64)
        centred = rows - rows.mean(dim=0)
        self.grows = centred @ centred.T / 16
        self.apart = (rows[:, None, :] - rows[None, :, :]) ** 2
        self.kinds = torch.tensor([fit.quantities.index(one.quantity) for one in runs])
        self.errors = torch.tensor([one.error for one in runs], dtype=torch.float64)
        cases = [one.case for one in runs]
        self.alike = [torch.tensor(alike_cases(alike, cases, cases)) for alike, _ in LEVELS]

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        deviations, noise, lengths, scales, together = self.fit.split(values)
        apart = self.apart / lengths**2
        by_sizes = {
            "": 1.0,
            "grows": self.grows,
            "near": torch.exp(-torch.sqrt(apart[..., :-1].sum(dim=-1) + JITTER)),
            "near_and_model": torch.exp(-torch.sqrt(apart.sum(dim=-1) + JITTER)),
        }
        shared = sum(
            deviation**2 * alike * by_sizes[sizes]
            for deviation, alike, (_, sizes) in zip(deviations, self.alike, LEVELS, strict=True)
        )
        scale = scales[self.kinds]
        shared = shared * scale[:, None] * scale[None, :] * together[self.kinds][:, self.kinds]
        own = (noise * scale) ** 2
        tried = [self._unlikely(shared + torch.diag(louder * own + JITTER)) + log(louder) / 4 for louder in LOUDER]
        return min(tried, key=lambda one: float(one.detach()))

    def _unlikely(self, covariance: torch.Tensor) -> torch.Tensor:
        root = torch.linalg.cholesky(covariance)
        white = torch.linalg.solve_triangular(root, self.errors[:, None], upper=False)
        return (white**2).sum() / 2 + torch.log(torch.diag(root)).sum()


def _some(runs: Site, generator: np.random.Generator) -> Site:
    if len(runs) <= MOST_ROWS:
        return runs
    return tuple(runs[number] for number in sorted(generator.choice(len(runs), MOST_ROWS, replace=False)))


def tried(runs: Site, prior: Prior) -> dict[str, dict[str, list[float]]]:
    """Of every quantity errors before and after, of the halves that were left out, and how many band widths each lies
    from the estimate.
    """
    cases = list({id(one.case): one.case for one in runs}.values())
    found: dict[str, dict[str, list[float]]] = {}
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(len(cases))
        chosen = {id(cases[number]) for number in order[: len(cases) // 2]}
        known = Corrections([one for one in runs if id(one.case) in chosen], [prior])
        pairs: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
        for one in runs:
            if id(one.case) in chosen:
                continue
            correction = known.correction(one.quantity, one.case)
            pairs[one.quantity].append(_errors(one, correction))
        for quantity, errors in pairs.items():
            of = found.setdefault(quantity, {"before": [], "after": [], "widths": [], "used": []})
            of["before"].append(median(before for before, _, _ in errors))
            of["after"].append(median(after for _, after, _ in errors))
            of["widths"] += [width for _, _, width in errors if width >= 0]
            of["used"].append(float(errors[0][2] >= 0))
    return found


def _errors(one: Compared, correction: Correction | None) -> tuple[float, float, float]:
    before = abs(exp(-one.error) - 1)
    if correction is None:
        return before, before, -1.0
    left = one.error - log(correction.factor)
    return before, abs(exp(-left) - 1), abs(left) / log(correction.high)


def run(*, check: bool) -> None:
    torch.set_num_threads(1)  # matrices are small, and threads that wait for each other take longer than one
    every = sites()
    priors, table = [], []
    shipped = {} if not check else {prior.quantities: prior for prior in _read()}
    for quantities in TOGETHER:
        found = {
            name: own
            for name, runs in every.items()
            if (own := tuple(one for one in runs if one.quantity in quantities))
        }
        names = sorted(found, key=lambda name: (-len(found[name]), name))
        fit = Fit(quantities, len(found[names[0]][0].case.sizes))
        values = None if check else fit.fitted([found[name] for name in names], ITERATIONS)
        widths: list[float] = []
        for fold in range(FOLDS):
            inside = names[fold::FOLDS]
            if values is None:
                prior = shipped[quantities]
            else:
                others = [found[name] for name in names if name not in inside]
                prior = fit.prior(fit.fitted(others, ITERATIONS // 5, values))
            for name in inside:
                if len({id(one.case) for one in found[name]}) < FEWEST:
                    continue
                for quantity, of in tried(found[name], prior).items():
                    rows = sum(one.quantity == quantity for one in found[name])
                    if rows < FEWEST:
                        continue
                    widths += of["widths"]
                    line = {
                        "quantity": quantity, "site": name, "rows": rows, "before": round(mean(of["before"]), 4),
                        "after": round(mean(of["after"]), 4), "used": round(mean(of["used"]), 2),
                    }  # fmt: skip
                    table.append(line)
                    print(*(f"{value}" for value in line.values()), sep=" | ", flush=True)
        widening = float(np.quantile(widths, 0.9)) if widths else 1.0
        inside = float(np.mean(np.array(widths) <= 1)) if widths else float("nan")
        print(quantities, f"nine in ten within {widening:.2f} band widths; {inside:.0%} inside", flush=True)
        if values is not None:
            priors.append(replace(fit.prior(values), widening=max(widening, 1.0)))
    if not check:
        _write(priors)
        RESULTS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _read() -> list[Prior]:
    from tonnage.estimate.site.corrections import priors

    return list(priors())


def _write(priors: Sequence[Prior]) -> None:
    lines = [
        "# Written by scripts/fit_site.py over the publications of validation/, each taken for a site: do not edit.",
        f"# A band of {NINE_IN_TEN} standard deviations, times `widening`, holds nine in ten rows that were left out.",
    ]
    for prior in priors:
        lines += [
            "",
            "[[priors]]",
            f"quantities = {json.dumps(prior.quantities)}",
            f"noise = {prior.noise:.4g}",
            f"lengths = [{', '.join(f'{length:.4g}' for length in prior.lengths)}]",
            f"scales = [{', '.join(f'{scale:.4g}' for scale in prior.scales)}]",
            f"together = {json.dumps([[round(value, 4) for value in row] for row in prior.together])}",
            f"widening = {prior.widening:.4g}",
            "levels = [",
            *(
                f"  {{alike = {json.dumps(level.alike)}, sizes = {json.dumps(level.sizes)}, "
                f"deviation = {level.deviation:.4g}}},"
                for level in prior.levels
            ),
            "]",
        ]
    Path(WHERE).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="try the priors that are there, and write nothing")
    run(check=parser.parse_args().check)

"""The correction that follows from runs of a site: measured over estimated of runs like the one asked about, shrunk
towards 1 as far as runs of other sites ask for.

Errors (logarithms of measured over estimated) are a Gaussian process whose covariance is a sum of levels: what all
runs of a site share, what those of an accelerator, a runtime, a model, a precision share, and what grows alike with
sizes. `priors.toml` has the variances, which `scripts/fit_site.py` fits over the publications of validation/, each
taken for a site. How large the levels and the noise of this very site are is chosen by its own runs, each left out of
the others. A quantity is corrected only where the runs left out come nearer with the correction than without it, by
more than `SURE` standard errors and to at most `WORTH` of the median error.

Rasmussen2006, ch. 2 (regression), sec. 5.4.2 (leaving one out in closed form).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from itertools import product
from math import exp, inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tonnage.estimate.site.cases import SERVING, TRAINING, Case, Compared
from tonnage.estimate.site.terms import Correction
from tonnage.kernel.prepared import tables

if TYPE_CHECKING:  # only a question that asks for corrections imports numpy
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

#: Quantities that are fitted together: what delays a first token tells something about the others.
TOGETHER = (TRAINING[:1], TRAINING[1:], SERVING)
MOST = 400  # runs of a quantity that are read, the newest: a matrix of all of them is inverted
FEWEST = 6  # runs of a quantity below which nothing is corrected: the choice needs some that are left out
LEVELS = (0.3, 1.0, 3.0, 10.0)  # factors on the variance of a site's levels
NOISE = (0.25, 1.0, 4.0, 16.0)  # factors on the variance of its noise
WIDTH = (0.5, 1.0, 2.0)  # factors on the lengths over which sizes are alike
SPREAD_OF_FACTORS = (1.5, 2.0, 0.7)  # standard deviations of the logarithms of these three among sites
WORTH = 0.9  # of the median error: a correction that leaves more of it is none
SURE = 1.5  # standard errors by which runs left out must come nearer
LARGEST_ERROR = 0.5  # of a run, where runs with and without correction are compared: one run decides nothing
NINE_IN_TEN = 1.645  # standard deviations of a normal distribution on each side
JITTER = 1e-9


class Level(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs that have the fields `alike` share an error of this standard deviation. `sizes`: none; with "grows" it
    grows in proportion to the logarithms of the sizes, with "near" it fades as they differ, with "near_and_model" as
    those of the model differ, too.
    """

    alike: tuple[str, ...]
    sizes: str
    deviation: float


class Prior(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How errors of one quantity, or of some together, vary among sites and inside of one."""

    quantities: tuple[str, ...]
    #: Standard deviation of the noise of one run.
    noise: float
    #: Lengths over which each size is alike.
    lengths: tuple[float, ...]
    levels: tuple[Level, ...]
    #: Standard deviations of the quantities over those of the first.
    scales: tuple[float, ...]
    #: Correlations of the quantities.
    together: tuple[tuple[float, ...], ...]
    #: Factor on a band, so that nine in ten runs left out lie inside.
    widening: float


@cache
def priors() -> tuple[Prior, ...]:
    """The priors that ship."""
    table = tables(str(Path(__file__).with_name("priors.toml")), dict[str, list[Prior]])
    return tuple(table["priors"])


class Chosen(Struct, frozen=True, kw_only=True):
    """The factors that runs chose for quantities that are fitted together: trying them all takes seconds with hundreds
    of runs, so they are kept with the runs. `digest`: of these runs.
    """

    quantities: tuple[str, ...]
    digest: str
    width: float
    level: float
    louder: float


class Corrections:
    """What the kept runs of a site say, the newest `MOST` of each quantity. Two of the same runs are equal: plans that
    hold them are compared. `chosen`: factors that were kept; those of other runs are chosen anew.
    """

    def __init__(self, compared: Sequence[Compared], given: Sequence[Prior] = (), chosen: Sequence[Chosen] = ()):
        self.compared = tuple(compared)
        self._priors = tuple(given) or priors()
        self._chosen = {one.quantities: one for one in chosen}
        self.digest = _digest(self.compared)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Corrections) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def correction(self, quantity: str, case: Case) -> Correction | None:
        """The correction of a quantity; None where too few runs say it, or where they are no help."""
        fitted = self._fitted.get(quantity)
        return fitted.correction(quantity, case) if fitted is not None and fitted.helps[quantity] else None

    @property
    def chosen(self) -> list[Chosen]:
        """The factors that the runs choose, to be kept with them."""
        found = {id(fitted): fitted.chosen for fitted in self._fitted.values()}
        return list(found.values())

    def checked(self) -> Iterator["Checked"]:
        """What each quantity's runs say of the correction, by accelerator and runtime."""
        for quantities in TOGETHER:
            fitted = self._fitted.get(quantities[0])
            if fitted is not None:
                yield from fitted.checked()

    @cached_property
    def _fitted(self) -> "Mapping[str, Fitted]":
        found: dict[str, Fitted] = {}
        for prior in self._priors:
            runs = [one for one in self.compared if one.quantity in prior.quantities][-MOST * len(prior.quantities) :]
            if runs:
                fitted = Fitted(prior, runs, self._chosen.get(prior.quantities))
                found |= dict.fromkeys(prior.quantities, fitted)
        return found


class Checked(Struct, frozen=True, kw_only=True):
    """Runs of one quantity, accelerator and runtime. `error`, `corrected_error`: the median distance of estimate and
    measurement, as a share, without and with a correction from all other runs. `used`: whether it is used.
    """

    quantity: str
    accelerator: str
    runtime: str
    runs: int
    error: float
    corrected_error: float
    factor: float
    used: bool


class Fitted:
    """The process of quantities that are fitted together, with the factors that this site's runs choose."""

    def __init__(self, prior: Prior, runs: Sequence[Compared], chosen: Chosen | None = None):
        import numpy as np

        self.prior, self.runs = prior, tuple(runs)
        self._cases = [one.case for one in runs]
        self._kinds = np.array([prior.quantities.index(one.quantity) for one in runs])
        self._errors = np.array([one.error for one in runs])
        self._scale = np.array(prior.scales)[self._kinds]
        self._centre = np.concatenate([_rows(case) for case in self._cases]).mean(axis=0)
        digest = _digest(runs)
        if chosen is not None and chosen.digest == digest:
            self._choose((chosen.width,), (chosen.level,), (chosen.louder,))
        else:
            self._choose(WIDTH, LEVELS, NOISE)
        self.chosen = Chosen(
            quantities=prior.quantities,
            digest=digest,
            width=self._width,
            level=self._level,
            louder=self._louder,
        )
        self.helps = {quantity: self._helps(kind) for kind, quantity in enumerate(prior.quantities)}

    def _choose(self, widths: Sequence[float], levels: Sequence[float], noises: Sequence[float]) -> None:
        """The factors with which each run is likeliest, left out of the others; Student's t with four degrees of
        freedom, so that a few odd runs decide nothing.
        """
        import numpy as np

        best = inf
        noise = (self.prior.noise * self._scale) ** 2
        for width in widths:
            shared = self._covariance(self._cases, self._kinds, width)
            for level, louder in product(levels, noises):
                inverse = np.linalg.inv(level * shared + np.diag(louder * noise + JITTER))
                weighted, precision = inverse @ self._errors, np.diag(inverse)
                left_out = weighted / precision
                unlikely = np.mean(2.5 * np.log1p(left_out**2 * precision / 3) - 0.5 * np.log(precision))
                factors = zip((level, louder, width), SPREAD_OF_FACTORS, strict=True)
                unlikely += sum((log(factor) / spread) ** 2 for factor, spread in factors) / (2 * len(left_out))
                if unlikely < best:
                    best = float(unlikely)
                    self._width, self._level, self._louder = width, level, louder
                    self._inverse, self._weighted, self._left_out = inverse, weighted, left_out

    def _helps(self, kind: int) -> bool:
        """Whether runs left out come nearer by more than chance explains, and enough to matter."""
        import numpy as np

        of_kind = self._kinds == kind
        if of_kind.sum() < FEWEST:
            return False
        before, after = np.abs(self._errors[of_kind]), np.abs(self._left_out[of_kind])
        nearer = np.minimum(before, LARGEST_ERROR) - np.minimum(after, LARGEST_ERROR)
        is_sure = nearer.mean() > SURE * nearer.std(ddof=1) / len(nearer) ** 0.5
        return bool(is_sure and np.median(after) <= WORTH * np.median(before))

    def correction(self, quantity: str, case: Case) -> Correction:
        """Mean and band of the error of a case, whose sizes may be arrays."""
        import numpy as np

        kind = self.prior.quantities.index(quantity)
        cross = self._level * self._covariance([case], np.array([kind]), self._width, self._cases, self._kinds)
        cross = cross.reshape(-1, len(self.runs))
        scale = self.prior.scales[kind]
        own = self._level * self._variance(case) * scale**2
        mean = cross @ self._weighted
        variance = own - np.einsum("ij,jk,ik->i", cross, self._inverse, cross)
        variance = np.maximum(variance, 0) + self._louder * (self.prior.noise * scale) ** 2
        reach = self.prior.widening * NINE_IN_TEN * np.sqrt(variance)
        factor, low, high = np.exp(mean), np.exp(-reach), np.exp(reach)
        if not any(hasattr(size, "ndim") for size in case.sizes):
            factor, low, high = float(factor[0]), float(low[0]), float(high[0])
        alike = sum(
            one.quantity == quantity and (one.case.accelerator, one.case.runtime) == (case.accelerator, case.runtime)
            for one in self.runs
        )
        runs = sum(one.quantity == quantity for one in self.runs)
        return Correction(factor=factor, low=low, high=high, runs=runs, alike=alike)

    def checked(self) -> Iterator[Checked]:
        import numpy as np

        groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        for number, one in enumerate(self.runs):
            groups[one.quantity, one.case.accelerator, one.case.runtime].append(number)
        for (quantity, accelerator, runtime), numbers in sorted(groups.items()):
            before, after = self._errors[numbers], self._left_out[numbers]
            yield Checked(
                quantity=quantity,
                accelerator=accelerator,
                runtime=runtime,
                runs=len(numbers),
                error=float(np.median(np.abs(np.expm1(-before)))),
                corrected_error=float(np.median(np.abs(np.expm1(-after)))),
                factor=exp(float(np.median(before - after))),
                used=self.helps[quantity],
            )

    # ---- covariance ----

    def _covariance(
        self,
        cases: Sequence[Case],
        kinds: "Array",
        width: float,
        others: Sequence[Case] | None = None,
        other_kinds: "Array | None" = None,
    ) -> "Array":
        """Between cases and others, or themselves, before the site's own factor on the levels. Sizes of a single case
        may be arrays of n plans: then it is n x others.
        """
        import numpy as np

        prior = self.prior
        others, other_kinds = cases if others is None else others, kinds if other_kinds is None else other_kinds
        rows = np.concatenate([_rows(case) for case in cases])
        columns = np.array([other.sizes for other in others], dtype=float)
        apart = ((rows[:, None, :] - columns[None, :, :]) / (np.array(prior.lengths) * width)) ** 2
        near = np.exp(-np.sqrt(apart[..., :-1].sum(axis=-1) + JITTER))
        near_and_model = np.exp(-np.sqrt(apart.sum(axis=-1) + JITTER))
        grows = (rows - self._centre) @ (columns - self._centre).T / 16
        by_sizes = {"": 1.0, "grows": grows, "near": near, "near_and_model": near_and_model}
        total = np.zeros((len(rows), len(columns)))
        for level in prior.levels:
            total = total + level.deviation**2 * alike_cases(level.alike, cases, others) * by_sizes[level.sizes]
        scales = np.outer(np.array(prior.scales)[kinds], np.array(prior.scales)[other_kinds])
        return total * scales * np.array(prior.together)[np.ix_(kinds, other_kinds)]

    def _variance(self, case: Case) -> "Array":
        """Of a case by itself, before scales."""
        import numpy as np

        rows = _rows(case)
        grows = ((rows - self._centre) ** 2).sum(axis=-1) / 16
        total = np.zeros(len(rows))
        for level in self.prior.levels:
            total = total + level.deviation**2 * (grows if level.sizes == "grows" else 1)
        return total


def _rows(case: Case) -> "Array":
    """The sizes of a case, a row for each of its plans."""
    import numpy as np

    return np.stack(np.broadcast_arrays(*case.sizes), axis=-1).reshape(-1, len(case.sizes)).astype(float)


def alike_cases(fields: tuple[str, ...], cases: Sequence[Case], others: Sequence[Case]) -> "Array":
    """1 where a case and another have the same in all these fields, else 0."""
    import numpy as np

    shared = np.ones((len(cases), len(others)))
    for field in fields:
        names = np.array([getattr(case, field) for case in cases])
        shared *= names[:, None] == np.array([getattr(other, field) for other in others])[None, :]
    return shared


def _digest(runs: Sequence[Compared]) -> str:
    """A text that only the same runs have."""
    text = repr([(one.quantity, one.error, one.case.sizes, one.case.model) for one in runs])
    return sha256(text.encode()).hexdigest()

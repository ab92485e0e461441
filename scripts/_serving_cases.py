"""Rows of measured serving as questions with their answers, and passes of those that differ in their load alone side
by side.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from _rows_for_fits import recent_ids, rows_for_fits
from tonnage.estimate.serving_time.forward_pass import PassTime
from tonnage.estimate.serving_time.rates import ServingRates
from tonnage.estimate.serving_time.times import ServingTimes, pass_time
from tonnage.kernel.errors import TonnageError
from tonnage.validation.serving import ServingRow, measured_quantities

ROWS = Path(__file__).parents[1] / "validation"
FILE = "infer_speed.yaml"


class Case(Struct, frozen=True, eq=False):
    """A row: what it asks, and what was measured in base units."""

    id: str
    asked: ServingRow
    measured: dict[str, float]
    completeness: str
    pool: float | None
    is_recent: bool = False  # of validation/recent

    @property
    def plan(self):
        return self.asked.plan

    @property
    def weight(self) -> float:
        """What it counts in a fit: half where an input is guessed."""
        return 0.5 if self.asked.is_guessed else 1.0

    def vote(self, name: str) -> float:
        """What a figure counts: those that follow from the time of a token share one vote."""
        same = sum(each != "ttft_seconds" for each in self.measured)
        return self.weight if name == "ttft_seconds" else self.weight / same


def cases(recent: bool = False) -> list[Case]:
    """Every row that is a question and has a figure to compare with; what stands twice stands once. A row of which an
    input was taken from its own figures is none: it counts in no fit, no error and no band. `recent`: also the rows of
    new sources that are not left out for good.
    """
    found, seen = [], set()
    new_ids = recent_ids() if recent else frozenset()
    for row in rows_for_fits([ROWS / FILE], "infer_speed", recent=recent):
        if row.skipped or row.completeness_class == "indicative":
            continue
        try:
            question = ServingRow(row)
            measured = measured_quantities(question)
        except TonnageError:
            continue
        key = (question.cell, repr(question.plan), repr(question.load), tuple(sorted(measured.items())))
        if measured and key not in seen:
            seen.add(key)
            found.append(Case(row.id, question, measured, row.completeness_class, question.pool, row.id in new_ids))
    return found


def predicted(case: Case, rates: ServingRates) -> ServingTimes:
    """What the product says."""
    return case.asked.times(rates)


class Side(Struct, eq=False):
    """Cases of one plan but for lengths and users; arrays with one entry each. `share` of prompt passes in a TPOT,
    `passes` of its own prompt and `waits` of passes before it in a TTFT.
    """

    cases: list[Case]
    users: np.ndarray
    input: np.ndarray
    output: np.ndarray
    cached: np.ndarray
    running: np.ndarray
    share: np.ndarray
    passes: np.ndarray
    waits: np.ndarray

    def passes_of(self, rates: ServingRates) -> PassTime:
        a = self.cases[0].asked
        return pass_time(a.model, a.plan, a.cluster, rates)

    def settle(self, rates: ServingRates) -> None:
        """How many passes of prompts are in a TPOT and in a TTFT, as the steady state has it at these rates."""
        made = self.passes_of(rates)
        for n, case in enumerate(self.cases):
            found = predicted(case, rates)
            self.running[n] = found.running
            decode, more, alone = self.parts(made, n)
            self.share[n] = (found.steady.tpot - decode) / more if more > 0 else 0
            self.passes[n] = found.steady.ttft / alone
            self.waits[n] = (found.around_seconds - made.engine.arrive) / found.steady.tpot

    def parts(self, made: PassTime, n: slice | int = slice(None)):
        """A decoding pass, what a prompt adds to it, and a prompt alone."""
        prompt, run = self.input[n] - self.cached[n], self.running[n]
        pairs = prompt * (self.input[n] - prompt / 2)
        keys = run * (self.input[n] + self.output[n] / 2)
        decode = made.seconds(0, 0, run, keys)
        return decode, made.seconds(prompt, pairs, run, keys) - decode, made.seconds(prompt, pairs, 0, 0)

    def times(self, rates: ServingRates):
        made = self.passes_of(rates)
        decode, more, alone = self.parts(made)
        tpot = decode + self.share * more
        ttft = made.engine.arrive + self.waits * tpot + self.passes * alone
        whole = ttft + tpot * (self.output - 1)
        return {
            "tpot_seconds": tpot,
            "ttft_seconds": ttft,
            "end_to_end_seconds": whole,
            "output_tokens_per_second": self.running * self.output / whole,
        }


def sides(found: Sequence[Case]) -> list[Side]:
    """The cases, grouped by plan."""
    groups = defaultdict(list)
    for case in found:
        a = case.asked
        plan = replace(a.plan, context=1, concurrency=1, max_num_batched_tokens=None, max_num_seqs=None)
        groups[id(a.model), a.cluster.accelerator.name, plan].append(case)
    return [_side(group) for group in groups.values()]


def _side(group: list[Case]) -> Side:
    def each(of):
        return np.array([float(of(case.asked.load)) for case in group])

    half = each(lambda load: 1 - load.spread / 2)
    ones = np.ones(len(group))
    return Side(
        group,
        each(lambda load: load.concurrency or 1),
        each(lambda l: l.input_tokens) * half,
        each(lambda l: l.output_tokens) * half,
        each(lambda l: l.cached_tokens),
        each(lambda load: load.concurrency or 1),
        1 * ones,
        1 * ones,
        0 * ones,
    )

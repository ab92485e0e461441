"""Mixed integer programs for HiGHS: columns, rows, and what the solver proved."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message
from tonnage.kernel.units import human
from tonnage.search.progress import advance

NEEDS = "placing on a pool needs HiGHS, which is not installed: pip install 'tonnage[placement]'."
MAX_SECONDS = 86_400.0  # seconds that a search may take
NO_GAP = 1e-7  # of the largest cost: what rounding leaves
WHOLE = 0.5  # a binary above it is 1


def highspy() -> Any:
    """The solver; a clear word where it is not installed."""
    try:
        import highspy as found
    except ImportError:
        raise MissingDatum(NEEDS) from None
    _print_banner_nowhere()
    return found


@cache
def _print_banner_nowhere() -> None:
    """Construct the first solver of this process without its banner: HiGHS 1.16 prints it to file descriptor 1
    before any option can be set, and there our JSON document or the messages of MCP go.
    """
    import highspy as solver

    with _stdout_discarded():
        solver.Highs()


@contextmanager
def _stdout_discarded() -> Iterator[None]:
    """What C code writes to file descriptor 1 is lost meanwhile; what Python wrote before is not."""
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        before = os.dup(1)
    except OSError:  # closed by the shell: >&-
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(before, 1)
        os.close(nowhere)
        os.close(before)


class OutOfTimeError(Exception):
    """The time was up before a program had any solution."""


class Solved(Struct, frozen=True, eq=False, kw_only=True):
    """What one program gave. `values`: None where there is no solution, or none was found in time; `proven`: nothing
    better is possible.
    """

    values: np.ndarray | None
    objective: float
    bound: float
    proven: bool

    @property
    def found(self) -> bool:
        """Whether there is a solution; it raises OutOfTimeError where nobody knows."""
        if self.values is None and not self.proven:
            raise OutOfTimeError
        return self.values is not None

    def is_on(self, column: int) -> bool:
        return self.values is not None and bool(self.values[column] > WHOLE)

    def whole(self, column: int) -> int:
        return 0 if self.values is None else round(float(self.values[column]))


class Effort:
    """What all programs of one question took, and until when they may go on."""

    USUAL = 60.0  # seconds

    def __init__(self, limit_seconds: float = USUAL, gap: float = 0.0):
        if not 0 < limit_seconds <= MAX_SECONDS:
            raise InvalidInput(
                "{@time_limit} must be above 0 and at most {longest:,.0f} seconds. Got {limit_seconds}.",
                longest=MAX_SECONDS,
                limit_seconds=shown(limit_seconds),
            )
        if not 0 <= gap < 1:
            raise InvalidInput("{@gap} must be at least 0 and less than 1. Got {gap}.", gap=shown(gap))
        self.limit, self.gap = limit_seconds, gap
        self.programs, self.nodes, self.cuts = 0, 0, 0
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def spent(self, bound: float | None = None, what: str = "seconds") -> MissingDatum:
        """The error where the time was up before anything was found."""
        known = (
            ""
            if bound is None
            else (
                Message(
                    " What is proven so far: no placement is below {bound} ({what}).",
                    bound=human(bound, "seconds"),
                    what=what.removeprefix("seconds of "),
                )
            )
        )
        return MissingDatum(
            "nothing was found within {@time_limit}, {limit:g} seconds: it may fit or not.{known} "
            "Give a longer {--time-limit}.",
            limit=self.limit,
            known=known,
        )

    @property
    def left(self) -> float:
        return max(self.limit - self.seconds, 0.0)


class Program:
    """Minimise the sum of costs over columns, each between its bounds, while every row stays between its two
    numbers.
    """

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.lowest: list[float] = []
        self.highest: list[float] = []
        self.integers: list[bool] = []
        self.starts: list[int] = [0]
        self.indices: list[int] = []
        self.factors: list[float] = []
        self.rows: list[tuple[float, float]] = []

    def column(self, cost: float = 0.0, low: float = 0.0, high: float = 1.0, *, integer: bool = True) -> int:
        """Add a column and return its number."""
        self.costs.append(cost)
        self.lowest.append(low)
        self.highest.append(high)
        self.integers.append(integer)
        return len(self.costs) - 1

    def row(self, terms: Iterable[tuple[int, float]], low: float = -np.inf, high: float = np.inf) -> None:
        """Add the constraint low <= sum of factor x column <= high."""
        for index, factor in terms:
            self.indices.append(index)
            self.factors.append(factor)
        self.starts.append(len(self.indices))
        self.rows.append((low, high))

    def solve(self, effort: Effort) -> Solved:
        """The optimum, or the best that was found before the effort ended."""
        h = highspy()
        solver = h.Highs()
        scale = (
            max((abs(cost) for cost in self.costs), default=0.0) or 1.0
        )  # tolerances of a solver are those of numbers about 1
        for name, value in (
            ("output_flag", False),
            ("mip_rel_gap", effort.gap),
            ("mip_abs_gap", NO_GAP),
            ("threads", 1),
            ("time_limit", max(effort.left, 1e-3)),
        ):
            solver.setOptionValue(name, value)
        solver.passModel(self._model(h, scale))
        solver.run()
        effort.programs += 1
        advance("programs")
        info, status = solver.getInfo(), solver.getModelStatus()
        effort.nodes += max(int(info.mip_node_count), 0)
        known = h.HighsModelStatus
        if status in (known.kInfeasible, known.kUnboundedOrInfeasible):
            return Solved(values=None, objective=np.inf, bound=np.inf, proven=True)
        has_solution = info.primal_solution_status == h.kSolutionStatusFeasible
        values = np.array(solver.getSolution().col_value) if has_solution else None
        objective = float(info.objective_function_value) * scale if has_solution else np.inf
        is_mixed = any(self.integers)
        bound = float(info.mip_dual_bound) * scale if is_mixed else objective
        return Solved(values=values, objective=objective, bound=bound, proven=status == known.kOptimal)

    def _model(self, h: Any, scale: float) -> Any:
        lp = h.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), len(self.rows)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = (
            np.array(column, dtype=float) for column in (self.costs, self.lowest, self.highest)
        )
        lp.col_cost_ = lp.col_cost_ / scale
        lp.row_lower_ = np.array([low for low, _ in self.rows], dtype=float)
        lp.row_upper_ = np.array([high for _, high in self.rows], dtype=float)
        lp.a_matrix_.format_ = h.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(self.starts, dtype=np.int32)
        lp.a_matrix_.index_ = np.array(self.indices, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(self.factors, dtype=float)
        kinds = h.HighsVarType
        lp.integrality_ = [kinds.kInteger if is_integer else kinds.kContinuous for is_integer in self.integers]
        return lp

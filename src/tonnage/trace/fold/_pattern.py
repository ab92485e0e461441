"""The repetition of a model's layers, and how few layers a trace needs to show it."""

from collections.abc import Hashable, Sequence


def short_layers(kinds: Sequence[Hashable]) -> tuple[int, int, int] | None:
    """Numbers of layers of three short programs, a period apart, whose layers begin and end as those of `kinds`.

    None if all three together have as many layers as the model. A few layers at the beginning may be of other kinds
    (dense before MoE); the period is that of the rest (five sliding, one full).
    """
    total = len(kinds)
    best: tuple[int, int, int] | None = None
    for period in range(1, total // 3 + 1):
        first = _irregular(kinds, period) + max(period, 2)  # each kind, and at least a first and a last
        first += (total - first) % period
        short = (first, first + period, first + 2 * period)
        if sum(short) < total and (best is None or sum(short) < sum(best)):
            best = short
    return best


def _irregular(kinds: Sequence[Hashable], period: int) -> int:
    """Number of layers before those that repeat with this period up to the last."""
    start = len(kinds) - period
    while start > 0 and kinds[start - 1] == kinds[start - 1 + period]:
        start -= 1
    return start

"""Which of many points no other beats: exact, for any number of figures."""

import numpy as np

BLOCK = 4096  # points compared with the front at a time


def front(figures: np.ndarray) -> np.ndarray:
    """A mask of shape (points,): which rows of `figures`, shape (points, figures) and smaller is better, are not
    dominated.

    A row is dominated by another that is nowhere worse and somewhere better, so rows that are equal stay together. Rows
    with a figure that is not finite are never on the front.

    >>> front(np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
    [True, True, False, True]
    """
    mask = np.isfinite(figures).all(axis=1)
    rows = np.flatnonzero(mask)
    distinct, position = np.unique(
        figures[rows], axis=0, return_inverse=True
    )  # sorted by the first figure, then the second
    best = _of_two(distinct) if distinct.shape[1] == 2 else _of_many(distinct)
    mask[rows] = best[position.reshape(-1)]
    return mask


def _of_two(rows: np.ndarray) -> np.ndarray:
    """Rows that all differ, in order: each must be lower in the second figure than all before it."""
    before = np.concatenate([[np.inf], np.minimum.accumulate(rows[:, 1])[:-1]])
    return rows[:, 1] < before


def _of_many(rows: np.ndarray) -> np.ndarray:
    """Which rows no other dominates. A dominating row comes earlier in the order of the sum of ranks, so a front only
    grows.
    """
    ranks = np.stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in rows.T], axis=1)
    order = np.argsort(ranks.sum(axis=1), kind="stable")
    mask = np.zeros(len(rows), dtype=bool)
    held = ranks[:0]
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        block = block[~_dominated(ranks[block], held)]
        block = block[~_dominated(ranks[block], ranks[block])]
        mask[block] = True
        held = np.concatenate([held, ranks[block]])
    return mask


def _dominated(rows: np.ndarray, by: np.ndarray) -> np.ndarray:
    dominated = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(by), 256):  # the comparison has rows x others x figures entries: memory stays small
        others = by[start : start + 256]
        no_worse = (others[None] <= rows[:, None]).all(axis=2)
        better = (others[None] < rows[:, None]).any(axis=2)
        dominated |= np.any(no_worse & better, axis=1)
    return dominated

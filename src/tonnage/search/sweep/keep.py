"""Which rows of a chunk are kept."""

import numpy as np

from tonnage.search.sweep.spec import Spec

Columns = dict[str, np.ndarray]
# What is better is larger; of two alike the one that needs less, then the one that comes first.
RATE = {"train": "tokens_per_second", "serve": "tokens_per_second_per_accelerator"}


def workload(spec: Spec) -> tuple[str, ...]:
    """Columns that say what is asked, and not how it is done: the best plan is the best of one of these, a model and
    a cluster.
    """
    if spec.kind == "serve":
        return ("model", "cluster", "plan")
    asked_sizes = ("sequence_length", "global_batch_size")
    return ("model", "cluster", *(name for name in asked_sizes if any(axis.name == name for axis in spec.inner)))


def kept(spec: Spec, rows: Columns) -> Columns:
    """The rows that the sweep keeps, in the order of their numbers."""
    if not rows or spec.keep == "all":
        return rows
    if spec.keep == "fitting":
        mask = rows["fits"] == 1
    elif spec.keep == "pareto":
        mask = rows["pareto"]
    else:
        mask = best(spec, rows, spec.best)
    return {name: values[mask] for name, values in rows.items()}


def best(spec: Spec, rows: Columns, count: int) -> np.ndarray:
    """A mask: the `count` best rows of each workload that fit, by tokens a second."""
    rate = np.nan_to_num(rows[RATE[spec.kind]].astype(np.float64), nan=0.0)
    fits = rows["fits"] == 1 if "fits" in rows else np.ones(len(rate), dtype=bool)
    chosen = np.flatnonzero(fits)
    needed = rows["needed_bytes"] if "needed_bytes" in rows else np.zeros(len(rate))
    groups = [rows[name][chosen] for name in workload(spec)]
    order = np.lexsort((rows["plan"][chosen], needed[chosen], -rate[chosen], *reversed(groups)))
    mask = np.zeros(len(rate), dtype=bool)
    if not len(order):
        return mask
    starts = np.zeros(len(order), dtype=bool)
    starts[0] = True
    for group in groups:
        ordered = group[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    mask[chosen[order[np.arange(len(order)) - first < count]]] = True
    return mask

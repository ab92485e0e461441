"""Prompts on replicas of their own: every way to part the replicas of a layout, as arrays."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.split import Side, SplitRates, transfer_of
from tonnage.kernel.errors import MissingDatum
from tonnage.search.serving.machines import wires
from tonnage.search.serving.rows import Rows
from tonnage.search.serving.space import Space
from tonnage.spec import Cluster, Load

FAR = 2**30  # ranks: more than any machine has, so that all links count


class Limits(NamedTuple):
    """What the times of a plan must keep for it to be shown: seconds, and requests a second at least. `beats`: what is
    best so far decides one of them.
    """

    ttft: float
    tpot: float
    rate: float
    beats: bool


def split_rows(space: Space, rows: Rows, at: list[int], limits: Limits | None) -> Iterator[tuple[Rows | None, int]]:
    """The same plans with some replicas for prompts alone, for layouts with the same links, and how many of them were
    left out, as they cannot keep the limits. Caches go over the network, so that all of it counts.
    """
    groups: dict[object, list[int]] = {}
    for row in at:
        cluster = rows.layouts[row].cluster
        with suppress(MissingDatum):
            groups.setdefault((cluster.num_nodes > 1, cluster.accelerators_per_node, wires(cluster, FAR)), []).append(
                row
            )
    for group in groups.values():
        yield _split_prompts(space, rows, group, limits)


def _split_prompts(space: Space, rows: Rows, group: list[int], limits: Limits | None) -> tuple[Rows | None, int]:
    held = space.load.prefill_replicas
    ways = [np.array([held]) if held else np.arange(1, rows.layouts[row].replicas) for row in group]
    index = np.concatenate([np.full(len(numbers), row) for row, numbers in zip(group, ways, strict=True)])
    prefill = np.concatenate(ways)
    replicas = np.array([rows.layouts[row].replicas for row in index])
    replica = rows.replica
    cluster = rows.layouts[group[0]].cluster
    prompts, answers = (
        Side(rows.plan, cluster, number, replica.pool if replica else None) for number in (prefill, replicas - prefill)
    )
    transfer = transfer_of(rows.plan, space.load.kv_transfer)
    rates = SplitRates(space.model, prompts, answers, _total_load(space, rows), serving_rates(), transfer)
    number = len(index)
    if limits is not None and space.users:
        may = np.broadcast_to(rates.may_hold(space.users, limits.ttft, limits.tpot, limits.rate), prefill.shape)
        if not may.any():
            return None, number
        index, prefill, replicas, rates = index[may], prefill[may], replicas[may], rates.of_ways(may)
    layouts = [rows.layouts[row]._replace(prefill=int(some)) for row, some in zip(index, prefill, strict=True)]
    times = rates.times
    every = index, slice(None)
    each, fullest, needed = (
        values[every]
        for values in (_values_at(rows, rows.each), _values_at(rows, rows.fullest), _values_at(rows, rows.needed))
    )
    if space.users:  # requests stay where they are decoded: fewer replicas share them
        decode = (replicas - prefill)[:, None]
        each, fullest = space.users / np.minimum(decode, space.users), -(-space.users // decode)
        needed = _needed(space, rows, fullest, cluster)
    split = Rows(
        plan=rows.plan,
        replica=replica,
        load=rows.load,
        layouts=layouts,
        usable=rows.usable,
        safe=rows.safe,
        needed=needed,
        known=rows.known[every],
        room=rows.room[every],
        each=each,
        fullest=fullest,
        users=rows.users,
        ttft=_column(times.ttft_seconds, replicas),
        tpot=_column(times.tpot_seconds, replicas),
        requests=_column(times.requests_per_second, replicas),
        prompt=rows.prompt,
        answer=rows.answer,
        near=rows.near,
        whole=_column(times.end_to_end_seconds, replicas),
    )
    return split, number - len(index)


def _needed(space: Space, rows: Rows, requests: np.ndarray, cluster: Cluster) -> np.ndarray:
    """Bytes of an accelerator with so many requests on a replica."""
    numbers, at = np.unique(requests, return_inverse=True)
    plans = (replace(rows.plan, concurrency=int(number)) for number in numbers)
    bytes_of = [float(serving_memory(space.model, plan, cluster.accelerator).memory.value) for plan in plans]
    return np.array(bytes_of)[at].reshape(requests.shape)


def _values_at(rows: Rows, values):  # type: ignore[no-untyped-def]
    return np.broadcast_to(values, rows.ttft.shape)


def _column(values, like):  # type: ignore[no-untyped-def]
    return np.array(np.broadcast_to(values, like.shape), dtype=float)[:, None]


def _total_load(space: Space, rows: Rows) -> Load:
    """The load of all replicas together."""
    load = rows.load
    if space.load.request_rate is not None:
        return replace(load, requests_per_second=space.load.request_rate, concurrency=None)
    return replace(load, concurrency=space.users, requests_per_second=None)

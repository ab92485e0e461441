"""Prompts and answers on replicas of their own (disaggregated prefill and decode): caches pass from one to the other
over the network.
"""

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.hardware.network import Network
from tonnage.estimate.load import steady
from tonnage.estimate.load.shape import where
from tonnage.estimate.serving_time.rates import ServingRates, serving_rates
from tonnage.estimate.serving_time.times import pass_time, policy
from tonnage.estimate.serving_time.work import Work
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import Number, is_any, minimum
from tonnage.spec import Cluster, Load, ServingPlan

ROUNDS = 60  # halvings: the rate of so many users, to the last digit of a number


class Side(NamedTuple):
    """Replicas of one kind: how each is spread, on what, and how many there are, or an array of numbers;
    `pool_tokens`: of cache of each, None for more than is needed.
    """

    plan: ServingPlan
    cluster: Cluster
    replicas: Number
    pool_tokens: int | None = None


class SplitTimes(Struct, frozen=True, kw_only=True):
    """Means, in seconds and a second of all replicas together. `transfer_seconds`: of a prompt's cache, which is in
    TTFT.
    """

    ttft_seconds: Number
    tpot_seconds: Number
    end_to_end_seconds: Number
    requests_per_second: Number
    output_tokens_per_second: Number
    transfer_seconds: Number
    largest_rate: Number


def split_times(
    model: Model, prompts: Side, answers: Side, load: Load, rates: ServingRates | None = None
) -> SplitTimes:
    """Times of requests whose prompts are computed by `prompts` and whose answers by `answers`."""
    for name, side in (("prompts", prompts), ("answers", answers)):
        if is_any(side.replicas < 1):
            raise InvalidPlan(
                "replicas of {name} must be at least 1. Got {replicas}.", name=name, replicas=side.replicas
            )
    made = _Split(model, prompts, answers, load, rates or serving_rates())
    if load.requests_per_second is not None:
        return made.at(load.requests_per_second)
    users = load.concurrency or 1
    low, high = 0.0 * made.largest, made.largest
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        found = made.at(middle)
        more = middle * found.end_to_end_seconds < users
        low, high = where(more, middle, low), where(more, high, middle)
    return made.at(low)


class _Split:
    def __init__(self, model: Model, prompts: Side, answers: Side, load: Load, rates: ServingRates):
        self.load, self.sides = load, (prompts, answers)
        self.passes = [pass_time(model, side.plan, side.cluster, rates) for side in self.sides]
        self.rules = [policy(side.plan, side.cluster.accelerator, side.pool_tokens) for side in self.sides]
        alone = replace(load, concurrency=None)
        # a prompt's own pass makes the first token; who answers finds all of the prompt but its last token in the cache
        self.loads = (replace(alone, output_tokens=1), replace(alone, cached_tokens=load.input_tokens - 1))
        self.transfer = self._transfer(self.passes[0].works, prompts)
        first, second = (self._steady(n, 1e-9).largest_rate * side.replicas for n, side in enumerate(self.sides))
        self.largest = minimum(first, second) * (1 - 1e-6)

    def _steady(self, n: int, rate: Number):  # type: ignore[no-untyped-def]
        return steady(self.passes[n], self.rules[n], replace(self.loads[n], requests_per_second=rate))

    def _transfer(self, works: tuple[Work, ...], side: Side) -> Number:
        """Seconds in which every rank sends its part of a prompt's cache to its like."""
        s = self.load.input_tokens
        sent: Number = sum(work.state_bytes / 2 for work in works)
        for work in works:
            for each in work.attending:
                sent = sent + each.layers * each.bytes * (s if each.window is None else minimum(s, each.window))
        return Network(side.cluster).send(sent / side.plan.pipeline_parallel_size, side.cluster.accelerators_per_node)

    def at(self, rate: Number) -> SplitTimes:
        """At so many requests a second."""
        first, second = (self._steady(n, rate / side.replicas) for n, side in enumerate(self.sides))
        half = 1 - self.load.spread / 2
        answer = self.load.output_tokens * half
        ttft = first.ttft + self.transfer + self.passes[0].engine.arrive
        return SplitTimes(
            ttft_seconds=ttft,
            tpot_seconds=second.tpot,
            end_to_end_seconds=ttft + second.ttft + second.tpot * (answer - 1),
            requests_per_second=rate,
            output_tokens_per_second=rate * answer,
            transfer_seconds=self.transfer,
            largest_rate=self.largest,
        )

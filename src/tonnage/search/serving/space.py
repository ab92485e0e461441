"""Replica configurations: every way to spread one copy of a model over ranks, in every precision and engine that is
searched.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.catalogue.offers import offers, parse_rates
from tonnage.catalogue.prices import KINDS, Price
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money import money
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.plan.rule import divisors, expert_counts
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.weights.formats import narrower_weights
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.registry import unknown
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.search.serving.machines import Machine
from tonnage.search.serving.options import MAX_ACCELERATORS_SEARCHED, Goal
from tonnage.spec import Accelerator, Cluster


class Prices:
    """Rent of whole clusters [USD an hour], as `tonnage serve` has it. `price_given`: USD per accelerator-hour, where
    the
    user gave one.
    """

    def __init__(self, options: BillOptions, price_given: float | None = None):
        if options.price_kind is not None and options.price_kind not in KINDS:
            raise unknown("price_kind", options.price_kind, KINDS)
        self.options, self.given = options, price_given
        self.rates = parse_rates(options.exchange_rate, "exchange_rate") if options.exchange_rate else None
        self._offers: dict[str, tuple[Price, ...]] = {}
        self._known: dict[tuple[str, int, int], float | None] = {}

    def of(self, cluster: Cluster) -> float | None:
        """The rent of a cluster [USD an hour]; None where no price is known."""
        if self.given is not None:
            return self.given * cluster.size
        key = (cluster.accelerator.name, cluster.num_nodes, cluster.accelerators_per_node)
        if key not in self._known:
            self._known[key] = self._price_of(cluster)
        return self._known[key]

    def knows(self, chip: Accelerator) -> bool:
        """Whether there is an offer that can be paid in dollars, or at a rate that was given."""
        return self.of(Cluster(accelerator=chip)) is not None

    def _list_offers(self, accelerator: str) -> tuple[Price, ...]:
        if accelerator not in self._offers:
            o = self.options
            kind = o.price_kind or "on-demand"
            self._offers[accelerator] = offers(accelerator, provider=o.provider or "", kind=kind, region=o.region or "")
        return self._offers[accelerator]

    def _price_of(self, cluster: Cluster) -> float | None:
        offered = self._list_offers(cluster.accelerator.name)
        if not offered:
            return None
        try:
            best = money.best_of(cluster, offered, self.rates)
        except MissingDatum:  # in a currency that has no rate
            return None
        return money.usd_per_accelerator(cluster, best.price, self.rates) * cluster.size


ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers")
FOUR_BITS = ("nvfp4",)  # of accelerators that multiply them
OF_FILES = ("q8_0", "q4_k_m")  # of llama.cpp
BATCHED_TOKENS = (None, 2048, 16384)
SEQUENCES = (None, 64, 256)


class Space(Struct, frozen=True, kw_only=True, eq=False):
    """What is searched: of this model, on these machines, what the user left open. `users`: of the whole load; None
    where they are searched too, or where requests come by themselves. `near`: limits on ttft and tpot that are left
    out, and that a plan shall come near to. `searches_rates`: the rate of requests is searched too. `walked`: rows
    that were computed, for searches of the same load with other limits.
    """

    model: Model
    machines: tuple[Machine, ...]
    options: ServingOptions
    load: LoadOptions
    goal: Goal
    prices: Prices
    ttft: float | None = None
    tpot: float | None = None
    users: int | None = None
    near: tuple[float, float] | None = None
    searches_rates: bool = False
    walked: dict[Any, Any] = {}

    @property
    def searches_users(self) -> bool:
        return self.users is None and self.load.request_rate is None

    @property
    def most(self) -> int:
        """The largest number of accelerators that is searched."""
        clusters = [machine.fixed.size for machine in self.machines if machine.fixed is not None]
        return self.goal.most or max([MAX_ACCELERATORS_SEARCHED, *clusters])


class Kind(NamedTuple):
    """What is the same for all sizes: the machine, the engine and what weights and cache are stored in. None: as
    `tonnage serve` takes it.
    """

    machine: Machine
    engine: str | None
    weights: str | None
    kv_cache: str | None


class Sizes(NamedTuple):
    tensor: int
    pipeline: int
    expert: int
    groups: int

    @property
    def ranks(self) -> int:
        """The number of accelerators of a replica."""
        return self.tensor * self.pipeline * self.groups

    @property
    def parallelisms(self) -> int:
        """The number of kinds of parallelism that are used."""
        return sum(size > 1 for size in self)


class Batch(NamedTuple):
    """Limits of a pass; None as the engine has them."""

    tokens: int | None
    requests: int | None


def engines(space: Space) -> tuple[str | None, ...]:
    """The engines that are searched. None stands for the engine that `tonnage serve` takes."""
    named_engines = space.options.engine
    if named_engines is not None:
        return tuple(name.strip() for name in named_engines.split(","))
    return (None, *ENGINES) if "engine" in space.goal.vary else (None,)


def precisions(space: Space, chip: Accelerator, engine: str) -> tuple[str | None, ...]:
    """The weight formats that are searched. None stands for the checkpoint's own."""
    named_weights = space.options.weights
    if named_weights is not None:
        return tuple(name.strip() for name in named_weights.split(","))
    if not engine:  # no plan is valid there: the walk says why
        return (None,)
    runtime = _runtime(space, engine)
    choices = OF_FILES if runtime.gguf else (*runtime.faster_weights, *(FOUR_BITS if "fp4" in chip.dense_flops else ()))
    return (None, *narrower_weights(space.model, None, runtime, chip, choices))


def caches(space: Space, engine: str) -> tuple[str | None, ...]:
    if named_caches := said_caches(space):
        return named_caches
    narrow = _runtime(space, engine).narrow_cache if engine and "kv-cache" in space.goal.vary else ""
    return (None, narrow) if narrow else (None,)


def _runtime(space: Space, engine: str) -> ServingRuntime:
    """The engine at the version that is asked for."""
    return serving_runtime(engine, space.options.engine_version or "" if space.options.engine else "")


def _has_groups(space: Space, engine: str) -> bool:
    """Whether the engine has groups of ranks that share attention."""
    return bool(engine) and "attention_data_parallel_size" in _runtime(space, engine).settings


def said_caches(space: Space) -> tuple[str, ...]:
    return tuple(name.strip() for name in (space.options.kv_cache or "").split(",") if name.strip())


def batches(space: Space, queues: bool) -> Iterator[Batch]:
    """Limits that are tried; those of engines that have a queue."""
    o = space.options
    varied = "batch" in space.goal.vary and queues
    for tokens in BATCHED_TOKENS if varied and o.max_num_batched_tokens is None else (o.max_num_batched_tokens,):
        for requests in SEQUENCES if varied and o.max_num_seqs is None else (o.max_num_seqs,):
            yield Batch(tokens, requests)


def sizes(space: Space, machine: Machine, engine: str) -> Iterator[Sizes]:
    """Tensor ranks that divide a machine's accelerators, pipeline stages, attention groups and expert ranks: what
    fills the given cluster, or parts of a machine or whole ones, up to the most accelerators.
    """
    o, model = space.options, space.model
    mixture = bool(expert_counts(model))
    for tensor in _fixed_or(o.tensor_parallel_size, divisors(machine.each)):
        for groups in _fixed_or(
            o.attention_data_parallel_size, _groups(space, machine, tensor, mixture and _has_groups(space, engine))
        ):
            stages = min(space.most // (tensor * groups), model.num_layers)
            for pipeline in _fixed_or(o.pipeline_parallel_size, range(1, stages + 1)):
                ranks = tensor * groups * pipeline
                if not _is_placed(machine, ranks, space.most):
                    continue
                for expert in _fixed_or(o.expert_parallel_size, {1, tensor * groups} if mixture else {1}):
                    yield Sizes(tensor, pipeline, expert, groups)


def _fixed_or(fixed: int | None, varied):  # type: ignore[no-untyped-def]
    return varied if fixed is None else (fixed,)


def _groups(space: Space, machine: Machine, tensor: int, has_groups: bool) -> list[int]:
    """Groups of attention fill a part of a machine or whole ones."""
    if not has_groups:
        return [1]
    most = space.most // tensor
    return [
        size
        for size in range(1, most + 1)
        if machine.each % (tensor * size) == 0 or (tensor * size) % machine.each == 0
    ]


def _is_placed(machine: Machine, ranks: int, most: int) -> bool:
    """A replica is on a part of one machine or on whole ones."""
    if machine.fixed is not None and machine.fixed.size % ranks:
        return False
    return ranks <= most and (ranks <= machine.each or ranks % machine.each == 0)

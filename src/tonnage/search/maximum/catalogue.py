"""What every model of the catalogue is asked, to find the largest that is served or trains."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.catalogue import cluster as cluster_named
from tonnage.documents.advice import Changes
from tonnage.estimate.answer.companions import serving_without_companions, training_without_companions
from tonnage.estimate.answer.my_machine import CONTEXT, PRECISIONS
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.plans import DEFAULT_SEQUENCE_LENGTH
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.checkpoint import checkpoint_bytes
from tonnage.estimate.run.larger_machines import Machines
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.weights.storage import stored_bytes
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.models.purpose import purpose
from tonnage.question.subjects.maximum import what_of
from tonnage.search.maximum.case import Case
from tonnage.search.maximum.serving import ServingRow
from tonnage.search.maximum.training import TrainingRow
from tonnage.spec import Cluster

MADE_FOR = "models that were made for fewer tokens are left out"
FEWEST_BITS = {True: 4.0, False: 16.0}  # of a parameter of a checkpoint that is quantised, or is not
NARROWEST_BITS = 1.5  # of files of llama.cpp
ON_DEVICES = 0.5  # of a model at least: some engines keep the token table in host memory
FROZEN_BYTES = 0.5  # of a parameter of a base in 4 bits; one that is not quantised takes more


class ServedCatalogue(Struct, frozen=True, kw_only=True, eq=False):
    """The catalogue's models to serve, with the context that was given, or one that a chat needs; in the precision
    that was given, or in each of those
    that `serve --for-my-machine` searches, the widest first.
    """

    cluster: Cluster
    options: ServingOptions
    load: LoadOptions
    money: BillOptions
    reserve: int

    def cases(self, model: Model) -> Iterator[tuple[Case, int]]:
        context = self.options.context or CONTEXT
        if model.context and context > model.context:
            raise InvalidInput(
                "{model} was made for {context:,} tokens. Got context {context2:,}.",
                model=model.name,
                context=model.context,
                context2=context,
            )
        if purpose(model) != "generate":
            raise InvalidInput("{model} makes no tokens.", model=model.name)
        fixed_weights = self.options.weights
        for weights in (fixed_weights,) if fixed_weights else _widest_first(model):
            options = serving_without_companions(
                model, self.cluster, replace(self.options, weights=weights, context=context)
            )
            options = replace(options, context=None)
            yield (
                ServingRow(what_of("context"), model, self.cluster, options, self.load, self.money, self.reserve),
                context,
            )

    def chosen(self, case: Case) -> dict[str, str]:
        weights = case.options.weights
        return {} if weights == self.options.weights else {"weights": weights}

    def is_too_large(self, case: Case, value: int) -> bool:
        o, model = case.options, case.model
        if o.weights_on_host or o.layers_on_accelerator or o.expert_layers_on_host:
            return False
        bits = PRECISIONS.get(o.weights, NARROWEST_BITS) if o.weights else FEWEST_BITS[bool(model.quantization)]
        room = self.cluster.accelerator.memory.usable_bytes * self.cluster.size
        return bool(ON_DEVICES * model.num_parameters() * bits / 8 > room)

    def changed(self, change: dict[str, Any]) -> "ServedCatalogue":
        machine, options = _changed(self.cluster, self.options, change)
        return replace(self, cluster=machine, options=options)

    @property
    def is_quick(self) -> bool:
        return True

    @property
    def assumed(self) -> dict[str, str]:
        return {} if self.options.context else {"context": MADE_FOR}

    def changes(self) -> Iterable[tuple[dict[str, Any], Changes]]:
        yield from _larger(self.cluster)


class TrainedCatalogue(Struct, frozen=True, kw_only=True, eq=False):
    """The catalogue's models to train, with the sequence length that was given, or that of `train`."""

    cluster: Cluster
    options: TrainingOptions
    run: RunOptions
    money: BillOptions
    reserve: int

    def cases(self, model: Model) -> Iterator[tuple[Case, int]]:
        length = self.options.sequence_length or DEFAULT_SEQUENCE_LENGTH
        if model.context and length > model.context:
            raise InvalidInput(
                "{model} was made for {context:,} tokens. Got {@sequence_length} {length:,}.",
                model=model.name,
                context=model.context,
                length=length,
            )
        options = training_without_companions(model, self.cluster, replace(self.options, sequence_length=length))
        options = replace(options, sequence_length=None)
        yield (
            TrainingRow(what_of("sequence"), model, self.cluster, options, self.run, self.money, self.reserve),
            length,
        )

    def chosen(self, case: Case) -> dict[str, str]:
        return {}

    def is_too_large(self, case: Case, value: int) -> bool:
        """Weights as they are updated and states of the optimizer, or the base that adapters are beside, kept once
        by all together.
        """
        if any(getattr(self.options, f"offload_{what}") not in (None, "none") for what in ("optimizer", "parameters")):
            return False
        plan = case.plan(value)
        least = (
            checkpoint_bytes(case.model, plan).value
            if plan.tuning.method == "full"
            else case.model.num_parameters() * FROZEN_BYTES
        )
        return bool(least > self.cluster.accelerator.memory.usable_bytes * self.cluster.size)

    def changed(self, change: dict[str, Any]) -> "TrainedCatalogue":
        machine, options = _changed(self.cluster, self.options, change)
        return replace(self, cluster=machine, options=options)

    @property
    def is_quick(self) -> bool:
        return False

    @property
    def assumed(self) -> dict[str, str]:
        return {} if self.options.sequence_length else {"sequence_length": MADE_FOR}

    def changes(self) -> Iterable[tuple[dict[str, Any], Changes]]:
        if self.options.recompute is None:
            yield {"recompute": "full"}, "nothing"
        yield from _larger(self.cluster)
        if self.options.method is None:
            yield from (({"method": name}, "method") for name in ("lora", "qlora"))


@lru_cache(maxsize=1024)
def _widest_first(model: Model) -> tuple[str | None, ...]:
    """The precisions of `serve --for-my-machine`, by the bytes of this model's weights; those that it cannot be
    stored in come last.
    """

    def size(weights: str | None) -> float:
        try:
            return float(stored_bytes(model, weights))
        except TonnageError:
            return 0.0

    return tuple(sorted(PRECISIONS, key=size, reverse=True))


def _changed(cluster: Cluster, options: Any, change: dict[str, Any]) -> tuple[Cluster, Any]:
    machine = cluster_named(change["on"]) if "on" in change else cluster
    return machine, replace(options, **{name: value for name, value in change.items() if name != "on"})


def _larger(cluster: Cluster) -> list[tuple[dict[str, Any], Changes]]:
    """The next larger machine of the same kind."""
    machines = Machines(cluster)
    return [({"on": machines.of(count).name}, "machine") for count in machines.larger(2)[:1]]

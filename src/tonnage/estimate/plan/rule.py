"""A rule of the sizes of a plan: one predicate over numbers, which refuses a plan, or over arrays, which gives a
mask.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import Number
from tonnage.runtimes import TrainingRuntime

Sizes = Mapping[str, Number]  # by name: of the plan, and `accelerators` of the cluster
# Options that are no columns, and that rules read.
READ = (
    "data_parallel_size",
    "num_microbatches",
    "sequence_parallel",
    "loss",
    "pipeline_schedule",
    "zero_stage",
    "replicate_size",
    "zero_hpz_partition_size",
)


class Facts(Struct, frozen=True, eq=False):
    """What all plans that are checked together share. `options`: those of READ, as the user gave them (None: not
    given). `unequal_chunks`: whether so many chunks of a pipeline may have unequal numbers of layers.
    """

    model: Model
    options: Mapping[str, Any] = {}
    training: TrainingRuntime | None = None
    unequal_chunks: Callable[[Number], Number] = lambda chunks: False

    @property
    def runtime(self) -> TrainingRuntime:
        """That of training; rules of serving do not ask for it."""
        assert self.training is not None
        return self.training

    def said(self, name: str) -> Any:
        """The value of an option; None where nobody gave it."""
        return self.options.get(name)

    def with_options(self, **options: Any) -> "Facts":
        """The same with other values of options."""
        return replace(self, options={**self.options, **options})


def _always(facts: Facts, sizes: Sizes) -> bool:
    return True


class Rule(Struct, frozen=True, eq=False):
    """One rule. `holds`: the predicate, over numbers or arrays; `reason`: what plans must hold, as a search counts
    it; `error`: of one plan that breaks it, None where a single answer leaves it to the user; `applies`: False where
    the rule asks nothing of these plans; `of_pipelines`: it reads stages and chunks alone.
    """

    reason: Callable[[Facts], str]
    holds: Callable[[Facts, Sizes], Number]
    error: Callable[[Facts, Sizes], InvalidPlan] | None = None
    applies: Callable[[Facts, Sizes], bool] = _always
    of_pipelines: bool = False


def check(facts: Facts, sizes: Sizes, *rules: Rule) -> None:
    """Raise the error of the first rule that one plan breaks."""
    for rule in rules:
        if rule.error is not None and rule.applies(facts, sizes) and not rule.holds(facts, sizes):
            raise rule.error(facts, sizes)


def reasons(facts: Facts, sizes: Sizes, rules: Sequence[Rule]) -> Iterator[tuple[str, Number]]:
    """Each rule that applies to these plans, in words, and which of them hold it."""
    for rule in rules:
        if rule.applies(facts, sizes):
            yield rule.reason(facts), rule.holds(facts, sizes)


def mask(facts: Facts, sizes: Sizes, rules: Sequence[Rule]) -> Number:
    """Which plans hold all rules: a bool, or an array of them."""
    held: Number = True
    for _, holds in reasons(facts, sizes, rules):
        held = held & holds
    return held

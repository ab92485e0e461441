"""A rule of the sizes of a plan: one predicate over numbers, which refuses a plan, or over arrays, which gives a
mask.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import isqrt, log2
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, joined, option_name
from tonnage.ops import Embedding, MoE
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
    says_why: bool = True

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


UNREAD = "no plan"  # the text of an error that nobody reads: to look for what is nearest takes longer than a plan


def check(facts: Facts, sizes: Sizes, *rules: Rule) -> None:
    """Raise the error of the first rule that one plan breaks."""
    for rule in rules:
        if rule.error is not None and rule.applies(facts, sizes) and not rule.holds(facts, sizes):
            raise rule.error(facts, sizes) if facts.says_why else InvalidPlan(UNREAD)


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


# ---- Checks of single values that training and serving share; what sizes must hold together is in validity.

LARGEST = 2**40  # sizes stay exact in arrays of float64
# The learned tables with one row for each position, by the last part of their names in checkpoints.
POSITION_TABLES = frozenset({"wpe", "embed_positions", "position_embeddings"})


def check_size(name: str, value: int | None) -> None:
    """A size that was given must be from 1 to LARGEST."""
    if value is not None and not 1 <= value <= LARGEST:
        raise InvalidPlan(
            "{name} must be from 1 to {most:,}. Got {value:,}.", name=option_name(name), most=LARGEST, value=value
        )


def check_has_experts(model: Model, e: int | None, q: int | None) -> None:
    """Sizes of expert parallelism above 1 are of models with experts, whatever the runtime and the accelerators."""
    for name, size in (("expert_parallel_size", e), ("expert_tensor_parallel_size", q)):
        if (size or 1) > 1 and not expert_counts(model):
            raise NotApplicable(
                Message(
                    "{model} has no experts, so {name} must be 1. Got {size}.",
                    model=model.name,
                    name=option_name(name),
                    size=size,
                ),
                name,
                ("model",),
            )


@lru_cache(maxsize=256)
def expert_counts(model: Model) -> frozenset[int]:
    """How many routed experts the layers of each kind have; empty for a dense model."""
    return frozenset(op.num_experts for block in model.decoder.blocks for op in block.ops if isinstance(op, MoE))


def check_positions(model: Model, length: int, name: str) -> None:
    """A learned position table has no row for a token beyond it: such a model cannot run at all on longer sequences."""
    if model.context is None or length <= model.context:
        return
    for op in model.decoder.before:
        if isinstance(op, Embedding) and op.name.rpartition(".")[2] in POSITION_TABLES:
            raise InvalidPlan(
                "{name} may be at most {context} for {model}: its learned table {op} has no more "
                "positions. Got {length}.",
                name=option_name(name),
                context=model.context,
                model=model.name,
                op=op.name,
                length=length,
            )


# ---- The valid sizes nearest to those that were asked for: an error about sizes ends with them.

EACH_SIDE = 6  # sizes above and below what was asked for that are tried in pairs and triples


def divisors(number: int) -> list[int]:
    """All of them, smallest first.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def near(value: int, valid: Iterable[int]) -> str:
    """The next ones below and above, as a sentence has them; 1 where there is none.

    >>> near(3, [1, 2, 4, 8]), near(16, [1, 2, 4, 8])
    ('2 or 4', '8')
    """
    every = list(valid)
    below = max((n for n in every if n <= value), default=None)
    above = min((n for n in every if n >= value), default=None)
    sizes = [str(n) for n in dict.fromkeys((below, above)) if n is not None]
    return joined(" or ", sizes or ["1"])


def near_divisors(total: int, value: int) -> str:
    return near(value, divisors(total))


def near_multiples(value: int, step: int) -> str:
    below = value // step * step
    return joined(" or ", (str(below), str(below + step))) if below else str(step)


def near_sizes(wanted: Mapping[str, int], among: Iterable[int], holds: Callable[[Mapping[str, int]], bool]) -> str:
    """Of several sizes together the two nearest valid choices, in the order of their names; of one size as `near`;
    empty where none is.

    >>> near_sizes({"t": 3, "p": 2}, divisors(8), lambda sizes: 8 % (sizes["t"] * sizes["p"]) == 0)
    '2 x 2 or 4 x 2'
    """
    every = list(among)
    if len(wanted) == 1:
        [(name, value)] = wanted.items()
        valid = [n for n in every if holds({name: n})]
        return near(value, valid) if valid else ""
    candidates = [
        sizes
        for sizes in product(*(_around(value, every) for value in wanted.values()))
        if holds(dict(zip(wanted, sizes, strict=True)))
    ]

    def distance(sizes: tuple[int, ...]) -> tuple[float, int]:
        away = [abs(log2(size / value)) for size, value in zip(sizes, wanted.values(), strict=True)]
        return round(sum(away), 9), sum(difference > 0 for difference in away)

    return joined(" or ", sorted(" x ".join(map(str, sizes)) for sizes in sorted(candidates, key=distance)[:2]))


def _around(value: int, every: list[int]) -> list[int]:
    """What was asked for first, then its neighbours, and 1, which always divides."""
    below, above = [n for n in every if n < value], [n for n in every if n > value]
    return list(dict.fromkeys([*([value] if value in every else []), *below[-EACH_SIDE:], *above[:EACH_SIDE], 1]))

"""All plans of a training run on one kind of accelerator, as groups of columns that are walked together.

A group shares the choices that have names (runtime, recomputation, ...) and the two sizes of a pipeline. Inside of it,
sizes that change what one rank does (`inner`, one row each) meet every number of accelerators: what depends on the
first alone is computed once for all of these.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from itertools import chain, product
from math import ceil
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.answer.companions import Refusals, ask_applicable
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.machine import check_uncalibrated
from tonnage.estimate.options.plans import DEFAULT_SEQUENCE_LENGTH, training_plan
from tonnage.estimate.plan.rule import check_size, expert_counts
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import CHUNK, alike
from tonnage.estimate.step.objective import TIMED
from tonnage.kernel.errors import InvalidInput, NotApplicable, TonnageError
from tonnage.kernel.formula import maximum
from tonnage.kernel.message import option_name
from tonnage.kernel.registry import unknown
from tonnage.ops import Attention, LatentAttention
from tonnage.runtimes import TrainingRuntime, training_runtime
from tonnage.search.training.choices import SIZES, choices_of
from tonnage.search.training.pipelines import LAYOUTS, Pipeline, pipelines, with_choices
from tonnage.spec import Cluster, TrainingPlan

TOKENS_OF_A_STEP = 2**22  # where nobody says: about four million, as GPT-3, OPT, Falcon and Llama had
BATCH_SHIFT = 0.03  # by which share of it the usual batch may differ, so that the replicas of a machine divide it
SHIFTED = -1  # stands for a batch that each machine has of its own
MAX_SIZE = 64  # tensor, context and micro-batch sizes that are tried go so far
WINDOW = 64  # blocks of columns that a search holds at once
MIN_ROWS = 256  # of a group's inner columns at a time, however many machines they meet
INNER = (
    "sequence_length",
    "global_batch_size",
    "tensor_parallel_size",
    "context_parallel_size",
    "expert_parallel_size",
    "expert_tensor_parallel_size",
    "micro_batch_size",
)
POLICIES = ("zero_stage", "recompute")  # names that are tried where nobody gives them
ABILITIES = {
    "tensor_parallel_size": "tensor_parallel",
    "context_parallel_size": "context_parallel",
    "pipeline_parallel_size": "pipeline",
    "expert_parallel_size": "expert_parallel",
}


class Group(Struct, frozen=True, eq=False):
    """Plans that share `choices` and a pipeline. `layout`: the options that deal out its layers, none where the
    runtime does; `inner`: columns of shape (rows,); `block`: which of those of its runtime.
    """

    choices: Mapping[str, Any]
    stages: int
    chunks: int
    block: int
    inner: Mapping[str, np.ndarray]
    layout: Mapping[str, Any] = {}

    @property
    def names(self) -> dict[str, Any]:
        """The options that the plans of the group share, without sizes."""
        return {**self.choices, **self.layout}

    @property
    def rows(self) -> int:
        return len(self.inner["micro_batch_size"])

    def only(self, rows: np.ndarray) -> "Group":
        return replace(self, inner={name: values[rows] for name, values in self.inner.items()})


class Stack(Struct, frozen=True, eq=False):
    """Several groups that differ in their pipeline alone: constraints and bounds are evaluated for all of them at once,
    of those plans that may be of use (search.training.validity.Points).
    """

    choices: Mapping[str, Any]
    pipelines: tuple[Pipeline, ...]
    block: int
    inner: Mapping[str, np.ndarray]

    @property
    def names(self) -> Mapping[str, Any]:
        """The options that all plans of the stack share, without sizes."""
        return self.choices

    @property
    def rows(self) -> int:
        return len(self.inner["micro_batch_size"])

    @property
    def stages(self) -> np.ndarray:
        """Stages of each pipeline: shape (pipelines,)."""
        return np.array([pipeline.stages for pipeline in self.pipelines], dtype=np.int64)

    @property
    def chunks(self) -> np.ndarray:
        """Chunks of each stage: shape (pipelines,)."""
        return np.array([pipeline.chunks for pipeline in self.pipelines], dtype=np.int64)

    def group(self, at: int) -> Group:
        """The plans of one pipeline."""
        pipeline = self.pipelines[at]
        return Group(self.choices, pipeline.stages, pipeline.chunks, self.block, self.inner, pipeline.layout)

    def only(self, pipelines: Sequence[int]) -> "Stack":
        return replace(self, pipelines=tuple(self.pipelines[at] for at in pipelines))


class Space:
    """Plans of `model` on each of `machines`, which differ in their number of accelerators alone, the largest last.

    `usd`: an hour of one of each machine's accelerators, shape (machines,), NaN where no price is known. What `options`
    say is not varied. `vary`: values of other options to try, by name; of a size they replace those that the model
    allows.
    `shifts_batch`: a global batch that nobody gave may also differ a little from the usual one.
    """

    def __init__(
        self,
        model: Model,
        machines: Sequence[Cluster],
        options: TrainingOptions,
        vary: Mapping[str, Sequence[Any]] | None = None,
        usd: np.ndarray | None = None,
        *,
        shifts_batch: bool = True,
    ):
        if not machines:
            raise InvalidInput("a search needs at least one machine. Got none.")
        check_uncalibrated(options.calibrated)
        self.model, self.machines, self.options = model, tuple(machines), options
        self.vary = dict(vary or {})
        for name in self.vary:
            if name not in TrainingOptions.__struct_fields__:
                raise unknown("option to vary", name, TrainingOptions.__struct_fields__)
            if getattr(options, name) is not None:
                raise InvalidInput(
                    "{name} is given and varied: leave out one. Got {value}.",
                    name=option_name(name),
                    value=getattr(options, name),
                )
            if not self.vary[name]:
                raise InvalidInput("{name} is varied without a value: give those to try.", name=option_name(name))
        for name in (*SIZES, "lora_rank", "trainable_layers"):
            for value in (getattr(options, name), *self.vary.get(name, ())):
                check_size(name, value)
        # whether a step is one update of an objective that generates: all else of it is estimated plan by plan
        self.of_updates = (options.objective or "sft") in TIMED
        self.shifts_batch = shifts_batch
        self.usd = np.full(len(machines), np.nan) if usd is None else usd
        self.worlds = np.array([machine.size for machine in machines], dtype=np.int64)
        self.valid_masks: dict[Any, Any] = {}  # of search.training.validity, shared by all spaces of the same sizes
        self.valid_tallies: dict[Any, Any] = {}
        self.known_shapes: dict[Any, Any] = {}  # of search.training.bounds, likewise
        self.known_layers: dict[Any, Any] = {}  # of the same, of one window of this space
        self.settled: dict[Any, Mapping[str, Any]] = {}  # of search.training.search, of this space
        self._parts: dict[int, list[tuple[np.ndarray, tuple[Pipeline, ...]]]] = {}

    def on(self, machines: Sequence[Cluster], usd: np.ndarray) -> "Space":
        """The same plans on machines of as many accelerators of another kind: all that sizes decide is kept."""
        if [machine.size for machine in machines] != self.worlds.tolist():
            raise ValueError("a space is moved to machines of the same sizes")
        _ = self._blocks, self._pipelines_of_choices  # computed once, before they are shared
        other = copy(self)
        other.machines, other.usd, other.known_layers, other.settled = tuple(machines), usd, {}, {}
        return other

    @property
    def largest(self) -> Cluster:
        return self.machines[-1]

    @cached_property
    def choices(self) -> tuple[dict[str, Any], ...]:
        """Every combination of the options that have names."""
        return tuple(choices_of(self.model, self.machines, self.options, self.vary))

    @property
    def tried(self) -> frozenset[str]:
        """Options of which a search tries several values: those that are varied, and sizes and policies that nobody
        gave. The runtime is not among the
        latter: who gives an option of one runtime means that runtime."""
        return frozenset({*self.vary, *(name for name in (*SIZES, *POLICIES) if getattr(self.options, name) is None)})

    def ask_plan(
        self, machine: Cluster, chosen: Mapping[str, Any], left_out: Refusals | None = None
    ) -> tuple[TrainingPlan, Refusals]:
        """The plan with these options, and the options that do not apply to it because of a value of what is varied
        (ask_applicable).
        """
        fixed = {name: getattr(self.options, name) for name in self.options.__struct_fields__}
        repeated = [name for name, values in self.vary.items() if name in chosen and chosen[name] != values[0]]
        return ask_applicable(
            lambda options: training_plan(self.model, machine, TrainingOptions(**options), Question()),
            {**fixed, **chosen},
            self.tried,
            repeated,
            left_out,
        )

    def check_companions(self) -> None:
        """Raise the refusal of an option that applies beside no value of what is varied. One that a choice may take
        on more accelerators applies.
        """
        everywhere: Refusals | None = None
        for choice in self.choices:
            left_out = Refusals()
            with suppress(TonnageError):
                self.ask_alone(choice, self.sequences[0], left_out)
            known = left_out if everywhere is None else everywhere
            everywhere = {
                name: error for name, error in known.items() if name in left_out and not self._may_apply(error)
            }
        for error in (everywhere or {}).values():
            raise error

    def _may_apply(self, error: NotApplicable) -> bool:
        """Whether a size that is tried decides it, and has a value above 1."""
        sizes = [name for name in error.owners if name in SIZES and name in self.tried]
        return any(value > 1 for name in sizes for value in self.vary.get(name, (self.largest.size,)))

    def ask_alone(
        self, choice: Mapping[str, Any], s: int, left_out: Refusals | None = None
    ) -> tuple[TrainingPlan, Refusals]:
        """The plan of a choice of names on one accelerator, as if it fitted, as `ask_plan` has it. TonnageError
        where it cannot be.
        """
        return self.ask_plan(self.alone, dict.fromkeys(SIZES) | dict(choice) | {"sequence_length": s}, left_out)

    @property
    def alone(self) -> Cluster:
        """A cluster of one accelerator."""
        return replace(self.largest, num_nodes=1, accelerators_per_node=1)

    # ---- sizes ----

    def _sizes(self, name: str, allowed: Sequence[int]) -> tuple[int, ...]:
        """The sizes that are tried: the given one, else those to vary, else those that the model and the machines
        allow.
        """
        fixed_size = getattr(self.options, name)
        if fixed_size is not None:
            return (fixed_size,)
        return tuple(self.vary.get(name, allowed))

    @cached_property
    def sequences(self) -> tuple[int, ...]:
        return self._sizes(
            "sequence_length", (min(self.model.context or DEFAULT_SEQUENCE_LENGTH, DEFAULT_SEQUENCE_LENGTH),)
        )

    @cached_property
    def batches(self) -> dict[int, tuple[int, ...]]:
        """Sequences of a step, by their length; 0: as many as micro-batches make; SHIFTED: the `shifted` ones."""
        if self.options.num_microbatches is not None and self.options.global_batch_size is None:
            return dict.fromkeys(self.sequences, (0,))
        sizes = {}
        for s in self.sequences:
            shifted = self.shifts_batch and (self.shifted[s] != usual_batch(s)).any()
            sizes[s] = self._sizes("global_batch_size", (usual_batch(s), SHIFTED) if shifted else (usual_batch(s),))
        return sizes

    @cached_property
    def shifted(self) -> dict[int, np.ndarray]:
        """By the length of sequences, of each machine the batch near the usual one that its replicas divide best:
        shape (machines,).
        """
        return {s: np.array([near_batch(usual_batch(s), int(world)) for world in self.worlds]) for s in self.sequences}

    @cached_property
    def _heads(self) -> set[int]:
        ops = [op for block in self.model.decoder.blocks for op in block.ops]
        return {op.heads for op in ops if isinstance(op, Attention | LatentAttention)}

    def _dividing(self, most: int) -> list[int]:
        """Sizes up to `most` that divide some number of accelerators."""
        return [n for n in range(1, most + 1) if not (self.worlds % n).all()]

    def _pipelines(self, choices: Mapping[str, Any]) -> list[Pipeline]:
        """The pipelines of one choice of named options."""
        runtime = training_runtime(choices["runtime"])
        stages = self._able(runtime, "pipeline_parallel_size", self._dividing(self.model.num_layers))
        chunks = self._sizes("virtual_pipeline_size", ()) or None
        return list(pipelines(self.model, runtime, with_choices(self.options, choices), stages, chunks))

    def _able(self, runtime: TrainingRuntime, name: str, allowed: Sequence[int]) -> tuple[int, ...]:
        return self._sizes(name, allowed if getattr(runtime, ABILITIES[name]) else (1,))

    def _experts(self, runtime: TrainingRuntime) -> list[int]:
        counts = expert_counts(self.model)
        return [e for e in range(1, max(counts, default=1) + 1) if all(count % e == 0 for count in counts)]

    # ---- groups ----

    @property
    def plans(self) -> int:
        """How many plans there are, valid or not."""
        pipelines: dict[str, int] = {}
        for choices, pipelines_of_choice in self._pipelines_of_choices:
            name = choices["runtime"]
            pipelines[name] = pipelines.get(name, 0) + len(pipelines_of_choice)
        rows = sum(len(columns["micro_batch_size"]) * pipelines[name] for name, _, columns in self._blocks)
        return rows * len(self.machines)

    def windows(self) -> Iterator[list[Stack]]:
        """All plans, valid or not, in a fixed order, so many blocks of columns at a time: a search holds no more
        than these.
        """
        for start in range(0, len(self._blocks), WINDOW):
            yield [
                Stack(choices, pipelines_of_choice, number, columns)
                for name, number, columns in self._blocks[start : start + WINDOW]
                for choices, pipelines_of_choice in self._pipelines_of_choices
                if choices["runtime"] == name
            ]

    @property
    def has_windows(self) -> bool:
        """Whether there are more blocks of columns than one window holds."""
        return len(self._blocks) > WINDOW

    def parts(self, stack: Stack) -> list[tuple[np.ndarray, tuple[Pipeline, ...]]]:
        """The pipelines of a stack of this space, parted by what decides which options apply to them: their numbers
        in the stack, and themselves.
        """
        key = id(stack.pipelines)
        if key not in self._parts:
            kinds: dict[Any, list[int]] = {}
            for at, one in enumerate(stack.pipelines):
                kinds.setdefault((one.stages > 1, one.chunks > 1, bool(one.layout)), []).append(at)
            self._parts[key] = [
                (np.array(numbers), tuple(stack.pipelines[at] for at in numbers)) for numbers in kinds.values()
            ]
        return self._parts[key]

    def groups(self) -> Iterator[Group]:
        """The groups of all windows."""
        return (stack.group(at) for stack in chain.from_iterable(self.windows()) for at in range(len(stack.pipelines)))

    @cached_property
    def _pipelines_of_choices(self) -> list[tuple[dict[str, Any], tuple[Pipeline, ...]]]:
        known: dict[tuple[Any, ...], tuple[Pipeline, ...]] = {}
        of_choices = []
        for choices in self.choices:
            key = choices["runtime"], *(choices.get(name) for name in LAYOUTS)  # what `pipelines` reads of a choice
            if key not in known:
                known[key] = tuple(self._pipelines(choices))
            of_choices.append((choices, known[key]))
        return of_choices

    @cached_property
    def _blocks(self) -> list[tuple[str, int, dict[str, np.ndarray]]]:
        """All blocks of columns, each with its runtime and its number."""
        names = dict.fromkeys(choices["runtime"] for choices in self.choices)
        return [
            (name, number, columns)
            for name in names
            for number, columns in enumerate(self._blocks_of(training_runtime(name)))
        ]

    def _blocks_of(self, runtime: TrainingRuntime) -> Iterator[dict[str, np.ndarray]]:
        """Columns of all sizes that a runtime can have inside of a stage, parted by how they write layers
        (estimate.plan_columns.alike).
        """
        held: dict[int, np.ndarray] = {}
        most = max(CHUNK // len(self.machines), MIN_ROWS)
        for rows in self._rows(runtime):
            keys = alike(self.model, dict(zip(INNER, rows.T, strict=True)))
            for key in np.unique(keys):
                more = np.concatenate([held.pop(key, rows[:0]), rows[keys == key]])
                while len(more) >= most:
                    yield _columns(more[:most])
                    more = more[most:]
                held[key] = more
        for rows in held.values():
            if len(rows):
                yield _columns(rows)

    def _micro_batches(self, s: int, batch: int) -> list[int]:
        """Sizes that divide a batch of sequences of length s."""
        if not batch:
            return [1, 2, 4, 8]
        wholes = self.shifted[s] if batch == SHIFTED else np.array([batch])
        return [n for n in range(1, MAX_SIZE + 1) if (wholes % n == 0).any()]

    def _rows(self, runtime: TrainingRuntime) -> Iterator[np.ndarray]:
        """Sizes of all ranks for one length of sequences and one batch: shape (rows, len(INNER))."""
        t = self._able(
            runtime,
            "tensor_parallel_size",
            [n for n in self._dividing(MAX_SIZE) if all(h % n == 0 for h in self._heads)],
        )
        c = self._able(
            runtime,
            "context_parallel_size",
            [n for n in self._dividing(MAX_SIZE) if any(s % n == 0 for s in self.sequences)],
        )
        e = self._able(runtime, "expert_parallel_size", self._experts(runtime))
        has_experts = bool(expert_counts(self.model))
        for s in self.sequences:
            for batch in self.batches[s]:
                micro = self._sizes("micro_batch_size", self._micro_batches(s, batch))
                rows = [
                    (s, batch, tensor, context, expert, cut, b)
                    for tensor, context, expert in product(t, c, e)
                    for cut in self._sizes("expert_tensor_parallel_size", sorted({1, tensor} if has_experts else {1}))
                    for b in micro
                ]
                yield np.array(rows, dtype=np.int64).reshape(-1, len(INNER))


def _columns(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values.copy() for name, values in zip(INNER, rows.T, strict=True)}


def usual_batch(s: Any) -> Any:
    """Sequences of length s in a step, where nobody says; an array of an array of lengths."""
    return maximum(TOKENS_OF_A_STEP // s, 1)


def near_batch(usual: int, world: int) -> int:
    """Sequences of a step, at most BATCH_SHIFT away from `usual`, that replicas of a machine of `world` accelerators
    divide best: a multiple of the odd part of `world` times the largest power of two, the nearest of these; `usual`
    where there is none.

    >>> [near_batch(1024, world) for world in (64, 72, 80, 96, 1000)]
    [1024, 1008, 1040, 1008, 1000]
    """
    odd = world // (world & -world)
    least, most = ceil(usual * (1 - BATCH_SHIFT) / odd), int(usual * (1 + BATCH_SHIFT) / odd)
    every = [times * odd for times in range(least, most + 1)]
    return min(every, key=lambda batch: (-(batch & -batch), abs(batch - usual)), default=usual)

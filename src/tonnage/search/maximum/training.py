"""The most of a training run: its sequences, micro-batches, adapters, layers that train."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil, lcm
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.catalogue import cluster as cluster_named
from tonnage.documents.advice import ChangeDocument
from tonnage.estimate.answer import answers
from tonnage.estimate.answer.notes import narrowest
from tonnage.estimate.bands import training_band
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import training_memory
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.plans import media_tokens, training_plan
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.options.tools import runtime_named
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import sequence_parts
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message, joined
from tonnage.kernel.units import counted
from tonnage.question.subjects.maximum import What
from tonnage.runtimes import USUAL_ON_SEVERAL, training_runtime
from tonnage.search.maximum.case import Limit, Outcome, refusal
from tonnage.search.progress import advance
from tonnage.spec import Cluster, TrainingPlan

LONGEST, MOST = 2**30, 2**20  # tokens; sequences, ranks: beyond anything that fits
UNEVEN = ("sequence_length", "micro_batch_size")  # what losses in parts cut
METHODS = {"lora_rank": ("lora", "dora", "qlora"), "trainable_layers": ("freeze",)}  # the first where none is said


class TrainingRow:
    """A training run; what was not said is as `train` has it."""

    def __init__(
        self,
        what: What,
        model: Model,
        cluster: Cluster,
        options: TrainingOptions,
        run: RunOptions,
        money: BillOptions,
        reserve_bytes: int,
    ):
        if model.family == "tensors":
            raise needs_family(model, "the memory of training")
        self.what, self.model, self.cluster = what, model, cluster
        self.run, self.money, self.reserve = run, money, reserve_bytes
        self.usable = cluster.accelerator.memory.usable_bytes - reserve_bytes
        self.asked, self.options = options, self._with_method(options)
        self._known: dict[int, Outcome] = {}

    def _with_method(self, options: TrainingOptions) -> TrainingOptions:
        methods = METHODS.get(self.what.option)
        if methods is None:
            return options
        if options.method is not None and options.method not in methods:
            raise InvalidInput(
                "max {what} is of method {methods}. Got method {method}.",
                what=self.what.name,
                methods=joined(" or ", methods),
                method=options.method,
            )
        return replace(options, method=options.method or methods[0])

    @cached_property
    def values(self) -> Sequence[int]:
        if self.what.option == "sequence_length":
            step = self._step()
            first = ceil(self._least / step) * step
            return range(first, max(first, LONGEST) + 1, step)
        if self.what.option == "micro_batch_size":
            return self._batches()
        if self.what.option == "trainable_layers":
            return range(1, self.model.num_layers + 1)
        return range(1, MOST + 1)

    def _step(self) -> int:
        """Multiples of what cuts a sequence: context and tensor ranks, and a loss in equal parts."""
        o = self.options
        context, tensor = o.context_parallel_size or 1, o.tensor_parallel_size or 1
        chunks = max(training_runtime(runtime_named(o) or USUAL_ON_SEVERAL).loss_chunks, 1)
        unit = sequence_parts(tensor, context, o.sequence_parallel)
        for step in dict.fromkeys((unit, lcm(unit, context * chunks))):
            before = ceil(self._least / step) - 1
            if all(self._is_plan(step * (before + times)) for times in (1, 3, 5, 7)):
                return step
        return unit

    @cached_property
    def _least(self) -> int:
        """Tokens of the shortest sequence: its images or its video leave room for one of text."""
        return media_tokens(self.model, self.options) + 1

    def _is_plan(self, value: int) -> bool:
        try:
            self.plan(value)
        except TonnageError:
            return False
        return True

    def _batches(self) -> Sequence[int]:
        """Any, or those that divide a global batch that was given among the replicas."""
        total = self.options.global_batch_size
        if total is None:
            return range(1, MOST + 1)
        plan = self.plan(None if self.options.num_microbatches else 1)
        if self.options.num_microbatches:
            raise InvalidInput(
                "{@global_batch_size} {total:,} and {@num_microbatches} {num_microbatches:,} leave one "
                "micro-batch, {micro_batch_size:,}: leave one of them out.",
                total=total,
                num_microbatches=self.options.num_microbatches,
                micro_batch_size=plan.micro_batch_size,
            )
        per_rank = total // plan.data_parallel_size
        return [size for size in range(1, min(per_rank, MOST) + 1) if per_rank % size == 0]

    @cached_property
    def cap(self) -> tuple[int, Limit] | None:
        if self.what.option == "sequence_length":
            trained_context = self.model.context
            text = (
                Message("{model} was made for {context:,} tokens", model=self.model.name, context=trained_context or 0)
                if trained_context
                else ""
            )
            return (trained_context, Limit(by="model", text=text)) if trained_context else None
        if self.what.option == "trainable_layers":
            count = self.model.num_layers
            return count, Limit(
                by="model",
                text=Message("these are all {count} of {model}", count=counted(count, "layers"), model=self.model.name),
            )
        if self.what.option == "lora_rank":
            side, name = narrowest(self.model, self.plan(1))
            text = Message(
                "{side:,} is the narrower side of {name}, and an update of that matrix has no higher rank",
                side=side,
                name=name,
            )
            return (side, Limit(by="model", text=text)) if name else None
        total = self.options.global_batch_size
        if total is None:
            return None
        text = Message("the global batch of {total} gives a replica no more", total=counted(total, "sequences"))
        return self.values[-1], Limit(by="options", text=text)

    def said(self, value: int) -> dict[str, Any]:
        """The options of this value, with the method where the question chose it."""
        method = {} if self.asked.method == self.options.method else {"method": self.options.method}
        return {**method, self.what.option: value}

    def plan(self, value: int | None) -> TrainingPlan:
        """The plan at a value, or at the default (None)."""
        options = self.options if value is None else replace(self.options, **self.said(value))
        return training_plan(self.model, self.cluster, options, Question())

    def ask(self, value: int) -> Outcome:
        if value not in self._known:
            self._known[value] = self._estimate(value)
            advance("estimates")
        return self._known[value]

    def _estimate(self, value: int) -> Outcome:
        try:
            plan = self.plan(value)
            memory = training_memory(self.model, plan, self.cluster)
            needed = memory.memory.value
        except TonnageError as error:
            return refusal(value, error)
        band = training_band(plan, self.cluster)
        low, high = band.around(needed) if band else (ceil(needed), ceil(needed))
        return Outcome(value=value, needed=ceil(needed), low=low, high=high, usable=self.usable)

    @property
    def uneven(self) -> bool:
        return self.what.option in UNEVEN

    @property
    def has_bands_of_times(self) -> bool:
        return False

    def where(self, value: int) -> str:
        plan = self.plan(value)
        fullest = training_memory(self.model, plan, self.cluster).fullest
        stages = plan.pipeline_parallel_size
        rank = Message(", on pipeline stage {rank} of {stages}", rank=fullest.rank, stages=stages) if stages > 1 else ""
        return Message("at the peak: {peak}{rank}", peak=fullest.peak.name, rank=rank)

    def answer(self, value: int) -> answers.Answer:
        options = replace(self.options, **self.said(value))
        return answers.train(
            self.model, self.cluster, options, self.run, self.money, reserve_bytes=self.reserve, advise=False
        )

    def moves(self, value: int) -> Sequence[ChangeDocument]:
        options = replace(self.options, **self.said(value))
        answer = answers.train(self.model, self.cluster, options, self.run, self.money, reserve_bytes=self.reserve)
        return answer.advice

    def changed(self, change: Mapping[str, Any]) -> "TrainingRow":
        options = {name: value for name, value in change.items() if name != "on"}
        if self.what.option == "micro_batch_size" and self.options.num_microbatches is None:
            options.pop("num_microbatches", None)  # it held the global batch of another micro-batch
        cluster = cluster_named(change["on"]) if "on" in change else self.cluster
        return TrainingRow(
            self.what, self.model, cluster, replace(self.asked, **options), self.run, self.money, self.reserve
        )

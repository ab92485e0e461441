"""The most of a served model: its context, prompts, users, layers on the accelerator, adapters."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.catalogue import cluster as cluster_named
from tonnage.documents.advice import ChangeDocument
from tonnage.estimate.answer import answers
from tonnage.estimate.bands import serving_band
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.media import with_load
from tonnage.estimate.load.options import USUAL, LoadOptions, lengths, media_tokens
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.run.larger_machines import Machines
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import decode_replicas, serving_plan
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message, option_name
from tonnage.question.subjects.maximum import What
from tonnage.runtimes import USUAL_AT_HOME, serving_runtime
from tonnage.search.maximum.case import Limit, Outcome, refusal
from tonnage.search.maximum.patience import Late, is_limited, too_many, too_slow
from tonnage.search.progress import advance
from tonnage.spec import Cluster, ServingPlan

LONGEST, MOST = 2**30, 2**24  # tokens; requests, adapters: beyond anything that fits
UNEVEN = ("context", "input_tokens")  # old engines take smaller passes of long contexts
LAYERS = ("layers_on_accelerator", "expert_layers_on_host")  # llama.cpp's


class ServingRow:
    """A served model; what was not said is as `serve` has it. `runs_all`: the engine is told to run all users at
    once.
    """

    def __init__(
        self,
        what: What,
        model: Model,
        cluster: Cluster,
        options: ServingOptions,
        load: LoadOptions,
        money: BillOptions,
        reserve_bytes: int,
        *,
        runs_all: bool = False,
    ):
        if model.family == "tensors":
            raise needs_family(model, "the memory of serving")
        self.what, self.model, self.cluster, self.money, self.reserve = what, model, cluster, money, reserve_bytes
        self.asked, self.runs_all = options, runs_all
        self.usable = cluster.accelerator.memory.usable_bytes - reserve_bytes
        self._check(load)
        self._engine = self._of_layers(options) if what.option in LAYERS else {}
        self.options = replace(options, reserve_bytes=reserve_bytes, **self._engine)
        self.load = self._with_answers(load) if what.option == "input_tokens" else load
        self.options = with_load(model, self.options, self.load)
        self._known: dict[int, Outcome] = {}

    def _check(self, load: LoadOptions) -> None:
        if self.what.option == "expert_layers_on_host" and not expert_counts(self.model):
            raise InvalidInput(
                "max expert-layers is of models with experts, and {model} has none: max layers is of any.",
                model=self.model.name,
            )
        for name in ("request_rate", "trace") if self.what.option == "concurrency" else ():
            if getattr(load, name) is not None:
                raise InvalidInput(
                    "max users is of users who wait for their answers, and {name} has requests that come "
                    "by themselves: leave out {name}.",
                    name=option_name(name),
                )

    def _with_answers(self, load: LoadOptions) -> LoadOptions:
        """Answers as long as those of a chat, at most a quarter of the context, where nobody says it."""
        room = self.options.context or self.model.context or LONGEST
        return replace(load, output_tokens=load.output_tokens or min(USUAL, max(room // 4, 1)))

    def _of_layers(self, options: ServingOptions) -> dict[str, str]:
        """llama.cpp, where nobody names an engine and it is not the one that is usual there."""
        if options.engine is not None:
            return {}
        try:
            usual = serving_plan(self.model, self.cluster, options, Question()).engine
        except TonnageError:
            usual = ""
        return {} if usual == USUAL_AT_HOME else {"engine": USUAL_AT_HOME}

    @cached_property
    def values(self) -> Sequence[int]:
        option, count = self.what.option, self.model.num_layers
        if option == "context":
            least = (self.load.input_tokens or 1) + media_tokens(self.options) + (self.load.output_tokens or 1)
            return range(least, max(least, LONGEST) + 1)
        if option == "layers_on_accelerator":
            least = int(serving_plan(self.model, self.cluster, self.options, Question()).pipeline_parallel_size)
            return range(least, max(least, count + 1) + 1)
        if option == "expert_layers_on_host":
            return range(count + 1)
        return range(1, (LONGEST if option == "input_tokens" else MOST) + 1)

    @cached_property
    def cap(self) -> tuple[int, Limit] | None:
        option, model = self.what.option, self.model
        trained_limit = Limit(
            by="model",
            text=Message("{model} was made for {context:,} tokens", model=model.name, context=model.context or 0),
        )
        if option == "context":
            return (model.context, trained_limit) if model.context else None
        if option == "input_tokens":
            return self._longest_prompt(trained_limit)
        if option == "layers_on_accelerator":
            return self.values[-1], Limit(
                by="model", text=Message("these are all layers of {model}, with its head", model=model.name)
            )
        if option == "expert_layers_on_host":
            return self.values[-1], Limit(
                by="model",
                text=Message("the experts of all layers of {model} are on the accelerator", model=model.name),
            )
        return None

    def _longest_prompt(self, trained_limit: Limit) -> tuple[int, Limit] | None:
        """The longest prompt that a context leaves room for beside the answer."""
        answer, context = self.load.output_tokens or 0, self.options.context
        room = context or self.model.context
        if room is None:
            return None
        room -= media_tokens(self.options)
        if room <= answer:
            raise InvalidInput(
                "{@output_tokens} must leave some of the context of {room:,} tokens to the prompt. Got {answer:,}.",
                room=room,
                answer=answer,
            )
        text = Message("the context is {room:,} tokens, of which the answer takes {answer:,}", room=room, answer=answer)
        return room - answer, Limit(by="options", text=text) if context else trained_limit

    def said(self, value: int) -> dict[str, Any]:
        """The options of this value. Layers whose experts stay on the host are counted by the option, so the value is
        turned round; all layers need no option."""
        if self.what.option in LAYERS:
            turned = self.model.num_layers - value if self.what.option == "expert_layers_on_host" else value
            all_of_them = {"layers_on_accelerator": self.model.num_layers + 1}.get(self.what.option, 0)
            return {**self._engine, self.what.option: None if turned == all_of_them else turned}
        if self.runs_all:
            groups, runs = self._places
            per_group = -(-value // groups)
            return (
                {"max_num_seqs": per_group, self.what.option: value} if per_group > runs else {self.what.option: value}
            )
        return {self.what.option: value}

    @cached_property
    def _places(self) -> tuple[int, int]:
        """Groups of ranks that share the users, and how many each runs at once as it is."""
        plan = serving_plan(self.model, self.cluster, self.options, Question())
        limits = batch_limits(serving_runtime(plan.engine, plan.engine_version), plan, self.cluster.accelerator)
        replicas = decode_replicas(int(plan.data_parallel_size), self.load.prefill_replicas)
        return int(replicas * plan.attention_data_parallel_size), limits.requests

    def running_all(self) -> "ServingRow":
        """The case with an engine that runs all users at once."""
        return ServingRow(
            self.what, self.model, self.cluster, self.asked, self.load, self.money, self.reserve, runs_all=True
        )

    def _options_at(self, value: int) -> tuple[ServingOptions, LoadOptions]:
        if self.what.option == "input_tokens":
            load = replace(self.load, input_tokens=value)
            return with_load(self.model, self.options, load), load
        return replace(self.options, **self.said(value)), self.load

    def plan(self, value: int) -> ServingPlan:
        options, load = self._options_at(value)
        context = lengths(self.model, options, load).context
        return serving_plan(
            self.model, self.cluster, options if context is None else replace(options, context=context), Question()
        )

    def ask(self, value: int) -> Outcome:
        if value not in self._known:
            self._known[value] = self._estimate(value)
            advance("estimates")
        return self._known[value]

    def _estimate(self, value: int) -> Outcome:
        try:
            plan = self.plan(value)
            memory = serving_memory(self.model, plan, self.cluster.accelerator)
            needed = ceil(memory.memory.value)
            # with a limit on the first token it is the wait that counts, not whether all run at once
            waits = self.what.option == "concurrency" and self.load.ttft is None
            refused = too_many(plan, memory) if waits else None
            band = serving_band(plan.engine, self.cluster.accelerator)
            low, high = band.around(memory.memory.value) if band else (needed, needed)
            late: Late = (None, None, None)
            if refused is None and low <= self.usable and is_limited(self.load):
                late = too_slow(self.model, self.cluster, plan, memory, self.usable, *self._options_at(value))
        except TonnageError as error:
            return refusal(value, error)
        return Outcome(value=value, needed=needed, low=low, high=high, usable=self.usable, refused=refused, late=late)

    @property
    def has_bands_of_times(self) -> bool:
        """Whether limits on waiting are kept for sure, by the estimate, or perhaps."""
        return self.load.ttft is not None or self.load.tpot is not None

    @property
    def uneven(self) -> bool:
        """Whether the outcome is not monotonic in the value: percentiles are simulated, with chance in them."""
        return self.what.option in UNEVEN or self.load.percentile not in (None, "mean")

    def where(self, value: int) -> str:
        memory = serving_memory(self.model, self.plan(value), self.cluster.accelerator)
        stages = len(memory.ranks)
        return (
            Message("on pipeline stage {rank} of {stages}", rank=memory.fullest.rank, stages=stages)
            if stages > 1
            else ""
        )

    def answer(self, value: int) -> answers.Answer:
        options, load = self._options_at(value)
        return answers.serve(
            self.model, self.cluster, options, load, self.money, reserve_bytes=self.reserve, advise=False
        )

    def moves(self, value: int) -> Sequence[ChangeDocument]:
        options, load = self._options_at(value)
        outcome = self.ask(value)
        if outcome.limit is not None and outcome.limit.by == "service level":
            return self._faster(options, load)
        if self.what.option == "input_tokens":
            options = replace(options, context=int(self.plan(value).context))
        answer = answers.serve(self.model, self.cluster, options, load, self.money, reserve_bytes=self.reserve)
        return answer.advice

    def _faster(self, options: ServingOptions, load: LoadOptions) -> list[ChangeDocument]:
        """The changes that an estimate advises where it fits, or more replicas of the same kind where it advises
        none.
        """
        answer = answers.serve(self.model, self.cluster, options, load, self.money, reserve_bytes=self.reserve)
        advised: list[ChangeDocument] = list(answer.advice)
        plan = serving_plan(self.model, self.cluster, self.options, Question())
        more = () if any("on" in move.change for move in advised) else Machines(self.cluster).larger(2)[:1]
        for count in more:
            change = {"on": Machines(self.cluster).of(count).name, "tensor_parallel_size": plan.tensor_parallel_size}
            text = f"--on {change['on']} --tensor-parallel-size {plan.tensor_parallel_size}"
            advised.append(ChangeDocument(change=change, text=text, changes="machine"))
        return advised

    def changed(self, change: Mapping[str, Any]) -> "ServingRow":
        options = {name: value for name, value in change.items() if name != "on"}
        cluster = cluster_named(change["on"]) if "on" in change else self.cluster
        return ServingRow(
            self.what, self.model, cluster, replace(self.asked, **options), self.load, self.money, self.reserve
        )

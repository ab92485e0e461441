"""What a changed serving plan answers under the load that was asked about: its times, and tokens of all machines."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions, ReplicaLoad, asked, lengths
from tonnage.estimate.serving.memory import ServingMemory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving_time.service_level import bound_by, replicas_within
from tonnage.estimate.serving_time.speed import Replica, replica_of
from tonnage.estimate.serving_time.times import ServingTimes, times
from tonnage.formulas import service as h
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan


class Pace(Struct, frozen=True, eq=False):
    """`found`: times of one replica; `asked`: what is asked of each. `knows_prompts`: whether prompts have a time:
    without it there is no rate of all tokens.
    """

    found: ServingTimes
    replica: Replica
    asked: ReplicaLoad

    @property
    def load(self) -> Load:
        return self.asked.load

    @property
    def busy(self) -> int:
        return self.asked.busy

    @property
    def knows_prompts(self) -> bool:
        return self.replica.clock.knows_prompts

    @property
    def serves(self) -> bool | None:
        """Whether it keeps within the limits, or keeps up with what comes; None where neither was asked, or nobody
        can say. As `unserved` judges.
        """
        if not self.knows_prompts:
            return None
        if self.asked.limited:
            return not bound_by(self.replica, self.asked)
        if self.asked.is_open and self.asked.requests is None:
            return self.found.ttft_seconds not in (None, float("inf"))
        return None

    @property
    def replicas_needed(self) -> int:
        """Replicas like this one that serve everything; 0 where no number of them does."""
        return replicas_within(self.replica, self.asked, self.found) if self.knows_prompts else 0

    @property
    def answers(self) -> float:
        """Tokens of answers a second."""
        return float(h.answered_tokens_per_second.evaluate(X=self._rate, O=self.found.answer_tokens))

    @property
    def figures(self) -> dict[str, float]:
        """What a move shows of it; the first token where it has a mean time."""
        first = {} if self.found.ttft_seconds in (None, float("inf")) else {"ttft_seconds": self.found.ttft_seconds}
        return first | {"tpot_seconds": self.found.tpot_seconds, "tokens_per_second": self.answers}

    @property
    def everything(self) -> float | None:
        """Tokens of prompts and answers a second; None where prompts have no time."""
        if not self.knows_prompts:
            return None
        lengths_of = {"s": self.found.prompt_tokens, "O": self.found.answer_tokens}
        return float(h.all_tokens_per_second.evaluate(X=self._rate, **lengths_of))

    @property
    def _rate(self) -> float:
        """Requests a second of all replicas."""
        return self.found.requests_per_second * self.busy


def pace_of(
    model: Model,
    cluster: Cluster,
    options: ServingOptions,
    plan: ServingPlan,
    memory: ServingMemory,
    usable: int,
    load: LoadOptions,
    wanted: ReplicaLoad,
) -> Pace | None:
    """The pace of a plan; None where not even one request has room, or where prompts have replicas of their own, whose
    times are others; MissingDatum where nobody can say the times.
    """
    if wanted.prefill_replicas:
        return None
    request_lengths = replace(lengths(model, options, load), requests=wanted.requests)
    this = asked(plan, options, load, request_lengths, Question())
    replica = replica_of(model, plan, cluster, memory, usable, this.load)
    if replica.pool is not None and replica.pool < this.load.input_tokens + this.load.output_tokens:
        return None
    return Pace(times(replica.clock, replica.policy, this.load), replica, this)


def keep_context(
    model: Model,
    cluster: Cluster,
    options: ServingOptions,
    load: LoadOptions,
    plan: ServingPlan,
    change: dict[str, Any],
) -> dict[str, Any]:
    """The change, with the context that it was estimated with where the command line alone would have another:
    Ollama's default follows the memory of all accelerators. `options`: as the user gave them.
    """
    steps = serving_runtime(plan.engine, plan.engine_version).context_steps
    if not steps or options.context is not None or "context" in change:
        return change
    settings = {name: value for name, value in change.items() if name != "on"}
    options = replace(options, **settings)
    context = lengths(model, options, load).context or serving_plan(model, cluster, options, Question()).context
    return change if context == plan.context else {**change, "context": int(plan.context)}

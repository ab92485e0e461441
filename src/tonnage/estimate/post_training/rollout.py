"""Rollouts: all completions of a step on the replicas of the rollout engine, from the first prompt until the longest
has ended.
"""

from functools import cached_property, lru_cache
from math import floor
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.load import Policy
from tonnage.estimate.plan.validity import shares_heads
from tonnage.estimate.post_training.lengths import completions
from tonnage.estimate.post_training.measured import OVERHEADS
from tonnage.estimate.post_training.overheads import Overheads
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving_time.forward_pass import PassTime
from tonnage.estimate.serving_time.times import Drafted, pass_time, policy, pool_tokens
from tonnage.formulas import post_training as f
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.kernel.term import Term
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Cluster, Load, Media, Rollout, ServingPlan, TrainingPlan

if TYPE_CHECKING:
    from tonnage.estimate.load import Simulated
    from tonnage.estimate.post_training.lengths import Numbers

# Part of the memory of an engine that takes turns with training: veRL, verl/trainer/config/rollout/rollout.yaml,
# gpu_memory_utilization 0.5.
TURNS_SHARE = 0.5
FULL_SHARE = 0.9  # vLLM, vllm/config/cache.py: of an engine that has the accelerator to itself
# Seconds of a pass for each request whose tokens come with their log-probability, as updates need them: vLLM, pull
# request 57442: 13,583 instead of 18,645 tokens/s with 64 requests of Qwen2.5-0.5B on an L20.
LOG_PROBABILITY = 1 / 13_583 - 1 / 18_645
# Seconds that vLLM takes to free its memory before training: TRL, issue 4086, the log of an engine that falls asleep,
# 1.46, 1.50 and 1.60 s. NeMo RL times it as part of the rollout (nemo_rl/algorithms/grpo.py: finish_generation).
SLEEP = 1.5
# Requests of mean length that the cache of a replica should hold before more ranks share it: a choice of ours, no
# published figure. With fewer, each pass reads all weights for a handful of tokens.
ENOUGH = 16
MOST_SIMULATED = 100_000  # completions of a replica: seconds of our own
BULK = 0.9  # of the completions; the others are the tail
BLOCK = 16  # tokens of a block of the prefix cache: vLLM, vllm/config/cache.py
SOURCE = "estimate/load: continuous batching, one request after the other"


class _SameCompletions:
    """Rollouts, equal to others of which an engine generates the same completions: a search and the answers of its
    best plans ask for them again and again.
    """

    def __init__(self, rollouts: "Rollouts"):
        self.rollouts, cluster = rollouts, rollouts.cluster
        things = rollouts.model, cluster.accelerator, cluster.node, rollouts.overheads
        completions = replace(rollouts.rollout, async_steps=0, rollout_accelerators=0)
        engine = rollouts.served, rollouts.policy, cluster.num_nodes, cluster.accelerators_per_node
        self._key = *map(ByIdentity, things), completions, engine

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameCompletions) and self._key == other._key


@lru_cache(maxsize=32)
def _drained(of: _SameCompletions, steps: int) -> "Simulated":
    return of.rollouts.simulated(steps)


class Rollouts:
    """The rollouts of one step. `held_bytes`: what training keeps on an accelerator while the engine runs on it."""

    def __init__(
        self,
        model: Model,
        plan: TrainingPlan,
        cluster: Cluster,
        held_bytes: float,
        overheads: Overheads = OVERHEADS,
    ):
        self.model, self.plan, self.rollout, self.held_bytes = model, plan, plan.rollout, held_bytes
        self.overheads = overheads
        self.cluster = rollout_cluster(plan.rollout, cluster)

    # ---- the engine ----

    @cached_property
    def engine(self) -> ServingRuntime:
        return serving_runtime(self.rollout.rollout_engine, self.rollout.rollout_engine_version)

    @cached_property
    def media(self) -> Media | None:
        """Images or the video of a prompt: its completions share them, and the tower sees them once where the engine
        caches prefixes.
        """
        media = self.plan.vision.media
        return media and replace(media, prompt_tokens=max(round(self.rollout.prompt_length), 1))

    @property
    def is_colocated(self) -> bool:
        """Whether the engine takes turns with training on the same accelerators."""
        return not self.rollout.rollout_accelerators

    @property
    def sleeps(self) -> bool:
        """Whether the engine frees its memory while training runs."""
        return self.is_colocated and self.engine.queues and not self.plan.post_training.engine_memory_share

    @cached_property
    def share(self) -> float | None:
        """The part of the accelerator's memory that the engine takes; None: its own default."""
        if not self.is_colocated:
            return None
        if stated := self.plan.post_training.engine_memory_share or self.rollout.rollout_memory_share:
            return stated
        usable = self.cluster.accelerator.memory.usable_bytes
        return max(floor(100 * min(TURNS_SHARE, 1 - self.held_bytes / usable)) / 100, 0.0)  # a config has hundredths

    @cached_property
    def served(self) -> tuple[ServingPlan, int | None]:
        """The plan of a replica, and the tokens that its cache holds. Ranks: those of the tool by default, else the
        fewest, whose cache runs enough requests; where none does, those that run most on an accelerator of a node.
        Where training leaves too little for one longest request, or the stated share is too small, the engine takes
        more, and training's states go to the host.
        """
        shares = [self.share]
        if self.is_colocated:
            shares += [share for share in (TURNS_SHARE, FULL_SHARE) if share > (self.share or 0)]
        for share in shares:
            able = []
            for ranks in self._ranks():
                plan = self._plan(ranks, share)
                memory = serving_memory(self.model, plan, self.cluster.accelerator)
                pool = self._pool(plan, memory, share)
                if pool is not None and pool < self._longest:
                    continue
                if self._missing(plan, pool) <= 0:
                    return plan, pool
                able.append((plan, pool))
            if able:
                return max(able, key=self._requests_of_accelerator)
        raise MissingDatum(
            "the time of rollouts is not estimated: no replica of {engine} on {cluster} holds the model and one "
            "completion of {tokens:,} tokens.",
            engine=self.engine.name,
            cluster=self.cluster.name,
            tokens=int(self._longest),
        )

    @property
    def requests_at_once(self) -> int | None:
        """Requests of mean length that the cache of a replica holds; None: as many as there are."""
        pool = self.served[1]
        return None if pool is None else int(pool // self._mean)

    @property
    def runs_enough(self) -> bool:
        """Whether the cache of a replica holds as many requests as it should run."""
        return self._missing(*self.served) <= 0

    def _missing(self, plan: ServingPlan, pool: int | None) -> float:
        """Tokens of cache that a replica lacks for the requests of mean length that it has to run, up to ENOUGH."""
        if pool is None:
            return 0.0
        own = -(-int(self.count.value) // int(plan.data_parallel_size))
        limits = batch_limits(self.engine, plan, self.cluster.accelerator)
        return min(own, int(limits.requests), ENOUGH) * self._mean - pool

    def _requests_of_accelerator(self, able: tuple[ServingPlan, int | None]) -> tuple[bool, float, float]:
        """Requests that one accelerator of a replica runs at once; ranks of one node before those of several."""
        plan, pool = able
        ranks = int(plan.tensor_parallel_size)
        requests = (pool or 0) // self._mean
        return ranks <= self.cluster.accelerators_per_node, requests / ranks, -ranks

    @cached_property
    def taken(self) -> float:
        """The part of the memory that the engine takes in the end, 0 to 1."""
        share = self.served[0].gpu_memory_utilization
        return share if share is not None else self.share or 0.0

    @property
    def _longest(self) -> float:
        return float(self.rollout.prompt_length + self.rollout.max_completion_length)

    @property
    def _mean(self) -> float:
        return float(self.rollout.prompt_length + self.rollout.mean_completion_length)

    def _ranks(self) -> list[int]:
        """Ranks of an engine in the order in which they are tried: those of the tool first."""
        size, stated = self.cluster.size, self.rollout.rollout_tensor_parallel_size
        if stated is None:
            able = [t for t in (2**k for k in range(size.bit_length())) if not size % t and shares_heads(self.model, t)]
            return sorted(able, key=lambda ranks: (ranks != self.rollout.usual_rollout_ranks, ranks))
        if size % stated or not shares_heads(self.model, stated):
            raise InvalidPlan(
                "{@rollout_tensor_parallel_size} must divide the {size} accelerators that generate, and the heads of "
                "{model}. Got {stated}.",
                size=size,
                model=self.model.name,
                stated=stated,
            )
        return [stated]

    def _plan(self, ranks: int, share: float | None) -> ServingPlan:
        replicas = self.cluster.size // ranks
        return ServingPlan.of_fields(
            context=int(self._longest),
            tensor_parallel_size=ranks,
            data_parallel_size=replicas,
            weights="bf16" if self.model.quantization else None,
            kv_cache="bf16",
            engine=self.engine.name,
            engine_version=self.rollout.rollout_engine_version,
            max_num_seqs=self.rollout.rollout_max_num_seqs,
            gpu_memory_utilization=share if self.engine.share_of != "nothing" else None,
            links=self.plan.links,
            media=self.media,
        )

    def _pool(self, plan: ServingPlan, memory: ServingMemory, share: float | None) -> int | None:
        usable = self.cluster.accelerator.memory.usable_bytes
        load = Load(input_tokens=self.rollout.prompt_length, output_tokens=self.rollout.max_completion_length)
        if not self.engine.queues and memory.memory.value > usable * (1 if share is None else share):
            return 0
        return pool_tokens(self.model, plan, self.cluster, memory, usable, load)

    @cached_property
    def passes(self) -> PassTime | Drafted:
        """The clock of a replica. MissingDatum where nobody knows it."""
        passes = pass_time(self.model, self.served[0], self.cluster)
        if not passes.knows_prompts:
            raise MissingDatum(
                "no source gives a peak of {chip}: the time of prompts needs it.", chip=self.cluster.accelerator.name
            )
        if isinstance(passes, PassTime) and self.engine.queues:
            waits = self.overheads.pass_seconds
            if self.served[0].tensor_parallel_size > 1:
                waits += self.overheads.ranks_seconds * self.model.num_layers
            engine = passes.engine
            passes.engine = replace(engine, step=engine.step + waits, request=engine.request + LOG_PROBABILITY)
        return passes

    @cached_property
    def policy(self) -> Policy:
        plan, pool = self.served
        own = policy(plan, self.cluster.accelerator, pool)
        if self.engine.queues or plan.max_num_seqs:
            return own
        return replace(own, max_num_seqs=self._generated_at_once)

    @property
    def _generated_at_once(self) -> int:
        """Completions of one call of generate: all that a replica has, where the memory beside training holds their
        cache (TRL, trl/trainer/grpo_trainer.py: the prompts of a rank in one call).
        """
        plan = self.served[0]
        ranks = serving_memory(self.model, plan, self.cluster.accelerator).ranks
        room = self.cluster.accelerator.memory.usable_bytes * (self.share or 1.0)
        fitting = [
            (room - rank.besides_cache.value) // rank.per_request.value for rank in ranks if rank.per_request.value
        ]
        own = -(-int(self.count.value) // self.replicas)
        return max(min([own, *map(int, fitting)]), 1)

    # ---- the completions ----

    @cached_property
    def count(self) -> Term:
        """Completions of a step."""
        rollout = self.rollout
        return Term.of("rollouts", f.rollouts_per_step, n_prompts=rollout.prompts_per_step, G=rollout.num_generations)

    @property
    def replicas(self) -> int:
        return int(self.served[0].data_parallel_size)

    def drained(self, steps: int) -> "Simulated":
        """The completions of so many steps that wait at once on the replica that has most and the longest of them,
        until all have ended.
        """
        return _drained(_SameCompletions(self), steps)

    def simulated(self, steps: int) -> "Simulated":
        """As `drained`, simulated again."""
        import numpy as np

        from tonnage.estimate.load import Requests, simulate

        total = int(self.count.value) * steps
        own = -(-total // self.replicas)
        if own > MOST_SIMULATED:
            raise MissingDatum(
                "the time of rollouts is not estimated: a replica generates {own:,} completions, and {most:,} are "
                "simulated at most.",
                own=own,
                most=MOST_SIMULATED,
            )
        lengths = self._fullest(completions(self.rollout, own))
        lengths[-1] = max(completions(self.rollout, min(total, 1 << 16))[-1], lengths[-1])
        if not self.engine.queues:  # a batch of generate runs until its longest ends
            lengths = np.full(own, lengths[-1])
        order = np.random.default_rng(0).permutation(own)
        prompt = round(self.rollout.prompt_length)
        first = np.arange(own) % self.rollout.num_generations == 0
        cached = np.where(first | (not self.engine.queues), 0, max((prompt - 1) // BLOCK * BLOCK, 0))
        requests = Requests(
            arrival=np.zeros(own),
            input_tokens=np.full(own, prompt),
            output_tokens=lengths[order],
            cached=cached,
        )
        return simulate(self.passes, self.policy, requests)

    def _fullest(self, lengths: "Numbers") -> "Numbers":
        """Lengths of the replica that drew the longest completions: as far above the mean as the highest of so many
        independent draws is expected to be.
        """
        import numpy as np

        if self.replicas < 2 or lengths[0] == lengths[-1]:
            return lengths
        above = NormalDist().inv_cdf(1 - 1 / (self.replicas + 1)) / np.sqrt(len(lengths))
        factor = 1 + max(above, 0.0) * float(lengths.std() / lengths.mean())
        longest = int(self.rollout.max_completion_length)
        return np.minimum(np.rint(lengths * factor), longest).astype(int)

    @cached_property
    def alone(self) -> "Simulated":
        """The completions of one step, of which none is left when the next begin."""
        return self.drained(1)

    @cached_property
    def term(self) -> Term:
        """Seconds of the rollouts of a step."""
        late = self.rollout.async_steps
        parts = [self._overlapping(1 + late)] if late else self._drain()
        if self.rollout.tool_seconds:
            n_turns = self.rollout.rollout_turns
            parts.append(Term.of("tool waits", f.tool_wait_seconds, n_turns=n_turns, tau=self.rollout.tool_seconds))
        if self.sleeps:
            parts.append(Term.of("engine falls asleep", f.sleep_seconds, tau=SLEEP))
        if self.rollout.lmbda == 1:
            return Term.sum("rollout", *parts)
        share = Term.of("micro-batches that generate", f.generated_share, lmbda=self.rollout.lmbda)
        return Term.product("rollout", "seconds", share, Term.sum("rollout of every micro-batch", *parts))

    def _drain(self) -> list[Term]:
        import numpy as np

        seconds = self.alone.seconds
        bulk = float(np.quantile(self.alone.finished, BULK, method="lower"))
        return [
            self._simulated("until 90 % of the completions have ended", bulk),
            self._simulated("last 10 % of the completions", seconds - bulk),
        ]

    def _overlapping(self, steps: int) -> Term:
        """Completions of later steps fill the places of those that have ended, so that the tail of one step runs beside
        the next.
        """
        seconds = min(self.drained(steps).seconds / steps, self.alone.seconds)
        return self._simulated("completions, in a queue that never empties", seconds)

    def _simulated(self, name: str, seconds: float) -> Term:
        parameters: dict[str, Any] = {
            "replicas": self.replicas,
            "tensor_parallel_size": int(self.served[0].tensor_parallel_size),
            "completions_of_a_replica": len(self.alone.output_tokens),
            "mean_tokens": float(self.alone.output_tokens.mean()),
            "longest_tokens": int(self.alone.output_tokens.max()),
        }
        return Term.by(
            name,
            seconds,
            "seconds",
            basis="analytic",
            source=SOURCE,
            version="1",
            procedure="all completions of a step wait at once; the replica with most and the longest is simulated",
            **parameters,
        )


def rollout_cluster(rollout: Rollout, cluster: Cluster) -> Cluster:
    """The accelerators that generate: those that train, or others of the same kind."""
    generating, per_node = rollout.rollout_accelerators, cluster.accelerators_per_node
    if not generating:
        return cluster
    if generating <= per_node or generating + per_node <= _in_node(cluster):
        return replace(cluster, num_nodes=1, accelerators_per_node=generating)
    if generating % per_node:
        raise InvalidPlan(
            "{@rollout_accelerators} beyond one node must fill nodes of {per_node}. Got {apart}. Nearest: {near}.",
            per_node=per_node,
            apart=generating,
            near=max(round(generating / per_node), 1) * per_node,
        )
    return replace(cluster, num_nodes=generating // per_node)


def _in_node(cluster: Cluster) -> int:
    """Accelerators of the node that a machine is a part of, 0 where it is several nodes, or none is known."""
    return cluster.node.accelerators if cluster.node is not None and cluster.num_nodes == 1 else 0


def whole_cluster(rollout: Rollout, cluster: Cluster) -> Cluster:
    """The accelerators that train and those that generate, as one machine."""
    generating, per_node = rollout.rollout_accelerators, cluster.accelerators_per_node
    if not generating:
        return cluster
    if cluster.num_nodes == 1 and (generating % per_node or generating + per_node <= _in_node(cluster)):
        return replace(cluster, accelerators_per_node=per_node + generating)
    return replace(cluster, num_nodes=cluster.num_nodes + -(-generating // per_node))

"""A served model as one pipeline over unlike accelerators: what layers take on each kind, how fast the whole answers,
and the lengths of requests where nobody gives them.
"""

from collections import Counter
from functools import cached_property, lru_cache, partial
from math import ceil, inf

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.documents.question import Entry
from tonnage.estimate.hardware.network import Network
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.inputs import Question
from tonnage.estimate.load import Policy
from tonnage.estimate.load.media import with_load
from tonnage.estimate.load.options import USUAL, USUAL_SOURCE, Lengths, LoadOptions, ReplicaLoad, asked, lengths
from tonnage.estimate.serving.memory import ServingRank, stage_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.estimate.serving_time.times import ServingTimes, pass_time, policy, times
from tonnage.formulas import serving as g
from tonnage.formulas.pools import unlike_round_seconds
from tonnage.formulas.time import memory_seconds
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, TonnageError
from tonnage.kernel.formula import Number, maximum
from tonnage.kernel.message import Message, option_name
from tonnage.runtimes import serving_runtime
from tonnage.search.pool.parts import Kind, Pool
from tonnage.search.pool.pipelines.costs import Costs, StageLayers
from tonnage.search.pool.probe import Slopes, dealt_out, slopes
from tonnage.spec import Cluster, ServingPlan

ACTIVATION = 2  # bytes, as estimate.serving_time.forward_pass has them
USERS = 32  # of a pool where nobody says how many
SEARCHED_USERS = "assumed: users at the same time"


OF_ONE_PLAN = ("simulate", "trace", "prefill_replicas", "num_requests", "seed")


def check_load(load: LoadOptions) -> None:
    """Raise InvalidInput for options of a load that a placement does not take."""
    for name in OF_ONE_PLAN:
        if getattr(load, name) is not None:
            raise InvalidInput(
                "{name} is of one plan, which `tonnage serve` answers: leave it out. Got {value}.",
                name=option_name(name),
                value=getattr(load, name),
            )
    if load.percentile not in (None, "mean"):
        raise InvalidInput(
            "{@percentile} must be mean: others are simulated, by `tonnage serve`. Got {percentile}.",
            percentile=load.percentile,
        )
    if load.price_per_accelerator_hour is not None:
        raise InvalidInput(
            "{@price_per_accelerator_hour} is said of each node, in the inventory: price. Got "
            "{price_per_accelerator_hour:g}.",
            price_per_accelerator_hour=load.price_per_accelerator_hour,
        )


class Checked(Struct, frozen=True, kw_only=True):
    """One stage as the estimator has it: bytes of an accelerator, of its weights in host memory, and seconds of its
    part of a round.
    """

    needed: float
    usable: float
    on_host: float
    seconds: float
    pool_tokens: float = inf

    @property
    def fits(self) -> bool:
        return self.needed - self.on_host <= self.usable


class Width:
    """Pipelines whose stages are `width` accelerators each, on every kind that has so many in a node.

    `alone`: seconds are of one user, though there is room for all.
    """

    def __init__(
        self,
        pool: Pool,
        model: Model,
        options: ServingOptions,
        load: LoadOptions,
        width: int,
        *,
        offload: bool,
        alone: bool = False,
    ):
        self.alone = alone
        self.loose: dict[str, float] = {}  # bytes by which sums over layers had said too much of a kind
        self.model, self.width, self.pool = model, width, pool
        self.why: list[TonnageError] = []  # why kinds are left out
        lengths_given = lengths(model, options, load)
        context = options.context if lengths_given.context is None else lengths_given.context
        self.options = replace(
            options,
            context=context,
            tensor_parallel_size=width,
            pipeline_parallel_size=None,
            concurrency=options.concurrency or USERS,
        )
        self.question = Question()
        self.kinds: list[Kind] = []
        self.plans: list[ServingPlan] = []
        self.load: ReplicaLoad | None = None
        for kind in pool.kinds:
            if kind.each >= width:
                self._add(kind, load, lengths_given)
        self._one_engine()
        self.offload = offload and all(
            "weights_on_host" in serving_runtime(plan.engine, plan.engine_version).settings for plan in self.plans
        )

    def _add(self, kind: Kind, load: LoadOptions, lengths_given: Lengths) -> None:
        """The kind, where a stage can be on it and its time is known."""
        question = Question()
        try:
            cluster = kind.cluster(1, self.width)
            plan = serving_plan(self.model, cluster, replace(self.options, reserve_bytes=kind.reserve), question)
            wanted = asked(plan, self.options, load, lengths_given, question)
            if plan.drafting.draft_tokens:
                raise InvalidInput(
                    "{@draft_tokens}: drafts in a pipeline of unlike stages are not estimated. Got {draft_tokens}.",
                    draft_tokens=plan.drafting.draft_tokens,
                )
            if not pass_time(self.model, replace(plan, concurrency=1), cluster).knows_prompts:
                raise MissingDatum(
                    "no source gives a 16-bit peak of {kind}: how long prompts take on it is not known.", kind=kind.name
                )
        except (InvalidPlan, MissingDatum) as error:
            self.why.append(error)
            return
        self.kinds.append(kind)
        self.plans.append(plan)
        self.load, self.question = wanted, question

    def _one_engine(self) -> None:
        """Stages of one pipeline run one engine: the one that most accelerators would have."""
        sizes: Counter[str] = Counter()
        for kind, plan in zip(self.kinds, self.plans, strict=True):
            sizes[plan.engine] += kind.size
        for number in reversed(range(len(self.kinds))):
            engine, (first, _) = self.plans[number].engine, sizes.most_common(1)[0]
            if engine != first:
                self.why.append(
                    InvalidPlan(
                        "{kinds} would run {engine}, and the others {first}: say {--engine}.",
                        kinds=self.kinds[number].name,
                        engine=engine,
                        first=first,
                    )
                )
                del self.kinds[number], self.plans[number]

    @property
    def unlinked(self) -> list[str]:
        """Kinds that are in no pipeline of several stages: nobody says what leads out of their nodes."""
        return [
            Message("not used in several stages: {no_link}", no_link=no_link(kind))
            for kind in self.kinds
            if kind.node.outside is None
        ]

    @property
    def users(self) -> float:
        return 1.0 if self.alone else self.wanted

    @property
    def wanted(self) -> float:
        """The number of users for which there must be room."""
        return float(self._load.wanted)

    @property
    def limits(self) -> dict[str, float]:
        """The limits on the users' waiting times [s]."""
        return {name: limit for name in ("ttft", "tpot") if (limit := getattr(self._load, name)) is not None}

    def in_flight(self, place: int, stages: int) -> float:
        """Micro-batches that keep something for later: none."""
        return 0.0

    # ---- costs of layers ----

    def costs(self, stages: int) -> list[Costs]:
        """The costs of each kind in a pipeline of `stages` stages."""
        return [self._costs(number, stages) for number in range(len(self.kinds))]

    def _costs(self, number: int, stages: int) -> Costs:
        kind, held = self.kinds[number], self._bytes[number]
        timed = slopes(self.model, lambda chunks, place: self._probe(number, chunks).at(place, stages))
        sent = self._hand_on(number, stages)
        host = kind.node.host_memory_bytes if self.offload and kind.accelerator.host_link else None
        return Costs(
            seconds=timed.layers,
            fixed_seconds=timed.fixed + sent,
            first_seconds=timed.first,
            last_seconds=timed.last,
            bytes=held.layers,
            fixed_bytes=held.fixed - self.loose.get(kind.parts[0], 0.0),
            first_bytes=held.first,
            last_bytes=held.last,
            weights=self._weights[number].layers if host else (),
            host_bytes=host / kind.node.accelerators if host else 0.0,
            host_rate=kind.accelerator.host_link.bytes_per_second if kind.accelerator.host_link else inf,
            usable=kind.free,
            most=len(kind.parts) * (kind.each // self.width) if stages == 1 or kind.node.outside else 0,
        )

    @cached_property
    def _bytes(self) -> list[Slopes]:
        return [slopes(self.model, partial(self._needed, number)) for number in range(len(self.kinds))]

    @cached_property
    def _weights(self) -> list[Slopes]:
        return [slopes(self.model, partial(self._of_weights, number)) for number in range(len(self.kinds))]

    def _needed(self, number: int, chunks: tuple[int, ...], place: int) -> float:
        return float(self._rank(number, chunks, place).memory.value)

    def _of_weights(self, number: int, chunks: tuple[int, ...], place: int) -> float:
        return float(
            sum(part.value for part in self._rank(number, chunks, place).memory.children if part.name == "weights")
        )

    def plan_of(self, number: int, chunks: tuple[int, ...], on_host: float = 0.0) -> ServingPlan:
        """The whole pipeline as if all of it were on this kind."""
        return self.plans[number].with_fields(
            pipeline_parallel_size=len(chunks),
            chunk_layers=chunks,
            weights_on_host_bytes=ceil(on_host),
        )

    def _rank(self, number: int, chunks: tuple[int, ...], place: int, on_host: float = 0.0) -> ServingRank:
        return stage_memory(self.model, self.plan_of(number, chunks, on_host), self.kinds[number].accelerator, place)

    def clock(self, number: int, chunks: tuple[int, ...]) -> PassTime:
        """The times of passes through a pipeline of this kind."""
        kind = self.kinds[number]
        times = pass_time(
            self.model, replace(self.plan_of(number, chunks), concurrency=1), kind.cluster(len(kind.parts), kind.each)
        )
        assert isinstance(times, PassTime)
        return times

    @lru_cache(maxsize=4096)  # noqa: B019 - lives as long as one question
    def _probe(self, number: int, chunks: tuple[int, ...]) -> "Probe":
        assert self.load is not None
        clock = self.clock(number, chunks)
        return Probe(clock, self.load, self.users)

    def _hand_on(self, number: int, stages: int) -> float:
        """Seconds of sending a part of the requests on to the next stage, over what leads out of a node."""
        if stages == 1 or self.kinds[number].node.outside is None:  # alone it has no stage before or after it
            return 0.0
        return float(
            self.network(number).send(
                self.users / min(stages, max(self.users, 1.0)) * self.model.hidden_size * ACTIVATION,
                self.kinds[number].each,
            )
        )

    @lru_cache(maxsize=64)  # noqa: B019
    def network(self, number: int) -> Network:
        """The network of a kind, with the links that lead out of a node."""
        return outward(self.kinds[number])

    # ---- what the estimator says of a pipeline ----

    def check(self, runs: list[StageLayers]) -> list[Checked]:
        """Every stage of it, estimated again as the stage that it is."""
        chunks = dealt_out(runs)
        clocks = {run.kind: self.clock(run.kind, chunks) for run in runs}
        checked = []
        for place, run in enumerate(runs):
            rank, kind = self._rank(run.kind, chunks, place), self.kinds[run.kind]
            needed, on_host = rank.memory.value, 0.0
            if needed > kind.free and self.offload:
                on_host = min(needed - kind.free, self._room_on_host(run.kind))
            seconds = Probe(clocks[run.kind], self._load, self.users).at(place, len(runs)) + self._streamed(
                run.kind, on_host
            )
            pool = inf
            if rank.per_request.value:
                context = self.plans[run.kind].context
                free = g.cache_pool_bytes.evaluate(U=kind.free, M=rank.besides_cache.value - on_host)
                pool = g.pool_tokens.evaluate(U=free, M=rank.per_request.value, s=context)
            checked.append(Checked(needed=needed, usable=kind.free, on_host=on_host, seconds=seconds, pool_tokens=pool))
        return checked

    @property
    def _load(self) -> ReplicaLoad:
        assert self.load is not None
        return self.load

    def _room_on_host(self, number: int) -> float:
        kind = self.kinds[number]
        return (kind.node.host_memory_bytes or 0) / kind.node.accelerators if kind.accelerator.host_link else 0.0

    def _streamed(self, number: int, on_host: float) -> float:
        link = self.kinds[number].accelerator.host_link
        return float(memory_seconds.evaluate(M=on_host, W=link.bytes_per_second, u=1)) if on_host and link else 0.0

    def answer(self, runs: list[StageLayers], checked: list[Checked], nodes: list[str]) -> ServingTimes:
        """The times in which the pipeline answers its load. `nodes`: the node of each stage."""
        pipeline = Unlike(
            self,
            runs,
            [self._streamed(run.kind, stage.on_host) for run, stage in zip(runs, checked, strict=True)],
            nodes,
        )
        return times(pipeline, self._policy(runs, checked), self._load.load)  # type: ignore[arg-type]

    def _policy(self, runs: list[StageLayers], checked: list[Checked]) -> Policy:
        """The scheduling policy that all stages can follow."""
        number = runs[0].kind
        engine = serving_runtime(self.plans[number].engine, self.plans[number].engine_version)
        pool = min(stage_checked.pool_tokens for stage_checked in checked)
        stages = [replace(self.plans[run.kind], pipeline_parallel_size=len(runs)) for run in runs]
        rules = [policy(stage, self.kinds[run.kind].accelerator, None) for stage, run in zip(stages, runs, strict=True)]
        least = min(rules, key=lambda rule: (rule.max_num_seqs, rule.max_num_batched_tokens))
        return replace(least, pool_tokens=None if pool == inf or not engine.queues else int(pool))


class Probe:
    """Seconds of one stage's part of a round: every request decodes a token, and prompts come as often as answers
    end.
    """

    def __init__(self, clock: PassTime, wanted: ReplicaLoad, users: float):
        self.clock, load = clock, wanted.load
        half = 1 - load.spread / 2
        prompt, self.answer = load.input_tokens * half, max(load.output_tokens * half, 1)
        self.users = users
        self.context = prompt + self.answer / 2
        fresh = max(prompt - load.cached_tokens, 1)
        self.prompts = [stage.seconds for stage in clock.stages(fresh, fresh * (prompt - fresh / 2), 0, 0)]
        self._known: dict[int, list[float]] = {}

    def at(self, place: int, stages: int) -> float:
        """The seconds of a place in a pipeline of `stages` stages, each with an equal part of the requests."""
        if stages not in self._known:
            part = self.users / min(stages, max(self.users, 1.0))  # no stage has less than one request
            decode = self.clock.stages(0, 0, part, part * self.context)
            self._known[stages] = [
                float(stage.seconds + part / self.answer * prompt)
                for stage, prompt in zip(decode, self.prompts, strict=True)
            ]
        return self._known[stages][place]


class Unlike:
    """Passes of a pipeline of unlike stages: the clock of estimate.load, as PassTime is of equal ones."""

    tokens_each: Number = 1
    knows_prompts = True
    site = None  # a search is of estimates alone

    def __init__(self, width: Width, runs: list[StageLayers], streamed: list[float], nodes: list[str]):
        chunks = dealt_out(runs)
        self.runs, self.streamed, self.width, self.nodes = runs, streamed, width, nodes
        self.clocks = {run.kind: width.clock(run.kind, chunks) for run in runs}
        first = self.clocks[runs[0].kind]
        self.plan, self.engine, self.hidden = first.plan, first.engine, first.hidden_size

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        """See estimate.load.PassTime."""
        return self.spent(prompt_tokens, prompt_keys, requests, keys).seconds

    def spent(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Spent:
        """Parts of the requests go round: the slowest stage has them all one after the other."""
        p = len(self.runs)
        m = self.clocks[self.runs[0].kind].micro_batches(prompt_tokens, requests)
        decoding = requests / m.requests, keys / m.requests
        of = {
            kind: clock.stages(prompt_tokens / m.prompts, prompt_keys / m.prompts, *decoding)
            for kind, clock in self.clocks.items()
        }
        without = {kind: clock.stages(0, 0, *decoding) for kind, clock in self.clocks.items()}
        waits = [clock.spent(prompt_tokens, prompt_keys, requests, keys).engine for clock in self.clocks.values()]
        parts = [of[run.kind][place] for place, run in enumerate(self.runs)]
        total = Spent._make(sum(parts_of_stages) for parts_of_stages in zip(*parts, strict=True))
        size = (prompt_tokens / m.prompts + requests / m.requests) * self.hidden * ACTIVATION
        total = total._replace(
            exchanges=total.exchanges + sum((self._send(place, size) for place in range(p - 1)), 0.0)
        )
        alone = total.seconds + sum(self.streamed)
        busiest: Number = 0.0
        for place, (part, streamed) in enumerate(zip(parts, self.streamed, strict=True)):
            plain = without[self.runs[place].kind][place].seconds
            busiest = maximum(busiest, maximum(m.prompts * (part.seconds + streamed), m.requests * (plain + streamed)))
        round_trip = unlike_round_seconds.evaluate(tau=alone, tau_step=busiest, n_batches=1)
        engine: Number = 0.0
        for wait in waits:
            engine = maximum(engine, wait * 1.0)
        return total._replace(engine=engine + round_trip - total.seconds)

    def _send(self, place: int, size: Number) -> Number:
        """To the next stage: inside a node, or over the slower of what leads out of the two."""
        here, there = self.runs[place].kind, self.runs[place + 1].kind
        if self.nodes[place] == self.nodes[place + 1]:
            return self.clocks[here].network.send(size, self.width.width)
        ways = [self.width.network(kind).send(size, self.width.kinds[kind].each) for kind in (here, there)]
        return maximum(*ways)


def outward(kind: Kind) -> Network:
    """The links of a kind with what leads out of a node; where nobody says it, the inventory must."""
    if kind.node.outside is None:
        raise MissingDatum(no_link(kind))
    return _outward(ByIdentity(kind.cluster(max(len(kind.parts), 2), kind.each)))


def no_link(kind: Kind) -> str:
    """The error for a kind whose links the inventory does not give."""
    return Message(
        "no source gives the link between nodes of {kind}: say `outside` of {group} in the inventory, such "
        "as outside: 25GB/s.",
        kind=kind.name,
        group=kind.group,
    )


@lru_cache(maxsize=256)
def _outward(cluster: ByIdentity) -> Network:
    machine: Cluster = cluster.thing
    return Network(machine)


NAMES = ("context", "input_tokens", "output_tokens")


def usual(
    model: Model, options: ServingOptions, load: LoadOptions
) -> tuple[ServingOptions, LoadOptions, dict[str, Entry]]:
    """The options and the load with usual lengths where none were given, and these lengths as entries of the
    question.
    """
    check_load(load)
    if model.family == "tensors":
        raise needs_family(model, "a placement")
    if not any(branch.kind == "decoder" for branch in model.branches):
        raise MissingDatum(
            "{model} makes no tokens: there are no times of an answer, and no placement of it.", model=model.name
        )
    question = Question()
    nothing = all(length is None for length in (load.input_tokens, load.output_tokens, options.context))
    if nothing and (model.context or 2 * USUAL) >= 2 * USUAL:
        load = replace(load, input_tokens=USUAL, output_tokens=USUAL)
    if model.diffusion is not None:
        raise MissingDatum(
            "{model} denoises its answers: a placement of it over unlike machines is not estimated.", model=model.name
        )
    options = with_load(model, options, load)
    usual_lengths = lengths(model, options, load)
    if usual_lengths.context is not None:
        options = replace(options, context=usual_lengths.context)
    if options.context is not None:
        question.put("context", options.context, "default" if usual_lengths.context else "given", usual_lengths.why)
    for name in ("input_tokens", "output_tokens"):
        if (value := getattr(usual_lengths, name)) is not None:
            is_said = getattr(load, name) is not None and not nothing
            question.put(name, value, "given" if is_said else "default", "" if is_said else USUAL_SOURCE)
    if usual_lengths.input_tokens is not None:
        load = replace(load, input_tokens=usual_lengths.input_tokens, output_tokens=usual_lengths.output_tokens)
    return options, load, question.entries

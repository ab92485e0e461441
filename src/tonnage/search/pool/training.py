"""A training run as one pipeline over unlike accelerators: what layers take on each kind, and how long the whole
step is.
"""

from functools import cached_property, lru_cache, partial

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.schedule import Times, bubble
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.stage import StageMemory
from tonnage.estimate.step_time.step import StepTime
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, TonnageError
from tonnage.kernel.message import option_name
from tonnage.search.pool.parts import Kind, Pool
from tonnage.search.pool.pipelines.costs import Costs, StageLayers
from tonnage.search.pool.probe import Slopes, dealt_out, slopes, stages_to_probe
from tonnage.search.pool.serving import Checked, outward
from tonnage.spec import Cluster, TrainingPlan

SEQUENCES = 256  # of a step of a pool where nobody says how many
OF_THE_SEARCH = ("num_microbatches", "first_stage_layers", "last_stage_layers", "pipeline_layout")


class Group:
    """Pipelines whose stages are `tensor` x `data` accelerators each, of one kind; tensor ranks inside of a node."""

    def __init__(self, pool: Pool, model: Model, options: TrainingOptions, tensor: int, data: int):
        self.model, self.pool, self.tensor, self.width = model, pool, tensor, tensor * data
        for name in OF_THE_SEARCH:
            if getattr(options, name) is not None:
                raise InvalidInput(
                    "{name} is what is searched on a pool: leave it out. Got {value}.",
                    name=option_name(name),
                    value=getattr(options, name),
                )
        batch, micro = options.global_batch_size or SEQUENCES, options.micro_batch_size or 1
        self.microbatches = batch // (micro * data)
        self.options = replace(
            options,
            tensor_parallel_size=tensor,
            data_parallel_size=data,
            num_microbatches=self.microbatches,
            global_batch_size=None,
        )
        self.kinds: list[Kind] = []
        self.loose: dict[str, float] = {}  # bytes by which sums over layers had said too much of a kind
        self.plans: list[TrainingPlan] = []
        self.why: list[TonnageError] = []  # why kinds are left out
        self.unlinked: list[str] = []
        self.question = Question()
        if batch % (micro * data):
            self.why.append(
                InvalidPlan(
                    "{@global_batch_size} must be a multiple of {@micro_batch_size} x {@data_parallel_size} "
                    "= {micro}. Got {batch}.",
                    micro=micro * data,
                    batch=batch,
                )
            )
            return
        for kind in pool.kinds:
            if kind.each < tensor or self.room(kind) < 1:
                continue
            question, stages = Question(), min(2, model.num_layers)
            try:
                plan = training_plan(
                    model, self._cluster(kind, stages), replace(self.options, pipeline_parallel_size=stages), question
                )
                outward(kind)  # stages hand on to others
            except (InvalidPlan, MissingDatum) as error:
                self.why.append(error)
                continue
            if plan.virtual_pipeline_size > 1:
                raise InvalidInput(
                    "{@virtual_pipeline_size} must be 1 on unlike accelerators. Got {virtual_pipeline_size}.",
                    virtual_pipeline_size=plan.virtual_pipeline_size,
                )
            self.kinds.append(kind)
            self.plans.append(plan)
            self.question = question

    def room(self, kind: Kind) -> int:
        """Stages that the free accelerators of a kind make: whole parts of nodes, or several nodes each."""
        if self.width <= kind.each:
            return len(kind.parts) * (kind.each // self.width)
        return len(kind.parts) // (self.width // kind.each) if self.width % kind.each == 0 else 0

    def _cluster(self, kind: Kind, stages: int) -> Cluster:
        """A cluster for `stages` stages of one kind, one after the other."""
        if self.width <= kind.each:
            return kind.cluster(stages, self.width)
        return kind.cluster(stages * (self.width // kind.each), kind.each)

    def in_flight(self, place: int, stages: int) -> float:
        """Micro-batches whose activations a place of 1F1B keeps."""
        return min(stages - place, self.microbatches)

    # ---- costs of layers ----

    def costs(self, stages: int) -> list[Costs]:
        """The costs of each kind in a pipeline of `stages` stages."""
        return [self._costs(number, stages) for number in range(len(self.kinds))]

    def _costs(self, number: int, stages: int) -> Costs:
        kind, timed = self.kinds[number], self._seconds[number]
        still, in_flight = self._bytes[number]
        return Costs(
            seconds=timed.layers,
            fixed_seconds=timed.fixed + (self._between(number) if stages > 1 else 0.0),
            first_seconds=timed.first,
            last_seconds=timed.last,
            bytes=still.layers,
            kept=in_flight,
            fixed_bytes=still.fixed - self.loose.get(kind.parts[0], 0.0),
            first_bytes=still.first,
            last_bytes=still.last,
            usable=kind.free,
            most=self.room(kind),
        )

    @cached_property
    def _seconds(self) -> list[Slopes]:
        return [slopes(self.model, partial(self._spent, number)) for number in range(len(self.kinds))]

    def _spent(self, number: int, chunks: tuple[int, ...], place: int) -> float:
        return float(self._timed(number, chunks).stages[place].seconds)

    @cached_property
    def _bytes(self) -> list[tuple[Slopes, tuple[float, ...]]]:
        """Bytes with one micro-batch in flight, and the bytes of each layer that every further one keeps."""
        stage_bytes = []
        for number in range(len(self.kinds)):
            one = slopes(self.model, partial(self._held, number, microbatches=1))
            many = slopes(self.model, partial(self._held, number, microbatches=self.microbatches))
            further = min(stages_to_probe(self.model.num_layers), self.microbatches) - 1
            in_flight = tuple(
                (b - a) / further if further > 0 else 0.0 for a, b in zip(one.layers, many.layers, strict=True)
            )
            still = one._replace(layers=tuple(a - k for a, k in zip(one.layers, in_flight, strict=True)))
            stage_bytes.append((still, in_flight))
        return stage_bytes

    def _plan(self, number: int, chunks: tuple[int, ...], microbatches: int) -> TrainingPlan:
        return self.plans[number].with_fields(
            pipeline_parallel_size=len(chunks), chunk_layers=chunks, num_microbatches=microbatches
        )

    def _step(self, number: int, chunks: tuple[int, ...], microbatches: int) -> Step:
        kind = self.kinds[number]
        return Step(self.model, self._plan(number, chunks, microbatches), self._cluster(kind, len(chunks)))

    def _held(self, number: int, chunks: tuple[int, ...], place: int, microbatches: int) -> float:
        step = self._step(number, chunks, microbatches)
        return float(StageMemory(step, step.stages[place]).needed())

    @lru_cache(maxsize=256)  # noqa: B019 - lives as long as one question
    def _timed(self, number: int, chunks: tuple[int, ...]) -> StepTime:
        return StepTime(self._step(number, chunks, self.microbatches), rates())

    def _between(self, number: int) -> float:
        """Seconds of handing a micro-batch on, and its gradient back, over what leads out of a node."""
        outward(self.kinds[number])
        stages = stages_to_probe(self.model.num_layers)
        return float(self._timed(number, (self.model.num_layers, *[0] * (stages - 1))).between[0])

    # ---- what the estimator says of a pipeline ----

    def check(self, runs: list[StageLayers]) -> list[Checked]:
        """Every stage of it, estimated again as the stage that it is."""
        chunks = dealt_out(runs)
        checked = []
        for place, run in enumerate(runs):
            needed = self._held(run.kind, chunks, place, self.microbatches)
            seconds = float(self._timed(run.kind, chunks).stages[place].seconds)
            checked.append(Checked(needed=needed, usable=self.kinds[run.kind].free, on_host=0.0, seconds=seconds))
        return checked

    def step_seconds(self, runs: list[StageLayers]) -> float:
        """One step: the order of 1F1B through unlike stages, and the longest of what each kind has besides."""
        chunks = dealt_out(runs)
        of = {run.kind: self._timed(run.kind, chunks) for run in runs}
        plan = self._plan(runs[0].kind, chunks, self.microbatches)
        parts = [of[run.kind].stages[place] for place, run in enumerate(runs)]
        times = [stage.times for stage in parts]
        slowest = max(stage.seconds for stage in parts)
        between = max(stage.between[0] for stage in of.values())
        waits = (
            bubble(plan, [Times(stage.forward, stage.inputs, stage.weights) for stage in times]).value
            if len(runs) > 1
            else 0.0
        )
        through = plan.num_microbatches * (slowest + between) + waits
        seconds = 0.0
        for walk in of.values():
            own = plan.num_microbatches * walk.one.value + walk.bubble
            seconds = max(seconds, float(walk.seconds() + walk.factor * (through - own)))
        return seconds

    @property
    def tokens(self) -> int:
        """The number of tokens of one step."""
        return int(self._plan(0, (self.model.num_layers,), self.microbatches).tokens_per_step)

"""Rows of verb `serve`: memory of an engine and times of its requests, beside what was measured."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.serving.cache import RequestCache
from tonnage.estimate.serving.forward_peak import workspace_bytes
from tonnage.estimate.serving.memory import ServingMemory, ServingRank, serving_memory
from tonnage.estimate.serving.overhead import memory_share
from tonnage.estimate.serving.weights.storage import gguf_bytes
from tonnage.estimate.serving_time.rates import ServingRates, serving_rates
from tonnage.estimate.serving_time.times import ServingTimes, pool_tokens, serving_times
from tonnage.estimate.step.rank import stages
from tonnage.formulas import serving as g
from tonnage.formulas.passes import tokens_per_pass
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, shown
from tonnage.kernel.formula import Number
from tonnage.kernel.part_names import CUDA_GRAPHS, is_left_unused
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import precision
from tonnage.numerics.quantization import file_type
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan
from tonnage.validation.quantities import SECONDS
from tonnage.validation.rows import OUT_OF_MEMORY, Measured, Prediction, Row
from tonnage.validation.serving_question import OTHER, load_of, plan_of
from tonnage.validation.subjects import machine_of, model_of

OVERHEAD = "runtime overhead"
NODE_SIZE = 8  # accelerators of the nodes that sources speak of


class Cell(Struct, frozen=True, kw_only=True):
    """What rows share that say nothing new about each other: left out together where an error is to be honest."""

    model: str
    accelerator: str
    engine: str
    precision: str


class ServingRow:
    """A row as a question of `serve`; memory and times are worked out when they are asked for."""

    def __init__(self, row: Row):
        self.row = row
        machine = machine_of(row.question)
        self.cluster: Cluster = machine.cluster
        self.is_known_accelerator = machine.is_known
        self.model: Model = model_of(row.question)
        self.rounds: int | None = row.question.get("rounds")
        self.load: Load | None = load_of(row.question)
        self.plan: ServingPlan = plan_of(row.question, self.model, self.load)
        if self.load is not None and self.plan.media is not None:
            self.load = replace(self.load, input_tokens=self.plan.media.prompt_tokens)
        self.runtime: ServingRuntime | None = (
            None if self.engine == OTHER else serving_runtime(self.plan.engine, self.plan.engine_version)
        )

    @property
    def engine(self) -> str:
        return str(self.row.question.get("engine", "vllm"))

    @property
    def publication(self) -> str:
        """Which publication the row is of, by the name that statistics group by."""
        return self.row.labels.get("publication", "")

    @property
    def name(self) -> str:
        """The model, as statistics group by it."""
        return self.row.labels.get("model", self.model.name)

    @property
    def is_guessed(self) -> bool:
        """Whether something of it is nobody's statement."""
        return bool(self.row.guessed or self.row.from_measured)

    @property
    def precision(self) -> str:
        """What the weights are in, as statistics group by it."""
        return self.row.labels.get("precision", self.plan.weights or "")

    @property
    def cell(self) -> Cell:
        chip, engine = self.cluster.accelerator.name, self.plan.engine
        return Cell(model=self.name, accelerator=chip, engine=engine, precision=self.precision)

    @cached_property
    def memory(self) -> ServingMemory:
        return serving_memory(self.model, self.plan, self.cluster.accelerator)

    @cached_property
    def share(self) -> float | None:
        """The part of the accelerator that the engine takes, where it takes one."""
        if self.runtime is None:
            return None
        return memory_share(self.runtime, self.plan, self.model, self.cluster.accelerator)

    @cached_property
    def pool(self) -> Number | None:
        """Tokens of cache of the replica, as an answer caps them; None where the memory is not known or bounds nothing,
        and where it would not hold one request: the run was measured, so it did."""
        chip, load = self.cluster.accelerator, self.needed_load
        try:
            usable = chip.memory.usable_bytes - self.plan.reserve_bytes
            tokens = pool_tokens(self.model, self.plan, self.cluster, self.memory, usable, load)
        except TonnageError:
            return None
        return None if tokens is None or tokens < load.input_tokens + load.output_tokens else tokens

    @property
    def needed_load(self) -> Load:
        if self.load is None:
            raise MissingDatum("the row says no number of input tokens and of output tokens of a request")
        return self.load

    def times(self, with_rates: ServingRates | None = None) -> ServingTimes:
        """Times of one replica under this load. `with_rates`: others than those that ship."""
        load = self.needed_load
        if load.concurrency is None and load.requests_per_second is None and self.pool is None:
            raise MissingDatum(
                "how many requests ran at once is not said, and the memory that bounds them is not known"
            )
        return serving_times(
            self.model, self.plan, load, self.cluster, pool_tokens=self.pool, rounds=self.rounds, rates=with_rates
        )

    @cached_property
    def shipped_times(self) -> ServingTimes:
        return self.times()


def _is_outside(term: Term) -> bool:
    """Whether a log does not count this part as non-torch memory."""
    return term.name == CUDA_GRAPHS or is_left_unused(term.name)


def predict(row: Row) -> list[Prediction]:
    """A prediction for the row's figure, and one for each of those under `also`."""
    every = (row.measured, *row.also)
    try:
        question = ServingRow(row)
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [_predicted(measured, question) for measured in every]


def _predicted(measured: Measured, question: ServingRow) -> Prediction:
    if measured.skipped:
        return Prediction(skipped=measured.skipped)
    notes = question.row.notes
    try:
        if measured.quantity in MEMORY:
            if measured.value == OUT_OF_MEMORY:
                raise MissingDatum("whether it fits is not read from rows of this kind")
            figure_bytes = MEMORY[measured.quantity](question, question.memory)
            return Prediction(value=figure_bytes / measured.unit_size, notes=notes)
        if measured.quantity == ACCEPTED:
            return _accepted(question)
        figure = time_figure(measured, question)
        times = question.shipped_times
        return Prediction(value=figure.value(times), band=_band(figure, times, question.runtime), notes=notes)
    except TonnageError as error:
        return Prediction(skipped=str(error), notes=notes if measured.quantity in MEMORY else ())


ACCEPTED = "acceptance_length"


def _accepted(question: ServingRow) -> Prediction:
    """Tokens of a pass by published acceptance, and by the least and the most of it."""
    drafting = question.plan.drafting
    if not drafting.draft_tokens:
        raise MissingDatum("the row drafts no tokens")
    value, *band = (
        float(tokens_per_pass.evaluate(n_draft=drafting.draft_tokens, p_take=share))
        for share in (drafting.acceptance, drafting.acceptance_low, drafting.acceptance_high)
        if share is not None
    )
    return Prediction(value=value, band=(band[0], band[1]) if band else None, notes=question.row.notes)


Memory = Callable[[ServingRow, ServingMemory], float]


def _part(rank: ServingRank, name: str) -> float:
    return sum(float(child.value) for child in rank.memory.children if child.name == name)


def _overhead(rank: ServingRank) -> tuple[Term, ...]:
    return next((child.children for child in rank.memory.children if child.name == OVERHEAD), ())


def _weights(question: ServingRow, memory: ServingMemory) -> float:
    return max(_part(rank, "weights") for rank in memory.ranks)


def _activations(question: ServingRow, memory: ServingMemory) -> float:
    return _part(memory.ranks[0], "activations")  # a log's first line is of the first rank


def _outside_torch(question: ServingRow, memory: ServingMemory) -> float:
    return sum(float(term.value) for term in _overhead(memory.ranks[0]) if not _is_outside(term))


def _graphs(question: ServingRow, memory: ServingMemory) -> float:
    sizes = [term.value for child in _overhead(memory.ranks[0]) for _, term in child.walk() if term.name == CUDA_GRAPHS]
    return max((float(value) for value in sizes), default=0.0)


def _room(question: ServingRow, rank: ServingRank) -> float:
    """What is left for the cache."""
    if question.share is None:
        raise MissingDatum(f"how much {question.engine} takes for its cache is not described")
    if not question.is_known_accelerator:
        raise MissingDatum(
            "the row does not say on which accelerator it ran: how much memory there is decides the cache"
        )
    usable = question.cluster.accelerator.memory.usable_bytes
    room = g.cache_pool_bytes.evaluate(U=usable, M=rank.besides_cache.value)
    if not room:
        raise InvalidInput("nothing is left for a cache by this estimate")
    return float(room) + float(rank.in_flight)


def _requests(question: ServingRow, memory: ServingMemory) -> float:
    """Requests at full length that the pool holds, on the stage that holds fewest, as engines print it: each with all
    that it is admitted with (vLLM, get_max_concurrency_for_kv_cache_config).
    """
    return min(_room(question, rank) / _admitted(rank) for rank in memory.ranks if rank.per_request.value)


def _admitted(rank: ServingRank) -> float:
    return float(rank.per_request.value) + float(rank.in_flight)


def _tokens(question: ServingRow, memory: ServingMemory) -> float:
    return _requests(question, memory) * float(question.plan.context)


def _blocks(question: ServingRow, memory: ServingMemory) -> float:
    if question.runtime is None or question.runtime.paging is None:
        raise MissingDatum(f"{question.engine} has no blocks")
    return _tokens(question, memory) // question.runtime.paging.block_tokens


def _one_request(question: ServingRow, memory: ServingMemory) -> float:
    return max(map(_admitted, memory.ranks))


def _buffer(question: ServingRow, memory: ServingMemory) -> float:
    """The cache as the architecture has it, for every request in 16 bits unless the row says otherwise."""
    width = precision(question.plan.kv_cache or "bf16").bytes_per_weight
    cache = RequestCache(
        question.plan.context, question.plan.tensor_parallel_size, lambda one: one.bytes_per_element or width
    )
    return float(cache.kept(stages(question.model, 1)[0], "cache").value) * float(question.plan.concurrency)


def _tensor_bytes(question: ServingRow, memory: ServingMemory) -> float:
    """All tensors of a GGUF file."""
    if question.engine not in ("llama.cpp", "ollama") or not question.plan.weights:
        raise MissingDatum("question.weights names no type of GGUF file")
    return gguf_bytes(question.model, file_type(question.plan.weights), imatrix=False)


def _allocated(question: ServingRow, memory: ServingMemory) -> float:
    """What PyTorch's allocator gave out on all accelerators; those that take layers in turn each run a pass."""
    turns = question.cluster.size / float(question.plan.tensor_parallel_size * question.plan.pipeline_parallel_size)
    total = sum(float(rank.memory.value) - _part(rank, OVERHEAD) for rank in memory.ranks)
    return total + max(turns - 1, 0) * _activations(question, memory)


def _at_the_end(question: ServingRow, memory: ServingMemory) -> float:
    """What is allocated after the last token: weights, the cache, and a workspace on each accelerator."""
    held = sum(_part(rank, "weights") + _part(rank, "kv cache") for rank in memory.ranks)
    workspace = workspace_bytes(question.runtime, question.cluster.accelerator) if question.runtime else 0
    return held + question.cluster.size * workspace


def _process(question: ServingRow, memory: ServingMemory) -> float:
    """All bytes that nvidia-smi shows; an engine with a share takes the share."""
    if question.share is not None:
        return _room(question, memory.fullest) + float(memory.fullest.besides_cache.value) - _left(memory.fullest)
    return float(memory.fullest.memory.value)


def _left(rank: ServingRank) -> float:
    return sum(float(term.value) for term in _overhead(rank) if is_left_unused(term.name))


MEMORY: Mapping[str, Memory] = {
    "weights": _weights, "activations": _activations, "outside_torch": _outside_torch, "cuda_graphs": _graphs,
    "torch_peak": lambda asked, made: _weights(asked, made) + _activations(asked, made),
    "kv_cache": lambda asked, made: _room(asked, made.ranks[0]), "kv_cache_tokens": _tokens, "kv_cache_blocks": _blocks,
    "concurrency": _requests, "request_cache": _one_request, "kv_buffer": _buffer, "tensor_bytes": _tensor_bytes,
    "allocated": _allocated, "allocated_at_end": _at_the_end, "process": _process,
}  # fmt: skip
PARTS = ("weights", "activations", "outside_torch", "cuda_graphs")


def memory_factor(row: Row) -> float | None:
    """Measured over predicted bytes of all that a served model takes; None where the row does not say it."""
    try:
        pair = _whole(ServingRow(row))
    except TonnageError:
        return None
    if pair is None or min(pair) <= 0:
        return None
    measured, predicted = pair
    return measured / predicted


def part_pairs(row: Row) -> dict[str, tuple[float, float]]:
    """Measured and predicted bytes of each part of the memory of a served model that the row says; none where it cannot
    be asked.
    """
    try:
        pairs = _pairs(ServingRow(row))
    except TonnageError:
        return {}
    return {name: pairs[name] for name in (*PARTS, "kv_cache") if name in pairs}


def _whole(question: ServingRow) -> tuple[float, float] | None:
    """Measured and predicted bytes: what torch allocated or the process took; else the sum of the parts of an engine
    that takes a share, or the share less the cache that was left; None where the row says none of these."""
    pairs = _pairs(question)
    for name in ("process", "allocated", "allocated_at_end"):
        if name in pairs and (name != "process" or question.share is None):
            return pairs[name]
    if all(part in pairs for part in PARTS):
        return sum(pairs[part][0] for part in PARTS), sum(pairs[part][1] for part in PARTS)
    if "kv_cache" in pairs and question.is_known_accelerator:
        measured, predicted = pairs["kv_cache"]
        used = question.cluster.accelerator.memory.usable_bytes - _left(question.memory.ranks[0])
        return used - measured, used - predicted
    return None


def _pairs(question: ServingRow) -> dict[str, tuple[float, float]]:
    """Each figure of memory that the row has, measured and predicted."""
    row = question.row
    pairs: dict[str, tuple[float, float]] = {}
    for measured in (row.measured, *row.also):
        if measured.skipped or measured.quantity not in MEMORY or isinstance(measured.value, str):
            continue
        try:
            predicted = MEMORY[measured.quantity](question, question.memory)
        except TonnageError:
            continue
        pairs.setdefault(measured.quantity, (float(measured.value) * measured.unit_size, predicted))
    return pairs


Base = Literal["ttft_seconds", "tpot_seconds", "end_to_end_seconds", "output_tokens_per_second"]


class TimeFigure(Struct, frozen=True, kw_only=True):
    """A figure is `scale` x the quantity `of`, or, where it is a `rate`, `scale` / it."""

    of: Base
    scale: float
    rate: bool = False

    def value(self, times: ServingTimes) -> float:
        """The figure of a run with these times."""
        base = getattr(times, self.of)
        if base is None:
            raise MissingDatum("no source gives the accelerator's peak: how long a prompt takes is not known")
        return self.of_base(float(base))

    def of_base(self, base: float) -> float:
        """The figure where `of` is so much."""
        return self.scale / base if self.rate else self.scale * base

    def base(self, value: float) -> float:
        """What `of` is where the figure is so much."""
        return self.scale / value if self.rate else value / self.scale


def time_figure(measured: Measured, question: ServingRow) -> TimeFigure:
    """How a figure follows from the times of a run; MissingDatum for what does not."""
    if measured.skipped:
        raise MissingDatum(measured.skipped)
    load, size, unit = question.needed_load, question.cluster.size, measured.unit
    inside, out = float(load.input_tokens), float(load.output_tokens)
    match measured.quantity:
        case "ttft" | "tpot" | "end_to_end":
            return TimeFigure(of=f"{measured.quantity}_seconds", scale=1 / SECONDS[unit])  # type: ignore[arg-type]
        case "requests_per_second":
            return TimeFigure(of="output_tokens_per_second", scale=1 / out / _parts(unit, size))
        case "output_tokens_per_second":
            return TimeFigure(of="output_tokens_per_second", scale=1 / _parts(unit, size))
        case "input_tokens_per_second":  # every request brings one prompt, and `out` tokens in its time
            return TimeFigure(of="output_tokens_per_second", scale=inside / out / _parts(unit, size))
        case "request_tokens_per_second":
            return TimeFigure(of="end_to_end_seconds", scale=inside + out, rate=True)
        case "generation_tokens_per_second":
            return TimeFigure(of="end_to_end_seconds", scale=out, rate=True)
        case "prefill_tokens_per_second":
            return TimeFigure(of="ttft_seconds", scale=inside - float(load.cached_tokens), rate=True)
        case "decode_tokens_per_second":
            return TimeFigure(of="tpot_seconds", scale=1.0, rate=True)
    raise MissingDatum(f"{shown(measured.name)} is no figure of serving that is predicted")


def _parts(unit: str, size: int) -> float:
    """How many parts of the replica a figure is about one of."""
    if unit.endswith("/node"):
        return max(size / NODE_SIZE, 1.0)
    return float(size) if unit.endswith("/GPU") else 1.0


def _band(figure: TimeFigure, times: ServingTimes, runtime: ServingRuntime | None) -> tuple[float, float] | None:
    """Where 90 of 100 measurements of its kind lie."""
    band, base = serving_rates().bands.get(figure.of), getattr(times, figure.of)
    if band is None or base is None:
        return None
    shares: tuple[float, float] = (band.low, band.high)
    if runtime is not None and runtime.host_experts is not None:
        shares = runtime.host_experts.bands.get(figure.of, shares)
    low, high = sorted(figure.of_base(base * share) for share in shares)
    return low, high


def measured_quantities(question: ServingRow) -> dict[Base, float]:
    """What the row's figures say of seconds and rates, each once; empty where they say nothing that is predicted."""
    quantities: dict[Base, float] = {}
    for measured in (question.row.measured, *question.row.also):
        if (
            measured.skipped
            or measured.quantity in (*MEMORY, ACCEPTED)
            or isinstance(measured.value, str)
            or not measured.value
        ):
            continue
        figure = time_figure(measured, question)
        quantities.setdefault(figure.of, figure.base(float(measured.value)))
    return quantities

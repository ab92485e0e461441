"""Whole answers: the question as understood, the verdict, the breakdown, the next move. Every face shows this document."""

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.breakdown import Term
from tonnage.document import SCHEMA
from tonnage.errors import InvalidInput, InvalidPlan
from tonnage.estimate._advice import training_advice
from tonnage.estimate._best_models import BestModels
from tonnage.estimate._counted import Conventions
from tonnage.estimate._edge import edge_seconds
from tonnage.estimate._host import HostMemory, host_memory
from tonnage.estimate._load_time import load_figures
from tonnage.estimate._method import model_flops
from tonnage.estimate._notes import warn_of_training, warn_where_nothing_fits
from tonnage.estimate._question import Question
from tonnage.estimate._serving_advice import serving_advice
from tonnage.estimate._timed import timed, today
from tonnage.estimate.bands import training_band
from tonnage.estimate.bill import Bill, BillOptions, bill
from tonnage.estimate.checkpoint import checkpoint_bytes
from tonnage.estimate.disks import Disks, disks
from tonnage.estimate.load_options import LoadOptions, asked, lengths
from tonnage.estimate.pipeline_boxes import StepSeconds
from tonnage.estimate.plans import training_plan
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.served import served
from tonnage.estimate.serving import serving_memory
from tonnage.estimate.serving_answer import (
    serving_figures,
    serving_plan,
    serving_slopes,
    warn_of_blocks,
    warn_of_gguf,
    warn_of_host,
)
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.training import TrainingMemory, training_memory
from tonnage.estimate.training_options import TrainingOptions
from tonnage.formulas.serving import weights_share_bytes
from tonnage.spec import Cluster, TrainingPlan
from tonnage.units import human

# What `usable_bytes` starts from, and the fact that has its source.
USABLE = {
    "runtime": ("the total that the runtime gives programs", "runtime_mib"),
    "driver": ("the total that the driver reports", "reported_mib"),
    "nominal": ("the memory as sold", "nominal_gib"),
}

NO_OPTIONS, NO_RUN, NO_BILL = TrainingOptions(), RunOptions(), BillOptions()
NO_SERVING, NO_LOAD = ServingOptions(), LoadOptions()


class Answer(Struct, frozen=True, kw_only=True):
    """An answer of `train` or `serve`; `to_dict()` is the document, `status` the exit status of the command line.

    `unknown` says what nobody knows of this model; `needed_bytes` is then a lower bound. `pieces` are for pictures, not in the document.
    """

    verb: str
    question: Mapping[str, Any]
    needed_bytes: int
    usable_bytes: int
    memory: Term
    ranks: tuple[Term, ...]
    phases: tuple[Term, ...] = ()
    slopes: Mapping[str, float]
    flops: Term | None = None
    step_time: Term | None = None
    pieces: StepSeconds | None = None
    run: Mapping[str, Any] = {}
    traffic: Term | None = None
    bill: Bill | None = None
    disks: Disks | None = None
    checkpoint: Term | None = None
    host: HostMemory | None = None
    serving: Mapping[str, Any] = {}
    advice: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    unknown: str = ""
    band: tuple[int, int] | None = None

    @property
    def fits(self) -> bool | None:
        """True: with the high end of the error band. False: not even with its low end. None: in between (`tight`), or what is known
        fits and something is not known (`unknown`)."""
        low, high = self.band or (self.needed_bytes, self.needed_bytes)
        if low > self.usable_bytes:
            return False
        return None if self.unknown or high > self.usable_bytes else True

    @property
    def tight(self) -> bool:
        """Whether what is usable lies inside the error band."""
        return self.band is not None and self.band[0] <= self.usable_bytes < self.band[1]

    @property
    def status(self) -> int:
        """0 it fits, 2 tight, 3 it does not fit, 4 not enough is known."""
        return 2 if self.tight else {True: 0, False: 3, None: 4}[self.fits]

    def __repr__(self) -> str:
        verdict = {0: "fits", 2: "tight", 3: "does not fit", 4: "not enough is known"}[self.status]
        model, on = self.question["model"]["value"], self.question["on"]["value"]
        sizes = f"{human(self.needed_bytes, 'bytes')} of {human(self.usable_bytes, 'bytes')}"
        return f"<Answer {self.verb} {model} on {on}: {verdict}, needs {sizes}>"

    def to_dict(self) -> dict[str, Any]:
        """The whole document, every breakdown opened down to its formulas."""
        trees: dict[str, Any] = {"memory": self.memory.to_dict(), "ranks": [rank.to_dict() for rank in self.ranks]}
        if self.phases:
            trees["phases"] = [phase.to_dict() for phase in self.phases]
        return self._document(trees, Term.to_dict)

    @property
    def others(self) -> tuple[Term, ...]:
        """Every breakdown but that of memory."""
        bill = self.bill.all if self.bill else ()
        found = (
            self.step_time,
            self.flops,
            self.traffic,
            *self.run.values(),
            *(best.terms if isinstance(best := self.run.get("best_models"), BestModels) else ()),
            self.checkpoint,
            *bill,
            *(self.disks.all if self.disks else ()),
            *_terms(self.serving),
        )
        return tuple(term for term in found if isinstance(term, Term))

    @property
    def opened(self) -> tuple[Term, ...]:
        """Breakdowns that are shown beside that of memory: what the time of a first token and of the others goes to."""
        return tuple(term for name in ("ttft_seconds", "tpot_seconds") if (term := self.serving.get(name)) is not None)

    def summary(self) -> dict[str, Any]:
        """The document without its breakdowns, and without the cost of their texts."""
        return self._document({}, lambda term: {"name": term.name, "value": term.value, "unit": term.unit})

    def _document(self, trees: dict[str, Any], figure: Callable[[Term], dict[str, Any]]) -> dict[str, Any]:
        verdict = {
            "fits": self.fits,
            "needed_bytes": self.needed_bytes,
            "usable_bytes": self.usable_bytes,
            "band": list(self.band) if self.band else None,
        }
        document = {
            "schema": SCHEMA,
            "question": dict(self.question),
            "verdict": verdict,
            **trees,
            "slopes": dict(self.slopes),
        }
        for key in ("flops", "step_time", "traffic", "checkpoint"):
            if (term := getattr(self, key)) is not None:
                document[key] = figure(term)
        if self.run:
            document["run"] = {name: _shown(value, figure) for name, value in self.run.items()}
        if self.host is not None:
            document["host"] = {"memory": figure(self.host.memory), "capacity_bytes": self.host.capacity}
            if self.host.storage is not None:
                document["host"]["storage"] = figure(self.host.storage)
        if self.disks is not None:
            document["host"] |= {"cores": figure(self.disks.cores), "disk": figure(self.disks.disk)}
            document["storage"] = {"formats": [figure(term) for term in self.disks.formats]}
            document["storage"] |= {name: figure(term) for name, term in self.disks.terms.items()}
        if self.bill is not None:
            document |= self.bill.document(figure)
        if self.serving:
            document["serving"] = {name: _shown(value, figure) for name, value in self.serving.items()}
        document["advice"] = [dict(move) for move in self.advice]
        document["warnings"] = list(self.warnings)
        return document


def train(
    model: Model,
    cluster: Cluster,
    options: TrainingOptions = NO_OPTIONS,
    run: RunOptions = NO_RUN,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
) -> Answer:
    """Does this training run fit, where does its memory go, and how long does it take?"""
    if model.family == "tensors":
        raise needs_family(model, "the memory of training")
    if run.stray:
        raise InvalidInput(
            f"{run.stray} is of a whole run, which needs a length: give tokens, epochs with dataset_tokens, max_steps, or a budget."
        )
    question = _about(model, cluster)
    plan = training_plan(model, cluster, options, question)
    usable = _usable(cluster, reserve_bytes, question)
    made = training_memory(model, plan, cluster)
    fullest = made.fullest
    _warn_of_towers(model, question)
    warn_of_training(model, plan, made, question)
    host = host_memory(model, plan, cluster, made)
    _warn_of_host(host, cluster, question)
    band = training_band(plan, cluster)
    if band:
        question.put("error_band", f"x {band.low:.3g} to x {band.high:.3g}", "measurements", band.what)
    advice = training_advice(model, cluster, options, plan, made.memory.value, usable)
    low = band.around(made.memory.value)[0] if band else made.memory.value
    if low > usable and not any(move["fits"] for move in advice):
        warn_where_nothing_fits(model, plan, cluster, usable, question)
    flops, checkpoint = model_flops(model, plan, made.fullest.stage.step), checkpoint_bytes(model, plan)
    timing, figures = timed(model, plan, cluster, made, flops, checkpoint, run, money, usable, question)
    lasts = figures.get("seconds", timing.term if timing else None)
    billed = None
    if lasts is not None:
        of = "the run" if "seconds" in figures else "a step"
        tokens = figures["tokens"].value if "tokens" in figures else plan.global_batch_size * plan.sequence_length
        billed = bill(cluster, lasts, of, money, question, price=run.price_per_accelerator_hour, today=today(),
                      edge_time=lambda device: edge_seconds(model, device, options, tokens))  # fmt: skip
    room = disks(model, plan, cluster, checkpoint, run, money, question, figures)
    return Answer(
        verb="train", question=question.to_dict(), needed_bytes=ceil(made.memory.value), usable_bytes=usable,
        memory=fullest.peak.named(f"memory at the peak: {fullest.peak.name}{_where(fullest.rank, plan)}"),
        ranks=tuple(_stage_term(made, rank, plan) for rank in range(len(made.ranks))), phases=fullest.phases,
        slopes=_training_slopes(model, plan, cluster, made), flops=flops, run=figures, bill=billed, disks=room,
        step_time=timing.term if timing else None, pieces=timing.pieces if timing else None,
        traffic=timing.traffic if timing and cluster.size > 1 else None,
        checkpoint=checkpoint, host=host,
        advice=tuple(advice), warnings=tuple(question.warnings),
        band=band.around(made.memory.value) if band else None,
    )  # fmt: skip


def _terms(figures: Mapping[str, Any]) -> Iterator[Term]:
    """Every figure, those of blocks inside it too."""
    for value in figures.values():
        if isinstance(value, Mapping):
            yield from _terms(value)
        elif isinstance(value, Term):
            yield value


def _shown(value: Any, figure: Callable[[Term], dict[str, Any]]) -> Any:
    if isinstance(value, Conventions | BestModels):
        return value.document(figure)
    if isinstance(value, Mapping):
        return {name: _shown(each, figure) for name, each in value.items()}
    return figure(value) if isinstance(value, Term) else value


def serve(
    model: Model,
    cluster: Cluster,
    options: ServingOptions = NO_SERVING,
    load: LoadOptions = NO_LOAD,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
) -> Answer:
    """Does this model serve these requests, how many would fit, how fast is each answered, and at what price?"""
    if model.family == "tensors":
        return _weights_alone(model, cluster, options, reserve_bytes)
    question = _about(model, cluster)
    options = replace(options, reserve_bytes=reserve_bytes)
    said = lengths(model, options, load)
    plan = serving_plan(
        model, cluster, options if said.context is None else replace(options, context=said.context), question
    )
    if said.context is not None:
        question.put("context", said.context, "default", said.why)
    wanted = asked(plan, options, load, said, question)
    usable = _usable(cluster, reserve_bytes, question)
    made = serving_memory(model, plan, cluster.accelerator)
    question.put(
        "weights",
        made.stored.name,
        "given" if plan.weights else made.stored.origin,
        "" if plan.weights else made.stored.source,
    )
    warn_of_blocks(plan.engine, made, question)
    _warn_of_towers(model, question)
    warn_of_gguf(plan, made, question)
    warn_of_host(cluster, made, question)
    stages = len(made.ranks)
    figures, billed = served(model, plan, cluster, made, usable, wanted, load, money, question)
    return Answer(
        verb="serve", question=question.to_dict(), needed_bytes=ceil(made.memory.value), usable_bytes=usable,
        memory=made.memory.named("memory of one rank"),
        ranks=tuple(rank.memory.named(f"pipeline stage {rank.rank} of {stages}") for rank in made.ranks),
        slopes=serving_slopes(made), bill=billed,
        serving={**serving_figures(model, made, plan, usable), **load_figures(made, plan, cluster, options.storage_read_bandwidth), **figures},
        advice=tuple(serving_advice(model, cluster, options, plan, made.memory.value, usable)), warnings=tuple(question.warnings),
    )  # fmt: skip


def _weights_alone(model: Model, cluster: Cluster, options: ServingOptions, reserve_bytes: int) -> Answer:
    """A model that is known by its tensors alone: exact weights, and no way to tell its cache."""
    question = _about(model, cluster)
    tensor = question.take(
        "tensor_parallel_size", options.tensor_parallel_size, cluster.size, "cluster", "all accelerators"
    )
    if not 1 <= tensor <= cluster.size:
        raise InvalidPlan(
            f"tensor_parallel_size must be from 1 to the cluster's {cluster.size} accelerators. Got {tensor}."
        )
    size = model.tensors.total_bytes if model.tensors else 0
    source = "the headers of the model's files"
    memory = Term.sum("weights alone", Term.of("weights", weights_share_bytes, source=source, M=size, t=tensor))
    unknown = f"{model.architecture or model.name} is no known architecture: its cache and its activations are not in this figure."
    question.warn(unknown)
    return Answer(
        verb="serve", question=question.to_dict(), needed_bytes=ceil(memory.value), usable_bytes=_usable(cluster, reserve_bytes, question),
        memory=memory, ranks=(memory,), slopes={"bytes_per_sequence": 0, "bytes_per_token": 0}, warnings=tuple(question.warnings), unknown=unknown,
    )  # fmt: skip


def _warn_of_towers(model: Model, question: Question) -> None:
    towers = [branch.name for branch in model.branches if branch.kind in ("vision", "audio")]
    if towers:
        question.warn(f"{' and '.join(towers)}: weights are counted, activations of images and sounds are not.")


def _warn_of_host(host: HostMemory, cluster: Cluster, question: Question) -> None:
    """Host memory decides nothing, but a run ends without it all the same."""
    if host.capacity is None or host.memory.value <= host.capacity or cluster.node is None:
        return
    phase = max(host.memory.children, key=lambda each: each.value)
    question.warn(
        f"host memory does not suffice {phase.name}: a node needs {human(host.memory.value, 'bytes')}, and {cluster.node.name} has "
        f"{human(host.capacity, 'bytes')}."
    )


def _about(model: Model, cluster: Cluster) -> Question:
    question = Question()
    question.put("model", model.name, "given", model.source)
    question.put(
        "parameters", model.num_parameters(), "model", f"family {model.family}, {model.architecture}".rstrip(", ")
    )
    question.put("on", cluster.name, "given")
    question.put("accelerators", cluster.size, "cluster")
    for note in (*([cluster.note] if cluster.note else ()), *model.notes):
        question.warn(note)
    if model.assumed:
        shown = ", ".join(f"{key}={value!r}" for key, value in list(model.assumed.items())[:8])
        question.warn(f"the config leaves these to the family's defaults: {shown}.")
    return question


def _usable(cluster: Cluster, reserve_bytes: int, question: Question) -> int:
    chip, memory = cluster.accelerator, cluster.accelerator.memory
    what, key = USABLE[memory.usable_from]
    if memory.system_bytes:
        what, key = f"{what}, less what the system keeps", "system_gib"
    fact = chip.fact(f"memory.{key}")
    why = f"{what}; {fact.source}" if fact else what
    question.put("usable_memory", memory.usable_from, "catalogue", why)
    question.put("reserve_bytes", reserve_bytes, "given" if reserve_bytes else "default")
    if memory.usable_from == "driver":
        question.warn(
            f"no source says how much memory the runtime of {chip.name} gives programs: what its driver reports is used, "
            "of which a program can get a little less."
        )
    elif memory.usable_from == "nominal" and not memory.system_bytes:
        question.warn(
            f"no source says what the driver of {chip.name} reports or its runtime gives programs: its nominal memory is used, "
            "of which a program gets less."
        )
    if not 0 <= reserve_bytes < memory.usable_bytes:
        raise InvalidInput(
            f"reserve must leave some of the {human(memory.usable_bytes, 'bytes')} that {cluster.accelerator.name} has. "
            f"Got {human(reserve_bytes, 'bytes')}."
        )
    return memory.usable_bytes - reserve_bytes


def _where(rank: int, plan: TrainingPlan) -> str:
    """The pipeline stage that decides: of several alike the first."""
    stages = plan.pipeline_parallel_size
    return f", on pipeline stage {rank} of {stages}" if stages > 1 else ""


def _stage_term(made: TrainingMemory, rank: int, plan: TrainingPlan) -> Term:
    return made.ranks[rank].peak.named(f"pipeline stage {rank} of {plan.pipeline_parallel_size}")


def _training_slopes(model: Model, plan: TrainingPlan, cluster: Cluster, made: TrainingMemory) -> dict[str, float]:
    """Documents C5 and C6: what one more sequence in the micro-batch, and one more token in each, add."""
    wider = training_memory(model, replace(plan, micro_batch_size=plan.micro_batch_size + 1), cluster)
    longer = training_memory(model, replace(plan, sequence_length=plan.sequence_length + 1), cluster)
    now = made.memory.value
    return {"bytes_per_sequence": wider.memory.value - now, "bytes_per_token": longer.memory.value - now}

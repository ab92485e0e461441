"""The whole answer of `serve`: the question as understood, the verdict, the breakdown, the next move."""

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.advice import Advice, Chosen
from tonnage.estimate.advice.chosen import beside_chosen, mark_chosen
from tonnage.estimate.advice.moves import Suggestions
from tonnage.estimate.advice.serving import Unfit, chosen_change, serving_advice
from tonnage.estimate.advice.serving_speed import Case, speed_moves
from tonnage.estimate.answer.form import Answer, about, put_band, unserved, usable_bytes
from tonnage.estimate.answer.served import Served, served
from tonnage.estimate.answer.serving_notes import (
    host_of,
    warn_of_blocks,
    warn_of_denoising,
    warn_of_emulation,
    warn_of_gguf,
    warn_of_kernels,
    warn_of_media,
    warn_of_slow_experts,
)
from tonnage.estimate.bands import serving_band, serving_lowest
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.media import with_load
from tonnage.estimate.load.options import LoadOptions, ReplicaLoad, asked, lengths, media_tokens
from tonnage.estimate.money.bill import BillOptions, Rent, rent_of_moves
from tonnage.estimate.options.run_options import rate
from tonnage.estimate.serving.limits import made_for, refused_by
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_figures, serving_plan, serving_slopes
from tonnage.estimate.serving.weights.storage import storage
from tonnage.estimate.serving_time.load_time import load_figures
from tonnage.estimate.serving_time.speed import Speed
from tonnage.formulas.serving import weights_share_bytes
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.models.purpose import purpose
from tonnage.spec import Cluster, ServingPlan

if TYPE_CHECKING:
    from tonnage.estimate.serving_time.asked import Encoded

NO_SERVING, NO_LOAD, NO_BILL = ServingOptions(), LoadOptions(), BillOptions()


def serve(
    model: Model,
    cluster: Cluster,
    options: ServingOptions = NO_SERVING,
    load: LoadOptions = NO_LOAD,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
    advise: bool = True,
    choose: bool | None = None,
) -> Answer:
    """Does this model serve these requests, how many would fit, how fast is each answered, and at what price?

    `advise`: with the next best moves, each of which is estimated again. `choose`: as of `train`.
    """
    if model.family == "tensors":
        return _weights_alone(model, cluster, options, reserve_bytes)
    options = replace(options, reserve_bytes=reserve_bytes)
    if purpose(model) != "generate" or load.documents is not None:
        from tonnage.estimate.serving_time.asked import check_purpose, encoded_options

        check_purpose(model, options, load)
        options = encoded_options(model, cluster, options, load)
    else:
        options = with_load(model, options, load)
    question, plan, wanted, usable, of_documents = _planned(model, cluster, options, load, advise, choose)
    memory = serving_memory(model, plan, cluster.accelerator)
    asking = _Asking(model, cluster, options, load, plan, memory, usable, wanted, money, of_documents)
    chosen = asking.chosen() if choose else None
    if chosen is not None:
        options = replace(options, **chosen.change)
        question, plan, wanted, usable, of_documents = _planned(model, cluster, options, load, advise, choose)
        mark_chosen(question, chosen, usable)
        memory = serving_memory(model, plan, cluster.accelerator)
        asking = _Asking(model, cluster, options, load, plan, memory, usable, wanted, money, of_documents)
    _note_weights(model, plan, memory, question)
    warn_of_blocks(plan, memory, question)
    warn_of_media(model, plan, question)
    warn_of_denoising(plan, question)
    warn_of_gguf(model, plan, memory, question)
    warn_of_emulation(plan, cluster, memory, question)
    warn_of_kernels(plan, cluster, question)
    warn_of_slow_experts(model, plan, memory, question)
    host = host_of(memory, plan, cluster, options.host_memory, question)
    band = _band_of_served(plan, cluster, memory, question)
    high = band[1] if band else ceil(memory.memory.value)
    stages, advice = len(memory.ranks), Suggestions(moves=[])
    if asking.encoded is not None:
        from tonnage.estimate.answer.encoded import served_encoded

        service = served_encoded(model, plan, cluster, asking.encoded, load, money, question)
    else:
        service = served(model, plan, cluster, memory, usable, wanted, load, money, question)
    if advise and (host is None or host.suffices):  # no move changes what a host lacks
        advice = asking.moves(service, high, question)
        if chosen is not None:
            advice = replace(advice, moves=list(beside_chosen(advice.moves, chosen, ServingOptions)))
    return Answer(
        verb="serve",
        question=question.entries,
        chosen=chosen,
        needed_bytes=ceil(memory.memory.value),
        usable_bytes=usable,
        memory=memory.memory.named("memory of one rank"),
        ranks=tuple(
            rank.memory.named(Message("pipeline stage {rank} of {stages}", rank=rank.rank, stages=stages))
            for rank in memory.ranks
        ),
        slopes=serving_slopes(memory),
        bill=service.bill,
        serving=replace(
            service.figures,
            **serving_figures(model, memory, plan, cluster, usable, wanted.prefill_replicas),
            **load_figures(memory, plan, cluster, rate("storage_read_bandwidth", options.storage_read_bandwidth)),
        ),
        advice=tuple(advice.moves),
        nearest_miss=advice.nearest,
        warnings=tuple(question.warnings),
        band=band,
        host=host,
        made_for=made_for(model, plan),
        refused_by=refused_by(model, plan),
    )


def _planned(
    model: Model, cluster: Cluster, options: ServingOptions, load: LoadOptions, advise: bool, choose: bool | None
) -> tuple[Question, ServingPlan, ReplicaLoad, int, "Encoded | None"]:
    """The question as understood, the plan, the load of a replica, the usable bytes of an accelerator, and what is
    asked of a model that writes no text.
    """
    question = about(model, cluster, advise, choose)
    if purpose(model) != "generate":
        from tonnage.estimate.serving_time.asked import encoded

        plan = serving_plan(model, cluster, options, question)
        asked_of, plan = encoded(model, cluster, plan, options, load, question)
        return question, plan, asked_of.load, usable_bytes(cluster, options.reserve_bytes, question), asked_of
    stated = lengths(model, options, load)
    within = options if stated.context is None else replace(options, context=stated.context)
    plan = serving_plan(model, cluster, within, question)
    if stated.context is not None:
        question.put("context", stated.context, "default", stated.why)
    wanted = asked(plan, options, load, stated, question)
    return question, plan, wanted, usable_bytes(cluster, options.reserve_bytes, question), None


class _Asking(Struct, frozen=True):
    """What suggestions change, and are compared with."""

    model: Model
    cluster: Cluster
    options: ServingOptions
    load: LoadOptions
    plan: ServingPlan
    made: ServingMemory
    usable: int
    wanted: ReplicaLoad
    money: BillOptions
    encoded: "Encoded | None"

    def moves(self, service: Served, high: int, question: Question) -> Suggestions:
        """What makes it fit, where the high end of its memory does not; else what makes it better."""
        if high > self.usable:
            found = serving_advice(self._unfit(service, high))
            return found if self.encoded is None else replace(found, moves=[_bare(move) for move in found.moves])
        if service.speed is None:
            return Suggestions(moves=[])
        return Suggestions(moves=speed_moves(self._case(service, service.speed, question)))

    def chosen(self) -> Chosen | None:
        """What is chosen of what was not given, where it does not fit without it."""
        if serving_lowest(self.plan.engine, self.cluster.accelerator, self.made.memory.value) <= self.usable:
            return None
        return chosen_change(self._unfit(None, ceil(self.made.memory.value)))

    @property
    def _rent(self) -> Callable[[Cluster], Rent | None]:
        return rent_of_moves(self.cluster, self.money, self.load.price_per_accelerator_hour)

    def _unfit(self, service: Served | None, high: int) -> Unfit:
        return Unfit(
            model=self.model,
            cluster=self.cluster,
            options=self.options,
            plan=self.plan,
            needed=ceil(self.made.memory.value),
            high=high,
            usable=self.usable,
            load=self.load,
            wanted=self.wanted,
            least_context=(self.load.input_tokens or 0) + media_tokens(self.options) + (self.load.output_tokens or 0),
            rent=self._rent,
            now=service.speed.all_tokens_per_second if service and service.speed else None,
        )

    def _case(self, service: Served, speed: Speed, question: Question) -> Case:
        needed = service.figures.accelerators_needed
        return Case(
            model=self.model,
            cluster=self.cluster,
            options=self.options,
            load=self.load,
            plan=self.plan,
            made=self.made,
            usable=self.usable,
            wanted=self.wanted,
            speed=speed,
            an_hour=service.bill.cost.value if service.bill and service.bill.cost else None,
            rent=self._rent,
            is_late=bool(unserved(service.figures, question.entries)),
            accelerators_needed=int(needed.value) if needed else 0,
        )


def _bare(move: Advice) -> Advice:
    """A suggestion without times of answers, which the model does not give."""
    return replace(
        move,
        ttft_seconds=UNSET,
        tpot_seconds=UNSET,
        tokens_per_second=UNSET,
        usd_per_million_tokens=None,
        time_change=None,
        usd_change=None,
    )


def _note_weights(model: Model, plan: ServingPlan, memory: ServingMemory, question: Question) -> None:
    """The precision of the weights as they are stored, and who chose it."""
    stored = storage(model, plan.weights)
    if plan.weights:
        held = (
            ""
            if memory.stored.name == stored.name
            else Message("{engine} holds them in {stored}", engine=plan.engine, stored=memory.stored.name)
        )
        question.put("weights", stored.name, "given", held)
    elif plan.weights is None and stored.name == "fp32" and memory.stored.name == "fp16":
        question.put("weights", "fp16", "runtime", Message("{engine} halves 32-bit checkpoints", engine=plan.engine))
    else:
        question.put("weights", stored.name, stored.origin, stored.source)


def _band_of_served(
    plan: ServingPlan, cluster: Cluster, memory: ServingMemory, question: Question
) -> tuple[int, int] | None:
    """The error band in bytes, which the question names; None where no measurements are of this engine and hardware
    family.
    """
    band = put_band(serving_band(plan.engine, cluster.accelerator), question)
    return band.around(memory.memory.value) if band else None


def _weights_alone(model: Model, cluster: Cluster, options: ServingOptions, reserve_bytes: int) -> Answer:
    """A model that is known by its tensors alone: exact weights, and no way to tell its cache."""
    question = about(model, cluster)
    tensor = question.take(
        "tensor_parallel_size", options.tensor_parallel_size, cluster.size, "cluster", "all accelerators"
    )
    if not 1 <= tensor <= cluster.size:
        raise InvalidPlan(
            "{@tensor_parallel_size} must be from 1 to the cluster's {size} accelerators. Got "
            "{tensor}. Nearest: {tensor2}.",
            size=cluster.size,
            tensor=tensor,
            tensor2=min(max(tensor, 1), cluster.size),
        )
    size = model.tensors.total_bytes if model.tensors else 0
    source = "the headers of the model's files"
    memory = Term.sum("weights alone", Term.of("weights", weights_share_bytes, source=source, M=size, t=tensor))
    unknown = Message(
        "{architecture} is no known architecture: its cache and its activations are not in this figure.",
        architecture=model.architecture or model.name,
    )
    question.warn(unknown)
    return Answer(
        verb="serve",
        question=question.entries,
        needed_bytes=ceil(memory.value),
        usable_bytes=usable_bytes(cluster, reserve_bytes, question),
        memory=memory,
        ranks=(memory,),
        warnings=tuple(question.warnings),
        unknown=unknown,
    )

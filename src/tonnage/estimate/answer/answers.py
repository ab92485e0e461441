"""Whole answers: the question as understood, the verdict, the breakdown, the next move. Every face shows this
document.
"""

from math import ceil

from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.estimate.advice.edge import edge_seconds
from tonnage.estimate.advice.moves import Found
from tonnage.estimate.advice.serving import Unfit, serving_advice
from tonnage.estimate.advice.serving_speed import Case, speed_moves
from tonnage.estimate.advice.training import training_advice
from tonnage.estimate.answer.form import Answer
from tonnage.estimate.answer.notes import warn_of_training, warn_where_nothing_fits
from tonnage.estimate.answer.served import served
from tonnage.estimate.answer.serving_notes import warn_of_blocks, warn_of_emulation, warn_of_gguf, warn_of_host
from tonnage.estimate.answer.timed import timed, today
from tonnage.estimate.answer.unserved import unserved
from tonnage.estimate.bands import serving_band, training_band
from tonnage.estimate.host.memory import HostMemory, host_memory
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions, asked, lengths
from tonnage.estimate.memory import TrainingMemory, training_memory
from tonnage.estimate.money.bill import BillOptions, bill, rent_of_moves
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions, rate
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.checkpoint import checkpoint_bytes, saved_bytes
from tonnage.estimate.run.disks import disks
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_figures, serving_plan, serving_slopes
from tonnage.estimate.serving.weights.storage import storage
from tonnage.estimate.serving_time.load_time import load_figures
from tonnage.estimate.step.method import model_flops
from tonnage.formulas.serving import weights_share_bytes
from tonnage.kernel.errors import InvalidInput, InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, joined
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.spec import Cluster, ServingPlan, TrainingPlan

# What `usable_bytes` starts from, and the fact that has its source.
USABLE = {
    "runtime": ("the total that the runtime gives programs", "runtime_mib"),
    "driver": ("the total that the driver reports", "reported_mib"),
    "nominal": ("the memory as sold", "nominal_gib"),
}

NO_OPTIONS, NO_RUN, NO_BILL = TrainingOptions(), RunOptions(), BillOptions()
NO_SERVING, NO_LOAD = ServingOptions(), LoadOptions()


def train(
    model: Model,
    cluster: Cluster,
    options: TrainingOptions = NO_OPTIONS,
    run: RunOptions = NO_RUN,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
    advise: bool = True,
) -> Answer:
    """Does this training run fit, where does its memory go, and how long does it take?

    `advise`: with the next best moves and the slopes, for which other plans are estimated too.
    """
    if model.family == "tensors":
        raise needs_family(model, "the memory of training")
    _check_run(run)
    question = _about(model, cluster, advise)
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
        question.put(
            "error_band",
            Message("x {low:.3g} to x {high:.3g}", low=band.low, high=band.high),
            "measurements",
            band.what,
        )
    price = run.price_per_accelerator_hour
    advice = Found(moves=[])
    if advise:
        advice = training_advice(model, cluster, options, plan, made, usable, rent_of_moves(cluster, money, price))
    low = band.around(made.memory.value)[0] if band else made.memory.value
    if advise and low > usable and not advice.moves:
        warn_where_nothing_fits(model, plan, cluster, usable, question)
    flops, saved = model_flops(model, plan, made.step), saved_bytes(model, plan)
    timing, figures = timed(model, plan, cluster, made, flops, saved, run, money, usable, question)
    lasts = figures.get("seconds", timing.term if timing else None)
    billed = None
    if lasts is not None:
        of = "the run" if "seconds" in figures else "a step"
        tokens = figures["tokens"].value if "tokens" in figures else plan.global_batch_size * plan.sequence_length
        billed = bill(
            cluster,
            lasts,
            of,
            money,
            question,
            price=run.price_per_accelerator_hour,
            today=today(),
            edge_time=lambda device: edge_seconds(model, device, options, tokens),
        )
    room = disks(model, plan, cluster, saved, run, money, question, figures)
    return Answer(
        verb="train",
        question=question.to_dict(),
        needed_bytes=ceil(made.memory.value),
        usable_bytes=usable,
        memory=fullest.peak.named(
            Message("memory at the peak: {peak}{where}", peak=fullest.peak.name, where=_where(fullest.rank, plan))
        ),
        ranks=tuple(_stage_term(made, rank, plan) for rank in range(len(made.ranks))),
        phases=fullest.phases,
        slopes=_training_slopes(model, plan, cluster, made) if advise else {},
        flops=flops,
        run=figures,
        bill=billed,
        disks=room,
        step_time=timing.term if timing else None,
        pieces=timing.pieces if timing else None,
        traffic=timing.traffic if timing and cluster.size > 1 else None,
        checkpoint=checkpoint_bytes(model, plan),
        host=host,
        advice=tuple(advice.moves),
        nearest_miss=advice.nearest,
        warnings=tuple(question.warnings),
        band=band.around(made.memory.value) if band else None,
    )


def _check_run(run: RunOptions) -> None:
    """What is said of a whole run needs its length."""
    if run.stray:
        raise NotApplicable(
            (
                Message(
                    "{stray} is of a whole run, which needs a length: give tokens, epochs with "
                    "dataset_tokens, max_steps, or a budget.",
                    stray=run.stray,
                )
            ),
            run.stray,
            ("tokens", "epochs", "max_steps", "budget", "budget_accelerator_hours"),
        )


def serve(
    model: Model,
    cluster: Cluster,
    options: ServingOptions = NO_SERVING,
    load: LoadOptions = NO_LOAD,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
    advise: bool = True,
) -> Answer:
    """Does this model serve these requests, how many would fit, how fast is each answered, and at what price?

    `advise`: with the next best moves, each of which is estimated again.
    """
    if model.family == "tensors":
        return _weights_alone(model, cluster, options, reserve_bytes)
    question = _about(model, cluster, advise)
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
    _note_weights(model, plan, made, question)
    warn_of_blocks(plan.engine, made, question)
    _warn_of_towers(model, question)
    warn_of_gguf(model, plan, made, question)
    warn_of_emulation(plan, cluster, made, question)
    warn_of_host(cluster, made, question)
    band = _band_of_served(plan, cluster, made, question)
    high = band[1] if band else ceil(made.memory.value)
    stages, advice = len(made.ranks), Found(moves=[])
    found = served(model, plan, cluster, made, usable, wanted, load, money, question)
    if advise and high > usable:
        advice = serving_advice(
            Unfit(
                model=model,
                cluster=cluster,
                options=options,
                plan=plan,
                needed=ceil(made.memory.value),
                high=high,
                usable=usable,
                load=load,
                wanted=wanted,
                least_context=(load.input_tokens or 0) + (load.output_tokens or 0),
                rent=rent_of_moves(cluster, money, load.price_per_accelerator_hour),
                now=found.speed.all_tokens_per_second if found.speed else None,
            )
        )
    elif advise and found.speed is not None:
        an_hour = found.bill.cost.value if found.bill and found.bill.cost else None
        needed = found.figures.get("accelerators_needed")
        advice = Found(
            moves=speed_moves(
                Case(
                    model=model,
                    cluster=cluster,
                    options=options,
                    load=load,
                    plan=plan,
                    made=made,
                    usable=usable,
                    wanted=wanted,
                    speed=found.speed,
                    an_hour=an_hour,
                    rent=rent_of_moves(cluster, money, load.price_per_accelerator_hour),
                    is_late=bool(unserved(found.figures, question.to_dict())),
                    accelerators_needed=int(needed.value) if needed else 0,
                )
            )
        )
    return Answer(
        verb="serve",
        question=question.to_dict(),
        needed_bytes=ceil(made.memory.value),
        usable_bytes=usable,
        memory=made.memory.named("memory of one rank"),
        ranks=tuple(
            rank.memory.named(Message("pipeline stage {rank} of {stages}", rank=rank.rank, stages=stages))
            for rank in made.ranks
        ),
        slopes=serving_slopes(made),
        bill=found.bill,
        serving={
            **serving_figures(model, made, plan, cluster, usable),
            **load_figures(made, plan, cluster, rate("storage_read_bandwidth", options.storage_read_bandwidth)),
            **found.figures,
        },
        advice=tuple(advice.moves),
        nearest_miss=advice.nearest,
        warnings=tuple(question.warnings),
        band=band,
    )


def _note_weights(model: Model, plan: ServingPlan, made: ServingMemory, question: Question) -> None:
    """The precision of the weights as they are stored, and who chose it."""
    stored = storage(model, plan.weights)
    if plan.weights:
        held = (
            ""
            if made.stored.name == stored.name
            else Message("{engine} holds them in {stored}", engine=plan.engine, stored=made.stored.name)
        )
        question.put("weights", stored.name, "given", held)
    else:
        question.put("weights", stored.name, stored.origin, stored.source)


def _band_of_served(
    plan: ServingPlan, cluster: Cluster, made: ServingMemory, question: Question
) -> tuple[int, int] | None:
    """The error band in bytes, which the question names; None where no measurements are of this engine and hardware
    family.
    """
    band = serving_band(plan.engine, cluster.accelerator)
    if band is None:
        return None
    question.put(
        "error_band", Message("x {low:.3g} to x {high:.3g}", low=band.low, high=band.high), "measurements", band.what
    )
    return band.around(made.memory.value)


def _weights_alone(model: Model, cluster: Cluster, options: ServingOptions, reserve_bytes: int) -> Answer:
    """A model that is known by its tensors alone: exact weights, and no way to tell its cache."""
    question = _about(model, cluster)
    tensor = question.take(
        "tensor_parallel_size", options.tensor_parallel_size, cluster.size, "cluster", "all accelerators"
    )
    if not 1 <= tensor <= cluster.size:
        raise InvalidPlan(
            Message(
                "tensor_parallel_size must be from 1 to the cluster's {size} accelerators. Got {tensor}. "
                "Nearest: {tensor2}.",
                size=cluster.size,
                tensor=tensor,
                tensor2=min(max(tensor, 1), cluster.size),
            )
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
        question=question.to_dict(),
        needed_bytes=ceil(memory.value),
        usable_bytes=_usable(cluster, reserve_bytes, question),
        memory=memory,
        ranks=(memory,),
        warnings=tuple(question.warnings),
        unknown=unknown,
    )


def _warn_of_towers(model: Model, question: Question) -> None:
    towers = [branch.name for branch in model.branches if branch.kind in ("vision", "audio")]
    if towers:
        question.warn(
            Message(
                "{towers}: weights are counted, activations of images and sounds are not.",
                towers=joined(" and ", towers),
            )
        )


def _warn_of_host(host: HostMemory, cluster: Cluster, question: Question) -> None:
    """Host memory decides nothing, but a run ends without it all the same."""
    if host.capacity is None or host.memory.value <= host.capacity or cluster.node is None:
        return
    phase = max(host.memory.children, key=lambda each: each.value)
    question.warn(
        Message(
            "host memory does not suffice {phase}: a node needs {memory}, and {node} has {capacity}.",
            phase=phase.name,
            memory=human(host.memory.value, "bytes"),
            node=cluster.node.name,
            capacity=human(host.capacity, "bytes"),
        )
    )


def _about(model: Model, cluster: Cluster, advise: bool = True) -> Question:
    question = Question()
    question.put("model", model.name, "given", model.source)
    question.put(
        "parameters",
        model.num_parameters(),
        "model",
        Message("family {family}, {architecture}", family=model.family, architecture=model.architecture).rstrip(", "),
    )
    question.put("on", cluster.name, "given")
    question.put("accelerators", cluster.size, "cluster")
    if not advise:
        question.put("advice", False, "given")
    for note in (*([cluster.note] if cluster.note else ()), *model.notes):
        question.warn(note)
    if model.assumed:
        shown = ", ".join(f"{key}={value!r}" for key, value in list(model.assumed.items())[:8])
        question.warn(Message("the config leaves these to the family's defaults: {shown}.", shown=shown))
    return question


def _usable(cluster: Cluster, reserve_bytes: int, question: Question) -> int:
    chip, memory = cluster.accelerator, cluster.accelerator.memory
    what, key = USABLE[memory.usable_from]
    if memory.system_bytes:
        what, key = Message("{what}, less what the system keeps", what=what), "system_gib"
    fact = chip.fact(f"memory.{key}")
    why = f"{what}; {fact.source}" if fact else what
    question.put("usable_memory", memory.usable_from, "catalogue", why)
    question.put("reserve_bytes", reserve_bytes, "given" if reserve_bytes else "default")
    if memory.usable_from == "driver":
        question.warn(
            Message(
                "no source says how much memory the runtime of {chip} gives programs: what its driver "
                "reports is used, of which a program can get a little less.",
                chip=chip.name,
            )
        )
    elif memory.usable_from == "nominal" and not memory.system_bytes:
        question.warn(
            Message(
                "no source says what the driver of {chip} reports or its runtime gives programs: its nominal "
                "memory is used, of which a program gets less.",
                chip=chip.name,
            )
        )
    if not 0 <= reserve_bytes < memory.usable_bytes:
        raise InvalidInput(
            Message(
                "reserve must leave some of the {usable_bytes} that {accelerator} has. Got {reserve_bytes}.",
                usable_bytes=human(memory.usable_bytes, "bytes"),
                accelerator=cluster.accelerator.name,
                reserve_bytes=human(reserve_bytes, "bytes"),
            )
        )
    return memory.usable_bytes - reserve_bytes


def _where(rank: int, plan: TrainingPlan) -> str:
    """The pipeline stage that decides: of several alike the first."""
    stages = plan.pipeline_parallel_size
    return Message(", on pipeline stage {rank} of {stages}", rank=rank, stages=stages) if stages > 1 else ""


def _stage_term(made: TrainingMemory, rank: int, plan: TrainingPlan) -> Term:
    return made.ranks[rank].peak.named(
        Message("pipeline stage {rank} of {stages}", rank=rank, stages=plan.pipeline_parallel_size)
    )


def _training_slopes(model: Model, plan: TrainingPlan, cluster: Cluster, made: TrainingMemory) -> dict[str, float]:
    """Documents C5 and C6: what one more sequence in the micro-batch, and one more token in each, add."""
    wider = training_memory(model, replace(plan, micro_batch_size=plan.micro_batch_size + 1), cluster)
    longer = training_memory(model, replace(plan, sequence_length=plan.sequence_length + 1), cluster)
    return {"bytes_per_sequence": wider.needed - made.needed, "bytes_per_token": longer.needed - made.needed}

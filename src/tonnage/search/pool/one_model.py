"""One model over a pool as one pipeline of unlike stages: for users, or for training."""

from collections.abc import Callable
from math import inf
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.pool import SearchShown, StageRow
from tonnage.documents.question import Entry
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.formulas.pools import unlike_round_seconds, unlike_step_seconds
from tonnage.kernel.errors import InvalidInput, InvalidPlan, TonnageError
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import counted, human
from tonnage.runtimes import serving_runtime
from tonnage.search.pool.highs import Effort
from tonnage.search.pool.parts import Kind, Pool
from tonnage.search.pool.pipelines.pipeline import BestPipeline, Search, Value, best_of
from tonnage.search.pool.pipelines.uneven import Pipe
from tonnage.search.pool.placement import Placement, Seats, asked_of, document, hourly, of_types, proof, searched
from tonnage.search.pool.serving import SEARCHED_USERS, USERS, Width, usual
from tonnage.search.pool.training import SEQUENCES, Group

OBJECTIVES = ("throughput", "latency")
NO_SERVING, NO_LOAD, NO_TRAINING = ServingOptions(), LoadOptions(), TrainingOptions()


def serve_pipeline(
    pool: Pool,
    model: Model,
    options: ServingOptions = NO_SERVING,
    load: LoadOptions = NO_LOAD,
    *,
    effort: Effort,
    objective: str = "throughput",
    offload: bool = False,
    stages: int | None = None,
) -> Placement:
    """The layers of one served model over all kinds of accelerators."""
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    if load.request_rate is not None:
        raise InvalidInput(
            "{@request_rate}: a pipeline over unlike accelerators is placed for users: give "
            "{@concurrency}. Got {request_rate:g}.",
            request_rate=load.request_rate,
        )
    options, load, lengths = usual(model, options, load)
    stages = _stages(stages, options.pipeline_parallel_size)
    fixed_width = options.tensor_parallel_size
    shapes, refused = _shapes(
        [fixed_width] if fixed_width else powers(max(kind.each for kind in pool.kinds)),
        lambda width: Width(pool, model, options, load, width, offload=offload, alone=objective == "latency"),
    )

    goal = "seconds of a round of tokens" if objective == "throughput" else "seconds of a token of one user alone"

    def value(shape: Any, count: int) -> Value:
        going_round = min(count, shape.users)
        return lambda total, slowest: float(
            unlike_round_seconds.evaluate(tau=total, tau_step=slowest, n_batches=going_round)
        )

    best, considered = best_of(lambda: Search(shapes, model.num_layers, value, effort, stages, goal))
    shown = searched(effort, goal, "seconds", considered, best.value if best else None, best.bound if best else None)
    question = (
        asked_of(pool, effort, model=model.name, kind="serve", goal=objective, offload=offload, stages=stages) | lengths
    )
    if best is None:
        settings = _with_settings(question, shapes[0].question) if shapes else question
        return _nothing(pool, model, shapes, shown, settings, refused, "serve")
    rows, nodes, counts = _rows(best)
    times = best.shape.answer(best.runs, list(best.checked), nodes)
    figures = {
        "tokens_per_second": times.output_tokens_per_second,
        "tpot_seconds": times.tpot_seconds,
        "ttft_seconds": _finite(times.ttft_seconds),
        "token_alone_seconds" if objective == "latency" else "round_seconds": best.value,
        "slowest_stage_seconds": max(row.seconds for row in rows),
    }
    usd, words = hourly(counts)
    alone = (
        Message("{found} a token to one user alone, ", found=human(best.value, "seconds"))
        if objective == "latency"
        else ""
    )
    missed = _unmet(figures, best.shape.limits)
    text = _verdict(
        pool,
        model,
        rows,
        Message(
            "{alone}{rate} tokens/s to {wanted}",
            alone=alone,
            rate=_rate(times.output_tokens_per_second),
            wanted=counted(best.shape.wanted, "users"),
        ),
        shown,
    )
    return document(
        pool,
        shown,
        "pipeline",
        placed=not missed,
        text=Message("the service level is not met: {missed}; {text}", missed=missed, text=text) if missed else text,
        question=_with_settings(question, best.shape.question),
        stages=rows,
        figures=figures,
        usd=usd,
        binding=joined("; ", (missed, _binding(best, rows))) if missed else _binding(best, rows),
        nearest_miss=missed,
        warnings=[*words, *_widths(best, options), *_notes(best)],
    )


def train_pipeline(
    pool: Pool,
    model: Model,
    options: TrainingOptions = NO_TRAINING,
    *,
    effort: Effort,
    offload: bool = False,
    stages: int | None = None,
) -> Placement:
    """The layers of one training run over all kinds of accelerators."""
    stages = _stages(stages, options.pipeline_parallel_size)
    options = replace(options, pipeline_parallel_size=None)
    tensors = (
        [options.tensor_parallel_size]
        if options.tensor_parallel_size
        else powers(max(kind.each for kind in pool.kinds))
    )
    datas = (
        [options.data_parallel_size] if options.data_parallel_size else powers(max(kind.size for kind in pool.kinds))
    )
    variants = [options]
    if offload:
        variants += [
            replace(options, offload_optimizer="cpu"),
            replace(options, offload_optimizer="cpu", offload_activations="cpu"),
        ]
    sizes = [(tensor, data, variant) for variant in variants for tensor in tensors for data in datas]
    shapes, refused = _shapes(sizes, lambda size: Group(pool, model, size[2], size[0], size[1]))

    goal = "seconds of the micro-batches of a step"

    def value(shape: Any, count: int) -> Value:
        return lambda total, slowest: float(
            unlike_step_seconds.evaluate(tau=total, tau_step=slowest, m=shape.microbatches)
        )

    best, considered = best_of(lambda: Search(shapes, model.num_layers, value, effort, stages, goal))
    shown = searched(effort, goal, "seconds", considered, best.value if best else None, best.bound if best else None)
    question = asked_of(pool, effort, model=model.name, kind="train", offload=offload, stages=stages)
    if best is None:
        return _nothing(pool, model, shapes, shown, question, refused, "train")
    rows, _, counts = _rows(best)
    step = best.shape.step_seconds(best.runs)
    figures = {
        "step_seconds": step,
        "tokens_per_second": best.shape.tokens / step,
        "slowest_stage_seconds": max(row.seconds for row in rows),
        "pipeline_seconds": best.value,
    }
    usd, words = hourly(counts)
    text = _verdict(
        pool,
        model,
        rows,
        Message("{rate} tokens/s, {step} a step", rate=_rate(best.shape.tokens / step), step=human(step, "seconds")),
        shown,
    )
    return document(
        pool,
        shown,
        "pipeline",
        placed=True,
        text=text,
        question=_with_settings(question, best.shape.question),
        stages=rows,
        figures=figures,
        usd=usd,
        binding=_binding(best, rows),
        warnings=[*words, *_notes(best)],
    )


def powers(most: int) -> list[int]:
    """1, 2, 4, ... as far as there are so many."""
    return [1 << bit for bit in range(most.bit_length())]


def _shapes(sizes: list[Any], make: Callable[[Any], Any]) -> tuple[list[Any], list[str]]:
    """The shapes that the model and the engine allow, and why the others are refused. Where none is allowed for a
    reason that is
    the user's, it is said.
    """
    usable: list[Any] = []
    refused: list[TonnageError] = []
    for size in sizes:
        try:
            shape = make(size)
        except InvalidPlan as error:
            refused.append(error)
            continue
        refused += shape.why
        if shape.kinds:
            usable.append(shape)
    if not usable and refused:
        raise refused[0]
    return usable, list(dict.fromkeys(str(reason) for reason in refused))


def _stages(number: int | None, also: int | None) -> int | None:
    """The number of stages: --stages, or --pipeline-parallel-size, which is the same here."""
    if number is not None and also is not None and number != also:
        raise InvalidInput(
            "{@stages} and {@pipeline_parallel_size} are the same here: give one. Got {said} and {also}.",
            said=number,
            also=also,
        )
    return also if number is None else number


def _unmet(figures: dict[str, float | None], limits: dict[str, float]) -> str:
    """The limit that the best pipeline does not keep; nothing where it keeps all."""
    for name, limit in limits.items():
        now = figures[f"{name}_seconds"]
        if now is None or now > limit:
            return (
                Message("{name} is without end, and {limit} is asked for", name=name, limit=human(limit, "seconds"))
                if now is None
                else Message(
                    "{name} is {now}, and {limit} is asked for",
                    name=name,
                    now=human(now, "seconds"),
                    limit=human(limit, "seconds"),
                )
            )
    return ""


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _finite(seconds: float | None) -> float | None:
    return None if seconds is None or seconds == inf else float(seconds)


def _rows(best: BestPipeline) -> tuple[list[StageRow], list[str], list[tuple[Kind, int]]]:
    """A row for each stage, the node of each, and how many accelerators of which kind."""
    shape, rows, nodes, counts = best.shape, [], [], []
    seats = Seats(shape.kinds)
    for number, (run, stage) in enumerate(zip(best.runs, best.checked, strict=True)):
        kind = shape.kinds[run.kind]
        where = seats.take(kind, shape.width)
        nodes.append("+".join(where))
        counts.append((kind, shape.width))
        rows.append(
            StageRow(
                stage=number,
                nodes=where,
                accelerator=kind.name,
                accelerators=shape.width,
                first_layer=run.start,
                layers=run.layers,
                needed_bytes=round(stage.needed - stage.on_host),
                usable_bytes=round(stage.usable),
                on_host_bytes=round(stage.on_host),
                seconds=stage.seconds,
            )
        )
    return rows, nodes, counts


def _verdict(pool: Pool, model: Model, rows: list[StageRow], speed: str, shown: SearchShown) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.accelerator] = counts.get(row.accelerator, 0) + row.accelerators
    used = sum(counts.values())
    on = of_types(counts)
    if used < pool.size and len(counts) == 1:
        on += Message(" of the pool's {size}", size=counted(pool.size, "accelerators"))
    elif used < pool.size:
        on = on.replace(" ", f" of {pool.size} ", 1)
    hold = "holds" if used == 1 else "hold"
    return f"{on} {hold} {model.name}: {counted(len(rows), 'stages')}, {speed}, {proof(shown)}"


def _binding(best: BestPipeline, rows: list[StageRow]) -> str:
    """The sentence on what limits the speed: the slowest stage, and whether memory keeps layers away from faster
    ones.
    """
    slowest = max(rows, key=lambda row: row.seconds)
    full = [row for row in rows if row.needed_bytes + _layer_bytes(row) > row.usable_bytes]
    text = Message(
        "stage {stage} ({accelerator}, {layers}) is the slowest: {seconds}",
        stage=slowest.stage,
        accelerator=slowest.accelerator,
        layers=counted(slowest.layers, "layers"),
        seconds=human(slowest.seconds, "seconds"),
    )
    if full:
        names = listed(dict.fromkeys(row.accelerator for row in full))
        text += Message(
            "; memory binds on {count} ({names}), without room for another layer",
            count=counted(len(full), "stages"),
            names=names,
        )
    return text


def _layer_bytes(row: StageRow) -> float:
    return row.needed_bytes / max(row.layers, 1)


def _widths(best: BestPipeline, options: ServingOptions) -> list[str]:
    plan = best.shape.plans[0]
    engine = serving_runtime(plan.engine, plan.engine_version)
    if not engine.partition_variable or len(best.runs) < 2:
        return []
    partition = ",".join(str(run.layers) for run in best.runs)
    note = (
        f"{engine.version.partition(' ')[0]} takes these stages as {engine.partition_variable}={partition} "
        f"with --tensor-parallel-size {best.shape.width} "
        f"--pipeline-parallel-size {len(best.runs)}, its ranks in the order of the stages."
    )
    return [note]


def _notes(best: BestPipeline) -> list[str]:
    left_out = [Message("not used: {each}", each=reason) for reason in best.shape.why]
    return [*left_out, *best.shape.unlinked, *best.shape.question.warnings]


def _with_settings(question: dict[str, Entry], estimated: Any) -> dict[str, Entry]:
    """The question with the settings that the estimator took, without those that the search decided."""
    own = (
        "on",
        "pipeline_parallel_size",
        "replicas",
        "concurrency_per_replica",
        "num_microbatches",
        "model",
        "reserve_bytes",
    )
    settings = {name: entry for name, entry in estimated.entries.items() if name not in (*own, *question)}
    if (users := settings.get("concurrency")) is not None and users.value == USERS and users.origin == "given":
        settings["concurrency"] = Entry(USERS, "default", SEARCHED_USERS)
    if (batch := settings.get("global_batch_size")) is not None and batch.value == SEQUENCES:
        why = "sequences of a step, the same for all plans that are compared"
        settings["global_batch_size"] = Entry(batch.value, batch.origin, why)
    return question | settings


def _nothing(
    pool: Pool,
    model: Model,
    shapes: list[Any],
    shown: SearchShown,
    question: dict[str, Entry],
    refused: list[str],
    what: str,
) -> Placement:
    """Why it does not fit: of the shape that holds most layers how many, and how much memory the others need."""
    stages = question.get("stages")
    binding, miss = _missed(pool, model, shapes, stages.value if stages else None)
    if what == "train":
        hint = "recompute, fewer sequences in a micro-batch, or --offload need less"
    else:
        hint = "narrower --weights, a shorter --context, fewer users, or --offload need less"
    text = Message(
        "does not fit: {size} of {pool} do not hold {model}: {miss}",
        size=counted(pool.size, "accelerators"),
        pool=pool.inventory.pool,
        model=model.name,
        miss=miss,
    )
    return document(
        pool,
        shown,
        "pipeline",
        placed=False,
        text=text,
        question=question,
        binding=binding,
        nearest_miss=joined("; ", (miss, hint)),
        warnings=[*refused, *(warning for shape in shapes for warning in getattr(shape, "unlinked", ()))],
    )


def _missed(pool: Pool, model: Model, shapes: list[Any], stages: int | None) -> tuple[str, str]:
    """The limit that binds, and how much was missing."""
    rooms = [sum(cost.most for cost in shape.costs(1)) for shape in shapes]
    if not shapes:
        largest = max(pool.kinds, key=lambda kind: kind.each)
        return (
            Message(
                "no node has room for such a stage: the largest has {each} free {largest}",
                each=largest.each,
                largest=largest.name,
            ),
            "a narrower stage is needed",
        )
    if stages is not None and stages > max(rooms):
        return (
            Message(
                "stages: the pool makes at most {rooms} of these widths, and {stages} are asked for",
                rooms=max(rooms),
                stages=stages,
            ),
            Message("short by {stages} stages", stages=stages - max(rooms)),
        )
    best: tuple[int, float, Any, int] = (0, inf, None, 0)
    for shape, room in zip(shapes, rooms, strict=True):
        most = min(room, model.num_layers)
        for number in sorted({1, 2, min(4, most), most}) if stages is None else [stages]:
            pipe = Pipe(
                shape.costs(number),
                number,
                lambda place, n=number, s=shape: s.in_flight(place, n),  # type: ignore[misc]
            )
            held, short = pipe.room()
            if held > best[0] or (held == best[0] and short < best[1]):
                best = held, short, shape, number
    held, short, shape, number = best
    if shape is None or held == 0:
        over, needed, name = min(_one_layer(shape, number) for shape in shapes for number in range(len(shape.kinds)))
        binding = Message(
            "no node is large enough for a stage of one layer: it needs {needed} on each {name}",
            needed=human(needed, "bytes"),
            name=name,
        )
        return binding, Message("short by {over} an accelerator", over=human(over, "bytes"))
    kinds, others = _kinds_looked_at(pool, shape, number)
    free = sum(kind.size * kind.free for kind in kinds)
    of = "the whole pool" if free == pool.free_bytes else listed(dict.fromkeys(kind.name for kind in kinds))
    memory = (
        Message("the memory of {of}: {free}", of=of, free=human(free, "bytes"))
        if stages is None
        else Message("the memory of {stages} stages: {free}", stages=stages, free=human(free, "bytes"))
    )
    if held >= model.num_layers:
        return (
            Message(
                "{whole} hold the layers one by one, but not in any order of stages{others}",
                whole=memory,
                others=others,
            ),
            "less than a layer is missing",
        )
    left = model.num_layers - held
    return (
        Message(
            "{whole} hold {held} of {num_layers}{others}",
            whole=memory,
            held=held,
            num_layers=counted(model.num_layers, "layers"),
            others=others,
        ),
        Message(
            "short by {short} for the other {left}",
            short=human(short * shape.width, "bytes"),
            left=counted(left, "layers"),
        ),
    )


def _kinds_looked_at(pool: Pool, shape: Any, stages: int) -> tuple[list[Kind], str]:
    """Kinds that such a pipeline has stages on, and of the others why it has none."""
    kinds = [kind for kind, cost in zip(shape.kinds, shape.costs(stages), strict=True) if cost.most]
    if stages == 1:  # one stage is on one kind: the one that holds most layers
        of = {
            id(kind): Pipe([cost], 1, lambda place: shape.in_flight(place, 1)).room()[0]
            for kind, cost in zip(shape.kinds, shape.costs(1), strict=True)
        }
        kinds = [max(kinds, key=lambda kind: of[id(kind)])]
    words = []
    why: str
    for kind in pool.kinds:
        if any(kind is used for used in kinds):
            continue
        if kind.each < shape.width:
            why = Message("has {each} in a node, and a stage takes {width}", each=kind.each, width=shape.width)
        elif kind.node.outside is None:
            why = Message("has no known link between nodes: say `outside` of {group}", group=kind.group)
        elif stages == 1:
            why = "holds no more of them in one stage"
        else:
            why = "is not used: see the notes"
        words.append(f"{kind.name} {why}")
    return kinds, "".join(f"; {reason}" for reason in dict.fromkeys(words))


def _one_layer(shape: Any, number: int) -> tuple[float, float, str]:
    """The bytes that one layer alone lacks, the bytes that it needs, and on what."""
    cost = shape.costs(3)[number]
    needed = cost.fixed_bytes + cost.bytes[-1] + (cost.kept[-1] if cost.kept else 0)
    return max(needed - cost.usable, 0.0), needed, shape.kinds[number].name

"""Which models of the catalogue run on a machine, in which precisions, how fast: one request at a time, the way one
person uses them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.document import builtins
from tonnage.documents.question import Entry
from tonnage.documents.serving import MachineDocument, RunsDocument
from tonnage.estimate.answer.companions import serving_without_companions
from tonnage.estimate.bands import serving_highest
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import duration
from tonnage.estimate.serving.limits import longest_context_tokens
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving.weights.formats import has_four_bits
from tonnage.estimate.serving.weights.storage import stored_bytes
from tonnage.estimate.serving_time.speed import clock, prompt_pass
from tonnage.estimate.serving_time.times import policy
from tonnage.formulas import service as h
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.models.purpose import purpose
from tonnage.spec import Cluster, ServingPlan

# The widest first, with bits that a parameter takes at least: what does not fit so is not tried. None: as the
# checkpoint is stored.
PRECISIONS: dict[str | None, float] = {
    None: 1,
    "fp8": 8,
    "q8_0": 8.5,
    "q6_k": 6.5,
    "q5_k_m": 5.5,
    "q4_k_m": 4.5,
    "awq": 4,
}
LEAST_BITS = 4
CONTEXT, PROMPT = 8192, 1024  # tokens
ORDERS = ("parameters", "tokens_per_second", "ttft_seconds", "download_bytes", "longest_context")
NO_SERVING = ServingOptions()


class ModelsForMachine(Struct, frozen=True, kw_only=True, eq=False):
    """What runs, ranked; `tried`: models that were looked at."""

    question: dict[str, Entry]
    usable_bytes: int
    runs: tuple[RunsDocument, ...]
    tried: int
    warnings: tuple[str, ...]

    @property
    def status(self) -> int:
        return 0 if self.runs else 3

    @property
    def document(self) -> MachineDocument:
        """What every face shows."""
        return MachineDocument(
            question=self.question,
            usable_bytes=self.usable_bytes,
            models_tried=self.tried,
            runs=list(self.runs),
            warnings=list(self.warnings),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)

    @property
    def widest(self) -> tuple[RunsDocument, ...]:
        """Of each model the widest precision that runs."""
        seen: dict[str, RunsDocument] = {}
        for row in self.runs:
            if row.model not in seen or row.download_bytes > seen[row.model].download_bytes:
                seen[row.model] = row
        return tuple(seen.values())


def my_machine(
    cluster: Cluster,
    models: Iterable[tuple[str, str, Model]],
    options: ServingOptions = NO_SERVING,
    *,
    order: str = "parameters",
    ttft: float | str | None = None,
    tpot: float | str | None = None,
) -> ModelsForMachine:
    """`models`: (name, id on the Hub, model). Those that need more than the context, or are slower than the limits,
    are left out.
    """
    if order not in ORDERS:
        raise unknown("order", order, ORDERS)
    if options.concurrency not in (None, 1):
        raise InvalidInput(
            "one user at a time is what this answers: leave out {@concurrency}. Got {concurrency}.",
            concurrency=options.concurrency,
        )
    limits = {"ttft": duration("ttft", ttft), "tpot": duration("tpot", tpot)}
    question = _question(cluster, options, order, limits)
    usable = cluster.accelerator.memory.usable_bytes - options.reserve_bytes
    if usable <= 0:
        raise InvalidInput(
            "{@reserve} must leave some of the memory of {accelerator}. Got {reserve_bytes:,} bytes.",
            accelerator=cluster.accelerator.name,
            reserve_bytes=options.reserve_bytes,
        )
    tried, rows = 0, []
    for name, hub, model in models:
        tried += 1
        for row in _of_model(name, hub, model, cluster, options, usable):
            if _keeps(row, limits):
                rows.append(row)
    timed = cluster.accelerator.memory.bytes_per_second is not None
    warnings = (
        ()
        if timed
        else (
            Message(
                "no source gives the memory bandwidth of {accelerator}: there are no speeds.",
                accelerator=cluster.accelerator.name,
            ),
        )
    )
    return ModelsForMachine(
        question=question.entries,
        usable_bytes=usable,
        runs=tuple(sorted(rows, key=lambda row: _rank(row, order))),
        tried=tried,
        warnings=warnings,
    )


def _question(cluster: Cluster, options: ServingOptions, order: str, limits: dict[str, float | None]) -> Question:
    question = Question()
    question.put("on", cluster.name, "given")
    question.put("accelerators", cluster.size, "cluster")
    question.take("context", options.context, CONTEXT, "default", "at most what the model was made for")
    question.put("input_tokens", PROMPT, "default", "of the TTFT, at most 3/4 of the context")
    question.take("weights", options.weights, ", ".join(name or "the checkpoint's own" for name in PRECISIONS))
    question.put("order", order, "default" if order == "parameters" else "given")
    for name, limit in limits.items():
        if limit is not None:
            question.put(name, limit, "given", "seconds")
    return question


def _of_model(
    name: str, hub: str, model: Model, cluster: Cluster, options: ServingOptions, usable: int
) -> Iterator[RunsDocument]:
    if model.num_parameters() * LEAST_BITS / 8 > usable * cluster.size or purpose(model) != "generate":
        return
    context = options.context or min(CONTEXT, model.context or CONTEXT)
    if options.context and model.context and options.context > model.context:
        return
    seen, own_runs = set(), False
    room = 8 * usable * cluster.size / model.num_parameters()
    for weights in (options.weights,) if options.weights else PRECISIONS:
        if PRECISIONS.get(weights, 0) > room:
            continue
        try:
            model_options = replace(options, weights=weights, context=context, concurrency=None)
            plan = serving_plan(model, cluster, serving_without_companions(model, cluster, model_options), Question())
            plan = replace(plan, concurrency=1)
            memory = serving_memory(model, plan, cluster.accelerator)
        except TonnageError:  # an engine, or a machine, that does not take this precision
            continue
        highest = serving_highest(plan.engine, cluster.accelerator, memory.memory.value)
        if highest > usable or memory.stored.name in seen:
            continue
        seen.add(memory.stored.name)
        if _loses_nothing_by(model, weights, own_runs):
            continue
        own_runs = own_runs or weights is None
        speed, first = _alone(model, plan, cluster)
        yield RunsDocument(
            model=name,
            hub=hub,
            parameters=model.num_parameters(),
            active_parameters=model.num_active_parameters(),
            weights=memory.stored.name,
            option=weights or "",
            engine=plan.engine,
            needed_bytes=round(memory.memory.value),
            download_bytes=round(stored_bytes(model, weights)),
            context=context,
            longest_context=longest_context_tokens(model, plan, cluster, memory, usable),
            tokens_per_second=speed,
            ttft_seconds=first,
        )


def _loses_nothing_by(model: Model, weights: str | None, own_runs: bool) -> bool:
    """Whether the checkpoint's own weights, which run here, are as small as in this precision, or are in 4 bits
    already: the conversion gains nothing then, and nobody publishes a narrower one.
    """
    if weights is None or not own_runs:
        return False
    return stored_bytes(model, weights) >= stored_bytes(model, None) or has_four_bits(model)


def _alone(model: Model, plan: ServingPlan, cluster: Cluster) -> tuple[float | None, float | None]:
    """(tokens a second, seconds of the first token of a prompt) of one user; None where nobody can say them."""
    prompt = max(min(PROMPT, int(plan.context) * 3 // 4), 1)
    try:
        passes = clock(model, plan, cluster)
        token = passes.seconds(0, 0, 1, prompt)
        speed = float(h.user_tokens_per_second.evaluate(tau=token / passes.tokens_each))
        if not passes.knows_prompts:
            return speed, None
        own = prompt_pass(passes, policy(plan, cluster.accelerator), prompt)
    except TonnageError:
        return None, None
    return speed, float(passes.engine.arrive + own.seconds)


def _keeps(row: RunsDocument, limits: dict[str, float | None]) -> bool:
    if limits["ttft"] is not None and (row.ttft_seconds is None or row.ttft_seconds > limits["ttft"]):
        return False
    return limits["tpot"] is None or (row.tokens_per_second is not None and 1 / row.tokens_per_second <= limits["tpot"])


def _rank(row: RunsDocument, order: str) -> tuple[Any, ...]:
    """The largest model first, and of one model the widest precision; or the other way where less is better."""
    value = getattr(row, order)
    sign = 1 if order in ("ttft_seconds", "download_bytes") else -1
    return value is None, sign * (value or 0), row.model, -row.download_bytes

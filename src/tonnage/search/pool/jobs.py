"""What a job of an inventory can run on: of every kind of accelerators the fewest that hold it, as the estimator has
it.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.answer.answers import serve, train
from tonnage.estimate.answer.form import Answer
from tonnage.estimate.answer.training import today
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions, deadline_seconds
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.checkpoint import checkpoint_bytes
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, TonnageError, shown
from tonnage.kernel.message import Message, joined
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import human, parse_bytes, parse_count, parse_length
from tonnage.models import read
from tonnage.question.option import types_of
from tonnage.question.subjects.serving import OF_LOAD
from tonnage.search.pool.candidates import at_rate, missed_level
from tonnage.search.pool.inventory import Job, widths_of
from tonnage.search.pool.offload import served_from_host, trained_with_host
from tonnage.search.pool.parts import Kind, Pool
from tonnage.spec import Cluster

LENGTHS = ("context", "input_tokens", "output_tokens", "sequence_length", "max_num_batched_tokens")
SIZES = ("weights_on_host",)
WORDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
OF_PLACES = ("reserve_bytes", *OF_LOAD)  # what the inventory says of nodes, and no job does


class Way(Struct, frozen=True, kw_only=True, eq=False):
    """One way to run a replica of a job: `width` accelerators of each of `parts` parts of a kind. `bytes`: of each
    accelerator; `copied`: of its weights or checkpoint where it moves; `host`: of each accelerator's in host memory.
    """

    kind: Kind
    width: int
    needed: int
    parts: int = 1
    copied: float = 0.0
    host: int = 0
    offload: str = ""
    tokens_per_second: float | None = None
    seconds: float | None = None

    @property
    def size(self) -> int:
        return self.width * self.parts

    @property
    def cost(self) -> float | None:
        return None if self.kind.price is None else self.kind.price * self.size


class Ways(Struct, frozen=True, kw_only=True, eq=False):
    """All ways of a job; `refused`: why others are none, the nearest miss first."""

    job: Job
    ways: list[Way]
    refused: list[str]


def ways_of(job: Job, pool: Pool) -> Ways:
    """All ways to run a job: on every kind the fewest accelerators that hold it. An error names the job and the
    option.
    """
    try:
        model = read(job.model)
        options = _options(job)
    except TonnageError as error:
        raise type(error)(f"job {job.name}: {error}") from None
    ways: list[Way] = []
    refused: list[tuple[float, str]] = []
    for kind in pool.kinds:
        for parts, width in _sizes(job, kind):
            way = _way(job, model, options, kind, parts, width, refused)
            if way is not None:
                ways.append(way)
                if not job.runs_on:  # more of the same kind only take room from others
                    break
    order = sorted(refused, key=lambda pair: pair[0])
    return Ways(job=job, ways=ways, refused=list(dict.fromkeys(text for _, text in order)))


def _sizes(job: Job, kind: Kind) -> list[tuple[int, int]]:
    """(nodes, accelerators of each) that may be tried, the fewest first."""
    named_widths = widths_of(job)
    inside = sorted(
        size for size in named_widths or [1 << bit for bit in range(kind.each.bit_length())] if size <= kind.each
    )
    sizes = [(1, size) for size in inside]
    if kind.each not in inside and not named_widths:
        sizes.append((1, kind.each))
    if job.kind == "train":
        several = (
            sorted({size // kind.each for size in named_widths if size > kind.each and size % kind.each == 0})
            if named_widths
            else range(2, len(kind.parts) + 1)
        )
        sizes += [(parts, kind.each) for parts in several if parts <= len(kind.parts)]
    return sizes


def _way(
    job: Job,
    model: Model,
    options: tuple[Any, Any],
    kind: Kind,
    parts: int,
    width: int,
    refused: list[tuple[float, str]],
) -> Way | None:
    cluster, what = kind.cluster(parts, width), f"{parts * width}x{kind.name}"
    try:
        if job.kind == "serve":
            return _served(job, model, options, kind, width, refused, what)
        return _trained(job, model, options, kind, cluster, refused, what)
    except MissingDatum as error:
        refused.append((float("inf"), joined(": ", (what, error))))
    except InvalidPlan as error:
        refused.append((float("inf"), joined(": ", (what, error))))
    except TonnageError as error:
        raise type(error)(f"job {job.name}: {error}") from None
    return None


def _served(
    job: Job,
    model: Model,
    options: tuple[Any, Any],
    kind: Kind,
    width: int,
    refused: list[tuple[float, str]],
    what: str,
) -> Way | None:
    settings, load = options
    share = settings.gpu_memory_utilization if job.shares else None
    if share is not None:  # what the engine takes is what is held; the rest of the accelerator is not its own
        settings = replace(settings, gpu_memory_utilization=None)
    settings = (
        settings
        if settings.tensor_parallel_size
        else replace(settings, tensor_parallel_size=width // (settings.pipeline_parallel_size or 1) or 1)
    )
    answer = serve(model, kind.cluster(1, width), settings, load, reserve_bytes=kind.reserve, advise=False)
    host, note = 0, ""
    if answer.fits is False and job.offload:
        helped = served_from_host(model, kind, width, settings, load, answer)
        if helped is not None:
            answer, settings, host = helped
            note = (
                Message("{host} of weights on the host", host=human(host, "bytes"))
                if settings.weights_on_host
                else Message(
                    "{layers_on_accelerator} layers on the GPU", layers_on_accelerator=settings.layers_on_accelerator
                )
            )
    if miss := _unserved(answer, what, width):
        refused.append(miss)
        return None
    needed = answer.needed_bytes
    if load.request_rate is not None and share is None:  # of the requests that run at once, not of one
        needed = at_rate(model, kind, width, settings, load, answer)[1].needed_bytes
    if share is not None:
        share_bytes = ceil(share * kind.accelerator.memory.usable_bytes)
        if needed > share_bytes:
            refused.append(
                (
                    needed - share_bytes,
                    (
                        Message(
                            "{what}: needs {needed}, and {@gpu_memory_utilization} {share:g} is {taken}",
                            what=what,
                            needed=human(needed, "bytes"),
                            share=share,
                            taken=human(share_bytes, "bytes"),
                        )
                    ),
                )
            )
            return None
        needed = share_bytes
    if needed > kind.free:
        refused.append(
            (
                needed - kind.free,
                Message(
                    "{what}: takes {needed} of {free}",
                    what=what,
                    needed=human(needed, "bytes"),
                    free=human(kind.free, "bytes"),
                ),
            )
        )
        return None
    weights = next((part.value for part in answer.memory.children if part.name == "weights"), 0.0)
    rate = answer.serving.tokens_per_second
    return Way(
        kind=kind,
        width=width,
        needed=needed,
        copied=weights * width,
        host=host,
        offload=note,
        tokens_per_second=float(rate.value) if rate else None,
    )


def _unserved(answer: Answer, what: str, width: int) -> tuple[float, str] | None:
    """Why an answer is no way to run the job, and how near it came: bytes that lack, or of a limit that is missed
    less than one.
    """
    if answer.fits is False:
        needed, usable = answer.needed_bytes, answer.usable_bytes
        return (needed - usable) * width, _lacks(what, needed, usable)
    if not answer.unserved:
        return None
    level = missed_level(answer)
    return (level.nearness, joined(": ", (what, level))) if level else (1.0, joined(": ", (what, answer.unserved)))


def _trained(
    job: Job,
    model: Model,
    options: tuple[Any, Any],
    kind: Kind,
    cluster: Cluster,
    refused: list[tuple[float, str]],
    what: str,
) -> Way | None:
    settings, run = options
    if run.stray:
        raise InvalidInput(
            "options.{stray} is of a whole run, which needs a length: give {@tokens}, {@epochs} with "
            "{@dataset_tokens}, or {@max_steps}.",
            stray=run.stray,
        )
    plan = training_plan(model, cluster, settings, Question())
    needed = float(training_memory(model, plan, cluster).needed)
    tried = (
        [(settings, "")]
        if needed <= kind.free
        else trained_with_host(model, kind, cluster, settings)
        if job.offload
        else []
    )
    miss = (needed - kind.free) * cluster.size, _lacks(what, needed, kind.free)
    for attempt, note in tried:
        answer = train(model, cluster, attempt, replace(run, deadline=None), reserve_bytes=kind.reserve)
        why = _host_lacks(answer, kind, note) or _late(answer, run)
        if not why:
            step = answer.step_time.value if answer.step_time is not None else None
            host = (
                round(answer.host.memory.value / cluster.accelerators_per_node)
                if answer.host is not None and note
                else 0
            )
            return Way(
                kind=kind,
                width=cluster.accelerators_per_node,
                parts=cluster.num_nodes,
                needed=answer.needed_bytes,
                host=host,
                offload=note,
                copied=float(checkpoint_bytes(model, plan).value),
                seconds=step,
                tokens_per_second=plan.tokens_per_step / step if step else None,
            )
        miss = 0.0, joined(": ", (what, why))
    refused.append(miss)
    return None


def _lacks(what: str, needed: float, free: float) -> str:
    return Message(
        "{what}: needs {needed} of {free} on each, short by {needed2}",
        what=what,
        needed=human(needed, "bytes"),
        free=human(free, "bytes"),
        needed2=human(needed - free, "bytes"),
    )


def _host_lacks(answer: Answer, kind: Kind, note: str) -> str:
    """Why host memory does not hold what is away; nothing where it does, or nobody says how much there is."""
    room = kind.node.host_memory_bytes
    if not note or answer.host is None or room is None or answer.host.memory.value <= room:
        return ""
    return Message(
        "{note} needs {memory} of host memory, a node has {room}",
        note=note,
        memory=human(answer.host.memory.value, "bytes"),
        room=human(room, "bytes"),
    )


def _late(answer: Answer, run: RunOptions) -> str:
    """Why the run is not done in time; nothing where it is, or has all the time."""
    limit, lasts = deadline_seconds(run.deadline, today()), answer.run.seconds if answer.run else None
    if limit is None or not lasts or lasts.value <= limit:
        return ""
    return Message(
        "takes {lasts}, and the deadline is {limit}", lasts=human(lasts.value, "seconds"), limit=human(limit, "seconds")
    )


# ---- options as people write them ----


def _options(job: Job) -> tuple[Any, Any]:
    """The options of a job in the types that the estimator takes."""
    forms: tuple[type[Struct], type[Struct]] = (
        (ServingOptions, LoadOptions) if job.kind == "serve" else (TrainingOptions, RunOptions)
    )
    names = [name for form in forms for name in form.__struct_fields__ if name not in OF_PLACES]
    for name in job.options:
        if name.replace("-", "_") not in names:
            raise InvalidInput("options.{name}: {unknown}", name=name, unknown=unknown("option", name, names))
    values = {name.replace("-", "_"): value for name, value in job.options.items()}
    first, second = (_form(form, values) for form in forms)
    return first, second


def _form(form: type[Struct], values: Mapping[str, Any]) -> Any:
    return form(**{name: _value(form, name, value) for name, value in values.items() if name in form.__struct_fields__})


def _value(form: type[Struct], name: str, value: Any) -> Any:
    """A value of the option's type; text where people write numbers: 8k, 20GiB."""
    takes, where = types_of(form)[name], f"options.{name}"
    if isinstance(value, str) and str not in getattr(takes, "__args__", (takes,)):
        if name in SIZES:
            return parse_bytes(value, where)
        if float in getattr(takes, "__args__", (takes,)):
            try:
                return float(value)
            except ValueError:
                raise InvalidInput("{what} must be a number. Got {text}.", what=where, text=shown(value)) from None
        if bool in getattr(takes, "__args__", (takes,)):
            raise InvalidInput("{where} must be true or false. Got {value}.", where=where, value=shown(value))
        return parse_length(value, where) if name in LENGTHS else parse_count(value, where)
    allowed = getattr(takes, "__args__", (takes,))
    if isinstance(value, bool) and bool not in allowed:
        raise InvalidInput("{where} takes no true or false. Got {value}.", where=where, value=shown(value))
    if isinstance(value, int) and not isinstance(value, bool) and int not in allowed and float in allowed:
        return float(value)
    if not isinstance(value, tuple(option_type for option_type in allowed if isinstance(option_type, type))):
        raise InvalidInput(
            "{where} takes {allowed}. Got {value}.",
            where=where,
            allowed=joined(" or ", (WORDS[option_type] for option_type in allowed if option_type in WORDS)),
            value=shown(value),
        )
    return value

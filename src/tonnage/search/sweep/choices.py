"""Options that a sweep varies, and their values in its file: a value, a list of them, or a range."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.options.plans import ATTENTION, IMPLEMENTATIONS, LOSS, RECOMPUTE
from tonnage.estimate.plan.rule import check_size
from tonnage.estimate.plan.schedule import schedule_named
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import COLUMNS
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.weights.request import asked_for
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, Message, listed
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import parse_length
from tonnage.numerics.optimizers import optimizer
from tonnage.numerics.precisions import ALIASES, TRAINING_RECIPES
from tonnage.question.option import types_of
from tonnage.question.subjects.serving import OF_LOAD
from tonnage.runtimes import model_codes, serving_runtime, serving_runtimes, training_runtime

FORMS = {"train": (TrainingOptions,), "serve": (ServingOptions, LoadOptions)}
# A pipeline's stages are a loop: plans of one array share them.
BLOCK_AXES = ("pipeline_parallel_size", "virtual_pipeline_size")
INNER = {"train": (*(name for name in COLUMNS if name not in BLOCK_AXES), "global_batch_size"), "serve": ()}
# What other options of a frontier would contradict, or would take it apart.
NOT_SWEPT = {
    "train": ("teacher",),
    "serve": (
        "concurrency",
        "request_rate",
        "trace",
        "ttft",
        "tpot",
        "simulate",
        "reserve_bytes",
        *OF_LOAD,
        "percentile",
        "num_requests",
        "seed",
        "price_per_accelerator_hour",
    ),
}


MAX_VALUES = 100_000  # of an axis
SIZES = ("_size", "_length", "_batches", "num_microbatches")
LENGTHS = ("sequence_length", "context", "input_tokens", "output_tokens", "cached_tokens")
RANGE = ("from", "to", "step", "times")


def check_kv_cache(name: str) -> None:
    """UnknownName for a format that no engine holds keys and values in: of one engine alone the plan says it."""
    plain = name.strip().lower().removeprefix("torch.")
    engines = [serving_runtime(engine_name) for engine_name in serving_runtimes()]
    own = {engine_name.own_kv_cache for engine_name in engines if engine_name.own_kv_cache}
    known = {
        "auto",
        "bf16",
        "fp16",
        "fp32",
        *own,
        *(cache_name for engine in engines for pair in engine.kv_cache.items() for cache_name in pair),
    }
    named = ALIASES.get(plain, plain)
    if not {plain, named, named.replace("_", "-")} & known:
        raise unknown("kv_cache", name, sorted(known))


def check_model_code(name: str) -> None:
    """UnknownName for code of a model that no runtime runs."""
    if name not in model_codes():
        raise unknown("model_code", name, model_codes())


WORDS: dict[str, Callable[[str], Any]] = {
    "runtime": training_runtime,
    "optimizer": optimizer,
    "precision": TRAINING_RECIPES.__getitem__,
    "pipeline_schedule": schedule_named,
    "weights": asked_for,
    "kv_cache": check_kv_cache,
    "engine": serving_runtime,
    "model_code": check_model_code,
}
CHOICES: dict[str, Iterable[str]] = {
    "recompute": RECOMPUTE, "attention": tuple(ATTENTION), "loss": (*LOSS, "tiled", "full-entropy"),
    "optimizer_implementation": IMPLEMENTATIONS,
}  # fmt: skip


def check_words(name: str, value: Any) -> None:
    """A name that no registry knows is said at once, and not by every chunk."""
    if name in WORDS and isinstance(value, str):
        WORDS[name](value)
    if name in CHOICES and value not in CHOICES[name]:
        raise unknown(name, str(value), CHOICES[name])
    if name.endswith(SIZES) and isinstance(value, int):
        check_size(name, value)


def sizes_of(forms: tuple[type[Struct], ...], name: str, values_given: Any) -> tuple[Any, ...]:
    """The values of an axis, in the order in which they were given."""
    if isinstance(values_given, dict):
        values_given = list(islice(_range(name, values_given), MAX_VALUES + 1))
    if not isinstance(values_given, list) or not values_given:
        raise InvalidInput(
            "{@vary}: {name} takes a list of values, or from, to and step or times. Got {said}.",
            name=name,
            said=shown(values_given),
        )
    if len(values_given) > MAX_VALUES:
        raise InvalidInput("{@vary}: {name} takes at most {most_values:,} values.", name=name, most_values=MAX_VALUES)
    values = tuple(options(forms, name, values_given, "vary"))
    if len(set(values)) < len(values):
        twice = next(value for number, value in enumerate(values) if value in values[:number])
        raise InvalidInput("{@vary}: {name} has {twice} twice.", name=name, twice=shown(twice))
    return values


def _range(name: str, range_given: dict[Any, Any]) -> Iterable[int]:
    for key in range_given:
        if key not in RANGE:
            raise unknown(Message("field of a range (vary: {name})", name=name), str(key), RANGE)
    start, stop, step, times = (range_given.get(key) for key in RANGE)
    for key, value in range_given.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInput(
                "{@vary}: {name}: {key} must be a whole number from 1 on. Got {value}.",
                name=name,
                key=key,
                value=shown(value),
            )
    if start is None or stop is None or (step is not None and times is not None) or times == 1:
        raise InvalidInput(
            "{@vary}: {name}: a range is from, to and step, or from, to and times (from 2 on). Got {said}.",
            name=name,
            said=shown(range_given),
        )
    if stop < start:
        raise InvalidInput(
            "{@vary}: {name}: to must be at least from. Got from {start}, to {stop}.",
            name=name,
            start=start,
            stop=stop,
        )
    value = start
    while value <= stop:
        yield value
        value = value * times if times is not None else value + (step or 1)


def option(forms: tuple[type[Struct], ...], name: str, value: Any, where: str) -> Any:
    """One value in the type that its option takes."""
    return next(iter(options(forms, name, [value], where)))


def options(forms: tuple[type[Struct], ...], name: str, values: Iterable[Any], where: str) -> Iterator[Any]:
    """The values of one option in the type that it takes."""
    kind = "train" if len(forms) == 1 else "serve"
    known = [field for form in forms for field in form.__struct_fields__ if field not in NOT_SWEPT[kind]]
    if name not in known:
        if name in NOT_SWEPT[kind]:
            raise InvalidInput("{where}: {name} cannot be swept: leave it out.", where=where, name=name)
        other = next((other for other in FORMS if any(name in form.__struct_fields__ for form in FORMS[other])), "")
        if other and other != kind:
            raise InvalidInput(
                "{where}: {name} is an option of sweeps of kind {other}, not of kind {kind}: leave it out.",
                where=where,
                name=name,
                other=other,
                kind=kind,
            )
        raise unknown(Message("option of a sweep of kind {kind} ({where})", kind=kind, where=where), name, known)
    takes = types_of(next(form for form in forms if name in form.__struct_fields__))[name]
    for value in values:
        if value is None:
            raise InvalidInput("{where}: {name} has no value: give it one, or leave it out.", where=where, name=name)
        parsed = parse_length(value, f"{where}: {name}") if name in LENGTHS and isinstance(value, str) else value
        try:
            yield msgspec.convert(parsed, takes)
        except msgspec.ValidationError:
            raise InvalidInput(
                "{where}: {name} takes {what}. Got {value}.",
                where=where,
                name=name,
                what=_taken(takes),
                value=shown(value),
            ) from None


TAKEN = {int: "a whole number", float: "a number", bool: "true or false", str: "a name"}


def _taken(kind: Any) -> str:
    """What an option of this type takes, in words."""
    kinds = [one for one in (getattr(kind, "__args__", None) or (kind,)) if one in TAKEN]
    return listed([Message(TAKEN[one]) for one in kinds], OR)

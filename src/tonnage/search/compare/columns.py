"""The columns of a comparison: what each row has, in which unit, and which way is better."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from tonnage.kernel.part_names import TPOT, TTFT
from tonnage.kernel.registry import unknown
from tonnage.search.compare.axes import Axis

Kind = Literal["text", "whole", "number", "truth"]


class Column(Struct, frozen=True, kw_only=True):
    """A column: its name ends in its base unit where it has one. `better`: which of two values is, if any; `short`:
    its heading.
    """

    name: str
    kind: Kind
    unit: str = ""
    better: Literal["", "low", "high"] = ""
    short: str = ""
    about: str = ""


def _text(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind="text") for name in names)


def _whole(*names: str, unit: str = "") -> tuple[Column, ...]:
    return tuple(Column(name=name, kind="whole", unit=unit) for name in names)


def _low(name: str, unit: str, short: str, about: str = "", kind: Kind = "number") -> Column:
    return Column(name=name, kind=kind, unit=unit, better="low", short=short, about=about)


def _high(name: str, unit: str, short: str, about: str = "", kind: Kind = "number") -> Column:
    return Column(name=name, kind=kind, unit=unit, better="high", short=short, about=about)


WHERE = (
    *_text("model", "on", "accelerator"),
    _low("accelerators", "accelerators", "x", "accelerators", kind="whole"),
    *_whole("nodes"),
)
VERDICT = (
    *_text("verdict", "reason"),
    _low("needed_bytes", "bytes", "needs", "memory of the fullest GPU", kind="whole"),
    Column(name="usable_bytes", kind="whole", unit="bytes", short="of"),
)
# What the question of an answer says of its plan.
SERVING_PLAN = (
    *_text("weights", "weights_stored", "engine", "kv_cache"),
    *_whole("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "replicas"),
    *_whole("concurrency", unit="requests"),
    *_whole("input_tokens", "output_tokens", "context", unit="tokens"),
)
TRAINING_PLAN = (
    *_text("precision", "runtime", "recompute"),
    *_whole(
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "context_parallel_size",
        "expert_parallel_size",
        "data_parallel_size",
    ),
    *_whole("zero_stage", "micro_batch_size", "global_batch_size"),
    *_whole("sequence_length", unit="tokens"),
)
PAID = (*_text("price"), *_whole("accelerators_paid", unit="accelerators"))
SERVING_FIGURES = (
    _high("requests_that_fit", "requests", "users", "requests that the cache has room for", kind="whole"),
    _high("kv_capacity_tokens", "tokens", "cache", "tokens that the cache has room for", kind="whole"),
    _high("longest_context_tokens", "tokens", "longest", "longest context of one request", kind="whole"),
    _low("ttft_seconds", "seconds", "first", TTFT),
    _low("tpot_seconds", "seconds", "token", TPOT),
    _high("tokens_per_second", "tokens/s", "tokens/s", "output tokens per second, all requests"),
    _high("tokens_per_second_per_user", "tokens/s", "a user", "output tokens per second per user"),
    *PAID,
    _low("usd_per_hour", "USD", "USD/h", "USD per hour of everything rented"),
    _low("usd_per_million_tokens", "USD", "USD/M", "USD per million tokens (input + output)"),
    _low("usd_per_million_output_tokens", "USD", "USD/M out", "USD per million output tokens (input included)"),
)
# Of models that write no text of their own.
ENCODED_FIGURES = (
    _high("items_per_second", "1/s", "items/s", "documents, or pairs of a reranker, per second"),
    _high("audio_seconds_per_second", "", "x real time", "seconds of audio per second"),
    _low("usd_per_audio_hour", "USD", "USD/h audio", "USD of an hour of audio"),
)
TRAINING_FIGURES = (
    _low("step_seconds", "seconds", "step", "time of a step"),
    _high("tokens_per_second", "tokens/s", "tokens/s", "tokens a second"),
    _high("mfu", "", "MFU", "model FLOPs utilisation"),
    *PAID,
    _low("usd_per_hour", "USD", "USD/h", "USD per hour of everything rented"),
    _low("usd_per_step", "USD", "USD/step", "USD of a step"),
    _low("usd_per_billion_tokens", "USD", "USD/B", "USD of a billion tokens, at the speed of the steps"),
)
RUN_FIGURES = (
    _low("run_seconds", "seconds", "run", "time of the whole run, with failures and checkpoints"),
    _low("run_accelerator_hours", "accelerator-hours", "acc.-hours", "accelerator-hours of the whole run"),
    _low("run_usd", "USD", "USD a run", "USD of the whole run"),
)
WITHOUT_ROOM = frozenset(
    {"accelerators", "needed_bytes", "requests_that_fit", "kv_capacity_tokens", "longest_context_tokens"}
)  # figures that are as they stand of what does not fit, too
OF_RUN = frozenset(
    {"tokens", "epochs", "max_steps", "budget", "budget_accelerator_hours"}
)  # of these, a whole run is estimated
PLANS = {"serve": SERVING_PLAN, "train": TRAINING_PLAN}
ALIASES = {
    "serve": {
        "cost": "usd_per_million_tokens",
        "price": "usd_per_hour",
        "ttft": "ttft_seconds",
        "tpot": "tpot_seconds",
        "memory": "needed_bytes",
        "users": "requests_that_fit",
        "context": "longest_context_tokens",
        "speed": "tokens_per_second",
    },
    "train": {
        "cost": "usd_per_billion_tokens",
        "price": "usd_per_hour",
        "step": "step_seconds",
        "memory": "needed_bytes",
        "days": "run_seconds",
        "speed": "tokens_per_second",
    },
}


def columns(verb: str, axes: Sequence[Axis], *, encodes: bool = False) -> tuple[Column, ...]:
    """Every column of a comparison, from the question to the figures. `encodes`: whether a model of it writes no text
    of its own.
    """
    known = (*WHERE, *PLANS[verb])
    names = {column.name for column in known}
    names_of_axes = {axis.name for axis in axes}
    varied = tuple(
        Column(name=axis.name, kind=_kind(axis.values)) for axis in axes if axis.name not in {*names, "count"}
    )
    run = RUN_FIGURES if names_of_axes & OF_RUN else ()
    serving = (*SERVING_FIGURES, *(ENCODED_FIGURES if encodes else ()))
    figures = serving if verb == "serve" else (*TRAINING_FIGURES, *run)
    return (*WHERE, *varied, *PLANS[verb], *VERDICT, *figures)


def named(verb: str, asked_figure: str, known: Sequence[Column]) -> Column:
    """The figure that a word names: its own name, its heading, or the word that people use."""
    figures = {figure.name: figure for figure in known if figure.better}
    headings = {figure.short.lower(): figure.name for figure in figures.values()}
    name = {**headings, **ALIASES[verb]}.get(asked_figure.lower(), asked_figure)
    if name not in figures:
        raise unknown(
            "figure to compare",
            asked_figure,
            [*(word for word, of in ALIASES[verb].items() if of in figures), *figures],
        )
    return figures[name]


def ran(column: Column, row: Mapping[str, Any]) -> bool:
    """Whether a row has this figure of a run: what does not fit has those of memory alone, whatever its times would
    be with more of it.
    """
    return row["verdict"] != "does not fit" or not column.better or column.name in WITHOUT_ROOM


def better(column: Column, row: Mapping[str, Any]) -> float:
    """The sort key of a row, smaller for a better value; infinite where it has none."""
    value = row.get(column.name)
    if value is None:
        return float("inf")
    return float(value) if column.better == "low" else -float(value)


def _kind(values: Sequence[Any]) -> Kind:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "truth"
    if kinds and kinds <= {int}:
        return "whole"
    return "number" if kinds and kinds <= {int, float} else "text"

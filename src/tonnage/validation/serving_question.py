"""Inputs of a question of `serve` as a plan and a load, each checked: whoever estimates computes with them."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.media import with_load
from tonnage.estimate.serving.denoising import denoising
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.registry import unknown
from tonnage.question.subjects.load import LoadOptions
from tonnage.question.subjects.serving import ServingOptions
from tonnage.runtimes import serving_runtime, serving_runtimes
from tonnage.spec import Load, ServingPlan
from tonnage.validation.subjects import converted

OTHER = "other"  # an engine that tonnage does not describe: weights, cache and activations are those of transformers
MAX_COUNT = 1_000_000_000
# The least that an input may be; shares are at most 1, and all others are numbers from 0 on.
AT_LEAST_ONE = (
    "context",
    "concurrency",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "expert_parallel_size",
    "attention_data_parallel_size",
    "data_parallel_size",
    "max_num_batched_tokens",
    "max_num_seqs",
    "poll_passes",
    "input_tokens",
    "output_tokens",
    "rounds",
)
ABOVE_ZERO = ("gpu_memory_utilization", "requests_per_second", "burstiness")
SHARES = ("gpu_memory_utilization", "spread", "acceptance")
TEXTS = ("image_size", "denoising_cache")
NULLABLE = ("concurrency", "requests_per_second")  # of a load: as many as the replica holds


def load_of(question: Mapping[str, Any]) -> Load | None:
    """The load; None where the question names no lengths."""
    _check_numbers(question)
    fields = {name: value for name, value in question.items() if name in Load.__struct_fields__}
    if "input_tokens" not in fields or "output_tokens" not in fields:
        return None
    return converted(fields, Load)


def plan_of(question: Mapping[str, Any], model: Model, load: Load | None) -> ServingPlan:
    """The plan; its context is what a request of the load takes, else the model's own, where the question names
    none."""
    engine = question.get("engine", "vllm")
    if engine != OTHER and engine not in serving_runtimes():
        raise unknown("engine", str(engine), (*serving_runtimes(), OTHER))
    fields = {name: value for name, value in question.items() if name in ServingPlan.field_names()}
    if load is not None:
        length = int(load.input_tokens) + int(load.output_tokens)
        fields = {"context": length, **fields, "concurrency": fields.get("concurrency") or 1}
    if fields.get("context") is None:
        if model.context is None:
            raise MissingDatum("question.context is missing, and the model names none")
        fields["context"] = model.context
    if engine == OTHER:
        fields["engine"] = "transformers"
    contents = _contents(question, fields, model, load) if load is not None else {}
    if fields.get("speculative") and "acceptance" not in fields:
        fields |= _published(fields, model)
    return replace(converted(ServingPlan.nested(fields), ServingPlan), **contents)


CONTENTS = ("images", "image_size", "video_seconds", "video_fps", "audio_seconds")
DENOISED = ("denoising_steps", "block_length", "denoising_cache")


def _contents(question: Mapping[str, Any], fields: Mapping[str, Any], model: Model, load: Load) -> dict[str, Any]:
    """Images and sounds of the prompts, and how answers are denoised, as an answer takes them from these options; the
    context is longer by the tokens of images and sounds where none was said.
    """
    held = {name: question[name] for name in CONTENTS if name in question}
    own = {name: question[name] for name in DENOISED if name in question}
    if not held and model.diffusion is None and not own:
        return {}
    lengths: dict[str, Any] = {"input_tokens": int(load.input_tokens), "output_tokens": int(load.output_tokens)}
    options = with_load(model, ServingOptions(**own), LoadOptions(**lengths, **held))
    engine = serving_runtime(str(fields.get("engine", "vllm")), str(fields.get("engine_version", "")))
    found: dict[str, Any] = {"denoising": denoising(model, engine, options, Question())}
    if options.media is not None:
        found["media"] = options.media
        if "context" not in question:
            found["context"] = int(fields["context"]) + options.media.tokens
    return found


def _published(fields: Mapping[str, Any], model: Model) -> dict[str, float]:
    """The acceptance that an answer takes where a question says none."""
    from tonnage.estimate.serving.speculative import acceptance, known_methods

    method, tokens = fields["speculative"], fields.get("draft_tokens", 1)
    if method not in known_methods():
        raise unknown("question.speculative", str(method), known_methods())
    found = acceptance(model, method, int(tokens), str(fields.get("draft_model", "")))
    return {"acceptance": found.value, "acceptance_low": found.low, "acceptance_high": found.high}


def _check_numbers(question: Mapping[str, Any]) -> None:
    for name, value in question.items():
        if name in ("model", "on") or (isinstance(value, str | bool | list | tuple) and not _is_number(name)):
            continue
        if value is None and (name in NULLABLE or not _is_number(name)):
            continue
        _check_number(name, value)


def _is_number(name: str) -> bool:
    if name in TEXTS:
        return False
    plain = ServingPlan(context=1)
    defaults = {field: plain.field(field) for field in ServingPlan.field_names()}
    return name in AT_LEAST_ONE or name in ABOVE_ZERO or name in SHARES or type(defaults.get(name, 0)) in (int, float)


def _check_number(name: str, value: Any) -> None:
    is_whole = name in AT_LEAST_ONE
    least, most = (1 if is_whole else 0), (1 if name in SHARES else MAX_COUNT * 1e6)
    fits = type(value) in ((int,) if is_whole else (int, float)) and least <= value <= (MAX_COUNT if is_whole else most)
    if not fits or (name in ABOVE_ZERO and not value > 0):
        kind = "a whole number from 1 on" if is_whole else "above 0" if name in ABOVE_ZERO else "a number from 0 on"
        limit = " and at most 1" if name in SHARES else ""
        raise InvalidInput(
            "question.{name} must be {kind}{limit}. Got {value}.", name=name, kind=kind, limit=limit, value=shown(value)
        )

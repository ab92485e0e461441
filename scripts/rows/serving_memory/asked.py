"""A row about a served model as a question: model, machine, plan, and what was assumed."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rows import hparams
from rows.engine_versions import known_version
from rows.params import model_of, usable
from rows.serving_memory import words
from rows.source import Row
from rows.speed.models import plain_name, same_sizes
from rows.training.config import Config
from rows.training.machines import accelerator_of, is_known
from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.units import GIB
from tonnage.numerics.precisions import ALIASES
from tonnage.runtimes import ServingRuntime, serving_runtime, serving_runtimes
from tonnage.spec import Accelerator, Memory, ServingPlan

WEIGHTS = ("weight_quant", "quant", "quantization", "weights", "weight_dtype")
TENSOR = ("tp", "tensor_parallel_size", "tensor_parallel")
CONTEXT = ("max_model_len", "n_ctx", "ctx", "context", "context_length", "max_seq_len", "ctx_size")
PROMPT = ("input_len", "prompt", "input_length", "isl", "prompt_len")
ANSWER = ("output_len", "new_tokens", "max_new_tokens", "output_length", "osl")
# litgpt/generate/base.py: its default prompt is a sentence, and it generates 50 tokens
LITGPT = 64
LARGEST_MEMORY = 1_000_000  # GiB of one accelerator


class Asked(Struct, frozen=True, eq=False):
    """What is asked of the estimator. `engine`: its name, also of one that the estimator does not have; `runtime`:
    that one has, else None.
    """

    model: Model
    engine: str
    runtime: ServingRuntime | None
    plan: ServingPlan
    accelerator: Accelerator
    sized: bool
    gpus: int
    prompt: int | None
    notes: tuple[str, ...]


def asked(row: Row, references: Mapping[str, Row]) -> Asked:
    """A TonnageError that names the field where the row cannot be read."""
    c = Config(row.config)
    framework = c.text("framework", "engine")
    name = words.engine_of(framework, c.text("format"))
    notes: list[str] = []
    model = _model(row, references)
    weights = _weights(row, c, model)
    model, weights = _as_released(model, weights, c.text(*WEIGHTS))
    runtime, version = _runtime(name, words.version_of(framework, name), notes)
    chip, note = accelerator_of(c)
    if note and is_known(chip):
        notes.append(note)
    chip, sized = _sized(chip, c)
    prompt, context = _lengths(c, model, name, notes)
    if c.text("dtype") and (dtype := words.weights_of(c.text("dtype"))) in ("bf16", "fp16", "fp32"):
        model = replace(model, dtype={"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[dtype])
    batch = c.size("batch", "batch_size", "concurrency") or 1
    tensor = c.size(*TENSOR)
    if tensor is None:
        tensor = (c.size("gpus") or 1) if name == "vllm" else 1
        if tensor > 1:
            notes.append(f"all {tensor} GPUs are taken as tensor ranks")
    plan = ServingPlan(
        context=context,
        concurrency=batch,
        tensor_parallel_size=tensor,
        pipeline_parallel_size=c.size("pp", "pipeline_parallel_size") or 1,
        expert_parallel_size=tensor if c.flag("enable_expert_parallel") else c.size("ep", "expert_parallel_size") or 1,
        weights=weights,
        kv_cache=_kv_cache(c, runtime),
        engine=runtime.name if runtime else "transformers",
        engine_version=version,
        max_num_batched_tokens=_batched(c, prompt, batch),
        max_num_seqs=c.size("max_num_seqs"),
        gpu_memory_utilization=_fraction(c),
        enforce_eager=bool(c.flag("enforce_eager")),
    )
    return Asked(model, name, runtime, plan, chip, sized, c.size("gpus") or tensor, prompt, tuple(notes))


def _model(row: Row, references: Mapping[str, Row]) -> Model:
    """The catalogue's where it has the sizes that the row says, since it knows more; else the row's own; a
    checkpoint that others quantised is the model that they started from.
    """
    found = _catalogued(str(row.model.get("ref") or row.model.get("name") or row.model.get("id") or ""))
    said = row.model.get("hparams")
    referred = references.get(str(row.model.get("ref", "")))
    if not usable(said) and referred is not None:
        said, row = (
            referred.model.get("hparams"),
            replace(row, model={**row.model, "hparams": referred.model.get("hparams")}),
        )
    if found is not None:
        try:
            if not usable(said) or same_sizes(found, hparams.config(said, row.source_name)):
                return found
        except InvalidInput:
            return found
    return model_of(row, references)


def _catalogued(name: str) -> Model | None:
    from tonnage.models import kind, read

    bare = name.partition(" (")[0].strip()
    for each in dict.fromkeys(
        (bare, bare.rpartition("/")[2], words.without_format(bare), plain_name(words.without_format(bare)))
    ):
        try:
            if kind(each) != "derivative":  # the row says how its weights are stored
                return read(each, offline=True)
        except TonnageError:
            continue
    return None


def _weights(row: Row, c: Config, model: Model) -> str | None:
    """What weights are stored in: as the config says, then as the checkpoint's name does; None: as published."""
    name = str(row.model.get("name") or row.model.get("ref") or "").lower()
    named = name.rpartition("/")[2].removeprefix(words.without_format(name))
    text = c.text(*WEIGHTS)
    if c.text("format") == "gguf":
        return str(c.find(*WEIGHTS)[1]) if text else None
    if text in ("", "none", "false", "no"):
        return words.weights_of(named)
    found = words.weights_of(f"{text} {named}")
    if found is None and re.search(r"q\d|iq\d", text):
        return str(c.find(*WEIGHTS)[1])
    if found is None:
        raise MissingDatum(f"config.quantization {text!r} does not say how many bits weights have")
    own = str((model.quantization or {}).get("quant_method", ""))
    if own and found in (own, own.partition("_")[0]):
        return None  # the publisher's own checkpoint, whatever parts of it are in other formats
    if found == "fp8" and model.family.startswith("qwen3") and "transformers" in c.text("framework"):
        return "fp8-block"  # as their publisher's own checkpoints are
    return "fp8-channel" if found == "fp8" and re.search(r"dynamic|fbgemm|compressed", f"{text} {named}") else found


def _as_released(model: Model, weights: str | None, text: str) -> tuple[Model, str | None]:
    """Meta's own fp8 checkpoint leaves attention and the first and last layers in 16 bits (Llama Team 2024, sec.
    6.2).
    """
    if "fbgemm" not in text or not model.family.startswith("llama"):
        return model, weights
    kept = ["self_attn", "model.layers.0", f"model.layers.{model.num_layers - 1}", "lm_head"]
    return replace(model, quantization={"quant_method": "fbgemm_fp8", "modules_to_not_convert": kept}), None


def _runtime(name: str, version: str, notes: list[str]) -> tuple[ServingRuntime | None, str]:
    if name not in serving_runtimes():
        return None, ""
    version, note = known_version(name, version)
    if note:
        notes.append(note)
    return serving_runtime(name, version), version


def _sized(chip: Accelerator, c: Config) -> tuple[Accelerator, bool]:
    """The accelerator with the memory that the row says a program saw, and whether any is known."""
    stated = c.find("total_memory_gib", "gpu_memory_gib")[1]
    text = re.search(r"\((\d+\.\d+) gib\)", c.text("gpu"))
    size = float(stated) if isinstance(stated, int | float) else float(text[1]) if text else None
    if size is None:
        return chip, is_known(chip)
    if not 0 < size <= LARGEST_MEMORY:
        raise InvalidInput(
            f"the memory of an accelerator must be above 0 and at most {LARGEST_MEMORY:,} GiB. Got {size:g}."
        )
    memory = Memory(nominal_bytes=chip.memory.nominal_bytes, runtime_bytes=round(size * GIB), kind=chip.memory.kind)
    return replace(chip, memory=memory), True


def _lengths(c: Config, model: Model, engine: str, notes: list[str]) -> tuple[int | None, int]:
    """(tokens of a prompt, tokens of a request)."""
    prompt, answer, context = c.length(*PROMPT), c.length(*ANSWER), c.size(*CONTEXT)
    if prompt is not None and answer is not None:
        return prompt, prompt + answer
    if context is None and engine == "litgpt":
        notes.append(f"{LITGPT} tokens are taken: a short prompt and the 50 tokens that litgpt generates by default")
        return LITGPT, LITGPT
    if context is None:
        context = model.context
        if context is None:
            raise MissingDatum("config.max_model_len is missing, and the model names no context")
        notes.append(f"the model's own context of {context} tokens is taken")
    return prompt, context


def _batched(c: Config, prompt: int | None, batch: int) -> int | None:
    said = c.size("max_num_batched_tokens", "chunked_prefill_size")
    return said or (prompt * batch if prompt is not None else None)


def _fraction(c: Config) -> float | None:
    value = c.find("gpu_memory_utilization", "mem_fraction_static", "kv_cache_free_gpu_mem_fraction")[1]
    if value is None:
        return None
    if not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidInput(f"config.gpu_memory_utilization must be above 0 and at most 1. Got {value!r}.")
    return float(value)


def _kv_cache(c: Config, runtime: ServingRuntime | None) -> str | None:
    text: Any = c.text("kv_cache_dtype", "kv_dtype", "kv_cache")
    if text in ("", "auto"):
        return None
    known = runtime.kv_cache if runtime else {}
    return str(known.get(text) or ALIASES.get(text, text))

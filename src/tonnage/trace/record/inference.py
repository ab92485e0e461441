"""Generation with a model of transformers: the prompt, then the first and the last new token, without those between."""

import inspect
from collections.abc import Iterator
from typing import Any, Literal

import torch

from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import option_name
from tonnage.trace.record.fake.recorder import Recorder
from tonnage.trace.record.train import Progress

Kind = Literal["static", "dynamic"]
CACHES = ("cache", "past_key_values", "cache_params")  # forward's name for it: since transformers 5.24, before, Mamba
STAGES = ("Model", "Prefill", "First decode", "Last decode")
JUMP = (
    "between the first and the last decode step the cache is put to its last length at once: what a dynamic "
    "cache leaves "
    "behind in the allocator as it grows token by token is not seen."
)


def notes(cache: Kind, new_tokens: int) -> tuple[str, ...]:
    """Notes on the limits of such a recording."""
    return (JUMP,) if cache == "dynamic" and new_tokens > 3 else ()


def generate(
    recorder: Recorder,
    model: Any,
    *,
    batch: int,
    prompt: int,
    new_tokens: int,
    cache: Kind = "dynamic",
    progress: Progress = lambda stage: None,
) -> Any:
    """Greedy generation as transformers' generate() does it, under inference_mode; returns the cache as the last step
    leaves it.

    A prompt of `prompt` tokens gives the first of `new_tokens`, each decode step one more. Memory of the cache is of
    category buffer, and its module is past_key_values.layers.<i>. Raises InvalidInput, MissingDatum.
    """
    for name, value in (("batch", batch), ("prompt", prompt), ("new_tokens", new_tokens)):
        if value < 1:
            raise InvalidInput("{name} must be at least 1. Got {value}.", name=option_name(name), value=value)
    model.eval()
    recorder.modules.name(model)
    recorder.sort(model.parameters(), "parameter")
    recorder.sort(model.buffers(), "buffer")
    recorder.mark(STAGES[0], "prefill")
    with torch.inference_mode():
        run = _Generation(recorder, model, _cache(model, cache, prompt + new_tokens - 1))
        progress("prefill")
        ids = torch.zeros((batch, prompt), dtype=torch.long, device=recorder.device_type)
        recorder.sort(iter([ids]), "buffer")
        token = run.step(ids, STAGES[1])
        if new_tokens > 1:
            progress("decode")
            token = run.step(token, STAGES[2])
        if new_tokens > 2:
            _jump(run.cache, prompt + new_tokens - 2, recorder)
            token = run.step(token, STAGES[3])
    recorder.keep(model, run.cache, token, ids)
    return run.cache


class _Generation:
    """The state of one generation: forward passes that share a cache."""

    def __init__(self, recorder: Recorder, model: Any, cache: Any):
        self.recorder, self.model, self.cache = recorder, model, cache
        takes = inspect.signature(model.forward).parameters
        self.name = next((name for name in CACHES if name in takes), "past_key_values")
        self.options: dict[str, Any] = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}

    def step(self, ids: torch.Tensor, stage: str) -> torch.Tensor:
        """Run the model on `ids`, mark the stage's end, and return the next token."""
        self.recorder.phase = stage.lower()
        output = self.model(input_ids=ids, use_cache=True, **{self.name: self.cache}, **self.options)
        last = output.logits[:, -1, :].to(copy=True, dtype=torch.float32)  # as generate() does
        token: torch.Tensor = last.argmax(dim=-1, keepdim=True)
        del output, last
        name_cache(self.recorder, self.cache)
        self.recorder.mark(stage)
        return token


def _cache(model: Any, kind: Kind, length: int) -> Any:
    from transformers import DynamicCache, StaticCache

    if kind not in ("static", "dynamic"):
        raise InvalidInput("cache must be static or dynamic. Got {kind!r}.", kind=kind)
    try:
        if kind == "static":
            return StaticCache(config=model.config, max_cache_len=length)
        return DynamicCache(config=model.config)
    except KeyError as error:
        raise MissingDatum(
            "transformers has no {kind} cache for layers of type {error}.", kind=kind, error=error
        ) from None


def _tensors(cache: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors of a cache by name, whatever its layers are."""
    for number, layer in enumerate(cache.layers):
        for name, value in vars(layer).items():
            held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
            for tensor in held:
                if isinstance(tensor, torch.Tensor) and tensor.dim() > 0:
                    yield f"past_key_values.layers.{number}.{name}", tensor


def name_cache(recorder: Recorder, cache: Any) -> None:
    """Set category and name of a cache's memory."""
    for name, tensor in _tensors(cache):
        number = recorder.number_of(tensor)
        if number is not None:
            allocation = recorder.events.allocations[number]
            allocation.category, allocation.module = "buffer", name


def _jump(cache: Any, length: int, recorder: Recorder) -> None:
    """Change a cache to its state after `length` tokens."""
    for layer in cache.layers:
        window = getattr(layer, "sliding_window", None)
        if hasattr(layer, "cumulative_length_int"):
            layer.cumulative_length_int = length
        elif isinstance(getattr(layer, "cumulative_length", None), int):
            layer.cumulative_length = length
        if hasattr(layer, "max_cache_len") or not isinstance(getattr(layer, "keys", None), torch.Tensor):
            continue  # at its final length already, or without keys
        for name in ("keys", "values"):
            held = getattr(layer, name)
            long = min(length, window) if window else length
            grown = held.new_empty(*held.shape[:-2], long, held.shape[-1])
            del held
            setattr(layer, name, grown[:, :, -window + 1 :] if window else grown)
            del grown
    name_cache(recorder, cache)

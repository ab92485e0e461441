"""The first sentence of a diagnosis: in which phase memory ran out, and of what."""

from collections.abc import Mapping

from tonnage.documents.interchange.diagnose import Cause, Phase
from tonnage.interchange.diagnose.failure import Failure
from tonnage.kernel.message import Message
from tonnage.kernel.units import human

_WHEN: Mapping[Phase, str] = {
    "loading weights": "out of memory while loading the weights: {what}",
    "optimizer step": "out of memory in the optimizer step: {what}",
    "forward": "out of memory in the forward pass: {what}",
    "backward": "out of memory in the backward pass: {what}",
    "loss": "out of memory in the loss: {what}",
    "graph capture": "out of memory while capturing CUDA graphs: {what}",
    "cache allocation": "out of memory while allocating the KV cache: {what}",
    "profiling": "out of memory in the engine's profiling run: {what}",
    "serving": "out of memory while serving requests: {what}",
    "checkpoint saving": "out of memory while saving a checkpoint: {what}",
    "communication": "out of memory in communication: {what}",
    "host": "out of memory on the host: {what}",
    "unknown": "out of memory, in a phase that the log does not show: {what}",
}
_WHAT: Mapping[Cause, str] = {
    "weights": "the weights do not fit",
    "kv cache": "nothing is left for the KV cache",
    "activations": "the activations do not fit",
    "logits": "the logits do not fit",
    "optimizer states": "the optimizer states, which the first step allocates, do not fit",
    "gradients": "the buckets of gradients do not fit",
    "cuda graphs": "nothing is left for CUDA graphs",
    "communication buffers": "nothing is left for NCCL's buffers",
    "context too long": "one request of the whole context does not fit in the KV cache",
    "another process": "another process holds the memory",
    "fragmentation": "free memory is in pieces too small",
    "host memory": "the host's memory is full",
    "shared memory": "/dev/shm is too small",
    "unknown": "an allocation failed",
}


def cause_sentence(failure: Failure) -> str:
    """Phase and cause in one sentence."""
    return Message(_WHEN[failure.phase], what=_what(failure))


def logits_sentence(failure: Failure, tokens: int, vocabulary: int, width: int) -> str:
    """The same, where the logits have exactly the bytes that could not be allocated."""
    what = Message(
        "{tried} of logits ({tokens:,} tokens x {vocabulary:,} entries x {width} bytes) do not fit",
        tried=human(failure.values["tried"], "bytes"),
        tokens=tokens,
        vocabulary=vocabulary,
        width=width,
    )
    return Message(_WHEN[failure.phase], what=what)


def _what(failure: Failure) -> str:
    values = failure.values
    if failure.cause == "another process" and (text := _others(values)):
        return text
    if failure.cause == "fragmentation" and (text := _pieces(values)):
        return text
    if failure.cause == "context too long" and (text := _context(values)):
        return text
    if failure.cause == "kv cache" and (text := _cache(values)):
        return text
    if failure.cause == "host memory" and values.get("wanted") and values.get("free"):
        return Message(
            "{wanted} is needed and {free} is free", wanted=_size(values["wanted"]), free=_size(values["free"])
        )
    what = Message(_WHAT[failure.cause])
    amounts = _amounts(values)
    if failure.cause == "unknown" and amounts:
        return amounts
    return Message("{what} ({amounts})", what=what, amounts=amounts) if amounts else what


def _amounts(values: Mapping[str, float]) -> str:
    """What was asked for, and what was there."""
    tried, free, total = values.get("tried"), values.get("free"), values.get("total")
    if tried and free is not None and total:
        return Message(
            "{tried} was asked for, {free} of {total} was free",
            tried=_size(tried),
            free=_size(free),
            total=_size(total),
        )
    if tried and total:
        return Message("{tried} was asked for, of {total}", tried=_size(tried), total=_size(total))
    return Message("{tried} was asked for", tried=_size(tried)) if tried else ""


def _others(values: Mapping[str, float]) -> str:
    free, total, wanted = values.get("free"), values.get("total"), values.get("wanted")
    if wanted and free is not None and total:
        return Message(
            "{free} of {total} is free and the engine asks for {wanted}: another process holds the rest",
            free=_size(free),
            total=_size(total),
            wanted=_size(wanted),
        )
    held = values.get("in_use_by_other_processes")
    if held is None and total and free is not None:
        own = values.get("in_use_by_this_process")
        if own is None:
            own = values.get("reserved", values.get("allocated", 0.0) + values.get("reserved_but_unallocated", 0.0))
        held = total - free - own
    if not held or not total:
        return ""
    return Message("other processes hold {held} of the GPU's {total}", held=_size(held), total=_size(total))


def _pieces(values: Mapping[str, float]) -> str:
    held = values.get("reserved_but_unallocated") or values.get("reserved", 0) - values.get("allocated", 0)
    tried = values.get("tried")
    if not held or not tried:
        return ""
    return Message(
        "{held} is reserved by PyTorch and unallocated, in pieces smaller than the {tried} that was asked for",
        held=_size(held),
        tried=_size(tried),
    )


def _context(values: Mapping[str, float]) -> str:
    longest, needed, available = (values.get(name) for name in ("max_model_len", "needed_kv", "available_kv"))
    fits = values.get("estimated_max_model_len") or values.get("kv_tokens")
    if longest and needed and available is not None:
        return Message(
            "{tokens:,} tokens need {needed} of KV cache and {available} is left",
            tokens=int(longest),
            needed=_size(needed),
            available=_size(available),
        )
    if longest and fits:
        return Message(
            "the KV cache holds {fits:,} tokens, fewer than the {tokens:,} of the context",
            fits=int(fits),
            tokens=int(longest),
        )
    return ""


def _cache(values: Mapping[str, float]) -> str:
    left, weights, activations = (values.get(name) for name in ("available_kv", "weights", "activations"))
    if left is not None and left <= 0 and weights and activations:
        return Message(
            "nothing is left for the KV cache: weights take {weights}, activations {activations}",
            weights=_size(weights),
            activations=_size(activations),
        )
    if values.get("wanted_tokens") and values.get("free_tokens") is not None:
        return Message(
            "the KV cache has room for {free:,} tokens and {wanted:,} are needed",
            free=int(values["free_tokens"]),
            wanted=int(values["wanted_tokens"]),
        )
    return ""


def _size(value: float) -> str:
    return human(value, "bytes")

"""Fixes by rule, from the cause alone: the most bytes for the least time first, without numbers of the run."""

from collections.abc import Iterator, Mapping
from math import floor
from typing import Any

from msgspec import Struct

from tonnage.documents.advice import Changes
from tonnage.documents.interchange.diagnose import Cause, FixDocument
from tonnage.interchange.diagnose.failure import Failure
from tonnage.interchange.diagnose.fixes.flags import flag_of
from tonnage.interchange.diagnose.fixes.words import words_of
from tonnage.interchange.diagnose.tools import SERVE

MOST = 6
N = "N"  # of a value that depends on the run
STEP, MOST_SHARE = 0.05, 0.97  # of an engine's share of the memory
USUAL_SHARE = {"vllm": 0.92, "sglang": 0.88, "tensorrt-llm": 0.9}


class Rule(Struct, frozen=True):
    """A fix: an option of ours, its value, what it changes, and why it frees memory."""

    option: str
    value: Any = N
    changes: Changes = "nothing"
    why: str = ""


_MORE_GPUS = Rule("larger_gpu", changes="machine")
_RECOMPUTE = Rule("recompute", "full", why="keeps a layer's input alone; a step takes a fifth to a third longer")
_SMALLEST_BATCH = Rule("micro_batch_size", 1, why="activations and logits shrink with it; the global batch stays")
_SHORTER = Rule("sequence_length", N, "workload")
_LIGER = Rule("liger", True, why="makes no logits of the whole micro-batch")
_FUSED_LOSS = Rule("loss", "fused", why="keeps no fp32 copies of the logits")
_SHARDED = Rule("zero_stage", 3, why="each rank keeps a part")
_EIGHT_BITS = Rule("optimizer", "adamw-8bit", "numerics", "2 bytes a parameter instead of 8")
_ON_HOST = Rule("offload_optimizer", "cpu", why="slow: PCIe in each step")
_LORA = Rule("method", "qlora", "method", "no gradients and optimizer states of the base model")
_OUTPUTS_ON_HOST = Rule("offload_activations", "cpu", why="slow: PCIe in each step")
_FOUR_BITS = Rule("base_weights", "nf4", "numerics", "a quarter of the bytes of 16 bits")
_SEGMENTS = Rule("expandable_segments", True, why="free pieces become one")

TRAINING: Mapping[Cause, tuple[Rule, ...]] = {
    "activations": (
        _RECOMPUTE,
        _SMALLEST_BATCH,
        _LIGER,
        _SHARDED,
        _SHORTER,
        _OUTPUTS_ON_HOST,
        _MORE_GPUS,
    ),
    "logits": (_LIGER, _FUSED_LOSS, _SMALLEST_BATCH, _SHORTER, Rule("tensor_parallel_size"), _RECOMPUTE),
    "optimizer states": (_SHARDED, _EIGHT_BITS, _LORA, _ON_HOST, _MORE_GPUS),
    "gradients": (_SHARDED, _LORA, _ON_HOST, _MORE_GPUS),
    "weights": (
        _SHARDED,
        _FOUR_BITS,
        _LORA,
        Rule("offload_parameters", "cpu"),
        _MORE_GPUS,
    ),
    "kv cache": (_RECOMPUTE, _SHORTER, _SMALLEST_BATCH),
    "communication buffers": (Rule("memory_margin"), _RECOMPUTE, _SMALLEST_BATCH, _SHARDED),
    "cuda graphs": (_SMALLEST_BATCH, _RECOMPUTE),
    "unknown": (_RECOMPUTE, _SMALLEST_BATCH, _LIGER, _SHARDED, _EIGHT_BITS, _SHORTER),
}
LOADING = (
    _FOUR_BITS,
    Rule("device_map", why="layers over several GPUs"),
    _SHARDED,
    _MORE_GPUS,
)  # of no tool that is known
SAVING = (Rule("save_sharded", True, why="no rank gathers all weights"), _SHARDED, _MORE_GPUS)

_QUANTIZED = Rule("weights", "fp8", "numerics", "half of the bytes of 16 bits")
_CACHE_IN_8_BITS = Rule("kv_cache", "fp8", "numerics", "twice as many tokens in the same bytes")
_SHORTER_CONTEXT = Rule("context", N, "workload")
_MORE_TENSOR = Rule("tensor_parallel_size", 2, "machine", "each GPU keeps a part of weights and cache")
_SMALLER_STEPS = Rule("max_num_batched_tokens", 2048, why="activations of prefill shrink with it")
_FEWER_REQUESTS = Rule("max_num_seqs", N, "workload")
_EAGER = Rule("enforce_eager", True, why="no graphs; decoding is slower")
_FEWER_GRAPHS = Rule("graph_sizes", 64, why="batches beyond it run without graphs")
_FEWER_LAYERS = Rule("layers_on_accelerator", N, why="slower: the others run on the CPU")
_EXPERTS_ON_HOST = Rule("expert_layers_on_host", N, why="of mixtures of experts")

SERVING: Mapping[Cause, tuple[Rule, ...]] = {
    "weights": (_QUANTIZED, _MORE_TENSOR, _EXPERTS_ON_HOST, _FEWER_LAYERS, Rule("weights_on_host", N)),
    "kv cache": (_CACHE_IN_8_BITS, _SHORTER_CONTEXT, _FEWER_REQUESTS, _QUANTIZED, _MORE_TENSOR, _FEWER_LAYERS),
    "context too long": (_SHORTER_CONTEXT, _CACHE_IN_8_BITS, _QUANTIZED, _MORE_TENSOR),
    "activations": (_SMALLER_STEPS, Rule("attention", "flash"), _SHORTER_CONTEXT, _FEWER_REQUESTS, _MORE_TENSOR),
    "logits": (_FEWER_REQUESTS, _SMALLER_STEPS, _MORE_TENSOR),
    "cuda graphs": (_FEWER_GRAPHS, _EAGER, _FEWER_REQUESTS),
    "communication buffers": (Rule("memory_margin"), _SHORTER_CONTEXT),
    "unknown": (_QUANTIZED, _SHORTER_CONTEXT, _FEWER_REQUESTS, _MORE_TENSOR),
}
# Whether the engine's share of the memory is raised or lowered. What it sets aside for the cache grows with the share;
# what is allocated beside it, and later, shrinks.
UP, DOWN = 1, -1
OF_LOG = "what fits by the log's own numbers"
RAISE = "raise it: the KV cache gets what weights leave of it"
LOWER = "lower it: this memory lies outside it"
SHARE: Mapping[tuple[str, str], int] = {
    ("cache allocation", "kv cache"): UP,
    ("cache allocation", "context too long"): UP,
    ("profiling", "kv cache"): UP,
    ("serving", "kv cache"): UP,
    ("graph capture", "cuda graphs"): DOWN,
    ("serving", "activations"): DOWN,
    ("serving", "logits"): DOWN,
    ("profiling", "logits"): DOWN,
    ("communication", "communication buffers"): DOWN,
    ("serving", "unknown"): DOWN,
    ("graph capture", "unknown"): DOWN,
}
_HOST: Mapping[Cause, tuple[Rule, ...]] = {
    "host memory": (
        Rule("low_cpu_memory"),
        Rule("data_loader_workers", 0),
        Rule("host_memory_limit", N),
        Rule("host_memory"),
    ),
    "shared memory": (Rule("shm_size", "16g"), Rule("data_loader_workers", 0)),
}
_NEEDS_FLAG = frozenset(
    {
        *("layers_on_accelerator", "expert_layers_on_host", "weights_on_host", "graph_sizes", "enforce_eager"),
        *("attention", "tensor_parallel_size", "max_num_batched_tokens"),
    }
)
# Of tools that have a loss of their own, or that shard nothing.
_HAS_OWN = {"unsloth": ("liger", "zero_stage"), "megatron": ("liger",)}
_ANOTHER = (Rule("stop_others", why="nvidia-smi names them"), Rule("other_gpu", N))


def fixes_by_rule(failure: Failure) -> list[FixDocument]:
    """What frees memory for this cause, at most six."""
    fixes: list[FixDocument] = []
    for rule in _rules(failure):
        fix = _fix(failure, rule)
        if fix.text not in [other.text for other in fixes]:
            fixes.append(fix)
    return fixes[:MOST]


def leads(fix: FixDocument, failure: Failure, usable: float) -> bool:
    """Whether a fix moves the engine's share of the memory, whose direction is a fact of the phase: not up where the
    cache lacks more than the step gives it. `usable`: bytes of an accelerator.
    """
    if fix.why == RAISE:
        return failure.values.get("needed_kv", 0.0) - failure.values.get("available_kv", 0.0) <= STEP * usable
    return fix.why == LOWER


def _rules(failure: Failure) -> Iterator[Rule]:
    cause = failure.cause
    if cause in _HOST:
        yield from _of_host(failure)
        return
    if cause == "another process":
        if free := _free_share(failure):
            yield Rule("gpu_memory_utilization", free, why="what is free now")
        if flag_of(failure.tool.name, "engine_sleeps", True):
            yield Rule("engine_sleeps", True, why="the engine that generates is such a process")
        yield from _ANOTHER
        return
    if cause == "fragmentation":
        yield _SEGMENTS
    grows = failure.grows if failure.grows not in ("fragmentation", "another process") else "unknown"
    if (share := _share(failure, grows)) is not None:
        yield share
    serves = failure.tool.verb == SERVE or failure.phase == "serving"
    if failure.phase == "checkpoint saving" and not serves:
        yield from SAVING
        return
    table = SERVING if serves else TRAINING
    rules = table.get(grows, table["unknown"])
    if failure.phase == "loading weights" and grows == "weights" and not failure.tool.verb:
        rules = LOADING
    for rule in rules:
        if _means_something(failure, rule):
            yield _with_value(failure, rule)


def _of_host(failure: Failure) -> Iterator[Rule]:
    """Memory of the host; engines of GGUF keep what is not on the GPU there."""
    if failure.tool.name in ("ollama", "llama-cpp") and failure.cause == "host memory":
        yield Rule("context", N, "workload", "the cache of layers on the CPU is in host memory")
        yield Rule("kv_cache", "q8_0", "numerics")
        yield Rule("max_num_seqs", 1, "workload")
        yield Rule("smaller_model", changes="numerics")
        yield Rule("swap", why="slow")
        return
    for rule in _HOST[failure.cause]:
        if rule.option != "data_loader_workers" or failure.tool.verb != SERVE:
            yield rule


def _share(failure: Failure, grows: Cause) -> Rule | None:
    """The engine's share of the memory, up or down: the two directions are opposite."""
    tool = failure.tool.name
    usual = USUAL_SHARE.get(tool)
    if usual is None:
        return None
    direction = SHARE.get((failure.phase, grows))
    if failure.phase == "cache allocation" and failure.hit.pattern.tool == "pytorch":
        direction = DOWN  # the cache was larger than what was free
    if tool == "tensorrt-llm" and failure.phase == "cache allocation" and grows == "kv cache":
        direction = DOWN  # of the memory that is free after the weights
    if direction is None:
        return None
    values = failure.values
    now = values.get("gpu_memory_utilization", values.get("mem_fraction_static", usual))
    value = round(min(now + STEP, MOST_SHARE) if direction == UP else max(now - STEP, 0.1), 2)
    if direction == UP and _is_too_little(values, value - now, now):
        return None
    if (direction == UP and value <= now) or (direction == DOWN and value >= now):
        return None
    why = RAISE if direction == UP else LOWER
    return Rule("gpu_memory_utilization", f"{value:g}", why=why)


def _is_too_little(values: Mapping[str, float], more: float, now: float) -> bool:
    """Whether so much more of the GPU is less than the cache lacks; the GPU has at least weights and cache over the
    share of now.
    """
    needed, left, weights = (values.get(name, 0.0) for name in ("needed_kv", "available_kv", "weights"))
    return needed - left > 1.5 * more * (weights + left) / now if needed and left and weights else False


def _free_share(failure: Failure) -> str:
    """The share of the GPU that is free, of an engine that takes one."""
    free, total = failure.values.get("free"), failure.values.get("total")
    if failure.tool.name != "vllm" or not free or not total:
        return ""
    share = floor(100 * free / total) / 100
    return f"{share:g}" if 0.05 <= share < 1 else ""


def _means_something(failure: Failure, rule: Rule) -> bool:
    """Of an engine, what it has a flag for, or every engine can do; training can do all of them."""
    tool = failure.tool
    has_flag = flag_of(tool.name, rule.option, rule.value) is not None
    if tool.verb == SERVE:
        return has_flag or rule.option not in _NEEDS_FLAG
    if rule.option in _HAS_OWN.get(tool.name, ()):
        return False
    return has_flag or rule.option not in ("tensor_parallel_size", "loss")


def _with_value(failure: Failure, rule: Rule) -> Rule:
    """The rule with a value that the log has."""
    if rule.option != "context" or rule.value != N:
        return rule
    values = failure.values
    fits = values.get("estimated_max_model_len") or values.get("kv_tokens")
    if not fits and values.get("needed_kv") and values.get("available_kv", 0) > 0 and values.get("max_model_len"):
        fits = values["max_model_len"] * values["available_kv"] / values["needed_kv"]
    longest = values.get("max_model_len")
    if not fits or (fits >= longest if longest else "estimated_max_model_len" not in values):
        return rule  # the tokens of the whole cache are no context where nobody says how long that was
    return Rule(rule.option, int(fits), rule.changes, OF_LOG)


def _fix(failure: Failure, rule: Rule) -> FixDocument:
    flag = flag_of(failure.tool.name, rule.option, rule.value)
    return FixDocument(
        text=flag if flag is not None else words_of(rule.option, rule.value),
        in_flags=flag is not None,
        changes=rule.changes,
        basis="rule",
        why=rule.why,
    )

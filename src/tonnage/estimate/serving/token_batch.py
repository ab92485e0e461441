"""How much an engine takes on at once: tokens of one forward pass, and requests."""

from msgspec import Struct

from tonnage.runtimes import BatchLimit, ServingRuntime
from tonnage.spec import Accelerator, ServingPlan


class Limits(Struct, frozen=True):
    """`tokens` of one forward pass; `requests` that run at once, and that the sampler sees."""

    tokens: int
    requests: int


def batch_limits(engine: ServingRuntime, plan: ServingPlan, accelerator: Accelerator | None) -> Limits:
    """What the plan says, else the engine's defaults on this accelerator, bounded as vLLM bounds them: no pass is
    larger than all requests at full length, and no more requests run than a pass has tokens.
    """
    limit = next(each for each in engine.limits if _holds(each, accelerator, plan.context))
    ranks = plan.tensor_parallel_size * plan.pipeline_parallel_size if limit.each_rank else 1
    requests = plan.max_num_seqs or limit.requests * ranks or plan.concurrency
    tokens = plan.max_num_batched_tokens
    if tokens is None:
        full = requests * plan.context
        tokens = plan.context if limit.one_prompt else min(limit.tokens * ranks or full, full)
        if limit.whole_context:
            tokens = max(limit.tokens, plan.context)
    if plan.chunked_prefill is False:
        tokens = max(tokens, plan.context)  # a prompt is one pass
    if engine.cells is not None:
        return Limits(tokens, requests)
    return Limits(tokens, requests if plan.max_num_seqs else min(requests, tokens))


def _holds(limit: BatchLimit, accelerator: Accelerator | None, context: int) -> bool:
    if limit.up_to_context and context > limit.up_to_context:
        return False
    if accelerator is None:
        return not (limit.kind or limit.named or limit.memory_bytes)
    name = accelerator.name.lower()
    return (
        limit.kind in ("", accelerator.kind)
        and limit.named in name
        and not any(word in name for word in limit.but_named)
        and accelerator.memory.usable_bytes >= limit.memory_bytes
    )

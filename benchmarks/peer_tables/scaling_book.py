"""The roofline of "How to Scale Your Model" (jax-ml.github.io/scaling-book, chapter 7, "All About Transformer
Inference") as it is published:

step of a batch = B x cache / bandwidth + max(2 B x parameters / FLOP/s, bytes of parameters / bandwidth); a prompt: 2 x
tokens x parameters / FLOP/s

Nothing in it is fitted. It has no links, no experts and no scheduler: of experts the FLOPs here are of those chosen,
and the bytes of all.
"""

from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.weights.storage import stored_bytes
from tonnage.spec import ServingPlan
from tonnage.validation.serving import ServingCase


def milliseconds(asked: ServingCase) -> tuple[float, float]:
    """Of the first token, of a prompt alone; and of one more, halfway through the answer."""
    size, chip, load, model = asked.cluster.size, asked.cluster.accelerator, asked.load, asked.model
    halfway = int(load.input_tokens) + int(load.output_tokens) // 2
    cache = serving_memory(model, ServingPlan(context=halfway, kv_cache=asked.plan.kv_cache)).fullest.kept.value
    weights = stored_bytes(model, asked.plan.weights, drafts=False, towers=False)
    bandwidth, peak = size * chip.memory.bytes_per_second, size * chip.peak(_precision(asked))  # type: ignore[operator]
    flops, batch = 2 * model.num_active_parameters(), load.concurrency or 1
    step = batch * cache / bandwidth + max(flops * batch / peak, weights / bandwidth)
    return 1000 * flops * load.input_tokens / peak, 1000 * step


def _precision(asked: ServingCase) -> str:
    """What products are in: the type of the weights where the accelerator multiplies it, else bf16."""
    narrow = {"mxfp4": "fp4"}.get(asked.precision, asked.precision)
    return narrow if narrow in asked.cluster.accelerator.dense_flops else "bf16"

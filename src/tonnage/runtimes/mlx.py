"""MLX on Apple's GPUs, as mlx-lm serves it: weights in MLX's own files, a cache that grows with each request, and no
share of the memory taken beforehand. LM Studio's MLX engine runs the same library.

`mlx_lm.server` wires what Metal recommends at most, which is the memory that the catalogue calls usable
(mlx-lm, mlx_lm/generate.py: wired_limit).
"""

from shlex import quote

from tonnage.kernel.message import Message
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.runtimes.parts.start import Start

PREFILL_STEP = 2048  # mlx-lm, mlx_lm/generate.py: generate_step, prefill_step_size
BATCH = 32  # mlx-lm, mlx_lm/server.py: --decode-concurrency; further requests wait
# mlx-lm, mlx_lm/models/cache.py: KVCache.step; RotatingKVCache holds a window and the tokens of one prefill step
CELLS = Cells(multiple=256, windows=True, flash=True, host_table=False, by_layers=False)


def launch(start: Start) -> str:
    plan = start.plan
    start.note_nodes()
    words = ["mlx_lm.server", f"--model {quote(start.name)}"]
    tokens = plan.max_num_batched_tokens
    words += [f"--prefill-step-size {tokens}"] if tokens and tokens != PREFILL_STEP else []
    words += [f"--decode-concurrency {plan.concurrency}"] if plan.concurrency > BATCH else []
    words += [f"--draft-model {quote(start.draft)}"] if start.draft else []
    words += [f"--num-draft-tokens {plan.drafting.draft_tokens}"] if start.draft else []
    start.notes.append(
        Message(
            "mlx_lm.server takes no limit of the context: a longer request grows its cache until memory is full. "
            "This answer counts {context} tokens.",
            context=plan.context,
        )
    )
    return " ".join(words)


SERVING_RUNTIMES.add(
    "mlx",
    ServingRuntime(
        name="mlx",
        version="mlx-lm 0.32",
        source="mlx-lm, mlx_lm/models/cache.py: KVCache, RotatingKVCache; mlx-lm, mlx_lm/generate.py: generate_step",
        memory_share=None,
        share_of="nothing",
        limits=(BatchLimit(tokens=PREFILL_STEP, requests=0),),
        paging=None,
        cells=CELLS,
        process=0,  # what Metal holds for a process nobody published
        communicators=0,
        graphs=(0, 0),
        overhead_source="mlx-lm, mlx_lm/generate.py: peak_memory counts arrays alone",
        # prompts are evaluated up to their caches, so that only the last token has logits: in the model's type,
        # log-probabilities, and what the sampler makes of them
        logits_bytes=6,
        recurrent_bytes=4,  # mlx-lm, mlx_lm/models/gated_delta.py: gated_delta_update, state in float32
        mlx=True,
        narrower_weights=("mlx-8bit", "mlx-4bit"),
        faster_weights=("mlx-4bit",),
        launch=launch,
        listed=6,
        aliases=("mlxlm",),
        settings=("draft_tokens", "speculative"),
        drafts=("draft",),
        prefix_caching="mlx-lm, mlx_lm/server.py: --prompt-cache-size 10",
        kv_cache_source="mlx-lm, mlx_lm/server.py: the cache has the type of the activations",
        formats=("bf16", "fp16", "fp32", "mxfp4", "mxfp8", "nvfp4"),
        formats_source="mlx, python/mlx/nn/layers/quantized.py: modes affine, mxfp4, mxfp8, nvfp4",
        vendors=("Apple",),
        # mlx-lm, mlx_lm/generate.py: generate_step evaluates the states of the caches after each step of a prompt, and
        # MLX computes nothing that these do not need
        evaluates_caches=True,
        mixes_prompts=False,
    ),
)

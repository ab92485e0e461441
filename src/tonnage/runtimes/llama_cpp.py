"""llama.cpp: allocates what it needs, in buffers that it prints: model, KV, compute and output, on each device and
in host memory.
"""

from collections.abc import Mapping
from shlex import quote

from msgspec.structs import replace

from tonnage.kernel.units import GIB
from tonnage.models.purpose import purpose
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.runtimes.parts.start import Start

TYPES = ("q8_0", "q5_1", "q5_0", "iq4_nl", "q4_1", "q4_0")
# with flash attention unless told otherwise; windows since May 2025
CELLS = Cells(multiple=256, windows=True, flash=True, host_table=True, by_layers=True)
# Operations on each sum of 32 products of 8-bit integers, besides the product on the tensor cores
# (ggml/src/ggml-cuda/mmq.cuh, vec_dot_*_mma): the sum turned into fp32 (1), times both scales and added (2); with a
# minimum (q4_1, q4_K) two more; types with a scale for each 16 values have two sums; q6_K scales them as integers; q2_K
# has two sums and minima.
ONE_SCALE = ("q4_0", "q5_0", "q8_0", "iq4_nl", "iq4_xs", "iq2_xxs", "iq3_xxs", "iq3_s", "mxfp4")
WITH_MINIMUM = ("q4_1", "q5_1", "q4_k", "q5_k", "iq1_s")
TWO_SCALES = ("q3_k", "iq2_xs", "iq2_s")
SCALE_OPERATIONS: Mapping[str, int] = {
    **dict.fromkeys(ONE_SCALE, 3),
    **dict.fromkeys((*WITH_MINIMUM, *TWO_SCALES), 5),
    "q6_k": 4,
    "q2_k": 7,
}
LOGICAL_BATCH = 2048  # src/llama-context.cpp: n_ubatch is at most n_batch, which is 2048 (common/common.h)
ROWS_OF_VECTORS = 8  # MMVQ_MAX_BATCH_SIZE
GGML_WORDS: Mapping[str, str] = {"fp32": "f32", "fp16": "f16"}


POOLING = {"embed": ["--embedding"], "rerank": ["--reranking"]}  # llama.cpp, tools/server/README.md


def launch(start: Start) -> str:
    """Slots share the context that is given: it is that of all of them."""
    plan = start.plan
    start.note_nodes()
    layers = "all" if plan.host.layers_on_accelerator is None else plan.host.layers_on_accelerator
    words = [
        "llama-server",
        f"-m {start.file}",
        f"-c {plan.context * plan.concurrency}",
        f"-np {plan.concurrency}",
        f"-ngl {layers}",
    ]
    words += POOLING.get(purpose(start.model), [])
    tokens = plan.max_num_batched_tokens or 0
    words += [f"-b {tokens}"] if tokens > LOGICAL_BATCH else []
    words += [f"-ub {tokens}"] if tokens else []
    words += ["-sm row"] if plan.tensor_parallel_size > 1 else []
    if plan.kv_cache and plan.kv_cache != "fp16":
        kind = GGML_WORDS.get(plan.kv_cache, plan.kv_cache)
        words.append(f"-ctk {kind} -ctv {kind}")
    words += [f"-ncmoe {plan.host.expert_layers_on_host}"] if plan.host.expert_layers_on_host else []
    if plan.drafting.draft_tokens:
        own = "--spec-type draft-mtp" if start.predicts else "--spec-type ngram-simple"
        words += ["--spec-type draft-eagle3"] if start.head else []
        words += [f"--spec-draft-model {quote(_gguf(start.draft))}" if start.draft else own]
        words += [f"--spec-draft-n-max {plan.drafting.draft_tokens}"]
    words += ["--lora ADAPTER.gguf"] * plan.adapters.lora_adapters
    return " ".join(words)


def _gguf(name: str) -> str:
    return name if name.endswith(".gguf") else f"{name.rpartition('/')[2]}.gguf"


NEWEST = ServingRuntime(
    name="llama.cpp",
    version="llama.cpp b10481",
    source=(
        "llama.cpp, src/llama-model.cpp: load_tensors; llama.cpp, src/llama-context.cpp; llama.cpp, "
        "src/llama-kv-cache-iswa.cpp"
    ),
    memory_share=None,
    share_of="nothing",
    limits=(BatchLimit(tokens=512, requests=0),),  # -ub; as many slots as the plan has requests
    paging=None,
    cells=CELLS,
    process=round(0.51 * GIB),
    communicators=0,
    graphs=(0, 0),
    faster_weights=("q8_0", "q4_k_m"),
    narrow_cache="q8_0",
    launch=launch,
    serves=("generate", "embed", "rerank"),
    encoding="eager",
    listed=4,
    aliases=("llamaserver", "ggml"),
    settings=("lora_adapters", "draft_tokens", "layers_on_accelerator", "expert_layers_on_host", "speculative"),
    prefix_caching="llama.cpp, tools/server/README.md: --cache-prompt is on",
    drafts=("eagle3", "mtp", "ngram", "draft"),
    loads_files=True,
    overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on an H100",
    logits_bytes=4,
    state_bytes=4,
    kv_cache={
        "f16": "fp16",
        "fp16": "fp16",
        "f32": "fp32",
        "fp32": "fp32",
        "bf16": "bf16",
        **{name: name for name in TYPES},
    },
    kv_cache_source="llama.cpp, common/arg.cpp: --cache-type-k",
    own_kv_cache="fp16",
    gguf=True,
    # ggml/src/ggml-cuda/mmq.cuh: the units of tensors in 8-bit integers; a card whose 8-bit peak is known as fp8 alone
    # has as many
    integer_products=("int8", "fp8"),
    integer_vendors=("NVIDIA", "AMD"),
    vector_rows=ROWS_OF_VECTORS,
    fills_tiles=True,
    scale_operations=SCALE_OPERATIONS,
    # ggml/src/ggml-sycl/ggml-sycl.cpp: ggml_sycl_mul_mat: up to MMVQ_MAX_BATCH_SIZE rows as they are stored;
    # ggml_sycl_supports_mmq is false for every type, so that more go through dequantize_row and a GEMM in 16 bits
    stored_rows={"Intel": ROWS_OF_VECTORS},
    formats=("bf16", "fp16", "fp32", "gguf", "mxfp4"),
    formats_source="llama.cpp, tools/quantize/README.md",
    # CUDA, HIP, MUSA, SYCL, Vulkan, Metal and CPU cover GPUs and processors; of all others CANN alone, which is
    # Huawei's
    backends={"npu": ("Huawei",), "tpu": ()},
    backends_source="llama.cpp, docs/build.md",
)
# In 2024 attention wrote its scores unless -fa was given, over the cells of all requests, and every layer kept the
# whole context.
BEFORE = replace(CELLS, windows=False, flash=False, unified=True)
# Until June 2024 (pull requests 7676, 7860: tensor cores for 8-bit integers) batches of more than 8 rows were
# multiplied by cuBLAS in 16 bits, after all weights had been written out in fp16 (ggml-cuda.cu: ggml_cuda_mul_mat, at
# b2900: MMVQ_MAX_BATCH_SIZE 8).
EXPANDED = replace(
    NEWEST,
    version="llama.cpp b2900",
    cells=BEFORE,
    integer_products=(),
    scale_operations={},
    fills_tiles=False,
    stored_rows=dict.fromkeys(("NVIDIA", "AMD", "Intel"), ROWS_OF_VECTORS),
)
SERVING_RUNTIMES.add(
    "llama.cpp",
    replace(NEWEST, older={"b4000": replace(NEWEST, version="llama.cpp b4000", cells=BEFORE), "b2900": EXPANDED}),
)

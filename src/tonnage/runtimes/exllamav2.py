"""ExLlamaV2: EXL2 and GPTQ files, a cache that is allocated whole in pages of 256 tokens, buffers for the widest module
and its largest matrix in 16 bits. It is a library: TabbyAPI serves it.
"""

from shlex import quote

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message
from tonnage.kernel.units import GIB, MIB
from tonnage.ops import LatentAttention, StateCache
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.runtimes.parts.start import Start
from tonnage.spec import Accelerator

CHUNK = 2048  # exllamav2/config.py: max_input_len; TabbyAPI, common/config_models.py: chunk_size
PAGE = 256  # exllamav2/generator/dynamic.py: PAGE_SIZE; TabbyAPI's cache_size is a multiple of it
ROWS = 32  # exllamav2/exllamav2_ext/config.h: MAX_Q_GEMM_ROWS; more rows: reconstruct, then cuBLAS in fp16
MAX_BATCH = 32  # TabbyAPI, common/config_models.py: max_batch_size where nobody says it
# exllamav2/cache.py: every layer keeps all tokens; exllamav2/config.py: max_dq_size
CELLS = Cells(
    multiple=PAGE,
    windows=False,
    flash=True,
    host_table=True,
    by_layers=True,
    unpacks=True,
    unpacked_weights=512 * MIB,
    rotary=True,  # exllamav2/device.py: prepare_sincos
)
TABBY_CACHE = {"exl-q8": "Q8", "exl-q6": "Q6", "exl-q4": "Q4"}


def launch(start: Start) -> str:
    """TabbyAPI's command; the console chat of the library for the cache that TabbyAPI does not have."""
    if start.plan.kv_cache == "fp8-e5m2":
        start.notes.append(
            Message("TabbyAPI has no fp8 cache: this is the console chat of ExLlamaV2's repository, for one user.")
        )
        return f"python examples/chat.py -m {quote(start.name)} -mode raw -l {start.plan.context} -c8"
    mode = TABBY_CACHE.get(start.plan.kv_cache or "")
    return tabby(start, "exllamav2", mode)


def check_model(engine: ServingRuntime, model: Model, kind: str, accelerator: Accelerator) -> None:
    """InvalidPlan for attention that the library does not have."""
    ops = [op for block in model.decoder.blocks for op in block.ops]
    if any(isinstance(op, LatentAttention) or any(isinstance(c, StateCache) for c in op.caches()) for op in ops):
        raise InvalidPlan(
            "{@engine}: {version} has no latent attention and no recurrent states (ExLlamaV2, "
            "exllamav2/architecture.py). Got {model}. Nearest: exllamav3, llama.cpp.",
            version=engine.version,
            model=model.name,
        )


def tabby(start: Start, backend: str, cache_mode: str | None) -> str:
    """The command that starts TabbyAPI (theroyallab/tabbyAPI, common/args.py: a word for each field of its config)."""
    plan = start.plan
    start.note_nodes()
    folder, _, name = start.name.rstrip("/").rpartition("/")
    is_local = start.name.startswith((".", "/", "~"))
    words = ["python main.py", f"--model-dir {quote(folder)}"] if is_local and folder else ["python main.py"]
    cells = -(-plan.context // PAGE) * PAGE * plan.concurrency
    words += [f"--model-name {quote(name)}", f"--backend {backend}", f"--max-seq-len {plan.context}"]
    words += [f"--cache-size {cells}"]
    words += [f"--cache-mode {cache_mode}"] if cache_mode else []
    tokens = plan.max_num_batched_tokens
    words += [f"--chunk-size {tokens}"] if tokens and tokens != CHUNK else []
    words += [f"--max-batch-size {plan.concurrency}"] if plan.concurrency > MAX_BATCH else []
    words += ["--tensor-parallel true"] if plan.tensor_parallel_size > 1 else []
    if folder and not is_local:
        start.notes.append(
            Message("TabbyAPI loads from its folder models: download the checkpoint there first, as {name}.", name=name)
        )
    return " ".join(words)


SERVING_RUNTIMES.add(
    "exllamav2",
    ServingRuntime(
        name="exllamav2",
        version="ExLlamaV2 0.3",
        source=(
            "ExLlamaV2, exllamav2/model.py: load_gen; ExLlamaV2, exllamav2/cache.py; ExLlamaV2, exllamav2/mlp.py: "
            "scratch_space_fixed; ExLlamaV2, exllamav2/linear.py: temp_dq_size"
        ),
        memory_share=None,
        share_of="nothing",
        limits=(BatchLimit(tokens=CHUNK, requests=0),),
        paging=None,
        cells=CELLS,
        process=round(0.51 * GIB),
        communicators=0,
        graphs=(0, 0),
        overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on an H100",
        logits_bytes=6,
        narrower_weights=("exl2-6.0", "exl2-4.0"),
        faster_weights=("exl2-4.0", "gptq"),
        narrow_cache="q8",
        launch=launch,
        listed=7,
        aliases=("exllama", "exllama2", "exl2"),
        prefix_caching="ExLlamaV2, exllamav2/generator/dynamic.py: pages of equal tokens are shared",
        kv_cache={"fp16": "fp16", "fp8": "fp8-e5m2", "q8": "exl-q8", "q6": "exl-q6", "q4": "exl-q4"},
        kv_cache_source="ExLlamaV2, exllamav2/cache.py: ExLlamaV2Cache_8bit, _Q8, _Q6 (keys 8 bits, values 4), _Q4",
        own_kv_cache="fp16",
        formats=("bf16", "fp16", "gptq", "exl2"),
        formats_source="ExLlamaV2, exllamav2/module.py: load_weight",
        vendors=("NVIDIA", "AMD"),
        stored_rows={"NVIDIA": ROWS, "AMD": ROWS},
        check_cache=check_model,
        mixes_prompts=False,  # exllamav2/generator/dynamic.py: iterate prefills, then decodes
        unmeasured=("ttft_seconds",),
    ),
)

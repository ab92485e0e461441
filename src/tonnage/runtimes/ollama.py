"""Ollama: runs llama.cpp with a context of its own choice, by the memory of all accelerators together."""

from msgspec.structs import replace

from tonnage.kernel.units import GIB
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start

ENGINE = serving_runtime("llama.cpp")


def launch(start: Start) -> str:
    """The server's environment, and the lines of a Modelfile."""
    plan = start.plan
    start.note_nodes()
    environment = [f"OLLAMA_CONTEXT_LENGTH={plan.context}", f"OLLAMA_NUM_PARALLEL={plan.concurrency}"]
    if plan.kv_cache and plan.kv_cache != "fp16":
        environment += ["OLLAMA_FLASH_ATTENTION=1", f"OLLAMA_KV_CACHE_TYPE={plan.kv_cache}"]
    lines = [
        f"FROM {start.file if start.name.startswith('/') else './' + start.file}",
        f"PARAMETER num_ctx {plan.context}",
    ]
    lines += [f"PARAMETER num_gpu {plan.host.layers_on_accelerator}"] if plan.host.layers_on_accelerator else []
    lines += [f"PARAMETER num_batch {plan.max_num_batched_tokens}"] if plan.max_num_batched_tokens else []
    lines += ["ADAPTER ./ADAPTER.gguf"] * plan.adapters.lora_adapters
    written = "\n".join(lines)
    return (
        f"{' '.join(environment)} ollama serve &\ncat > Modelfile <<EOF\n{written}\nEOF\nollama create tonnage "
        "-f Modelfile && ollama run tonnage"
    )


NEWEST = replace(
    ENGINE,
    name="ollama",
    passes_in=ENGINE.name,
    version="Ollama 0.33.2",
    source=(
        "Ollama, server/routes.go: defaultNumCtx; Ollama, llm/llama_server.go: num_ctx x OLLAMA_NUM_PARALLEL "
        "tokens; llama.cpp, src/llama-context.cpp"
    ),
    kv_cache={"f16": "fp16", "fp16": "fp16", "q8_0": "q8_0", "q4_0": "q4_0"},
    kv_cache_source="Ollama, envconfig/config.go: OLLAMA_KV_CACHE_TYPE",
    faster_weights=(),
    narrow_cache="",
    launch=launch,
    serves=("generate", "embed"),
    listed=5,
    aliases=(),
    settings=("lora_adapters", "layers_on_accelerator"),
    drafts=(),
    context_steps=((47 * GIB, 262_144), (23 * GIB, 32_768), (0, 4096)),
    backends={"npu": (), "tpu": ()},
    backends_source="Ollama, docs/gpu.mdx",
    older={},
)
BEFORE = ENGINE.older["b4000"].cells
OLDER = {
    "0.11": replace(
        NEWEST,
        version="Ollama 0.11",
        context_steps=((0, 4096),),
        source="Ollama, envconfig/config.go: OLLAMA_CONTEXT_LENGTH 4096",
    ),
    "0.5": replace(
        NEWEST,
        version="Ollama 0.5",
        context_steps=((0, 2048),),
        cells=BEFORE,
        source="Ollama, api/types.go: DefaultOptions, NumCtx 2048",
    ),
}
SERVING_RUNTIMES.add("ollama", replace(NEWEST, older=OLDER))

"""Text Embeddings Inference: a server in Rust that fills passes up to a number of tokens, without padding."""

from shlex import quote

from msgspec.structs import replace

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit
from tonnage.runtimes.parts.start import Start


def launch(start: Start) -> str:
    start.note_nodes()
    words = ["text-embeddings-router", f"--model-id {quote(start.name)}", *start.words]
    tokens = start.plan.max_num_batched_tokens
    return " ".join([*words, *([f"--max-batch-tokens {tokens}"] if tokens else [])])


SERVING_RUNTIMES.add(
    "tei",
    replace(
        serving_runtime("transformers"),
        name="tei",
        rollout="",
        version="TEI 1.9",
        source="text-embeddings-inference, docs/source/en/cli_arguments.md: max-batch-tokens 16384, "
        "max-concurrent-requests 512",
        halves=True,  # router/src/main.rs: dtype float16 on CUDA
        serves=("embed", "rerank"),
        encoding="fused",
        speech="",
        eager=None,
        limits=(BatchLimit(tokens=16384, requests=512),),
        launch=launch,
        dtype_flag="--dtype",
        at_load={},
        settings=(),
        drafts=(),
        kv_cache={},
        listed=30,
        aliases=("textembeddingsinference", "textembeddingsrouter"),
        is_fitted=False,
        older={},
    ),
)

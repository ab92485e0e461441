"""Infinity: a server in Python over PyTorch, which sorts texts by length and batches them."""

from shlex import quote

from msgspec.structs import replace

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start


def launch(start: Start) -> str:
    start.note_nodes()
    words = ["infinity_emb v2", f"--model-id {quote(start.name)}", f"--batch-size {start.plan.concurrency}"]
    return " ".join([*words, *start.words])


SERVING_RUNTIMES.add(
    "infinity",
    replace(
        serving_runtime("transformers"),
        name="infinity",
        rollout="",
        version="Infinity 0.0.77",
        source="infinity, docs/docs/cli_v2.md: batch-size 32",
        halves=True,  # cli_v2.md: dtype auto is float16 on CUDA
        serves=("embed", "rerank"),
        encoding="fused",
        speech="",
        launch=launch,
        dtype_flag="--dtype",
        at_load={},
        settings=(),
        drafts=(),
        kv_cache={},
        listed=32,
        aliases=("infinityemb",),
        is_fitted=False,
        older={},
    ),
)

"""Sentence Transformers: PyTorch in the program itself, a batch of texts at a time, each filled up to the longest."""

from shlex import quote

from msgspec.structs import replace

from tonnage.models.purpose import purpose
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start


def launch(start: Start) -> str:
    start.note_nodes()
    kind, call = ("CrossEncoder", "predict") if purpose(start.model) == "rerank" else ("SentenceTransformer", "encode")
    code = (
        f"from sentence_transformers import {kind}; "
        f"m = {kind}({start.name!r}, model_kwargs={{'dtype': 'float16'}}); "
        f"print(m.{call}(TEXTS, batch_size={start.plan.concurrency}))"
    )
    return f"python -c {quote(code)}"


SERVING_RUNTIMES.add(
    "sentence-transformers",
    replace(
        serving_runtime("transformers"),
        name="sentence-transformers",
        rollout="",
        version="sentence-transformers 5.2",
        source="sentence-transformers, sentence_transformers/SentenceTransformer.py: encode, batch_size 32",
        serves=("embed", "rerank"),
        speech="",
        launch=launch,
        at_load={},
        settings=(),
        drafts=(),
        kv_cache={},
        listed=31,
        aliases=("sbert",),
        older={},
    ),
)

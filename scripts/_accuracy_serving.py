"""The part of docs/accuracy_details.md about the memory of served models."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tonnage.documents.document import builtins
from tonnage.validation import read, validate

CORPUS = Path(__file__).parents[1] / "validation" / "infer_memory.yaml"
Line = Mapping[str, Any]
Table = Callable[[str, Mapping[str, Sequence[Line]]], list[str]]
# Beginnings of ids and whose figures they are.
SOURCES = {
    "qwen25doc": "Qwen2.5's documentation (transformers 4.46)",
    "qwen3doc": "Qwen3's documentation (transformers 4.51)",
    "litgpt": "litgpt's tutorials",
    "vllm019": "logs of vLLM 0.19 on H100s (llm-d-planner)",
    "im-gguf": "GGUF files",
}
OTHERS = "other logs"
# Other spellings of the same figure.
SAME = {
    "model weights": "weights",
    "model weights per GPU": "weights",
    "model loading": "weights",
    "GPU KV cache size": "KV cache tokens",
}


def serving_memory(
    table: Table, worst: Callable[[Sequence[Line]], list[str]], skipped: Callable[[Sequence[Line]], list[str]]
) -> list[str]:
    """Tables by source and by figure, the worst rows, and what was skipped."""
    lines: list[Line] = builtins(validate(read([str(CORPUS)])))["rows"]
    main = [line for line in lines if line["main"]]
    full = [line for line in lines if line["completeness"].startswith("full")]
    return [
        "## Memory of serving",
        "",
        (
            "From [validation/infer_memory.yaml](../validation/infer_memory.yaml), by the rules of the version "
            "that ran. What vLLM's libraries hold beside"
        ),
        (
            "PyTorch, and its CUDA graphs, are fitted to the rows of vLLM 0.19 (`scripts/vllm_overheads.py` "
            "prints their errors with runs and models left out); all"
        ),
        "else is counted from sizes.",
        "",
        *table("completeness", _grouped(main, lambda line: line["completeness"].partition(":")[0])),
        "### Memory of serving by source",
        "",
        *table("source", _grouped(main, _source)),
        "### Memory of serving by figure, rows that say everything",
        "",
        *table("figure", _grouped(full, lambda line: SAME.get(line["metric"], line["metric"]))),
        "### The worst rows of served memory",
        "",
        *worst(main),
        "### Rows of served memory that were skipped",
        "",
        *skipped(main),
    ]


def _source(line: Line) -> str:
    return next((name for beginning, name in SOURCES.items() if line["id"].startswith(beginning)), OTHERS)


def _grouped(lines: Iterable[Line], of: Callable[[Line], str]) -> dict[str, list[Line]]:
    made: dict[str, list[Line]] = {}
    for line in lines:
        made.setdefault(of(line), []).append(line)
    return dict(sorted(made.items()))

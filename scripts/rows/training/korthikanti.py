"""Korthikanti et al. 2022: GPT on Megatron-LM of that year, without flash attention; activations alone, also as a
share of plain tensor parallelism's. Their models have a vocabulary of 51,200, dropout, learned positions, and inner
width 4h (section 6).
"""

from collections.abc import Mapping
from typing import Any

from rows.training.config import Config
from rows.training.reader import LENGTH, RECOMPUTE, Options, Reader


def options(c: Config) -> Options:
    text = c.text(*RECOMPUTE)
    made: Options = {"attention": "eager", "dropout": True, "zero_stage": 0, "precision": "fp16-mixed"}
    if c.find("sequence_parallel", "sp")[1] is None:
        made["sequence_parallel"] = _has_sequence_parallel(text)
    if text == "seq":
        made["recompute"] = "none"
    return made


def _has_sequence_parallel(text: str) -> bool:
    if "no sp" in text or "no sequence" in text:
        return False
    return text.startswith("seq") or "sequence parallel" in text or "+ sp" in text


def hparams(c: Config) -> Mapping[str, Any]:
    return {
        "vocab": 51200,
        "mlp": "plain",
        "norm": "LayerNorm",
        "bias": True,
        "pos_emb": "learned",
        "context": c.length(*LENGTH) or 2048,
        "tied_embeddings": True,
    }


READER = Reader(
    name="Korthikanti2022",
    runtime="megatron",
    frameworks=r"korthikanti",
    sources=r"korthikanti|2205\.05198",
    options=options,
    hparams=hparams,
    baseline={"recompute": "none", "sequence_parallel": False},
)

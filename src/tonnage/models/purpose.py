"""What a model is for: text to generate, documents to embed, pairs to score, speech to write down."""

import re
from typing import Literal

from tonnage.architectures import Model

Purpose = Literal["generate", "embed", "rerank", "transcribe"]
# Decoders that are tuned to embed or to rank have the architecture of a chat model: their names tell them apart.
RANKS = re.compile(r"(?<![a-z])re-?rank(?:er|ing)?(?![a-z])", re.IGNORECASE)
EMBEDS = re.compile(
    r"(?<![a-z])(?:embed(?:ding|dings)?|e5-mistral|gte-qwen\d?|bge-en-icl|bge-multilingual|gritlm|nv-embed|llm2vec)"
    r"(?![a-z])",
    re.IGNORECASE,
)
SCORES = "ForSequenceClassification"


def purpose(model: Model) -> Purpose:
    """What a model is for, by its branches, its head and its name."""
    kinds = {branch.kind for branch in model.branches}
    names = " ".join(filter(None, (model.name, model.place)))
    if model.family == "whisper":
        return "transcribe"
    if is_encoder(model):
        return "rerank" if model.architecture.endswith(SCORES) else "embed"
    if "decoder" not in kinds:
        return "generate"
    if RANKS.search(names):
        return "rerank"
    return "embed" if EMBEDS.search(names) else "generate"


# What each takes in, in the plural.
ITEMS: dict[str, Literal["documents", "pairs", "files"]] = {
    "embed": "documents",
    "rerank": "pairs",
    "transcribe": "files",
}


def is_encoder(model: Model) -> bool:
    """Whether a model only encodes: no token waits for another, and nothing is cached."""
    kinds = {branch.kind for branch in model.branches}
    return "encoder" in kinds and "decoder" not in kinds


# What each does.
DOES = {
    "generate": "generates text",
    "embed": "embeds documents",
    "rerank": "scores pairs",
    "transcribe": "writes speech down",
}

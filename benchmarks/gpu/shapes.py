"""Sizes of the decoders that are trained: those of published models, and cuts of them that fit where the whole does
not. No torch here.
"""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A Llama-like decoder; `experts` makes its feed-forward layers a mixture. `family`: the model_type of
    transformers.
    """

    name: str
    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocab: int
    head_dim: int = 0
    tied: bool = False
    attention_bias: bool = False  # of queries, keys and values
    qk_norm: bool = False
    experts: int = 0
    experts_per_token: int = 0

    @property
    def width(self) -> int:
        """Of one head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def parameters(self) -> int:
        query, value = self.heads * self.width, self.kv_heads * self.width
        attention = self.hidden * (2 * query + 2 * value) + (query + 2 * value if self.attention_bias else 0)
        feed_forward = 3 * self.hidden * self.intermediate * max(self.experts, 1) + self.hidden * self.experts
        norms = 2 * self.hidden + (2 * self.width if self.qk_norm else 0)
        tables = self.vocab * self.hidden * (1 if self.tied else 2)
        return tables + self.layers * (attention + feed_forward + norms) + self.hidden

    @property
    def active_parameters(self) -> int:
        """Those that a token is multiplied with; the embedding is looked up."""
        idle = 3 * self.hidden * self.intermediate * (self.experts - self.experts_per_token) if self.experts else 0
        return self.parameters - self.layers * idle - (0 if self.tied else self.vocab * self.hidden)

    def cut(self, layers: int) -> "Shape":
        return replace(self, layers=layers, name=f"{self.name}-{layers}layers")

    def hparams(self) -> dict[str, Any]:
        """As rows of validation/ write them."""
        made: dict[str, Any] = {
            "hidden": self.hidden,
            "layers": self.layers,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "head_dim": self.width,
            "intermediate": self.intermediate,
            "vocab": self.vocab,
            "norm": "RMSNorm",
            "mlp": "LLaMAMLP",
            "bias": False,
            "attn_bias": self.attention_bias,
            "qk_norm": self.qk_norm,
            "rotary_pct": 1.0,
            "tied_embeddings": self.tied,
        }
        if self.experts:
            made |= {
                "experts": self.experts,
                "experts_per_token": self.experts_per_token,
                "moe_intermediate": self.intermediate,
            }
        return made

    def transformers_config(self) -> dict[str, Any]:
        """The same model as a config.json."""
        made: dict[str, Any] = {
            "model_type": self.family,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.width,
            "intermediate_size": self.intermediate,
            "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied,
            "max_position_embeddings": 131072,
            "attention_dropout": 0.0,
        }
        if self.family == "mixtral":
            made |= {"num_local_experts": self.experts, "num_experts_per_tok": self.experts_per_token}
        elif self.experts:
            made |= {
                "num_experts": self.experts,
                "num_experts_per_tok": self.experts_per_token,
                "moe_intermediate_size": self.intermediate,
                "norm_topk_prob": True,
            }
        return made


_LLAMA_3 = {"family": "llama", "vocab": 128256}
LLAMA_8B = Shape(name="llama-8b", hidden=4096, layers=32, heads=32, kv_heads=8, intermediate=14336, **_LLAMA_3)
MIXTRAL = Shape(
    name="mixtral-8x7b",
    family="mixtral",
    hidden=4096,
    layers=32,
    heads=32,
    kv_heads=8,
    intermediate=14336,
    vocab=32000,
    experts=8,
    experts_per_token=2,
)
QWEN3_30B = Shape(
    name="qwen3-30b-a3b",
    family="qwen3_moe",
    hidden=2048,
    layers=48,
    heads=32,
    kv_heads=4,
    head_dim=128,
    intermediate=768,
    vocab=151936,
    qk_norm=True,
    experts=128,
    experts_per_token=8,
)
SHAPES = {
    shape.name: shape
    for shape in (
        Shape(name="tiny", family="llama", hidden=32, layers=2, heads=4, kv_heads=2, intermediate=64, vocab=128),
        Shape(
            name="tiny-qwen",
            family="qwen3",
            hidden=32,
            layers=2,
            heads=4,
            kv_heads=2,
            head_dim=16,
            intermediate=64,
            vocab=128,
            tied=True,
            qk_norm=True,
        ),
        Shape(
            name="tiny-mixture",
            family="mixtral",
            hidden=32,
            layers=2,
            heads=4,
            kv_heads=2,
            intermediate=64,
            vocab=128,
            experts=4,
            experts_per_token=2,
        ),
        Shape(
            name="llama-160m",
            family="llama",
            hidden=768,
            layers=12,
            heads=12,
            kv_heads=4,
            intermediate=2048,
            vocab=32000,
        ),
        Shape(name="llama-1b", hidden=2048, layers=16, heads=32, kv_heads=8, intermediate=8192, tied=True, **_LLAMA_3),
        Shape(name="llama-3b", hidden=3072, layers=28, heads=24, kv_heads=8, intermediate=8192, tied=True, **_LLAMA_3),
        LLAMA_8B,
        LLAMA_8B.cut(4),
        LLAMA_8B.cut(8),
        Shape(
            name="qwen2.5-0.5b",
            family="qwen2",
            hidden=896,
            layers=24,
            heads=14,
            kv_heads=2,
            intermediate=4864,
            vocab=151936,
            tied=True,
            attention_bias=True,
        ),
        Shape(
            name="qwen2.5-7b",
            family="qwen2",
            hidden=3584,
            layers=28,
            heads=28,
            kv_heads=4,
            intermediate=18944,
            vocab=152064,
            attention_bias=True,
        ).cut(8),
        Shape(
            name="qwen3-1.7b",
            family="qwen3",
            hidden=2048,
            layers=28,
            heads=16,
            kv_heads=8,
            head_dim=128,
            intermediate=6144,
            vocab=151936,
            tied=True,
            qk_norm=True,
        ),
        Shape(
            name="mixtral-small",
            family="mixtral",
            hidden=1024,
            layers=8,
            heads=16,
            kv_heads=4,
            intermediate=3584,
            vocab=32000,
            experts=8,
            experts_per_token=2,
        ),
        MIXTRAL.cut(2),
        QWEN3_30B.cut(4),
    )
}

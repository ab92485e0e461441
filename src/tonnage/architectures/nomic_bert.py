"""NomicBERT, GTE (`NewModel`) and Jina v3: BERT with rotary positions and, for the first two, a gated feed-forward.

Structure and heads: huggingface/transformers src/transformers/models/nomic_bert, gte and jina_embeddings_v3 (v5.23),
and for the configs on the Hub, which belong to remote code, vllm-project/vllm
vllm/model_executor/models/bert_with_rope.py. Nomic's own config.json names its sizes as GPT-2 does;
nomic-embed-text-v2-moe sends every second layer's tokens to 2 of 8 plain experts, which share one output bias.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._encoder import (
    attention,
    dense,
    encoder,
    heads,
    labels,
    language,
    layer_norm,
    post_norm,
    tables,
)
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import num_layers
from tonnage.architectures._registry import architecture
from tonnage.ops import MLP, MoE, Op, Parameter

PREDICTIONS = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder")
LM_HEAD = ("lm_head.dense", "lm_head.norm", "lm_head.decoder")


@architecture(
    "NomicBertModel",
    "NomicBertForMaskedLM",
    "NomicBertForPreTraining",
    "NomicBertForSequenceClassification",
    "NomicBertForTokenClassification",
    model_types=("nomic_bert",),
)
def nomic_bert(c: Config) -> Model:
    h, gated = c.size("n_embd", "hidden_size"), c.text("activation_function", default="swiglu") == "swiglu"
    bias = c.flag("qkv_proj_bias", default=False)
    mixer = attention(c, name="attn", bias=bias, fused="Wqkv", names=("q", "k", "v", "out_proj"))
    feed = MLP(
        hidden_size=h,
        intermediate_size=c.size("n_inner", "intermediate_size", default=4 * h),
        gated=gated,
        bias=c.flag("mlp_fc1_bias", default=False),
        names=("fc12", "fc11", "fc2") if gated else ("", "fc1", "fc2"),
    )
    blocks = [post_norm("encoder layer", mixer, "norm1", feed, "norm2", h)]
    period = c.size("moe_every_n_layers", default=0, smallest=0)
    layers = [int(period > 0 and i % period == 1) for i in range(num_layers(c))]
    if 1 in layers:
        blocks.append(
            Block("mixture layer", (mixer, layer_norm("norm1", h), *_mixture(c, feed), layer_norm("norm2", h)))
        )
    before = (*tables(c, h, 0, c.size("type_vocab_size", default=2, smallest=0)), layer_norm("emb_ln", h))
    known = _pooled_heads(c, h, PREDICTIONS)
    known["ForPreTraining"] = known["ForMaskedLM"]
    return encoder(
        c,
        "nomic_bert",
        before,
        blocks,
        layers,
        known,
        width=h,
        context=c.size("n_positions", "max_position_embeddings"),
    )


@architecture(
    "NewModel",
    "NewForMaskedLM",
    "NewForSequenceClassification",
    "NewForTokenClassification",
    "GteModel",
    "GteNewModel",
    "GteForMaskedLM",
    "GteForSequenceClassification",
    "GteForTokenClassification",
    model_types=("new", "gte"),
)
def gte(c: Config) -> Model:
    h, positions = c.size("hidden_size"), c.size("max_position_embeddings", default=8192)
    mixer = attention(c, name="attention", fused="qkv_proj", names=("q", "k", "v", "o_proj"))
    feed = MLP(
        hidden_size=h,
        intermediate_size=c.size("intermediate_size"),
        out_bias=True,
        names=("up_gate_proj", "up_gate_proj", "down_proj"),
    )
    layer = post_norm("encoder layer", mixer, "attn_ln", feed, "mlp_ln", h)
    absolute = positions if c.text("position_embedding_type", default="rope") == "absolute" else 0
    types = c.size("type_vocab_size", default=1, smallest=0)
    before = (*tables(c, h, absolute, types), layer_norm("embeddings.LayerNorm", h))
    known = _pooled_heads(c, h, LM_HEAD)
    return encoder(c, "gte", before, (layer,), (0,) * num_layers(c), known, width=h, context=positions)


@architecture(
    "JinaEmbeddingsV3Model",
    "JinaEmbeddingsV3ForMaskedLM",
    "JinaEmbeddingsV3ForSequenceClassification",
    "JinaEmbeddingsV3ForTokenClassification",
    "JinaEmbeddingsV3ForQuestionAnswering",
    model_types=("jina_embeddings_v3",),
)
def jina_v3(c: Config) -> Model:
    h, positions = c.size("hidden_size"), c.size("max_position_embeddings", default=8194)
    mixer = attention(c)
    feed = MLP(
        hidden_size=h, intermediate_size=c.size("intermediate_size"), gated=False, bias=True, names=("", "fc1", "fc2")
    )
    layer = post_norm("encoder layer", mixer, "post_attention_layernorm", feed, "post_mlp_layernorm", h)
    before = (*tables(c, h, 0, c.size("type_vocab_size", default=1, smallest=0)), layer_norm("embeddings.LayerNorm", h))
    spoken = language(c, h, h, ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"))
    classify = (dense("classifier.dense", h), labels(c, "classifier.out_proj", h))
    known = heads(c, h, pooler=(dense("pooler.dense", h),), spoken=spoken, classify=classify)
    return encoder(c, "jina_embeddings_v3", before, (layer,), (0,) * num_layers(c), known, width=h, context=positions)


def _mixture(c: Config, feed: MLP) -> tuple[Op, ...]:
    experts = MoE(
        hidden_size=feed.hidden_size,
        num_experts=c.depth("num_experts"),
        top_k=c.depth("moe_top_k", default=1),
        intermediate_size=feed.intermediate_size,
        gated=feed.gated,
        router_name="router.layer",
        experts_name="experts.mlp",
        expert_names=("v1", "w1", "w2"),
    )
    return experts, Parameter(name="mlp.experts.bias", elements=feed.hidden_size, part="experts")


def _pooled_heads(c: Config, h: int, names: tuple[str, str, str]) -> dict[str, tuple[Op, ...]]:
    """The bare model has no pooler; a score of the sequence has one before it."""
    classify = (dense("pooler.dense", h), labels(c, "classifier", h))
    return heads(c, h, spoken=language(c, h, h, names), classify=classify)

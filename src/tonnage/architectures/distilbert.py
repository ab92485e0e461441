"""DistilBERT: BERT with half the layers, without token types and pooler.

Structure, heads and defaults: huggingface/transformers src/transformers/models/distilbert (v5.23).
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
    mlp,
    post_norm,
    tables,
)
from tonnage.architectures._model import Model
from tonnage.architectures._registry import architecture


@architecture(
    "DistilBertModel",
    "DistilBertForMaskedLM",
    "DistilBertForSequenceClassification",
    "DistilBertForTokenClassification",
    "DistilBertForQuestionAnswering",
    "DistilBertForMultipleChoice",
    model_types=("distilbert",),
)
def distilbert(c: Config) -> Model:
    h, positions = c.size("dim", "hidden_size"), c.size("max_position_embeddings", default=512)
    mixer = attention(c, name="attention", names=("q_lin", "k_lin", "v_lin", "out_lin"), causal=False)
    layer = post_norm("encoder layer", mixer, "sa_layer_norm", mlp(c, "ffn.lin1", "ffn.lin2"), "output_layer_norm", h)
    before = (*tables(c, h, positions, 0), layer_norm("embeddings.LayerNorm", h))
    spoken = language(c, h, h, ("vocab_transform", "vocab_layer_norm", "vocab_projector"))
    first = dense("pre_classifier", h)
    known = heads(
        c, h, spoken=spoken, classify=(first, labels(c, "classifier", h)), choose=(first, labels(c, "classifier", h, 1))
    )
    layers = c.depth("n_layers", "num_hidden_layers")
    return encoder(c, "distilbert", before, (layer,), (0,) * layers, known, width=h, context=positions)

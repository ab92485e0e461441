"""Fields of real config.json files of encoders and encoder-decoders, by Hub id, each with its exact number of
parameters.
"""

from typing import Any

from architectures.classic_configs import HUB, KERAS, TRANSFORMERS, Case

CHECKPOINT = "the checkpoint's tensors, as public notebooks print them"
MTEB = "embeddings-benchmark/mteb model metadata, n_parameters"
ONE = {"id2label": {"0": "LABEL_0"}}


def _of(name: str, model_type: str, **fields: Any) -> dict[str, Any]:
    return ({"architectures": [name]} if name else {}) | {"model_type": model_type, **fields}


def _sizes(
    hidden: int, inner: int, layers: int, heads: int, vocabulary: int, positions: int = 512, types: int = 2
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
    }


def _bert(*sizes: int, name: str = "BertModel", **fields: Any) -> dict[str, Any]:
    return _of(name, "bert", **_sizes(*sizes), **fields)


# mlc-ai/mlc-llm python/mlc_llm/model/model_preset.py (snowflake-arctic-embed-m and -s); others: keras-hub's
# descriptions
BERT = {
    "Snowflake/snowflake-arctic-embed-m": Case(_bert(768, 3072, 12, 12, 30522), 109_482_240, KERAS),
    "BAAI/bge-large-en-v1.5": Case(_bert(1024, 4096, 24, 16, 30522), 335_141_888, KERAS),
    "sentence-transformers/all-MiniLM-L6-v2": Case(_bert(384, 1536, 6, 12, 30522), 22_713_216, KERAS),
    "cross-encoder/ms-marco-MiniLM-L-6-v2": Case(
        _bert(384, 1536, 6, 12, 30522, name="BertForSequenceClassification", **ONE),
        22_713_216 + 385,
        KERAS + ", with a score",
    ),
    "google-bert/bert-base-uncased": Case(
        _bert(768, 3072, 12, 12, 30522, name="BertForMaskedLM"), 109_514_298, TRANSFORMERS
    ),
}


def _roberta(name: str, *sizes: int, model_type: str = "roberta", **fields: Any) -> dict[str, Any]:
    return _of(name, model_type, **_sizes(*sizes, types=1), pad_token_id=1, **fields)


_LARGE = (1024, 4096, 24, 16, 250002)
# FacebookAI/roberta-base, BAAI/bge-m3 and bge-reranker-v2-m3, intfloat/multilingual-e5-large config.json
ROBERTA = {
    "FacebookAI/roberta-base": Case(
        _roberta("RobertaForMaskedLM", 768, 3072, 12, 12, 50265, 514), 124_697_433, TRANSFORMERS
    ),
    "BAAI/bge-m3": Case(_roberta("XLMRobertaModel", *_LARGE, 8194, model_type="xlm-roberta"), 567_754_752, HUB),
    "BAAI/bge-reranker-v2-m3": Case(
        _roberta("XLMRobertaForSequenceClassification", *_LARGE, 8194, model_type="xlm-roberta", **ONE),
        567_755_777,
        TRANSFORMERS,
    ),
    "intfloat/multilingual-e5-large": Case(
        _roberta("XLMRobertaModel", *_LARGE, 514, model_type="xlm-roberta"), 559_890_432, HUB
    ),
    "sentence-transformers/all-mpnet-base-v2": Case(
        _of("MPNetModel", "mpnet", **_sizes(768, 3072, 12, 12, 30527, 514), relative_attention_num_buckets=32),
        109_486_464,
        TRANSFORMERS,
    ),
}
# google/electra-small-discriminator, -base-discriminator config.json; keras-hub adds a pooler of hidden_size^2 +
# hidden_size
ELECTRA = {
    "google/electra-small-discriminator": Case(
        _of("ElectraModel", "electra", embedding_size=128, **_sizes(256, 1024, 12, 4, 30522)),
        13_548_800 - 256 * 257,
        KERAS,
    ),
    "google/electra-base-discriminator": Case(
        _of("ElectraForPreTraining", "electra", embedding_size=768, **_sizes(768, 3072, 12, 12, 30522)),
        109_483_009,
        TRANSFORMERS,
    ),
}


def _distil(name: str, layers: int, vocabulary: int) -> dict[str, Any]:
    return _of(
        name,
        "distilbert",
        dim=768,
        hidden_dim=3072,
        n_heads=12,
        n_layers=layers,
        max_position_embeddings=512,
        vocab_size=vocabulary,
    )


# distilbert/distilbert-base-uncased, its multilingual sister and its sentiment classifier: config.json
DISTILBERT = {
    "distilbert/distilbert-base-uncased": Case(_distil("DistilBertModel", 6, 30522), 66_362_880, KERAS),
    "distilbert/distilbert-base-multilingual-cased": Case(_distil("DistilBertModel", 6, 119547), 134_734_080, KERAS),
    "distilbert/distilbert-base-uncased-finetuned-sst-2-english": Case(
        _distil("DistilBertForSequenceClassification", 6, 30522) | {"id2label": {"0": "NEGATIVE", "1": "POSITIVE"}},
        66_955_010,
        TRANSFORMERS,
    ),
}


def _albert(hidden: int, inner: int, layers: int, heads: int, name: str = "AlbertModel") -> dict[str, Any]:
    return _of(
        name,
        "albert",
        embedding_size=128,
        num_hidden_groups=1,
        inner_group_num=1,
        **_sizes(hidden, inner, layers, heads, 30000),
    )


# albert/albert-*-v2 config.json (public copies)
ALBERT = {
    "albert/albert-base-v2": Case(_albert(768, 3072, 12, 12), 11_683_584, KERAS),
    "albert/albert-large-v2": Case(_albert(1024, 4096, 24, 16), 17_683_968, KERAS),
    "albert/albert-xxlarge-v2": Case(_albert(4096, 16384, 12, 64), 222_595_584, KERAS),
}
_V3 = {
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "position_buckets": 256,
    "relative_attention": True,
    "share_att_key": True,
}
# microsoft/deberta-v3-* config.json, which name no class (public copies)
DEBERTA = {
    "microsoft/deberta-v3-base": Case(
        _of("", "deberta-v2", **_sizes(768, 3072, 12, 12, 128100, types=0), **_V3), 183_831_552, KERAS
    ),
    "microsoft/deberta-v3-large": Case(
        _of("", "deberta-v2", **_sizes(1024, 4096, 24, 16, 128100, types=0), **_V3), 434_012_160, KERAS
    ),
    "mixedbread-ai/mxbai-rerank-base-v1": Case(
        _of(
            "DebertaV2ForSequenceClassification",
            "deberta-v2",
            **_sizes(768, 3072, 12, 12, 128100, types=0),
            **_V3,
            **ONE,
        ),
        184_422_913,
        TRANSFORMERS,
    ),
}


def _modern(*sizes: int) -> dict[str, Any]:
    return _of(
        "ModernBertForMaskedLM",
        "modernbert",
        **_sizes(*sizes, positions=8192),
        local_attention=128,
        global_attn_every_n_layers=3,
        attention_bias=False,
        classifier_bias=False,
        decoder_bias=True,
        mlp_bias=False,
        norm_bias=False,
    )


# answerdotai/ModernBERT-base and -large config.json (public copies)
MODERNBERT = {
    "answerdotai/ModernBERT-base": Case(
        _modern(768, 1152, 22, 12, 50368), 149_655_232, "safetensors total, as public tables quote it"
    ),
    "answerdotai/ModernBERT-large": Case(_modern(1024, 2624, 28, 16, 50368), 395_881_664, TRANSFORMERS),
}


def _nomic(vocabulary: int, types: int, activation: str, bias: bool, **fields: Any) -> dict[str, Any]:
    return _of(
        "NomicBertModel",
        "nomic_bert",
        n_embd=768,
        n_head=12,
        n_inner=3072,
        n_layer=12,
        n_positions=2048,
        vocab_size=vocabulary,
        type_vocab_size=types,
        activation_function=activation,
        qkv_proj_bias=bias,
        mlp_fc1_bias=bias,
        mlp_fc2_bias=bias,
        **fields,
    )


_ENGLISH = (768, 3072, 12, 12, 30528, 8192)
# nomic-ai/nomic-embed-text-v1.5 and -v2-moe, Alibaba-NLP/gte-*, jinaai/jina-embeddings-v3-hf config.json (public
# copies)
NOMIC_BERT = {
    "nomic-ai/nomic-embed-text-v1.5": Case(_nomic(30528, 2, "swiglu", False) | {"n_positions": 8192}, 136_731_648, HUB),
    "nomic-ai/nomic-embed-text-v2-moe": Case(
        _nomic(250048, 1, "gelu", True, num_experts=8, moe_top_k=2, moe_every_n_layers=2), 475_292_928, MTEB
    ),
    "Alibaba-NLP/gte-base-en-v1.5": Case(
        _of("NewModel", "new", **_sizes(*_ENGLISH, types=0), position_embedding_type="rope"), 136_776_192, TRANSFORMERS
    ),
    "Alibaba-NLP/gte-multilingual-base": Case(
        _of("NewModel", "new", **_sizes(768, 3072, 12, 12, 250048, 8192, 1), position_embedding_type="rope"),
        305_368_320,
        HUB + " (of arctic-embed-m-v2.0, which has its sizes)",
    ),
    "Alibaba-NLP/gte-multilingual-reranker-base": Case(
        _of(
            "NewForSequenceClassification",
            "new",
            **_sizes(768, 3072, 12, 12, 250048, 8192, 1),
            position_embedding_type="rope",
            **ONE,
        ),
        305_959_681,
        TRANSFORMERS,
    ),
    "jinaai/jina-embeddings-v3-hf": Case(
        _of("JinaEmbeddingsV3Model", "jina_embeddings_v3", **_sizes(1024, 4096, 24, 16, 250002, 8194, 1)),
        559_364_096,
        TRANSFORMERS,
    ),
}


def _t5(
    width: int,
    inner: int,
    layers: int,
    heads: int,
    gated: bool = False,
    vocabulary: int = 32128,
    name: str = "T5ForConditionalGeneration",
    kind: str = "t5",
    **fields: Any,
) -> dict[str, Any]:
    fields |= {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False} if gated else {"n_positions": 512}
    return _of(
        name,
        kind,
        d_model=width,
        d_ff=inner,
        d_kv=64,
        num_layers=layers,
        num_decoder_layers=layers,
        num_heads=heads,
        relative_attention_num_buckets=32,
        vocab_size=vocabulary,
        **fields,
    )


# google-t5/t5-*, google/flan-t5-*, google/mt5-*, google/umt5-xxl and the text encoders of diffusion models: config.json
T5 = {
    "google-t5/t5-small": Case(_t5(512, 2048, 6, 8), 60_506_624, KERAS),
    "google-t5/t5-base": Case(_t5(768, 3072, 12, 12), 222_903_552, KERAS),
    "google/flan-t5-small": Case(_t5(512, 1024, 8, 6, gated=True), 76_961_152, KERAS),
    "google/flan-t5-base": Case(_t5(768, 2048, 12, 12, gated=True), 247_577_856, KERAS),
    "google/flan-t5-large": Case(_t5(1024, 2816, 24, 16, gated=True), 783_150_080, KERAS),
    "google/t5-v1_1-xxl": Case(_t5(4096, 10240, 24, 64, gated=True), 11_135_332_352, KERAS),
    "google/t5-v1_1-xxl, encoder": Case(
        _t5(4096, 10240, 24, 64, gated=True, name="T5EncoderModel"), 4_762_310_656, TRANSFORMERS
    ),
    "google/mt5-small": Case(
        _t5(512, 1024, 8, 6, gated=True, vocabulary=250112, name="MT5ForConditionalGeneration", kind="mt5"),
        300_176_768,
        CHECKPOINT,
    ),
    "google/umt5-xxl, encoder": Case(
        _t5(4096, 10240, 24, 64, gated=True, vocabulary=256384, name="UMT5EncoderModel", kind="umt5"),
        5_680_910_336,
        TRANSFORMERS,
    ),
}


def _bart(
    name: str, width: int, inner: int, layers: int, heads: int, vocabulary: int, kind: str = "bart"
) -> dict[str, Any]:
    return _of(
        name,
        kind,
        d_model=width,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        max_position_embeddings=1024,
        vocab_size=vocabulary,
    )


# facebook/bart-base, bart-large-cnn, mbart-large-cc25: config.json
BART = {
    "facebook/bart-base": Case(_bart("BartModel", 768, 3072, 6, 12, 50265), 139_420_416, TRANSFORMERS),
    "facebook/bart-large-cnn": Case(
        _bart("BartForConditionalGeneration", 1024, 4096, 12, 16, 50264), 406_340_696, TRANSFORMERS
    ),
    "facebook/mbart-large-cc25": Case(
        _bart("MBartForConditionalGeneration", 1024, 4096, 12, 16, 250027, kind="mbart"), 611_101_867, TRANSFORMERS
    ),
}
FAMILIES = {
    "bert": BERT,
    "roberta": ROBERTA,
    "electra": ELECTRA,
    "distilbert": DISTILBERT,
    "albert": ALBERT,
    "deberta": DEBERTA,
    "modernbert": MODERNBERT,
    "nomic_bert": NOMIC_BERT,
    "t5": T5,
    "bart": BART,
}

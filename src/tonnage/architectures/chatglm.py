"""ChatGLM-6B, ChatGLM2, ChatGLM3, CodeGeeX2 and the first GLM-4-9B, as their remote code `modeling_chatglm.py` builds
them.

Sources: vllm-project/vllm vllm/model_executor/models/chatglm.py (ChatGLM2 to GLM-4: RMSNorm, grouped heads, gated
feed-forward, untied head) and THUDM/ChatGLM-6B's modeling_chatglm.py (LayerNorm, biases, feed-forward of two matrices,
tied head). Both have one class name and one model type; the second generation is recognised by `padded_vocab_size` or
`ffn_hidden_size`. Their configs name the bare class ChatGLMModel and mean the language model with its head.
"""

from tonnage.architectures._classic import grouped, head_width, plain_mlp
from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch, Model
from tonnage.architectures._parts import NormKind, decoder, model, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.ops import MLP, Attention

NAMES = ("q", "k", "v", "dense")


@architecture("ChatGLMModel", "ChatGLMForConditionalGeneration", "ChatGLMForCausalLM", model_types=("chatglm",))
def chatglm(c: Config) -> Model:
    if "padded_vocab_size" not in c and "ffn_hidden_size" not in c:
        return _first(c)
    tied = c.flag("tie_word_embeddings", default=False)
    notes = ("The vision tower (vision_config) is not counted.",) if c.raw("vision_config") else ()
    return model(c, "chatglm", _second(c, tied), tied=tied, notes=notes)


def _first(c: Config) -> Model:
    """ChatGLM-6B."""
    h, heads = c.size("hidden_size"), c.size("num_attention_heads")
    mixer = Attention(
        name="attention",
        hidden_size=h,
        heads=heads,
        kv_heads=heads,
        head_dim=head_width(c, h, heads),
        bias=True,
        fused="query_key_value",
        names=NAMES,
    )
    feed = plain_mlp(c, "inner_hidden_size", names=("dense_h_to_4h", "dense_4h_to_h"))
    tied = c.flag("tie_word_embeddings", default=True)
    layer = pre_norm("decoder layer", mixer, feed, h, "layer")
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, names=("word_embeddings", "", "final_layernorm"))
    return model(c, "chatglm", branch, tied=tied)


def _second(c: Config, tied: bool) -> Branch:
    """ChatGLM2 and its successors."""
    h, bias = c.size("hidden_size"), c.flag("add_bias_linear", default=False)
    kind: NormKind = "rms" if c.flag("rmsnorm", default=True) else "layer"
    names = ("dense_h_to_4h", "dense_h_to_4h", "dense_4h_to_h")
    feed = MLP(hidden_size=h, intermediate_size=c.size("ffn_hidden_size"), bias=bias, names=names)
    layer = pre_norm("decoder layer", _grouped(c, bias), feed, h, kind)
    return decoder(
        c,
        [layer],
        norm_kind=kind,
        tied=tied,
        final_norm=c.flag("post_layer_norm", default=True),
        vocab_size=c.size("padded_vocab_size", "vocab_size"),
        names=("embedding.word_embeddings", "", "encoder.final_layernorm"),
    )


def _grouped(c: Config, bias: bool) -> Attention:
    h, heads = c.size("hidden_size"), c.size("num_attention_heads")
    groups = grouped(c, heads, "multi_query_group_num") if c.flag("multi_query_attention", default=False) else heads
    return Attention(
        name="self_attention",
        hidden_size=h,
        heads=heads,
        kv_heads=groups,
        head_dim=c.size("kv_channels", default=None) or head_width(c, h, heads),
        bias=bias or c.flag("add_qkv_bias", default=False),
        out_bias=bias,
        fused="query_key_value",
        names=NAMES,
    )

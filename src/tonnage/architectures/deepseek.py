"""DeepSeek V2, V3, R1, V3.1, V3.2, and Kimi K2, K2.5: latent attention, shared and routed experts, multi-token
prediction, indexer.

Structure: transformers 5.23, models/deepseek_v2, deepseek_v3 and deepseek_v32 (DeepseekV32Indexer: wq_b from the query
latent, wk, k_norm with a bias, weights_proj). The router's e_score_correction_bias is a stored buffer of V3, V3.2 and
Kimi K2 (topk_method noaux_tc), V2 has none. The checkpoints hold num_nextn_predict_layers more layers, which
transformers ignores, each with a copy of the embedding and the head: deepseek-ai/DeepSeek-V3 README_WEIGHTS.md. The
indexer's cache is vLLM's (vllm-project/vllm vllm/models/deepseek_v4/attention.py, DeepseekV4Indexer: "FP8 indexer
cache uses the same layout as V3.2", 132 bytes a token). Mistral Large 3 is this model by other names:
vllm-project/vllm vllm/model_executor/models/mistral_large_3.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, moe, stack
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import attention, latent_attention, mlp, norm, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import Embedding, Head, LatentAttention, Linear, MoE

CORRECTED = ("deepseek_v3", "deepseek_v32")


@architecture(
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV32ForCausalLM",
    "KimiK2ForCausalLM",
    "MistralLarge3ForCausalLM",
    model_types=("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2"),
)
def deepseek(c: Config) -> Model:
    bias = c.flag("mlp_bias", default=False)

    def layer(kind: str) -> Block:
        feed = mlp(c, bias=bias) if kind == "dense" else mixture(c)
        return pre_norm(Message("{kind} layer", kind=kind), indexed_attention(c), feed, c.size("hidden_size"))

    return stack(c, "deepseek", feed_kinds(c), layer, drafts=draft_layers(c, layer("sparse")))


@architecture("DeepseekForCausalLM", model_types=("deepseek",))
def deepseek_moe(c: Config) -> Model:
    """DeepSeekMoE (arXiv 2401.06066), the first of the line: multi-head attention, shared and routed experts."""

    def layer(kind: str) -> Block:
        mixer = attention(c, bias=c.flag("attention_bias", default=False))
        return pre_norm(
            Message("{kind} layer", kind=kind), mixer, mlp(c) if kind == "dense" else mixture(c), c.size("hidden_size")
        )

    return stack(c, "deepseek", feed_kinds(c), layer)


@architecture("AXK1ForCausalLM", model_types=("axk1", "AXK1"))
def axk1(c: Config) -> Model:
    """A.X K1 of SK Telecom (transformers 5.23, models/axk1): DeepSeek-V3 with one more norm behind each mixture."""
    c, h = c.with_defaults({"first_k_dense_replace": 1}), c.size("hidden_size")

    def layer(kind: str) -> Block:
        if kind == "dense":
            return pre_norm("dense layer", indexed_attention(c), mlp(c), h)
        block = pre_norm("sparse layer", indexed_attention(c), mixture(c, corrected=True), h)
        return Block(block.name, (*block.ops, norm("mlp.post_mlp_layernorm", h)))

    return stack(c, "deepseek", feed_kinds(c), layer)


def indexed_attention(c: Config, indexer: bool = True) -> LatentAttention:
    """Latent attention with V3.2's indexer where the config has one; `indexer=False`: the layer uses another's
    choice.
    """
    heads = c.size("index_n_heads", default=0, smallest=0)
    width = c.size("index_head_dim") if heads else c.size("index_head_dim", default=None)
    return latent_attention(
        c,
        index_heads=heads,
        index_dim=width or 0,
        index_topk=c.size("index_topk", default=None),
        index_pool=c.size("index_kpool", default=0, smallest=0),
        indexer=indexer,
    )


def mixture(c: Config, corrected: bool | None = None) -> MoE:
    """Routed and shared experts; `corrected`: the router has a correction bias, None: as topk_method and type say."""
    width = c.size("moe_intermediate_size")
    if corrected is None:
        corrected = c.text("topk_method", default=None) == "noaux_tc" or c.text("model_type", default="") in CORRECTED
    return moe(
        c,
        intermediate_size=width,
        shared_size=width * c.depth("n_shared_experts", default=0, smallest=0),
        shared_bias=c.flag("mlp_bias", default=False),
        correction_bias=corrected,
    )


def draft_layers(c: Config, block: Block, table: bool = True, head: bool = True) -> list[Branch]:
    """Multi-token prediction: each layer joins the hidden state and the next token's embedding, then runs one layer.

    `table`, `head`: the checkpoint stores the embedding and the head once more with each.
    """
    count = c.depth("num_nextn_predict_layers", default=0, smallest=0)
    if not count:
        return []
    h, vocabulary = c.size("hidden_size"), c.size("vocab_size")
    first = (Embedding(num_embeddings=vocabulary, width=h),) if table else ()
    last = (Head(name="shared_head.head", width=h, vocab_size=vocabulary),) if head else ()
    joined = (norm("enorm", h), norm("hnorm", h), Linear(name="eh_proj", in_features=2 * h, out_features=h))
    layer = Block("multi-token prediction layer", (*first, *joined, *block.ops, norm("shared_head.norm", h), *last))
    return [Branch(name="multi-token prediction", kind="draft", hidden_size=h, blocks=(layer,), layers=(0,) * count)]

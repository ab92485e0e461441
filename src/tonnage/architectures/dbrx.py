"""DBRX: a mixture of sixteen experts, four a token; LayerNorm without bias.

Structure and defaults: transformers 5.23, models/dbrx (attn_config and ffn_config are nested; the model's d_model is
the width of both; one matrix each holds all experts' w1, v1 and w2).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, head_dim, model, norm
from tonnage.architectures._registry import architecture
from tonnage.ops import Attention

MATRICES = ("w1", "v1", "w2")
NAMES = ("wte", "", "norm_f")


@architecture("DbrxForCausalLM", model_types=("dbrx",))
def dbrx(c: Config) -> Model:
    h, heads = c.size("d_model", "hidden_size"), c.size("n_heads", "num_attention_heads")
    inner = c.section("attn_config")
    feeds = c.section("ffn_config")
    mixer = Attention(
        name="norm_attn_norm.attn",
        hidden_size=h,
        heads=heads,
        kv_heads=inner.size("kv_n_heads"),
        head_dim=head_dim(c),
        fused="Wqkv",
        names=("q", "k", "v", "out_proj"),
    )
    feed = moe(
        Config({"hidden_size": h}, c.where),
        name="ffn",
        router_name="router.layer",
        experts_name="experts.mlp",
        expert_names=MATRICES,
        num_experts=feeds.depth("moe_num_experts"),
        top_k=feeds.depth("moe_top_k"),
        intermediate_size=feeds.size("ffn_hidden_size"),
    )
    norms = [norm(f"norm_attn_norm.norm_{i}", h, "layer", bias=False) for i in (1, 2)]
    tied = c.flag("tie_word_embeddings", default=False)
    layer = Block("mixture layer", (norms[0], mixer, norms[1], feed))
    branch = decoder(c, [layer], tied=tied, norm_kind="layer", norm_options={"bias": False}, names=NAMES)
    return model(c, "dbrx", branch, tied=tied)

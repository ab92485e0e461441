"""JetMoE: both attention and feed-forward are mixtures of experts.

Structure and defaults: transformers 5.23, models/jetmoe (each of the two has a bias of the model's width behind its
experts).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, norm
from tonnage.architectures._registry import architecture
from tonnage.ops import Parameter, RoutedAttention

DEFAULTS = {
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "num_key_value_heads": 16,
    "kv_channels": 128,
    "tie_word_embeddings": True,
}
FUSED = ("input_linear", "input_linear", "output_linear")


@architecture("JetMoeForCausalLM", "JetMoEForCausalLM", model_types=("jetmoe",))
def jetmoe(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h = c.size("hidden_size")
    feed = moe(
        c,
        name="",
        router_name="mlp.router.layer",
        experts_name="mlp",
        expert_names=FUSED,
        intermediate_size=c.size("intermediate_size", "ffn_hidden_size"),
    )
    mixer = RoutedAttention(
        hidden_size=h,
        kv_heads=c.size("num_key_value_heads"),
        head_dim=c.size("kv_channels"),
        num_experts=feed.num_experts,
        top_k=feed.top_k,
    )
    bias = Parameter(name="mlp.bias", elements=h, part="mlp")
    tied = c.flag("tie_word_embeddings")
    layer = Block("mixture layer", (norm("input_layernorm", h), mixer, norm("post_attention_layernorm", h), feed, bias))
    return model(c, "jetmoe", decoder(c, [layer], tied=tied), tied=tied)

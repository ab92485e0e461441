"""MiniCPM3 and Youtu-LLM: dense models with latent attention, the embedding table tied to the head.

Structure: transformers 5.23, models/minicpm3/modeling_minicpm3.py (values as wide as hidden_size / num_attention_heads
where v_head_dim is absent) and models/youtu/modeling_youtu.py. An absent tie_word_embeddings means tied.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import stack
from tonnage.architectures._model import Model
from tonnage.architectures._parts import latent_attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture


@architecture("MiniCPM3ForCausalLM", "YoutuForCausalLM", model_types=("minicpm3", "youtu"))
def minicpm3(c: Config) -> Model:
    h = c.size("hidden_size")
    c = (
        c.with_defaults({"v_head_dim": h // c.size("num_attention_heads")})
        if c.text("model_type", default="") == "minicpm3"
        else c
    )
    layer = pre_norm("decoder layer", latent_attention(c), mlp(c, bias=c.flag("mlp_bias", default=False)), h)
    return stack(c, "minicpm3", [0] * num_layers(c), lambda _: layer, tied=True)

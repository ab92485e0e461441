"""Qwen 1 (1.8B, 7B, 14B, 72B), whose class is QWenLMHeadModel: Llama with one biased matrix for q, k and v.

Source: the remote code modeling_qwen.py, as vllm-project/vllm vllm/model_executor/models/qwen.py reads it.
`intermediate_size` counts gate and up together, so each is half of it; `no_bias` leaves a bias to q, k and v only.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import decoder, model, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention


@architecture("QWenLMHeadModel", model_types=("qwen",))
def qwen(c: Config) -> Model:
    h, heads, inner = c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    if inner % 2:
        raise InvalidInput(
            "{where}: {@intermediate_size} counts gate and up together, so it must be even. Got {inner}.",
            where=c.where,
            inner=inner,
        )
    bias = not c.flag("no_bias", default=True)
    mixer = Attention(
        name="attn",
        hidden_size=h,
        heads=heads,
        kv_heads=heads,
        head_dim=c.size("kv_channels", default=128),
        bias=True,
        out_bias=bias,
        fused="c_attn",
        names=("q", "k", "v", "c_proj"),
    )
    feed = MLP(hidden_size=h, intermediate_size=inner // 2, bias=bias, names=("w2", "w1", "c_proj"))
    layer = pre_norm("decoder layer", mixer, feed, h, names=("ln_1", "ln_2"))
    tied = c.flag("tie_word_embeddings", default=False)
    context = c.size("seq_length", "max_position_embeddings", default=None)
    return model(c, "qwen", decoder(c, [layer], tied=tied, names=("wte", "", "ln_f")), tied=tied, context=context)

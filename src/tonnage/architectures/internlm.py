"""InternLM 1, 2, 2.5 and 3: Llama with biases on attention (1), one matrix for q, k and v (2), or chosen biases (3).

Sources: the remote code modeling_internlm.py and modeling_internlm2.py, as vllm-project/vllm reads them
(vllm/model_executor/models/internlm2.py), and huggingface/transformers src/transformers/models/internlm3 (v5.23).
InternLM 3 gives q, k and v the biases of `qkv_bias`, the output and the feed-forward those of `bias`.
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, pre_norm
from tonnage.architectures._registry import architecture, with_head
from tonnage.ops import Linear


@architecture("InternLMForCausalLM", model_types=("internlm",))
def internlm(c: Config) -> Model:
    mixer = attention(c, bias=c.flag("bias", default=True))
    return _model(c, "internlm", pre_norm("decoder layer", mixer, mlp(c), c.size("hidden_size")))


@architecture("InternLM2ForCausalLM", model_types=("internlm2",))
def internlm2(c: Config) -> Model:
    bias = c.flag("bias", default=False)
    mixer = attention(c, name="attention", bias=bias, fused="wqkv", names=("q", "k", "v", "wo"))
    feed = mlp(c, name="feed_forward", names=("w1", "w3", "w2"))
    layer = pre_norm("decoder layer", mixer, feed, c.size("hidden_size"), names=("attention_norm", "ffn_norm"))
    return _model(c, "internlm2", layer, names=("tok_embeddings", "", "norm"))


@architecture("InternLM2ForRewardModel")
def internlm2_reward(c: Config) -> Model:
    h = c.size("hidden_size")
    return with_head(internlm2(c), (Linear(name="v_head", in_features=h, out_features=1, part="head"),))


@architecture("InternLM3ForCausalLM", model_types=("internlm3",))
def internlm3(c: Config) -> Model:
    bias = c.flag("bias", "mlp_bias", default=False)
    mixer = attention(c, bias=c.flag("qkv_bias", "attention_bias", default=False), out_bias=bias)
    return _model(c, "internlm3", pre_norm("decoder layer", mixer, mlp(c, bias=bias), c.size("hidden_size")))


def _model(c: Config, family: str, layer: Block, **options: Any) -> Model:
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, family, decoder(c, [layer], tied=tied, **options), tied=tied)

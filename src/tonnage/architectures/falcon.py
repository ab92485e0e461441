"""Falcon: 7B (one key/value head, parallel layers with one norm), 40B, 180B and 11B (new decoder: groups of heads), RW
(ALiBi).

Structure and defaults: huggingface/transformers src/transformers/models/falcon (v5.23). The first releases name their
classes RWForCausalLM and their types RefinedWebModel (7B, RW) and RefinedWeb (40B, the new decoder), with n_head,
n_head_kv and n_layer; NVIDIA/NeMo's converter maps them in the same way (convert_falcon_hf_to_nemo.py,
load_falcon_config).
"""

from tonnage.architectures._classic import HEADS, full_attention, grouped, parallel_block, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, norm
from tonnage.architectures._registry import architecture
from tonnage.ops import MLP, Attention


@architecture("FalconForCausalLM", "RWForCausalLM", model_types=("falcon", "RefinedWeb", "RefinedWebModel"))
def falcon(c: Config) -> Model:
    new = c.flag("new_decoder_architecture", default=c.text("model_type", default="") == "RefinedWeb")
    feed = plain_mlp(c, "ffn_hidden_size", names=("dense_h_to_4h", "dense_4h_to_h"), bias=c.flag("bias", default=False))
    layer = _layer(c, new, _attention(c, new), feed)
    tied = c.flag("tie_word_embeddings", default=True)
    names = ("word_embeddings", "", "ln_f")
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, hidden_size=width(c), names=names)
    return model(c, "falcon", branch, tied=tied, context=c.size("max_position_embeddings", default=2048))


def _attention(c: Config, new: bool) -> Attention:
    groups = heads = c.size(*HEADS)
    if new:
        groups = grouped(c, heads, "num_kv_heads", "n_head_kv")
    elif c.flag("multi_query", default=True):
        groups = 1
    bias = c.flag("bias", default=False)
    names = ("q", "k", "v", "dense")
    return full_attention(c, name="self_attention", kv_heads=groups, bias=bias, fused="query_key_value", names=names)


def _layer(c: Config, new: bool, mixer: Attention, feed: MLP) -> Block:
    """Sequential layers have two norms; parallel ones share one, or have one each in the new decoder (except Falcon 2
    11B).
    """
    h = width(c)
    if not c.flag("parallel_attn", default=True):
        return Block(
            "decoder layer",
            (norm("input_layernorm", h, "layer"), mixer, norm("post_attention_layernorm", h, "layer"), feed),
        )
    if c.size("num_ln_in_parallel_attn", default=2 if new else 1) == 2:
        return parallel_block("decoder layer", norm("ln_attn", h, "layer"), mixer, feed, norm("ln_mlp", h, "layer"))
    return parallel_block("decoder layer", norm("input_layernorm", h, "layer"), mixer, feed)

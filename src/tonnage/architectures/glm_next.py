"""GLM-5.3-Flash, its language model alone: three layers of Kimi delta attention, then one of latent attention with
an indexer over pools of tokens; four residual streams; experts.

Structure: transformers 5.23, models/glm5_next/modeling_glm5_next.py (Glm5NextTextModel) and
configuration_glm5_next.py. The checkpoint's draft layer (layer 45), which transformers ignores, is not read. An engine
keeps one indexer key for each complete pool of index_kpool tokens, and key and gate of the others in fp32 (vLLM's
caches of this model); keys are taken as fp8 with a scale, as in GLM-5.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import mlp, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import indexed_attention, mixture
from tonnage.architectures.deepseek_v4 import hyper_connection
from tonnage.architectures.glm import indexer_kinds
from tonnage.architectures.kimi import delta_attention
from tonnage.kernel.message import Message
from tonnage.ops import KimiDeltaAttention, LatentAttention, Op

KINDS = ("linear_attention", "deepseek_sparse_attention", "indexed_attention", "full_attention")
DEFAULTS = {"hc_mult": 4, "index_kpool": 16, "first_k_dense_replace": 3}  # of Glm5NextTextConfig


@architecture("Glm5NextForCausalLM", model_types=("glm5_next_text",))
def glm_next(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    mixers = layer_kinds(c, lambda layer: "full_attention" if layer % 4 == 3 else "linear_attention", KINDS)
    kinds = list(zip(mixers, _feed_kinds(c), indexer_kinds(c), strict=True))
    return stack(c, "glm_next", kinds, lambda kind: _layer(c, *kind))


def _layer(c: Config, mixer: str, feed: str, indexer: str) -> Block:
    h = c.size("hidden_size")
    ops: tuple[Op, ...] = (hyper_connection(c, "attn_hc", "."), norm("input_layernorm", h), _mixer(c, mixer, indexer))
    ops += (hyper_connection(c, "ffn_hc", "."), norm("post_attention_layernorm", h))
    return Block(
        Message("{feed} {kind} layer", feed=feed, kind=mixer),
        (*ops, mlp(c) if feed == "dense" else mixture(c, corrected=True)),
    )


def _mixer(c: Config, kind: str, indexer: str) -> KimiDeltaAttention | LatentAttention:
    return delta_attention(c) if kind == "linear_attention" else indexed_attention(c, indexer=indexer == "full")


def _feed_kinds(c: Config) -> list[str]:
    first = min(c.depth("first_k_dense_replace", smallest=0), num_layers(c))
    return layer_kinds(c, lambda i: "sparse" if i >= first else "dense", ("dense", "sparse"), "mlp_layer_types")

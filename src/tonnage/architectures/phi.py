"""Phi-1, 1.5 and 2 (parallel layers, biases), Phi-3, 3.5 and 4 (fused Llama), Phi-3-small, Phi-3.5-MoE,
Phi-4-multimodal's text.

Structure and defaults: huggingface/transformers src/transformers/models/phi, phi3, phimoe and phi4_multimodal (v5.23);
Phi-3-small: vllm-project/vllm vllm/model_executor/models/phi3_small.py, its remote code's reading. The first Phi
releases (model types phi-msft and mixformer-sequential) name their sizes as GPT-2 does. Phi-3-small attends to blocks
of the past in most layers and keeps all of it in the cache.
"""

from typing import Literal

from tonnage.architectures._classic import grouped, head_width, parallel_block, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention, MoE

FUSED = {"fused": "qkv_proj"}
GATE_UP = ("gate_up_proj", "gate_up_proj", "down_proj")


@architecture(
    "PhiForCausalLM", "MixFormerSequentialForCausalLM", model_types=("phi", "phi-msft", "mixformer-sequential")
)
def phi(c: Config) -> Model:
    h, heads = width(c), c.size("num_attention_heads", "n_head")
    groups = grouped(c, heads, "num_key_value_heads", "n_head_kv")
    norms: Literal["", "layer-head"] = "layer-head" if c.flag("qk_layernorm", default=False) else ""
    mixer = Attention(
        hidden_size=h,
        heads=heads,
        kv_heads=groups,
        head_dim=head_width(c, h, heads),
        bias=True,
        qk_norm=norms,
        names=("q_proj", "k_proj", "v_proj", "dense"),
        norm_names=("q_layernorm", "k_layernorm"),
    )
    feed = plain_mlp(c, "intermediate_size", "n_inner", names=("fc1", "fc2"))
    layer = parallel_block("decoder layer", norm("input_layernorm", h, "layer"), mixer, feed)
    tied = c.flag("tie_word_embeddings", default=False)
    names = ("embed_tokens", "", "final_layernorm")
    return model(c, "phi", decoder(c, [layer], norm_kind="layer", tied=tied, head_bias=True, names=names), tied=tied)


@architecture("Phi3ForCausalLM", model_types=("phi3",))
def phi3(c: Config) -> Model:
    return model(c, "phi3", _phi3_text(c), tied=c.flag("tie_word_embeddings", default=False))


def phi4_text(c: Config) -> Model:
    """Phi-4-multimodal's language model alone; phi4_multimodal.py adds its towers and adapters."""
    return model(c, "phi4_multimodal", _phi3_text(c), tied=c.flag("tie_word_embeddings", default=False))


def _phi3_text(c: Config) -> Branch:
    mixer = attention(c, window=c.size("sliding_window", default=None), **FUSED)
    layer = pre_norm("decoder layer", mixer, mlp(c, names=GATE_UP), c.size("hidden_size"))
    return decoder(c, [layer], tied=c.flag("tie_word_embeddings", default=False))


@architecture("Phi3SmallForCausalLM", model_types=("phi3small",))
def phi3_small(c: Config) -> Model:
    h = c.size("hidden_size")
    mixer = attention(c, bias=True, fused="query_key_value", names=("q", "k", "v", "dense"))
    inner = c.size("ff_intermediate_size", "intermediate_size")
    feed = MLP(hidden_size=h, intermediate_size=inner, bias=True, names=("up_proj", "up_proj", "down_proj"))
    layer = pre_norm("decoder layer", mixer, feed, h, "layer")
    tied = c.flag("tie_word_embeddings", default=True)
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, names=("embed_tokens", "", "final_layernorm"))
    return model(c, "phi3_small", branch, tied=tied)


@architecture("PhiMoEForCausalLM", "PhimoeForCausalLM", model_types=("phimoe",))
def phimoe(c: Config) -> Model:
    experts, chosen = c.depth("num_local_experts", default=16), c.depth("num_experts_per_tok", default=2)
    if chosen > experts:
        raise InvalidInput(
            "{where}: {@num_experts_per_tok} ({chosen}) exceeds num_local_experts ({experts}).",
            where=c.where,
            chosen=chosen,
            experts=experts,
        )
    mixer = attention(c, bias=c.flag("attention_bias", default=False), window=c.size("sliding_window", default=None))
    feed = MoE(
        name="block_sparse_moe",
        hidden_size=c.size("hidden_size"),
        num_experts=experts,
        top_k=chosen,
        intermediate_size=c.size("intermediate_size"),
        expert_names=("w1", "w3", "w2"),
    )
    layer = pre_norm("mixture layer", mixer, feed, c.size("hidden_size"), "layer")
    tied = c.flag("tie_word_embeddings", default=False)
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, head_bias=c.flag("lm_head_bias", default=False))
    return model(c, "phimoe", branch, tied=tied)

"""Diffusion language models: LLaDA, LLaDA-MoE, LLaDA2, Dream (DiffuCoder too), SDAR and Fast-dLLM v2. Their layers are
those of Llama, OLMoE, Ling 2, Qwen2 and Qwen3, whose tokens also see those behind them.

Structure: the remote code of GSAI-ML/LLaDA-8B-Instruct (modeling_llada.py, LLaDALlamaBlock),
inclusionAI/LLaDA-MoE-7B-A1B-Instruct (modeling_lladamoe.py), inclusionAI/LLaDA2.0-mini (modeling_llada2_moe.py),
Dream-org/Dream-v0-Instruct-7B (modeling_dream.py). Weights are counted; how answers are made is `Model.diffusion`.
"""

from msgspec.structs import replace

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, moe, stack
from tonnage.architectures._model import Block, Diffusion, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.olmoe import attends, experts
from tonnage.architectures.qwen2 import qwen2
from tonnage.architectures.qwen3 import qwen3, qwen3_moe
from tonnage.kernel.message import Message

# The names that LLaDA-8B's config has, which is OLMo's first one, and those of Llama.
OLMO_NAMES = {
    "hidden_size": "d_model",
    "intermediate_size": "mlp_hidden_size",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "max_position_embeddings": "max_sequence_length",
    "vocab_size": "embedding_size",
    "tie_word_embeddings": "weight_tying",
}
WHOLE = Diffusion(block=0, source="GSAI-ML/LLaDA generate.py; Dream-org/Dream-v0-Instruct-7B generation_utils.py")
BLOCKS = Diffusion(block=32, source="SGLang, sglang/srt/dllm/config.py: DLLM_PARAMS, block_size 32", serves=("sglang",))
SMALL_BLOCKS = Diffusion(
    block=4, source="SGLang, sglang/srt/dllm/config.py: DLLM_PARAMS, block_size 4", serves=("sglang",)
)
CONVERTED = Diffusion(block=32, source="NVlabs/Fast-dLLM v2/README.md: block size 32")


@architecture("LLaDAModelLM", model_types=("llada",))
def llada(c: Config) -> Model:
    named = {ours: c.raw(theirs) for ours, theirs in OLMO_NAMES.items() if theirs in c and ours not in c}
    if "embedding_size" in c:
        named["vocab_size"] = c.raw("embedding_size")
    c = c.with_fields({**c.fields, **named})
    tied = c.flag("tie_word_embeddings", default=False)
    layer = pre_norm("decoder layer", attention(c), mlp(c), c.size("hidden_size"))
    return replace(model(c, "llada", decoder(c, [layer], tied=tied), tied=tied), diffusion=WHOLE)


@architecture("DreamModel", model_types=("Dream", "dream"))
def dream(c: Config) -> Model:
    return replace(qwen2(c), family="dream", diffusion=WHOLE)


@architecture("LLaDAMoEModelLM", "LLaDAMoEModel", model_types=("lladamoe", "llada_moe"))
def llada_moe(c: Config) -> Model:
    c = c.with_defaults({"num_experts": 64, "num_experts_per_tok": 8})
    mixture = moe(c, intermediate_size=c.size("expert_intermediate_size")) if _names_experts(c) else experts(c)
    layer = pre_norm("mixture layer", attends(c), mixture, c.size("hidden_size"))
    tied = c.flag("tie_word_embeddings", default=False)
    return replace(model(c, "llada", decoder(c, [layer], tied=tied), tied=tied), diffusion=WHOLE)


def _names_experts(c: Config) -> bool:
    return "expert_intermediate_size" in c


@architecture("LLaDA2MoeModelLM", model_types=("llada2_moe",))
def llada2_moe(c: Config) -> Model:
    """LLaDA2: Ling 2's layers, a norm on each head's query and key, and experts behind a dense layer."""
    c = c.with_defaults({"first_k_dense_replace": 0, "num_shared_experts": 1})
    width = c.size("moe_intermediate_size")
    shared = c.depth("num_shared_experts", smallest=0)

    def layer(kind: str) -> Block:
        mixer = attention(c, bias=c.flag("use_qkv_bias", default=False), out_bias=False, qk_norm="head")
        feed = mlp(c) if kind == "dense" else moe(c, shared_size=width * shared, correction_bias=True)
        return pre_norm(Message("{feed} layer", feed=kind), mixer, feed, c.size("hidden_size"))

    return replace(stack(c, "llada2", feed_kinds(c), layer), diffusion=BLOCKS)


@architecture("SDARForCausalLM", model_types=("sdar",))
def sdar(c: Config) -> Model:
    return replace(qwen3(c), family="sdar", diffusion=SMALL_BLOCKS)


@architecture("SDARMoeForCausalLM", model_types=("sdar_moe",))
def sdar_moe(c: Config) -> Model:
    return replace(qwen3_moe(c), family="sdar", diffusion=SMALL_BLOCKS)


@architecture("Fast_dLLM_QwenForCausalLM", model_types=("Fast_dLLM_Qwen",))
def fast_dllm(c: Config) -> Model:
    return replace(qwen2(c), family="fast_dllm", diffusion=CONVERTED)

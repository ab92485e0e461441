"""ERNIE 4.5, dense and mixtures.

Structure: transformers 5.23, models/ernie4_5 and models/ernie4_5_moe (biases everywhere if use_bias;
moe_layer_start_index, moe_layer_end_index and moe_layer_interval say which layers are mixtures; the router's
correction bias is a parameter under moe_statics). An absent tie_word_embeddings means tied. The checkpoints hold a
dense draft layer (mtp_block), which transformers ignores: vllm-project/vllm vllm/model_executor/models/ernie_mtp.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe, stack
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import attention, mlp, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import Linear, MoE

DEFAULTS = {"head_dim": 128}


@architecture("Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM", model_types=("ernie4_5",))
def ernie(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    bias = c.flag("use_bias", default=False)
    layer = pre_norm("decoder layer", attention(c, bias=bias), mlp(c, bias=bias), c.size("hidden_size"))
    return stack(c, "ernie", [0] * num_layers(c), lambda _: layer, tied=True)


@architecture("Ernie4_5_MoeForCausalLM", model_types=("ernie4_5_moe",))
def ernie_moe(c: Config) -> Model:
    bias = c.flag("use_bias", default=False)

    def layer(kind: str) -> Block:
        feed = mlp(c, bias=bias) if kind == "dense" else _mixture(c, bias)
        return pre_norm(Message("{kind} layer", kind=kind), attention(c, bias=bias), feed, c.size("hidden_size"))

    return stack(c, "ernie", _feed_kinds(c), layer, tied=True, head_bias=bias, drafts=_drafts(c, layer("dense"), bias))


def _mixture(c: Config, bias: bool) -> MoE:
    width = c.size("moe_intermediate_size")
    shared = c.depth("moe_num_shared_experts", default=0, smallest=0)
    return moe(
        c,
        intermediate_size=width,
        shared_size=width * shared,
        shared_bias=bias,
        correction_bias=True,
        correction_name="moe_statics.e_score_correction_bias",
    )


def _feed_kinds(c: Config) -> list[str]:
    count = num_layers(c)
    first = c.depth("moe_layer_start_index", default=1, smallest=0)
    last = c.size("moe_layer_end_index", default=-1, smallest=-1)
    every = c.size("moe_layer_interval", default=1)
    end = count - 1 if last == -1 else last
    return ["sparse" if (i + 1) % every == 0 and first <= i <= end else "dense" for i in range(count)]


def _drafts(c: Config, layer: Block, bias: bool) -> list[Branch]:
    count, h = c.depth("num_nextn_predict_layers", default=0, smallest=0), c.size("hidden_size")
    if not count:
        return []
    joined = (
        norm("mtp_emb_norm", h),
        norm("mtp_hidden_norm", h),
        Linear(name="mtp_linear_proj", in_features=2 * h, out_features=h, bias=bias),
    )
    block = Block("multi-token prediction layer", (*joined, *layer.ops))
    return [Branch(name="multi-token prediction", kind="draft", hidden_size=h, blocks=(block,), layers=(0,) * count)]

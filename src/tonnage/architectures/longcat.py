"""LongCat-Flash: two latent attentions and two dense feed-forwards a layer beside one mixture, some of whose
experts do nothing.

Structure: transformers 5.23, models/longcat_flash/modeling_longcat_flash.py and configuration_longcat_flash.py. The
router chooses among n_routed_experts + zero_expert_num; a token that goes to one of the latter stays as it is, so
moe_topk is the most experts that a token passes through. transformers allocates gate and up matrices for them too,
which no checkpoint holds; they are not counted here. The checkpoint holds a dense draft layer (`mtp.`) with a copy of
the embedding, which transformers ignores and the config does not count; vLLM takes one (vllm-project/vllm
vllm/model_executor/models/longcat_flash_mtp.py).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe, stack
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import latent_attention, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.ops import MLP, Embedding, LatentAttention, Linear, Op, Parameter


@architecture("LongcatFlashForCausalLM", model_types=("longcat_flash",))
def longcat(c: Config) -> Model:
    h = c.size("hidden_size")
    dense, width = (
        c.size("ffn_hidden_size", "intermediate_size"),
        c.size("expert_ffn_hidden_size", "moe_intermediate_size"),
    )
    idle = c.depth("zero_expert_num", default=0, smallest=0)
    ops: tuple[Op, ...] = ()
    for i in (0, 1):
        ops += (
            norm(f"input_layernorm.{i}", h),
            _attention(c, f"self_attn.{i}"),
            norm(f"post_attention_layernorm.{i}", h),
        )
        ops += (MLP(name=f"mlps.{i}", hidden_size=h, intermediate_size=dense),)
    experts = moe(c, top_k=c.depth("moe_topk"), intermediate_size=width, router_name="router.classifier")
    # the router's rows and biases for the idle experts
    extra = Parameter(name="mlp.router.classifier.weight", elements=idle * h, part="router")
    bias = Parameter(name="mlp.router.e_score_correction_bias", elements=experts.num_experts + idle, part="router")
    return stack(
        c,
        "longcat",
        [0] * num_layers(c),
        lambda _: Block("layer", (*ops, experts, extra, bias)),
        drafts=_drafts(c, dense),
    )


def _drafts(c: Config, width: int) -> list[Branch]:
    count, h = c.depth("num_nextn_predict_layers", default=1, smallest=0), c.size("hidden_size")
    if not count:
        return []
    before = (Embedding(name="mtp.embed_tokens", num_embeddings=c.size("vocab_size"), width=h),)
    ops = (
        norm("enorm", h),
        norm("hnorm", h),
        Linear(name="eh_proj", in_features=2 * h, out_features=h),
        norm("input_layernorm", h),
        _attention(c, "self_attn"),
        norm("post_attention_layernorm", h),
        MLP(hidden_size=h, intermediate_size=width),
    )
    block = Block("multi-token prediction layer", ops)
    return [
        Branch(
            name="multi-token prediction",
            kind="draft",
            hidden_size=h,
            before=before,
            blocks=(block,),
            layers=(0,) * count,
            after=(norm("mtp.norm", h),),
        )
    ]


def _attention(c: Config, name: str) -> LatentAttention:
    return latent_attention(c, name=name)

"""Qwen3-Next, Qwen3.5 and Qwen3.6: three layers of gated DeltaNet, then one of gated attention; dense or mixtures.

Structure: transformers 5.23, models/qwen3_next/modeling_qwen3_next.py, models/qwen3_5/modeling_qwen3_5.py and
models/qwen3_5_moe/modeling_qwen3_5_moe.py (which splits the DeltaNet's projections in four). The checkpoints also hold
a multi-token-prediction layer under `mtp.`, which transformers ignores (_keys_to_ignore_on_load_unexpected); its
structure: vllm-project/vllm vllm/model_executor/models/qwen3_next_mtp.py and qwen3_5_mtp.py. Qwen3-Next's config does
not count it, and vLLM takes one.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, stack
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import attention, norm, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.qwen2_moe import feed_forward, mixture_kinds
from tonnage.kernel.message import Message
from tonnage.ops import Attention, Embedding, GatedDeltaNet, Linear, Op

Inputs = tuple[tuple[str, str], ...]
KINDS = ("linear_attention", "full_attention")
FUSED: Inputs = (("in_proj_qkvz", "qkvz"), ("in_proj_ba", "ba"))
SPLIT: Inputs = (("in_proj_qkv", "qkv"), ("in_proj_z", "z"), ("in_proj_b", "b"), ("in_proj_a", "a"))
STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@architecture("Qwen3NextForCausalLM", model_types=("qwen3_next",))
def qwen3_next(c: Config) -> Model:
    drafts = c.depth("num_nextn_predict_layers", default=1, smallest=0)
    return _hybrid(c, mixture_kinds(c), inputs=FUSED, drafts=drafts)


@architecture("Qwen3_5ForCausalLM", model_types=("qwen3_5_text",))
def qwen3_5(c: Config) -> Model:
    return _hybrid(c, ["dense"] * len(_mixer_kinds(c)), inputs=SPLIT, drafts=_drafts(c))


@architecture("Qwen3_5MoeForCausalLM", model_types=("qwen3_5_moe_text",))
def qwen3_5_moe(c: Config) -> Model:
    return _hybrid(c, ["sparse"] * len(_mixer_kinds(c)), inputs=SPLIT, drafts=_drafts(c))


def _hybrid(c: Config, feeds: list[str], inputs: Inputs, drafts: int) -> Model:
    def layer(kind: tuple[str, str]) -> Block:
        mixer = delta_net(c, inputs) if kind[0] == "linear_attention" else _attention(c)
        return pre_norm(
            Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]),
            mixer,
            feed_forward(c, kind[1]),
            c.size("hidden_size"),
        )

    kinds = list(zip(_mixer_kinds(c), feeds, strict=True))
    return stack(c, "qwen3_next", kinds, layer, drafts=_draft_branch(c, drafts, feeds[-1]))


def _mixer_kinds(c: Config) -> list[str]:
    interval = c.size("full_attention_interval", default=4)
    return layer_kinds(c, lambda i: "linear_attention" if (i + 1) % interval else "full_attention", KINDS)


def _attention(c: Config) -> Attention:
    # transformers gates always; vLLM reads attn_output_gate, which the released configs set
    gate = c.flag("attn_output_gate", default=True)
    return attention(c, bias=c.flag("attention_bias", default=False), qk_norm="head", gate=gate)


def delta_net(c: Config, inputs: Inputs) -> GatedDeltaNet:
    return GatedDeltaNet(
        hidden_size=c.size("hidden_size"),
        key_heads=c.size("linear_num_key_heads"),
        value_heads=c.size("linear_num_value_heads"),
        key_dim=c.size("linear_key_head_dim"),
        value_dim=c.size("linear_value_head_dim"),
        conv_kernel=c.size("linear_conv_kernel_dim"),
        inputs=inputs,
        state_bytes=STATE_BYTES[c.one_of("mamba_ssm_dtype", tuple(STATE_BYTES), default="float32")],
    )


def _drafts(c: Config) -> int:
    return c.depth("mtp_num_hidden_layers", default=0, smallest=0)


def _draft_branch(c: Config, count: int, feed: str) -> list[Branch]:
    """Hidden state and next embedding, each normalised, joined by one matrix; then full-attention layers and a norm."""
    if not count:
        return []
    h = c.size("hidden_size")
    before: tuple[Op, ...] = ()
    if c.flag("mtp_use_dedicated_embeddings", default=False):
        before = (Embedding(name="mtp.embed_tokens", num_embeddings=c.size("vocab_size"), width=h),)
    joined = (
        norm("mtp.pre_fc_norm_hidden", h),
        norm("mtp.pre_fc_norm_embedding", h),
        Linear(name="mtp.fc", in_features=2 * h, out_features=h),
    )
    layer = pre_norm("multi-token prediction layer", _attention(c), feed_forward(c, feed), h)
    return [
        Branch(
            name="multi-token prediction",
            kind="draft",
            hidden_size=h,
            before=(*before, *joined),
            blocks=(layer,),
            layers=(0,) * count,
            after=(norm("mtp.norm", h),),
        )
    ]

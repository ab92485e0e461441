"""MiniMax-M3: block-sparse attention, mixtures with a shared expert, and a vision tower.

Structure and defaults: transformers 5.23, models/minimax_m3_vl: MiniMaxM3VLForCausalLM (text) and
MiniMaxM3SparseForConditionalGeneration, which saves the fields of sparse_attention_config flat and by other names;
names of the checkpoint: its conversion_mapping.py. Every norm of queries and keys is one head wide. What multi-token
prediction is made of: see minimax.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind, moe
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture, tower
from tonnage.architectures._towers import (
    OUT_PROJ,
    bidirectional,
    joined,
    language_model,
    linear,
    patch_area,
    patches,
    plain_mlp,
    projected,
    stack,
    vision_layer,
)
from tonnage.kernel.message import Message
from tonnage.ops import BlockSparseAttention, Linear, MoE, Op

TEXT = {
    "hidden_size": 6144, "intermediate_size": 3072, "num_hidden_layers": 60, "num_attention_heads": 64,
    "vocab_size": 200064, "num_key_value_heads": 4, "head_dim": 128, "num_experts_per_tok": 4, "num_local_experts": 128,
    "dense_intermediate_size": 12288, "shared_intermediate_size": 3072, "tie_word_embeddings": False,
    "max_position_embeddings": 524288,
}  # fmt: skip
INDEX = {
    "sparse_num_index_heads": 4,
    "sparse_index_dim": 128,
    "sparse_block_size": 128,
    "sparse_topk_blocks": 16,
    "sparse_local_block": 1,
}
VISION = {
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "num_attention_heads": 16,
    "num_channels": 3,
    "image_size": 2016,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
}


@architecture(
    "MiniMaxM3ForCausalLM",
    "MiniMaxM3SparseForCausalLM",
    "MiniMaxM3VLForCausalLM",
    model_types=("minimax_m3", "minimax_m3_text", "minimax_m3_vl_text"),
)
def minimax_m3(c: Config) -> Model:
    c = c.with_defaults(TEXT)
    blocks, layers = by_kind(kinds(c), lambda kind: layer(c, *kind))
    tied = c.flag("tie_word_embeddings")
    return model(c, "minimax_m3", decoder(c, blocks, layers, tied=tied), *draft(c), tied=tied)


@architecture("MiniMaxM3SparseForConditionalGeneration", model_types=("minimax_m3_vl",))
def minimax_m3_vl(c: Config) -> Model:
    """The tower's patches go through a projector, then four neighbours are merged into one token."""
    text = language_model(c, "minimax_m3_vl_text")
    section = c.section("vision_config").with_defaults(VISION)
    width = c.size("projector_hidden_size", default=6144)
    merged = text.hidden_size * section.size("spatial_merge_size") ** 2
    projector = (
        linear("multi_modal_projector.linear_1", section.size("hidden_size"), width),
        linear("multi_modal_projector.linear_2", width, text.hidden_size),
        linear("patch_merge_mlp.linear_1", merged, width),
        linear("patch_merge_mlp.linear_2", width, text.hidden_size),
    )
    return joined(text, "minimax_m3", projected(vision(section), *projector))


@tower("minimax_m3_vl_vision")
def vision(c: Config) -> Branch:
    """CLIP's layers without class token, position table and last norm; patches are cut out of two frames."""
    c = c.with_defaults(VISION)
    width = c.size("hidden_size")
    taps = patch_area(c) * c.size("temporal_patch_size")
    before = (patches(c, "embeddings.patch_embedding", taps, width, bias=False), norm("pre_layrnorm", width, "layer"))
    block = vision_layer(width, bidirectional(c, names=OUT_PROJ), plain_mlp(width, c.size("intermediate_size")))
    return stack("minimax m3 vision tower", width, [block], [0] * num_layers(c), before)


def layer(c: Config, attends: str, feeds: str) -> Block:
    mixer: Op = attention(c, qk_norm="head")
    if attends == "sparse":
        index = (c.section("sparse_attention_config", required=False) or c).with_defaults(INDEX)
        local = index.size("sparse_local_block", "index_local_blocks", smallest=0)
        blocks = index.size("sparse_topk_blocks", "index_topk_blocks") + local
        mixer = BlockSparseAttention(
            attention=attention(c, qk_norm="head"),
            index_heads=index.size("sparse_num_index_heads", "index_n_heads"),
            index_dim=index.size("sparse_index_dim", "index_head_dim"),
            visible=blocks * index.size("sparse_block_size", "index_block_size"),
        )
    feed: Op = mixture(c) if feeds == "mixture" else mlp(c, intermediate_size=c.size("dense_intermediate_size"))
    return pre_norm(
        Message("{attends} attention, {feeds}", attends=attends, feeds=feeds), mixer, feed, c.size("hidden_size")
    )


def mixture(c: Config) -> MoE:
    return moe(
        c,
        name="block_sparse_moe",
        expert_names=("w1", "w3", "w2"),
        intermediate_size=c.size("intermediate_size"),
        correction_bias=True,
        correction_name="e_score_correction_bias",
        shared_size=c.size("shared_intermediate_size"),
    )


def draft(c: Config) -> list[Branch]:
    """Multi-token prediction: a mixture layer behind a matrix that joins hidden state and embedding, and a norm."""
    count = c.depth("num_nextn_predict_layers", "num_mtp_modules", default=0, smallest=0)
    if not count:
        return []
    h = c.size("hidden_size")
    first = (norm("enorm", h), norm("hnorm", h), Linear(name="eh_proj", in_features=2 * h, out_features=h))
    block = Block("multi-token prediction", (*first, *layer(c, "sparse", "mixture").ops, norm("final_layernorm", h)))
    return [Branch(name="multi-token prediction", kind="draft", hidden_size=h, blocks=(block,), layers=(0,) * count)]


def kinds(c: Config) -> list[tuple[str, str]]:
    """Attention and feed-forward of each layer: 1 in the two lists of frequencies is sparse, and a mixture."""
    layers = num_layers(c)
    sparse = c.section("sparse_attention_config", required=False)
    freq = sparse.items("sparse_attention_freq", default=None, length=layers) if sparse is not None else None
    names = c.items("layer_types", default=None, length=layers)
    feeds = c.items("mlp_layer_types", default=None, length=layers)
    routed = c.items("moe_layer_freq", default=None, length=layers)
    if names is not None:
        freq = [name != "full_attention" for name in names]
    if feeds is not None:
        routed = [name == "sparse" for name in feeds]
    attends = ["sparse" if is_sparse else "full" for is_sparse in freq or [0] * layers]
    return list(
        zip(attends, ["mixture" if is_routed else "dense" for is_routed in routed or [1] * layers], strict=True)
    )

"""DeepSeek V4: compressed sparse attention, heavily compressed attention and short windows, four residual streams,
experts.

Structure: deepseek-ai/DeepSeek-V4-Flash inference/model.py (whose names the checkpoint has) and transformers 5.23,
models/deepseek_v4. `compress_ratios` gives each layer's tokens per cache entry: 4 sparse with an indexer, 128 heavy, 0
the window alone; its last items are those of the multi-token-prediction layers. The first num_hash_layers layers
choose experts by a table of the token (tid2eid, integers) instead of a corrected score. transformers ignores the
`mtp.` weights.
"""

from tonnage.architectures._config import Config, is_one_of
from tonnage.architectures._layers import by_kind, layer_kinds, moe
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import decoder, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed
from tonnage.ops import CompressedAttention, HyperConnection, Linear, Op, Parameter

# DeepseekV4Config's defaults; sgl-project's repackaged files leave some of these fields out.
DEFAULTS = {"hc_mult": 4, "sliding_window": 128, "num_hash_layers": 3, "head_dim": 512, "index_head_dim": 128}
RATIOS = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128, "sliding_attention": 0}
SPARSE = 4  # the ratio whose entries overlap and have an indexer


@architecture("DeepseekV4ForCausalLM", model_types=("deepseek_v4", "deepseek_ref"))
def deepseek_v4(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    count, ratios = num_layers(c), _ratios(c)
    kinds = list(zip(ratios[:count], _hashed(c), strict=True))
    blocks, layers = by_kind(kinds, lambda kind: _layer(c, *kind))
    tied = c.flag("tie_word_embeddings", default=False)
    main = decoder(c, blocks, layers, tied=tied, after=(_hyper_head(c),))
    return model(c, "deepseek_v4", main, *_drafts(c, ratios[count:]), tied=tied)


def _ratios(c: Config) -> list[int]:
    """Tokens per cache entry of every layer, draft layers last."""
    count = num_layers(c)
    ratios, kinds = c.items("compress_ratios", default=None), c.items("layer_types", default=None)
    if ratios is None and kinds is not None:
        if unknown := [kind for kind in kinds if not is_one_of(kind, RATIOS)]:
            raise InvalidInput(
                "{where}: layer_types may hold {ratios}. Got {unknown}.",
                where=c.where,
                ratios=listed(RATIOS),
                unknown=shown(unknown[0]),
            )
        ratios = [RATIOS[kind] for kind in kinds]
    if ratios is None:
        raise InvalidInput(
            "{where} lacks compress_ratios, which decides how much of its context each layer keeps.", where=c.where
        )
    if len(ratios) < count or any(ratio not in RATIOS.values() for ratio in ratios):
        raise InvalidInput(
            "{where}: compress_ratios must hold 0, 4 or 128 for each of {count} layers. Got {given}.",
            where=c.where,
            count=count,
            given=shown(ratios),
        )
    return ratios


def _hashed(c: Config) -> list[bool]:
    """Whether each layer chooses experts by a table: the first num_hash_layers, or those marked in mlp_layer_types."""
    first = c.depth("num_hash_layers", smallest=0)
    kinds = layer_kinds(c, lambda layer: "hash_moe" if layer < first else "moe", ("hash_moe", "moe"), "mlp_layer_types")
    return [kind == "hash_moe" for kind in kinds]


def _layer(c: Config, ratio: int, hashed: bool) -> Block:
    h = c.size("hidden_size")
    ops: tuple[Op, ...] = (hyper_connection(c, "hc_attn"), norm("attn_norm", h), _attention(c, ratio))
    ops += (hyper_connection(c, "hc_ffn"), norm("ffn_norm", h))
    if hashed:
        entries = c.size("vocab_size") * c.depth("num_experts_per_tok")
        ops += (Parameter(name="ffn.gate.tid2eid", elements=entries, part="router"),)
    width = c.size("moe_intermediate_size")
    experts = moe(
        c,
        name="ffn",
        intermediate_size=width,
        correction_bias=not hashed,
        correction_name="gate.bias",
        expert_names=("w1", "w3", "w2"),
        shared_size=width * c.depth("n_shared_experts", default=1),
        shared_names=("w1", "w3", "w2"),
    )
    name = {SPARSE: "compressed sparse", 0: "sliding"}.get(ratio, "heavily compressed")
    return Block(
        Message("{name} layer with hashed experts", name=name) if hashed else Message("{kind} layer", kind=name),
        (*ops, experts),
    )


def _attention(c: Config, ratio: int) -> CompressedAttention:
    indexed = ratio == SPARSE
    return CompressedAttention(
        hidden_size=c.size("hidden_size"),
        heads=c.size("num_attention_heads"),
        head_dim=c.size("head_dim"),
        q_lora_rank=c.size("q_lora_rank"),
        out_groups=c.size("o_groups"),
        out_rank=c.size("o_lora_rank"),
        window=c.size("sliding_window"),
        ratio=ratio,
        overlap=indexed,
        index_heads=c.size("index_n_heads") if indexed else 0,
        index_dim=c.size("index_head_dim") if indexed else 0,
        index_topk=c.size("index_topk") if indexed else 0,
    )


def hyper_connection(c: Config, name: str, joiner: str = "_") -> HyperConnection:
    """The weights of a sublayer that read the streams, write to them and mix them."""
    copies = c.size("hc_mult")
    return HyperConnection(
        name=name, width=c.size("hidden_size"), copies=copies, outputs=(2 + copies) * copies, scales=3, joiner=joiner
    )


def _hyper_head(c: Config) -> HyperConnection:
    copies = c.size("hc_mult")
    return HyperConnection(name="hc_head", width=c.size("hidden_size"), copies=copies, outputs=copies, scales=1)


def _drafts(c: Config, ratios: list[int]) -> list[Branch]:
    """Multi-token prediction shares the embedding and the head; it has norms, two projections and a layer of its
    own.
    """
    count, h = c.depth("num_nextn_predict_layers", default=0, smallest=0), c.size("hidden_size")
    if not count:
        return []
    joined = (
        norm("enorm", h),
        norm("hnorm", h),
        Linear(name="e_proj", in_features=h, out_features=h),
        Linear(name="h_proj", in_features=h, out_features=h),
    )
    layer = _layer(c, ratios[0] if ratios else 0, False)
    block = Block("multi-token prediction layer", (*joined, *layer.ops, norm("norm", h), _hyper_head(c)))
    return [Branch(name="multi-token prediction", kind="draft", hidden_size=h, blocks=(block,), layers=(0,) * count)]

"""MPT: positions by ALiBi or learned, LayerNorm and matrices without biases (or all with them), tied embedding.

Two classes read the same config.json. `MPTForCausalLM` is MosaicML's (mosaicml/llm-foundry llmfoundry/models/mpt),
which every
released model names: it honours no_bias, learned_pos_emb, expansion_ratio, norm_type, ffn_type, qk_ln and grouped
heads. `MptForCausalLM`, that of huggingface/transformers (v5.23), only knows the MPT-7B and MPT-30B form: ALiBi, no
biases, an inner width of 4 * d_model.
"""

from typing import Any

from tonnage.architectures._classic import full_attention, plain_mlp, width
from tonnage.architectures._config import LARGEST_SIZE, Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import NormKind, decoder, model, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention

HEADS = ("multihead_attention", "multiquery_attention", "grouped_query_attention")


@architecture("MPTForCausalLM", model_types=("mpt",))
def mpt(c: Config) -> Model:
    attention = _section(c, "attn_config")
    absolute = not attention.flag("alibi", default=False) and not attention.flag("rope", default=False)
    learned = absolute and c.flag("learned_pos_emb", default=True)
    positions = c.size("max_seq_len", default=2048) if learned else 0
    bias = not c.flag("no_bias", default=False)
    kind: NormKind = "rms" if "rms" in c.text("norm_type", default="low_precision_layernorm") else "layer"
    return _model(c, _grouped(c, attention, bias, kind), _feed(c, bias), kind, bias, positions)


@architecture("MptForCausalLM")
def transformers_mpt(c: Config) -> Model:
    mixer = full_attention(c, name="attn", fused="Wqkv", names=("q", "k", "v", "out_proj"))
    return _model(c, mixer, plain_mlp(c, name="ffn", names=("up_proj", "down_proj"), bias=False), "layer", False, 0)


def _model(c: Config, mixer: Attention, feed: MLP, kind: NormKind, bias: bool, positions: int) -> Model:
    options: dict[str, Any] = {"bias": bias and kind == "layer"}
    layer = pre_norm("decoder layer", mixer, feed, width(c), kind, names=("norm_1", "norm_2"), **options)
    tied = c.flag("tie_word_embeddings", default=True)
    names = ("wte", "wpe", "norm_f")
    branch = decoder(c, [layer], norm_kind=kind, norm_options=options, tied=tied, positions=positions, names=names)
    return model(c, "mpt", branch, tied=tied, context=c.size("max_seq_len", default=2048))


def _feed(c: Config, bias: bool) -> MLP:
    gated = _section(c, "ffn_config").text("ffn_type", default="mptmlp") == "mptglu"
    ratio = c.number("expansion_ratio", default=4)
    inner = int(ratio * width(c))
    if not 0 < inner <= LARGEST_SIZE:
        raise InvalidInput(
            "{where}: expansion_ratio must widen d_model to a usable size. Got {ratio}.", where=c.where, ratio=ratio
        )
    return MLP(
        name="ffn",
        hidden_size=width(c),
        intermediate_size=inner,
        gated=gated,
        bias=bias,
        names=("gate", "up_proj", "down_proj"),
    )


def _grouped(c: Config, attention: Config, bias: bool, kind: NormKind) -> Attention:
    """MosaicML's kinds of attention; qk_ln normalises all heads at once."""
    heads = c.size("n_heads")
    sharing = attention.one_of("attn_type", HEADS, default=HEADS[0])
    groups = heads if sharing == HEADS[0] else 1 if sharing == HEADS[1] else attention.size("kv_n_heads")
    norms = "" if not attention.flag("qk_ln", default=False) else "layer-full" if bias and kind == "layer" else "full"
    window = attention.size("sliding_window_size", default=-1, smallest=-1)
    return full_attention(
        c,
        name="attn",
        kv_heads=groups,
        bias=bias,
        fused="Wqkv",
        names=("q", "k", "v", "out_proj"),
        qk_norm=norms,
        norm_names=("q_ln", "k_ln"),
        window=window if window > 0 else None,
    )


def _section(c: Config, name: str) -> Config:
    return c.section(name, required=False) or c.absent_section(name)

"""Pieces that families share: attention and MLP under Hugging Face's usual names, and the usual decoder."""

from collections.abc import Sequence
from typing import Any, Literal

from tonnage.architectures._config import Config, is_one_of
from tonnage.architectures._model import Block, Branch, BranchKind, Model
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed
from tonnage.ops import MLP, Attention, Embedding, Head, LatentAttention, Norm, Op

NormKind = Literal["rms", "layer"]


def norm(name: str, width: int, kind: NormKind = "rms", **options: Any) -> Norm:
    """A norm, RMSNorm by default."""
    return Norm(name=name, width=width, kind=kind, **options)


def head_dim(c: Config) -> int:
    """`head_dim` of the config, else hidden_size / num_attention_heads, which must then divide."""
    dim = c.size("head_dim", default=None)
    if dim is not None:
        return dim
    hidden, heads = (
        c.size("hidden_size", "n_embd", "d_model"),
        c.size("num_attention_heads", "n_head", "num_heads", "n_heads"),
    )
    if hidden % heads:
        raise InvalidInput(
            "{where}: {@num_attention_heads} ({heads}) must divide {@hidden_size} ({hidden}), or "
            "{@head_dim} must be given.",
            where=c.where,
            heads=heads,
            hidden=hidden,
        )
    return hidden // heads


def kv_heads(c: Config, heads: int) -> int:
    """`num_key_value_heads`, by default as many as query heads; it must divide them."""
    kv = c.size("num_key_value_heads", default=heads)
    if heads % kv:
        raise InvalidInput(
            "{where}: {@num_key_value_heads} ({found}) must divide {@num_attention_heads} ({heads}).",
            where=c.where,
            found=kv,
            heads=heads,
        )
    return kv


def attention(c: Config, **options: Any) -> Attention:
    """Grouped attention from the usual config fields; `options` override or add fields of Attention."""
    if "heads" not in options:
        options["heads"] = c.size("num_attention_heads")
    if "kv_heads" not in options:
        options["kv_heads"] = kv_heads(c, options["heads"])
    if "head_dim" not in options:
        options["head_dim"] = head_dim(c)
    if "hidden_size" not in options:
        options["hidden_size"] = c.size("hidden_size")
    return Attention(**options)


def latent_attention(c: Config, **options: Any) -> LatentAttention:
    """Latent attention from DeepSeek's config fields; `options` override or add fields of LatentAttention."""
    fields: dict[str, Any] = {
        "hidden_size": c.size("hidden_size"),
        "heads": c.size("num_attention_heads"),
        "q_lora_rank": c.size("q_lora_rank", default=None),
        "kv_lora_rank": c.size("kv_lora_rank"),
        "qk_nope_head_dim": c.size("qk_nope_head_dim"),
        "qk_rope_head_dim": c.size("qk_rope_head_dim", smallest=0),
        "bias": c.flag("attention_bias", default=False),
    }
    if "v_head_dim" not in options:
        fields["v_head_dim"] = c.size("v_head_dim")
    return LatentAttention(**{**fields, **options})


def mlp(c: Config, **options: Any) -> MLP:
    """Gated feed-forward from the usual config fields."""
    options.setdefault("hidden_size", c.size("hidden_size"))
    if "intermediate_size" not in options:
        options["intermediate_size"] = c.size("intermediate_size")
    return MLP(**options)


def pre_norm(
    name: str,
    mixer: Op,
    feed: Op,
    width: int,
    kind: NormKind = "rms",
    names: tuple[str, str] = ("input_layernorm", "post_attention_layernorm"),
    **options: Any,
) -> Block:
    """The usual layer: norm, mixer, norm, feed-forward."""
    first, second = (norm(norm_name, width, kind, **options) for norm_name in names)
    return Block(name, (first, mixer, second, feed))


def sandwich(name: str, mixer: Op, feed: Op, width: int, kind: NormKind = "rms") -> Block:
    """Norms before and after both sublayers (Gemma 2 and 3)."""
    return Block(
        name,
        (
            norm("input_layernorm", width, kind),
            mixer,
            norm("post_attention_layernorm", width, kind),
            norm("pre_feedforward_layernorm", width, kind),
            feed,
            norm("post_feedforward_layernorm", width, kind),
        ),
    )


def pattern(
    c: Config, blocks: dict[str, Block], kinds: Sequence[str], field: str
) -> tuple[tuple[Block, ...], tuple[int, ...]]:
    """The blocks in use and the index of each layer's block, from a list of layer kinds."""
    used = [kind for kind in blocks if kind in kinds]
    for kind in kinds:
        if not is_one_of(kind, blocks):
            raise InvalidInput(
                "{where}: {field} may hold {known}. Got {kind}.",
                where=c.where,
                field=field,
                known=listed(blocks),
                kind=shown(kind),
            )
    index = {kind: i for i, kind in enumerate(used)}
    return tuple(blocks[kind] for kind in used), tuple(index[kind] for kind in kinds)


def decoder(
    c: Config,
    blocks: Sequence[Block],
    layers: Sequence[int] | None = None,
    *,
    name: str = "decoder",
    kind: BranchKind = "decoder",
    norm_kind: NormKind = "rms",
    norm_options: dict[str, Any] | None = None,
    tied: bool = False,
    head: bool = True,
    head_bias: bool = False,
    positions: int = 0,
    before: Sequence[Op] = (),
    after: Sequence[Op] = (),
    final_norm: bool = True,
    hidden_size: int | None = None,
    vocab_size: int | None = None,
    names: tuple[str, str, str] = ("embed_tokens", "embed_positions", "norm"),
) -> Branch:
    """Token embedding, layers, final norm, head. `positions`: rows of a learned position table; `after`: before the
    head.

    Without `layers`, all num_hidden_layers are of the first block. `names`: of the embedding, the position table and
    the norm.
    """
    h = hidden_size or c.size("hidden_size", "n_embd", "d_model")
    vocabulary = vocab_size or c.size("vocab_size", smallest=2)  # one word leaves nothing to predict
    if layers is None:
        layers = (0,) * num_layers(c)
    first: tuple[Op, ...] = (Embedding(name=names[0], num_embeddings=vocabulary, width=h),)
    if positions:
        first += (Embedding(name=names[1], num_embeddings=positions, width=h, split="replicated"),)
    last: tuple[Op, ...] = (norm(names[2], h, norm_kind, **(norm_options or {})),) if final_norm else ()
    last += tuple(after)
    if head:
        last += (Head(width=h, vocab_size=vocabulary, bias=head_bias, tied=tied),)
    return Branch(
        name=name,
        kind=kind,
        hidden_size=h,
        before=first + tuple(before),
        blocks=tuple(blocks),
        layers=tuple(layers),
        after=last,
    )


def num_layers(c: Config) -> int:
    """The number of decoder layers, under any of its names."""
    return c.depth("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def model(
    c: Config, family: str, *branches: Branch, tied: bool = False, context: int | None = None, **options: Any
) -> Model:
    """The Model of these branches, the first of which holds the language model."""
    main = branches[0]
    vocabulary = next((op.num_embeddings for op in main.before if isinstance(op, Embedding)), 0)
    if context is None:
        context = c.size(
            "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len", default=None
        )
    return Model(
        name=options.pop("name", ""),
        family=family,
        architecture="",
        hidden_size=main.hidden_size,
        vocab_size=vocabulary,
        context=context,
        branches=tuple(branches),
        tied=tied,
        **options,
    )

"""Pieces of the decoders before Llama: full attention under older names, and a feed-forward of two matrices."""

from typing import Any

from msgspec.structs import replace

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention, Norm, Op

WIDTH = ("hidden_size", "n_embd", "n_embed", "d_model")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads")


def width(c: Config) -> int:
    """Width of the residual stream, under its historic names."""
    return c.size(*WIDTH)


def full_attention(c: Config, **options: Any) -> Attention:
    """Attention whose heads share `hidden_size` evenly, with as many key/value heads as query heads unless `kv_heads`
    is set.
    """
    h, heads = width(c), c.size(*HEADS)
    options.setdefault("kv_heads", heads)
    return Attention(hidden_size=h, heads=heads, head_dim=head_width(c, h, heads), **options)


def head_width(c: Config, hidden: int, heads: int) -> int:
    """hidden / heads, which must divide."""
    if hidden % heads:
        raise InvalidInput(
            "{where}: {heads} attention heads must divide the hidden size, {hidden}.",
            where=c.where,
            heads=heads,
            hidden=hidden,
        )
    return hidden // heads


def grouped(c: Config, heads: int, *names: str) -> int:
    """Key/value heads from one of `names`, as many as `heads` where none is set; they must divide `heads`."""
    groups = c.size(*names, default=heads)
    if heads % groups:
        raise InvalidInput(
            "{where}: {names} ({groups}) must divide the number of attention heads ({heads}).",
            where=c.where,
            names=names[0],
            groups=groups,
            heads=heads,
        )
    return groups


def plain_mlp(c: Config, *sizes: str, names: tuple[str, str], name: str = "mlp", **options: Any) -> MLP:
    """Two matrices with an activation between; `sizes` are the names of the inner width, 4 * hidden_size without
    them.
    """
    h = width(c)
    inner = c.size(*sizes, default=4 * h) if sizes else 4 * h
    options.setdefault("bias", True)
    return MLP(name=name, hidden_size=h, intermediate_size=inner, gated=False, names=("", *names), **options)


def parallel_block(name: str, first: Norm, mixer: Op, feed: MLP, second: Norm | None = None) -> Block:
    """A block of parallel attention and feed-forward. The input that both read is kept for backward once.

    They share the output of one norm, or each has a norm of the same input.
    """
    if second is None:
        return Block(name, (first, mixer, replace(feed, keeps_input=False)))
    return Block(name, (first, mixer, replace(second, keeps=False), feed))

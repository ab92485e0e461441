"""The kind of each layer, and the decoder built from the kinds: shared by families whose layers differ."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from tonnage.architectures._config import Config, is_one_of
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import decoder, model, num_layers
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed
from tonnage.ops import MoE

Kind = TypeVar("Kind", bound=Hashable)
ATTENTION = ("full_attention", "sliding_attention")


def layer_kinds(
    c: Config, default: Callable[[int], str], known: Sequence[str] = ATTENTION, field: str = "layer_types"
) -> list[str]:
    """The kind of each layer: the config's list, else `default(layer)`. A longer list includes the draft layers'
    kinds.
    """
    count = num_layers(c)
    listed_kinds = c.items(field, default=None)
    if listed_kinds is None:
        return [default(layer) for layer in range(count)]
    if len(listed_kinds) < count:
        raise InvalidInput(
            "{where}: {name} must have {length} items, one for each layer. Got {count}.",
            where=c.where,
            name=field,
            length=count,
            count=len(listed_kinds),
        )
    for kind in listed_kinds:
        if not is_one_of(kind, known):
            raise InvalidInput(
                "{where}: {field} may hold {known}. Got {kind}.",
                where=c.where,
                field=field,
                known=listed(known),
                kind=shown(kind),
            )
    return listed_kinds[:count]


def feed_kinds(c: Config, default: Callable[[int], str] | None = None) -> list[str]:
    """ "dense" or "sparse" for each layer: mlp_layer_types, else the first layers dense and every
    moe_layer_freq-th a mixture.
    """
    first = c.depth("first_k_dense_replace", default=0, smallest=0)
    every = c.size("moe_layer_freq", default=1) if default is None else 1

    def usual(layer: int) -> str:
        return "sparse" if layer >= first and layer % every == 0 else "dense"

    return layer_kinds(c, default or usual, ("dense", "sparse"), "mlp_layer_types")


def every_nth_full(every: int) -> Callable[[int], str]:
    """Kinds of sliding layers in which each `every`-th one is full."""
    return lambda layer: "sliding_attention" if (layer + 1) % every else "full_attention"


def by_kind(kinds: Sequence[Kind], make: Callable[[Kind], Block]) -> tuple[tuple[Block, ...], tuple[int, ...]]:
    """One block for each kind in use, and the index of each layer's block."""
    used = list(dict.fromkeys(kinds))
    index = {kind: i for i, kind in enumerate(used)}
    return tuple(make(kind) for kind in used), tuple(index[kind] for kind in kinds)


def stack(
    c: Config,
    family: str,
    kinds: Sequence[Kind],
    make: Callable[[Kind], Block],
    *,
    tied: bool = False,
    drafts: Sequence[Branch] = (),
    context: int | None = None,
    notes: tuple[str, ...] = (),
    **options: Any,
) -> Model:
    """The usual decoder, where `make(kind)` is the layer of a kind; `tied`: the default of tie_word_embeddings."""
    is_tied = c.flag("tie_word_embeddings", default=tied)
    blocks, layers = by_kind(kinds, make)
    main = decoder(c, blocks, layers, tied=is_tied, **options)
    return model(c, family, main, *drafts, tied=is_tied, context=context, notes=notes)


def window_of(c: Config, kind: str, field: str = "sliding_window") -> int | None:
    """Tokens that a layer of this kind keeps: the config's window if it slides, else None."""
    return None if kind == "full_attention" else c.size(field)


def moe(c: Config, **options: Any) -> MoE:
    """Routed experts as most configs name them; `options` override or add fields of MoE."""
    if "num_experts" not in options:
        options["num_experts"] = c.depth("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
    if "top_k" not in options:
        options["top_k"] = c.depth("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k")
    if options["top_k"] > options["num_experts"]:
        chosen, experts = options["top_k"], options["num_experts"]
        raise InvalidInput(
            "{where}: {@num_experts_per_tok} sends a token to {chosen} experts of {experts}.",
            where=c.where,
            chosen=chosen,
            experts=experts,
        )
    if "intermediate_size" not in options:
        options["intermediate_size"] = c.size("moe_intermediate_size")
    return MoE(hidden_size=c.size("hidden_size"), **options)

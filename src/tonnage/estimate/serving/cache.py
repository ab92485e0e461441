"""The cache of one request: what the architecture keeps, and what an engine that pages sets aside for it.

An engine that pages takes the caches of all layers from one pool of equal blocks. Layers of one kind (full attention, a
window, a recurrent state) are dealt into groups of equally many layers; a block holds some tokens of all layers of one
group.
"""

from collections.abc import Callable

from msgspec import Struct

from tonnage.estimate.step.rank import Stage, layer_count
from tonnage.formulas import engines as e
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.ops import StateCache, TokenCache
from tonnage.runtimes import Cells, Paging, Pools

Cache = TokenCache | StateCache
Width = Callable[[Cache], float]  # bytes of one number


class Kind(Struct, frozen=True, eq=False):
    """Layers whose caches live equally long: all tokens, a window of them, or a state. `layers`: (how many, caches
    of one).
    """

    window: int | None
    is_state: bool
    layers: tuple[tuple[int, tuple[Cache, ...]], ...]

    @property
    def count(self) -> int:
        return sum(count for count, _ in self.layers)

    def only(self, which: Callable[[Cache], bool]) -> "Kind":
        """The same layers with some of their caches; without those that have none of these."""
        kept = ((count, tuple(cache for cache in caches if which(cache))) for count, caches in self.layers)
        return Kind(self.window, self.is_state, tuple((count, caches) for count, caches in kept if caches))

    @property
    def name(self) -> str:
        if self.is_state:
            return "recurrent states"
        return "full attention" if self.window is None else Message("window of {window} tokens", window=self.window)


def kinds(stage: Stage, windows: bool = True) -> tuple[Kind, ...]:
    """The layers of a stage by what they keep. A layer with caches of two kinds is in both. Without `windows` they
    keep every token.
    """
    layers_by_kind: dict[tuple[int | None, bool], list[tuple[int, tuple[Cache, ...]]]] = {}
    for block, count in stage.layers:
        for op in block.ops:
            for (window, is_state), caches in _by_life(op.caches()).items():
                layers_by_kind.setdefault((window if windows else None, is_state), []).append((count, caches))
    return tuple(Kind(window, is_state, tuple(layers)) for (window, is_state), layers in layers_by_kind.items())


def _by_life(caches: tuple[Cache, ...]) -> dict[tuple[int | None, bool], tuple[Cache, ...]]:
    """Caches of one op by (window, whether a state). A state beside keys and values lives as long as they do."""
    parts: dict[tuple[int | None, bool], tuple[Cache, ...]] = {}
    shared_window = next((cache.window for cache in caches if isinstance(cache, TokenCache)), None)
    is_state = all(isinstance(cache, StateCache) for cache in caches)
    for cache in caches:
        key = (cache.window if isinstance(cache, TokenCache) else shared_window, is_state)
        parts[key] = (*parts.get(key, ()), cache)
    return parts


def _is_of_pages(cache: Cache) -> bool:
    return isinstance(cache, StateCache) and cache.of_pages


class RequestCache:
    """The cache of one request of `s` tokens on one of `t` tensor ranks; `width` gives the bytes of one number of a
    cache.
    """

    def __init__(self, s: Number, t: Number, width: Width):
        self.s, self.t, self.width = s, t, width

    def kept(self, stage: Stage, name: str) -> Term:
        """What the architecture keeps: every token, or those of a full window, and states."""
        return _layers(name, stage, lambda cache: self._cached(cache, self.s, getattr(cache, "window", None)))

    def growth(self, stage: Stage, name: str) -> Term:
        """What one more token of context adds to it: layers whose window is not yet full."""
        return _layers(
            name, stage, lambda cache: self._grown(cache, cache.window) if isinstance(cache, TokenCache) else None
        )

    def _cached(self, cache: Cache, held: Number, window: int | None = None) -> Term:
        """`held` tokens of it, at most a window's."""
        heads, w = max(cache.heads, 1), self.width(cache)
        if isinstance(cache, StateCache):
            return Term.of(cache.name, f.state_cache_bytes, x=cache.elements, w=w, t=self.t, k=heads)
        r = held if window is None else window
        return Term.of(
            cache.name, f.token_cache_bytes, x=cache.elements, w=w, s=held, r=r, j=cache.stride, t=self.t, k=heads
        )

    def _grown(self, cache: TokenCache, window: Number | None) -> Term:
        r = self.s + 1 if window is None else window
        return Term.of(
            cache.name,
            g.token_growth_bytes,
            x=cache.elements,
            w=self.width(cache),
            s=self.s,
            r=r,
            j=cache.stride,
            t=self.t,
            k=max(cache.heads, 1),
        )


class PagedCache(RequestCache):
    """What an engine that pages sets aside for it; `in_flight`: tokens whose blocks a window cannot yet give back."""

    def __init__(self, s: Number, t: Number, width: Width, paging: Paging, in_flight: Number):
        super().__init__(s, t, width)
        self.paging, self.in_flight = paging, in_flight

    def kept(self, stage: Stage, name: str) -> Term:
        """Whole blocks of every kind of layer."""
        layer_kinds = kinds(stage, self.paging.windows)
        if self._shares_blocks(layer_kinds):
            page, shared = self._groups(layer_kinds)
            parts = [
                Term.product(kind.name, "bytes", layers, self._blocks(kind, B), page) for kind, layers, B in shared
            ]
            return Term.sum(name, *parts, unit="bytes")
        return Term.sum(
            name,
            *(self._alone(kind, count, caches) for kind in layer_kinds for count, caches in kind.layers),
            unit="bytes",
        )

    def growth(self, stage: Stage, name: str) -> Term:
        """What one more token of context adds to it on average: nothing where a window and what is in flight are
        full.
        """
        layer_kinds = kinds(stage, self.paging.windows)
        parts = []
        if self._shares_blocks(layer_kinds):
            page, shared = self._groups(layer_kinds)
            for kind, layers, B in shared:
                if not kind.is_state:
                    one = Term.of("one layer", g.block_growth_bytes, M=page.value, B=B, s=self.s, r=self._reach(kind))
                    parts.append(Term.product(kind.name, "bytes", layers, one))
            return Term.sum(name, *parts, unit="bytes")
        for kind in layer_kinds:
            reach = None if kind.window is None else self._reach(kind)
            for count, caches in kind.layers:
                grown = [self._grown(cache, reach) for cache in caches if isinstance(cache, TokenCache)]
                if grown:
                    parts.append(Term.product(kind.name, "bytes", layer_count(count), Term.sum("one layer", *grown)))
        return Term.sum(name, *parts, unit="bytes")

    def _shares_blocks(self, layer_kinds: tuple[Kind, ...]) -> bool:
        return (
            self.paging.shares_blocks and len(layer_kinds) > 1 and all(self._is_uniform(kind) for kind in layer_kinds)
        )

    def _is_uniform(self, kind: Kind) -> bool:
        """Whether every layer of the kind keeps as much, one entry a token: what equal blocks presuppose."""
        sizes = {sum(cache.elements * self.width(cache) for cache in caches) for _, caches in kind.layers}
        every = [cache for _, caches in kind.layers for cache in caches]
        plain = all(isinstance(cache, TokenCache) and cache.stride == 1 for cache in every)
        return len(sizes) == 1 and (kind.is_state or plain)

    def _alone(self, kind: Kind, count: int, caches: tuple[Cache, ...]) -> Term:
        """Layers of one kind when no other kind has to fit into the same blocks."""
        B = self.paging.block_tokens
        if kind.window is None:
            held = Term.of("context in blocks", g.block_tokens, s=self.s, B=B)
        else:
            held = Term.of("window in blocks", g.window_block_tokens, s=self.s, r=kind.window, T=self.in_flight, B=B)
        one = Term.sum("one layer", *(self._cached(cache, held.value) for cache in caches))
        return Term.product(kind.name, "bytes", layer_count(count), one)

    def _groups(self, layer_kinds: tuple[Kind, ...]) -> tuple[Term, list[tuple[Kind, Term, Number]]]:
        """A block of one layer, and for each kind its layers, dealt into whole groups, and the tokens that a block
        holds.
        """
        block = self._block_tokens(layer_kinds)
        own = {kind: self._page(kind, block) for kind in layer_kinds}
        page = Term.max("one block of one layer", *own.values())
        size = group_size([kind.count for kind in layer_kinds], self.paging.group_tolerance)
        padded = [Term.of("layers, in whole groups", g.padded_layers, l=kind.count, g=size) for kind in layer_kinds]
        tokens = [_stretched(block, own[kind].value, page.value) for kind in layer_kinds]
        return page, list(zip(layer_kinds, padded, tokens, strict=True))

    def _block_tokens(self, layer_kinds: tuple[Kind, ...]) -> Number:
        """Tokens of a block: the engine's own, or as many more as it takes to be as large as a recurrent state."""
        B = self.paging.block_tokens
        states = [self._page(kind, B) for kind in layer_kinds if kind.is_state]
        attention = sorted(
            (kind for kind in layer_kinds if not kind.is_state), key=lambda kind: kind.window is not None
        )
        if not states or not attention:
            return B
        return g.tokens_beside_state(M=states[0].value, w=self._page(attention[0], 1).value, B=B)

    def _page(self, kind: Kind, tokens: Number) -> Term:
        """The cache of one layer for this number of tokens, or its state."""
        return Term.sum(kind.name, *(self._cached(cache, tokens) for cache in kind.layers[0][1]))

    def _blocks(self, kind: Kind, block: Number) -> Term:
        if kind.is_state:
            return Term.of("state and its copies", g.state_blocks, n_copies=self.paging.state_copies)
        if kind.window is None:
            return Term.of("blocks of the context", g.context_blocks, s=self.s, B=block)
        return Term.of("blocks of the window", g.window_blocks, s=self.s, r=kind.window, T=self.in_flight, B=block)

    def _reach(self, kind: Kind) -> Number:
        """The context at which a kind stops growing."""
        return self.s + 1 if kind.window is None else kind.window - 1 + self.in_flight


def group_size(counts: list[int], tolerance: float) -> int:
    """Layers of a group: those of the rarest kind; those of the commonest where that pads little."""
    return max(counts) if max(counts) < tolerance * min(counts) else min(counts)


def _layers(name: str, stage: Stage, one_cache: Callable[[Cache], Term | None]) -> Term:
    """The sum over the layers of a stage."""
    parts = []
    for block, count in stage.layers:
        one = [term for op in block.ops for cache in op.caches() if (term := one_cache(cache)) is not None]
        if one:
            parts.append(
                Term.product(
                    Message("{block}s", block=block.name), "bytes", layer_count(count), Term.sum("one layer", *one)
                )
            )
    return Term.sum(name, *parts, unit="bytes")


def _stretched(block: Number, own: Number, page: Number) -> Number:
    """Tokens of a block of a kind whose layers are narrower: as many times more as its page divides the common one,
    else no more.
    """
    return block * (1 + (page // own - 1) * (page % own == 0))


# ---- The cache of one request under engines that do not share equal blocks among kinds of layers: pools of tokens, and
# cells.


class PooledCache(RequestCache):
    """SGLang's: the part of the pools that a request keeps others from; that of its fullest pool decides."""

    def __init__(self, s: Number, t: Number, width: Width, pools: Pools):
        super().__init__(s, t, width)
        self.pools = pools

    def kept(self, stage: Stage, name: str) -> Term:
        layer_kinds = kinds(stage)
        states = [kind for kind in layer_kinds if kind.is_state]
        tokens = [kind for kind in layer_kinds if not kind.is_state]
        held = self._tokens(tokens, name if not states else "its tokens")
        if not states:
            return held
        slots = Term.of("slots of a request", e.state_slots, n_slots=self.pools.state_slots)
        state = Term.product(
            "its states", "bytes", slots, Term.sum("one slot", *(self._layers_of(kind, 1) for kind in states))
        )
        if not tokens:
            return Term.sum(name, state)
        u = self.pools.state_share
        if not u:
            return Term.sum(name, state, held)
        return Term.max(
            name,
            Term.of("states, as a part of all pools", e.split_pool_bytes, M=state.value, u=u),
            Term.of("tokens, as a part of all pools", e.split_pool_bytes, M=held.value, u=1 - u),
        )

    def growth(self, stage: Stage, name: str) -> Term:
        """What one more token adds: of every pool its part, and nothing while states or windows take more."""
        now = self.kept(stage, name)
        more = PooledCache(self.s + 1, self.t, self.width, self.pools).kept(stage, name)
        return Term.of(
            name,
            e.reserve_left_bytes,
            source="SGLang, sglang/srt/model_executor/pool_configurator.py",
            U=more.value,
            M=now.value,
        )

    def _tokens(self, layer_kinds: list[Kind], name: str) -> Term:
        windows = [kind for kind in layer_kinds if kind.window is not None and self.pools.window_share]
        full = [kind for kind in layer_kinds if kind not in windows]
        B, parts = self.pools.page_tokens, [self._layers_of(kind, 1) for kind in full]
        if any(isinstance(cache, StateCache) for kind in windows for _, caches in kind.layers for cache in caches):
            return self._compressed(full, windows, name)
        if not windows:
            pages = Term.of("tokens in pages", e.page_tokens, s=self.s, B=B)
            return Term.product(name, "bytes", pages, Term.sum("one token", *parts, unit="bytes"))
        share = self.pools.window_share if full else 1
        ratio = Term.of("tokens of the pool of windows for each", e.window_token_share, u=share)
        parts.append(
            Term.product(
                "windows", "bytes", ratio, Term.sum("one token", *(self._layers_of(kind, 1) for kind in windows))
            )
        )
        reach = max(kind.window or 0 for kind in windows)
        if full:
            held = Term.of("tokens of the pools", e.pool_share_tokens, s=self.s, r=reach, B=B, u=share)
        else:
            held = Term.of("tokens of the pool", e.window_pool_tokens, s=self.s, r=reach, B=B)
        return Term.product(name, "bytes", held, Term.sum("one token of all pools", *parts))

    def _compressed(self, full: list[Kind], windows: list[Kind], name: str) -> Term:
        """Layers that keep compressed keys of all tokens, the keys of a window, and what is not compressed yet: the
        window and the states are set aside for each request, and compressed keys grow with its tokens.
        """
        B = self.pools.compressed_page_tokens
        pages = Term.of("tokens in pages", e.page_tokens, s=self.s, B=B)
        compressed = Term.sum("one token", *(self._layers_of(kind, 1) for kind in full), unit="bytes")
        reach = max(kind.window or 0 for kind in windows)
        held = Term.of("tokens of its windows", e.request_window_tokens, r=reach, B=B)
        rings = Term.of("pages of its windows", e.states_of_pages, T=held.value, B=B)

        def of(which: Callable[[Cache], bool], label: str) -> Term:
            chosen = [kind.only(which) for kind in windows]
            return Term.sum(label, *(self._layers_of(kind, 1) for kind in chosen if kind.layers), unit="bytes")

        return Term.sum(
            name,
            Term.product("compressed keys", "bytes", pages, compressed),
            Term.product("windows", "bytes", held, of(lambda cache: isinstance(cache, TokenCache), "one token")),
            Term.product("states of pages", "bytes", rings, of(_is_of_pages, "one page")),
            of(lambda cache: isinstance(cache, StateCache) and not cache.of_pages, "states of a request"),
        )

    def _layers_of(self, kind: Kind, tokens: Number) -> Term:
        """All layers of a kind, so many tokens of them; of what several tokens share its part."""
        return Term.sum(
            kind.name,
            *(
                Term.product(
                    "layers",
                    "bytes",
                    layer_count(count),
                    Term.sum("one layer", *(self._part(cache, tokens) for cache in caches)),
                )
                for count, caches in kind.layers
            ),
        )

    def _part(self, cache: Cache, tokens: Number) -> Term:
        """One token of it, on the average where several share an entry."""
        if isinstance(cache, TokenCache) and cache.stride > 1:
            return self._grown(cache, None)
        return self._cached(cache, tokens)


class CellCache(RequestCache):
    """llama.cpp's and gpt-fast's: allocated whole; `batch`: tokens that a window holds beside its own."""

    def __init__(self, s: Number, t: Number, width: Width, cells: Cells, batch: Number):
        super().__init__(s, t, width)
        self.cells, self.batch = cells, batch

    def kept(self, stage: Stage, name: str) -> Term:
        return Term.sum(
            name,
            *(self._one(kind, count, caches) for kind in kinds(stage) for count, caches in kind.layers),
            unit="bytes",
        )

    def growth(self, stage: Stage, name: str) -> Term:
        """What one more token adds on average: nothing where a window is full."""
        parts = []
        for kind in kinds(stage):
            reach = kind.window + self.batch if kind.window is not None and self.cells.windows else None
            for count, caches in kind.layers:
                grown = [self._grown(cache, reach) for cache in caches if isinstance(cache, TokenCache)]
                if grown:
                    parts.append(Term.product(kind.name, "bytes", layer_count(count), Term.sum("one layer", *grown)))
        return Term.sum(name, *parts, unit="bytes")

    def _one(self, kind: Kind, count: int, caches: tuple[Cache, ...]) -> Term:
        B = self.cells.multiple
        if kind.window is not None and self.cells.windows:
            held = Term.of("cells of a window", e.window_cells, s=self.s, r=kind.window, T=self.batch, B=B)
        else:
            held = Term.of("cells", e.cells, s=self.s, B=B)
        one = Term.sum("one layer", *(self._cached(cache, held.value) for cache in caches))
        return Term.product(kind.name, "bytes", layer_count(count), one)

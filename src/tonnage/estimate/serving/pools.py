"""The cache of one request under engines that do not share equal blocks among kinds of layers: pools of tokens, and
cells.
"""

from tonnage.estimate.serving.cache import Cache, Kind, RequestCache, Width, kinds
from tonnage.estimate.step.rank import Stage, layer_count
from tonnage.formulas import engines as e
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.ops import TokenCache
from tonnage.runtimes import Cells, Pools


class PooledCache(RequestCache):
    """SGLang's: the part of the pools that a request keeps others from; that of its fullest pool decides."""

    def __init__(self, s: Number, t: Number, width: Width, pools: Pools):
        super().__init__(s, t, width)
        self.pools = pools

    def kept(self, stage: Stage, name: str) -> Term:
        found = kinds(stage)
        states = [kind for kind in found if kind.is_state]
        tokens = [kind for kind in found if not kind.is_state]
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

    def _tokens(self, found: list[Kind], name: str) -> Term:
        windows = [kind for kind in found if kind.window is not None and self.pools.window_share]
        full = [kind for kind in found if kind not in windows]
        B, parts = self.pools.page_tokens, [self._layers_of(kind, 1) for kind in full]
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

    def _layers_of(self, kind: Kind, tokens: Number) -> Term:
        """All layers of a kind, so many tokens of them; of what several tokens share its part."""
        return Term.sum(
            kind.name,
            *(
                Term.product(
                    "layers",
                    "bytes",
                    layer_count(count),
                    Term.sum("one layer", *(self._part(each, tokens) for each in caches)),
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

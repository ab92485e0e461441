"""nanotron's layers: one matrix for queries, keys and values whose result is copied in order of heads, rotary positions
in place, and tensor parallelism that keeps each rank's part of a product's input.

nanotron, models/llama.py: CausalSelfAttention, MLP; parallel/tensor_parallel/functional.py; nn/rotary.py
"""

from collections.abc import Sequence

from tonnage.tape._attending import Held, Setting
from tonnage.tape._code import Code
from tonnage.tape._torchtitan import GATHER, SCATTER, Own
from tonnage.tape.tape import TENSOR, TOKEN, Extent, Tensor

GATHERED = Extent("token", "gathered")


class Nanotron(Own, frozen=True, kw_only=True):
    """`keeps_gathered`: products keep their gathered inputs (tp_recompute_allgather off)."""

    keeps_gathered: bool = False


class NanotronCode(Code):
    """The operations of a layer as nanotron writes them."""

    fuses_projections = True

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.own: Nanotron = setting.own or Nanotron()

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        return self.layer_norm(x, [weight] if weight is not None else [], statistics=groups, centred=False)

    def linear(
        self,
        name: str,
        x: Tensor,
        weights: Sequence[Held],
        out: float,
        extent: Extent = TOKEN,
        *,
        is_module: bool = True,
    ) -> Tensor:
        """Column-parallel: the input is gathered into a buffer, and only the rank's shard is kept. Row-parallel: every
        rank has a partial sum.
        """
        if not self.own.tensor_parallel:
            return super().linear(name, x, weights, out, extent, is_module=is_module)
        if extent == TENSOR and x.extent == TOKEN:
            x = self.seen_whole(x)
        if extent == TOKEN and x.extent == TENSOR:
            return self.summed_up(super().linear(name, x, weights, out, GATHERED, is_module=is_module))
        return super().linear(name, x, weights, out, extent, is_module=is_module)

    def seen_whole(self, x: Tensor) -> Tensor:
        """All-gather the input into a buffer that all products share; its gradient is reduce-scattered."""
        storage = self.new(x.elements, x.width, GATHERED).storage if self.own.keeps_gathered else x.storage
        out = Tensor(storage, x.elements, x.width, GATHERED)
        shape = x.elements, x.width, x.extent
        self.note("all_gather", [out], [x], [], lambda _: [self.new(*shape)], GATHER)
        return out

    def summed_up(self, x: Tensor) -> Tensor:
        """Reduce-scatter over the ranks; the gradient is gathered into the other buffer."""
        out = self.new(x.elements, x.width, TOKEN)
        elements, width, extent = x.elements, x.width, x.extent
        self.note("reduce_scatter", [out], [x], [], lambda _: [Tensor(None, elements, width, extent)], SCATTER)
        return out

    def split_qkv(self, x: Tensor, sizes: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
        """permute(...).contiguous(): queries are views of the copy."""
        q, k, v = self.parts(self.copy(x), sizes)
        return q, k, v

    def rotary(self, x: Tensor, of: float, tables: tuple[Tensor, Tensor] | None = None) -> Tensor:
        return x

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        out: float,
        *,
        kv_heads: int = 1,
        by_heads: bool = False,
        is_masked: bool = False,
        sinks: bool = False,
        causal: bool = True,
        cross: bool = False,
    ) -> Tensor:
        """Copy keys and values once more into one tensor, and rotate them in place (FlashRotaryEmbedding)."""
        k, v = self.parts(self.cat([k, v]), [k.elements, v.elements])
        return self.core(lambda q, k, v: self.attention(q, k, v, heads, out, "flash"), q, k, v)

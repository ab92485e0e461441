"""An operation that uses the weights of another one: ALBERT's layers, the tables that encoder and decoder share."""

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, TokenCache


class Reused(Op, frozen=True, eq=False):
    """A second use of `op`'s weights: it computes, keeps and caches the same, and adds no parameters."""

    op: Op

    def caches(self) -> tuple[TokenCache | StateCache, ...]:
        return self.op.caches()

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return self.op.saved(kernels)

    def core(self) -> tuple[Core, ...]:
        # where the weights are counted, their products are counted with them; here only the products remain
        products = sum(2 * weight.num_active_parameters for weight in self.op.weights() if weight.linear)
        return (*self.op.core(), Core("reused weights", products)) if products else self.op.core()

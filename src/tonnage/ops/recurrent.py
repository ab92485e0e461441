"""Recurrences with one number a channel: RWKV-4's two mixers and the gated linear recurrent unit of RecurrentGemma.

Shapes and state types are those of transformers 5.23 (models/rwkv, models/recurrent_gemma).
"""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, Weight, matrix

FP32 = 4


class TimeMixing(Op, frozen=True, eq=False, kw_only=True):
    """RWKV-4's attention: a decaying sum of values weighted by keys, `inner_size` channels, no heads."""

    name: str = "attention"
    hidden_size: int
    inner_size: int

    def weights(self) -> tuple[Weight, ...]:
        h, d, n = self.hidden_size, self.inner_size, self.name
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        weights: tuple[Weight, ...] = (Weight(f"{n}.time_decay", d, **cut), Weight(f"{n}.time_first", d, **cut))
        weights += tuple(Weight(f"{n}.time_mix_{name}", h, part="mixer") for name in ("key", "value", "receptance"))
        for name in ("key", "value", "receptance"):
            weights += matrix(f"{n}.{name}", h, d, **cut)
        return weights + matrix(f"{n}.output", d, h, **cut)

    def caches(self) -> tuple[StateCache, ...]:
        # numerator, denominator and maximum; transformers sizes them by hidden_size
        return (
            StateCache("recurrent state", 3 * self.hidden_size, self.hidden_size, FP32),
            StateCache("last token's input", self.hidden_size),
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        h, d = self.hidden_size, self.inner_size
        return (
            Saved("mixer input", h),
            Saved("inputs mixed with the last token", 3 * h),
            Saved("keys, values and receptance", 3 * d, "tensor"),
            Saved("weighted sum", d, "tensor"),
            Saved("mixer output", d, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        # two exponentials' products added to numerator and denominator, decayed, and their ratio
        return (Core("weighted sum", 10 * self.inner_size),)


class ChannelMixing(Op, frozen=True, eq=False, kw_only=True):
    """RWKV-4's feed-forward: squared relu of the keys, gated by a receptance of the input."""

    name: str = "feed_forward"
    hidden_size: int
    intermediate_size: int

    def weights(self) -> tuple[Weight, ...]:
        h, f, n = self.hidden_size, self.intermediate_size, self.name
        weights: tuple[Weight, ...] = tuple(
            Weight(f"{n}.time_mix_{kind}", h, part="mlp") for kind in ("key", "receptance")
        )
        weights += matrix(f"{n}.key", h, f, split="tensor", part="mlp")
        weights += matrix(f"{n}.receptance", h, h, part="mlp")
        return weights + matrix(f"{n}.value", f, h, split="tensor", part="mlp")

    def caches(self) -> tuple[StateCache, ...]:
        return (StateCache("last token's input", self.hidden_size),)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        h, f = self.hidden_size, self.intermediate_size
        return (
            Saved("mlp input", h),
            Saved("inputs mixed with the last token", 2 * h),
            Saved("keys before and after squared relu", 2 * f, "tensor"),
            Saved("receptance and value", 2 * h),
        )


class GatedRecurrence(Op, frozen=True, eq=False, kw_only=True):
    """RecurrentGemma's recurrent block: a convolution, then a linear recurrence of `width` channels gated by blocks."""

    name: str = "temporal_block"
    hidden_size: int
    width: int
    heads: int
    conv_kernel: int

    def weights(self) -> tuple[Weight, ...]:
        h, w, n = self.hidden_size, self.width, self.name
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        weights = matrix(f"{n}.linear_y", h, w, bias=True, **cut) + matrix(f"{n}.linear_x", h, w, bias=True, **cut)
        weights += (Weight(f"{n}.conv_1d.weight", w, self.conv_kernel, **cut), Weight(f"{n}.conv_1d.bias", w, **cut))
        weights += (Weight(f"{n}.rg_lru.recurrent_param", w, **cut),)
        for gate in ("input_gate", "recurrent_gate"):
            weights += (Weight(f"{n}.rg_lru.{gate}_weight", w, w // self.heads, linear=True, **cut),)
            weights += (Weight(f"{n}.rg_lru.{gate}_bias", w, **cut),)
        return weights + matrix(f"{n}.linear_out", w, h, bias=True, bias_split="replicated", **cut)

    def caches(self) -> tuple[StateCache, ...]:
        return (
            StateCache("recurrent state", self.width, self.width, FP32),
            StateCache("convolution state", self.width * (self.conv_kernel - 1), self.width),
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        w = self.width
        return (
            Saved("mixer input", self.hidden_size),
            Saved("gate and x", 2 * w, "tensor"),
            Saved("after convolution", w, "tensor"),
            Saved("input and recurrence gates", 2 * w, "tensor"),
            Saved("decay in fp32", w, "tensor", FP32),
            Saved("recurrence output", w, "tensor"),
            Saved("mixer output", w, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        return (Core("linear recurrence", 6 * self.width), Core("short convolution", 2 * self.conv_kernel * self.width))

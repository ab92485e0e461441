"""Embedding, norm, linear, head, convolution, and loose parameters."""

from typing import Literal

from tonnage.kernel.message import Message
from tonnage.ops._base import Core, Kernels, Op, Part, Saved, Split, StateCache, TokenCache, Weight, matrix
from tonnage.tape import Code, Tensor


class Embedding(Op, frozen=True, eq=False, kw_only=True):
    """A table with one row per token, position or type: `num_embeddings` x `width`."""

    name: str = "embed_tokens"
    num_embeddings: int
    width: int
    split: Split = "vocab"

    def weights(self) -> tuple[Weight, ...]:
        return (Weight(f"{self.name}.weight", self.num_embeddings, self.width, split=self.split, part="embedding"),)


class Norm(Op, frozen=True, eq=False, kw_only=True):
    """LayerNorm ("layer", with a bias unless `bias` says no) or RMSNorm ("rms") over `width`; `weight=False`: no
    parameters.
    """

    name: str
    width: int
    kind: Literal["rms", "layer"] = "rms"
    bias: bool | None = None
    weight: bool = True
    keeps: bool = True  # False: another op keeps the same input, as the first of two norms side by side does

    def weights(self) -> tuple[Weight, ...]:
        if not self.weight:
            return ()
        has_bias = self.kind == "layer" if self.bias is None else self.bias
        weight = Weight(f"{self.name}.weight", self.width, part="norm")
        return (weight, Weight(f"{self.name}.bias", self.width, part="norm")) if has_bias else (weight,)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return norm_saved(self.name, self.width, self.kind, kernels) if self.keeps else ()

    def forward(self, code: Code, x: Tensor) -> Tensor:
        with code.inside(self.name):
            return code.normed(x, self.kind, self.held(self.name))


class Linear(Op, frozen=True, eq=False, kw_only=True):
    """A single linear layer, `in_features` -> `out_features`."""

    name: str
    in_features: int
    out_features: int
    bias: bool = False
    split: Split = "replicated"
    part: Part = "other"
    keeps_input: bool = True

    def weights(self) -> tuple[Weight, ...]:
        return matrix(self.name, self.in_features, self.out_features, bias=self.bias, split=self.split, part=self.part)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return (Saved(Message("{name} input", name=self.name), self.in_features),) if self.keeps_input else ()

    def forward(self, code: Code, x: Tensor) -> Tensor:
        return code.linear(self.name, x, self.held(self.name), self.out_features)


class Head(Op, frozen=True, eq=False, kw_only=True):
    """The output projection to the vocabulary; `tied`: it uses the embedding's table and adds no parameters but a
    bias.
    """

    name: str = "lm_head"
    width: int
    vocab_size: int
    bias: bool = False
    tied: bool = False

    def weights(self) -> tuple[Weight, ...]:
        both = matrix(self.name, self.width, self.vocab_size, bias=self.bias, split="vocab", part="head")
        return both[1:] if self.tied else both

    def core(self) -> tuple[Core, ...]:
        return (Core(self.name, 2 * self.width * self.vocab_size),) if self.tied else ()  # else its weight counts it


class Convolution(Op, frozen=True, eq=False, kw_only=True):
    """A convolution as a patch embedding or a depthwise filter: `out_channels` x (`in_channels` x `kernel` taps)."""

    name: str
    in_channels: int
    out_channels: int
    kernel: int
    bias: bool = False
    split: Split = "replicated"
    part: Part = "other"

    def weights(self) -> tuple[Weight, ...]:
        columns = self.in_channels * self.kernel
        return matrix(self.name, columns, self.out_channels, bias=self.bias, split=self.split, part=self.part)


class Parameter(Op, frozen=True, eq=False, kw_only=True):
    """A loose parameter of `elements` numbers: a class token, a scale, a decay."""

    name: str
    elements: int
    split: Split = "replicated"
    part: Part = "other"

    def weights(self) -> tuple[Weight, ...]:
        return (Weight(self.name, self.elements, split=self.split, part=self.part),)


def norm_saved(name: str, width: int, kind: str, kernels: Kernels) -> tuple[Saved, ...]:
    """A fused norm keeps its input (its statistics, one or two numbers a token, are left out).

    Unfused RMSNorm as transformers writes it keeps the input in fp32 and the normalised copy before the weight.
    """
    if kernels.fused_norm or kind == "layer":
        return (Saved(Message("{name} input", name=name), width),)
    return (
        Saved(Message("{name} input in fp32", name=name), width, bytes_per_element=4),
        Saved(Message("{name} normalised", name=name), width),
    )


# ---- An operation that uses the weights of another one: ALBERT's layers, the tables that encoder and decoder share.


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

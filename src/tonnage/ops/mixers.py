"""Token mixers whose memory does not grow with the context: gated DeltaNet, Mamba, lightning attention, convolutions.

Shapes are those of transformers 5.23 (models/mamba, mamba2, qwen3_next, minimax, lfm2). A convolution keeps the
`conv_kernel` - 1 last inputs: vLLM's layout (vllm-project/vllm vllm/model_executor/layers/mamba/mamba_utils.py);
transformers keeps one column more. Tensors kept for backward are those of the fused kernels that transformers uses
where they are installed: state-spaces/mamba, causal-conv1d, flash-linear-attention. Without them it runs plain PyTorch,
which keeps 3 to 25 times as much; lightning attention has no kernel there.
"""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, Split, StateCache, Weight, matrix

# ---- Recurrences with one number a channel: RWKV-4's two mixers and the gated linear recurrent unit of RecurrentGemma.
#
# Shapes and state types are those of transformers 5.23 (models/rwkv, models/recurrent_gemma).

FP32 = 4
CHUNK = 64  # tokens of flash-linear-attention's delta rules: fla/ops/gated_delta_rule/chunk.py, A
SSD_FLOPS = 7  # a channel and state number: NVIDIA/Megatron-LM megatron/training/training.py, mamba_layer_flops


class GatedDeltaNet(Op, frozen=True, eq=False, kw_only=True):
    """Linear attention with the gated delta rule (Qwen3-Next, Qwen3.5): a state of key_dim x value_dim a value head.

    `inputs` names the input projections and what each computes: q, k, v, z (the output gate), b and a (write strength,
    decay). `state_bytes`: see Mamba.
    """

    name: str = "linear_attn"
    hidden_size: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    inputs: tuple[tuple[str, str], ...] = (("in_proj_qkvz", "qkvz"), ("in_proj_ba", "ba"))
    norm_name: str = "norm"
    out_name: str = "out_proj"
    state_bytes: float | None = FP32

    @property
    def _keys(self) -> int:
        return self.key_heads * self.key_dim

    @property
    def _values(self) -> int:
        return self.value_heads * self.value_dim

    def weights(self) -> tuple[Weight, ...]:
        h, n, keys, values = self.hidden_size, self.name, self._keys, self._values
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        widths = {"q": keys, "k": keys, "v": values, "z": values, "b": self.value_heads, "a": self.value_heads}
        weights: tuple[Weight, ...] = ()
        for name, parts in self.inputs:
            weights += matrix(f"{n}.{name}", h, sum(widths[part] for part in parts), **cut)
        weights += (Weight(f"{n}.conv1d.weight", 2 * keys + values, self.conv_kernel, split="tensor", part="mixer"),)
        weights += (Weight(f"{n}.A_log", self.value_heads, split="tensor", part="mixer"),)
        weights += (Weight(f"{n}.dt_bias", self.value_heads, split="tensor", part="mixer"),)
        weights += (Weight(f"{n}.{self.norm_name}.weight", self.value_dim, part="norm"),)
        return weights + matrix(f"{n}.{self.out_name}", values, h, **cut)

    def caches(self) -> tuple[StateCache, ...]:
        state = self.value_heads * self.key_dim * self.value_dim
        window = (2 * self._keys + self._values) * (self.conv_kernel - 1)
        return (
            StateCache("recurrent state", state, self.value_heads, self.state_bytes),
            StateCache("convolution state", window, self.key_heads),
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        mixed = 2 * self._keys + self._values
        return (
            Saved("mixer input", self.hidden_size),
            Saved("before convolution", mixed, "tensor"),
            Saved("queries, keys and values", mixed, "tensor"),
            Saved("decay and beta in fp32", 2 * self.value_heads, "tensor", FP32),
            Saved("what a chunk's tokens correct in each other", CHUNK * self.value_heads, "tensor"),
            Saved("output gate", self._values, "tensor"),
            Saved("before norm", self._values, "tensor"),
            Saved("mixer output", self._values, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        # a token writes to and reads from the state: k v^T, the delta correction k^T S, and q^T S, 2 FLOP each
        return (
            Core("delta rule", 6 * self.value_heads * self.key_dim * self.value_dim),
            Core("short convolution", 2 * self.conv_kernel * (2 * self._keys + self._values)),
        )


class Mamba(Op, frozen=True, eq=False, kw_only=True):
    """Selective state space of Mamba 1: a state of `state_size` a channel, step sizes of rank `dt_rank`.

    `norms`: Jamba normalises the step, B and C with weights; FalconMamba does so without. `joiner`: x_proj.weight,
    which Zamba writes x_proj_weight and Hymba x_proj.0.weight. `state_bytes`: what the config says of the recurrent
    state's type; None where it says nothing, and the engine decides (vLLM: the type of the activations; transformers
    and SGLang: fp32).
    """

    name: str = "mixer"
    hidden_size: int
    inner_size: int
    state_size: int
    conv_kernel: int
    dt_rank: int
    bias: bool = False
    conv_bias: bool = True
    norms: bool = False
    norm_names: tuple[str, str, str] = ("dt_layernorm", "b_layernorm", "c_layernorm")
    joiner: str = "."
    state_bytes: float | None = None

    def weights(self) -> tuple[Weight, ...]:
        h, n, d, state = self.hidden_size, self.name, self.inner_size, self.state_size
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        weights = matrix(f"{n}.in_proj", h, 2 * d, bias=self.bias, **cut)
        weights += _convolution(n, d, self.conv_kernel, self.conv_bias)
        weights += (Weight(f"{n}.x_proj{self.joiner}weight", self.dt_rank + 2 * state, d, linear=True, **cut),)
        weights += (Weight(f"{n}.dt_proj{self.joiner}weight", d, self.dt_rank, linear=True, **cut),)
        weights += (Weight(f"{n}.dt_proj{self.joiner}bias", d, **cut),)
        index = self.joiner.rstrip("._")
        weights += (Weight(f"{n}.A_log{index}", d, state, **cut), Weight(f"{n}.D{index}", d, **cut))
        if self.norms:
            for name, width in zip(self.norm_names, (self.dt_rank, state, state), strict=True):
                weights += (Weight(f"{n}.{name}.weight", width, part="norm"),)
        return weights + matrix(f"{n}.out_proj", d, h, bias=self.bias, bias_split="replicated", **cut)

    def caches(self) -> tuple[StateCache, ...]:
        return (
            StateCache("recurrent state", self.inner_size * self.state_size, self.inner_size, self.state_bytes),
            StateCache("convolution state", self.inner_size * (self.conv_kernel - 1), self.inner_size),
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        """Tensors kept by mamba_ssm's MambaInnerFn, which recomputes the convolution and the step sizes in backward."""
        d, state = self.inner_size, self.state_size
        return (
            Saved("mixer input", self.hidden_size),
            Saved("x and gate", 2 * d, "tensor"),
            Saved("step, B and C", self.dt_rank + 2 * state),
            Saved("B and C as the scan reads them", 2 * state),
            Saved("scan output", d, "tensor"),
            Saved("states between chunks in fp32", 2 * state * d / 2048, "tensor", FP32),
        )

    def core(self) -> tuple[Core, ...]:
        # dt A, dt B x, a h + b, and the product with C: 6 FLOP a channel and state number (the exponential not counted)
        return (
            Core("selective scan", 6 * self.inner_size * self.state_size),
            Core("short convolution", 2 * self.conv_kernel * self.inner_size),
        )


class Mamba2(Op, frozen=True, eq=False, kw_only=True):
    """State space duality of Mamba 2: `heads` heads of `head_dim`, B and C shared by `groups` groups.

    in_proj makes gate, x, B, C and the step in one matrix. A tensor rank holds at least one whole group, so B and C are
    cut as keys and values are (vLLM extra_groups_for_head_shards; Megatron-LM megatron/core/ssm/mamba_mixer.py requires
    that the ranks divide the groups). `state_bytes`: see Mamba.
    """

    name: str = "mixer"
    hidden_size: int
    heads: int
    head_dim: int
    state_size: int
    groups: int
    conv_kernel: int
    bias: bool = False
    out_bias: bool | None = None
    conv_bias: bool = True
    norm: bool = True
    state_bytes: float | None = None

    @property
    def _inner(self) -> int:
        return self.heads * self.head_dim

    @property
    def _shared(self) -> int:
        """Width of B and C together."""
        return 2 * self.groups * self.state_size

    def weights(self) -> tuple[Weight, ...]:
        h, n = self.hidden_size, self.name
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        grouped: dict[str, Any] = {"split": "kv", "heads": self.groups, "part": "mixer"}
        weights = matrix(f"{n}.in_proj", h, 2 * self._inner + self.heads, bias=self.bias, **cut)
        weights += matrix(f"{n}.in_proj", h, self._shared, bias=self.bias, **grouped)
        weights += _convolution(n, self._inner, self.conv_kernel, self.conv_bias)
        weights += _convolution(n, self._shared, self.conv_kernel, self.conv_bias, "kv", self.groups)
        weights += tuple(Weight(f"{n}.{name}", self.heads, **cut) for name in ("dt_bias", "A_log", "D"))
        if self.norm:
            weights += (Weight(f"{n}.norm.weight", self._inner, split="tensor", part="norm"),)
        out_bias = self.bias if self.out_bias is None else self.out_bias
        return weights + matrix(f"{n}.out_proj", self._inner, h, bias=out_bias, bias_split="replicated", **cut)

    def caches(self) -> tuple[StateCache, ...]:
        columns = self.conv_kernel - 1
        return (
            StateCache("recurrent state", self._inner * self.state_size, self.heads, self.state_bytes),
            StateCache("convolution state", self._inner * columns, self.heads),
            StateCache("convolution state of B and C", self._shared * columns, self.groups),
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        """Tensors kept by mamba_ssm's MambaSplitConv1dScanCombinedFn, and the input of out_proj."""
        return (
            Saved("mixer input", self.hidden_size),
            Saved("gate, x, B, C and step", 2 * self._inner + self._shared + self.heads, "tensor"),
            Saved("scan output", self._inner, "tensor"),
            Saved("mixer output", self._inner, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        return (
            Core("state space duality", SSD_FLOPS * self._inner * self.state_size),
            Core("short convolution", 2 * self.conv_kernel * (self._inner + self._shared)),
        )


class LightningAttention(Op, frozen=True, eq=False, kw_only=True):
    """Linear attention with a fixed decay a head (MiniMax-01): a state of head_dim x head_dim a head; an output gate.

    `decays`: transformers keeps tables of decays for blocks of this many tokens as buffers in the model, which
    checkpoints of the original code do not hold. `state_bytes`: see Mamba.
    """

    name: str = "self_attn"
    hidden_size: int
    heads: int
    head_dim: int
    decays: int = 0
    state_bytes: float | None = None

    @property
    def _inner(self) -> int:
        return self.heads * self.head_dim

    def weights(self) -> tuple[Weight, ...]:
        h, n, block = self.hidden_size, self.name, self.decays
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        weights = matrix(f"{n}.qkv_proj", h, 3 * self._inner, **cut)
        weights += matrix(f"{n}.output_gate", h, self._inner, **cut)
        weights += (Weight(f"{n}.norm.weight", self._inner, split="tensor", part="norm"),)
        if block:
            weights += (
                Weight(f"{n}.slope_rate", self.heads, **cut),
                Weight(f"{n}.query_decay", self.heads, block, **cut),
            )
            weights += (Weight(f"{n}.key_decay", self.heads, block, **cut),)
            weights += (Weight(f"{n}.diagonal_decay", self.heads, block * block, **cut),)
        return weights + matrix(f"{n}.out_proj", self._inner, h, **cut)

    def caches(self) -> tuple[StateCache, ...]:
        return (StateCache("recurrent state", self.heads * self.head_dim**2, self.heads, self.state_bytes),)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return (
            Saved("mixer input", self.hidden_size),
            Saved("queries, keys and values", 3 * self._inner, "tensor"),
            Saved("output gate", 2 * self._inner, "tensor"),
            Saved("before norm", self._inner, "tensor"),
            Saved("mixer output", self._inner, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        return (Core("lightning attention", 4 * self.heads * self.head_dim**2),)


class ShortConvolution(Op, frozen=True, eq=False, kw_only=True):
    """A gated convolution over `conv_kernel` tokens (LFM2): in_proj makes B, C and x, and C * conv(B * x) goes out."""

    name: str = "conv"
    hidden_size: int
    conv_kernel: int
    bias: bool = False

    def weights(self) -> tuple[Weight, ...]:
        h, n = self.hidden_size, self.name
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        weights = matrix(f"{n}.in_proj", h, 3 * h, bias=self.bias, **cut)
        weights += _convolution(n, h, self.conv_kernel, self.bias, conv="conv")
        return weights + matrix(f"{n}.out_proj", h, h, bias=self.bias, bias_split="replicated", **cut)

    def caches(self) -> tuple[StateCache, ...]:
        return (StateCache("convolution state", self.hidden_size * (self.conv_kernel - 1), self.hidden_size),)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return (
            Saved("mixer input", self.hidden_size),
            Saved("B, C and x", 3 * self.hidden_size, "tensor"),
            Saved("before convolution", self.hidden_size, "tensor"),
            Saved("after convolution", self.hidden_size, "tensor"),
            Saved("mixer output", self.hidden_size, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        return (Core("short convolution", 2 * self.conv_kernel * self.hidden_size),)


def _convolution(
    name: str, width: int, kernel: int, bias: bool, split: Split = "tensor", heads: int = 0, conv: str = "conv1d"
) -> tuple[Weight, ...]:
    """A depthwise convolution: one filter a channel."""
    weight = Weight(f"{name}.{conv}.weight", width, kernel, split=split, heads=heads, part="mixer")
    return (weight, Weight(f"{name}.{conv}.bias", width, split=split, heads=heads, part="mixer")) if bias else (weight,)


# ---- Kimi delta attention: the gated delta rule with a decay of its own for every channel (Kimi-Linear, Kimi K3).


class KimiDeltaAttention(Op, frozen=True, eq=False, kw_only=True):
    """A state of head_dim x head_dim a head, short convolutions on queries, keys and values, and a gate on the
    output.

    `forget_rank` and `gate_rank`: width of the low-rank pair of matrices that makes the decay and the output gate,
    None: one full matrix. `decays`: numbers of A_log, None for one a head (Kimi K3 stores head_dim of them, of which
    the first `heads` are read).
    """

    name: str = "self_attn"
    hidden_size: int
    heads: int
    head_dim: int
    conv_kernel: int
    forget_rank: int | None
    gate_rank: int | None
    decays: int | None = None

    @property
    def _inner(self) -> int:
        return self.heads * self.head_dim

    def weights(self) -> tuple[Weight, ...]:
        h, n, inner = self.hidden_size, self.name, self._inner
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        weights: tuple[Weight, ...] = ()
        for name in ("q", "k", "v"):
            weights += matrix(f"{n}.{name}_proj", h, inner, **cut)
            weights += (Weight(f"{n}.{name}_conv1d.weight", inner, self.conv_kernel, split="tensor", part="mixer"),)
        weights += self._narrow("f", self.forget_rank) + matrix(f"{n}.b_proj", h, self.heads, **cut)
        weights += self._narrow("g", self.gate_rank)
        weights += (Weight(f"{n}.A_log", self.decays or self.heads, split="tensor", part="mixer"),)
        weights += (Weight(f"{n}.dt_bias", inner, split="tensor", part="mixer"),)
        weights += (Weight(f"{n}.o_norm.weight", self.head_dim, part="norm"),)
        return weights + matrix(f"{n}.o_proj", inner, h, **cut)

    def _narrow(self, letter: str, rank: int | None) -> tuple[Weight, ...]:
        h, n, inner = self.hidden_size, self.name, self._inner
        if rank is None:
            return matrix(f"{n}.{letter}_proj", h, inner, split="tensor", part="mixer")
        into = matrix(f"{n}.{letter}_a_proj", h, rank, part="mixer")
        return into + matrix(f"{n}.{letter}_b_proj", rank, inner, split="tensor", part="mixer")

    def caches(self) -> tuple[StateCache, ...]:
        return (
            StateCache("recurrent state", self.heads * self.head_dim**2, self.heads, FP32),
            StateCache("convolution state", 3 * self._inner * (self.conv_kernel - 1), self.heads),
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        inner = self._inner
        return (
            Saved("mixer input", self.hidden_size),
            Saved("before convolution", 3 * inner, "tensor"),
            Saved("queries, keys and values", 3 * inner, "tensor"),
            Saved("decay and beta in fp32", inner + self.heads, "tensor", FP32),
            Saved("what a chunk's tokens correct in each other", 2 * CHUNK * self.heads, "tensor"),
            Saved("output gate", inner, "tensor"),
            Saved("before norm", inner, "tensor"),
            Saved("mixer output", inner, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        # a token writes to and reads from the state: k v^T, the delta correction k^T S, and q^T S, 2 FLOP each
        return (
            Core("delta rule", 6 * self.heads * self.head_dim**2),
            Core("short convolution", 2 * self.conv_kernel * 3 * self._inner),
        )


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

"""A layer's operations in Megatron-core: modules of Transformer Engine, sequence parallelism, fused kernels.

Sources: Transformer Engine, transformer_engine/pytorch/module/{linear,layernorm_linear,grouped_linear,base}.py,
ops/basic, and attention/dot_product_attention; Megatron-core, megatron/core/{fusions,transformer,tensor_parallel}.
Under sequence parallelism the residual stream is sharded ("whole" extents); the gathered input of a column-parallel
product is not ("gathered").
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from tonnage.tape._attending import Held, Setting
from tonnage.tape._code import Native
from tonnage.tape._moments import Discarded
from tonnage.tape._work import Collective, Exchange, Pass
from tonnage.tape.tape import TENSOR, TOKEN, Extent, Gradients, Tensor
from tonnage.tape.words import first_gradient, shape_of

# ---- Settings that decide how Megatron-core runs a layer: command-line options, and facts that changed between
# releases.

Release = tuple[int, int]
ContextParallel = Literal["", "a2a", "p2p", "allgather"]
# cp_comm_type; all-gather keeps as much as its own output besides what the projection keeps, as all-to-all does
Recipe = Literal["", "delayed", "tensorwise", "blockwise", "mxfp8", "nvfp4"]
CrossEntropy = Literal["te", "native", "unfused"]

# Bytes of a number as an fp8 or fp4 recipe stores it: scales for 16, for 32 or for 128 numbers (Transformer Engine,
# pytorch/tensor/*).
STORED: dict[str, float] = {
    "delayed": 1,
    "tensorwise": 1,
    "mxfp8": 1 + 1 / 32,
    "blockwise": 1 + 4 / 128,
    "nvfp4": 1 / 2 + 1 / 16,
}

# The first release of Megatron-core or of Transformer Engine with a behaviour, among those that were read:
# core 0.14, 0.15.3, 0.16.0, 0.17.0, 0.18.0; Transformer Engine 2.2, 2.5, 2.7, 2.8, 2.9, 2.10, 2.11, 2.20.
SINCE: dict[str, tuple[Literal["core", "engine"], Release]] = {
    "shared experts run before the router": ("core", (0, 15)),  # transformer/moe/moe_layer.py, custom_forward
    "experts' outputs are combined apart from their unpermutation": ("core", (0, 16)),  # moe_layer.py, postprocess
    "recomputed outputs share their storage": ("core", (0, 17)),  # tensor_parallel/random.py, _get_share_storage
    "router multiplies in Transformer Engine": (
        "core",
        (0, 17),
    ),  # transformer/moe/moe_utils.py with engine 2.10 or newer
    "attention keeps its output before the all-to-all": (
        "engine",
        (2, 8),
    ),  # attention/dot_product_attention/context_parallel.py
    "dummy weight gradients persist": ("engine", (2, 4)),  # module/base.py, get_dummy_wgrad; 2.3 was not read
    "dummy weight gradients of grouped linears persist": ("engine", (2, 10)),  # module/grouped_linear.py
    "the workspace of matrix products has 1024 bytes more": (
        "engine",
        (2, 8),
    ),  # module/base.py, get_cublas_workspace_size_bytes
    "the router lost its workspace": (
        "engine",
        (2, 10),
    ),  # get_workspace is gone: core before 0.17 multiplies with torch
}


class MegatronSetting(Setting, frozen=True, kw_only=True):
    """`core`, `engine`: releases of Megatron-core and of Transformer Engine. Names follow Megatron's options.

    `tensor_parallel`: more than one such rank; `sequence_parallel`: with them. `recompute_modules` hold where
    `recompute` is "selective".
    `fp8_input_store`: activation_func_fp8_input_store. `expert_parallel`, `expert_tensor_parallel`: more than one such
    rank;
    `local_experts`: more than one expert a rank. `router_pre_softmax`, `router_groups`, `aux_loss`, `router_fp32`: the
    router's options; `score`: "" as the model has it. `capacity`: tokens beyond an expert's capacity are dropped, and
    each expert's input is padded to it.
    """

    core: Release = (0, 18)
    engine: Release = (2, 11)
    sequence_parallel: bool = False
    tensor_parallel: bool = False
    context_parallel: ContextParallel = ""
    context_parallel_size: int = 1
    recompute_modules: tuple[str, ...] = ("core_attn",)
    gradient_accumulation_fusion: bool = True
    rope_fusion: bool = True
    fp8: Recipe = ""
    fp8_input_store: bool = False
    cross_entropy: CrossEntropy = "unfused"
    expert_parallel: bool = True
    local_experts: bool = True
    expert_tensor_parallel: bool = False
    score: Literal["", "softmax", "sigmoid"] = ""
    router_pre_softmax: bool = False
    router_groups: bool = False
    router_fp32: bool = False
    aux_loss: bool = True
    capacity: bool = False
    permute_fusion: bool = True
    shared_expert_overlap: bool = False

    def has(self, fact: str) -> bool:
        """Whether these releases have this behaviour."""
        which, first = SINCE[fact]
        return (self.core if which == "core" else self.engine) >= first

    def recomputes(self, module: str) -> bool:
        """Whether selective recomputation runs this module again."""
        return self.recompute == "selective" and module in self.recompute_modules


GATHERED = Extent("token", "gathered")
ROW, CUT_ROW = Extent("row", "whole"), Extent("row", "expert")  # CUT_ROW: over expert-tensor ranks
# The module that does what linear layers of these names in transformers do.
MODULES = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj", "qkv_proj"), "linear_qkv"),
    **dict.fromkeys(("gate_proj", "up_proj", "gate_up_proj"), "linear_fc1"),
    "o_proj": "linear_proj", "down_proj": "linear_fc2", "kv_a_proj_with_mqa": "linear_kv_down_proj",
    "q_a_proj": "linear_q_down_proj", "q_b_proj": "linear_q_up_proj", "kv_b_proj": "linear_kv_up_proj",
}  # fmt: skip
PAIR = Extent("pair", "tensor")
PASSED = {
    "p2p": Exchange("context parallel", "send", beside=True),
    "allgather": Exchange("context parallel", "all_gather"),
    "a2a": Exchange("context parallel", "all_to_all"),
}
GRADIENT = 2  # bytes of a weight gradient before it is added to the fp32 one


class Shape(NamedTuple):
    """A weight as one matrix product sees it: rows x columns, and which of them tensor or expert-tensor ranks cut."""

    rows: float
    columns: float
    cut: str = ""  # "rows", "columns"
    of: str = "tensor"  # "expert"


class MegatronCode(Native):
    """A layer's operations as Megatron-core's modules run them. `shapes`: weights whose gradients are fused into the
    accumulation buffer.
    """

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.setting = (
            setting
            if isinstance(setting, MegatronSetting)
            else MegatronSetting(**{name: getattr(setting, name) for name in setting.__struct_fields__})
        )
        self.shapes: dict[Shape, None] = {}

    def moment(self, name: str) -> None:
        """Note a moment of the forward pass at which memory can peak."""
        self.where = ".".join([*self.scope, name])
        self.mark()

    def discarding(self, run: Callable[..., Sequence[Tensor]], *inputs: Tensor) -> Discarded:
        """A function whose results are freed, and recomputed in backward."""
        return Discarded(self, run, *inputs, shares=self.setting.has("recomputed outputs share their storage"))

    # ---- linear layers ----

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
        """Column-parallel if it shards its output, row-parallel if its input is sharded, else on every rank (TELinear,
        duplicated).
        """
        with self.inside(name):
            if extent.split == "tensor" and x.extent.split != "tensor":
                return self._product(x, weights, out, extent, Shape(out, x.elements, "rows"), gathers=True)
            cut = "columns" if x.extent.split == "tensor" and extent.split != "tensor" else ""
            return self._product(x, weights, out, extent, Shape(out, x.elements, cut), gathers_gradient=bool(cut))

    def output_projection(self, x: Tensor, weights: Sequence[Held], out: float) -> Tensor:
        """Attention's output projection: attention keeps its input in 16 bit, and so does this one except under delayed
        scaling.
        """
        with self.inside("linear_proj"):
            shape = Shape(out, x.elements, "columns")
            return self._product(
                x, weights, out, TOKEN, shape, gathers_gradient=True, original=self.setting.fp8 != "delayed"
            )

    def grouped(self, name: str, x: Tensor, weights: Sequence[Held], out: float, extent: Extent) -> Tensor:
        """The products of a rank's experts (TEGroupedLinear): a gradient that is not contiguous is copied."""
        with self.inside(name):
            cut = "rows" if extent == CUT_ROW else "columns"
            return self._product(x, weights, out, extent, Shape(out, x.elements, cut, "expert"), copies=True)

    def stored(self, x: Tensor) -> Tensor:
        """The copy of its input that a product keeps: fp8 recipes keep their own."""
        if not self.setting.fp8:
            return x
        return self.new(x.elements, STORED[self.setting.fp8], x.extent, ".".join([*self.scope, "input in fp8"]))

    def _product(
        self,
        x: Tensor,
        weights: Sequence[Held],
        out: float,
        extent: Extent,
        shape: Shape,
        *,
        gathers: bool = False,
        gathers_gradient: bool = False,
        copies: bool = False,
        original: bool = False,
    ) -> Tensor:
        self.shapes[shape] = None
        product = self.new(out, x.width, extent)
        held = [self.weight(*weight[:3]) for weight in weights]
        trains = any(tensor.slot for tensor in held)
        saved = (x if original else self.stored(x)) if trains else None
        kept_width = saved.width if saved is not None else x.width
        elements, width, cut = shape_of(x)
        needs_gradient, is_bias = x.slot is not None, [weight.is_bias for weight in weights]
        spread = self.setting.sequence_parallel and cut.split == "whole"
        self.quantised = True
        if gathers:
            self._sent("all_gather" if spread else "", "", elements, width)

        def derivative(gradients: Gradients) -> Gradients:
            g = first_gradient(gradients)
            temporaries = [self.like(g)] if copies and g.is_view else []
            if gathers_gradient and self.setting.sequence_parallel:
                temporaries.append(self.new(g.elements, g.width, GATHERED))
            if self.setting.fp8:
                temporaries.append(self.like(g, STORED[self.setting.fp8]))
            if gathers and spread and trains:
                temporaries.append(self.new(elements, kept_width, GATHERED))
            if gathers and spread and needs_gradient:
                temporaries.append(self.new(elements, width, GATHERED))  # reduce-scattered into the shard
            of_input = self.new(elements, width, cut) if needs_gradient else None
            of_weights = [self.weight_gradient(*pair) for pair in zip(held, is_bias, strict=True)]
            if gathers and needs_gradient:
                self._sent("reduce_scatter" if spread else "all_reduce", "backward", elements, width)
            if gathers and spread and trains:
                self._sent("all_gather", "backward", elements, kept_width)
            if gathers_gradient and self.setting.sequence_parallel:
                self._sent("all_gather", "backward", out, width)
            self.mark()
            del temporaries
            return [of_input, *of_weights]

        self.note("mm", [product], [x, *held], [saved], derivative)
        self.quantised = False
        if gathers_gradient:
            self._sent("reduce_scatter" if self.setting.sequence_parallel else "all_reduce", "", out, width)
        if self.adapters is None or not self._adapts(self.adapters.targets):
            return product
        # Megatron-Bridge, peft/lora_layers.py: LoRALinear adds what an adapter makes of the layer's own input; each
        # expert of a grouped layer has adapters of its own (ms-swift, megatron/tuners/lora.py: LoraParallelLinear)
        experts = sum(weight.elements for weight in weights if not weight.is_bias) / (x.elements * out) if copies else 0
        results = [product]
        del product
        return self._adapted(x, results, out, extent, self.adapters, experts)

    def _adapts(self, targets: Sequence[str]) -> bool:
        """Whether the module that is running has adapters; a name that no module is known for stands for all."""
        modules = [MODULES.get(name) for name in targets]
        return not modules or None in modules or self.scope[-1] in modules

    def _sent(
        self, collective: Collective | Literal[""], when: Pass | Literal[""], elements: float, width: float
    ) -> None:
        """Note the communication of tensor ranks for a product."""
        if collective:
            name, exchange = ".".join([*self.scope, collective]), Exchange("tensor parallel", collective)
            self.worked.send(name, when or self.worked.when, exchange, {GATHERED: elements * width})

    def weight_gradient(self, weight: Tensor, is_bias: bool) -> Tensor | None:
        """The gradient of a weight; fused with accumulation, it is no tensor of its own."""
        if weight.slot is None:
            return None
        if self.setting.gradient_accumulation_fusion and not is_bias:
            return Tensor(None, weight.elements, GRADIENT, weight.extent)
        return self.new(weight.elements, GRADIENT, weight.extent)

    # ---- attention ----

    def turned_heads(self, x: Tensor) -> Tensor:
        return x

    def rotary(self, x: Tensor, of: float, tables: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Fused: new heads, nothing kept. Else keeps cosines and sines in 16 bit, for all heads of a token."""
        part = self.style.rotary
        if not part:
            return x
        if self.setting.rope_fusion:
            return self.mapped("rotary", x)
        cosines, sines = self.new(of * part, x.width, GATHERED), self.new(of * part, x.width, GATHERED)
        return self.add(self.mul(x, cosines), self.mul(self.mapped("rotate_half", x), sines))

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
        """Flash or cuDNN attention, or unfused attention."""
        heads_output = self.core(lambda q, k, v: self._core(q, k, v, heads, out), q, k, v)
        own = self.setting.context_parallel
        if own == "allgather" or (
            own == "a2a" and self.setting.has("attention keeps its output before the all-to-all")
        ):
            return self.mapped(
                "all_to_all", heads_output
            )  # the projection keeps what comes after, attention what was before
        return heads_output

    def core(self, run: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        return self.checkpoint(run, *inputs) if self.setting.recomputes("core_attn") else run(*inputs)

    def _core(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        with self.inside("core_attention"):
            if self.implementation == "eager":
                return self._unfused(q, k, v, heads, out)
            return self._fused(q, k, v, heads, out)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        """Fused attention: keeps its inputs, its output and an fp32 log-sum-exp a head; backward sums dq in fp32 at
        most.
        """
        heads_output, rows = self.new(out, q.width, q.extent), self.new(heads, 4, q.extent)
        shapes, others = [shape_of(operand) for operand in (q, k, v)], self._other_keys(k.elements + v.elements)
        if self.setting.context_parallel in ("p2p", "allgather"):
            self._ring(k.elements + v.elements, out, q)
        passed = self.setting.context_parallel or ""
        own = {"p2p": 1.0, "allgather": 1.0, "a2a": 1 + q.elements / (k.elements + v.elements)}.get(passed, 0)
        moved = {q.extent: own * (k.elements + v.elements) * q.width}
        if own:
            self.worked.send(".".join([*self.scope, passed]), self.worked.when, PASSED[passed], moved)

        def derivative(_: Gradients) -> Gradients:
            gradients = [self.new(*shape) for shape in shapes]
            if own:
                self.worked.send(
                    passed, "backward", PASSED[passed], {extent: 2 * size for extent, size in moved.items()}
                )
            temporaries = [self.new(shapes[0][0], 4, shapes[0][2]), self.new(others, shapes[0][1], shapes[0][2])]
            self.mark()
            del temporaries
            return gradients

        self.note("attention", [heads_output], [q, k, v], [q, k, v, heads_output, rows], derivative)
        return heads_output

    def _ring(self, own: float, out: float, q: Tensor) -> None:
        """Forward: keys and values of all context ranks stay named, in a ring also the outputs of its steps, half of
        them of half length.
        """
        ranks = self.setting.context_parallel_size
        steps = (ranks + 1) / 2 * out if self.setting.context_parallel == "p2p" else 0
        held = self.new(ranks * own + steps, q.width, q.extent)
        self.moment("ring")
        del held

    def _other_keys(self, own: float) -> float:
        """Keys and values of other context ranks, and their gradients: two more pairs in a ring, all of them when
        gathered.
        """
        if self.setting.context_parallel == "p2p":
            return 3 * own
        return 2 * own * self.setting.context_parallel_size if self.setting.context_parallel == "allgather" else 0

    def _unfused(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        """Scale, mask and softmax in one kernel that keeps its result (core/fusions/fused_softmax.py)."""
        if k.elements != q.elements:
            k, v = self.copy(k, q.elements), self.copy(v, out)
        scores = self.mapped("softmax", self.pairs(q, k, heads, PAIR), saves="output")
        if self.drops_attention:
            scores = self.dropout(scores)
        return self.copy(self.pairs(scores, v, out, TENSOR))

    # ---- feed-forward ----

    def activation(self, x: Tensor) -> Tensor:
        """The activation function as one kernel, which keeps its input; its backward is compiled."""
        return self.gated(x, x.elements)

    def gated(self, x: Tensor, out: float, chosen: Tensor | None = None) -> Tensor:
        """Return act(gate) * up of one tensor that holds both; `chosen`: times the router's weight of each row."""
        with self.inside("activation"):
            product = self.new(out, x.width, x.extent)
            saved = self.like(x, 1) if self.setting.fp8_input_store else x
            shapes = [shape_of(operand) for operand in ((x,) if chosen is None else (x, chosen))]
            self.note(
                "fused",
                [product],
                [x, chosen] if chosen is not None else [x],
                [saved, chosen],
                lambda _: [self.new(*shape) for shape in shapes],
            )
            return product

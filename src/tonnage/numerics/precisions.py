"""Precisions: bits of a number, everything stored beside it, and the peak that multiplies it.

A weight of a quantised tensor costs more than its nominal bits: scales, zero points and tables come on top.
`bits_per_weight` counts all that grows with the number of weights; `bytes(rows, columns)` also what is kept per row and
per tensor.
"""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from tonnage.kernel.formula import Number, ceil_div
from tonnage.kernel.message import Message
from tonnage.kernel.registry import Registry, unknown

Kind = Literal["float", "integer", "codebook", "block"]


class Scale(Struct, frozen=True):
    """Numbers stored beside the weights: `bits` for every `rows` x `columns` of them; 0: one for all rows, or all
    columns.

    `flat`: the groups run through the flattened tensor and do not stop at the end of a row.
    """

    what: str
    bits: float
    rows: int = 1
    columns: int = 0
    flat: bool = False

    @property
    def bits_per_weight(self) -> float:
        """Bits per weight of a large tensor; a scale per row or per tensor vanishes."""
        return self.bits / (self.rows * self.columns)

    def count(self, rows: Number, columns: Number) -> Number:
        """Groups in a tensor of this shape; the last one of a row or column may be cut short."""
        if self.flat:
            return ceil_div(rows * columns, self.columns)
        down = ceil_div(rows, self.rows) if self.rows else 1
        return down * (ceil_div(columns, self.columns) if self.columns else 1)


class Precision(Struct, frozen=True, kw_only=True):
    """One way to store numbers.

    `element_bits` is the nominal width. `compute` names the peak of Accelerator.dense_flops that a matrix product of
    such weights reaches: its own, or that of the type it is expanded to (weight-only formats). A format whose block of
    `block` weights is one record of `block_bytes` (GGUF) states those; the others list their `scales`. `tensor_bytes`
    is stored once per tensor.
    """

    name: str
    kind: Kind
    element_bits: float
    compute: str
    source: str
    scales: tuple[Scale, ...] = ()
    block: int = 1
    block_bytes: int = 0
    tensor_bytes: int = 0
    note: str = ""

    @property
    def bits_per_weight(self) -> float:
        """Bits that a weight of a large tensor takes, scales and zero points included. Exact in binary."""
        if self.block_bytes:
            return 8 * self.block_bytes / self.block
        return self.element_bits + sum(scale.bits_per_weight for scale in self.scales if scale.rows and scale.columns)

    @property
    def bytes_per_weight(self) -> float:
        """bits_per_weight / 8."""
        return self.bits_per_weight / 8

    @property
    def description(self) -> str:
        """Text that lists what is stored beside the weights."""
        if self.block_bytes:
            return Message("{block_bytes} bytes for {block} weights", block_bytes=self.block_bytes, block=self.block)
        return ", ".join(_words(scale) for scale in self.scales) or "no scales"

    def bytes(self, rows: Number, columns: Number = 1, copies: Number = 1) -> Number:
        """Bytes of `copies` tensors of rows x columns (rows: output features), every scale counted. Takes arrays
        too.
        """
        if self.block_bytes:
            return copies * (rows * ceil_div(columns, self.block) * self.block_bytes + self.tensor_bytes)
        bits = rows * columns * self.element_bits
        for scale in self.scales:
            bits = bits + scale.count(rows, columns) * scale.bits
        return copies * (ceil_div(bits, 8) + self.tensor_bytes)


PRECISIONS: Registry[Precision] = Registry("precision")
ALIASES: dict[str, str] = {
    "double": "fp64",
    "float64": "fp64",
    "f64": "fp64",
    "float": "fp32",
    "float32": "fp32",
    "f32": "fp32",
    "bfloat16": "bf16",
    "half": "fp16",
    "float16": "fp16",
    "f16": "fp16",
    "tfloat32": "tf32",
    "fp8": "fp8-e4m3",
    "float8_e4m3fn": "fp8-e4m3",
    "fp8_e4m3": "fp8-e4m3",
    "fp8_e5m2": "fp8-e5m2",
    "float8_e5m2": "fp8-e5m2",
    "fp8_block": "fp8-block",
    "fp8_per_channel": "fp8-channel",
    "w8a8": "int8",
    "llm.int8": "int8",
    "int8-channel": "int8",
    "w4a16": "int4",
    "mxfp6-e3m2": "mxfp6",
    "mxfp6-e2m3": "mxfp6",
    "mxfp8-e4m3": "mxfp8",
    "gptq": "gptq-4bit-128g",
    "awq": "awq-4bit-128g",
    "gptq-int4": "gptq-4bit-128g",
    "gptq-int8": "gptq-8bit-128g",
    "awq-int4": "awq-4bit-128g",
    "bnb-nf4": "nf4",
    "bnb-fp4": "fp4",
    "qlora": "nf4-double",
    "bnb-int8": "int8",
}


def precision(name: str) -> Precision:
    """The precision of this name, however people and frameworks spell it: torch.bfloat16, FP8_E4M3, half."""
    plain = name.strip().lower().removeprefix("torch.")
    for spelled in (plain, plain.replace("_", "-"), ALIASES.get(plain, ""), ALIASES.get(plain.replace("_", "-"), "")):
        if spelled in PRECISIONS:
            return PRECISIONS[spelled]
    raise unknown("precision", name, [*PRECISIONS, *ALIASES])


def grouped(method: str, bits: int, group: int) -> Precision:
    """Weight-only integers of GPTQ, AWQ, auto-round: one fp16 scale and one packed zero point per row and `group`
    columns.

    `group` -1: one group per row. GPTQ also stores which group each input column belongs to.
    """
    columns = max(group, 0)
    scales = [Scale("fp16 scale", 16, 1, columns), Scale(Message("{bits}-bit zero point", bits=bits), bits, 1, columns)]
    if method == "gptq":
        scales.append(Scale("group index (int32)", 32, 0, 1))
    where = {
        "gptq": "Frantar2022; GPTQModel, nn_modules/qlinear",
        "awq": "Lin2023; AutoAWQ, modules/linear/gemm.py",
        "auto-round": "auto-round, export/export_to_autoround/qlinear_triton_act.py",
    }
    return Precision(
        name=f"{method}-{bits}bit-{group}g" if columns else f"{method}-{bits}bit-channel",
        kind="integer",
        element_bits=bits,
        compute="fp16",
        scales=tuple(scales),
        block=columns or 1,
        source=where[method],
    )


def _words(scale: Scale) -> str:
    if scale.flat:
        return Message("{what} per {columns} weights", what=scale.what, columns=scale.columns)
    if scale.rows and scale.columns:
        return Message("{what} per {rows} x {columns}", what=scale.what, rows=scale.rows, columns=scale.columns)
    return (
        Message("{what} per row", what=scale.what)
        if scale.rows
        else Message("{what} per column", what=scale.what)
        if scale.columns
        else Message("{what} per tensor", what=scale.what)
    )


def _plain() -> Iterator[Precision]:
    ieee, formats = "IEEE754, binary interchange formats", "Micikevicius2022, table 1"
    for name, bits in (("fp64", 64), ("fp32", 32)):
        yield Precision(name=name, kind="float", element_bits=bits, compute=name, source=ieee)
    yield Precision(
        name="tf32",
        kind="float",
        element_bits=32,
        compute="tf32",
        source="NVIDIA2020, TF32",
        note="a way to multiply fp32 numbers, which stay 32 bits wide in memory",
    )
    yield Precision(name="bf16", kind="float", element_bits=16, compute="bf16", source="Kalamkar2019")
    yield Precision(name="fp16", kind="float", element_bits=16, compute="fp16", source=ieee)
    for name in ("fp8-e4m3", "fp8-e5m2"):
        yield Precision(
            name=name,
            kind="float",
            element_bits=8,
            compute="fp8",
            tensor_bytes=4,
            source=formats,
            note="one fp32 scale per tensor",
        )
    yield Precision(
        name="fp8-channel",
        kind="float",
        element_bits=8,
        compute="fp8",
        scales=(Scale("fp32 scale", 32),),
        source="compressed-tensors, preset FP8_DYNAMIC; transformers, integrations/fbgemm_fp8.py: fp32 scales",
    )
    yield Precision(
        name="fp8-block",
        kind="float",
        element_bits=8,
        compute="fp8",
        block=128,
        scales=(Scale("fp32 scale", 32, 128, 128),),
        source="DeepSeek2024V3, sec. 3.3.2",
    )


def _integers() -> Iterator[Precision]:
    yield Precision(
        name="int8",
        kind="integer",
        element_bits=8,
        compute="int8",
        scales=(Scale("fp32 scale", 32),),
        source="bitsandbytes, nn/modules.py (SCB: one fp32 per output row)",
    )
    for name, group in (("int4", 128), ("int4-64g", 64), ("int4-32g", 32), ("int4-channel", 0)):
        yield Precision(
            name=name,
            kind="integer",
            element_bits=4,
            compute="bf16",
            block=group or 1,
            scales=(Scale("16-bit scale", 16, 1, group),),
            source="compressed-tensors, preset W4A16 (symmetric)",
        )
    for bits in (2, 4, 8):
        yield Precision(
            name=f"kv-int{bits}",
            kind="integer",
            element_bits=bits,
            compute="bf16",
            block=64,
            scales=(Scale("16-bit scale and offset", 32, 1, 64, flat=True),),
            source="transformers, cache_utils.py: QuantizedCache",
            note="holds keys and values only",
        )
    for bits in range(2, 9):
        yield Precision(
            name=f"exl-q{bits}",
            kind="integer",
            element_bits=bits,
            compute="fp16",
            block=32,
            scales=(Scale("fp16 scale", 16, 1, 32, flat=True),),
            source="ExLlamaV3, exllamav3/cache/quant.py: qshape_s; ExLlamaV2, exllamav2/cache.py: shape_s",
            note="holds keys and values only",
        )
    for bits in (8, 4):
        yield Precision(
            name=f"head-int{bits}",
            kind="integer",
            element_bits=bits,
            compute="bf16",
            block=128,
            scales=(Scale("16-bit scale and offset", 32, 1, 128, flat=True),),
            source="LMDeploy, src/turbomind/kernels/attention/block.h: Layout.token_param_size, heads of 128",
            note="holds keys and values only",
        )
    yield Precision(
        name="block-int8",
        kind="integer",
        element_bits=8,
        compute="bf16",
        block=32,
        scales=(Scale("16-bit scales and offsets of keys and values, on average", 36, 1, 32, flat=True),),
        source=(
            "OpenVINO, src/plugins/intel_gpu: paged_attention, keys by channel of a block of 16 tokens, values by "
            "token of a head of 128"
        ),
        note="holds keys and values only",
    )
    for method, widths in (("gptq", (2, 3, 4, 8)), ("awq", (4,))):
        for bits in widths:
            for group in (32, 64, 128, -1):
                yield grouped(method, bits, group)


def _codebooks() -> Iterator[Precision]:
    double = (Scale("8-bit absmax", 8, 1, 64, flat=True), Scale("fp32 absmax of absmaxes", 32, 1, 64 * 256, flat=True))
    for name in ("nf4", "fp4"):
        source, table = "Dettmers2023, sec. 3; bitsandbytes, functional.py (quantize_4bit)", 16 * 4
        yield Precision(
            name=name,
            kind="codebook",
            element_bits=4,
            compute="bf16",
            block=64,
            tensor_bytes=table,
            scales=(Scale("fp32 absmax", 32, 1, 64, flat=True),),
            source=source,
        )
        yield Precision(
            name=f"{name}-double",
            kind="codebook",
            element_bits=4,
            compute="bf16",
            block=64,
            tensor_bytes=table + 256 * 4 + 4,
            scales=double,
            source=source,
            note="absmaxes quantised once more: 8/64 + 32/(64*256) = 0.127 bits; tables and mean per tensor",
        )


def _blocks() -> Iterator[Precision]:
    for name, bits, compute in (("mxfp8", 8, "fp8"), ("mxfp6", 6, "fp6"), ("mxfp4", 4, "fp4")):
        yield Precision(
            name=name,
            kind="block",
            element_bits=bits,
            compute=compute,
            block=32,
            scales=(Scale("8-bit exponent (E8M0)", 8, 1, 32),),
            source="OCPMX2023, table 1",
        )
    yield Precision(
        name="nvfp4",
        kind="block",
        element_bits=4,
        compute="nvfp4",
        block=16,
        tensor_bytes=4,
        scales=(Scale("fp8 (E4M3) scale", 8, 1, 16),),
        source="NVFP4, two-level micro-block scaling",
        note="and one fp32 scale per tensor",
    )


# (name, nominal bits, weights in a block, bytes of a block); types that only hold intermediate products are marked "*".
_GGML = """
q4_0 4 32 18|q4_1 4 32 20|q5_0 5 32 22|q5_1 5 32 24|q8_0 8 32 34|q8_1* 8 32 40
q2_k 2 256 84|q3_k 3 256 110|q4_k 4 256 144|q5_k 5 256 176|q6_k 6 256 210|q8_k* 8 256 292
iq2_xxs 2 256 66|iq2_xs 2 256 74|iq3_xxs 3 256 98|iq1_s 1 256 50|iq4_nl 4 32 18|iq3_s 3 256 110
iq2_s 2 256 82|iq4_xs 4 256 136|iq1_m 1 256 56|tq1_0 1 256 54|tq2_0 2 256 66|q1_0 1 128 18
q2_0 2 64 18|i8 8 1 1|i16 16 1 2|i32 32 1 4|i64 64 1 8
"""


def _ggml() -> Iterator[Precision]:
    for row in _GGML.replace("\n", "|").strip("|").split("|"):
        name, bits, block, size = row.split()
        plain = name.rstrip("*")
        yield Precision(
            name=plain,
            kind="codebook" if plain.startswith("iq") else "integer",
            element_bits=int(bits),
            compute="int8",
            block=int(block),
            block_bytes=int(size),
            source="ggml, ggml-common.h (block_*)",
            note="holds intermediate products only" if name != plain else "",
        )


for _family in (_plain, _integers, _codebooks, _blocks, _ggml):
    for _precision in _family():
        PRECISIONS.add(_precision.name, _precision)


class Recipe(Struct, frozen=True, kw_only=True):
    """Bytes that a training recipe keeps for every parameter; a runtime says which of them are resident, when and
    where.

    `compute_bytes`: the copy that matrix products read. `master_bytes`: the copy that the optimizer updates, 0 where it
    updates the compute copy. `gradient_bytes`: a gradient as backward makes it; `main_gradient_bytes`: as it is
    accumulated over micro-batches and given to the optimizer; `reduce_bytes`: as it travels between ranks.
    `cast_bytes`: quantised copies of a weight that stay for the whole step; `gather_bytes`: a weight as ranks that
    shard the states get it, where that is another width than the compute copy's. `activation_bytes`: an element of the
    residual stream and of what backward keeps; `linear_input_bytes`: of the kept input of a quantised linear layer.
    `compute` names the peak that the linear layers reach, `rest` that of attention. `moment_bytes`: an optimizer's
    first and second moment where the recipe fixes them. `covers`: "linear": only the linear layers of the blocks are
    quantised; "all": every tensor.
    """

    name: str
    compute: str
    rest: str
    compute_bytes: float
    master_bytes: float
    gradient_bytes: float
    main_gradient_bytes: float
    reduce_bytes: float
    activation_bytes: float
    source: str
    linear_input_bytes: float | None = None
    cast_bytes: float = 0
    gather_bytes: float | None = None
    moment_bytes: tuple[float, float] | None = None
    covers: Literal["all", "linear"] = "all"
    loss_scaling: bool = False
    note: str = ""
    #: What of it no estimate of memory counts yet, as a sentence.
    uncounted: str = ""

    @property
    def gathered_bytes(self) -> float:
        """Width of a weight as the rank that updated it sends it."""
        return self.compute_bytes if self.gather_bytes is None else self.gather_bytes

    @property
    def update_bytes(self) -> float:
        """Width of the weights that the optimizer updates, and of its states unless the optimizer fixes their own."""
        return self.master_bytes or self.compute_bytes

    def resident_bytes(self, *, separate_compute_copy: bool = True, both_gradients: bool = False) -> float:
        """Bytes of weights and gradients per parameter, unsharded.

        `separate_compute_copy`: Megatron and DeepSpeed keep the 16-bit weights beside the master; FSDP2 and autocast
        keep the master only and cast it for each layer. `both_gradients`: 16-bit gradients are copied into a wider main
        gradient.
        """
        weights = self.update_bytes
        if separate_compute_copy and self.master_bytes:
            weights += self.compute_bytes
        gradients = self.main_gradient_bytes + (self.gradient_bytes if both_gradients else 0)
        return weights + gradients + self.cast_bytes


TRAINING_RECIPES: Registry[Recipe] = Registry("training recipe")


def _recipe(name: str, compute: str, rest: str, widths: str, source: str, **options: Any) -> None:
    """Add a recipe. `widths`: compute copy, master, gradient, main gradient, reduction, activations."""
    sizes: list[Any] = [float(width) if "." in width else int(width) for width in widths.split()]
    recipe = Recipe(
        name=name,
        compute=compute,
        rest=rest,
        source=source,
        compute_bytes=sizes[0],
        master_bytes=sizes[1],
        gradient_bytes=sizes[2],
        main_gradient_bytes=sizes[3],
        reduce_bytes=sizes[4],
        activation_bytes=sizes[5],
        **options,
    )
    TRAINING_RECIPES.add(name, recipe)


_MIXED = "Micikevicius2017, sec. 3.1; Rajbhandari2020, sec. 3.1; Megatron-LM, docs/source/api-guide/dist_optimizer.md"
_MSAMP = "MS-AMP, docs/user-tutorial/optimization-level.md; Peng2023"
_TE8 = "TransformerEngine, low precision training: handling transposes"
_TE_MX = "TransformerEngine, common/recipe: MXFP8BlockScaling; OCPMX2023, table 1"
_TE_MX_PRIMARY = (
    "TransformerEngine, MXFP8BlockScaling; Megatron-LM, --fp8-param-gather with --reuse-grad-buf-for-mxfp8-param-ag"
)
_TE_BLOCK = (
    "TransformerEngine, common/recipe: Float8BlockScaling; TransformerEngine, low precision training: FP8 blockwise"
)
_TE_FP4 = "TransformerEngine, common/recipe: NVFP4BlockScaling"
_NARROW = "Megatron-LM, --grad-reduce-in-bf16"
_FP8: dict[str, Any] = {"covers": "linear", "linear_input_bytes": 1}
_FP8_BLOCK: dict[str, Any] = {"covers": "linear", "linear_input_bytes": 1 + 4 / 128}
_MXFP8: dict[str, Any] = {"covers": "linear", "linear_input_bytes": 1.03125}
_NVFP4: dict[str, Any] = {"covers": "linear", "linear_input_bytes": 0.5625}
_recipe("fp32", "fp32", "fp32", "4 0 4 4 4 4", "Rajbhandari2020, sec. 3.1")
_recipe("tf32", "tf32", "tf32", "4 0 4 4 4 4", "NVIDIA2020, TF32")
_recipe(
    "bf16",
    "bf16",
    "bf16",
    "2 0 2 2 2 2",
    "torchtitan, config training.dtype = bfloat16",
    note="weights, gradients and optimizer states in bf16, no fp32 copy",
)
_recipe(
    "fp16",
    "fp16",
    "fp16",
    "2 0 2 2 2 2",
    "DocumentA; Micikevicius2017",
    loss_scaling=True,
    note="no fp32 copy; small updates are lost",
)
_recipe(
    "bf16-mixed",
    "bf16",
    "bf16",
    "2 4 2 4 4 2",
    Message("{mixed}; torchtitan, config training.mixed_precision_*", mixed=_MIXED),
)
_recipe(
    "bf16-mixed-16bit-gradients",
    "bf16",
    "bf16",
    "2 4 2 2 2 2",
    _MIXED,
    note="gradients stay in bf16 until the optimizer reads them: the 16 bytes a parameter of ZeRO",
)
_recipe("fp16-mixed", "fp16", "fp16", "2 4 2 4 4 2", _MIXED, loss_scaling=True)
_recipe("fp16-mixed-16bit-gradients", "fp16", "fp16", "2 4 2 2 2 2", _MIXED, loss_scaling=True)
_recipe(
    "bf16-master",
    "bf16",
    "bf16",
    "2 2 2 2 2 2",
    "DeepSpeed, bf16_master_weights_and_grads and bf16_optimizer_states",
    moment_bytes=(2, 2),
    note="the master copy in bf16 too, for ZeRO 1 to 3",
)
_recipe(
    "fp8-te",
    "fp8",
    "bf16",
    "2 4 2 4 4 2",
    "TransformerEngine, low precision training: handling transposes",
    cast_bytes=2,
    **_FP8,
    note="bf16 weights, and on Hopper fp8 copies by row and by column that a step keeps; Blackwell: 1 byte",
)
_recipe(
    "fp8-te-primary",
    "fp8",
    "bf16",
    "1 4 2 4 4 2",
    "TransformerEngine, fp8_model_init; Megatron-LM, --fp8-param-gather",
    cast_bytes=1,
    **_FP8,
    note="the only low-precision copy is fp8; cast_bytes is its transpose, which Hopper needs",
)
_recipe(
    "fp8-te-16bit-gradients",
    "fp8",
    "bf16",
    "2 4 2 2 2 2",
    f"{_TE8}; {_NARROW}",
    cast_bytes=2,
    **_FP8,
    note="as fp8-te, with gradients summed and reduced in bf16",
)
_recipe(
    "fp8-te-primary-16bit-gradients",
    "fp8",
    "bf16",
    "1 4 2 2 2 2",
    f"{_TE8}; {_NARROW}",
    cast_bytes=1,
    **_FP8,
    note="as fp8-te-primary, with gradients summed and reduced in bf16",
)
# A block of 128 x 128 weights, and of 128 inputs, shares a scale of 32 bits; weights are kept by rows and by columns.
_recipe(
    "fp8-blockwise-te",
    "fp8",
    "bf16",
    "2 4 2 4 4 2",
    _TE_BLOCK,
    cast_bytes=2 * (1 + 4 / 128**2),
    **_FP8_BLOCK,
    note="bf16 weights, and fp8 copies of them by rows and by columns; Hopper emulates their products in software, and "
    "Blackwell the recipe with MXFP8",
)
_recipe(
    "fp8-blockwise-te-16bit-gradients",
    "fp8",
    "bf16",
    "2 4 2 2 2 2",
    f"{_TE_BLOCK}; {_NARROW}",
    cast_bytes=2 * (1 + 4 / 128**2),
    **_FP8_BLOCK,
    note="as fp8-blockwise-te, with gradients summed and reduced in bf16",
)
_recipe(
    "fp8-blockwise-te-primary",
    "fp8",
    "bf16",
    f"{1 + 4 / 128**2} 4 2 4 4 2",
    f"{_TE_BLOCK}; Megatron-LM, --fp8-param-gather",
    cast_bytes=1 + 4 / 128**2,
    **_FP8_BLOCK,
    note="the only low-precision copies are fp8, by rows and by columns",
)
# 32 numbers share a scale of 8 bits, along rows for one product and along columns for the other: both copies are kept.
_recipe(
    "mxfp8-te",
    "fp8",
    "bf16",
    "2 4 2 4 4 2",
    _TE_MX,
    cast_bytes=2.0625,
    **_MXFP8,
    note="bf16 weights, and MXFP8 copies of them by rows and by columns",
)
_recipe(
    "mxfp8-te-16bit-gradients",
    "fp8",
    "bf16",
    "2 4 2 2 2 2",
    f"{_TE_MX}; {_NARROW}",
    cast_bytes=2.0625,
    **_MXFP8,
    note="as mxfp8-te, with gradients summed and reduced in bf16",
)
_recipe(
    "mxfp8-te-primary",
    "fp8",
    "bf16",
    "1.03125 4 2 4 4 2",
    _TE_MX_PRIMARY,
    cast_bytes=1.03125,
    gather_bytes=2,
    **_MXFP8,
    note="the weights are MXFP8 alone, by rows and by columns; they travel in bf16, as each rank must scale both ways",
)
_recipe(
    "mxfp8-te-primary-16bit-gradients",
    "fp8",
    "bf16",
    "1.03125 4 2 2 2 2",
    f"{_TE_MX_PRIMARY}; {_NARROW}",
    cast_bytes=1.03125,
    gather_bytes=2,
    **_MXFP8,
    note="as mxfp8-te-primary, with gradients summed and reduced in bf16",
)
# 16 numbers share a scale of 8 bits
_recipe(
    "nvfp4-te",
    "fp4",
    "bf16",
    "2 4 2 4 4 2",
    _TE_FP4,
    cast_bytes=1.125,
    **_NVFP4,
    note="bf16 weights, and NVFP4 copies of them by rows and by columns",
)
_recipe(
    "nvfp4-te-16bit-gradients",
    "fp4",
    "bf16",
    "2 4 2 2 2 2",
    f"{_TE_FP4}; {_NARROW}",
    cast_bytes=1.125,
    **_NVFP4,
    note="as nvfp4-te, with gradients summed and reduced in bf16",
)
_recipe(
    "fp8-torchao",
    "fp8",
    "bf16",
    "2 4 2 4 4 2",
    "torchao, float8/float8_linear.py; torchtitan, docs/float8.md",
    covers="linear",
    note="cast for each product, and backward keeps bf16: faster, not smaller",
)
_recipe(
    "fp8-deepseek",
    "fp8",
    "bf16",
    "1 4 4 4 4 2",
    "DeepSeek2024V3, sec. 3.3.1 to 3.3.3",
    moment_bytes=(2, 2),
    **_FP8,
    note="fp8 E4M3 with a scale per 1 x 128 inputs and 128 x 128 weights, fp32 master and gradients, bf16 moments",
)
_recipe(
    "msamp-o1",
    "fp8",
    "bf16",
    "2 0 1 1 1 2",
    _MSAMP,
    covers="linear",
    note="fp16 weights with a scale, fp8 gradients, fp32 moments",
    moment_bytes=(4, 4),
)
_recipe(
    "msamp-o2",
    "fp8",
    "bf16",
    "2 0 1 1 1 2",
    _MSAMP,
    covers="linear",
    note="as O1, moments in fp8 and fp16: 6 bytes a parameter in all",
    moment_bytes=(1, 2),
)
_recipe(
    "msamp-o3",
    "fp8",
    "bf16",
    "1 2 1 1 1 2",
    _MSAMP,
    covers="linear",
    note="fp8 weights, fp16 master, for ZeRO",
    moment_bytes=(1, 2),
)
# Names that people and tools have for recipes of Transformer Engine (Megatron-LM, --fp8-recipe and --fp4-recipe;
# torchtitan, quantization): each is the recipe here on a runtime that multiplies with Transformer Engine.
TE_NAMES: dict[str, str] = {
    "fp8": "fp8-te",
    "delayed": "fp8-te",
    "fp8-delayed": "fp8-te",
    "tensorwise": "fp8-te",
    "fp8-tensorwise": "fp8-te",
    "blockwise": "fp8-blockwise-te",
    "fp8-blockwise": "fp8-blockwise-te",
    "fp8-block": "fp8-blockwise-te",
    "mxfp8": "mxfp8-te",
    "nvfp4": "nvfp4-te",
}


def te_recipe(name: str | None) -> str:
    """The recipe of Transformer Engine that a name means; "" where it means none."""
    return TE_NAMES.get((name or "").strip().lower().replace("_", "-"), "")

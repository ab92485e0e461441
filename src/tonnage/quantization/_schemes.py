"""How quantised matrices are stored, from one scheme of a quantization_config, to the byte.

What is stored beside a matrix depends on the tool: AutoGPTQ writes the group of each column, modelopt a scale for the
activations, compressed-tensors the original shape. Each is read off that tool's export code (`source` of a precision).
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from tonnage.errors import InvalidInput, MissingDatum
from tonnage.precisions import Precision, Scale, grouped, precision

SCALAR = 4  # bytes of one fp32 scale of a tensor
SHAPE = 16  # bytes of weight_shape: two int64


def missing(what: str) -> MissingDatum:
    return MissingDatum(f"quantization_config: {what} does not say one precision for the matrices that it stores.")


def whole(config: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """The first of these fields that is given; it must be a whole number, or None where nothing is given."""
    value = next((config[name] for name in names if config.get(name) is not None), default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidInput(f"quantization_config: {names[0]} must be a whole number. Got {value!r}.")
    return value


def packed_integers(config: Mapping[str, Any], method: str) -> Precision:
    """GPTQ, AWQ, auto-round: packed integers with a scale and a zero point for each group of columns."""
    bits, group = whole(config, "bits", "w_bit"), whole(config, "group_size", "q_group_size", default=128)
    if bits is None or not 1 <= bits <= 8:
        raise InvalidInput(f"quantization_config: bits must be a whole number from 1 to 8. Got {bits!r}.")
    return grouped(method, bits, group)


def bitsandbytes(config: Mapping[str, Any]) -> Precision:
    if not config.get("load_in_4bit"):
        # SCB: one fp32 a row; and weight_format, one byte
        return replace(precision("int8"), tensor_bytes=1)
    kind = str(config.get("bnb_4bit_quant_type", "fp4"))
    return precision(f"{kind}-double" if config.get("bnb_4bit_use_double_quant") else kind)


def block_fp8(config: Mapping[str, Any], scale_bits: int = 32) -> Precision:
    """fp8 with a scale for each block (DeepSeek-V3), or for each tensor, and then one for the activations if static."""
    block = config.get("weight_block_size")
    if not block:
        scalars = 2 if config.get("activation_scheme") == "static" else 1
        return replace(precision("fp8-e4m3"), tensor_bytes=scalars * SCALAR)
    if not (isinstance(block, list) and len(block) == 2 and all(type(size) is int and size > 0 for size in block)):
        raise InvalidInput(f"quantization_config: weight_block_size must hold two sizes. Got {block!r}.")
    return replace(precision("fp8-block"), scales=(Scale(f"{scale_bits}-bit scale", scale_bits, *block),))


def fbgemm() -> Precision:
    """One fp32 scale a row, and the bound of the activations' scale."""
    return replace(precision("fp8-channel"), tensor_bytes=SCALAR)


def mlx(config: Mapping[str, Any]) -> Precision:
    """MLX: a 16-bit scale and a 16-bit offset for each group (mode affine), or the block formats."""
    mode = config.get("mode", "affine")
    bits, group = whole(config, "bits", default=4), whole(config, "group_size", default=64)
    if mode != "affine":
        return replace(precision(str(mode)), tensor_bytes=0)
    scale = Scale("16-bit scale and offset", 32, 1, group)
    return Precision(name=f"mlx-{bits}bit-{group}g", kind="integer", element_bits=bits, compute="bf16", block=group,
                     scales=(scale,), source="mlx, python/mlx/nn/layers/quantized.py")  # fmt: skip


# What modelopt 0.47 exports: the precision, and how many fp32 scalars a matrix has beside it.
_MODELOPT = {
    "NVFP4": ("nvfp4", 2), "W4A16_NVFP4": ("nvfp4", 1), "NVFP4_AWQ": ("nvfp4", 2), "FP8": ("fp8-e4m3", 2),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8-channel", 0), "FP8_PB_WO": ("fp8-block", 0), "FP8_PB_REAL": ("fp8-block", 0),
    "MXFP8": ("mxfp8", 0), "MXFP4": ("mxfp4", 0), "W4A8_MXFP4_FP8": ("mxfp4", 0), "W4A16_AWQ": ("int4", 0),
    "W4A8_AWQ": ("int4", 2), "W8A16": ("int8", 0), "W8A8_SQ_PER_CHANNEL": ("int8", 1),
}  # fmt: skip


def modelopt(algorithm: str, config: Mapping[str, Any]) -> Precision:
    """NVIDIA's tool: fp32 scalars for the weight and, unless they stay 16 bits wide, for the activations.

    What AWQ multiplies the inputs by is stored where no norm takes it up, which no config says: it is left out, 0.02 %.
    """
    if algorithm not in _MODELOPT:
        raise missing(f"quant_algo {algorithm!r}")
    name, scalars = _MODELOPT[algorithm]
    found = replace(precision(name), tensor_bytes=scalars * SCALAR)
    group = whole(config, "group_size")
    if name in ("nvfp4", "int4") and group and group != found.block:
        found = replace(found, block=group, scales=(replace(found.scales[0], columns=group),))
    if name == "int4":
        found = replace(found, scales=(replace(found.scales[0], what="fp32 scale", bits=32),))
    if algorithm == "W8A8_SQ_PER_CHANNEL":
        found = replace(found, scales=(*found.scales, Scale("16-bit factor of the inputs", 16, 0, 1)))
    return found


def compressed_tensors(group: Mapping[str, Any], form: str) -> Precision:
    """One scheme of config_groups; `form` is the format that it is packed in. Scales are as wide as the model's type."""
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise missing(f"a group with weights {weights!r}")
    bits, columns = whole(weights, "num_bits"), whole(weights, "group_size")
    static = _static(group.get("input_activations"))
    if weights.get("type") == "float":
        return _floats(weights, bits, columns, static)
    if weights.get("type") == "int" and bits in (2, 3, 4, 8):
        return _integers(weights, bits, columns, "pack" in form, static)
    raise missing(f"type {weights.get('type')!r} of {bits} bits")


def _static(activations: Any) -> bool:
    return isinstance(activations, Mapping) and activations.get("dynamic") in (False, "local")


def _floats(weights: Mapping[str, Any], bits: Any, columns: Any, static: bool) -> Precision:
    if bits == 4:
        fine = columns == 16
        return replace(precision("nvfp4" if fine else "mxfp4"), tensor_bytes=(1 + static) * SCALAR if fine else 0)
    if bits != 8:
        raise missing(f"floats of {bits} bits")
    strategy, short = str(weights.get("strategy")), 2 * static
    if strategy == "channel":
        return replace(precision("fp8-channel"), scales=(Scale("16-bit scale", 16),), tensor_bytes=short)
    if strategy == "block":
        block = weights.get("block_structure") or [128, 128]
        return block_fp8({"weight_block_size": block}, 16)
    if columns == 32:
        return precision("mxfp8")
    return replace(precision("fp8-e4m3"), tensor_bytes=2 + short)


def _integers(weights: Mapping[str, Any], bits: int, columns: Any, packed: bool, static: bool) -> Precision:
    group = columns if columns and columns > 0 else 0
    scales = [Scale("16-bit scale", 16, 1, group)]
    if weights.get("symmetric") is False:
        scales.append(Scale("zero point", bits if packed else 8, 1, group))
    if weights.get("actorder") == "group":
        scales.append(Scale("group index (int32)", 32, 0, 1))
    name = f"int{bits}" + (
        {128: "", 0: "-channel"}.get(group, f"-{group}g") if bits < 8 else f"-{group}g" if group else ""
    )
    return Precision(
        name=name, kind="integer", element_bits=bits, compute="bf16" if packed else "int8", block=group or 1, scales=tuple(scales),
        tensor_bytes=SHAPE if packed else 2 * static, source="compressed-tensors, compressors",
    )  # fmt: skip


def quark(scheme: Mapping[str, Any]) -> Precision:
    """AMD's tool: the weight of one scheme."""
    weight = scheme.get("weight")
    if isinstance(weight, list):  # two-level schemes
        weight = weight[-1] if weight else None
    if not isinstance(weight, Mapping):
        raise missing(f"quark's weight {weight!r}")
    kind, how = str(weight.get("dtype")), str(weight.get("qscheme"))
    if kind == "fp4" and how == "per_group" and whole(weight, "group_size") == 32:
        return precision("mxfp4")
    if kind == "fp8_e4m3" and how in ("per_tensor", "per_channel"):
        return precision("fp8-e4m3" if how == "per_tensor" else "fp8-channel")
    if kind == "int8" and how == "per_channel":
        return precision("int8")
    raise missing(f"quark's dtype {kind!r} with qscheme {how!r}")

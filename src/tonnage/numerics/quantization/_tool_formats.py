"""Weights that a tool's own name says: MLX's bits and groups, ExLlama's mean bits, OpenVINO's exports, MLC LLM's
quantizations.
"""

import re
from functools import lru_cache

from tonnage.numerics.precisions import Precision, Scale
from tonnage.numerics.quantization import _schemes as schemes
from tonnage.numerics.quantization._exllama import exllama_config, of_layers
from tonnage.numerics.quantization._layout import Layout, layout

# "mlx-4bit", in groups of 64 unless another size follows, "mlx-4bit-32g"
_MLX = re.compile(r"mlx_([234568])bit(?:_(32|64|128)g)?")
# "ov-int4", asymmetric in groups of 128 and without a layer in 8 bits, as optimum-cli exports it unless told otherwise
_OPENVINO = re.compile(r"ov_int4(?:_(sym|asym))?(?:_(32|64|128)g|_(cw))?(?:_r([1-9][0-9]))?")
_MLC = re.compile(r"q([34])(f16|bf16)_([012])")
#: What names of formats start with that one engine alone loads.
OWN_FORMATS = ("ov-", "q3f16_", "q4f16_", "q3bf16_", "q4bf16_", "exl2-", "exl3-")
#: Names that an unknown one may be near to.
EXAMPLES = ("mlx-4bit", "mlx-8bit", "exl2-4.0", "exl3-4.0", "ov-int4", "ov-int8", "q3f16_1", "q4f16_1")
#: optimum-cli export openvino --weight-format int8; also embedding and head of int4.
OV_INT8 = Precision(
    name="ov-int8",
    kind="integer",
    element_bits=8,
    compute="fp16",
    scales=(Scale("16-bit scale and 8-bit zero point", 24),),
    source="NNCF, quantization/algorithms/weight_compression: INT8_ASYM, one group a row",
)


@lru_cache(maxsize=256)
def tool_precision(name: str) -> Precision | None:
    """The precision of the matrices in a tool's format of this name; None where it is none."""
    plain = name.strip().lower().replace("-", "_")
    if found := _MLX.fullmatch(plain):
        return schemes.mlx({"bits": int(found[1]), "group_size": int(found[2] or 64)})
    if exllama := exllama_config(name):
        return of_layers(exllama)
    if plain == "ov_int8":
        return OV_INT8
    if found := _OPENVINO.fullmatch(plain):
        columns = 0 if found[3] else int(found[2] or 128)
        return _openvino(found[1] == "sym", columns, int(found[4] or 100))
    if found := _MLC.fullmatch(plain):
        return _mlc(int(found[1]), found[2], int(found[3]))
    return None


def tool_layout(name: str, chosen: Precision) -> Layout:
    """What embedding, head and routers are stored in beside the matrices of this precision, as a user names it."""
    if exllama := exllama_config(name):
        return layout(exllama)
    if chosen.name.startswith("ov-"):
        return Layout(matrices=chosen, tables=True, table=OV_INT8)
    of_mlc = chosen.name.startswith(OWN_FORMATS) and not chosen.name.endswith("_2")
    return Layout(matrices=chosen, tables=of_mlc or chosen.name.startswith("mlx-"))


def _openvino(symmetric: bool, columns: int, share: int) -> Precision:
    """`share`: percent of the matrices that are in 4 bits, the others in 8: which ones, NNCF chooses by their errors,
    so this is the mean of all.
    """
    name = f"ov-int4-{'sym' if symmetric else 'asym'}-{f'{columns}g' if columns else 'cw'}"
    what, bits = ("16-bit scale", 16) if symmetric else ("16-bit scale and 4-bit zero point", 20)
    return Precision(
        name=name if share == 100 else f"{name}-r{share}",
        kind="integer",
        element_bits=(4 * share + 8 * (100 - share)) / 100,
        compute="fp16",
        block=columns or 1,
        scales=(Scale(what, bits * share / 100, 1, columns),),
        source="NNCF, quantization/algorithms/weight_compression: INT4_SYM, INT4_ASYM; optimum-intel, int4 by default",
    )


def _mlc(bits: int, wide: str, layout: int) -> Precision:
    """Whole words of 32 bits: 8 weights of 4 bits, or 10 of 3; a scale for each 32, or 40."""
    return Precision(
        name=f"q{bits}{wide}_{layout}",
        kind="integer",
        element_bits=bits,
        compute="bf16" if wide == "bf16" else "fp16",
        block=32 if bits == 4 else 40,
        block_bytes=4 * 4 + 2,
        source="MLC-LLM, python/mlc_llm/quantization/quantization.py: group_size, storage_dtype uint32",
    )

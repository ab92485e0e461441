"""What a user means by the name of a precision for weights: a precision of the matrices, or a GGUF file type."""

from functools import lru_cache

from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.kernel.registry import unknown
from tonnage.numerics.precisions import ALIASES, PRECISIONS, Precision, precision
from tonnage.numerics.quantization import EXAMPLES, FILE_TYPES, FileType, file_type, is_file_type, tool_precision

# Words that fit several formats of different sizes.
AMBIGUOUS = {
    **dict.fromkeys(("4bit", "w4", "q4", "uint4", "4"), "int4, awq, gptq, nf4, nvfp4, mxfp4, Q4_0, Q4_K_M"),
    **dict.fromkeys(("8bit", "w8", "q8", "uint8", "8"), "fp8, int8, gptq-int8, Q8_0"),
    **dict.fromkeys(("3bit", "q3", "int3", "3"), "gptq-3bit-128g, Q3_K_M, IQ3_M"),
    **dict.fromkeys(("5bit", "q5", "int5", "5"), "Q5_0, Q5_K_M"),
    **dict.fromkeys(("6bit", "q6", "int6", "fp6", "6"), "Q6_K, mxfp6"),
    **dict.fromkeys(("2bit", "q2", "int2", "2"), "Q2_K, IQ2_M, gptq-2bit-128g"),
    "16bit": "bf16, fp16",
    "32bit": "fp32",
    "k_quants": "Q4_K_M, Q5_K_M, Q6_K",
    "gguf": "Q4_K_M, Q8_0",
    "w4a8": "int4, mxfp4",
    "bnb": "nf4, bnb-int8",
    "bitsandbytes": "nf4, bnb-int8",
    "compressed_tensors": "fp8, int8, int4",
    "quantized": "fp8, awq, Q4_K_M",
    "modelopt": "fp8, nvfp4",
    "auto_round": "gptq, awq",
    "exl2": "exl2-4.0, exl2-5.0, exl2-6.0",
    "exl3": "exl3-3.0, exl3-4.0, exl3-5.0",
}
_FLOATS = ("fp32", "fp16", "bf16", "f32", "f16", "mxfp4")  # also file types, and meant as precisions
# A method's name means that method's checkpoint as it is, whatever its group size.
_METHODS = ("fp8", "gptq", "awq", "int4", "int8", "w4a16", "w8a8", "nf4", "fp4", "nvfp4", "mxfp4", "mxfp8")


@lru_cache(maxsize=256)
def asked_for(name: str) -> Precision | FileType:
    """The precision or file type of this name.

    A GGUF type that is also a file type (Q8_0, Q4_K) means the file, whose table and head are quantised too.
    """
    plain = name.strip().lower().replace("-", "_")
    if plain.replace("_", "") in AMBIGUOUS or plain in AMBIGUOUS:
        choices = AMBIGUOUS.get(plain) or AMBIGUOUS[plain.replace("_", "")]
        raise InvalidInput(
            "{@weights}: {name!r} can mean several formats of different sizes. Say one: {choices}.",
            name=name,
            choices=choices,
        )
    if (of_tool := tool_precision(name)) is not None:
        return of_tool
    if plain not in _FLOATS and is_file_type(plain):
        return file_type(plain)
    return _precision(name)


def _precision(name: str) -> Precision:
    try:
        requested = precision(name)
    except UnknownName:
        raise unknown("precision or GGUF file type", name, [*PRECISIONS, *ALIASES, *FILE_TYPES, *EXAMPLES]) from None
    if requested.block_bytes or requested.note.startswith("holds"):
        why = requested.note or "is a type of single tensors"
        raise InvalidInput(
            "{@weights}: {found} {why}; no file is called so. Say fp8, int4, or a file type: Q4_K_M, Q8_0.",
            found=requested.name,
            why=why,
        )
    return requested


def is_meant(name: str, stored: Precision) -> bool:
    """Whether a checkpoint stored so is what the user asks for, so that nothing is converted."""
    plain = name.strip().lower().replace("_", "-")
    if plain in ("int4", "w4a16", "int8", "w8a8"):
        return stored.kind == "integer" and stored.element_bits == (4 if "4" in plain else 8)
    if (of_tool := tool_precision(name)) is not None:
        return of_tool.name == stored.name
    if plain in _METHODS:
        return stored.name == plain or stored.name.startswith(f"{plain}-")
    try:
        return precision(name).name == stored.name
    except UnknownName:
        return False

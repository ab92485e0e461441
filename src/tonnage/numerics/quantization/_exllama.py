"""ExLlama's formats: EXL2, whose bits differ by matrix and column, and EXL3, a trellis code. A file states the mean
bits of the matrices of its layers, and those of its head.
"""

import re
from collections.abc import Mapping
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.numerics.precisions import Precision, Scale

HEAD_BITS = 6  # exllamav2, doc/convert.md and exllamav3, doc/convert.md: --head_bits
LEAST = {"exl2": 2, "exl3": 1}  # mean bits of the matrices of layers
MOST = 8
PLAIN = 16  # bits of a head that is not quantised
# Bits of a weight of EXL2's head by its nominal bits: shares of columns at other bits, and a scale of 4 bits for each
# group of 32 or 128 rows (exllamav2, exllamav2/conversion/qparams.py: qparams_headoptions).
HEADS = {
    2: 0.3 * 4 + 0.7 * 2 + 4 / 32,
    3: 0.15 * 4 + 0.85 * 3 + 4 / 32,
    4: 0.15 * 6 + 0.85 * 4 + 4 / 32,
    5: 0.15 * 6 + 0.85 * 5 + 4 / 128,
    6: 0.15 * 8 + 0.85 * 6 + 4 / 128,
    8: 8 + 4 / 128,
}
# "exl2-4.25", "exl3_4bpw", "exl2-6.0-h8": the head's bits where they are not 6.
_NAME = re.compile(r"(exl[23])_?(\d{1,2}(?:[._]\d{1,3})?)(?:_?(?:bpw|bits?))?(?:_h(\d{1,2}))?")


def exllama_config(name: str) -> dict[str, Any] | None:
    """The quantization_config of weights that a user calls so; None for a name of other formats.

    InvalidInput for bits that the format does not have.
    """
    plain = name.strip().lower().replace("-", "_")
    match = _NAME.fullmatch(plain)
    if match is None:
        if plain.startswith(tuple(LEAST)):
            raise InvalidInput(
                "{@weights}: {name} does not say a mean number of bits. Write {method}-4.0, or with another head than "
                "one of 6 bits {method}-4.25-h8.",
                name=shown(name),
                method=plain[:4],
            )
        return None
    method, bits, head = match[1], float(match[2].replace("_", ".")), int(match[3] or HEAD_BITS)
    if not LEAST[method] <= bits <= MOST:
        raise InvalidInput(
            "{@weights}: {method} has a mean of {least} to {most} bits. Got {name}. Nearest: {method}-{nearest:.1f}.",
            method=method,
            least=LEAST[method],
            most=MOST,
            name=shown(name),
            nearest=float(min(max(bits, LEAST[method]), MOST)),
        )
    if head not in _heads(method):
        nearest = min(_heads(method), key=lambda known: abs(known - head))
        raise InvalidInput(
            "{@weights}: a head of {method} cannot have {head} bits. Got {name}. Nearest: "
            "{method}-{bits:g}-h{nearest}.",
            method=method,
            head=head,
            name=shown(name),
            bits=bits,
            nearest=nearest,
        )
    return {"quant_method": method, "bits": bits, "head_bits": head}


def of_layers(config: Mapping[str, Any]) -> Precision:
    """What the matrices of the layers are in. InvalidInput where `bits` is no number that the format has."""
    method, bits = str(config["quant_method"]).lower(), config.get("bits")
    if isinstance(bits, bool) or not isinstance(bits, int | float) or not LEAST[method] <= bits <= MOST:
        raise InvalidInput(
            "quantization_config: bits of {method} must be a number from {least} to {most}. Got {bits}.",
            method=method,
            least=LEAST[method],
            most=MOST,
            bits=shown(bits),
        )
    return _precision(method, f"{method}-{bits:g}", bits)


def of_head(config: Mapping[str, Any]) -> Precision | None:
    """What the head is in; None: it is not quantised."""
    method, bits = str(config["quant_method"]).lower(), config.get("head_bits")
    bits = HEAD_BITS if bits is None else bits
    if type(bits) is not int or bits not in _heads(method):
        raise InvalidInput(
            "quantization_config: head_bits of {method} cannot be {bits}.", method=method, bits=shown(bits)
        )
    if bits == PLAIN:
        return None
    return _precision(method, f"{method}-h{bits}", HEADS[bits] if method == "exl2" else bits)


def _heads(method: str) -> tuple[int, ...]:
    return (*HEADS, PLAIN) if method == "exl2" else (*range(1, MOST + 1), PLAIN)


def _precision(method: str, name: str, bits: float) -> Precision:
    """EXL2's mean has its scales in it; EXL3 keeps a factor for each input and output channel beside its code."""
    if method == "exl2":
        return Precision(
            name=name,
            kind="integer",
            element_bits=bits,
            compute="fp16",
            source="ExLlamaV2, exllamav2/conversion/qparams.py: QParams.total_bits",
            note=Message("a mean over the matrices of all layers, their scales in it"),
        )
    return Precision(
        name=name,
        kind="codebook",
        element_bits=bits,
        compute="fp16",
        scales=(Scale("fp16 factor of an input", 16, 0, 1), Scale("fp16 factor of an output", 16, 1, 0)),
        source="ExLlamaV3, exllamav3/modules/quant/exl3.py: LinearEXL3, trellis, suh and svh",
    )

"""A model's weights in a GGUF file: what `llama-quantize` would choose for each, and the towers in a file beside it."""

from itertools import accumulate

from tonnage.architectures import Model
from tonnage.estimate.serving.weights.stored import Storage, WeightPlace
from tonnage.numerics.precisions import Precision
from tonnage.numerics.quantization import VALUES, FileType, Shape, role, tensor_type
from tonnage.ops import Attention, MoE, Weight

LAYERED = (*VALUES, "ffn_down", "ffn_up")  # roles whose type the rules choose by the layer


def gguf_storage(model: Model, kind: FileType, plain: Precision, source: str, imatrix: bool = False) -> Storage:
    """A file of this type, and the towers beside it, which llama.cpp keeps in a file of their own and in 16 bits,
    `plain`.
    """
    before = _values_before(model)
    shape = _shape(model, before[-1], imatrix)
    known: dict[
        tuple[str, bool, int, int, int, int], float
    ] = {}  # every tensor of a block is asked for again in each of its layers, thrice an answer

    def bytes_of(weight: Weight, place: WeightPlace) -> float:
        if place.kind in ("vision", "audio"):
            return plain.bytes(weight.rows, weight.columns, weight.copies)
        what = role(weight.name, weight.part, weight.columns)
        layer = place.layer if what in LAYERED else 0
        key = what, weight.part == "experts", weight.rows, weight.columns, weight.copies, layer
        found = known.get(key)
        if found is None:
            found = known[key] = chosen(weight, what, layer)
        return found

    def chosen(weight: Weight, what: str, layer: int) -> float:
        layer = before[min(layer, len(before) - 1)] if what in VALUES else layer
        precision = tensor_type(kind, what, layer, shape, weight.columns, weight.part == "experts")
        return precision.bytes(weight.rows, weight.columns, weight.copies)

    return Storage(kind.name, source, bytes_of, by_layer=True)


def _values_before(model: Model) -> list[int]:
    """How many layers before each, and in all, have values: the rules count only those."""
    main = model.decoder
    have = [any(role(w.name, w.part, w.columns) in VALUES for w in block.weights()) for block in main.blocks]
    return list(accumulate((int(have[index]) for index in main.layers), initial=0))


def _shape(model: Model, num_values: int, imatrix: bool) -> Shape:
    ops = [op for block in model.decoder.blocks for op in block.ops]
    attention = next((op for op in ops if isinstance(op, Attention)), None)
    experts = next((op.num_experts for op in ops if isinstance(op, MoE)), 0)
    groups = attention.heads // attention.kv_heads if attention else 1
    return Shape(
        num_layers=model.num_layers,
        num_values=num_values,
        groups=groups,
        num_experts=experts,
        tied=model.tied,
        imatrix=imatrix,
    )

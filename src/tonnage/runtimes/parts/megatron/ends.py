"""What is before and after the layers in Megatron-core: the embedding's backward, final norm, output layer, cross
entropy.

Sources: Megatron-core, megatron/core/tensor_parallel/{layers,cross_entropy}.py,
megatron/core/fusions/fused_cross_entropy.py; Transformer Engine, transformer_engine/pytorch/cross_entropy.py and
common/triton/cross_entropy.py.
"""

from collections.abc import Sequence

from tonnage.ops import Head, Op
from tonnage.runtimes.parts.megatron.layers import MegatronLayers
from tonnage.tape import TENSOR, Held, Key, Layer, Moment, Tensor, layer
from tonnage.tape.megatron import GATHERED, MegatronSetting, Shape
from tonnage.tape.tape import TOKEN, Extent, Gradients
from tonnage.tape.words import first_gradient

VOCABULARY = Extent("parameter", "vocab")


def loss_layer(after: Sequence[Op], setting: MegatronSetting, hidden: int, padded: int, predictions: int = 0) -> Layer:
    """The final norm, the output layer and the loss; `padded`: the vocabulary as it is stored; `predictions`: losses
    of tokens further ahead, which are made before the main one and hang on its hidden states.
    """
    code = MegatronLayers(setting)

    def run(x: Tensor) -> Tensor:
        for op in after:
            if isinstance(op, Head) and predictions:
                return losses(code, op, x, padded, predictions)
            if isinstance(op, Head):
                return cross_entropy(code, output_layer(code, op, x, padded))
            x = code.run(op, x)
        return x

    return layer(code, run, hidden, setting.types.parameter)


def losses(code: MegatronLayers, op: Head, x: Tensor, padded: int, predictions: int) -> Tensor:
    """Hidden states of all depths are joined and taken apart again; each loss waits on the main hidden states for their
    gradient.

    Source: multi_token_prediction.py, MultiTokenPredictionBlock.forward, process_mtp_loss, MTPLossAutoScaler.
    """
    size = x.elements
    every = code.new((1 + predictions) * size, x.width, x.extent)
    code.note("cat", [every], [x], [], lambda g: [first_gradient(g).alias(elements=size, is_view=True)])
    main, *others = code.parts(every, [size] * (1 + predictions))
    if x.storage is not None:
        x.storage.empty()  # the joined copy is all that is left of it
    del every
    while others:
        main = _scaled(code, main, cross_entropy(code, output_layer(code, op, others.pop(0), padded)))
    return cross_entropy(code, output_layer(code, op, main, padded))


def _scaled(code: MegatronLayers, main: Tensor, loss: Tensor) -> Tensor:
    scaled, width = main.alias(), loss.width

    def derivative(gradients: Gradients) -> Gradients:
        return [gradients[0], code.new(1, width)]

    code.note("scale_loss", [scaled], [main, loss], [loss], derivative)
    return scaled


def output_shape(hidden: int, padded: int) -> Shape:
    """The output layer's weight, which has a dummy gradient as those of Transformer Engine have."""
    return Shape(padded, hidden, "rows")


def output_layer(code: MegatronLayers, op: Head, x: Tensor, padded: int) -> Tensor:
    """Megatron's own linear: what it gathers lies in the global memory buffer (`buffers.global_memory`), in both
    directions.
    """
    with code.inside("output_layer"):
        logits = code.new(padded, x.width, TENSOR)
        held = [Held(op.width * padded, "vocab")] if op.tied else op.held(op.name)
        weights = [code.weight(*weight[:3]) for weight in held]
        elements, width, extent = x.elements, x.width, x.extent

        def derivative(_: Gradients) -> Gradients:
            gathered = [code.new(elements, width, GATHERED)] if code.setting.sequence_parallel else []
            of_input = code.new(elements, width, extent)
            of_weights = [code.weight_gradient(weight, is_bias=False) for weight in weights]
            code.mark()
            del gathered
            return [of_input, *of_weights]

        code.note("mm", [logits], [x, *weights], [x], derivative)
        return logits


def cross_entropy(code: MegatronLayers, logits: Tensor) -> Tensor:
    """Transformer Engine writes the gradient over the logits in forward; else an fp32 softmax is kept beside them,
    and becomes the gradient in place.
    """
    losses = code.new(1, 4)
    with code.inside("cross_entropy"):
        if code.setting.cross_entropy == "te":
            storage = logits.alias()
            code.note("fused", [losses], [logits], [logits], lambda _: [storage.alias()])
            return losses
        softmax = code.like(logits, 4)
        code.moment("softmax")
        shape = logits.elements, logits.width, logits.extent
        code.note("softmax", [losses], [logits], [softmax], lambda _: [code.new(*shape)])
        return losses


def embedding_backward(hidden: int, padded: int, setting: MegatronSetting) -> Moment:
    """The end of backward on the first stage: a gradient of the whole table, before it is added, and that of the
    embedded tokens.
    """
    width = setting.types.compute
    live = {Key("temporary", VOCABULARY): padded * hidden * width, Key("temporary", TOKEN): hidden * width}
    if setting.sequence_parallel:
        live[Key("temporary", GATHERED)] = hidden * width
    return Moment("embedding", live)

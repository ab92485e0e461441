"""Multi-token prediction in Megatron-core: the layers that follow the decoder, one for each token further ahead.

Sources: Megatron-core, megatron/core/transformer/multi_token_prediction.py (MultiTokenPredictionLayer,
process_mtp_loss), megatron/core/models/gpt/{gpt_model,gpt_layer_specs}.py, megatron/core/tensor_parallel/mappings.py.
"""

from msgspec.structs import replace

from tonnage.architectures import Block, Model, wiring
from tonnage.ops import Linear, Norm
from tonnage.runtimes.parts.megatron.ends import VOCABULARY
from tonnage.runtimes.parts.megatron.layers import MegatronLayers
from tonnage.tape import TENSOR, TOKEN, Exchange, Tensor
from tonnage.tape.megatron import GATHERED
from tonnage.tape.tape import Gradients

NAME = "multi-token prediction layer"


class FinalNorm(Block, frozen=True, eq=False):
    """The decoder's last norm, which the first prediction layer and the output layer both read: so it comes before
    the former.
    """


class Prediction(Block, frozen=True, eq=False):
    """One prediction layer: two norms, their product with `eh_proj`, a layer of the decoder's last kind, one more norm.

    It embeds the next token with a table of `vocabulary` rows.
    """

    layer: Block
    vocabulary: int


def final_norm(model: Model) -> Norm | None:
    """The norm that follows the decoder's layers."""
    return next((op for op in model.decoder.after if isinstance(op, Norm)), None)


def prediction(model: Model) -> Prediction:
    """A prediction layer of this model (gpt_layer_specs.py: the specification of the last decoder layer, the
    decoder's own norm).
    """
    main, width = model.decoder, model.hidden_size
    norm = final_norm(model) or Norm(name="", width=width)
    last = main.blocks[main.layers[-1]]
    project = Linear(name="eh_proj", in_features=2 * width, out_features=width, split="tensor")
    enorm, hnorm, final = (replace(norm, name=name) for name in ("enorm", "hnorm", "final_layernorm"))
    return Prediction(NAME, (enorm, hnorm, project, *last.ops, final), last, model.vocab_size)


def predict(code: MegatronLayers, block: Prediction, x: Tensor) -> Tensor:
    """What follows the embedding is recomputed as a whole: a checkpoint keeps the stream and the embedded tokens."""
    tokens = _embedded(code, x.elements, block.vocabulary)
    if code.setting.recompute == "full":
        return code.checkpoint(lambda x, tokens: _joined_and_run(code, block, x, tokens), x, tokens)
    return _joined_and_run(code, block, x, tokens)


def _embedded(code: MegatronLayers, hidden: float, vocabulary: int) -> Tensor:
    """The table's gradient is made whole, and added to the main gradient when no other layer still owes it one."""
    with code.inside("embed_tokens"):
        width = code.types.compute
        table = code.weight(vocabulary * hidden, "vocab")
        embedded = code.new(hidden, width)

        def derivative(_: Gradients) -> Gradients:
            gathered = [code.new(hidden, width, GATHERED)] if code.setting.sequence_parallel else []
            of_table = code.new(vocabulary * hidden, width, VOCABULARY)
            code.mark()
            del gathered
            return [of_table]

        code.note("embedding", [embedded], [table], [], derivative)
        return code.dropped(embedded)


def _joined_and_run(code: MegatronLayers, block: Prediction, x: Tensor, tokens: Tensor) -> Tensor:
    enorm, hnorm, project, final = *block.ops[:3], block.ops[-1]
    both = code.cat([code.run(enorm, tokens), code.run(hnorm, x)])
    joined = code.linear("eh_proj", both, project.held("eh_proj"), x.elements, TENSOR)
    del both
    return code.run(final, wiring.run(block.layer, code, _whole(code, joined)))


def _whole(code: MegatronLayers, x: Tensor) -> Tensor:
    """Gathered over tensor ranks; under sequence parallelism a rank's tokens are a view of it, which keeps it whole
    (mappings.py, _split_along_first_dim).
    """
    if not code.setting.tensor_parallel:
        return x
    gathered = code.new(x.elements, x.width, GATHERED)
    own_tokens = Tensor(gathered.storage, x.elements, x.width, TOKEN)
    spread = code.setting.sequence_parallel
    elements, width = x.elements, x.width

    def derivative(_: Gradients) -> Gradients:
        scattered = [code.new(elements, width, GATHERED)] if spread else []
        part = code.new(elements, width, TENSOR)
        code.mark()
        del scattered
        return [part]

    code.note("gather", [own_tokens], [x], [], derivative, Exchange("tensor parallel", "all_gather"))
    return own_tokens


def waiting(layers: int, position: int, depths: int, with_embedding: bool) -> tuple[int, int]:
    """Gradients that stay while layer `position` of `layers` runs backward, beside its own: hidden states, and tables.

    The joined hidden states' gradient is one storage of all depths, seen in parts, until the decoder's final norm has
    read its own: the last layer's incoming gradient is such a part, others sum theirs anew. A table that several layers
    read has its gradients summed before they are added to the main one: on the first stage (`with_embedding`) until the
    embedding's own comes.
    """
    last, first = layers - 1, layers - depths
    hidden = depths if position == last else 1 + depths if first - 1 <= position else 0
    is_owed = position != last and (with_embedding or position >= first)
    return hidden, 1 if is_owed else 0

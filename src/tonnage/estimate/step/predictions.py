"""Layers of multi-token prediction on the stages of a pipeline."""

from functools import lru_cache

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.step.rank import Stage
from tonnage.ops import Embedding
from tonnage.runtimes.parts.megatron.prediction import FinalNorm, final_norm, prediction


@lru_cache(maxsize=256)
def with_predictions(found: tuple[Stage, ...], model: Model, depths: int) -> tuple[Stage, ...]:
    """The stages with `depths` prediction layers on the last one, and there a copy of the embedding if it is another
    than the first.

    Even splits leave them out: the last stage has its decoder layers and all of them (Megatron-core,
    multi_token_prediction.py, get_mtp_num_layers_to_build). A tied head beside such a copy has its own weight all the
    same (gpt_model.py: its allocation is skipped on the first stage alone).
    """
    if not depths:
        return found
    last, layer, norm = found[-1], prediction(model), final_norm(model)
    first = (FinalNorm(norm.name, (norm,)),) if norm is not None else ()
    table = (
        ()
        if last.rank == 0
        else (
            Embedding(
                name="embed_tokens (copy for multi-token prediction)",
                num_embeddings=model.vocab_size,
                width=model.hidden_size,
            ),
        )
    )
    made = replace(
        last,
        before=last.before + table,
        layers=(*last.layers, *((block, 1) for block in first), (layer, depths)),
        order=(*last.order, *first, *(layer,) * depths),
        after=tuple(op for op in last.after if op is not norm),
    )
    return (*found[:-1], made)

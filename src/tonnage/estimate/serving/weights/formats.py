"""Which formats of weights and of the cache a suggestion may name: formats that the engine loads on the accelerator,
that a checkpoint can be had in, and that are narrower than what the model is stored in. Checks of what a user asks
for are in _engine_checks; both use its `loads`.
"""

from tonnage.architectures import Model
from tonnage.estimate.serving.engine_checks import check_format, is_gguf
from tonnage.estimate.serving.weights.storage import storage, stored_bytes
from tonnage.kernel.errors import TonnageError
from tonnage.numerics.precisions import PRECISIONS
from tonnage.runtimes import ServingRuntime
from tonnage.spec import Accelerator

# and less: quantisers take checkpoints of 16 and 8 bits, and nobody publishes AWQ or GGUF Q4 of an MXFP4 or INT4
# checkpoint
FOUR_BITS = 4.5
WORTH = 0.95  # of the bytes: what saves less is no suggestion


def narrower_weights(
    model: Model, requested: str | None, engine: ServingRuntime, accelerator: Accelerator, choices: tuple[str, ...]
) -> tuple[str, ...]:
    """Those of `choices` that can be followed. `requested`: what the user asked for, None for the checkpoint's own."""
    try:
        if _narrowest(model, requested) <= FOUR_BITS:
            return ()
        now = stored_bytes(model, requested)
        return tuple(
            name
            for name in choices
            if _is_had(model, name, engine, accelerator) and stored_bytes(model, name) < WORTH * now
        )
    except TonnageError:  # what the checkpoint is in cannot be told: the reading of its weights says so
        return ()


def has_four_bits(model: Model) -> bool:
    """Whether the checkpoint's own matrices are in 4 bits."""
    return _narrowest(model, None) <= FOUR_BITS


def _narrowest(model: Model, requested: str | None) -> float:
    """Bits of the narrowest format that the matrices are stored in."""
    widths = [PRECISIONS[name].element_bits for name in storage(model, requested).name.split("+") if name in PRECISIONS]
    return min(widths, default=16)


def _is_had(model: Model, name: str, engine: ServingRuntime, accelerator: Accelerator) -> bool:
    """Whether the engine loads it there. GGUF files are llama.cpp's: others read them as an experiment, of few
    families.
    """
    if is_gguf(model, name) and not engine.gguf:
        return False
    try:
        check_format(model, name, engine, accelerator)
    except TonnageError:
        return False
    return True

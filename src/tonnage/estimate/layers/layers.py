"""Layers on the tape: what one layer, the loss and the optimizer's copies hold, as coefficients that are made once."""

from functools import lru_cache

from msgspec.structs import replace

from tonnage.architectures import Block, wiring
from tonnage.estimate.layers.losses import FUSED, IN_PARTS, LOSSES, UPCAST_IN_MODEL, chunked
from tonnage.estimate.layers.trl_losses import TILED
from tonnage.ops import Head, Op
from tonnage.tape import CODES, Code, Extent, Held, Layer, Moment, Setting, Tensor, Titan, TitanCode, forward, layer


def window_of(block: Block) -> int | None:
    """The window of a layer's attention; None: it sees everything."""
    windows = (getattr(op, "window", None) for op in block.ops)
    return next((window for window in windows if window is not None), None)


@lru_cache(maxsize=1024)
def block_layer(block: Block, setting: Setting, hidden: int, asks: bool = True) -> Layer:
    """One layer of this kind; `asks`: something below it trains, so its input has a gradient."""
    code = CODES[setting.code](setting)

    def run(x: Tensor) -> Tensor:
        return wiring.run(block, code, x)

    if setting.recompute == "selective-op" and isinstance(code, TitanCode):
        selective = code.selective
        return layer(code, lambda x: selective(run, x), hidden, setting.types.parameter)
    if setting.recompute == "full":
        return layer(code, lambda x: code.checkpoint(run, x), hidden, setting.types.parameter)
    return layer(code, run, hidden, setting.types.parameter, asks)


@lru_cache(maxsize=1024)
def block_forward(block: Block, setting: Setting, hidden: int) -> tuple[Moment, ...]:
    """The fullest moments of the forward pass of one layer of this kind; without a graph where backward runs it
    again.
    """
    code = CODES[setting.code](setting)
    records = setting.recompute != "full"
    return forward(code, lambda x: wiring.run(block, code, x), hidden, setting.types.parameter, records=records)


@lru_cache(maxsize=1024)
def loss_layer(
    after: tuple[Op, ...], setting: Setting, hidden: int, loss: str, chunks: float, logits_split: bool, teacher: int = 0
) -> Layer:
    """What comes after the layers: the final norm, the head, the loss. Adapters leave it as it is, and it does not
    train then.
    `teacher`: numbers of a teacher's hidden states, for a token."""
    if setting.adapters is not None:
        setting = replace(setting, adapters=None, trains=False)
    if isinstance(setting.own, Titan):  # the layers are compiled, one by one, and the head stays in 16 bit
        setting = replace(setting, own=replace(setting.own, compiled=False, float8=False))
    code = CODES[setting.code](setting)

    def run(x: Tensor) -> Tensor:
        for op in after:
            if isinstance(op, Head):
                if chunks > 1 and setting.own is not None and loss not in IN_PARTS:
                    x = chunked(code, x, hidden)
                if loss in TILED or loss in FUSED:
                    code.worked.head(op.name, op.width, op.vocab_size, trains=setting.trains)
                if loss in TILED:
                    return TILED[loss](code, x, _held(op), teacher)
                if loss in FUSED:
                    return FUSED[loss](code, x, _held(op), op.vocab_size / chunks)
                if loss in IN_PARTS:
                    return IN_PARTS[loss](code, _head(code, op, x, 1, logits_split), chunks)
                code.worked.repeats = chunks
                x = _head(code, op, x, chunks, logits_split)
                if loss in UPCAST_IN_MODEL:
                    x = code.to(x, 4)
                assert loss in LOSSES, loss  # "by framework": the runtime needs a framework that writes its own
                return LOSSES[loss](code, x)
            x = op.forward(code, x)
        return x

    return layer(code, run, hidden, setting.types.parameter)


def _held(op: Head) -> list[Held]:
    held = op.held(op.name)
    return [Held(op.width * op.vocab_size, "vocab"), *held] if op.tied else held


def _head(code: Code, op: Head, x: Tensor, chunks: float, logits_split: bool) -> Tensor:
    extent = Extent("token", "tensor" if logits_split else "gathered")
    return code.linear(op.name, x, _held(op), op.vocab_size / chunks, extent, is_module=False)

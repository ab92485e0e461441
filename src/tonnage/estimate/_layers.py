"""Layers on the tape: what one layer, the loss and the optimizer's copies hold, as coefficients that are made once."""

from functools import lru_cache

from msgspec.structs import replace

from tonnage.architectures import Block, Model, style_of, wiring
from tonnage.estimate._losses import LOSSES, chunked, loss_of
from tonnage.estimate._method import adapters_of
from tonnage.ops import Head, Op
from tonnage.precisions import Recipe
from tonnage.runtimes import TrainingRuntime
from tonnage.spec import TrainingPlan
from tonnage.formula import Number
from tonnage.tape import CODES, TOKEN, Code, Extent, Held, Layer, Own, Setting, Tensor, Titan, TitanCode, Types, layer


def setting_of(model: Model, runtime: TrainingRuntime, recipe: Recipe, plan: TrainingPlan) -> Setting:
    """How the layers of this run are written and cast."""
    adapters = adapters_of(plan, recipe)
    autocast = runtime.casts and bool(recipe.master_bytes)
    parameter = recipe.update_bytes if autocast and adapters is None else recipe.activation_bytes
    attention = plan.attention or runtime.kernels.attention
    kernels = replace(
        runtime.kernels, attention=attention, dropout=plan.dropout, attention_dropout=plan.attention_dropout
    )
    return Setting(code=plan.model_code or runtime.code, types=Types(parameter, recipe.activation_bytes, autocast), style=style_of(model),
                   kernels=kernels, attention=attention, dropout=plan.dropout, attention_dropout=plan.attention_dropout,
                   recompute=plan.recompute, adapters=adapters, own=_own(runtime, plan))  # fmt: skip


def _own(runtime: TrainingRuntime, plan: TrainingPlan) -> Own | None:
    """What the runtime's own layers ask of the plan; other people's code knows nothing of it."""
    if runtime.own is None or plan.model_code not in ("", runtime.code):
        return None
    return replace(runtime.own, compiled=plan.compile, tensor_parallel=_any(plan.tensor_parallel_size), ring=_any(plan.context_parallel_size),
                   gathered_bytes=1 if plan.float8 != "none" else 2)  # fmt: skip


def _any(size: Number) -> bool:
    """Whether there is more than one rank; plans in an array agree in that (estimate.batch)."""
    return bool(size.flat[0] > 1) if hasattr(size, "flat") else size > 1


def window_of(block: Block) -> int | None:
    """The window of a layer's attention; None: it sees everything."""
    return next((op.window for op in block.ops if getattr(op, "window", None) is not None), None)  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def block_layer(block: Block, setting: Setting, hidden: int) -> Layer:
    """One layer of this kind."""
    code = CODES[setting.code](setting)

    def run(x: Tensor) -> Tensor:
        return wiring.run(block, code, x)

    if setting.recompute == "selective-op" and isinstance(code, TitanCode):
        selective = code.selective
        return layer(code, lambda x: selective(run, x), hidden, setting.types.parameter)
    if setting.recompute == "full":
        return layer(code, lambda x: code.checkpoint(run, x), hidden, setting.types.parameter)
    return layer(code, run, hidden, setting.types.parameter)


@lru_cache(maxsize=1024)
def loss_layer(
    after: tuple[Op, ...], setting: Setting, hidden: int, loss: str, chunks: int, logits_split: bool
) -> Layer:
    """What comes after the layers: the final norm, the head, the loss. Adapters leave it as it is, and it does not train then."""
    if setting.adapters is not None:
        setting = replace(setting, adapters=None, trains=False)
    if isinstance(setting.own, Titan):  # the layers are compiled, one by one
        setting = replace(setting, own=replace(setting.own, compiled=False))
    code = CODES[setting.code](setting)

    def run(x: Tensor) -> Tensor:
        for op in after:
            if isinstance(op, Head):
                if chunks > 1 and setting.own is not None:
                    x = chunked(code, x, hidden)
                x = _head(code, op, x, chunks, logits_split)
                return LOSSES[loss](code, x)
            x = op.forward(code, x)
        return x

    return layer(code, run, hidden, setting.types.parameter)


def _head(code: Code, op: Head, x: Tensor, chunks: int, logits_split: bool) -> Tensor:
    held = op.held(op.name)
    if op.tied:
        held = [Held(op.width * op.vocab_size, "vocab"), *held]
    extent = Extent("token", "tensor" if logits_split else "gathered")
    return code.linear(op.name, x, held, op.vocab_size / chunks, extent, is_module=False)


__all__ = ["TOKEN", "block_layer", "loss_layer", "loss_of", "setting_of", "window_of"]

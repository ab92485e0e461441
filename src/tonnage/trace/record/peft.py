"""LoRA by peft, on a base in its own precision or quantised by bitsandbytes."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed
from tonnage.kernel.registry import unknown
from tonnage.numerics.precisions import precision
from tonnage.trace.record.fake.bitsandbytes import Linear4bit, Linear8bit
from tonnage.trace.record.fake.recorder import Recorder

BASES = ("nf4", "nf4-double", "fp4", "fp4-double", "int8")

_NOTES = {
    "int8": "int8 weights: no activation is taken to be an outlier (LLM.int8()'s threshold 6 asks the data).",
    "4": "4-bit weights: passes over more than 4 tokens dequantise the weight; bitsandbytes 0.50 has kernels that "
    "need not, for up to "
    "about 1500 tokens on some GPUs.",
}


def notes(base: str) -> tuple[str, ...]:
    """Notes on the limits of a recording with this base."""
    return (_NOTES["int8" if precision(base).name == "int8" else "4"],)


def quantised(
    recorder: Recorder, build: Callable[[], Any], base: str = "nf4-double", compute: torch.dtype = torch.bfloat16
) -> Any:
    """The model that `build` makes, loaded as transformers does with bitsandbytes: linear layers quantised except the
    head.

    `base`: nf4, nf4-double (QLoRA's), fp4, fp4-double or int8. Raises UnknownName, InvalidInput.
    """
    base_name = precision(base).name
    if base_name not in BASES:
        raise InvalidInput(
            "a base that bitsandbytes loads is one of {bases}. Got {base!r}.", bases=listed(BASES), base=base
        )
    with recorder.pause():  # a loader puts only one unquantised weight at a time on the device
        model = build()
    device = torch.device(recorder.device_type)
    four = partial(Linear4bit, device=device, compute=compute, double=base_name.endswith("double"))
    make: Callable[[nn.Linear], nn.Linear] = partial(Linear8bit, device=device) if base_name == "int8" else four
    unquantised = _unquantised_names(model)
    moved: dict[int, Any] = {}
    originals = [*model.parameters(), *model.buffers()]  # alive while their ids are keys
    for path, module in list(model.named_modules()):
        if type(module) is nn.Linear and path not in unquantised:
            holder, _, name = path.rpartition(".")
            setattr(model.get_submodule(holder), name, make(module))
        else:
            _put(module, device, moved)
    del originals
    setattr(model, "is_loaded_in_8bit" if base_name == "int8" else "is_loaded_in_4bit", True)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model


def _unquantised_names(model: Any) -> set[str]:
    from transformers.quantizers.base import get_keys_to_not_convert

    return set(get_keys_to_not_convert(model))


def _put(module: nn.Module, device: torch.device, moved: dict[int, Any]) -> None:
    """Copy parameters and buffers of a module to the device; tied ones stay tied."""
    for holder in (module._parameters, module._buffers):
        for name, tensor in list(holder.items()):
            if tensor is None:
                continue
            if id(tensor) not in moved:
                anew = torch.empty_like(tensor.detach(), device=device)
                moved[id(tensor)] = nn.Parameter(anew, False) if isinstance(tensor, nn.Parameter) else anew
                moved[id(moved[id(tensor)])] = moved[id(tensor)]  # met again through a tie
            holder[name] = moved[id(tensor)]


def with_lora(
    model: Any,
    *,
    rank: int = 16,
    targets: str | Sequence[str] = "all-linear",
    dropout: float = 0.0,
    alpha: int | None = None,
    upcast: bool = False,
) -> Any:
    """The model with peft's LoRA adapters, in fp32 as peft makes them. `targets`: names of modules, or all-linear.

    `upcast`: run peft's prepare_model_for_kbit_training first, which turns norms, embedding and head to fp32. Raises
    InvalidInput for targets that the model does not have.
    """
    import peft

    if rank < 1 or not 0 <= dropout < 1:
        raise InvalidInput(
            "LoRA has a rank of at least 1 and a dropout from 0 to below 1. Got {rank} and {dropout}.",
            rank=rank,
            dropout=dropout,
        )
    linear = {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    wanted = targets if isinstance(targets, str) else list(targets)
    for name in wanted if isinstance(wanted, list) else []:
        if not any(path.endswith(name) for path, _ in model.named_modules()):
            raise unknown("target of LoRA", name, linear)
    if upcast:
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False, auto_clear_cache=False)
    config = peft.LoraConfig(
        r=rank, lora_alpha=alpha or 2 * rank, target_modules=wanted, lora_dropout=dropout, task_type="CAUSAL_LM"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft uses deprecated names of transformers
        adapted = peft.get_peft_model(model, config)
    _follow_bitsandbytes(adapted)
    return adapted


def _follow_bitsandbytes(model: Any) -> None:
    """Make adapters of quantised layers run peft's forward for them (peft/tuners/lora/bnb.py), not that of plain
    layers.
    """
    from peft.tuners.lora import Linear

    class OnQuantised(Linear):
        def forward(self, x: torch.Tensor, *args: Any, **keywords: Any) -> torch.Tensor:
            base = self.get_base_layer()
            result: torch.Tensor = self.base_layer(x, *args, **keywords)
            if isinstance(base, Linear4bit):
                result = result.clone()
            for name in self.active_adapters:
                first: Any = self.lora_A[name]
                second: Any = self.lora_B[name]
                convert, expected = not torch.is_autocast_enabled(), result.dtype
                if convert:
                    x = x.to(first.weight.dtype)
                output = second(first(self.lora_dropout[name](x))) * self.scaling[name]
                result = result + (output.to(expected) if convert else output)
            return result

    for module in model.modules():
        if type(module) is Linear and isinstance(module.get_base_layer(), Linear4bit | Linear8bit):
            module.__class__ = OnQuantised

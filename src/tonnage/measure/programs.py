"""The programs to measure: one in a user's file, or the training of a model of Hugging Face transformers."""

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import listed
from tonnage.kernel.registry import unknown
from tonnage.measure.device import is_out_of_memory
from tonnage.measure.meter import Meter
from tonnage.user_files import read_bytes

# By the names of training recipes (tonnage.numerics.precisions): the type of the weights, and that of autocast.
PRECISIONS = {"bf16-mixed": ("fp32", "bf16"), "bf16": ("bf16", None), "fp16": ("fp16", None), "fp32": ("fp32", None)}
OPTIMIZERS = ("adamw", "adam", "sgd", "sgd-momentum")
IMPLEMENTATIONS: dict[str, dict[str, bool]] = {
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "loop": {"foreach": False},
}
Run = Callable[[Meter], None]


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a model is trained; names and defaults are those of `tonnage trace`. Raises InvalidInput for what cannot
    be measured.
    """

    sequence_length: int
    micro_batch_size: int = 1
    num_microbatches: int = 1
    precision: str = "bf16"
    optimizer: str = "adamw"
    implementation: str | None = None
    recompute: str = "none"
    attention: str = "sdpa"
    clip_grad_norm: float | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InvalidInput(
                "{@precision}: measured are {precisions}. Got {precision!r}.",
                precisions=listed(PRECISIONS),
                precision=self.precision,
            )
        if self.recompute not in ("none", "full"):
            raise InvalidInput("{@recompute}: measured are none and full. Got {recompute!r}.", recompute=self.recompute)
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise InvalidInput(
                "{@optimizer}: measured are {known}; others in a program FILE.py:callable. Got {optimizer!r}.",
                known=known,
                optimizer=self.optimizer,
            )
        if self.implementation is not None and self.implementation not in IMPLEMENTATIONS:
            raise unknown("implementation of an optimizer", self.implementation, IMPLEMENTATIONS)
        for name in ("sequence_length", "micro_batch_size", "num_microbatches"):
            if getattr(self, name) < 1:
                raise InvalidInput("{name} must be at least 1. Got {value}.", name=name, value=getattr(self, name))
        if self.clip_grad_norm is not None and not self.clip_grad_norm > 0:
            raise InvalidInput(
                "clip_grad_norm must be more than 0. Got {clip_grad_norm}.", clip_grad_norm=self.clip_grad_norm
            )

    @property
    def words(self) -> str:
        """The part of an id that names these settings."""
        batch = f"b{self.micro_batch_size}" + (f"x{self.num_microbatches}" if self.num_microbatches > 1 else "")
        parts = [f"s{self.sequence_length}", batch, self.precision, self.optimizer, self.implementation or ""]
        parts += [f"recompute-{self.recompute}" if self.recompute != "none" else ""]
        parts += [self.attention if self.attention != "sdpa" else ""]
        parts += [f"clip-{self.clip_grad_norm:g}" if self.clip_grad_norm is not None else ""]
        return "-".join(part for part in parts if part)

    def config(self) -> dict[str, Any]:
        """The `config` of its row, in the words of the published ones."""
        weights, autocast = PRECISIONS[self.precision]
        config = {
            "seq_len": self.sequence_length,
            "local_batch": self.micro_batch_size,
            "num_microbatches": self.num_microbatches,
            "activation_checkpointing": self.recompute,
            "optimizer": self.optimizer,
            "optimizer_implementation": self.implementation or "PyTorch's default",
            "precision": self.precision,
            "param_dtype": weights,
            "autocast": autocast or "none",
            "attention": self.attention,
        }
        return config if self.clip_grad_norm is None else {**config, "clip_grad_norm": self.clip_grad_norm}

    def make_optimizer(self, parameters: Any) -> Any:
        """The optimizer of torch.optim."""
        import torch

        how: dict[str, Any] = dict(IMPLEMENTATIONS.get(self.implementation or "", {}))
        if self.optimizer.startswith("sgd"):
            return torch.optim.SGD(
                parameters, lr=1e-4, momentum=0.9 if self.optimizer == "sgd-momentum" else 0.0, **how
            )
        kind = torch.optim.AdamW if self.optimizer == "adamw" else torch.optim.Adam
        return kind(parameters, lr=1e-4, **how)


def of_file(text: str, arguments: Mapping[str, Any], steps: int, device: str) -> tuple[Run, str]:
    """A function that runs FILE.py:callable, and a hash of the file, since another text is another program. The forms
    are those of the tracer.
    """
    from tonnage.trace.record import user

    target = user.target_of(text, arguments)
    tree = user.parse_program(target)

    def run(meter: Meter) -> None:
        with redirect_stdout(sys.stderr), user.modules_beside(target.file):
            try:
                _run_file(user, target, tree, steps, device, meter)
            except TonnageError:
                raise
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                raise _explained(error, target.text) from None

    return run, sha256(read_bytes(target.file, user.LARGEST_PROGRAM)).hexdigest()[:8]


def _run_file(user: Any, target: Any, tree: Any, steps: int, device: str, meter: Meter) -> None:
    import torch

    from tonnage.trace.program import as_program
    from tonnage.trace.record.train import train

    with torch.device(device):  # as when it is traced; only where it is built, since this costs time at each call
        function = user.find_function(user.load_module(target, tree), target)
        if user.takes_mark(function, target):
            function(mark=meter.mark, **target.arguments)
            return
        program = user.check_program(as_program(function(**target.arguments), target.text), target.text, meter)
    train(meter, program, steps)  # type: ignore[arg-type]  # a meter stands where a recorder stands


def _explained(error: Exception, text: str) -> TonnageError:
    from tonnage.trace.record.explain import explain
    from tonnage.trace.record.fake.modules import ModulePath

    return explain(error, ModulePath(), text)


def of_model(config: Mapping[str, Any], training: Training, steps: int, device: str) -> Run:
    """A function that builds the model of a config.json with random weights, and trains it on random tokens."""
    dtype, autocast = PRECISIONS[training.precision]
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise MissingDatum(
            "models are built by transformers, which is not installed: pip install 'tonnage[trace]'."
        ) from None

    def run(meter: Meter) -> None:
        import torch

        from tonnage.trace.record import huggingface
        from tonnage.trace.record.train import train

        with torch.device(device):
            model = huggingface.build(config, dtype, "eager" if training.attention == "eager" else "sdpa")
            initialize(model)
            program = huggingface.training_program(
                model,
                sequence_length=training.sequence_length,
                micro_batch_size=training.micro_batch_size,
                optimizer=training.make_optimizer,
                recompute=training.recompute,
                num_microbatches=training.num_microbatches,
                clip_grad_norm=training.clip_grad_norm,
                autocast=autocast,
                device=device,
            )
        del model
        train(meter, program, steps)  # type: ignore[arg-type]

    return run


def initialize(model: Any) -> None:
    """Fill the weights with random numbers, so that steps compute with ordinary numbers and not with memory's
    leftovers.
    """
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.02)
            else:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)

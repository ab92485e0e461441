"""Training cases: one program under the meter, one row."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import torch

from gpu.cases import TrainingRow
from gpu.context import TOOL, Context
from gpu.models import Decoder, loss_of
from gpu.shapes import SHAPES
from tonnage.measure import attention
from tonnage.measure.meter import Meter
from tonnage.measure.programs import PRECISIONS, initialize
from tonnage.measure.rows import training_row
from tonnage.measure.run import Timing, measure
from tonnage.trace.program import Program, as_program
from tonnage.trace.programs import linear_relu
from tonnage.trace.record.train import train

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
TIMING = Timing(warmup=2, repeats=5, seconds=15)


def run(context: Context, case: TrainingRow) -> None:
    """Adds the row of a case; a backend that this GPU does not have is noted as such."""
    (item,) = context.items
    steps = 1 if case.snapshot else 2

    def program(meter: Meter) -> None:
        train(meter, build(case, context.device.kind), steps)

    dump = context.folder / f"{item}.pickle" if case.snapshot else None
    chosen = case.training.attention if case.library == "transformers" else "sdpa"  # our own model sets it at each call
    try:
        with attention.only(chosen):
            found = measure(context.device, program, None if case.snapshot else TIMING, snapshot=dump)
    except (NotImplementedError, RuntimeError) as error:
        if isinstance(error, NotImplementedError) or "No available kernel" in str(error):
            context.unsupported(item, str(error))
            return
        raise
    config = {
        "case": case.name,
        **case.training.config(),
        "steps": steps,
        "loss": "full, on fp32 logits",
        "implementation": case.library,
    }
    shape = SHAPES.get(case.shape)
    if shape is None:
        config["loss"] = "MSELoss"
        model: dict[str, Any] = {"name": "12 x (Linear 1024 -> 1024 + ReLU), batch 32"}
    else:
        model = {"name": shape.name, "hparams": shape.hparams()}
        if shape.experts:
            config["experts"] = "transformers' default" if case.library == "transformers" else case.experts
    note = f"snapshot: {_packed(dump).name}" if dump is not None else ""
    context.emit(training_row(context.id(item), model, config, context.environment, found, TOOL, note))


def build(case: TrainingRow, device: str) -> Program:
    """The program of a case, on tensors of a device."""
    plan = case.training
    weights, autocast = PRECISIONS[plan.precision]
    with torch.device(device):
        if case.shape == "linear-relu":
            made = as_program(linear_relu.program(dtype=str(DTYPES[weights]).removeprefix("torch.")), case.name)
            made.optimizer = plan.make_optimizer
            return made
        if case.library == "transformers":
            return _of_transformers(case, weights, autocast, device)
        before = torch.get_default_dtype()
        torch.set_default_dtype(DTYPES[weights])
        try:
            model = Decoder(SHAPES[case.shape], plan.attention, case.experts, recompute=plan.recompute == "full")
        finally:
            torch.set_default_dtype(before)
        initialize(model)
        tokens = torch.randint(0, SHAPES[case.shape].vocab, (plan.micro_batch_size, plan.sequence_length))
    return Program(
        model=model,
        inputs=tokens,
        loss=loss_of(tokens),
        optimizer=plan.make_optimizer,
        keeps_output=False,
        autocast=autocast,
        clip_grad_norm=plan.clip_grad_norm,
        num_microbatches=plan.num_microbatches,
    )


def _of_transformers(case: TrainingRow, weights: str, autocast: str | None, device: str) -> Program:
    try:
        import transformers

        from tonnage.trace.record import huggingface
    except ImportError as error:
        raise NotImplementedError(f"transformers cannot be imported: {error}") from None
    made = huggingface.configuration(SHAPES[case.shape].transformers_config())
    made._attn_implementation = "sdpa"
    before = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[weights])
    try:
        model = transformers.AutoModelForCausalLM.from_config(made)
    finally:
        torch.set_default_dtype(before)
    initialize(model)
    plan = case.training
    return huggingface.training_program(
        model,
        sequence_length=plan.sequence_length,
        micro_batch_size=plan.micro_batch_size,
        optimizer=plan.make_optimizer,
        recompute=plan.recompute,
        num_microbatches=plan.num_microbatches,
        clip_grad_norm=plan.clip_grad_norm,
        autocast=autocast,
        device=device,
    )


def _packed(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    with path.open("rb") as source, gzip.open(packed, "wb") as target:
        shutil.copyfileobj(source, target)
    path.unlink()
    return packed

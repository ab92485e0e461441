"""Records a model's config: training or generation, full or with adapters, on one accelerator or on one rank of
many.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message
from tonnage.trace.profiles import Profile
from tonnage.trace.program import Program
from tonnage.trace.record import huggingface, optimizers
from tonnage.trace.record.explain import explain
from tonnage.trace.record.fake.environment import FrontEnd, recording
from tonnage.trace.record.fake.modules import ModulePath
from tonnage.trace.record.fake.recorder import Recorder
from tonnage.trace.record.train import Progress, train
from tonnage.trace.recording import Recording
from tonnage.trace.request import TraceOptions, distributed_plan


def record_model(
    model: Model,
    options: TraceOptions,
    profile: Profile,
    front_end: FrontEnd | None = None,
    progress: Progress = lambda stage: None,
) -> Recording:
    """The recording of a model's config under checked options. Raises TonnageError."""
    for library in ("transformers", *(["peft"] if options.lora_rank else [])):
        import_module(library)  # before anything is patched: they inspect their environment when they are imported
    if options.runtime != "single":
        return _distributed(model, options, profile, front_end, progress)
    if options.mode == "generate":
        return _generating(model, options, profile, front_end or "meta", progress)
    chosen = front_end or ("cuda" if options.precision.endswith("-mixed") else "meta")
    if chosen == "meta" and options.precision.endswith("-mixed"):
        raise InvalidInput(
            Message(
                "{@precision}: autocast is not applied to meta tensors. Take --front-end cuda, or a "
                "precision without -mixed."
            )
        )
    name = _named(model, options)
    if options.fold and options.lora_rank is None:
        return _folded(model, options, profile, chosen, name, progress)
    with recording(chosen, profile) as recorder:
        try:
            program = _program(recorder, model, options, options.num_layers)
            train(recorder, program, options.steps, progress)
        except TonnageError:
            raise
        except Exception as error:  # noqa: BLE001 - classes of transformers raise anything
            raise explain(error, recorder.modules, model.name) from None
    return recorder.recording(name, _notes(options))


def _notes(options: TraceOptions) -> tuple[str, ...]:
    if options.base:
        from tonnage.trace.record import peft

        return (*optimizers.notes(options.optimizer), *peft.notes(options.base))
    return optimizers.notes(options.optimizer)


def _named(model: Model, options: TraceOptions) -> str:
    layers = Message(", {num_layers} layers", num_layers=options.num_layers) if options.num_layers else ""
    adapters = Message(", LoRA of rank {lora_rank}", lora_rank=options.lora_rank) if options.lora_rank else ""
    doing = (
        "generating"
        if options.mode == "generate"
        else Message("{optimizer}, recompute {recompute}", optimizer=options.optimizer, recompute=options.recompute)
    )
    return Message(
        "{model}{layers}{adapters}, {micro_batch_size} x {sequence_length} tokens, {precision}, {doing}",
        model=model.name,
        layers=layers,
        adapters=adapters,
        micro_batch_size=options.micro_batch_size,
        sequence_length=options.sequence_length,
        precision=options.precision,
        doing=doing,
    )


def _program(recorder: Recorder | None, model: Model, options: TraceOptions, num_layers: int | None) -> Program:
    mixed = options.precision.endswith("-mixed")
    compute = options.precision.removesuffix("-mixed")

    def build() -> Any:
        with torch.device("cuda"):
            return huggingface.build(model.config, "fp32" if mixed else compute, options.attention, num_layers)

    trained = _adapted(recorder, build, options, compute) if options.lora_rank else build()
    factory = optimizers.factory(options.optimizer, options.optimizer_implementation, trained)  # type: ignore[arg-type]
    return huggingface.training_program(
        trained,
        sequence_length=options.sequence_length or 4096,
        micro_batch_size=options.micro_batch_size,
        optimizer=_trainable(factory),
        recompute=options.recompute,
        num_microbatches=options.num_microbatches,
        clip_grad_norm=options.clip_grad_norm,
        autocast=compute if mixed else None,
    )


def _trainable(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda parameters: factory([parameter for parameter in parameters if parameter.requires_grad])


def _adapted(recorder: Recorder | None, build: Callable[[], Any], options: TraceOptions, compute: str) -> Any:
    from tonnage.trace.record.peft import quantised, with_lora

    assert recorder is not None  # only folding builds outside of one recording
    if options.base is not None:
        adapted = quantised(recorder, build, options.base, huggingface.DTYPES[compute])
    else:
        adapted = build()
    with torch.device("cuda"):
        adapted = with_lora(adapted, rank=options.lora_rank or 16, upcast=bool(options.upcast_base))
    if options.recompute == "full":
        adapted.enable_input_require_grads()
    return adapted


def _folded(
    model: Model, options: TraceOptions, profile: Profile, front_end: FrontEnd, name: str, progress: Progress
) -> Recording:
    from tonnage.trace.record.folded import record_folded

    return record_folded(
        lambda count: _program(None, model, options, count),
        options.num_layers or model.num_layers,
        profile=profile,
        front_end=front_end,
        steps=options.steps,
        name=name,
        progress=progress,
    )


def _distributed(
    model: Model, options: TraceOptions, profile: Profile, front_end: FrontEnd | None, progress: Progress
) -> Recording:
    from tonnage.trace.record.distributed import distributed

    if front_end == "meta":
        raise InvalidInput(
            "front_end: runtime {runtime} needs fake CUDA tensors. Take --front-end cuda.", runtime=options.runtime
        )
    factory = optimizers.factory(options.optimizer, options.optimizer_implementation)  # type: ignore[arg-type]
    try:
        recorded = distributed(model.config, distributed_plan(options), profile, factory, progress)
    except TonnageError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise explain(error, ModulePath(), model.name) from None
    return replace(
        recorded,
        program=f"{model.name}, {recorded.program}",
        notes=(*optimizers.notes(options.optimizer), *recorded.notes),
    )


def _generating(
    model: Model, options: TraceOptions, profile: Profile, front_end: FrontEnd, progress: Progress
) -> Recording:
    from tonnage.trace.record.inference import generate, notes

    with recording(front_end, profile) as recorder:
        try:
            with torch.device("cuda"):
                generator = huggingface.build(model.config, options.precision, options.attention, options.num_layers)
            recorder.keep(
                generate(
                    recorder,
                    generator,
                    batch=options.micro_batch_size,
                    prompt=options.sequence_length or 4096,
                    new_tokens=options.new_tokens,
                    cache=options.cache,  # type: ignore[arg-type]
                    progress=progress,
                )
            )
        except TonnageError:
            raise
        except Exception as error:  # noqa: BLE001 - classes of transformers raise anything
            raise explain(error, recorder.modules, model.name) from None
    limits = notes(options.cache, options.new_tokens)  # type: ignore[arg-type]
    return recorder.recording(_named(model, options), limits)

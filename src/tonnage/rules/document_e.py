"""Document E: where training memory goes, and a program that measures it."""

from typing import Any

from tonnage.formulas import rules as r
from tonnage.kernel.units import MIB
from tonnage.rules import _exact as exact
from tonnage.rules._rule import Numbers, Worked, by_rule, rule

LLAMA = Numbers(model="llama-7b", N=7e9, L=32, h=4096, a=32, k=32, dh=128, V=32000, s=2048)
PROGRAM = Numbers(model="llama-7b", N=12 * (1024**2 + 1024), L=12, h=1024, b=32)


@rule(
    "E0",
    "bytes a parameter, side by side",
    LLAMA,
    "16 (A9, E2), 18, and 20 (B6)",
    note=(
        "16: 16-bit weights and gradients, fp32 master and two moments. 18: gradients in fp32 (Megatron). 20: "
        "weights and gradients in both."
    ),
)
def conventions(x: Numbers) -> Worked:
    counted = {
        "16: 2 weights, 2 gradients, 12 master and moments": 16,
        "18: 2 weights, 4 gradients, 12 master and moments": 18,
        "20: 2+4 weights, 2+4 gradients, 8 moments": 20,
    }
    return Worked(
        value=by_rule("16 bytes a parameter", r.convention_rule, N=x.N, w=16),
        values={name: r.convention_rule(N=x.N, w=w) for name, w in counted.items()},
        exact=lambda: exact.training(x.read(), sequence_length=x.s),
    )


@rule(
    "E1", "units of memory", LLAMA, "weights 1, gradients 1, Adam 2: fp32 28 + 28 + 56 = 112 GB, fp16 56 GB, int8 28 GB"
)
def components(x: Numbers) -> Worked:
    by_type = {"fp32": 4, "fp16": 2, "int8": 1}
    return Worked(
        value=by_rule("fp32", r.units_rule, N=x.N, w=4),
        values={name: r.units_rule(N=x.N, w=w) for name, w in by_type.items()},
        exact=lambda: exact.training(x.read(), sequence_length=x.s, precision="fp32"),
    )


@rule("E2", "mixed precision", LLAMA, "weights in two copies 42 GB, gradients 14 GB, states 56 GB: 112 GB")
def mixed(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("mixed precision", r.two_copies_rule, N=x.N),
        values={"weights": 6 * x.N, "gradients": 2 * x.N, "states": 8 * x.N},
        exact=lambda: exact.training(x.read(), sequence_length=x.s, precision="bf16-mixed-16bit-gradients"),
    )


@rule(
    "E3",
    "a small model",
    Numbers(model="gpt2", N=88.44e6, L=12, h=768, a=12, k=12, dh=64, V=50257, s=1024),
    "FP64: weights 0.345 GB, gradient and two states 1.036 GB, total 1.38 GB",
    erratum="Titled FP64 and computed with 4 bytes; and 353.8 MB become 0.345 GB by dividing by 1024 once: mixed "
    "units. In fp32 the total is "
    "1.415 GB, in FP64 2.830 GB.",
)
def small(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("fp32", r.small_model_rule, N=x.N),
        values={
            "weights, fp32": 4 * x.N,
            "gradient and states, fp32": 12 * x.N,
            "total, fp64": 2 * r.small_model_rule(N=x.N),
        },
        exact=lambda: exact.training(x.read(), sequence_length=x.s, precision="fp32"),
    )


@rule(
    "E4",
    "one accelerator and many",
    LLAMA,
    (
        "gradients of activations are transient on one card and under data parallelism; tensor and pipeline "
        "parallelism may hold extra buffers"
    ),
)
def buffers(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("two activations of one layer", r.parallel_buffer_rule, s=x.s, b=x.b, h=x.h),
        exact=lambda: exact.training(
            x.read(),
            on="8xa100-sxm-80gb",
            sequence_length=x.s,
            micro_batch_size=x.b,
            runtime="fsdp2",
            zero_stage=3,
            tensor_parallel_size=2,
            data_parallel_size=4,
            sequence_parallel=True,
        ),
    )


@rule(
    "E5",
    "the program",
    PROGRAM,
    "12 x (Linear 1024 + ReLU), batch 32, Adam: activations 1.50, weights 48.05, gradients 48.05, total 97.59 MB",
    erratum=(
        "The program's last line, total 97.59 MB, leaves out Adam's two states of 48.05 MB each; with them it is "
        "193.69 MB (2^20 bytes)."
    ),
)
def program(x: Numbers) -> Worked:
    weights, kept = 4 * x.L * (x.h**2 + x.h), 4 * x.L * x.b * x.h
    return Worked(
        value=by_rule("weights, gradients, states and activations", r.program_rule, L=x.L, h=x.h, b=x.b),
        values={
            "weights, MiB": weights / MIB,
            "gradients, MiB": weights / MIB,
            "states, MiB": 2 * weights / MIB,
            "activations, MiB": kept / MIB,
        },
        exact=lambda: exact.program(x.b),
        stages=_stages,
        variants=_variants,
    )


def _stages() -> list[dict[str, Any]]:
    """The program's events, recorded on fake tensors and replayed under the version of PyTorch that its figures fit."""
    from tonnage.trace.e5 import AS_MEASURED, stages

    return [_stage(stage) for stage in stages(AS_MEASURED)]


def _variants() -> list[dict[str, Any]]:
    """The same under today's defaults, and in 16 bits."""
    from tonnage.trace.e5 import VARIANTS, stages

    return [
        {"name": variant.name, "profile": variant.profile, "stages": [_stage(stage) for stage in stages(variant)]}
        for variant in VARIANTS
    ]


def _stage(stage: Any) -> dict[str, Any]:
    return {"stage": stage.name, "allocated_bytes": stage.allocated_bytes, "reserved_bytes": stage.reserved_bytes}

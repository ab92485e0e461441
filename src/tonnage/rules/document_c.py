"""Document C: choosing the size of accelerators for serving a model of 70 B parameters."""

from tonnage.catalogue import accelerator
from tonnage.formulas import memory as f
from tonnage.formulas import rules as r
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import PRECISIONS
from tonnage.rules import _exact as exact
from tonnage.rules._rule import Numbers, Worked, by_rule, rule

LLAMA = Numbers(model="llama-2-70b", N=70e9, L=80, h=8192, a=64, k=8, dh=128, V=32000, s=1024)
LISTED = {
    "A100 40 GB": (40, "a100-sxm-40gb"), "A100 80 GB": (80, "a100-sxm-80gb"), "H100 80 GB": (80, "h100-sxm-80gb"),
    "V100 16 GB": (16, "v100-sxm2-16gb"), "V100 32 GB": (32, "v100-sxm2-32gb"), "TPU v4 32 GB": (32, "tpu-v4"),
}  # fmt: skip


@rule(
    "C1",
    "memory of serving",
    LLAMA,
    "70 x 4 / 16 x 1.2 = 21 GB at 16 bit, then 168 GB; 42 GB at 32 bit",
    erratum="The document divides by 16 instead of by 32/16 and gets 21 GB, then states 168 GB, which is right. At "
    "32 bit right is 336 GB; "
    "it prints 42 GB, and its printed expression gives 10.5 GB.",
)
def serving(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("16 bit", r.serving_rule, N=x.N, Q=16, rho=1.2),
        values={f"{bits} bit": r.serving_rule(N=x.N, Q=bits, rho=1.2) for bits in (32, 16, 8, 4)},
        exact=lambda: exact.serving(x.read(), context=x.s, weights="bf16"),
    )


@rule(
    "C1b",
    "number of accelerators",
    LLAMA,
    "at least two A100 of 80 GB",
    erratum="168 / 80 = 2.1, so three by the document's own rule.",
)
def accelerators(x: Numbers) -> Worked:
    memory = r.serving_rule(N=x.N, Q=16, rho=1.2)
    return Worked(
        value=by_rule("accelerators of 80 GB", r.accelerators_for_memory_rule, M=memory, U=80e9),
        exact=lambda: exact.accelerators_for(exact.serving(x.read(), context=x.s, weights="bf16"), "a100-sxm-80gb"),
    )


@rule(
    "C2",
    "precision",
    LLAMA,
    "fp32 4, fp16 2, int8 1 byte",
    note="Formats with scales take a little more than their bits: the values here count them.",
)
def precision(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("16 bit", r.precision_rule, Q=16),
        values={name: kind.bytes_per_weight for name, kind in PRECISIONS.items()},
        exact=lambda: exact.weights(x.read(), 2),
    )


@rule(
    "C3",
    "quantisation",
    LLAMA,
    (
        "dynamic quantisation adapts the precision of weights to the input; static quantises weights and "
        "activations before"
    ),
    erratum="Dynamic quantisation does not change the precision of the weights with the input. Dynamic: weights are "
    "int8 and activations are "
    "quantised batch by batch; static: both, with scales from a calibration.",
)
def quantisation(x: Numbers) -> Worked:
    weights = r.weights_rule(N=x.N, w=1)
    batch = 8192  # tokens of one forward pass
    return Worked(
        value=by_rule("weights in int8, dynamic or static", r.weights_rule, N=x.N, w=1),
        values={
            "weights, dynamic": weights,
            "weights, static": weights,
            "input of a layer in 16 bit, 8192 tokens, beside its int8 copy (dynamic)": r.weights_rule(
                N=batch * x.h, w=2 + 1
            ),
            "input of a layer in int8, 8192 tokens (static)": r.weights_rule(N=batch * x.h, w=1),
        },
        exact=lambda: exact.serving(x.read(), context=x.s, weights="int8"),
    )


@rule(
    "C4",
    "tools",
    LLAMA,
    "Transformers, PyTorch's profiler, DeepSpeed, TensorFlow Profiler, Nsight Systems",
    note=(
        "What two of them print for this model, beside what it needs; their files and logs are read and written "
        "elsewhere in tonnage."
    ),
)
def tools(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("accelerate estimate-memory, training with Adam", r.accelerate_rule, N=x.N),
        values={
            "accelerate estimate-memory": r.accelerate_rule(N=x.N),
            "DeepSpeed ZeRO-2 estimator, 8 GPUs": r.deepspeed_zero2_rule(N=x.N, n=8),
        },
        exact=lambda: exact.training(x.read(), sequence_length=x.s, recompute="full"),
    )


@rule("C5", "batch size", LLAMA, "larger batches need more memory")
def batch(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("one more sequence", r.sequence_rule, L=x.L, k=x.k, dh=x.dh, s=x.s, w=2),
        values={
            Message("{count} sequences", count=count): count * r.sequence_rule(L=x.L, k=x.k, dh=x.dh, s=x.s, w=2)
            for count in (1, 8, 64)
        },
        exact=lambda: exact.request_cache(x.read(), context=x.s, weights="bf16"),
    )


@rule("C6", "sequence length", LLAMA, "1024 tokens need more memory than 512")
def length(x: Numbers) -> Worked:
    by_length = {tokens: r.sequence_rule(L=x.L, k=x.k, dh=x.dh, s=tokens, w=2) for tokens in (1, 512, 1024)}
    return Worked(
        value=by_rule("512 more tokens", r.sequence_rule, L=x.L, k=x.k, dh=x.dh, s=512, w=2),
        values={"one more token": by_length[1], "512 tokens": by_length[512], "1024 tokens": by_length[1024]},
        exact=lambda: exact.token_cache(x.read(), context=x.s, weights="bf16"),
    )


@rule(
    "C7",
    "hardware",
    LLAMA,
    "A100 40 or 80 GB, H100 80 GB, V100 16 or 32 GB, TPU v4 32 GB",
    note=(
        "The names' gigabytes are GiB, and a program gets a little less: `tonnage accelerators NAME` has "
        "compute, bandwidth and links."
    ),
)
def hardware(x: Numbers) -> Worked:
    chip = accelerator("h100-sxm-80gb")
    return Worked(
        value=by_rule("an H100 by its name", r.hardware_rule, U=80e9),
        values={name: r.hardware_rule(U=size * 1e9) for name, (size, _) in LISTED.items()}
        | {
            Message("{name}, usable", name=name): float(accelerator(key).memory.usable_bytes)
            for name, (_, key) in LISTED.items()
        },
        exact=lambda: Term.of(
            "an H100 as a program gets it",
            f.fixed_bytes,
            basis="measured",
            source=getattr(chip.fact("memory.runtime_mib"), "source", ""),
            M=chip.memory.usable_bytes,
        ),
    )


@rule(
    "C8",
    "architecture",
    Numbers(model="llama-2-7b", N=7e9, L=32, h=4096, a=32, k=32, dh=128, V=32000),
    "model, pipeline and data parallelism, mixed "
    "precision, offload to host memory or disk, elastic pools; mixed precision greatly reduces memory",
    erratum="Mixed precision does not by itself shrink the states of a model: 112 GB in fp32 and 112 GB mixed for 7 "
    "B parameters (E2). "
    "It shrinks activations. Offload concerns parameters, optimizer and activations.",
)
def architecture(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("states, mixed precision", r.two_copies_rule, N=x.N),
        values={"states, fp32": r.units_rule(N=x.N, w=4), "states, mixed precision": r.two_copies_rule(N=x.N)},
        exact=lambda: exact.training(
            x.read(), on="8xa100-sxm-80gb", sequence_length=2048, runtime="fsdp2", zero_stage=3, data_parallel_size=8
        ),
    )


@rule(
    "C9",
    "best practice",
    LLAMA,
    "start from the formula, weigh precision, profile, tune batch and sequence, keep headroom, use model parallelism",
    note="`tonnage train` and `tonnage serve` print such moves for the case at hand, each estimated again.",
)
def practice(x: Numbers) -> Worked:
    plain = r.weights_rule(N=x.N, w=2)
    return Worked(
        value=by_rule("weights with headroom", r.overhead_rule, M=plain, rho=1.2),
        values={
            "formula": plain,
            "with headroom": r.overhead_rule(M=plain, rho=1.2),
            "int8, with headroom": r.overhead_rule(M=r.weights_rule(N=x.N, w=1), rho=1.2),
            "on each of two accelerators, with headroom": r.overhead_rule(M=plain, rho=1.2) / 2,
        },
        exact=lambda: exact.serving(x.read(), context=x.s, weights="int8"),
    )

"""Document A: memory of ChatGLM-6B in inference and training."""

from tonnage.formulas import memory as f
from tonnage.formulas import rules as r
from tonnage.rules import _exact as exact
from tonnage.rules._rule import Numbers, Worked, by_rule, rule

CHATGLM = Numbers(model="chatglm-6b", N=6e9, L=28, h=4096, a=32, k=32, dh=128, V=130528, s=2048)


@rule("A1", "weights for inference", CHATGLM, "int8 6 GB, fp16 and bf16 12 GB, fp32 24 GB")
def weights(x: Numbers) -> Worked:
    by_type = {"int8": 1, "fp16, bf16": 2, "fp32": 4}
    return Worked(
        value=by_rule("weights in 16 bit", r.weights_rule, N=x.N, w=2),
        values={name: r.weights_rule(N=x.N, w=w) for name, w in by_type.items()},
        exact=lambda: exact.weights(x.read(), 2),
    )


@rule(
    "A2",
    "memory of inference",
    CHATGLM,
    "1.2 x weights = 14.4 GB; only the weights count",
    note="The text says the overhead stays within 20 % of the total, which is weights / 0.8 = 15.0 GB, and prints "
    "1.2 x weights; "
    "and inference does not need the weights alone: the KV cache is left out.",
)
def inference(x: Numbers) -> Worked:
    weights = r.weights_rule(N=x.N, w=2)
    return Worked(
        value=by_rule("weights and a fifth", r.overhead_rule, M=weights, rho=1.2),
        values={
            "1.2 x weights": r.overhead_rule(M=weights, rho=1.2),
            "20 % of the total": r.overhead_share_rule(M=weights, rho=0.2),
        },
        exact=lambda: exact.serving(x.read(), context=x.s, weights="bf16"),
    )


@rule("A3", "weights in training", CHATGLM, "fp32 24 GB, fp16 12 GB, mixed 12 GB")
def training_weights(x: Numbers) -> Worked:
    by_type = {"fp32": 4, "fp16": 2, "mixed": 2}
    return Worked(
        value=by_rule("weights, mixed precision", r.weights_rule, N=x.N, w=2),
        values={name: r.weights_rule(N=x.N, w=w) for name, w in by_type.items()},
        exact=lambda: exact.training(x.read(), "weights", sequence_length=x.s),
    )


@rule(
    "A4",
    "optimizer states",
    CHATGLM,
    "AdamW 72 GB, 8-bit Adam 36 GB, SGD with momentum 36 GB",
    erratum="The third figure is printed as 8 x 48 GB = 36 GB; 8 bytes x 6e9 parameters are 48 GB.",
)
def optimizer(x: Numbers) -> Worked:
    by_name = {"AdamW": 12, "8-bit Adam": 6, "SGD with momentum": 8}
    return Worked(
        value=by_rule("AdamW", r.optimizer_rule, N=x.N, w=12),
        values={name: r.optimizer_rule(N=x.N, w=w) for name, w in by_name.items()},
        exact=lambda: exact.training(x.read(), "optimizer", sequence_length=x.s),
    )


@rule("A5", "gradients", CHATGLM, "fp32 24 GB, fp16 12 GB")
def gradients(x: Numbers) -> Worked:
    by_type = {"fp32": 4, "fp16": 2}
    return Worked(
        value=by_rule("gradients in 16 bit", r.gradients_rule, N=x.N, w=2),
        values={name: r.gradients_rule(N=x.N, w=w) for name, w in by_type.items()},
        exact=lambda: exact.training(x.read(), "gradients", sequence_length=x.s),
    )


@rule(
    "A6",
    "activations without recomputation",
    CHATGLM,
    "26.22 GB, by s b h L (10 + 24/t + 5 a s/h * t)",
    erratum="The printed formula multiplies the last term by t; the source (Korthikanti2022, eq. 2) divides it by h "
    "t. The figure is 26.78 GB: "
    "the document rounds s b h L = 0.2349e9 to 0.23e9.",
)
def activations(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("activations", f.gpt_tensor_parallel_activation_bytes, L=x.L, s=x.s, b=x.b, h=x.h, a=x.a, t=1),
        exact=lambda: exact.training(
            x.read(), "activations", sequence_length=x.s, micro_batch_size=x.b, attention="eager"
        ),
    )


@rule(
    "A7",
    "activations with selective recomputation",
    CHATGLM,
    "7.8 GB",
    note="7.99 GB: the document rounds s b h L = 0.2349e9 to 0.23e9.",
)
def selective(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("activations", r.selective_activation_rule, L=x.L, s=x.s, b=x.b, h=x.h, t=1),
        exact=lambda: exact.training(
            x.read(), "activations", sequence_length=x.s, micro_batch_size=x.b, attention="eager", recompute="selective"
        ),
    )


@rule(
    "A8",
    "activations with full recomputation",
    CHATGLM,
    "0.46 GB",
    note="0.47 GB: the document rounds s b h L = 0.2349e9 to 0.23e9.",
)
def full(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("activations", f.full_recompute_activation_bytes, L=x.L, s=x.s, b=x.b, h=x.h),
        exact=lambda: exact.training(
            x.read(), "activations", sequence_length=x.s, micro_batch_size=x.b, recompute="full"
        ),
    )


@rule(
    "A9",
    "memory of training",
    CHATGLM,
    "12 + 72 + 12 + 7.8 = 103 GB",
    erratum="The document's own terms sum to 103.8 GB; unrounded they are 103.99 GB.",
)
def training(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("training", r.training_rule, N=x.N, L=x.L, s=x.s, b=x.b, h=x.h, t=1),
        values={
            "weights": 2 * x.N,
            "optimizer": r.optimizer_rule(N=x.N, w=12),
            "gradients": r.gradients_rule(N=x.N, w=2),
            "activations": r.selective_activation_rule(L=x.L, s=x.s, b=x.b, h=x.h, t=1),
        },
        exact=lambda: exact.training(
            x.read(), sequence_length=x.s, micro_batch_size=x.b, attention="eager", recompute="selective"
        ),
    )


@rule(
    "A10",
    "check against the hardware",
    CHATGLM,
    "eight TPU v3-8 machines, 128 GB in all",
    erratum=(
        "One v3-8 board (8 cores of 16 GB) has 128 GB; eight have 1024 GB. And 104 GB fit no single core of 16 "
        "GB: they must be sharded."
    ),
)
def machines(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("eight boards of eight cores", r.machine_memory_rule, n=64, U=16e9),
        values={"one board": r.machine_memory_rule(n=8, U=16e9), "eight boards": r.machine_memory_rule(n=64, U=16e9)},
        exact=lambda: exact.accelerators_for(
            exact.training(x.read(), sequence_length=x.s, recompute="selective"), "tpu-v3"
        ),
    )

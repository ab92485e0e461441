"""Document B: parameters, compute, time, accelerators, memory and bottlenecks of training GPT-3."""

from tonnage.catalogue import accelerator
from tonnage.estimate.run.scaling import BESIROGLU, HOFFMANN, HOFFMANN_PRINTED, KAPLAN, optima
from tonnage.formulas import communication as net
from tonnage.formulas import rules as r
from tonnage.formulas import run as whole
from tonnage.formulas import scaling
from tonnage.formulas import time as g
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import DAY
from tonnage.rules import _exact as exact
from tonnage.rules._rule import Numbers, Worked, by_rule, rule

GPT3 = Numbers(model="gpt3-175b", N=175e9, L=96, h=12288, a=96, k=96, dh=128, V=50257, s=2048, n=1024, u=0.45)
LLAMA_SHAPES = {"7B": (32, 4096), "13B": (40, 5120), "33B": (60, 6656), "65B": (80, 8192)}
A100 = 312e12  # FLOP/s


@rule(
    "B1",
    "number of parameters",
    GPT3,
    "12 L h^2 = 174 B; with first-order terms L (12 h^2 + 13 h) + V h",
    note="173.9 B by the short form, 174.6 B with the first-order terms; position embeddings are left out of both.",
)
def parameters(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("parameters, short form", r.short_parameters_rule, L=x.L, h=x.h),
        values={
            "12 L h^2": r.short_parameters_rule(L=x.L, h=x.h),
            "L (12 h^2 + 13 h) + V h": r.parameters_rule(L=x.L, h=x.h, V=x.V),
        },
        exact=lambda: exact.parameters(x.read()),
    )


@rule(
    "B1b",
    "the LLaMA table",
    Numbers(model="llama-7b", N=6.7e9, L=32, h=4096, V=32000),
    "7B, 13B, 33B, 65B by 12 L h^2",
    note="SwiGLU's three matrices of 8/3 h keep a layer near 12 h^2; tables are left out.",
)
def llama(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("parameters, short form", r.short_parameters_rule, L=x.L, h=x.h),
        values={name: r.short_parameters_rule(L=layers, h=width) for name, (layers, width) in LLAMA_SHAPES.items()},
        exact=lambda: exact.parameters(x.read()),
    )


@rule(
    "B1c",
    "peaks and utilization",
    GPT3,
    "312, 990 and 2250 TFLOP/s for A100, H100 and B100; above a hundred cards 30 to 50 % of them",
    note="B100's dense 16-bit peak is published as 1750 to 1800 TFLOP/s; 2250 is B200's.",
)
def utilization(x: Numbers) -> Worked:
    peaks = {"A100": "a100-sxm-80gb", "H100": "h100-sxm-80gb", "B100": "b100-sxm-192gb"}
    values: dict[str, float] = {
        Message("{name} peak", name=name): accelerator(key).peak("bf16") for name, key in peaks.items()
    }
    values |= {
        f"{name} at {share:.0%}": r.achieved_rule(P=accelerator(key).peak("bf16"), u=share)
        for name, key in peaks.items()
        for share in (0.3, 0.5)
    }
    chip = accelerator("a100-sxm-80gb")
    return Worked(
        value=by_rule(Message("an A100 at {u:.0f} %", u=100 * x.u), r.achieved_rule, P=A100, u=x.u),
        values=values,
        exact=lambda: Term.of(
            Message("an A100 at {u:.0f} % of the catalogue's peak", u=100 * x.u),
            g.fleet_rate,
            n=1,
            P=chip.peak("bf16"),
            u=x.u,
        ),
    )


@rule(
    "B2",
    "training compute",
    Numbers(model="gpt3-175b", N=174.6e9, L=96, h=12288, a=96, k=96, dh=128, V=50257),
    "6 N D = 3.1428e23 FLOP",
    note="Attention's own arithmetic, 12 L h s a token, is left out.",
)
def compute(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("6 N D", r.compute_rule, N=x.computing, D=x.D),
        values={
            "6 N D": r.compute_rule(N=x.computing, D=x.D),
            "8 N D, with recomputation": r.recompute_rule(N=x.computing, D=x.D),
        },
        exact=lambda: exact.flops(x.read(), x.D, x.s),
        note=x.about_computing,
    )


@rule("B3", "training time", GPT3, "1024 A100 at 45 %: 2 921 340 s = 34 days", note="33.8 days.")
def time(x: Numbers) -> Worked:
    term = by_rule(f"{x.n} A100 at {100 * x.u:.0f} %", r.time_rule, N=x.computing, D=x.D, n=x.n, P=A100, u=x.u)
    return Worked(
        value=term,
        values={"days": term.value / DAY, "accelerator-hours": whole.accelerator_hours(n=x.n, tau=term.value)},
        note=x.about_computing,
        exact=lambda: exact.seconds(exact.recomputed_flops(x.read(), x.D, x.s), "a100-sxm-40gb", x.n, x.u),
    )


@rule(
    "B4", "number of accelerators", GPT3, "1154 A100 for 30 days", note="1154.1, so 1155 make the deadline: rounded up."
)
def fleet(x: Numbers) -> Worked:
    return Worked(
        value=by_rule(
            Message("A100 for 30 days at {u:.0f} %", u=100 * x.u),
            r.accelerators_for_time_rule,
            N=x.computing,
            D=x.D,
            tau=30 * DAY,
            P=A100,
            u=x.u,
        ),
        values={"before rounding": r.time_rule(N=x.computing, D=x.D, n=1, P=A100, u=x.u) / (30 * DAY)},
        exact=lambda: exact.fleet(exact.recomputed_flops(x.read(), x.D, x.s), "a100-sxm-40gb", 30 * DAY, x.u),
        note=x.about_computing,
    )


@rule("B5", "memory of inference", GPT3, "840 GB in fp32")
def inference(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("fp32 weights and a fifth", r.inference_rule, N=x.N, w=4, rho=1.2),
        values={"fp32": r.inference_rule(N=x.N, w=4, rho=1.2), "16 bit": r.inference_rule(N=x.N, w=2, rho=1.2)},
        exact=lambda: exact.serving(x.read(), context=x.s, weights="fp32"),
    )


@rule("B6", "memory of training", GPT3, "20 N = 3500 GB, at least 44 GPUs of 80 GB", note="Activations come on top.")
def training(x: Numbers) -> Worked:
    term = by_rule("20 N", r.mixed_training_rule, N=x.N)
    return Worked(
        value=term,
        values={"bytes": term.value, "accelerators of 80 GB": r.accelerators_for_memory_rule(M=term.value, U=80e9)},
        exact=lambda: exact.training(x.read(), sequence_length=x.s),
    )


@rule(
    "B7",
    "data for a model",
    GPT3,
    "20 tokens a parameter (DeepMind); GPT-3 saw 1 to 2; 200B parameters on 100B tokens preferred to 100B on 200B; "
    "emergence from ten billion parameters, good at a hundred billion",
    erratum="Hoffmann's fitted loss prefers the smaller model with more data: 100B on 200B tokens reaches 2.045, "
    "200B on 100B tokens "
    "2.090. The thresholds of emergence are the document's and are not endorsed here.",
)
def data(x: Numbers) -> Worked:
    def loss(n: float, d: float) -> float:
        fit = HOFFMANN_PRINTED  # as a reader of the paper would work it out
        return scaling.chinchilla_loss(N=n, D=d, E_inf=fit.irreducible, **fit.frontier)

    best = optima(r.compute_rule(N=x.computing, D=x.D))
    values = {
        "tokens a parameter that GPT-3 saw": GPT3.D / GPT3.N,
        "loss of 200B on 100B tokens": loss(200e9, 100e9),
        "loss of 100B on 200B tokens": loss(100e9, 200e9),
    }
    named = {HOFFMANN_PRINTED.name: "", HOFFMANN.name: ", Hoffmann 2022 unrounded"}
    for name in (HOFFMANN_PRINTED.name, HOFFMANN.name, BESIROGLU.name, KAPLAN):
        label = named.get(name, f", {name}")
        values[f"optimal parameters for the same compute{label}"] = best[name].parameters.value
        values[f"optimal tokens for the same compute{label}"] = best[name].tokens.value
    return Worked(
        value=by_rule("twenty tokens a parameter", r.chinchilla_tokens_rule, N=x.N),
        values=values,
        exact=lambda: optima(exact.flops(x.read(), x.D, x.s).value)[BESIROGLU.name].tokens.named(
            "tokens that the fit of Besiroglu2024 prefers for this compute"
        ),
        note="" if x.active is None else "The same compute: that of the parameters that a token passes through.",
    )


@rule(
    "B8",
    "the compute bottleneck",
    GPT3,
    "one A100 at its full peak: 32 years; 30 days: 32 x 12 = 384 GPUs",
    note="31.9 years; 389 GPUs by division: the document multiplies years by months.",
)
def compute_bottleneck(x: Numbers) -> Worked:
    work = r.compute_rule(N=174.6e9 if x.N == GPT3.N else x.computing, D=x.D)
    term = by_rule("one A100 at its full peak", r.compute_time_rule, C=work, n=1, P=A100)
    return Worked(
        value=term,
        values={
            "years": term.value / (365 * DAY),
            "A100 for 30 days": whole.accelerators_by_division(
                n_hours=whole.accelerator_hours(n=1, tau=term.value), tau=30 * DAY
            ),
        },
        exact=lambda: exact.seconds(exact.flops(x.read(), x.D, x.s), "a100-sxm-40gb", 1, 1.0),
        note=x.about_computing,
    )


@rule("B9", "the memory bottleneck", GPT3, "44 GPUs of 80 GB for one replica")
def memory_bottleneck(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("accelerators of 80 GB", r.accelerators_for_memory_rule, M=r.mixed_training_rule(N=x.N), U=80e9),
        exact=lambda: exact.accelerators_for(
            exact.training(x.read(), sequence_length=x.s, recompute="full"), "a100-sxm-80gb"
        ),
    )


@rule(
    "B10",
    "the communication bottleneck",
    GPT3,
    "500 GB of tensor-parallel traffic: 20 s at 200 Gbit/s, 1.1 s at 450 GB/s (NVLink 4), of an "
    "iteration of 1030 s; the effect of the slow network is very large",
    erratum="20 of 1030 s are 1.9 %, which is not very large; and no plan is named that sends 500 GB or takes 1030 "
    "s. The volume must "
    "come from the plan: two all-reduces forward and two backward a layer, two more with full recomputation.",
)
def communication(x: Numbers) -> Worked:
    network, nvlink = 200e9 / 8, 450e9
    term = by_rule("500 GB at 200 Gbit/s", r.communication_time_rule, M=500e9, W=network)

    def sent() -> Term:
        """A plan named: 1024 A100 as tensor 8 x pipeline 8 x data 16, global batch 1536, so 96 micro-batches of one."""
        name = "traffic of one rank: tensor 8, pipeline 8, data 16, global batch 1536, full recomputation"
        volume = Term.of(name, net.tensor_parallel_recompute_traffic, L=x.L / 8, s=x.s, b=1, h=x.h, w=2, t=8, m=96)
        nvlink_3 = accelerator("a100-sxm-80gb").scale_up
        rate = Term.of("NVLink of an A100", net.link_rate, W=nvlink_3.bytes_per_second if nvlink_3 else network)
        return Term.ratio("time of that traffic", "seconds", volume, rate)

    return Worked(
        value=term,
        exact=sent,
        values={
            "200 Gbit/s": term.value,
            "NVLink 4": r.communication_time_rule(M=500e9, W=nvlink),
            "share of the iteration": term.value / 1030,
        },
    )

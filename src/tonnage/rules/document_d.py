"""Document D: model size and hardware, for a model of 7 B parameters."""

from typing import Any

from msgspec.structs import replace

from tonnage.catalogue.offers import cheapest, in_usd, offers
from tonnage.catalogue.prices import DOLLARS, Price, Purchase, purchases
from tonnage.estimate.run.checkpoint import checkpoint_bytes
from tonnage.formulas import rules as r
from tonnage.formulas import time as g
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import DAY, GB, GIB
from tonnage.rules import _exact as exact
from tonnage.rules._rule import Numbers, Worked, by_rule, rule
from tonnage.spec import TrainingPlan

LLAMA = Numbers(model="llama-7b", N=7e9, L=32, h=4096, a=32, k=32, dh=128, V=32000, s=2048)
BATCHED = replace(LLAMA, b=32)
LAYERS_OF_D5 = 48
COMPARED = "H100-SXM-80GB"
KILOWATT_HOUR = 0.12  # USD: an assumption, since power is priced by contract
BUILDING = 1.3  # power usage effectiveness: an assumption
NVME = 7e9  # bytes a second of a PCIe 4 drive, for the values of D7


@rule("D1", "units", LLAMA, "7B x 4 B = 26 GB = 28 GB", note="26.08 GiB and 28.0 GB are the same number of bytes.")
def units(x: Numbers) -> Worked:
    term = by_rule("weights in fp32", r.weights_rule, N=x.N, w=4)
    return Worked(
        value=term,
        values={"GB (10^9)": term.value / GB, "GiB (2^30)": term.value / GIB},
        exact=lambda: exact.weights(x.read(), 4),
    )


@rule(
    "D2",
    "number of parameters",
    Numbers(model="gpt3-175b", N=174.6e9, L=96, h=12288, a=96, k=96, dh=128, V=50257),
    "17.5 B (175亿), 350 GB in fp16",
    erratum="The text prints 17.5 B (175亿); 12 L h^2 + V h is 174.56 B (1746亿). 350 GB is right for 175 B.",
)
def parameters(x: Numbers) -> Worked:
    term = by_rule("parameters", r.document_parameters_rule, L=x.L, h=x.h, V=x.V)
    return Worked(
        value=term,
        values={"parameters": term.value, "bytes in fp16": 2 * term.value},
        exact=lambda: exact.parameters(x.read()),
    )


@rule("D3", "gradients", LLAMA, "28 GB in fp32")
def gradients(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("gradients in fp32", r.gradients_rule, N=x.N, w=4),
        exact=lambda: exact.training(x.read(), "gradients", precision="fp32"),
    )


@rule("D4", "optimizer states", LLAMA, "Adam: 56 GB")
def optimizer(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("Adam", r.adam_rule, N=x.N), exact=lambda: exact.training(x.read(), "optimizer", precision="fp32")
    )


@rule(
    "D5",
    "activations",
    BATCHED,
    "48 x 32 x 2048 x 4096 x 4 = 1.4 TB",
    erratum=(
        "48 x 32 x 2048 x 4096 x 4 bytes are 51.5 GB; and one tensor a layer is far too few: the exact figure "
        "counts what a layer keeps."
    ),
)
def activations(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("one tensor a layer", r.activation_rule, L=_layers(x), b=x.b, s=x.s, h=x.h),
        exact=lambda: exact.training(
            x.read(), "activations", sequence_length=x.s, micro_batch_size=x.b, precision="fp32", attention="sdpa"
        ),
    )


@rule(
    "D6",
    "memory of training",
    BATCHED,
    "28 + 28 + 56 GB + 1.4 TB = 1.48 TB",
    erratum="The document's printed terms sum to 1.51 TB; with its activations put right the total is 163.5 GB.",
)
def training(x: Numbers) -> Worked:
    return Worked(
        value=by_rule("training", r.fp32_training_rule, N=x.N, L=_layers(x), b=x.b, s=x.s, h=x.h),
        exact=lambda: exact.training(
            x.read(), sequence_length=x.s, micro_batch_size=x.b, precision="fp32", attention="sdpa"
        ),
    )


@rule(
    "D7",
    "checkpoint",
    LLAMA,
    "weights + optimizer states + what the run knows about itself",
    note="torch.save of model, optimizer, scheduler and epoch; the last two are small.",
)
def checkpoint(x: Numbers) -> Worked:
    term = by_rule("checkpoint in fp32 with Adam", r.checkpoint_rule, N=x.N)
    return Worked(
        value=term,
        values={
            "bytes": term.value,
            Message("seconds to write at {nvme:.0f} GB/s", nvme=NVME / GB): g.transfer_seconds(M=term.value, W=NVME),
        },
        exact=lambda: checkpoint_bytes(x.read(), TrainingPlan(sequence_length=x.s, precision="bf16-mixed")),
    )


@rule(
    "D8",
    "memory of inference",
    LLAMA,
    "14 GB + 16 MB + 16 MB + 2 GB = 16 GB, near the limit of an RTX 4090",
    erratum="Keys and values of 2048 tokens are 2 x 2048 x 32 x 128 x 2 B = 32 MiB for each layer, 1.07 GB for 32 "
    "layers: 14 + 0.017 + 1.074 "
    "+ 2 = 17.09 GB. And an RTX 4090 has 24 GB.",
)
def inference(x: Numbers) -> Worked:
    cache = r.sequence_rule(L=x.L, k=x.a, dh=x.dh, s=x.s, w=2)
    return Worked(
        value=by_rule("one request", r.request_rule, N=x.N, s=x.s, h=x.h, L=x.L, a=x.a, dh=x.dh, M=2e9),
        values={"weights": 2 * x.N, "one activation": x.s * x.h * 2, "keys and values": cache, "system": 2e9},
        exact=lambda: exact.serving(x.read(), context=x.s, weights="fp16"),
    )


@rule(
    "D9",
    "what each part of the machine does",
    LLAMA,
    "CPU schedules, GPU and TPU compute, RAM loads, VRAM holds the model, SSD stores, PCIe and NVLink connect",
    note="Sized for this model: host memory to load it, disk for its checkpoints, time to bring it over the link.",
)
def roles(x: Numbers) -> Worked:
    weights = r.host_memory_rule(N=x.N, w=2)
    return Worked(
        value=by_rule("host memory to load the weights", r.host_memory_rule, N=x.N, w=2),
        values={
            "disk for the weights": weights,
            "disk for three checkpoints": 3 * r.checkpoint_rule(N=x.N),
            "seconds over PCIe 4.0 x16 (32 GB/s)": g.transfer_seconds(M=weights, W=32e9),
            Message("seconds from a drive of {nvme:.0f} GB/s", nvme=NVME / GB): g.transfer_seconds(M=weights, W=NVME),
        },
        exact=lambda: exact.weights(x.read(), 2),
    )


@rule(
    "D10",
    "training against inference",
    LLAMA,
    "training: many GPUs, parameters, gradients and Adam, more than 8 TB of NVMe; inference: one GPU, less than 2 TB",
    note="Not a fixed table: `tonnage train` and `tonnage serve` derive it for the case at hand.",
)
def comparison(x: Numbers) -> Worked:
    def ratio() -> Term:
        model = x.read()
        return Term.ratio(
            "training memory for each byte of inference, exact",
            "",
            exact.training(model, sequence_length=x.s, recompute="full"),
            exact.serving(model, context=x.s, weights="fp16"),
        )

    return Worked(
        value=by_rule("states of training for each byte of weights", r.training_to_inference_rule, N=x.N),
        values={"training, bytes": r.convention_rule(N=x.N, w=16), "inference, bytes": r.weights_rule(N=x.N, w=2)},
        exact=ratio,
    )


@rule(
    "D11",
    "where to run",
    LLAMA,
    (
        "cloud: H100 and TPU, high cost by the hour; own servers: low cost in the long run, high purchase; edge "
        "(M2, Jetson): small models only"
    ),
)
def where(x: Numbers) -> Worked:
    own, rented = _machines()
    power = own.power_watts or 0.0
    money: dict[str, Any] = {
        "USD_buy": own.usd,
        "USD_rent": in_usd(rented) / 3600,
        "pw": power,
        "USD_kwh": KILOWATT_HOUR,
    }
    term = by_rule(
        Message("buying {own} against renting {instance}", own=own.name, instance=rented.instance),
        r.break_even_rule,
        **money,
        pue=1.0,
    )
    return Worked(
        value=term,
        values={"months": term.value / (30 * DAY), "purchase, USD": own.usd, "rent, USD an hour": in_usd(rented)},
        exact=lambda: Term.of(
            Message("with a building that draws {building} W for each W", building=BUILDING),
            r.break_even_rule,
            source=f"{own.source} ({own.as_of}); {rented.source} ({rented.as_of})",
            **money,
            pue=BUILDING,
        ),
    )


def _machines() -> tuple[Purchase, Price]:
    """A server of the catalogue, and the same accelerators rented on demand: the cheapest of each."""
    own = min(
        (bought for bought in purchases() if bought.accelerator == COMPARED and bought.power_watts),
        key=lambda one: one.usd,
    )
    rented = offers(COMPARED, kind="on-demand", currency=DOLLARS)
    return own, cheapest([price for price in rented if price.accelerators == own.accelerators])


def _layers(x: Numbers) -> int:
    """The document works D5 and D6 with 48 layers, which no model of 7 B has; another model has its own."""
    return LAYERS_OF_D5 if x.N == LLAMA.N else x.L

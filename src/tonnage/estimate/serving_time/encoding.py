"""Seconds of one forward pass without decoding: documents through an encoder, windows of sound through Whisper's.

A pass takes as long as the accelerator computes, or as the host needs to ask for its kernels, whichever is longer. What
the accelerator does: matrix products, attention, and reading and writing hidden states between them. Engines whose
attention is not fused write the scores of every query and key to memory as well.
"""

from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.serving.weights.storage import loaded_storage
from tonnage.estimate.serving_time.encoding_rates import EncodingRates, Host
from tonnage.estimate.serving_time.work import Work, kv_bytes, stage_works
from tonnage.formulas.time import compute_seconds, memory_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.term import Term
from tonnage.spec import Accelerator, Cluster, ServingPlan

WIDE = ("bf16", "fp16", "fp32")  # what is multiplied, the first that an accelerator has
HALF, FULL = 2, 4  # bytes of a number
GEMM_SECONDS, ATTENTION_SECONDS = "GEMMs", "attention"
HIDDEN_SECONDS, LAUNCH_SECONDS = "activations, norms and residuals", "kernel launches"
# Counted in LLaDA's and Dream's modeling files. Bytes of each hidden number of a layer: two norms in 32 bits 72,
# rotation of queries and keys in 32 bits 50 to 104, the activation 30 to 50, residual sums 12.
EAGER_HIDDEN_BYTES = 200
# Of each logit: the best word and a softmax in 64 bits 36 (LLaDA, generate.py); Dream's top_p sorts those of tokens
# that are still masked, 130 of half of them.
EAGER_LOGIT_BYTES = 60
LOW_POWER_WATTS = 75  # cards that a slot feeds without a cable of their own: their clocks fall under products


class Pass(NamedTuple):
    """What a pass carries: tokens in all, and the tokens that each attends to."""

    tokens: float
    keys: float


class Encoder(Struct, frozen=True, eq=False):
    """The layers that every token passes once, on one rank. `heads`: whose scores an engine may write. `is_full`:
    products of 32 bits; `is_plain`: without matrix units; `host`: the machine around the accelerator.
    """

    work: Work
    layers: int
    width: int
    heads: int
    peak: float
    number_bytes: int
    bandwidth: float
    low_power: bool
    is_full: bool
    is_plain: bool
    host: Host
    ranks: int

    def parts(self, one: Pass, rates: EncodingRates) -> dict[str, float]:
        """Seconds by what spends them; `LAUNCH_SECONDS` is what the host needs beyond the rest."""
        share = self.share(rates)
        flops = sum(float(product.flops) for product in self.work.products) * one.tokens
        pairs = sum(
            float(core.layers) * float(core.prompt_flops) * min(one.keys, core.window or one.keys)
            for core in self.work.attending
        )
        hidden = one.tokens * self.layers * self.width * self.number_bytes * rates.passes_over_hidden
        scores = one.tokens * one.keys * self.layers * self.heads * self.number_bytes * rates.passes_over_scores
        products = compute_seconds.evaluate(C=flops, n=1, P=self.peak, u=share)
        weights = sum(float(product.bytes) for product in self.work.products)
        products = max(products, memory_seconds.evaluate(M=weights, W=self.bandwidth, u=1))
        attention = compute_seconds.evaluate(C=pairs * one.tokens, n=1, P=self.peak, u=share)
        attention += memory_seconds.evaluate(M=scores / self.ranks, W=self.bandwidth, u=1)
        moved = memory_seconds.evaluate(M=hidden, W=self.bandwidth, u=1)
        asked = float(self.work.launches) * rates.kernel * rates.host(self.host)
        return {
            GEMM_SECONDS: products,
            ATTENTION_SECONDS: attention,
            HIDDEN_SECONDS: moved,
            LAUNCH_SECONDS: max(asked - products - attention - moved, 0.0),
        }

    def share(self, rates: EncodingRates) -> float:
        """The share of the peak that products reach."""
        share = rates.full_products if self.is_full else rates.plain_products if self.is_plain else rates.products
        return share * (rates.low_power if self.low_power else 1.0) * self.width / (self.width + rates.narrow)

    def seconds(self, one: Pass, rates: EncodingRates) -> float:
        return sum(self.parts(one, rates).values())


def is_low_power(chip: Accelerator) -> bool:
    """Whether a slot alone feeds the card."""
    return bool(chip.tdp_watts and chip.tdp_watts <= LOW_POWER_WATTS)


def host_of(chip: Accelerator) -> Host:
    """The machine in which an accelerator usually stands: how fast a host asks for kernels follows from its clock."""
    if chip.default_node is None and not (chip.memory.kind or "").startswith("HBM"):
        return "desktop"
    return "small server" if is_low_power(chip) else "server"


def encoder(model: Model, plan: ServingPlan, cluster: Cluster, kind: str = "") -> Encoder:
    """The encoder of a plan; `kind`: of the branches of this kind ("audio") in place of the main one.

    MissingDatum where no source gives the accelerator's peak or bandwidth.
    """
    return _encoder(ByIdentity(model), plan, ByIdentity(cluster), kind)


@lru_cache(maxsize=256)
def _encoder(model: ByIdentity, plan: ServingPlan, cluster: ByIdentity, kind: str) -> Encoder:
    chip: Accelerator = cluster.thing.accelerator
    found = [branch for branch in model.thing.branches if branch.kind == kind] or [model.thing.decoder]
    if chip.memory.bytes_per_second is None:
        raise MissingDatum(
            "no source gives the memory bandwidth of {chip}: the time of a pass needs it.", chip=chip.name
        )
    precision = "fp32" if loaded_storage(model.thing, plan).name == "fp32" else ""
    peak_name = precision if precision in chip.dense_flops else next((n for n in WIDE if n in chip.dense_flops), "")
    if not peak_name:
        raise MissingDatum(
            "no source gives a bf16, fp16 or fp32 peak of {chip}: its times are unknown.", chip=chip.name
        )
    # stages that llama.cpp puts on several accelerators run one after the other, as on one
    whole_model = plan.with_fields(pipeline_parallel_size=1, chunk_layers=())
    (work,) = stage_works(model.thing, whole_model, tuple(chip.dense_flops), kv_bytes(plan), kind=kind)
    heads = [op.heads for branch in found for block in branch.blocks for op in block.ops if hasattr(op, "heads")]
    return Encoder(
        work=work,
        layers=sum(branch.num_layers for branch in found),
        width=found[0].hidden_size,
        heads=max(heads, default=1),
        peak=chip.peak(peak_name),
        number_bytes=FULL if precision else HALF,
        bandwidth=chip.memory.bytes_per_second,
        low_power=is_low_power(chip),
        is_full=bool(precision),
        is_plain=chip.peak(peak_name) <= chip.dense_flops.get("fp32", 0.0),
        host=host_of(chip),
        ranks=int(plan.tensor_parallel_size),
    )


def eager_seconds(model: Model, chip: Accelerator, tokens: float) -> float:
    """What a pass that denoises so many tokens moves beside its products, where kernels are PyTorch's own and none are
    fused [seconds]; 0 where no source gives the bandwidth.
    """
    if chip.memory.bytes_per_second is None:
        return 0.0
    moved = EAGER_HIDDEN_BYTES * model.hidden_size * model.decoder.num_layers + EAGER_LOGIT_BYTES * model.vocab_size
    return float(memory_seconds.evaluate(M=moved * tokens, W=chip.memory.bytes_per_second, u=1))


FITTED = "fitted: scripts/fit_encoding.py"
PROCEDURE = "one pass without decoding (estimate.serving_time.encoding)"


def pass_term(name: str, one: Encoder, load: Pass, rates: EncodingRates) -> Term:
    """The breakdown of a pass."""
    parts = [
        made_term(part, spent, tokens=load.tokens, keys=load.keys) for part, spent in one.parts(load, rates).items()
    ]
    return Term.sum(name, *(part for part in parts if part.value), unit="seconds")


def made_term(name: str, seconds: float, **inputs: float) -> Term:
    """Seconds that the walk of a pass found."""
    return Term.by(
        name, seconds, "seconds", basis="analytic", source=FITTED, procedure=PROCEDURE, version="1", **inputs
    )

"""LoRA adapters that come from host memory when a request asks for them, and what that costs others."""

from msgspec.structs import replace

from tonnage.estimate.hardware.links import links
from tonnage.estimate.serving_time.forward_pass import PassTime
from tonnage.estimate.serving_time.times import ServingTimes
from tonnage.formulas import service as h
from tonnage.formulas.engines import adapter_bytes
from tonnage.formulas.load import cold_share
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number
from tonnage.spec import Load

BYTES = 2  # of a number: vllm/config/lora.py, lora_dtype auto is that of the model


def swap_seconds(passes: PassTime) -> float:
    """Seconds in which one adapter comes to a rank: its part is copied over the host's link."""
    link, adapters = passes.chip.host_link, passes.plan.adapters
    if link is None:
        raise MissingDatum(
            "no source gives the host link of {name}: {@lora_on_host} needs it.",
            name=passes.chip.name,
        )
    numbers = max(float(work.adapted) for work in passes.works)
    size = adapter_bytes.evaluate(A=1, rank=adapters.lora_rank, x=numbers, w=BYTES)
    share = links().of(link, inside=True).direct
    return float(transfer_seconds.evaluate(M=size, W=link.bytes_per_second * share))


def swapped(found: ServingTimes, passes: PassTime, load: Load) -> ServingTimes:
    """The times where requests ask for adapters of which some are in host memory: theirs waits for its adapter, and the
    pass in which it is copied waits too (vllm/v1/worker/lora_model_runner_mixin.py: set_active_loras, before the pass).
    """
    adapters = passes.plan.adapters
    cold = float(cold_share.evaluate(A=adapters.lora_adapters, n_copies=adapters.lora_on_host))
    swap = swap_seconds(passes)
    if found.ttft_seconds is None or not cold:
        return found
    waits: Number = cold * swap
    tail = h.later_tokens_seconds.evaluate(O=found.answer_tokens, tau=found.tpot_seconds)
    stretched = 1 + found.requests_per_second * waits
    ttft, later = found.ttft_seconds + waits, tail * stretched
    slower: Number = 1
    if load.requests_per_second is None:
        slower = (ttft + later) / (found.ttft_seconds + tail)
    return replace(
        found,
        ttft_seconds=ttft,
        tpot_seconds=found.tpot_seconds * stretched,
        end_to_end_seconds=ttft + later,
        swapped_seconds=waits,
        requests_per_second=found.requests_per_second / slower,
        output_tokens_per_second=found.output_tokens_per_second / slower,
        largest_rate=found.largest_rate / stretched,
    )

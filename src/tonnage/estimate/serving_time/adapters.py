"""LoRA adapters that come from host memory when a request asks for them, and what that costs others."""

from tonnage.estimate.hardware.links import links
from tonnage.estimate.serving_time.forward_pass import PassTime
from tonnage.formulas.engines import adapter_bytes
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import MissingDatum

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

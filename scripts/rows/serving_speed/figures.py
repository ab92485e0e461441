"""Which quantity a metric of serving is: each unit has one way to be reached from the times of a run."""

import re
from typing import Any

from rows.source import Measured
from tonnage.kernel.errors import MissingDatum, shown

SECONDS = {"s": "s", "ms": "ms", "us": "us", "s/token": "s", "ms/token": "ms"}


def figure_of(measured: Measured) -> dict[str, Any]:
    """The quantity that a metric is; MissingDatum for what is none."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    both = f"{metric} {unit}"
    if re.search(r"\b(tpot|itl)\b|per output token|inter-token", metric):
        return {"quantity": "tpot", "unit": _seconds(measured)}
    if re.search(r"\bttft\b|first token", metric):
        return {"quantity": "ttft", "unit": _seconds(measured)}
    if re.search(r"total time|end.to.end|\be2e", metric):
        return {"quantity": "end_to_end", "unit": _seconds(measured)}
    if "before pr" in metric or "bandwidth" in metric:
        raise MissingDatum(f"{shown(measured.metric)} is of another build, or of the memory alone")
    if re.search(r"request", both) and "/s" in unit:
        return {"quantity": "requests_per_second", "unit": f"requests/s{_scope(both)}"}
    if "token" not in unit and "tok" not in unit:
        raise MissingDatum(
            f"{shown(measured.metric)} in {shown(measured.unit)} is no figure of serving that is predicted"
        )
    return _rate(measured)


def _rate(measured: Measured) -> dict[str, Any]:
    """Tokens a second: of one request's prompt, of its answer, of both, or of all requests together."""
    metric = measured.metric.lower()
    scoped = f"tokens/s{_scope(f'{metric} {measured.unit.lower()}')}"
    if "prompt+generated" in metric:
        return {"quantity": "request_tokens_per_second", "unit": "tokens/s"}
    if re.search(r"generation speed|^decode throughput$", metric):  # of the whole call
        return {"quantity": "generation_tokens_per_second", "unit": "tokens/s"}
    if re.search(r"input throughput", metric):
        raise MissingDatum(f"{shown(measured.metric)} is of the accelerators that prefill")
    if re.search(r"prefill throughput", metric):
        return {"quantity": "input_tokens_per_second", "unit": scoped}
    if re.search(r"prefill speed|\bpp\d+", metric):
        return {"quantity": "prefill_tokens_per_second", "unit": "tokens/s"}
    if re.search(r"decode speed|\btg\d+", metric):
        return {"quantity": "decode_tokens_per_second", "unit": "tokens/s"}
    return {"quantity": "output_tokens_per_second", "unit": scoped}


def _scope(both: str) -> str:
    """Which part of the replica a figure is about."""
    if re.search(r"all gpus|\(total\)", both):
        return ""
    if re.search(r"/node|per node", both):
        return "/node"
    return "/GPU" if re.search(r"/gpu|per gpu|/chip|per accelerator", both) else ""


def _seconds(measured: Measured) -> str:
    if measured.unit.lower() not in SECONDS:
        raise MissingDatum(f"{shown(measured.metric)} in {shown(measured.unit)} is no time")
    return SECONDS[measured.unit.lower()]

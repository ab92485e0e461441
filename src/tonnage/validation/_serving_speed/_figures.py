"""A metric of serving as one of four quantities, and back: each unit has one way to be reached from it."""

import re
from typing import Literal, Protocol

from msgspec import Struct

from tonnage.kernel.errors import MissingDatum, shown
from tonnage.spec import Cluster, Load, ServingPlan
from tonnage.validation._rows import Measured

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "s/token": 1.0, "ms/token": 1e-3}
NODE_SIZE = 8  # accelerators of the nodes that sources speak of
Quantity = Literal["ttft_seconds", "tpot_seconds", "end_to_end_seconds", "output_tokens_per_second"]


class Times(Protocol):
    """What the estimator of serving gives: seconds of a request, and tokens a second of the whole replica."""

    @property
    def ttft_seconds(self) -> float | None: ...
    @property
    def tpot_seconds(self) -> float: ...
    @property
    def end_to_end_seconds(self) -> float | None: ...
    @property
    def output_tokens_per_second(self) -> float: ...


class Figure(Struct, frozen=True, kw_only=True):
    """A metric's value is `scale` x the quantity `of`, or, where it is a `rate`, `scale` / it."""

    of: Quantity
    scale: float
    rate: bool = False

    def value(self, times: Times) -> float:
        """The metric of a run with these times."""
        found = getattr(times, self.of)
        if found is None:
            raise MissingDatum("no source gives the accelerator's peak: how long a prompt takes is not known")
        return self.of_quantity(float(found))

    def of_quantity(self, quantity: float) -> float:
        """The metric where the quantity is so much."""
        return self.scale / quantity if self.rate else self.scale * quantity

    def quantity(self, value: float) -> float:
        """The quantity where the metric is so much."""
        return self.scale / value if self.rate else value / self.scale


def figure_of(measured: Measured, plan: ServingPlan, load: Load, cluster: Cluster) -> Figure:
    """How a metric follows from the times of a run; MissingDatum for what does not."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    both = f"{metric} {unit}"
    if re.search(r"\b(tpot|itl)\b|per output token|inter-token", metric):
        return Figure(of="tpot_seconds", scale=1 / _seconds(measured))
    if re.search(r"\bttft\b|first token", metric):
        return Figure(of="ttft_seconds", scale=1 / _seconds(measured))
    if re.search(r"total time|end.to.end|\be2e", metric):
        return Figure(of="end_to_end_seconds", scale=1 / _seconds(measured))
    if "before pr" in metric or "bandwidth" in metric:
        raise MissingDatum(f"{shown(measured.metric)} is of another build, or of the memory alone")
    if re.search(r"request", both) and "/s" in unit:
        return Figure(of="output_tokens_per_second", scale=1 / float(load.output_tokens) / _parts(both, cluster))
    if "token" not in unit and "tok" not in unit:
        raise MissingDatum(
            f"{shown(measured.metric)} in {shown(measured.unit)} is no figure of serving that is predicted"
        )
    return _rate(measured, load, cluster)


def _rate(measured: Measured, load: Load, cluster: Cluster) -> Figure:
    """Tokens a second: of one request's prompt, of its answer, of both, or of all requests together."""
    metric = measured.metric.lower()
    both = f"{metric} {measured.unit.lower()}"
    inside, out = float(load.input_tokens), float(load.output_tokens)
    if "prompt+generated" in metric:
        return Figure(of="end_to_end_seconds", scale=inside + out, rate=True)
    if re.search(r"generation speed|^decode throughput$", metric):  # of the whole call
        return Figure(of="end_to_end_seconds", scale=out, rate=True)
    if re.search(r"input throughput", metric):
        raise MissingDatum(f"{shown(measured.metric)} is of the accelerators that prefill")
    if re.search(r"prefill throughput", metric):  # every request brings one prompt, and out tokens in its time
        return Figure(of="output_tokens_per_second", scale=inside / out / _parts(both, cluster))
    if re.search(r"prefill speed|\bpp\d+", metric):
        return Figure(of="ttft_seconds", scale=inside - float(load.cached_tokens), rate=True)
    if re.search(r"decode speed|\btg\d+", metric):
        return Figure(of="tpot_seconds", scale=1.0, rate=True)
    return Figure(of="output_tokens_per_second", scale=1 / _parts(both, cluster))


def _parts(both: str, cluster: Cluster) -> float:
    """How many parts of the replica a figure is about one of."""
    if re.search(r"all gpus|\(total\)", both):
        return 1.0
    if re.search(r"/node|per node", both):
        return max(cluster.size / NODE_SIZE, 1.0)
    if re.search(r"/gpu|per gpu|/chip|per accelerator", both):
        return float(cluster.size)
    return 1.0


def _seconds(measured: Measured) -> float:
    if measured.unit.lower() not in SECONDS:
        raise MissingDatum(f"{shown(measured.metric)} in {shown(measured.unit)} is no time")
    return SECONDS[measured.unit.lower()]

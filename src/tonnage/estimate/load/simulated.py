"""What a simulation saw: an entry for each request, and the figures that benchmarks print."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    import numpy as np

    from tonnage.estimate.load.engine import Engine

    Numbers = np.ndarray[Any, np.dtype[Any]]


class Quantiles(Struct, frozen=True, kw_only=True):
    """A mean and three percentiles."""

    mean: float
    p50: float
    p90: float
    p99: float


class Simulated(Struct, frozen=True, kw_only=True, eq=False):
    """Times are seconds from the start: arrays with one entry for each request. `chosen`: those that the figures are
    about.

    `seconds`: until the last answer ended. `computed_prompt_tokens` count what was computed again after it was sent
    back. `gaps` between two tokens, and how many had each.
    """

    arrival: "Numbers"
    started: "Numbers"
    first_token: "Numbers"
    finished: "Numbers"
    input_tokens: "Numbers"
    output_tokens: "Numbers"
    evicted: "Numbers"
    chosen: "Numbers"
    seconds: float
    busy_seconds: float
    running_seconds: float
    passes: int
    decoding_passes: int
    decoded_tokens: int
    computed_prompt_tokens: int
    gaps: "Numbers"
    gap_counts: "Numbers"

    def after(self, share: float) -> "Simulated":
        """The figures without the first `share` of the requests, in which the replica fills up."""
        import numpy as np

        return replace(self, chosen=np.arange(len(self.arrival)) >= share * len(self.arrival))

    def delayed(self, seconds: float) -> "Simulated":
        """As the client sees it, to whom each answer takes so much longer on its way in and back."""
        return replace(self, first_token=self.first_token + seconds, finished=self.finished + seconds)

    @property
    def ttft(self) -> Quantiles:
        """Seconds from a request to the first token of its answer."""
        return quantiles((self.first_token - self.arrival)[self.chosen])

    @property
    def queueing(self) -> Quantiles:
        """Seconds from a request to the first pass that works on it."""
        return quantiles((self.started - self.arrival)[self.chosen])

    @property
    def end_to_end(self) -> Quantiles:
        return quantiles((self.finished - self.arrival)[self.chosen])

    @property
    def tpot(self) -> Quantiles:
        """Seconds of a token after the first, of each request: (end-to-end - TTFT) / (output tokens - 1)."""
        return quantiles(self._tpot[self.chosen & (self.output_tokens > 1)])

    @property
    def itl(self) -> Quantiles:
        """Seconds between two tokens, of all tokens; a request that was sent back waits longer, which is in its TPOT
        alone.
        """
        return weighted_quantiles(self.gaps, self.gap_counts)

    @property
    def _tpot(self) -> "Numbers":
        import numpy as np

        return (self.finished - self.first_token) / np.maximum(self.output_tokens - 1, 1)

    @property
    def span(self) -> float:
        """Seconds from the first of the chosen requests to the end of the last answer."""
        return float(self.finished.max() - self.arrival[self.chosen].min())

    @property
    def output_tokens_per_second(self) -> float:
        return float(self.output_tokens[self.chosen].sum()) / self.span

    @property
    def requests_per_second(self) -> float:
        return int(self.chosen.sum()) / self.span

    def goodput(self, ttft: float | None = None, tpot: float | None = None) -> tuple[float, float]:
        """(share, requests a second) of the requests that keep within both limits [seconds]."""
        import numpy as np

        within_limits = (self.first_token - self.arrival <= (np.inf if ttft is None else ttft)) & (
            (self._tpot <= (np.inf if tpot is None else tpot)) | (self.output_tokens == 1)
        )
        good = int((within_limits & self.chosen).sum())
        return good / int(self.chosen.sum()), good / self.span

    @property
    def mean_running(self) -> float:
        """Requests that the engine works on, over all of the time."""
        return self.running_seconds / self.seconds

    @property
    def mean_batch(self) -> float:
        """Requests that decode in a pass, of passes that decode."""
        return self.decoded_tokens / max(self.decoding_passes, 1)

    @property
    def preemptions(self) -> int:
        return int(self.evicted.sum())

    @property
    def utilization(self) -> float:
        """Share of the time in which a pass runs."""
        return self.busy_seconds / self.seconds


def simulated(engine: "Engine") -> Simulated:
    """The figures of an engine that has run."""
    import numpy as np

    return Simulated(
        arrival=np.array(engine.arrival),
        started=np.array(engine.started),
        first_token=np.array(engine.first_token),
        finished=np.array(engine.finished),
        input_tokens=np.array(engine.inputs),
        output_tokens=np.array(engine.outputs),
        evicted=np.array(engine.evicted),
        chosen=np.ones(engine.total, dtype=bool),
        seconds=engine.now,
        busy_seconds=engine.busy,
        running_seconds=engine.running_seconds,
        passes=engine.passes,
        decoding_passes=engine.counter,
        decoded_tokens=engine.decoded,
        computed_prompt_tokens=engine.prompt_tokens,
        gaps=np.array(engine.gaps),
        gap_counts=np.array(engine.gap_counts),
    )


def quantiles(values: "Numbers") -> Quantiles:
    """Of nothing: not a number."""
    import numpy as np

    if not len(values):
        return Quantiles(mean=float("nan"), p50=float("nan"), p90=float("nan"), p99=float("nan"))
    p50, p90, p99 = np.percentile(values, (50, 90, 99)).tolist()
    return Quantiles(mean=float(values.mean()), p50=p50, p90=p90, p99=p99)


def weighted_quantiles(values: "Numbers", counts: "Numbers") -> Quantiles:
    """As if each value were there as often as `counts` says."""
    import numpy as np

    order = np.argsort(values)
    until = np.cumsum(counts[order])
    if not len(values) or not until[-1]:
        return quantiles(values[:0])
    p50, p90, p99 = (float(values[order][np.searchsorted(until, share * until[-1])]) for share in (0.5, 0.9, 0.99))
    return Quantiles(mean=float((values * counts).sum() / until[-1]), p50=p50, p90=p90, p99=p99)

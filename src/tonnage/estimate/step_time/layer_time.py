"""Seconds of one micro-batch through one layer of each kind: kernels, waits for the host, and what ranks send each
other inside.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from tonnage.architectures import Block
from tonnage.estimate.hardware.network import Network, Sending
from tonnage.estimate.hardware.rates import Rates
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.memory import Step
from tonnage.estimate.step_time.kernel_time import KernelTime
from tonnage.estimate.step_time.passes import Passes
from tonnage.estimate.step_time.unsaid import unsaid
from tonnage.kernel.formula import Number, is_any, maximum
from tonnage.tape import Exchange, Extent, Group, Layer, Pass, Work

FULL_GRAPH = "full"  # the host replays a whole step


class LayerTime:
    """The layers of a step, each kind once."""

    def __init__(self, step: Step, rates: Rates):
        assert step.cluster is not None
        self.step, self.plan, self.rates = step, step.plan, rates
        self.kernels = KernelTime(step, rates)
        self.network = Network(step.cluster, rates)
        self._sent: dict[tuple[object, ...], Sending] = {}

    # ---- layers ----

    @cached_property
    def layers(self) -> dict[Block, Passes]:
        """One micro-batch through one layer of each kind."""
        return {
            block: self._passes((*layer.work, *self._unsaid(block, layer)), tapes.window_of(block))
            for block, layer in self.step.layers.items()
        }

    def _unsaid(self, block: Block, layer: Layer) -> Iterator[Work]:
        """Exchanges of groups of ranks of which the layer's code says nothing."""
        said = {work.exchange.group for work in layer.work if work.exchange is not None}
        missing = {group for group, (ranks, _) in self.groups.items() if is_any(ranks > 1)} - said
        passes: tuple[Pass, ...] = ("forward", *(("again",) if self.plan.recompute == "full" else ()), "backward")
        return unsaid(block, self.step.model.hidden_size, self.step.recipe.activation_bytes, missing, passes)

    def _passes(self, done: Sequence[Work], window: int | None) -> Passes:
        made = Passes()
        counts: defaultdict[str, Number] = defaultdict(int)
        for work in done:
            if work.exchange is not None:
                beside, sending = self._beside(work.exchange), self._sending(work.exchange, work)
                seconds = sending.seconds * (1 - beside)
                made.sent[work.when, work.exchange.group].add(seconds, 0, sending.sent, hidden=sending.seconds * beside)
            else:
                counts[work.when] += self._asked(work)
                spent = self.kernels.seconds(work, window)
                made.kernels[work.when, work.kind].add(*spent)
                made.weights = made.weights + spent[0] if work.wgrad else made.weights
        if self.plan.cuda_graph != FULL_GRAPH:
            self._wait(made, counts, any(work.kind == "experts" and work.per.unit == "row" for work in done))
        return made

    def _asked(self, work: Work) -> Number:
        """Kernels that the host asks for: of experts one after the other, of what a graph replays none."""
        if work.kind == "experts":
            return self.rates.expert_kernels * self.kernels.experts
        return 0 if "attn" in self._replayed else work.kernels

    @cached_property
    def _replayed(self) -> frozenset[str]:
        """Modules that graphs replay."""
        return frozenset(self.plan.cuda_graph.split(","))

    def _wait(self, made: Passes, counts: dict[str, Number], routes: bool) -> None:
        """Kernels start no faster than the host asks for them; a router asks for many small ones."""
        r = self.rates
        waits = r.alltoall if self.plan.moe_token_dispatcher_type == "alltoall" else 1
        asks = routes and "moe_router" not in self._replayed
        more = r.router_kernels * waits if asks else 0
        for when, count in counts.items():
            made.waits[when] = maximum((count + more) * r.host - made.computing(when), 0)

    @cached_property
    def groups(self) -> dict[Group, tuple[Number, Number]]:
        """Ranks of a group that exchanges inside of layers, and how far apart they are: the order in which all
        runtimes number ranks.
        """
        t, q = self.plan.tensor_parallel_size, self.plan.expert_tensor_parallel_size
        return {
            "tensor parallel": (t, 1),
            "context parallel": (self.plan.context_parallel_size, t),
            "expert parallel": (self.plan.expert_parallel_size, q),
            "expert tensor parallel": (q, 1),
        }

    def _sending(self, exchange: Exchange, work: Work) -> Sending:
        """Seconds and bytes of a rank; many exchanges of a layer are alike."""
        key = exchange.group, exchange.collective, *work.bytes.items()
        if key not in self._sent:
            self._sent[key] = self._sending_of(exchange, work)
        return self._sent[key]

    def _sending_of(self, exchange: Exchange, work: Work) -> Sending:
        group, collective = exchange.group, exchange.collective
        ranks, stride = self.groups[group]
        size = self.kernels.moved(work)
        if self._is_part(exchange, next(iter(work.bytes))):
            size = size * ranks
        if group == "expert parallel" and self.plan.moe_token_dispatcher_type == "flex":
            return self.network.dispatch(size, ranks, stride, self.kernels.chosen)
        # around a ring each rank's part passes all others, as in a gather
        return self.network.collective("all_gather" if collective == "send" else collective, size, ranks, stride)

    def _is_part(self, exchange: Exchange, extent: Extent) -> bool:
        """Whether the bytes of an exchange are of what one rank has, not of all that the group has."""
        if exchange.group == "context parallel":
            return exchange.collective != "all_to_all"
        if exchange.group == "expert tensor parallel":
            return extent.split == "expert"
        return exchange.group == "tensor parallel" and extent.split == "whole" and self.step.sizes.sequence_parallel

    def _beside(self, exchange: Exchange) -> float:
        """The share of an exchange that runs beside compute."""
        plan = self.plan
        hides = {
            "tensor parallel": plan.tp_comm_overlap or plan.async_tensor_parallel,
            "context parallel": exchange.beside,
            "expert parallel": plan.overlap_moe_expert_parallel_comm,
        }
        return self.rates.hidden if hides.get(exchange.group) else 0

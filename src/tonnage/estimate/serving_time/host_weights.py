"""Seconds of what stays in host memory while a model is served: weights that cross the link, or that it multiplies."""

from tonnage.estimate.serving.host_experts import usual_cores
from tonnage.estimate.serving_time.work import Experts, Work
from tonnage.formulas import passes as f
from tonnage.formulas.time import compute_seconds, memory_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number, maximum, minimum
from tonnage.kernel.message import Message
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

# Of a host's memory bandwidth that programs read at: STREAM, copy to triad 73 to 79 % (Texas Instruments, SPRAD45A and
# SPRACV1B, DDR4).
HOST_SHARE = 0.77


class HostWeights:
    """What of a replica's layers its accelerators do not hold. `layers`, `experts`: the share of all layers, and of
    layers whose experts are there.
    """

    def __init__(self, plan: ServingPlan, cluster: Cluster, works: tuple[Work, ...]):
        total = sum(work.layers for work in works)
        self.dense = sum(work.dense_bytes for work in works)
        experts = sum(
            mixture.layers * mixture.num_experts * mixture.bytes for work in works for mixture in work.experts
        )
        self.all_bytes = self.dense + experts / plan.expert_parallel_size  # of weights of a rank of each stage
        self.plan, self.link = plan, cluster.accelerator.host_link
        keeps = any(mixture.host_bytes for work in works for mixture in work.experts)
        self.rules = serving_runtime(plan.engine, plan.engine_version).host_experts if keeps else None
        self.name = cluster.accelerator.name
        on_accelerator = plan.host.layers_on_accelerator
        self.layers: Number = 0 if on_accelerator is None else maximum(total + 1 - on_accelerator, 0) / (total + 1)
        self.experts: Number = maximum(self.layers, minimum(plan.host.expert_layers_on_host / max(total, 1), 1))
        self.is_used = (
            bool(plan.host.weights_on_host_bytes) or on_accelerator is not None or bool(plan.host.expert_layers_on_host)
        )

    def expert_seconds(self, part: Experts, tokens: Number) -> Number:
        """Seconds in which the processor multiplies one layer's experts that no accelerator holds: it reads those that
        are chosen, and computes meanwhile.
        """
        assert self.rules is not None
        away = 1 - self.plan.host.gpu_experts / part.num_experts
        touched = f.experts_touched.evaluate(E=part.num_experts, k_top=part.top_k, T=tokens)
        bandwidth = self._bandwidth()
        cores = self.plan.host.host_cores or usual_cores(self.rules, bandwidth)
        read = memory_seconds.evaluate(M=touched * away * part.host_bytes, W=bandwidth, u=self.rules.bandwidth_share)
        rows = tokens * part.top_k * away
        math = compute_seconds.evaluate(
            C=rows * part.host_flops, n=cores, P=self.rules.method(part.host_method).core_flops, u=1
        )
        return f.product_seconds.evaluate(tau_read=read, tau_math=math)

    def load_seconds(self, part: Experts) -> Number:
        """Seconds in which one layer's experts come onto the accelerators: the processor writes them into pinned
        buffers, each rank copies its part.
        """
        assert self.rules is not None
        away = part.num_experts - self.plan.host.gpu_experts
        written = self._bandwidth() * self.rules.host_share
        copied = self._link_rate() * self.rules.link_share * self.plan.tensor_parallel_size
        if self.rules.overlaps_loading:
            rate = minimum(written, copied)
        else:
            rate = f.unpinned_bandwidth.evaluate(W_host=written, W=copied)
        return memory_seconds.evaluate(M=away * part.host_bytes, W=rate, u=1)

    def seconds(self, experts: Number, prompt_tokens: Number) -> Number:
        """Seconds of a pass that touches `experts` bytes of experts' weights beside the others, as if all were on the
        accelerators of a rank.
        """
        if not self.is_used:
            return 0.0
        moved = minimum(self.plan.host.weights_on_host_bytes * self.plan.pipeline_parallel_size, self.all_bytes)
        streamed = memory_seconds.evaluate(M=moved, W=self._link_rate(), u=1) if moved else 0.0
        here = self.dense * self.layers + experts * self.experts
        return streamed + (
            memory_seconds.evaluate(M=here, W=self._rate(prompt_tokens), u=1) if self._multiplies else 0.0
        )

    @property
    def _multiplies(self) -> bool:
        return self.plan.host.layers_on_accelerator is not None or self.plan.host.expert_layers_on_host > 0

    def _rate(self, prompt_tokens: Number) -> Number:
        """Bytes a second: of the host's memory in decoding; a prompt's weights cross the link, from memory that is not
        pinned, to where the accelerator multiplies them.
        """
        read = self._bandwidth() * HOST_SHARE
        to_link = f.unpinned_bandwidth.evaluate(W_host=read, W=self._link_rate()) if self.link is not None else read
        return to_link * (prompt_tokens > 0) + read * (prompt_tokens == 0)

    def _bandwidth(self) -> Number:
        """Bytes a second of the host's memory."""
        own = self.plan.host.host_bandwidth
        if own is None:
            raise MissingDatum(
                Message(
                    "the time of layers in host memory needs {@host_bandwidth}, bytes a second of the host's "
                    "memory (two channels of DDR5-5600: 89.6 GB/s)."
                )
            )
        return own

    def _link_rate(self) -> float:
        if self.link is None:
            raise MissingDatum(
                "no source gives the host link of {name}: weights in host memory cross it in every pass.",
                name=self.name,
            )
        return self.link.bytes_per_second

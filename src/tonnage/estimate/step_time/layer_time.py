"""Seconds of one micro-batch through the layers of a stage: kernels, waits for the host, and what ranks send each
other inside. What spends them is kept by pass, and shown as a tree.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, cached_property

from tonnage.architectures import Block
from tonnage.estimate.hardware.network import Network, Sending
from tonnage.estimate.hardware.rates import Rates
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.memory import Step
from tonnage.estimate.plan.schedule import Times
from tonnage.estimate.step.rank import first_of
from tonnage.estimate.step_time.kernel_time import KINDS, KernelTime
from tonnage.formulas import time as f
from tonnage.kernel.formula import Formula, Number, is_any, maximum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.ops import Attention, LatentAttention, MoE
from tonnage.tape import Exchange, Extent, Group, Layer, Pass, Work

FULL_GRAPH = "full"  # the host replays a whole step
WHEN = ("forward", "again", "backward")
PASSES = {"forward": "forward", "again": "run again", "backward": "backward"}
SCRIPT = "scripts/fit_rates.py"


def _plus(total: Number, more: Number, count: Number) -> Number:
    """total + count * more, without walking arrays for a zero or a one."""
    if type(more) is int and more == 0:
        return total
    if type(count) is not int or count != 1:
        more = count * more
    return more if type(total) is int and total == 0 else total + more


UNREAD = ("product", "experts")  # kinds of the last operation of a layer


class Spent:
    """Seconds of kernels of one kind, with their FLOP and the bytes that they move."""

    __slots__ = ("bytes", "flops", "hidden", "seconds")

    def __init__(self) -> None:
        self.seconds: Number = 0
        self.flops: Number = 0
        self.bytes: Number = 0
        self.hidden: Number = 0

    def add(self, seconds: Number, flops: Number, moved: Number, count: Number = 1, hidden: Number = 0) -> None:
        """More of it; `hidden`: seconds of links that run beside kernels, and are not in `seconds`."""
        self.seconds = _plus(self.seconds, seconds, count)
        self.bytes = _plus(self.bytes, moved, count)
        if type(flops) is not int or flops:
            self.flops = _plus(self.flops, flops, count)
        if type(hidden) is not int or hidden:
            self.hidden = _plus(self.hidden, hidden, count)


class Passes:
    """One micro-batch through some layers. `kernels`: by pass and kind; `sent`: bytes and exposed seconds by pass and
    group of ranks;
    `waits`: seconds by pass in which kernels wait for the host. Its sums are read when all is added.
    """

    def __init__(self) -> None:
        self.kernels: defaultdict[tuple[str, str], Spent] = defaultdict(Spent)
        self.sent: defaultdict[tuple[str, str], Spent] = defaultdict(Spent)
        self.waits: defaultdict[str, Number] = defaultdict(int)
        self.weights: Number = 0  # seconds of backward that make gradients of weights

    def add(self, other: "Passes", count: Number = 1) -> None:
        """Another's, `count` times."""
        for mine, theirs in ((self.kernels, other.kernels), (self.sent, other.sent)):
            for key, spent in theirs.items():
                mine[key].add(spent.seconds, spent.flops, spent.bytes, count, spent.hidden)
        for when, seconds in other.waits.items():
            self.waits[when] = _plus(self.waits[when], seconds, count)
        self.weights = _plus(self.weights, other.weights, count)

    def computing(self, when: str) -> Number:
        """Seconds of kernels, and of waiting for the host, in a pass."""
        return sum((spent.seconds for (at, _), spent in self.kernels.items() if at == when), self.waits[when])

    def sending(self, when: str) -> Number:
        """Seconds of a pass in which only links work."""
        return sum((spent.seconds for (at, _), spent in self.sent.items() if at == when), 0)

    def only(self, when: str) -> "Passes":
        """Forward, recomputation or backward alone, as `when` says."""
        one_pass = Passes()
        for mine, theirs in ((self.kernels, one_pass.kernels), (self.sent, one_pass.sent)):
            theirs.update({key: spent for key, spent in mine.items() if key[0] == when})
        one_pass.waits[when] = self.waits[when]
        return one_pass

    @cached_property
    def seconds(self) -> Number:
        """Seconds of all passes."""
        return self._forward + sum(self.computing(when) + self.sending(when) for when in WHEN[1:])

    @cached_property
    def _forward(self) -> Number:
        return self.computing("forward") + self.sending("forward")

    @cached_property
    def times(self) -> Times:
        """By what a schedule puts apart; exchanges and what is run again count with the gradients of inputs."""
        return Times(self._forward, self.seconds - self._forward - self.weights, self.weights)


class LayerTime:
    """The layers of a step, each kind once, and the tree of what a micro-batch spends in them."""

    def __init__(self, step: Step, rates: Rates):
        assert step.cluster is not None
        self.step, self.plan, self.rates = step, step.plan, rates
        self.kernels = KernelTime(step, rates)
        self.network = Network(step.cluster, rates, stated=step.plan.links)
        self._sent: dict[tuple[object, ...], Sending] = {}

    # ---- layers ----

    @cached_property
    def layers(self) -> dict[Block, Passes]:
        """One micro-batch through one layer of each kind."""
        return {
            block: self._passes((*self._read(layer.work), *self._unsaid(block, layer)), tapes.window_of(block))
            for block, layer in self.step.layers.items()
        }

    def _read(self, done: Sequence[Work]) -> Sequence[Work]:
        """What a layer runs: XLA, which compiles for TPUs, leaves out what nothing reads, as the last product of a
        layer that runs again.
        """
        last = max((i for i, work in enumerate(done) if work.when == "again" and work.kind in UNREAD), default=None)
        if self.kernels.chip.kind != "tpu" or last is None:
            return done
        return (*done[:last], *done[last + 1 :])

    # ---- the tree ----

    def tree(self, passes: Passes) -> list[Term]:
        """Seconds of a micro-batch, a Term for each pass: every entry of its kernels, waits and exchanges."""
        terms = []
        for when, name in PASSES.items():
            parts = [
                self._kernels(kind, spent)
                for (at, kind), spent in passes.kernels.items()
                if at == when and _some(spent.seconds)
            ]
            if _some(passes.waits[when]):
                parts.append(self._waiting(passes.waits[when]))
            parts += [
                self.sent(_not_hidden(group), spent.seconds, spent.bytes)
                for (at, group), spent in passes.sent.items()
                if at == when and _some(spent.bytes)
            ]
            if parts:
                terms.append(Term.sum(name, *parts))
        return terms

    def _kernels(self, kind: str, spent: Spent) -> Term:
        """Kernels of one kind at the share of the datasheet's peak that all of them together reach."""
        name, kernels = KINDS[kind], self.kernels
        if kind == "move":
            bandwidth = kernels.bandwidth / self.rates.memory
            share = spent.bytes / (bandwidth * spent.seconds)
            return _reached(name, f.memory_seconds, spent.seconds, M=spent.bytes, W=bandwidth, u=share)
        peak = kernels.chip.peak(kernels.wide)
        share = spent.flops / (peak * spent.seconds)
        return _reached(name, f.compute_seconds, spent.seconds, C=spent.flops, n=1, P=peak, u=share)

    def _waiting(self, seconds: Number) -> Term:
        return Term.by(
            "waiting for the host",
            seconds,
            "seconds",
            basis="analytic",
            source=f"fitted: {SCRIPT}",
            version="1",
            procedure="kernels asked for, times the host's seconds for one, less the seconds that kernels run",
            seconds_per_kernel=self.rates.host,
        )

    def sent(self, name: str, seconds: Number, size: Number) -> Term:
        """Seconds that ranks wait for `size` bytes on links."""
        return Term.by(
            name,
            seconds,
            "seconds",
            basis="analytic",
            source="Thakur2005: a message of n bytes takes alpha + n beta",
            version="1",
            procedure="latency and bandwidth over the links of a group of ranks, less what runs beside compute",
            bytes=size,
            hidden=self.rates.hidden,
        )

    # ---- kernels and exchanges ----

    def _unsaid(self, block: Block, layer: Layer) -> Iterator[Work]:
        """Exchanges of groups of ranks of which the layer's code says nothing."""
        declared = {work.exchange.group for work in layer.work if work.exchange is not None}
        missing = {group for group, (ranks, _) in self.groups.items() if is_any(ranks > 1)} - declared
        passes: tuple[Pass, ...] = ("forward", *(("again",) if self.plan.recompute == "full" else ()), "backward")
        deals = first_of(self.plan.context_parallel_size) if self.step.setting.deals_heads else 0
        width = self.step.recipe.activation_bytes
        return _exchanges(block, self.step.model.hidden_size, width, missing, passes, deals)

    def _passes(self, done: Sequence[Work], window: int | None) -> Passes:
        passes = Passes()
        counts: defaultdict[str, Number] = defaultdict(int)
        for work in done:
            if work.exchange is not None:
                hidden_share, sending = self._beside(work.exchange), self._sending(work.exchange, work)
                seconds = sending.seconds * (1 - hidden_share)
                passes.sent[work.when, work.exchange.group].add(
                    seconds, 0, sending.sent, hidden=sending.seconds * hidden_share
                )
            else:
                counts[work.when] += self._asked(work)
                spent = self.kernels.seconds(work, window)
                passes.kernels[work.when, work.kind].add(*spent)
                passes.weights = passes.weights + spent[0] if work.wgrad else passes.weights
        if self.plan.megatron.cuda_graph != FULL_GRAPH:
            self._wait(passes, counts, any(work.kind == "experts" and work.per.unit == "row" for work in done))
        return passes

    def _asked(self, work: Work) -> Number:
        """Kernels that the host asks for: of experts one after the other, of what a graph replays none."""
        if work.kind == "experts":
            return self.rates.expert_kernels * self.kernels.experts
        return 0 if "attn" in self._replayed else work.kernels

    @cached_property
    def _replayed(self) -> frozenset[str]:
        """Modules that graphs replay."""
        return frozenset(self.plan.megatron.cuda_graph.split(","))

    def _wait(self, passes: Passes, counts: dict[str, Number], routes: bool) -> None:
        """Kernels start no faster than the host asks for them; a router asks for many small ones."""
        r = self.rates
        waits = r.alltoall if self.plan.megatron.moe_token_dispatcher_type == "alltoall" else 1
        asks = routes and "moe_router" not in self._replayed
        more = r.router_kernels * waits if asks else 0
        for when, count in counts.items():
            passes.waits[when] = maximum((count + more) * r.host - passes.computing(when), 0)

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
        key = exchange.group, exchange.collective, exchange.along, *work.bytes.items()
        if key not in self._sent:
            self._sent[key] = self._sending_of(exchange, work)
        return self._sent[key]

    def _sending_of(self, exchange: Exchange, work: Work) -> Sending:
        group, collective = exchange.group, exchange.collective
        ranks, stride = self.groups[group]
        size = self.kernels.moved(work)
        if self._is_part(exchange, next(iter(work.bytes))):
            size = size * ranks
        if group == "expert parallel" and self.plan.megatron.moe_token_dispatcher_type == "flex":
            return self.network.dispatch(size, ranks, stride, self.kernels.routing, exchange.along)
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
        # torch.compile finds no all-gather before a product whose operand has a scale for each row: the gather is in
        # 16 bit, and the cast lies between them (pytorch/pytorch, issue 149990)
        fuses = plan.kernels.float8 != "rowwise" or exchange.collective != "all_gather"
        hides = {
            "tensor parallel": plan.megatron.tp_comm_overlap or (plan.kernels.async_tensor_parallel and fuses),
            "context parallel": exchange.beside,
            "expert parallel": plan.megatron.overlap_moe_expert_parallel_comm,
        }
        return self.rates.hidden if hides.get(exchange.group) else 0


def _some(value: Number) -> bool:
    """Whether something is not 0, or of an array anything."""
    return bool(value.any()) if hasattr(value, "ndim") else bool(value)


@cache
def _not_hidden(group: str) -> Message:
    return Message("{group}, not hidden", group=group)


def _reached(name: str, formula: Formula, seconds: Number, **inputs: Number) -> Term:
    """A leaf whose share `u` is what its seconds come to: the formula gives them again."""
    return Term(name, seconds, formula.unit, "leaf", formula.basis, formula, formula.source, inputs)


# What ranks send each other in a layer whose code does not say so: the least that a layer which is cut like that must
# exchange. The tapes of Megatron, torchtitan and nanotron note their own exchanges; code that others cut from outside
# (transformers under FSDP2, DeepSpeed's tensor parallelism, context and expert parallelism of FSDP2) is counted here.

WHOLE, CUT = Extent("token", "gathered"), Extent("token", "tensor")
RING = Exchange("context parallel", "send", beside=True)
DEAL = Exchange("context parallel", "all_to_all")
SUM, ROWS = Exchange("tensor parallel", "all_reduce"), Exchange("expert parallel", "all_to_all")


def _exchanges(
    block: Block, hidden: int, width: float, missing: set[Group], passes: tuple[Pass, ...], deals: int = 0
) -> Iterator[Work]:
    """Exchanges of one layer of these groups, of numbers of `width` bytes; `passes`: in which the layer runs,
    backward among them. `deals`: context ranks that deal out heads; 0: they pass keys and values around.
    """
    for op in block.ops:
        for when in passes:
            backward = when == "backward"
            if SUM.group in missing and any(weight.split in ("tensor", "kv") for weight in op.weights()):
                # Megatron's f and g (Shoeybi2019, sec. 3): a sum of outputs forward, of gradients of inputs backward
                yield _sent(SUM, when, WHOLE, width * hidden)
            if RING.group in missing and deals and (dealt := _heads_dealt(op, deals)):
                # queries, keys and values of all tokens for some heads, and their output back; backward the gradients
                yield from [_sent(DEAL, when, CUT, width * numbers) for numbers in dealt]
            elif RING.group in missing and (numbers := _keys_and_values(op)):
                # keys and values of the others; backward them again, and their gradients
                yield _sent(RING, when, CUT, width * numbers * (2 if backward else 1))
            if ROWS.group in missing and isinstance(op, MoE):
                # to the experts and back
                yield from [_sent(ROWS, when, WHOLE, width * op.top_k * (op.latent_size or op.hidden_size))] * 2


def _heads_dealt(op: object, ranks: int) -> tuple[float, ...]:
    """Numbers for each token that go to the ranks of its heads, and that come back: of fewer key/value heads than
    ranks each is sent to several (Jacobs2023, sec. 3; ms-swift, swift/sequence_parallel/ulysses.py).
    """
    if isinstance(op, Attention) and op.memory_tokens is None:
        keys_and_values = (op.key_width + op.value_width) * max(1, ranks / (op.kv_heads or op.heads))
        return op.query_width + keys_and_values, op.query_width
    if isinstance(op, LatentAttention):
        wide = op.heads * (op.qk_nope_head_dim + op.qk_rope_head_dim)
        return 2 * wide + op.heads * op.v_head_dim, op.heads * op.v_head_dim
    return ()


def _keys_and_values(op: object) -> int:
    """Numbers for each token that another rank's queries need."""
    if isinstance(op, Attention):
        return op.key_width + op.value_width if op.memory_tokens is None else 0
    if isinstance(op, LatentAttention):
        return op.heads * (op.qk_nope_head_dim + op.qk_rope_head_dim + op.v_head_dim)
    return 0


def _sent(exchange: Exchange, when: Pass, extent: Extent, size: float) -> Work:
    return Work(exchange.group, "exchange", when, bytes={extent: size}, exchange=exchange)

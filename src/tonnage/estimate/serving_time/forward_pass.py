"""Seconds of one forward pass of a replica: what its requests and prompts make each kernel read and compute. All
numbers may be arrays.
"""

from functools import reduce
from typing import Any, NamedTuple

from tonnage.estimate.hardware.network import Network
from tonnage.estimate.hardware.rates import rates as training_rates
from tonnage.estimate.hardware.routing import Routing
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving_time.chip_rates import half_sum_peak, integer_lanes, lane_peak, scaled_integer_peak
from tonnage.estimate.serving_time.host_weights import HostWeights
from tonnage.estimate.serving_time.rates import ServingRates
from tonnage.estimate.serving_time.work import Attending, Experts, Products, Work
from tonnage.formulas import passes as f
from tonnage.formulas.pools import unlike_round_seconds, unlike_step_seconds
from tonnage.formulas.time import compute_seconds, memory_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number, maximum, minimum
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

ACTIVATION = 2  # bytes
OPERAND = {"fp8": 1.0, "int8": 1.0, "fp6": 0.75, "fp4": 0.5, "nvfp4": 0.5, "mxfp4": 0.5}  # bytes of what is multiplied
TINY = 1e-12  # of a token: in place of none, to divide by
# Kernels of fused experts besides those of a layer that are counted elsewhere (vLLM, fused_moe.py; SGLang's is like
# it): top-k of the router, the sort by experts, two grouped products, the activation, the sum; two casts for narrow.
MIXTURE_LAUNCHES, QUANTISED_LAUNCHES = 6, 2
NEVER = 1e9  # seconds of a way that is not there
WIDE = ("bf16", "fp16", "fp32")  # what attention is computed in, the first that an accelerator has


class Spent(NamedTuple):
    """Seconds of a pass by what spends them, of all stages that a token passes."""

    products: Number
    experts: Number
    attention: Number
    recurrences: Number
    kernels: Number
    exchanges: Number
    engine: Number
    adapters: Number = 0.0
    encoder: Number = 0.0
    between: Number = 0.0

    @property
    def seconds(self) -> Number:
        return sum(self)


class MicroBatches(NamedTuple):
    """How many micro-batches the prompts of a pass make, and how many its requests that decode. `drains`: the
    pipeline runs empty before the next pass begins; else others follow at once.
    """

    prompts: Number
    requests: Number
    drains: bool


class Fixed(NamedTuple):
    """What products of weights take whatever their rows: `peak` [FLOP/s] and the `share` of it that is reached;
    `reads`: the share of the memory's bandwidth; `expands`: weights are unpacked into tiles; `read`, `least`,
    `launched`: seconds of matrix products to be read, of their arithmetic at least, and of their kernels.
    """

    peak: float
    share: float
    reads: float
    expands: bool
    read: Number = 0.0
    least: Number = 0.0
    launched: Number = 0.0


class PassTime:
    """Passes of one replica of `plan`: `works` of its stages. `tokens_each`: of an answer that a pass gives each
    request.
    """

    tokens_each: Number = 1
    #: What the site's own runs say of the replica's times (times.SiteTimes).
    site: Any = None
    #: Seconds in which towers encode the images and sounds of one prompt, and its tokens (towers.Encoding).
    encoding: Any = None
    encoded_prompt: Number = 1

    def __init__(
        self, works: tuple[Work, ...], plan: ServingPlan, cluster: Cluster, hidden_size: int, rates: ServingRates
    ):
        self.works, self.plan, self.hidden_size, self.rates = works, plan, hidden_size, rates
        self.kinds = tuple({id(work): work for work in works}.values())  # stages that do the same
        self.chip = cluster.accelerator
        if self.chip.memory.bytes_per_second is None:
            raise MissingDatum(
                "no source gives the memory bandwidth of {chip}: the time of a pass needs it.", chip=self.chip.name
            )
        self.bandwidth = self.chip.memory.bytes_per_second
        self.shares, _ = training_rates().of(self.chip.generation)
        self.clock = training_rates().clock(self.chip) if "bf16" in self.chip.dense_flops else 1.0
        self.network = Network(cluster, stated=plan.links)
        self.runtime = serving_runtime(plan.engine, plan.engine_version)
        passes_in = self.runtime.passes_in
        maker = "" if self.chip.kind == "cpu" else self.chip.vendor  # kernels of a maker's GPUs say nothing of its CPUs
        self.engine = rates.engine(passes_in or plan.engine, "" if passes_in else plan.engine_version, maker)
        self.is_measured = rates.is_measured(self.chip) or self.chip.generation in self.engine.generations
        # rows that products are filled up to, and seconds of expanding a weight of 4 bits
        has_tiles = self.chip.vendor == "NVIDIA" and self.chip.kind == "gpu"
        self.tile_rows = self.runtime.tile_rows if has_tiles else 1
        self.packed_tile_rows = self.runtime.packed_tile_rows if has_tiles else 1
        lanes = integer_lanes(self.chip) if has_tiles and self.runtime.expands_in_lanes else None
        self.seconds_to_expand = rates.expand / lanes if lanes else 0.0
        self.fills_tiles = self.runtime.fills_tiles and self.chip.vendor == "NVIDIA"
        # rows up to which weights are multiplied as they are stored; Metal's kernels expand them on the chip
        self.stored_rows = self.runtime.stored_rows.get(self.chip.vendor, 0)
        # data centre Blackwell, SM100: cards of SM120 have no such kernels
        self.fuses_mixtures = (
            self.runtime.fuses_mixtures
            and self.chip.generation.startswith("Blackwell")
            and self.chip.scale_up is not None
        )
        limits = batch_limits(self.runtime, plan, self.chip)
        self.budget = limits.tokens * plan.attention_data_parallel_size
        self.host = HostWeights(plan, cluster, works)
        # Whether prompts can be timed: a source gives a peak of 16 or 32 bit. Without one, passes of a few tokens can
        # be, which reading bounds.
        self.knows_prompts = any(name in self.chip.dense_flops for name in WIDE)
        self._wide = next((name for name in WIDE if name in self.chip.dense_flops), "bf16")
        self._fixed: dict[int, Fixed] = {}  # by the id of products and experts of `works`, which live as long

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        """Seconds of a pass with `prompt_tokens` tokens of prompts that attend to `prompt_keys` keys in all, and with
        `requests` that decode a token each over `keys` tokens of context in all.
        """
        return self.spent(prompt_tokens, prompt_keys, requests, keys).seconds

    def spent(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Spent:
        """Seconds of a pass by what spends them. A micro-batch passes the stages of a pipeline one after the
        other, several at once.
        """
        checked = self.plan.drafting.draft_tokens + 1  # tokens of a request in a pass, with those guessed ahead
        total = self._through(prompt_tokens, prompt_keys, requests, keys)
        done = total.seconds
        tokens = prompt_tokens + requests * checked
        requested = sum(self._asked(work, tokens) for work in self.works) if self.is_eager else 0
        scheduled = self.engine.step + self.engine.request * requests
        if self.runtime.passes_ahead:  # while the pass before runs
            scheduled = maximum(scheduled - done, 0)
        waits = maximum(requested - done, 0) + self._on_host(prompt_tokens, requests * checked) + scheduled
        encoder = self.encoding.spent.seconds / self.encoded_prompt * prompt_tokens if self.encoding else 0.0
        return total._replace(engine=waits, encoder=encoder)

    def _through(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Spent:
        """Seconds of all stages, and of what they send each other."""
        p, checked = self.plan.pipeline_parallel_size, self.plan.drafting.draft_tokens + 1
        if p == 1:
            return self.stages(prompt_tokens, prompt_keys, requests, keys)[0]
        if self._is_cut_into_ubatches:
            return self._through_ubatches(prompt_tokens, prompt_keys, requests, keys)
        m = self.micro_batches(prompt_tokens, requests)
        tokens = prompt_tokens / m.prompts + requests * checked / m.requests
        sent = self.network.send(tokens * self.hidden_size * ACTIVATION, self._width)
        parts = self.stages(
            prompt_tokens / m.prompts, prompt_keys / m.prompts, requests / m.requests, keys / m.requests
        )
        total = Spent._make(sum(seconds) for seconds in zip(*parts, strict=True))
        total = total._replace(exchanges=total.exchanges + (p - 1) * sent)
        slowest = reduce(maximum, (part.seconds for part in parts))
        if m.drains:
            latency = unlike_step_seconds.evaluate(tau=total.seconds, tau_step=slowest + sent, m=m.prompts)
        else:
            decoding = (part.seconds for part in self.stages(0, 0, requests / m.requests, keys / m.requests))
            busiest = maximum(m.prompts * slowest, m.requests * reduce(maximum, decoding))
            latency = unlike_round_seconds.evaluate(tau=total.seconds, tau_step=busiest, n_batches=1)
        return Spent._make(seconds * (latency / total.seconds) for seconds in total)

    @property
    def _is_cut_into_ubatches(self) -> bool:
        """Whether a pass is cut into micro-batches of -ub tokens, as llama.cpp does, and the next pass begins when
        all are through.
        """
        return self.runtime.cells is not None and self.runtime.cells.by_layers

    def _through_ubatches(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Spent:
        """Seconds of all stages: first the micro-batches of the requests that decode, filled up with tokens of prompts,
        then the rest of the prompts.

        Prompts that share a pass do not spread the decoding requests over more micro-batches: a pass with more tokens
        takes longer.
        """
        p, decoded = self.plan.pipeline_parallel_size, requests * (self.plan.drafting.draft_tokens + 1)
        mixed = maximum(decoded / self.budget, 1)
        filled = minimum(prompt_tokens, maximum(mixed * self.budget - decoded, 0))
        keys_each = prompt_keys / maximum(prompt_tokens, TINY)
        after = (prompt_tokens - filled) / self.budget
        first = self.stages(filled / mixed, filled * keys_each / mixed, requests / mixed, keys / mixed)
        rest = self.stages(self.budget, self.budget * keys_each, 0, 0)
        sent = [
            self.network.send(tokens * self.hidden_size * ACTIVATION, self._width)
            for tokens in ((filled + decoded) / mixed, self.budget)
        ]
        slowest, slowest_rest = (
            reduce(maximum, (part.seconds for part in parts)) + seconds
            for parts, seconds in zip((first, rest), sent, strict=True)
        )
        through, of_rest = (
            Spent._make(sum(seconds) for seconds in zip(*parts, strict=True)) for parts in (first, rest)
        )
        alone = unlike_step_seconds.evaluate(tau=through.seconds + (p - 1) * sent[0], tau_step=slowest, m=mixed)
        # those of prompts follow; where they are slower, they are what the last stages wait for
        latency = alone + after * slowest_rest + (p - 1) * minimum(after, 1) * maximum(slowest_rest - slowest, 0)
        total = Spent._make(mixed * one + after * other for one, other in zip(through, of_rest, strict=True))
        return Spent._make(seconds * (latency / total.seconds) for seconds in total)

    def micro_batches(self, prompt_tokens: Number, requests: Number) -> MicroBatches:
        """How a pass is cut for a pipeline."""
        p, engine = self.plan.pipeline_parallel_size, self.runtime
        decoded = requests * (self.plan.drafting.draft_tokens + 1)
        if engine.queues:  # each scheduler step makes one of requests that are in no other, with the budget of a pass
            prompts = minimum(maximum(prompt_tokens / self.budget, 1), p)
            return MicroBatches(prompts, minimum(maximum(requests, 1), p), drains=False)
        if self._is_cut_into_ubatches:
            cut = maximum((prompt_tokens + decoded) / self.budget, 1)
            return MicroBatches(cut, cut, drains=True)
        return MicroBatches(1, 1, drains=True)  # a model whose layers were only put on several accelerators

    def stages(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> list[Spent]:
        """Seconds of one micro-batch with these tokens and requests, on each stage by itself."""
        a, checked = self.plan.attention_data_parallel_size, self.plan.drafting.draft_tokens + 1
        sent: dict[Any, Number] = {}  # seconds of exchanges, which are alike on all stages
        spent_by_work = {
            id(work): self._stage(work, prompt_tokens, prompt_keys, requests, checked, keys, a, sent)
            for work in self.kinds
        }
        return [spent_by_work[id(work)] for work in self.works]

    def _on_host(self, prompt_tokens: Number, decoded: Number) -> Number:
        """Seconds of what stays in host memory."""
        if not self.host.is_used:
            return 0.0
        experts = sum(
            (
                self._touched(mixture, prompt_tokens + decoded) * mixture.layers
                for work in self.works
                for mixture in work.experts
            ),
            0.0,
        )
        return self.host.seconds(experts, prompt_tokens)

    def _touched(self, experts: Experts, tokens: Number) -> Number:
        """Bytes of one layer's experts on a rank that a pass reads."""
        touched = f.experts_touched.evaluate(E=experts.num_experts, k_top=experts.top_k, T=tokens)
        return touched / self.plan.expert_parallel_size * experts.bytes

    def _asked(self, work: Work, tokens: Number) -> Number:
        """Seconds in which the host asks for the kernels of a pass, where it asks for each."""
        quantised = sum(product.kernels for product in work.products if product.is_narrow)
        return self.engine.kernel * self.launches(work, tokens) + self.engine.quantised * quantised

    def launches(self, work: Work, tokens: Number) -> Number:
        """Kernels that the host asks for in a pass that no graph replays."""
        if self.runtime.eager is not None:
            return work.launches + sum((self._looped(experts, tokens) for experts in work.experts), 0.0)
        mixtures = sum(
            experts.layers * (MIXTURE_LAUNCHES + QUANTISED_LAUNCHES * experts.is_narrow) for experts in work.experts
        )
        around_cores = self.rates.latent_launches * work.latents + self.rates.recurrent_launches * work.recurrences
        return work.launches + mixtures + around_cores

    def _looped(self, experts: Experts, tokens: Number) -> Number:
        """Operations of a loop over experts, over all of them or over those that tokens chose."""
        touched = f.experts_touched.evaluate(E=experts.num_experts, k_top=experts.top_k, T=tokens)
        each = experts.num_experts if experts.loops_over_all else touched
        return experts.layers * experts.looped * each / self.plan.expert_parallel_size

    @property
    def is_eager(self) -> bool:
        """Whether the host asks for each kernel of a pass: no captured graph replays them."""
        return self.plan.enforce_eager or not self.engine.replays

    @property
    def _width(self) -> Number:
        return self.plan.tensor_parallel_size * self.plan.attention_data_parallel_size

    def _stage(
        self,
        work: Work,
        prompt_tokens: Number,
        prompt_keys: Number,
        requests: Number,
        checked: int,
        keys: Number,
        a: Number,
        sent: dict[Any, Number],
    ) -> Spent:
        decoded = requests * checked
        tokens = (prompt_tokens + decoded) / a
        products = sum((self._product(part, tokens) for part in work.products), 0.0)
        if work.head:
            products = products + sum(self._product(part, minimum(decoded / a + 1, tokens)) for part in work.head)
        experts = sum((self._mixture(part, prompt_tokens + decoded) for part in work.experts), 0.0)
        attention = sum(
            (
                self._attention(part, prompt_tokens / a, prompt_keys / a, requests / a, checked, keys / a)
                for part in work.attending
            ),
            0.0,
        )
        scans = self._scan(work, tokens, requests / a)
        kernels = work.kernels * self.rates.other * self.engine.floors + self.launches(
            work, prompt_tokens + decoded
        ) * self.engine.prompt * (prompt_tokens > 0)
        here = 1 - self.host.layers
        products, attention, scans = products * here, attention * here, scans * here
        return Spent(
            products,
            experts,
            attention,
            scans,
            kernels,
            self._exchanges(work, tokens, a, sent),
            0.0,
            self._adapters(work, tokens, (prompt_tokens + decoded) / checked),
        )

    def _adapters(self, work: Work, tokens: Number, most: Number) -> Number:
        """Products of LoRA adapters, two for each matrix or those that are multiplied as one: shrink and expand, of all
        adapters at once (vllm/lora/ops/triton_ops). `most`: requests that can each have one of their own.
        """
        adapters = self.plan.adapters
        if not adapters.lora_adapters:
            return 0.0
        used = minimum(adapters.lora_active or adapters.lora_adapters, maximum(most, 1))
        pairs = adapters.lora_rank * work.adapted
        read = memory_seconds.evaluate(M=used * pairs * ACTIVATION, W=self.bandwidth, u=self._reads(False))
        math = 2 * tokens * pairs / (self._wide_peak * self._share(self._wide, False)) if self.knows_prompts else 0.0
        return maximum(read, math) + 2 * work.adapted_products * self.rates.product * self.engine.floors

    # ---- products ----

    def _product(self, product: Products, tokens: Number) -> Number:
        key = id(product)
        fixed = self._fixed.get(key) or self._fixed.setdefault(key, self._fixed_of_product(product))
        together = self._multiplied(product, fixed, tokens, product.flops / 2, fixed.read, product.flops * tokens)
        return maximum(together, fixed.least) + fixed.launched

    def _fixed_of_product(self, product: Products) -> Fixed:
        r, fixed = self.rates, self._fixed_of(product)
        # llama.cpp multiplies weights as they are stored: nothing is expanded
        more = r.cast if product.is_narrow else r.unpack if product.is_packed and product.compute == self._wide else 0
        kernel = (r.product + more) * self.engine.floors
        read = memory_seconds.evaluate(M=product.bytes, W=self.bandwidth, u=fixed.reads)
        least = self._least_math(product, fixed.share)
        return fixed._replace(read=read, least=least, launched=product.kernels * kernel)

    def _fixed_of(self, part: Products | Experts) -> Fixed:
        expands = bool(part.scales and self.engine.unpacks and self.knows_prompts) and part.compute != self._wide
        share, reads = self._share(part.compute, part.is_packed), self._reads(part.is_packed)
        return Fixed(self._peak(part), share, reads, expands)

    def _multiplied(
        self,
        part: Products | Experts,
        fixed: Fixed,
        rows: Number,
        weights: Number,
        read: Number,
        flops: Number,
        tiles: Number = 0.0,
    ) -> Number:
        """Seconds of products of `rows` rows with so many weights, which take `read` to be read as they are stored;
        `tiles`: seconds in which their tiles are loaded.
        """
        arithmetic = maximum(self._arithmetic(flops, fixed.peak, fixed.share), tiles)
        if fixed.expands:
            arithmetic = arithmetic + self._unpacking(part, rows, weights)
        stored = f.product_seconds.evaluate(tau_read=read, tau_math=arithmetic)
        if not self.stored_rows or not part.is_packed:
            return stored
        moved = memory_seconds.evaluate(
            M=f.expanded_bytes.evaluate(n_weights=weights), W=self.bandwidth, u=self.rates.weights
        )
        half_sums = half_sum_peak(self.chip, self._wide)
        product = f.product_seconds.evaluate(tau_read=moved, tau_math=self._arithmetic(flops, half_sums, fixed.share))
        expanded = maximum(read + moved + product, stored)
        return stored + (expanded - stored) * (rows > self.stored_rows)

    def _unpacking(self, part: Products | Experts, rows: Number, weights: Number) -> Number:
        """Seconds in which weights are unpacked into tiles; kernels for few rows need none."""
        return f.unpack_seconds.evaluate(
            n_weights=weights,
            n_unpack=self.engine.unpacks,
            T=rows,
            P_lanes=lane_peak(self.chip, part.compute),
        ) * (rows > self.runtime.vector_rows)

    def _peak(self, part: Products | Experts) -> float:
        """FLOP/s at which a chip multiplies these operands; 0 where prompts have no time."""
        if not self.knows_prompts:
            return 0.0
        if part.scales and part.compute != self._wide:
            return scaled_integer_peak(self.chip, part.compute, part.scales)
        return self.chip.peak(part.compute)

    def _least_math(self, product: Products, share: float) -> Number:
        """Seconds of a product's arithmetic however few its rows: a tile is full, and every weight is expanded."""
        rows = self.packed_tile_rows if product.is_packed else self.tile_rows
        filled = self._arithmetic(product.flops * rows, self._peak(product), share) if rows > 1 else 0.0
        return maximum(filled, product.flops / 2 * self.seconds_to_expand) if product.is_expanded else filled

    def _arithmetic(self, flops: Number, peak: float, share: float) -> Number:
        """Seconds of arithmetic; nothing where no source gives a peak: reading bounds what few tokens pass on any
        machine (see `knows_prompts`).
        """
        if not self.knows_prompts:
            return 0.0
        return compute_seconds.evaluate(C=flops, n=1, P=peak, u=share)

    @property
    def _wide_peak(self) -> float:
        return self.chip.peak(self._wide) if self.knows_prompts else 0.0

    def _reads(self, is_packed: bool) -> float:
        """The share of the memory's bandwidth in which weights are read: never more than all of it."""
        share = self.rates.weights * self.engine.reads
        return min(share * self.rates.packed * self.engine.packed if is_packed else share, 1.0)

    def _share(self, compute: str, is_packed: bool) -> float:
        name = {"nvfp4": "fp4", "mxfp4": "fp4", "int8": "fp8"}.get(compute, compute)
        known = self.shares.matrix
        in_integers = is_packed and compute != self._wide  # multiplied as they are stored, in 8-bit integers
        own = self.engine.integers if in_integers else self.engine.products
        return known.get(name, known["bf16"]) * self.clock * self.rates.products * own

    def _mixture(self, experts: Experts, tokens: Number) -> Number:
        """Seconds of the routed experts of all layers that are alike. Where the engine keeps some of each layer in host
        memory, processor and accelerator multiply theirs at the same time; a pass of enough tokens loads them instead.
        """
        here, host = self._expert(experts, tokens), self.host
        if host.rules is None:
            return here * (1 - host.experts)
        share = self.plan.host.gpu_experts / experts.num_experts
        if share == 1:
            return here
        waits = experts.layers * host.rules.layer_seconds
        split = maximum(here * share, experts.layers * host.expert_seconds(experts, tokens)) + waits
        least = self.plan.host.gpu_prefill_tokens
        if not least or not host.rules.link_share:
            return split
        loaded = here + experts.layers * host.load_seconds(experts)
        return split + (loaded - split) * (tokens >= least)

    def _expert(self, experts: Experts, tokens: Number) -> Number:
        r, e = self.rates, self.plan.expert_parallel_size
        fixed = self._fixed.get(id(experts)) or self._fixed.setdefault(id(experts), self._fixed_of(experts))
        touched = f.experts_touched.evaluate(E=experts.num_experts, k_top=experts.top_k, T=tokens) / e
        read = memory_seconds.evaluate(M=touched * experts.bytes, W=self.bandwidth, u=fixed.reads)
        rows = tokens * experts.top_k / e
        rows_each = rows / maximum(touched, TINY)
        filled = f.tiled_rows.evaluate(T=rows_each) if self.fills_tiles and experts.scales else rows_each
        flops = touched * filled * experts.flops
        loaded = f.grouped_tile_bytes.evaluate(C=flops, w=OPERAND.get(experts.compute, ACTIVATION), n_reuse=r.reuse)
        tiles = memory_seconds.evaluate(M=loaded, W=self.bandwidth, u=1) if self.knows_prompts else 0.0
        together = self._multiplied(experts, fixed, filled, touched * experts.flops / 2, read, flops, tiles)
        around = r.fused_mixture if self.fuses_mixtures and experts.is_fused else r.mixture
        kernels = (around + 2 * (r.cast if experts.is_narrow else 0)) * self.engine.mixtures
        return experts.layers * (together + kernels)

    # ---- attention ----

    def _attention(
        self,
        attending: Attending,
        prompt_tokens: Number,
        prompt_keys: Number,
        requests: Number,
        checked: int,
        keys: Number,
    ) -> Number:
        held = f.keys_in_reach.evaluate(R=requests, K=keys, r=attending.window) if attending.window else keys
        read = memory_seconds.evaluate(
            M=held * attending.bytes, W=self.bandwidth, u=self.rates.cache * self.engine.caches
        )
        decoded = self._arithmetic(held * checked * attending.flops, self._wide_peak, self.shares.matrix["bf16"])
        seen = (
            f.prompt_keys_in_reach.evaluate(T=prompt_tokens, K=prompt_keys, r=attending.window)
            if attending.window
            else prompt_keys
        )
        prompts = self._arithmetic(seen * attending.prompt_flops, self._wide_peak, self.shares.attention)
        if attending.scores:
            moved = f.score_bytes.evaluate(n_pairs=(seen + held * checked) * attending.scores)
            prompts = prompts + memory_seconds.evaluate(M=moved, W=self.bandwidth, u=self.rates.cache)
        return attending.layers * (maximum(read, decoded) + prompts + self.rates.attention * self.engine.floors)

    def _scan(self, work: Work, tokens: Number, requests: Number) -> Number:
        if not work.recurrences:
            return 0.0
        read = memory_seconds.evaluate(M=requests * work.state_bytes, W=self.bandwidth, u=self.rates.cache)
        arithmetic = self._arithmetic(work.scan_flops * tokens, self._wide_peak, training_rates().scan)
        return maximum(read, arithmetic) + work.recurrences * self.rates.attention

    # ---- exchanges ----

    def _exchanges(self, work: Work, tokens: Number, a: Number, sent: dict[Any, Number]) -> Number:
        """All-reduces over tensor ranks; with attention groups, gathers of tokens before experts and sums behind
        them instead of every second one. `sent`: seconds of one exchange of so many tokens, where another stage has
        computed them.
        """
        t, size = self.plan.tensor_parallel_size, tokens * self.hidden_size * ACTIVATION
        among_all = sum(experts.layers for experts in work.experts) * ((a > 1) * 1.0)
        if "reduce" not in sent:
            sent["reduce"] = self.reduce_seconds(size, t)
        inside = sent["reduce"] * (work.reduced - among_all)
        if not hasattr(a, "ndim") and a == 1:
            return inside
        if "gather" not in sent:
            sent["gather"] = self.rates.reduce + self.reduce_seconds(size * a, t * a)
        way = tuple((first.num_experts, first.top_k, first.width) for first in work.experts[:1])
        if way not in sent:
            sent[way] = self._dispatched(work.experts, tokens, t * a)
        return inside + among_all * minimum(sent["gather"], sent[way])

    def _dispatched(self, experts: tuple[Experts, ...], tokens: Number, ranks: Number) -> Number:
        """Each token to the ranks of its experts in 8 bit, and back in 16 (DeepEP): cheaper than gathering all
        tokens where ranks are many.
        """
        if not experts:
            return 0.0
        first = experts[0]
        copies = tokens * first.top_k * first.width
        routing = Routing(first.num_experts, first.top_k)
        there = self.network.dispatch(copies, ranks, 1, routing).seconds
        return there + self.network.dispatch(copies * ACTIVATION, ranks, 1, routing).seconds

    def reduce_seconds(self, size: Number, ranks: Number) -> Number:
        """An all-reduce by an engine's own kernel, in which each rank writes to all others of its node, or by NCCL
        where that is faster or ranks span nodes.
        """
        if not hasattr(ranks, "ndim") and ranks == 1:
            return 0.0
        network = self.network
        own = self.rates.reduce + size * (ranks - 1) / network.rate_inside(ranks)
        own = own + NEVER * (ranks > network.per_node)  # it writes to memory of the same node alone
        nccl = network.collective("all_reduce", size, ranks).seconds
        return minimum(own, nccl) * ((ranks > 1) * 1.0)

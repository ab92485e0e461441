"""DeepSpeed in the walk: buckets, what ZeRO-3 gathers, copies of the step, and what its settings add to the weights.

Read in DeepSpeed 0.19, deepspeed/runtime/zero:
- With contiguous_gradients, its default, ZeRO allocates the reduce bucket at its full size however small the model is:
  stages 1 and 2 for
  each backward pass (setup_buckets, _release_ipg_buffers), and once more with overlap_comm; stage 3 once and for good.
  What the bucket carries is copied once more for the collective: flattened by allreduce_bucket, interleaved by
  reduce_scatter_coalesced. Stages 0 and 1 reduce after backward. Without contiguous_gradients gradients wait in their
  own tensors until they fill the bucket.
- overlap_comm: gradients of a unit are held until the other stream has copied them; without it they go one parameter at
  a time.
- Stage 3 fetches ahead at every module (partitioned_param_coordinator.py), so max_live_parameters are gathered wherever
  there are so many
  left to come. What is fetched together lies in one flat tensor, of prefetch_bucket_size, until it is copied into its
  parameters.
- The step of stages 2 and 3 flattens a rank's 16-bit gradients and casts them to the master's type (step,
  _prepare_fp32_grad_for_sub_group); stage 3 does so for one sub-group at a time. On the host neither is made.
- allgather_bucket_size counts only where torch has no all_gather_into_tensor, which writes into the weights themselves.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.frameworks.base import FRAMEWORKS, Framework, HostStates, PlanRequest, pinned
from tonnage.estimate.frameworks.context_parallel import method_of
from tonnage.estimate.frameworks.transformers import liger_parts
from tonnage.estimate.inputs import Question
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.plan.rule import LARGEST, Facts, Rule, Sizes, check, expert_counts, near_divisors
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.communication import copies, width_of
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import PLACES, Stage, first_of, largest_weight, largest_weights, small_parameters
from tonnage.estimate.step.states import MOST_IN_MEMORY, leaving, offloaded
from tonnage.estimate.step.views import RankView, StepView
from tonnage.formulas import host as h
from tonnage.formulas import memory as f
from tonnage.kernel.errors import InvalidInput, InvalidPlan, NotApplicable, OutOfRange
from tonnage.kernel.formula import Number, is_any, maximum, minimum
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.term import Term
from tonnage.kernel.units import parse_count
from tonnage.runtimes.parts.base import Moment
from tonnage.runtimes.parts.fused import LIGER
from tonnage.spec import TrainingPlan
from tonnage.tape import Layer, Setting

# ---- DeepSpeed's settings by its own names: which stage each belongs to, its defaults, and what Hugging Face fills in
# for "auto".

# deepspeed/runtime/zero/config.py: name -> (stages in which it counts, default, least)
SIZES: dict[str, tuple[tuple[int, ...], int, int]] = {
    "reduce_bucket_size": ((1, 2, 3), 500_000_000, 1), "allgather_bucket_size": ((1, 2, 3), 500_000_000, 1),
    "sub_group_size": ((3,), 1_000_000_000, 1), "stage3_prefetch_bucket_size": ((3,), 50_000_000, 0),
    "stage3_max_live_parameters": ((3,), 1_000_000_000, 0), "stage3_max_reuse_distance": ((3,), 1_000_000_000, 0),
    "stage3_param_persistence_threshold": ((3,), 100_000, 0), "zero_hpz_partition_size": ((3,), 1, 1),
}  # fmt: skip
SWITCHES: dict[str, tuple[tuple[int, ...], bool]] = {
    "contiguous_gradients": ((1, 2, 3), True),
    "stage3_gather_16bit_weights_on_model_save": ((3,), False),
    "zero_quantized_weights": ((3,), False),
    "zero_quantized_nontrainable_weights": ((3,), False),
    "zero_quantized_gradients": ((3,), False),
}
SOURCE = "DeepSpeed's own"
FILLED = "transformers, integrations/deepspeed.py: trainer_config_finalize"


def _partition(facts: Facts) -> int | None:
    """Ranks of a group that has a copy of the weights; None where it is not given, or is none: _size says why."""
    written = facts.said("zero_hpz_partition_size")
    try:
        count = parse_count(written, "zero_hpz_partition_size") if isinstance(written, str) else written
    except InvalidInput:
        return None
    return count if count and count > 0 else None


def _sharing(sizes: Sizes) -> Number:
    """Ranks that share the weights."""
    return sizes["data_parallel_size"] * sizes["context_parallel_size"]


PARTITION = Rule(
    lambda facts: "zero_hpz_partition_size divides the ranks that share the weights",
    lambda facts, sizes: _sharing(sizes) % _partition(facts) == 0,
    lambda facts, sizes: InvalidPlan(
        "{@zero_hpz_partition_size} must divide the {sharing} ranks that share the weights. Got "
        "{partition}. Nearest: {near_divisors}.",
        sharing=_sharing(sizes),
        partition=_partition(facts),
        near_divisors=near_divisors(_sharing(sizes), _partition(facts) or 1),
    ),
    lambda facts, sizes: facts.said("zero_stage") == 3 and _partition(facts) is not None,
)


def zero_options(
    model: Model, stage: int, sizes: Mapping[str, Any], offload: Mapping[str, Any], o: TrainingOptions, q: Question
) -> dict[str, Any]:
    """The fields of a plan that DeepSpeed's zero_optimization decides."""
    fields: dict[str, Any] = {}
    for name, (stages, default, least) in SIZES.items():
        if _counts(name, stages, stage, o):
            fields[name] = _size(name, default, least, model, o, q)
    for name, (stages, on) in SWITCHES.items():
        if _counts(name, stages, stage, o):
            fields[name] = q.take(name, getattr(o, name), on, "runtime", SOURCE)
    if _counts("overlap_comm", (1, 2, 3), stage, o):
        fields["overlap_comm"] = q.take(
            "overlap_comm", o.overlap_comm, stage == 3, "runtime", "DeepSpeed's own: in stage 3 alone"
        )
    declared = {"zero_stage": stage, "zero_hpz_partition_size": fields.get("zero_hpz_partition_size")}
    check(Facts(model, declared), sizes, PARTITION)
    _check(fields, stage, offload, o, q)
    return fields


def _counts(name: str, stages: tuple[int, ...], stage: int, o: TrainingOptions) -> bool:
    if stage in stages:
        return True
    if getattr(o, name) is not None:
        known = listed(map(str, stages))
        raise NotApplicable(
            (
                Message(
                    "{name} counts in ZeRO stage {known}: leave it out, or take another {@zero_stage}. Got "
                    "it with stage {stage}.",
                    name=option_name(name),
                    known=known,
                    stage=stage,
                )
            ),
            name,
            ("zero_stage",),
        )
    return False


def _size(name: str, default: int, least: int, model: Model, o: TrainingOptions, q: Question) -> int:
    written = getattr(o, name)
    if written == "auto":
        filled = filled_in(name, model.hidden_size)
        if filled is None:
            raise InvalidPlan(
                "{name} has no auto in the Trainer of transformers: give it a number of elements.",
                name=option_name(name),
            )
        return int(q.put(name, filled, "runtime", FILLED))
    try:
        size = parse_count(written, name) if isinstance(written, str) else written
    except OutOfRange:
        raise InvalidPlan(
            "{name} must be from {least} to {largest:,}. Got {said}.",
            name=option_name(name),
            least=least,
            largest=LARGEST,
            said=written,
        ) from None
    if size is not None and not least <= size <= LARGEST:
        raise InvalidPlan(
            "{name} must be from {least} to {largest:,}. Got {given:,}.",
            name=option_name(name),
            least=least,
            largest=LARGEST,
            given=size,
        )
    return int(q.take(name, size, default, "runtime", SOURCE))


def filled_in(name: str, hidden_size: int) -> int | None:
    """What the Trainer writes in the place of "auto"; None: nothing."""
    square = hidden_size * hidden_size
    return {
        "reduce_bucket_size": square,
        "stage3_prefetch_bucket_size": int(0.9 * square),
        "stage3_param_persistence_threshold": 10 * hidden_size,
    }.get(name)


def _check(
    fields: dict[str, Any],
    stage: int,
    offload: Mapping[str, Any],
    o: TrainingOptions,
    q: Question,
) -> None:
    if fields.get("contiguous_gradients") is False and offload["offload_optimizer"] != "none" and stage < 3:
        raise InvalidPlan(
            Message(
                "{@contiguous_gradients} must be on with {@offload_optimizer} in ZeRO stages 1 and 2: "
                "DeepSpeed turns it on itself."
            )
        )
    if fields.get("zero_quantized_nontrainable_weights") and o.method in (None, "full"):
        raise NotApplicable(
            Message(
                "{@zero_quantized_nontrainable_weights} needs weights that do not train: method must be "
                "lora, dora or freeze."
            ),
            "zero_quantized_nontrainable_weights",
            ("method",),
        )
    if o.allgather_bucket_size is not None:
        q.warn(
            "allgather_bucket_size changes no memory: torch gathers into the weights themselves "
            "(all_gather_into_tensor)."
        )


STAGE_0_BUCKET = 500_000_000  # MEMORY_OPT_ALLREDUCE_SIZE
PARAMETER_BUFFERS, PARAMETER_BUFFER, OPTIMIZER_BUFFERS = 5, 100_000_000, 4  # deepspeed/runtime/zero/offload_config.py
QUANTISED = 1.0  # bytes of a weight in int8; scales of 8000 weights share 4 bytes more
# all_to_all_quant_reduce: gradients in 4 bits, sent and received
QUANTISED_GRADIENT = 0.5 + 0.5


class DeepSpeed(Framework):
    """A run under DeepSpeed's engine."""

    copies_layer_shards = False  # parameter by parameter
    rules = (PARTITION,)

    @classmethod
    def sizes_of_loss(cls, plan: TrainingPlan) -> tuple[str, ...]:
        return ("sequence_length", "micro_batch_size", "context_parallel_size") if plan.kernels.liger else ()

    def setting(self) -> Setting:
        setting = super().setting()
        return replace(setting, code=LIGER) if self.plan.kernels.liger else setting

    def loss(self, stage: Stage) -> Layer | None:
        plan, model = self.plan, self.step.model
        if not (plan.kernels.liger and stage.is_last and stage.after) or self.loss_of_objective:
            return super().loss(stage)
        sequence = first_of(plan.sequence_length) // first_of(plan.context_parallel_size)
        parts = liger_parts(model, int(sequence * first_of(plan.micro_batch_size)))
        return tapes.loss_layer(stage.after, self.step.setting, model.hidden_size, "liger", parts, logits_split=False)

    @classmethod
    def options(cls, request: PlanRequest) -> dict[str, Any]:
        r = request
        return method_of(r.model, r.sizes, ("a2a",), "DeepSpeed-Ulysses", r.options, r.question)

    @classmethod
    def sharding_options(cls, request: PlanRequest) -> dict[str, Any]:
        r = request
        return zero_options(r.model, r.zero_stage, r.sizes, r.offload, r.options, r.question)

    @classmethod
    def check_offload(cls, places: Mapping[str, Any], zero_stage: int) -> None:
        if places["offload_optimizer"] != "none" and zero_stage == 0:
            raise InvalidPlan(Message("{@offload_optimizer} needs ZeRO: {@zero_stage} must be 1, 2 or 3. Got 0."))
        if places["offload_parameters"] != "none" and zero_stage != 3:
            raise InvalidPlan(
                "{@offload_parameters} needs weights that are sharded: {@zero_stage} must be 3. Got {zero_stage}.",
                zero_stage=zero_stage,
            )
        if places["offload_optimizer"] == "nvme" and zero_stage != 3:
            raise InvalidPlan(
                "{@offload_optimizer} nvme is ZeRO-Infinity's: {@zero_stage} must be 3. Got {zero_stage}.",
                zero_stage=zero_stage,
            )

    @classmethod
    def trl_config(cls, plan: TrainingPlan, usual: str) -> str:
        return "zero3" if plan.zero_stage == 3 else usual

    @classmethod
    def trl_sharding(cls, plan: TrainingPlan) -> list[str]:
        flags = [f"--zero_stage {plan.zero_stage}"] if plan.zero_stage < 2 else []
        flags += ["--offload_optimizer_device cpu"] if plan.offload.offload_optimizer == "cpu" else []
        return flags + (["--offload_param_device cpu"] if plan.offload.offload_parameters == "cpu" else [])

    @property
    def adapter_width(self) -> float:
        """The engine turns the whole module to 16 bits, adapters too (runtime/engine.py:
        _configure_distributed_model).
        """
        return self.recipe.compute_bytes if self.recipe.master_bytes else super().adapter_width

    def __init__(self, step: StepView):
        super().__init__(step)
        overlap = self.plan.deepspeed.overlap_comm
        self.overlaps = self.plan.zero_stage == 3 if overlap is None else overlap
        self._made: dict[tuple[int, Moment], Term] = {}

    def slower_runs(self) -> str:
        """validation/recent/ms_swift.yaml: swift-bench-q330b-zero3, with transformers 4."""
        if self.plan.zero_stage != 3 or not expert_counts(self.step.model):
            return ""
        return Message(
            "experts are counted as transformers 5 has them: those of a layer in one parameter. transformers 4 has a "
            "module for each expert, which ZeRO-3 gathers and runs one after the other: a published run of "
            "Qwen3-30B-A3B on 16 A800 (ms-swift) took 39 times as long as estimated."
        )

    # ---- communication ----

    def buffers(self, rank: RankView, point: Point | None) -> Term:
        moment: Moment = "optimizer step" if point is None else point.moment
        key = (rank.stage.rank, moment)
        if key not in self._made:
            parts = [*self._gathered(rank, moment), *self._reduced(rank, moment), *self._buckets(rank, moment)]
            self._made[key] = Term.sum("communication buffers", *parts, unit="bytes")
        return self._made[key]

    def _gathered(self, rank: RankView, moment: Moment) -> list[Term]:
        """Parameters that stage 3 has gathered: those at work, ahead of it, and on their way."""
        if self.plan.zero_stage != 3 or moment == "optimizer step":
            return []
        plan, wide = self.plan, self.recipe.compute_bytes
        narrow = QUANTISED if plan.deepspeed.zero_quantized_weights else wide
        places = {"loss": ("after",), "first layer of backward": ("layers",)}.get(moment, ("before",))
        at_work = largest_weight(rank.stage, self.step.whole, places)
        left = rank.whole.value
        limit = plan.deepspeed.stage3_max_live_parameters * minimum(plan.deepspeed.stage3_prefetch_bucket_size, 1)
        if moment == "last layer of backward":
            left = rank.communication.before.value + rank.communication.layer.value
        else:  # what is used again within this distance, forward and backward, is not released
            limit = maximum(limit, plan.deepspeed.stage3_max_reuse_distance // 2)
        ahead = Term.of("parameters ahead", f.parameters_ahead, N=left, Nu=at_work.value, xi=limit)
        fetched = Term.of(
            "parameters fetched together", f.bucket_parameters, N=left, x=plan.deepspeed.stage3_prefetch_bucket_size
        )
        arriving = narrow if narrow == wide else narrow + wide
        return self._spread(
            copies("all-gather buffer (current module)", wide, at_work),
            copies("prefetch buffer", narrow, ahead),
            copies("all-gather buffer (flat tensor)", arriving, fetched),
        )

    def _spread(self, *gathered: Term) -> list[Term]:
        """One rank alone has nothing to gather, unless its weights live on the host (partition_parameters.py:
        NoGatherHandle).
        """
        shards = self.step.sharded.z
        if self.plan.offload.offload_parameters != "none":
            return list(gathered)
        if not hasattr(shards, "all"):
            return list(gathered) if shards > 1 else []
        if (shards > 1).all():
            return list(gathered)
        several = Term.of("several shards", f.several_ranks, n=shards)
        return [Term.product(term.name, "bytes", several, term) for term in gathered]

    def _reduced(self, rank: RankView, moment: Moment) -> list[Term]:
        """Gradients that are made and not yet in the bucket."""
        if self.plan.zero_stage < 2 or moment not in ("first layer of backward", "last layer of backward"):
            return []
        first = moment == "first layer of backward"
        if not self.overlaps:
            places = ("after", "layers") if first else ("before", "layers")
            if self.step.trains_all:
                return [self._narrow("gradient of one parameter", largest_weight(rank.stage, self.step.whole, places))]
        layers = [self.step.trained_held[block] for block in rank.counts]
        ends = (rank.communication.after if first else rank.communication.before) if self.step.trains_all else None
        units = [unit for unit in (ends, *layers) if unit is not None and unit.children]
        return [self._narrow("gradients of one unit", Term.max("largest unit", *units))] if units else []

    def _buckets(self, rank: RankView, moment: Moment) -> list[Term]:
        plan, stage = self.plan, self.plan.zero_stage
        backward = moment in ("first layer of backward", "last layer of backward")
        size = plan.deepspeed.reduce_bucket_size if stage else STAGE_0_BUCKET
        terms = []
        if stage and plan.deepspeed.contiguous_gradients and (backward or stage == 3):
            count = 2 if self.overlaps and stage < 3 else 1
            elements = Term.of("elements", f.whole_bucket_parameters, x=size)
            terms += [self._narrow(name, elements) for name in ("reduce bucket", "second reduce bucket")[:count]]
        carried = Term.of("elements", f.bucket_parameters, N=rank.trained.value, x=size)
        if stage >= 2 and backward and not plan.deepspeed.contiguous_gradients:
            terms.append(self._narrow("gradients that wait to be reduced", carried))
        if moment == "last layer of backward" or (backward and stage >= 2):
            terms.append(self._flattened(rank, carried))
        return terms

    def _flattened(self, rank: RankView, carried: Term) -> Term:
        name = "gradients flattened to be reduced"
        if not self.plan.deepspeed.zero_quantized_gradients:
            return self._narrow(name, carried)
        largest = largest_weight(rank.stage, self.step.whole, PLACES)
        one = Term.of("elements", f.bucket_parameters, N=carried.value, x=largest.value)
        return copies("gradients quantised to be reduced", QUANTISED_GRADIENT, one)

    def _narrow(self, name: str, parameters: Term) -> Term:
        return copies(name, width_of("compute", self.step.updates), parameters)

    # ---- states ----

    def step_copies(self, rank: RankView) -> Term:
        plan = self.plan
        if plan.zero_stage < 2 or plan.offload.offload_optimizer != "none" or not self.recipe.master_bytes:
            return Term.sum("temporary", unit="bytes")
        held = rank.trained_shard
        if plan.zero_stage == 3:
            held = Term.of("elements", f.bucket_parameters, N=held.value, x=plan.deepspeed.sub_group_size)
        cast = copies("gradients cast for the step", width_of("master", self.step.updates), held)
        return Term.sum("temporary", self._narrow("gradients flattened for the step", held), cast)

    def base_bytes(self) -> float:
        return QUANTISED if self.plan.deepspeed.zero_quantized_nontrainable_weights else super().base_bytes()

    def weights(self, rank: RankView) -> list[Term]:
        """Stage 3: parameters too small to be released, whole; ZeRO++'s second shard, cut over fewer ranks."""
        plan, wide = self.plan, self.recipe.compute_bytes
        if plan.zero_stage != 3:
            return []
        small = small_parameters(rank.stage, plan.deepspeed.stage3_param_persistence_threshold)
        unsharded = copies(
            "parameters too small to be released", wide, Term.of("parameters", f.whole_parameters, N=small, z=1)
        )
        secondary = plan.offload.offload_parameters == "none" and is_any(plan.deepspeed.zero_hpz_partition_size > 1)
        return self._spread(unsharded, *([self.secondary(rank)] if secondary else []))

    def secondary(self, rank: RankView) -> Term:
        """ZeRO++: once more all weights, cut over the ranks of a smaller group."""
        part = Term.of(
            "parameters", f.whole_parameters, N=rank.whole.value, z=self.plan.deepspeed.zero_hpz_partition_size
        )
        return copies("second shard of ZeRO++", self.recipe.compute_bytes, part)

    def lasting(self, rank: RankView) -> list[Term]:
        if self.plan.offload.offload_optimizer == "none" or self.plan.zero_stage > 2:
            return []
        return [self._narrow("gradient on its way to the host", largest_weight(rank.stage, self.step.whole, PLACES))]

    # ---- what lives outside of the accelerator (deepspeed/runtime/zero/{stage_1_and_2,stage3}.py and swap_tensor) ----

    @property
    def loads_on_first_rank(self) -> bool:
        return self.plan.zero_stage == 3

    def gathered_to_save(self, parameters: Term) -> Term | None:
        """All 16-bit weights, if DeepSpeed gathers them."""
        if self.plan.zero_stage != 3:
            return None
        if not self.plan.deepspeed.stage3_gather_16bit_weights_on_model_save:
            return Term.sum("gathered weights, on the node of rank 0", unit="bytes")
        return copies("gathered weights, on the node of rank 0", self.recipe.compute_bytes, parameters)

    def gradients_to_host(self, rank: RankView) -> tuple[Term, Number]:
        """ZeRO-2 and 3 send each micro-batch's (stage_1_and_2.py: async_accumulate_grad_in_cpu_via_gpu), ZeRO-1 a
        step's.
        """
        gradients = copies("gradients", width_of("compute", self.step.updates), rank.trained_shard)
        return gradients, self.plan.num_microbatches if self.plan.zero_stage >= 2 else 1

    def host_states(self, rank: RankView) -> HostStates:
        plan, updates = self.plan, self.step.updates
        held, narrow = rank.trained_shard, width_of("compute", updates)
        place, states = plan.offload.offload_optimizer, HostStates([], [])
        gradients = copies("gradients in the master's type", width_of("master", updates), held)
        if place != "none" and plan.zero_stage < 3:
            states.host.extend([rank.every_state, *pinned(gradients)])
            states.host.extend(pinned(copies("updated weights in 16 bit", narrow, held)))
            if is_any(plan.num_microbatches > 1):
                states.host.append(copies("gradients that are accumulated", narrow, held))
            largest = largest_weights(rank.stage, self.step.whole)
            states.host.extend(pinned(copies("gradient on its way", narrow, largest)))
        if place != "none" and plan.zero_stage == 3:
            states.host.extend(pinned(copies("gradients that are accumulated", narrow, held)))
            share = offloaded(plan, "optimizer")
            if place == "cpu":
                states.host.extend([leaving(rank.every_state, share), *pinned(leaving(gradients, share))])
            else:
                states.stored.extend([rank.every_state, gradients])
                group = Term.of("elements", f.bucket_parameters, N=held.value, x=plan.deepspeed.sub_group_size)
                width = width_of("master", updates)
                states.host.append(_swap("buffers of optimizer states", OPTIMIZER_BUFFERS, group.value, width))
        self._add_parameters(rank, states)
        return states

    def _add_parameters(self, rank: RankView, states: HostStates) -> None:
        """Offloaded weights."""
        plan, wide = self.plan, self.recipe.compute_bytes
        if plan.offload.offload_parameters == "none":
            return
        if is_any(plan.deepspeed.zero_hpz_partition_size > 1):
            states.host.extend(pinned(self.secondary(rank)))
        if plan.offload.offload_parameters == "cpu":
            states.host.extend(pinned(rank.every_weight.named("weights")))
            return
        beyond = Term.of("parameters beyond max_in_cpu", f.parameters_beyond, N=rank.shard.value, xi=MOST_IN_MEMORY)
        states.stored.append(copies("weights", wide, beyond))
        near = Term.of("parameters that stay in memory", f.bucket_parameters, N=rank.shard.value, x=MOST_IN_MEMORY)
        states.host.extend(pinned(copies("weights in memory, max_in_cpu", wide, near)))
        states.host.append(_swap("buffers of weights", PARAMETER_BUFFERS, PARAMETER_BUFFER, wide))


def _swap(name: str, buffers: int, elements: Number, width: float) -> Term:
    return Term.of(name, h.swap_buffer_bytes, n_copies=buffers, x=elements, w=width)


FRAMEWORKS.add("deepspeed", DeepSpeed)

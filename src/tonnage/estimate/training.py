"""Memory of one training step: every pipeline stage, every phase. Branches on names happen here, never in a formula."""

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.estimate import _activations as act
from tonnage.estimate._communication import Communication, copies, width_of
from tonnage.estimate._optimizer import optimizer_states
from tonnage.estimate._overhead import training_overhead
from tonnage.estimate._rank import Shares, Stage, block_parameters, rank_parameters, stages
from tonnage.formula import Number
from tonnage.formulas import memory as f
from tonnage.ops import Head, Kernels, Saved, SavedSplit
from tonnage.precisions import TRAINING_RECIPES
from tonnage.runtimes import TrainingRuntime, training_runtime
from tonnage.runtimes._base import Moment, State
from tonnage.spec import Cluster, TrainingPlan


class RankMemory(Struct, frozen=True, eq=False):
    """One group of equal ranks (a pipeline stage): each phase's Term, and the largest of them."""

    rank: int
    phases: tuple[Term, ...]

    @property
    def peak(self) -> Term:
        return max(self.phases, key=lambda phase: phase.value)


class TrainingMemory(Struct, frozen=True, eq=False):
    """All rank groups; `memory` is the peak phase of the fullest one."""

    ranks: tuple[RankMemory, ...]

    @property
    def fullest(self) -> RankMemory:
        return max(self.ranks, key=lambda rank: rank.peak.value)

    @property
    def memory(self) -> Term:
        return self.fullest.peak

    @property
    def needed(self) -> Number:
        """Bytes of the fullest rank's peak; an array if the plan's sizes are arrays."""
        return Term.max("needed", *(phase for rank in self.ranks for phase in rank.phases)).value


def training_memory(model: Model, plan: TrainingPlan, cluster: Cluster | None = None) -> TrainingMemory:
    """Peak bytes of one training step, by pipeline stage and phase.

    The plan must have been checked (estimate.plans); its sizes may be arrays with one entry per plan.
    """
    return _Step(model, plan, cluster).walk()


class _Step:
    """The walk of one step: what all stages share is computed once."""

    def __init__(self, model: Model, plan: TrainingPlan, cluster: Cluster | None):
        self.model, self.plan, self.cluster = model, plan, cluster
        self.runtime = training_runtime(plan.runtime)
        self.recipe = TRAINING_RECIPES[plan.precision]
        self.kernels = _kernels(self.runtime, plan)
        dense = plan.data_parallel_size * plan.context_parallel_size
        experts = dense * plan.tensor_parallel_size / (plan.expert_parallel_size * plan.expert_tensor_parallel_size)
        self.whole = Shares(plan.tensor_parallel_size, plan.expert_parallel_size, plan.expert_tensor_parallel_size)
        self.sharded = Shares(self.whole.t, self.whole.e, self.whole.q, dense, experts)
        self.stages = stages(model, plan.pipeline_parallel_size)
        running = {block for stage in self.stages for block, _ in stage.layers}
        blocks = running | {block for block, _ in self.stages[0].towers}
        self.held = {block: block_parameters(block, self.whole) for block in blocks}
        self.shard = {block: block_parameters(block, self.sharded) for block in blocks}
        sequence_parallel = plan.sequence_parallel and self.runtime.sequence_parallel
        self.batch = act.Batch(plan.sequence_length, plan.micro_batch_size, plan.context_parallel_size,
                               plan.tensor_parallel_size, self.recipe.activation_bytes, sequence_parallel)  # fmt: skip
        self.layers = {
            block: act.layer_activations(block, self.batch, self.kernels, plan.recompute, model.hidden_size)
            for block in running
        }

    def walk(self) -> TrainingMemory:
        return TrainingMemory(tuple(RankMemory(stage.rank, self.phases(stage)) for stage in self.stages))

    def phases(self, stage: Stage) -> tuple[Term, ...]:
        """The four moments that can be the peak: the loss, the first and the last layer of backward, the optimizer's step."""
        held = rank_parameters(stage, self.whole, self.held)
        shard = rank_parameters(stage, self.sharded, self.shard)
        weights = self._states("weights", self.runtime.weights, held, shard)
        gradients = self._states("gradients", self.runtime.gradients, held, shard)
        optimizer = self._optimizer(held, shard)
        communication = Communication(self.runtime, self.recipe, self.plan, stage, self.held, self.whole)
        carried = gradients if self.runtime.gradients_persist else self._carried(gradients)
        kept, recomputed = self._kept(stage), act.brought_back(stage, self.layers)
        cast = Term.sum("temporary", *self._casts(held), unit="bytes")
        flowing = act.backward_gradients(stage, self.batch, self.kernels, self.model.hidden_size)
        flowing = Term.sum("temporary", flowing, *self._casts(held))
        moments: tuple[tuple[Moment, Term, list[Term], Term], ...] = (
            ("loss", carried, [*kept, self._logits(stage)], cast),
            ("first layer of backward", carried, [*kept, recomputed], flowing),
            ("last layer of backward", gradients, [recomputed, self._one_layer(stage)], flowing),
            ("optimizer step", gradients, [], communication.step(shard)),
        )
        return tuple(
            self._phase(moment, weights, grads, optimizer, Term.sum("activations", *parts, unit="bytes"), temporary,
                        communication.buffers(moment, held))
            for moment, grads, parts, temporary in moments
        )  # fmt: skip

    def _phase(self, name: str, *parts: Term) -> Term:
        tensors = sum(part.value for part in parts)
        return Term.sum(name, *parts, training_overhead(tensors, self.plan, self.cluster))

    def _states(self, name: str, states: tuple[State, ...], held: Term, shard: Term) -> Term:
        parts = [self._state(state, held, shard) for state in states]
        return Term.sum(name, *parts, unit="bytes")

    def _state(self, state: State, held: Term, shard: Term) -> Term:
        parameters = shard if self.plan.zero_stage >= state.sharded_from else held
        return copies(state.name, width_of(state.copy, self.recipe), parameters)

    def _optimizer(self, held: Term, shard: Term) -> Term:
        masters = self.runtime.masters if self.recipe.master_bytes else ()
        is_sharded = self.plan.zero_stage >= self.runtime.optimizer_sharded_from
        parts = [self._state(state, held, shard) for state in masters]
        parts += optimizer_states(self.plan.optimizer, self.recipe, self.model, shard if is_sharded else held)
        return Term.sum("optimizer", *parts, unit="bytes")

    def _carried(self, gradients: Term) -> Term:
        held = Term.of("gradients of earlier micro-batches", f.gradients_carried, m=self.plan.num_microbatches)
        return Term.product("gradients", "bytes", held, gradients)

    def _kept(self, stage: Stage) -> list[Term]:
        parts = [act.stage_activations(stage, self.layers, self._in_flight(stage))]
        loose = act.loose_activations(stage, self.batch, self.kernels)
        return [*parts, loose] if loose.children else parts

    def _in_flight(self, stage: Stage) -> Term:
        p, v, m = self.plan.pipeline_parallel_size, self.plan.virtual_pipeline_size, self.plan.num_microbatches
        if v > 1:
            return Term.of("micro-batches in flight", f.interleaved_microbatches_in_flight, p=p, i=stage.rank, m=m, v=v)
        return Term.of("micro-batches in flight", f.microbatches_in_flight, p=p, i=stage.rank, m=m)

    def _one_layer(self, stage: Stage) -> Term:
        terms = [self.layers[block].kept for block, _ in stage.layers]
        return Term.max("first layer", *terms) if terms else Term.sum("first layer", unit="bytes")

    def _logits(self, stage: Stage) -> Term:
        parts = []
        head = next((op for op in stage.ops if isinstance(op, Head)), None) if stage.is_last else None
        if head is not None:
            split: SavedSplit = "tensor" if self.runtime.logits_split else "whole"
            whole = act.Batch(self.batch.s, self.batch.b, self.batch.c, self.batch.t, self.batch.w, False)
            chunks = self.runtime.loss_chunks if self.plan.loss == "chunked" else 1
            for copy in self.runtime.logits:
                saved = Saved(copy.name, head.vocab_size / chunks, split, copy.bytes_per_element)
                parts.append(act.saved_term(saved, whole))
            if chunks > 1:
                for name, width in (("chunks of the hidden states", None), ("their gradients in fp32", 4)):
                    parts.append(act.saved_term(Saved(name, self.model.hidden_size, bytes_per_element=width), whole))
        return Term.sum("logits and loss", *parts, unit="bytes")

    def _casts(self, held: Term) -> list[Term]:
        if not self.runtime.casts or not self.recipe.master_bytes:
            return []
        return [copies("weights cast for the matrix products", self.recipe.compute_bytes, held)]


def _kernels(runtime: TrainingRuntime, plan: TrainingPlan) -> Kernels:
    return replace(runtime.kernels, attention=plan.attention or runtime.kernels.attention,
                   dropout=plan.dropout, attention_dropout=plan.attention_dropout)  # fmt: skip

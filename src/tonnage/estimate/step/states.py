"""The parameters of one stage and their copies: weights, gradients, optimizer states; all of them, and what is on
the accelerator.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Literal

from msgspec.structs import replace

from tonnage.architectures import Block, Model
from tonnage.estimate.step.communication import Communication, copies, width_of
from tonnage.estimate.step.method import base_weights, frozen_below
from tonnage.estimate.step.objective import OBJECTIVES, models_beside
from tonnage.estimate.step.points import Point, running
from tonnage.estimate.step.rank import Shares, Stage, largest_weights, layer_count, op_parameters, rank_parameters
from tonnage.estimate.step.views import StageView, WalkedStep
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.optimizers import Optimizer, optimizer, role_of
from tonnage.numerics.precisions import Recipe
from tonnage.ops import Embedding
from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import Moment, State
from tonnage.spec import TrainingPlan

# ---- The optimizer's states on one rank, each named.


def optimizer_states(name: str, recipe: Recipe, model: Model, parameters: Term) -> list[Term]:
    """One Term for each state of the optimizer, for the parameters that this rank updates.

    States that are not one number a parameter (factors, blocks, low ranks) are counted tensor by tensor over the model,
    and spread over ranks like its parameters.
    """
    chosen = optimizer(name)
    if recipe.moment_bytes and len(chosen.matrix) == 2:
        pairs = zip(chosen.matrix, recipe.moment_bytes, strict=True)
        return [copies(state.name, width, parameters, recipe.source) for state, width in pairs]
    if chosen.elementwise:
        return [
            copies(state.name, recipe.update_bytes if state.width is None else state.width, parameters, chosen.source)
            for state in chosen.matrix
        ]
    totals = _totals(chosen, model, recipe.update_bytes)
    count = model.num_parameters()
    return [
        Term.product(
            state,
            "bytes",
            Term.of(
                "bytes per parameter, over all tensors",
                f.mean_bytes_per_parameter,
                source=chosen.source,
                M=total,
                N=count,
            ),
            parameters,
        )
        for state, total in totals.items()
    ]


def foreach_copies(name: str, recipe: Recipe, parameters: Term) -> list[Term]:
    """What torch's foreach implementation makes of all parameters at once: the square roots of Adam's second moments.

    torch, optim/adam.py: _multi_tensor_adam. Optimizers of one state update in place.
    """
    chosen = optimizer(name)
    if len(chosen.matrix) < 2 or not chosen.elementwise:
        return []
    return [copies("square roots of all second moments", recipe.update_bytes, parameters, chosen.source)]


@lru_cache(maxsize=64)
def _totals(chosen: Optimizer, model: Model, update_bytes: float) -> dict[str, float]:
    totals: dict[str, float] = {}
    for weight, count in model.weighted():
        states = chosen.states(
            weight.rows,
            weight.columns,
            copies=weight.copies * count,
            heads=weight.heads,
            role=role_of(weight.part, weight.columns),
            update_bytes=update_bytes,
        )
        for state, size in states.items():
            totals[state] = totals.get(state, 0) + size
    return totals


@lru_cache(maxsize=64)
def update_flops(name: str, model: Model) -> float:
    """FLOP that an update of all matrices of the layers multiplies."""
    work = optimizer(name).work
    assert work is not None
    return sum(
        weight.copies * count * work(weight.rows, weight.columns)
        for weight, count in model.weighted()
        if role_of(weight.part, weight.columns) == "matrix"
    )


# ---- What leaves the accelerator for host memory or NVMe: states of the parameters, and what layers keep for backward.

MOST_IN_MEMORY = 1_000_000_000  # parameters, of weights on NVMe (DeepSpeed, deepspeed/runtime/zero/offload_config.py)
OffloadedState = Literal["weights", "gradients", "optimizer"]


def offloaded(plan: TrainingPlan, state: OffloadedState) -> Number:
    """The share of a state that lives outside of the accelerator.

    FSDP2's CPUOffloadPolicy moves shards of all three; DeepSpeed's gradients follow the optimizer where they are
    sharded.
    """
    if state == "weights":
        return 0 if plan.offload.offload_parameters == "none" else 1
    if plan.offload.offload_optimizer == "none":
        return 0
    if state == "optimizer":
        return plan.offload.optimizer_offload_fraction
    return 1 if plan.zero_stage >= training_runtime(plan.runtime).gradients_offloaded_from else 0


def staying(term: Term, share: Number) -> Term:
    """The part of a state that stays, of whose bytes `share` are offloaded."""
    if not hasattr(share, "ndim") and share in (0, 1):
        return Term.sum(term.name, unit="bytes") if share else term
    stays = Term.of("share that stays", f.share_that_stays, phi=share)
    return Term.sum(term.name, Term.product(Message("{term} that stay", term=term.name), "bytes", stays, term))


def leaving(term: Term, share: Number) -> Term:
    """The part of a state that is offloaded."""
    leaves = Term.of("share that leaves", f.share_that_leaves, phi=share)
    return Term.product(Message("offloaded {term}", term=term.name), "bytes", leaves, term)


class KeptTensors:
    """What the layers of a stage keep for backward on the accelerator, with those on their way in or out.

    Of the tensors that are offloaded the last two layers' are there when forward ends, one on its way out and one not
    yet; in backward those of one layer come back while the layer above is at work.
    """

    def __init__(self, rank: StageView):
        self.rank, self.plan, self.step = rank, rank.plan, rank.step
        self.is_on = self.plan.offload.offload_activations != "none"

    @cached_property
    def stays(self) -> Mapping[Block, Term]:
        """For each kind of layer, what one layer keeps on the accelerator."""
        if not self.is_on:
            return self.step.kept
        return {block: self._left(block) for block in self.step.kept}

    @cached_property
    def leaves(self) -> dict[Block, Term]:
        """For each kind of layer, what one layer offloads."""
        return {block: self._leaving(block, layer_tensors) for block, layer_tensors in self.step.kept.items()}

    def _leaving(self, block: Block, layer_tensors: Term) -> Term:
        named = self.step.framework.offloaded_tensors(block)
        if named is None:
            return layer_tensors
        return Term.of("offloaded tensors of a layer", f.bytes_that_leave, M=layer_tensors.value, U=named.value)

    def _left(self, block: Block) -> Term:
        """A layer that is recomputed keeps less than the offloaded tensors name."""
        named = self.step.framework.offloaded_tensors(block)
        if named is None:
            return Term.sum("one layer", unit="bytes")
        return Term.of(
            "one layer, without what is offloaded", f.bytes_that_stay, M=self.step.kept[block].value, U=named.value
        )

    def passing(self, point: Point) -> list[Term]:
        """Tensors of layers on their way to the host or back."""
        if not self.is_on:
            return []
        held = self.rank.counts if point.everything else point.kept
        layers = sum(held.values())
        if not layers:
            return []
        one = Term.max("the largest layer", *(self.leaves[block] for block in held))
        count = Term.of("layers on their way", f.layers_on_rank, l=min(layers, 2 if point.everything else 1))
        return [Term.product("offloaded tensors on their way", "bytes", count, one)]


class States:
    """What a stage keeps from step to step."""

    def __init__(self, step: WalkedStep, stage: Stage):
        self.step, self.stage, self.plan, self.sizes, self.runtime = step, stage, step.plan, step.sizes, step.runtime
        self.frozen = frozen_below(step.model, step.plan)
        self.counts = dict(Counter(running(stage, self.frozen)))
        self.is_tied = bool(stage.table) and step.trains_all and step.framework.adds_tied_gradients
        zero = self.plan.zero_stage
        self.gradients_sharded = any(zero >= state.sharded_from for state in self.runtime.gradients)
        self.gradient_width = sum(width_of(state.copy, step.updates) for state in self.runtime.gradients)
        self.communication = Communication(self.runtime, step.recipe, self.plan, stage, step.held, step.whole)
        self._made_buffers: dict[Moment, Term] = {}
        self._bases: dict[int, Number] = {}
        self._kept_at: dict[int, Term] = {}
        self._sizes_here: dict[tuple[int, bool], Number] = {}
        self._mosts: dict[tuple[int, ...], Number] = {}

    # ---- parameters ----

    @cached_property
    def whole(self) -> Term:
        """All parameters of the rank, before ZeRO."""
        return rank_parameters(self.stage, self.step.whole, self.step.held)

    @cached_property
    def shard(self) -> Term:
        """Its share of them."""
        return rank_parameters(self.stage, self.step.sharded, self.step.shard)

    @cached_property
    def trained(self) -> Term:
        """The parameters that train, before ZeRO."""
        if self.step.trains_all:
            return self.whole if self._tower is None else rank_parameters(self._bare, self.step.whole, self.step.held)
        return self._trained(self.step.trained_held)

    @cached_property
    def trained_shard(self) -> Term:
        """The rank's share of the parameters that train."""
        if self.step.trains_all:
            bare = self._tower is not None
            return rank_parameters(self._bare, self.step.sharded, self.step.shard) if bare else self.shard
        return self._trained(self.step.trained_shard)

    @property
    def _bare(self) -> Stage:
        """The stage without towers."""
        return replace(self.stage, towers=(), tower_ops=())

    @cached_property
    def _tower(self) -> Term | None:
        """Bytes of towers that are frozen while all else trains, as bases of adapters are kept; None where they train,
        or where there are none.
        """
        if self.plan.trains_tower or not self.step.trains_all or not (self.stage.towers or self.stage.tower_ops):
            return None
        is_sharded = any(self.plan.zero_stage >= state.sharded_from for state in self.runtime.weights)
        shares, per_block = (self.step.sharded, self.step.shard) if is_sharded else (self.step.whole, self.step.held)
        held = rank_parameters(replace(self.stage, layers=(), before=(), after=(), table=()), shares, per_block)
        return copies("frozen vision tower", self.step.framework.base_bytes(), held)

    def _trained(self, per_block: Mapping[Block, Term]) -> Term:
        parts = [
            Term.product(block.name, "parameters", layer_count(count), per_block[block])
            for block, count in self.counts.items()
        ]
        return Term.sum("parameters that train", *parts, unit="parameters")

    @cached_property
    def table(self) -> Term:
        """The embedding's parameters on this rank."""
        embeddings = [op for op in self.stage.before if isinstance(op, Embedding)][:1]
        parts = [term for op in embeddings for term in op_parameters(op, self.step.whole)]
        return Term.sum("table", *parts, unit="parameters")

    @cached_property
    def after(self) -> Term:
        """What comes after the layers: norm and head, as far as their gradients stay."""
        shares = self.step.sharded if self.gradients_sharded else self.step.whole
        ops = self.stage.after if self.step.trains_all else ()
        parts = [term for op in ops for term in op_parameters(op, shares)]
        return Term.sum("after the layers", *parts, unit="parameters")

    @cached_property
    def head(self) -> Term:
        """The head's parameters, before ZeRO; a tied one is the table."""
        parts = [term for op in (*self.stage.after, *self.stage.table) for term in op_parameters(op, self.step.whole)]
        return Term.sum("norm, lm_head", *parts, unit="parameters")

    # ---- copies ----

    def _buffers(self, moment: Moment) -> Term:
        if moment not in self._made_buffers:
            self._made_buffers[moment] = self.communication.buffers(moment, self.whole, self.trained, self.step.updates)
        return self._made_buffers[moment]

    def _states(self, name: str, states: tuple[State, ...]) -> Term:
        return Term.sum(name, *(self._state(state) for state in states), unit="bytes")

    def _state(self, state: State) -> Term:
        parameters = self.trained_shard if self.plan.zero_stage >= state.sharded_from else self.trained
        return copies(state.name, width_of(state.copy, self.step.updates), parameters)

    def stays(self, part: OffloadedState, every: Term) -> Term:
        """The part of a state that is on the accelerator."""
        return staying(every, offloaded(self.plan, part))

    @cached_property
    def _gradients_leave(self) -> bool:
        return offloaded(self.plan, "gradients") == 1

    @cached_property
    def everything(self) -> Term:
        """All gradients on the accelerator."""
        return self.stays("gradients", self.every_gradient)

    @cached_property
    def every_gradient(self) -> Term:
        """All gradients, wherever they live."""
        if not self.step.framework.keeps_gradients:
            return Term.sum("gradients", unit="bytes")
        return self._twice(self._states("gradients", self.runtime.gradients))

    def _twice(self, own: Term) -> Term:
        """The states with those of a critic, a model of the same size that trains as well."""
        return (
            Term.sum(own.name, *own.children, own.named("critic"))
            if OBJECTIVES[self.plan.post_training.objective].critic
            else own
        )

    @cached_property
    def every_weight(self) -> Term:
        """The model's weights, those of models beside it, and of a critic."""
        own = self._own_weights
        is_sharded = any(self.plan.zero_stage >= state.sharded_from for state in self.runtime.weights)
        shards: Number = self.step.sharded.z if is_sharded else 1
        if is_any(self.whole.value != 0):  # nanotron may leave a stage without weights
            cut = self.step.model.num_parameters() / self.whole.value  # tensor, pipeline and expert ranks hold a part
            shards = shards * cut if is_any(cut != 1) else shards
        others = models_beside(self.plan, self.step.setting.types.parameter, shards)
        if OBJECTIVES[self.plan.post_training.objective].critic:
            others.append(own.named("critic"))
        return Term.sum("weights", *own.children, *others) if others else own

    @cached_property
    def _own_weights(self) -> Term:
        """The model's weights; beside a base that does not train, the adapters that do."""
        if self.step.trains_all:
            trained = self._states("weights", self.runtime.weights)
            return trained if self._tower is None else Term.sum("weights", *trained.children, self._tower)
        is_sharded = any(self.plan.zero_stage >= state.sharded_from for state in self.runtime.weights)
        shares: Shares = self.step.sharded if is_sharded else self.step.whole
        base = base_weights(
            self.stage,
            self.plan,
            shares,
            self.step.framework.base_bytes(),
            self.shard if is_sharded else self.whole,
            head=self.runtime.quantises_head,
            experts=self.runtime.quantises_experts,
        )
        if self.plan.tuning.method == "freeze":
            return Term.sum("weights", *base)
        return Term.sum(
            "weights",
            *base,
            copies("adapters", self.step.updates.update_bytes, self.trained_shard if is_sharded else self.trained),
        )

    @cached_property
    def updated(self) -> Term:
        """The parameters whose optimizer states this rank holds."""
        return self.trained_shard if self.plan.zero_stage >= self.runtime.optimizer_sharded_from else self.trained

    @cached_property
    def optimizer(self) -> Term:
        """The optimizer's states on the accelerator."""
        return self.stays("optimizer", self.every_state)

    @cached_property
    def every_state(self) -> Term:
        """Master weights and the optimizer's own states, wherever they live."""
        recipe = self.step.updates
        masters = self.runtime.masters if recipe.master_bytes else ()
        parts = [self._state(state) for state in masters]
        parts += [] if self._is_paged else self._states_of(self.updated)
        return self._twice(Term.sum("optimizer", *parts, unit="bytes"))

    @property
    def paged_states(self) -> list[Term]:
        """States of a paged optimizer. They are CUDA managed memory: outside of PyTorch's allocator, and the driver
        moves its pages to the host where the accelerator is full. Empty for other optimizers.
        """
        return self._in_managed_memory(self.updated) if self._is_paged else []

    @property
    def paged_states_in_use(self) -> list[Term]:
        """Of these, the states of the largest weight: a kernel updates one weight, and its pages must be present."""
        if not self._is_paged:
            return []
        is_sharded = self.plan.zero_stage >= self.runtime.optimizer_sharded_from
        return self._in_managed_memory(
            largest_weights(self.stage, self.step.sharded if is_sharded else self.step.whole)
        )

    @property
    def _is_paged(self) -> bool:
        return optimizer(self.plan.optimizer).paged

    def _in_managed_memory(self, parameters: Term) -> list[Term]:
        return [
            term.named(Message("{term}, in managed memory", term=term.name)) for term in self._states_of(parameters)
        ]

    def _states_of(self, parameters: Term) -> list[Term]:
        """What the optimizer keeps of these parameters."""
        return optimizer_states(self.plan.optimizer, self.step.updates, self.step.model, parameters)

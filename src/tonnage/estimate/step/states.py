"""The parameters of one stage and their copies: weights, gradients, optimizer states; all of them, and what is on
the accelerator.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from tonnage.architectures import Block
from tonnage.estimate.step.communication import Communication, copies, width_of
from tonnage.estimate.step.method import base_weights, frozen_below
from tonnage.estimate.step.objective import OBJECTIVES, models_beside
from tonnage.estimate.step.offload import State as Part
from tonnage.estimate.step.offload import offloaded, staying
from tonnage.estimate.step.optimizer import optimizer_states
from tonnage.estimate.step.points import running
from tonnage.estimate.step.rank import Shares, Stage, layer_count, op_parameters, rank_parameters
from tonnage.estimate.step.views import WalkedStep
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.optimizers import optimizer
from tonnage.ops import Embedding
from tonnage.runtimes.parts.base import Moment, State


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
        return self.whole if self.step.trains_all else self._trained(self.step.trained_held)

    @cached_property
    def trained_shard(self) -> Term:
        """The rank's share of the parameters that train."""
        return self.shard if self.step.trains_all else self._trained(self.step.trained_shard)

    def _trained(self, per_block: Mapping[Block, Term]) -> Term:
        parts = [
            Term.product(block.name, "parameters", layer_count(count), per_block[block])
            for block, count in self.counts.items()
        ]
        return Term.sum("parameters that train", *parts, unit="parameters")

    @cached_property
    def table(self) -> Term:
        """The embedding's parameters on this rank."""
        found = [op for op in self.stage.before if isinstance(op, Embedding)][:1]
        parts = [term for op in found for term in op_parameters(op, self.step.whole)]
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
        return Term.sum("norm and head", *parts, unit="parameters")

    # ---- copies ----

    def _buffers(self, moment: Moment) -> Term:
        if moment not in self._made_buffers:
            self._made_buffers[moment] = self.communication.buffers(moment, self.whole)
        return self._made_buffers[moment]

    def _states(self, name: str, states: tuple[State, ...]) -> Term:
        return Term.sum(name, *(self._state(state) for state in states), unit="bytes")

    def _state(self, state: State) -> Term:
        parameters = self.trained_shard if self.plan.zero_stage >= state.sharded_from else self.trained
        return copies(state.name, width_of(state.copy, self.step.updates), parameters)

    def stays(self, part: Part, every: Term) -> Term:
        """What of a state is on the accelerator."""
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
        """With those of a critic, as large a model that trains as well."""
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
        others = models_beside(self.plan, self.step.setting.types.parameter, self.step.sharded.z if is_sharded else 1)
        if OBJECTIVES[self.plan.post_training.objective].critic:
            others.append(own.named("critic"))
        return Term.sum("weights", *own.children, *others) if others else own

    @cached_property
    def _own_weights(self) -> Term:
        """The model's weights; beside a base that does not train, the adapters that do."""
        if self.step.trains_all:
            return self._states("weights", self.runtime.weights)
        is_sharded = any(self.plan.zero_stage >= state.sharded_from for state in self.runtime.weights)
        shares: Shares = self.step.sharded if is_sharded else self.step.whole
        base = base_weights(
            self.stage,
            self.plan,
            shares,
            self.step.framework.base_bytes(),
            self.shard if is_sharded else self.whole,
            head=self.runtime.quantises_head,
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
        parts += [] if self._is_paged else self._states_of_optimizer
        return self._twice(Term.sum("optimizer", *parts, unit="bytes"))

    @property
    def _is_paged(self) -> bool:
        return optimizer(self.plan.optimizer).paged

    @property
    def _states_of_optimizer(self) -> list[Term]:
        """What the optimizer keeps; in managed memory, which is none of PyTorch's, where it is paged."""
        made = optimizer_states(self.plan.optimizer, self.step.updates, self.step.model, self.updated)
        return (
            [term.named(Message("{term}, in managed memory", term=term.name)) for term in made]
            if self._is_paged
            else made
        )

"""What a framework sees of the step that it is part of, and of one pipeline stage: these attributes and no others.

`Step` and `StageMemory` have them. Whoever adds a framework reads `StepView` and `RankView`; what is not on them may
change without asking. The other three are for the walk itself: what it sees of a framework, of the step with it, and of
the stage that it walks.
"""

from collections.abc import Mapping
from typing import Protocol

from tonnage.architectures import Block, Model
from tonnage.estimate.step.communication import Communication
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import Shares, Stage
from tonnage.estimate.step.sizes import Sizes
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import Recipe
from tonnage.runtimes import TrainingRuntime
from tonnage.spec import Cluster, TrainingPlan
from tonnage.tape import Account, Layer, Setting


class StepView(Protocol):
    """What all stages of a step share."""

    # ---- from the beginning ----

    @property
    def model(self) -> Model: ...
    @property
    def plan(self) -> TrainingPlan: ...
    @property
    def cluster(self) -> Cluster | None: ...
    @property
    def runtime(self) -> TrainingRuntime: ...
    @property
    def recipe(self) -> Recipe:
        """The types of weights, gradients and activations."""

    # ---- once the framework has said how layers are written ----

    @property
    def setting(self) -> Setting: ...
    @property
    def sizes(self) -> Sizes:
        """Turns coefficients for each token, pair or parameter into bytes on a rank."""

    @property
    def whole(self) -> Shares:
        """What tensor and expert ranks have of each weight."""

    @property
    def sharded(self) -> Shares:
        """What tensor and expert ranks have of each weight, cut over the ranks that share states."""

    @property
    def held(self) -> Mapping[Block, Term]:
        """Parameters of a layer of each kind, before ZeRO."""

    @property
    def trained_held(self) -> Mapping[Block, Term]:
        """Parameters that train of a layer of each kind, before ZeRO."""

    @property
    def layers(self) -> Mapping[Block, Layer]:
        """Every kind of layer on the tape."""

    @property
    def kept(self) -> Mapping[Block, Term]:
        """What a layer of each kind keeps for backward."""

    @property
    def masked(self) -> Mapping[Block, bool]:
        """Whether sequences reach beyond the window of such a layer."""

    @property
    def trains_all(self) -> bool: ...
    @property
    def updates(self) -> Recipe:
        """The types of what trains: of adapters, where they do."""


class RankView(Protocol):
    """One rank of a pipeline stage."""

    @property
    def step(self) -> StepView: ...
    @property
    def stage(self) -> Stage: ...
    @property
    def sizes(self) -> Sizes: ...
    @property
    def counts(self) -> Mapping[Block, int]:
        """Layers of each kind."""

    @property
    def frozen(self) -> int:
        """Layers, counted from the first, that keep nothing for backward."""

    @property
    def points(self) -> tuple[Point, ...]:
        """Moments at which memory can peak."""

    @property
    def in_flight(self) -> Term:
        """Micro-batches' worth of layers that wait for backward."""

    @property
    def communication(self) -> Communication: ...

    # ---- parameters ----

    @property
    def whole(self) -> Term:
        """All parameters of the rank, before ZeRO."""

    @property
    def shard(self) -> Term:
        """All parameters of the rank, after ZeRO."""

    @property
    def trained(self) -> Term: ...
    @property
    def trained_shard(self) -> Term: ...
    @property
    def table(self) -> Term: ...
    @property
    def after(self) -> Term:
        """Norm and head, but for a tied table."""

    @property
    def head(self) -> Term: ...

    # ---- bytes ----

    @property
    def weights(self) -> Term:
        """On the accelerator."""

    @property
    def optimizer(self) -> Term: ...
    @property
    def everything(self) -> Term:
        """Gradients on the accelerator."""

    @property
    def every_weight(self) -> Term:
        """All weights, wherever they live."""

    @property
    def every_gradient(self) -> Term: ...
    @property
    def every_state(self) -> Term:
        """All optimizer states, wherever they live."""

    @property
    def step_copies(self) -> Term:
        """Copies of gradients that the optimizer's step makes."""

    @property
    def step_buffers(self) -> Term: ...
    def kept_at(self, point: Point) -> Term:
        """What layers keep for backward at a moment."""

    def buffers_at(self, point: Point) -> Term:
        """Buffers of communication at a moment."""


class FrameworkView(Protocol):
    """What the walk of a stage, and the memory of its host, ask of a framework (estimate.frameworks.base says what
    each means).
    """

    @property
    def copies_layer_shards(self) -> bool: ...

    @property
    def loss_of_objective(self) -> str: ...
    @property
    def adds_tied_gradients(self) -> bool: ...
    @property
    def keeps_gradients(self) -> bool: ...
    @property
    def unit_gradient_width(self) -> float: ...
    def base_bytes(self) -> float: ...
    def loss(self, stage: Stage) -> Layer | None: ...
    def embedding(self) -> Account: ...
    def ends_pipeline(self, block: Block) -> bool: ...
    def offloaded_tensors(self, block: Block) -> Term | None: ...
    def points(self, rank: RankView, plain: tuple[Point, ...]) -> tuple[Point, ...]: ...
    def buffers(self, rank: RankView, point: Point | None) -> Term | None: ...
    def step_copies(self, rank: RankView) -> Term | None: ...
    def weights(self, rank: RankView) -> list[Term]: ...
    def gradients(self, rank: RankView, point: Point) -> Term | None: ...
    def temporary(self, rank: RankView, point: Point) -> list[Term]: ...
    def reserve(self, rank: RankView, point: Point | None, gradients: Number) -> list[Term] | None: ...
    def reserve_share(self, rank: RankView, point: Point) -> float: ...
    def outside(self, rank: RankView) -> list[Term]: ...
    def left_over(self, rank: RankView) -> list[Term]: ...
    def lasting(self, rank: RankView) -> list[Term]: ...
    def passing(self, rank: RankView, point: Point) -> list[Term]: ...
    def workspaces(self, rank: RankView) -> list[Term]: ...
    def gradients_to_host(self, rank: RankView) -> tuple[Term, Number]: ...
    def host_states(self, rank: RankView) -> tuple[list[Term], list[Term]]: ...
    @property
    def loads_on_first_rank(self) -> bool: ...
    def gathered_to_save(self, parameters: Term) -> Term | None: ...


class WalkedStep(StepView, Protocol):
    """The step as the walk sees it: with its framework."""

    @property
    def framework(self) -> FrameworkView: ...
    @property
    def stages(self) -> tuple[Stage, ...]: ...
    @property
    def made_again(self) -> Mapping[Block, Term]:
        """What a layer of each kind makes again in backward, where its gradients of weights come later."""

    @property
    def layers(self) -> Mapping[Block, Layer]: ...
    @property
    def kinds(self) -> tuple[tuple[Block, Layer], ...]:
        """Layers of each kind, in their order."""

    @property
    def shard(self) -> Mapping[Block, Term]:
        """Parameters of a layer of each kind, after ZeRO."""

    @property
    def trained_shard(self) -> Mapping[Block, Term]:
        """Parameters that train of a layer of each kind, after ZeRO."""

    @property
    def tower(self) -> "WalkedStep | None":
        """The vision tower's step, over patches; None without images."""

    @property
    def scalar(self) -> bool:
        """Whether all sizes are numbers: one plan."""


class StageView(RankView, Protocol):
    """The stage that is walked."""

    @property
    def step(self) -> WalkedStep: ...
    @property
    def plan(self) -> TrainingPlan: ...
    @property
    def lasting(self) -> Term:
        """Buffers of the whole step."""

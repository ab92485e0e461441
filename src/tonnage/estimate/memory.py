"""Memory of one training step: every pipeline stage, every moment at which memory can peak. Branches on names happen
here.
"""

from collections.abc import Mapping
from functools import cached_property, reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block, Model
from tonnage.estimate.frameworks.base import Framework, framework_of
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.plan.schedule import as_walked, schedule_of
from tonnage.estimate.site.terms import Correction, calibrated_bytes, training_correction
from tonnage.estimate.step.method import trained_parameters
from tonnage.estimate.step.pipeline_layout import chunk_layers
from tonnage.estimate.step.rank import Shares, block_parameters, first_of, stages, with_first_apart
from tonnage.estimate.step.sizes import Sizes
from tonnage.estimate.step.stage import ROUNDING, StageMemory
from tonnage.formulas import memory as g
from tonnage.kernel.formula import Number, maximum
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import TRAINING_RECIPES, Recipe
from tonnage.runtimes import training_runtime
from tonnage.spec import Cluster, PipelineLayout, TrainingPlan, Tuning, Vision
from tonnage.tape import Layer, Setting


class RankMemory:
    """One group of equal ranks (a pipeline stage): each phase's Term, and the largest of them. Terms are made when
    they are asked for.
    """

    def __init__(self, stage: StageMemory, correction: Correction | None = None):
        self.rank = stage.stage.rank
        self.stage = stage
        self._correction = correction  # by own runs
        self._factor: Number = 1 if correction is None else correction.factor
        self._bounds = stage.bounds()  # one after the other, each when it is asked for
        self._bound: Number = 0

    @cached_property
    def phases(self) -> tuple[Term, ...]:
        return tuple(calibrated_bytes(phase, self._correction) for phase in self.stage.phases())

    @cached_property
    def peak(self) -> Term:
        """The phase that needs most."""
        if "phases" not in self.__dict__ and self.stage.step.scalar:
            return calibrated_bytes(self.stage.peak(), self._correction)
        return max(self.phases, key=lambda phase: phase.value)

    @cached_property
    def needed(self) -> Number:
        """Bytes of the fullest moment; an array if the plan's sizes are arrays."""
        self._bound = reduce(lambda _, bound: bound * self._factor, self._bounds, self._bound)
        return self._bound

    def exceeds(self, limit: float) -> bool:
        """Whether the fullest moment needs more bytes: known at the first moment that does. Of plans of numbers."""
        while "needed" not in self.__dict__:
            if self._bound > limit * (1 + ROUNDING):
                return True
            following = next(self._bounds, None)
            if following is None:
                self.needed = self._bound
            else:
                self._bound = following * self._factor
        return bool(self.needed > limit)

    @property
    def at_least(self) -> Number:
        """Bytes that the fullest moment needs at least, of the moments that were looked at so far, or of the first."""
        if "needed" not in self.__dict__ and not self._bound:
            self._bound = next(self._bounds) * self._factor
        return self._bound


class TrainingMemory(Struct, frozen=True, eq=False):
    """All rank groups of a step; `memory` is the peak phase of the fullest one."""

    step: "Step"
    ranks: tuple[RankMemory, ...]
    candidates: tuple[RankMemory, ...]  # of stages that are alike the one that holds most

    @property
    def fullest(self) -> RankMemory:
        return self.candidates[0] if len(self.candidates) == 1 else max(self.candidates, key=lambda rank: rank.needed)

    @property
    def memory(self) -> Term:
        return self.fullest.peak

    @property
    def needed(self) -> Number:
        """Bytes of the fullest GPU's peak; an array if the plan's sizes are arrays."""
        return reduce(maximum, (rank.needed for rank in self.candidates))

    @property
    def at_least(self) -> Number:
        """Bytes that the fullest GPU needs at least, as far as its moments were looked at."""
        return max(rank.at_least for rank in self.candidates)

    def exceeds(self, limit: float) -> bool:
        """Whether the fullest GPU needs more bytes, for less work than `needed` where it does."""
        return any(rank.exceeds(limit) for rank in self.candidates)


def training_memory(model: Model, plan: TrainingPlan, cluster: Cluster | None = None) -> TrainingMemory:
    """Peak bytes of one training step, by pipeline stage and phase.

    The plan must have been checked (estimate.options.plans); its sizes may be arrays with one entry per plan.
    """
    return Step(model, plan, cluster).walk()


class Step:
    """The walk of one step: what all stages share is computed once."""

    framework: Framework
    whole: Shares
    sharded: Shares
    sizes: Sizes
    setting: Setting
    held: dict[Block, Term]
    trained_held: dict[Block, Term]
    masked: dict[Block, bool]
    trains_all: bool
    updates: Recipe

    def __init__(self, model: Model, plan: TrainingPlan, cluster: Cluster | None):
        #: As the user has it; `plan`: as it is walked.
        self.stated_plan = plan
        plan = as_walked(plan)
        self.model, self.plan, self.cluster = model, plan, cluster
        self.runtime = training_runtime(plan.runtime, plan.runtime_version)
        self.recipe = TRAINING_RECIPES[plan.precision]
        dense = plan.data_parallel_size * plan.context_parallel_size / plan.replicate_size
        experts = dense * plan.tensor_parallel_size / (plan.expert_parallel_size * plan.expert_tensor_parallel_size)
        self.framework = framework_of(self.runtime).for_step(self)
        multiple = self.framework.vocabulary_multiple()
        self.whole = Shares(
            plan.tensor_parallel_size, plan.expert_parallel_size, plan.expert_tensor_parallel_size, multiple=multiple
        )
        self.sharded = Shares(self.whole.t, self.whole.e, self.whole.q, dense, experts, multiple)
        chunks = chunk_layers(model, self.runtime, plan)
        found = stages(model, plan.pipeline_parallel_size, chunks, v_shaped=schedule_of(plan).v_shaped)
        self.stages = self.framework.stages(found)
        if plan.tuning.has_adapters and plan.recompute != "full":
            self.stages = with_first_apart(self.stages)
        running = dict.fromkeys(block for stage in self.stages for block, _ in stage.layers)
        blocks = [*running, *(block for block, _ in self.stages[0].towers)]
        self.held = {block: block_parameters(block, self.whole) for block in blocks}
        self.shard = {block: block_parameters(block, self.sharded) for block in blocks}
        self.setting = self.framework.setting()
        self.sizes = Sizes(
            plan,
            plan.sequence_parallel and self.runtime.sequence_parallel,
            self.whole,
            self.framework.rows(),
            self.framework.joins_rows,
        )
        self.masked = {}
        self.layers = {block: self._layer(block) for block in running}
        self.trains_all = plan.tuning.method == "full"
        self.updates = (
            self.recipe
            if self.trains_all
            else TRAINING_RECIPES[self.framework.adapter_precision]
            if plan.tuning.method != "freeze"
            else self.recipe
        )
        self.trained_held, self.trained_shard = self.held, self.shard
        if plan.tuning.has_adapters:
            self.trained_held = {
                block: trained_parameters(layer.trained, self.whole) for block, layer in self.layers.items()
            }
            self.trained_shard = {
                block: trained_parameters(layer.trained, self.sharded) for block, layer in self.layers.items()
            }
        self.kept = {block: self.sizes.kept("one layer", layer.kept) for block, layer in self.layers.items()}
        self.scalar = plan.is_of_numbers
        #: What the site's own runs say of memory like this one's.
        self.correction = training_correction("training_memory", model, plan, cluster)
        self.timing: Any = None  # how long it takes, where somebody asked for that (step_time)

    @cached_property
    def made_again(self) -> dict[Block, Term]:
        """Bytes of a layer of each kind that are made again in backward, and stay where its gradients of weights come
        later; empty where nothing runs again.
        """
        if self.plan.recompute == "none" or not schedule_of(self.plan).splits:
            return {}
        plain = Step(self.model, replace(self.plan, recompute="none"), self.cluster).kept
        return {
            block: Term.of("one layer, made again", g.bytes_that_stay, M=plain[block].value, U=kept.value)
            for block, kept in self.kept.items()
        }

    def _layer(self, block: Block) -> Layer:
        window = tapes.window_of(block)
        masked = self.masked[block] = window is not None and bool(first_of(self.plan.sequence_length) >= window)
        hidden = next(
            (branch.hidden_size for branch in self.model.branches if block in branch.blocks), self.model.hidden_size
        )
        return self.framework.layer(block, masked, hidden)

    def walk(self) -> TrainingMemory:
        ranks = tuple(RankMemory(StageMemory(self, stage), self.correction) for stage in self.stages)
        alike: dict[tuple[object, ...], RankMemory] = {}
        # The first has most in flight; where backward is split all have as many, and the last has most that waits for
        # gradients of weights.
        splits = schedule_of(self.plan).splits
        for stage, rank in zip(self.stages, ranks, strict=True):
            key = (stage.order, stage.before, stage.after, stage.towers)
            alike[key] = rank if splits else alike.get(key, rank)
        return TrainingMemory(self, ranks, tuple(alike.values()))

    @cached_property
    def tower(self) -> "Step | None":
        """The vision tower as a model whose sequences are the patches of an image; None where there are no images.
        It is on the first stage alone.
        """
        plan, vision = self.plan, self.plan.vision
        if not vision.sees:
            return None
        branch = next(branch for branch in self.model.branches if branch.kind == "vision")
        alone = replace(
            self.model,
            hidden_size=branch.hidden_size,
            branches=(replace(branch, kind="decoder"),),
            tied=False,
            config=_of_tower(self.model),
        )
        of_patches = replace(
            plan,
            sequence_length=vision.image_patches,
            micro_batch_size=plan.micro_batch_size * vision.image_sequences,
            pipeline_parallel_size=1,
            virtual_pipeline_size=1,
            pipeline_schedule="1f1b",
            context_parallel_size=1,
            expert_parallel_size=1,
            expert_tensor_parallel_size=1,
            sequence_parallel=False,
            mean_packed_length=None,
            packing=False,
            site=None,
            layout=PipelineLayout(),
            tuning=Tuning(),
            vision=Vision(),
        )
        return Step(alone, of_patches, self.cluster)

    @cached_property
    def kinds(self) -> tuple[tuple[Block, Layer], ...]:
        return tuple(self.layers.items())


QUICK = ("clip_vision_model", "qwen2_vl")  # hidden_act quick_gelu: transformers, CLIPVisionConfig, Qwen2VLVisionConfig


def _of_tower(model: Model) -> dict[str, Any]:
    """The config of the language model with the activation of its vision tower."""
    from tonnage.estimate.media.images import section  # most runs are on text

    text, vision = model.config.get("text_config"), section(model, "vision_config")
    config = {**model.config, **(text if isinstance(text, Mapping) else {})}
    config.pop("text_config", None)
    usual = "quick_gelu" if vision.get("model_type") in QUICK else "gelu"
    return config | {"hidden_act": vision.get("hidden_act") or usual}

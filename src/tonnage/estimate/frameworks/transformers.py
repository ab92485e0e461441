"""The Trainer of transformers in the walk: its losses by release, and what PyTorch's allocator keeps beside them.

Under bf16 or fp16, Accelerate wraps the model's forward in convert_outputs_to_fp32 (accelerator.py, utils/operations.py
of 0.29 and 1.15): 16-bit logits are copied to fp32 when it returns, and both go when Trainer.compute_loss does, before
backward. With the logarithms that is 10 bytes a logit, less than the 12 that backward holds, so that it is never the
fullest moment here; it is in Unsloth, whose loss makes no copies.
"""

from collections.abc import Sequence
from functools import reduce

from msgspec.structs import replace

from tonnage.architectures import Block, Model
from tonnage.estimate.frameworks.base import FRAMEWORKS, Framework
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.layers.losses import UPCAST_IN_MODEL
from tonnage.estimate.step.communication import RESERVE, RESERVE_SOURCE
from tonnage.estimate.step.pipeline_layout import Release, release_of
from tonnage.estimate.step.points import Point, by_extent
from tonnage.estimate.step.rank import Stage, first_of
from tonnage.estimate.step.views import RankView
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number, maximum, minimum
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import TRAINING_RECIPES
from tonnage.ops import Attention
from tonnage.runtimes.parts.fused import LIGER
from tonnage.spec import TrainingPlan
from tonnage.tape import Extent, Layer, Moment, Setting

NEWEST: Release = (5, 23)
# models/llama/modeling_llama.py of 4.39, 4.44 and 4.45: the model gives logits in fp32; loss/loss_utils.py of 4.46 and
# 4.48: the loss casts
# them, and copies all but the last position; of 4.49 on: labels are padded instead. Those between were not read.
LOSS_CASTS: Release = (4, 46)
LABELS_PADDED: Release = (4, 49)
LOGITS = Extent("token", "gathered")
SEGMENTS = (
    "PyTorch, c10/cuda/CUDACachingAllocator.cpp: a free block serves what fits into it, and segments of several "
    "do not join"
)


def release(text: str) -> Release:
    """The release of transformers that a run names."""
    return release_of(text, "transformers", NEWEST)


def loss_kind(of: Release) -> str:
    """How ForCausalLM takes its loss."""
    return "shifted in the model" if of < LOSS_CASTS else "shifted" if of < LABELS_PADDED else "upcast"


def liger_parts(model: Model, tokens: int) -> float:
    """Liger's loss takes as many tokens at once as give about as many logits as there are hidden states
    (fused_linear_cross_entropy.py).
    """
    part_tokens = -(-tokens // -(-model.vocab_size // model.hidden_size))
    return tokens / min(1 << (part_tokens - 1).bit_length(), tokens)


class Transformers(Framework):
    """A run of the Trainer on one accelerator, or under DDP."""

    @classmethod
    def sizes_of_loss(cls, plan: TrainingPlan) -> tuple[str, ...]:
        return ("sequence_length", "micro_batch_size") if plan.kernels.liger else ()

    @classmethod
    def launch_settings(cls, model: Model, plan: TrainingPlan) -> list[str]:
        """transformers, training_args.py."""
        flags = [
            f"--per_device_train_batch_size {plan.micro_batch_size}",
            f"--gradient_accumulation_steps {plan.num_microbatches}",
        ]
        flags += ["--gradient_checkpointing true"] if plan.recompute != "none" else []
        compute = TRAINING_RECIPES[plan.precision].compute
        return [*flags, f"--{compute} true"] if compute in ("bf16", "fp16") else flags

    def loss(self, stage: Stage) -> Layer | None:
        if not (stage.is_last and stage.after):
            return None
        if objective := self.loss_of_objective:
            return self.objective_loss(stage, objective)
        kind, parts = self.loss_kind()
        return tapes.loss_layer(
            stage.after, self.step.setting, self.step.model.hidden_size, kind, parts, logits_split=False
        )

    def loss_kind(self) -> tuple[str, float]:
        """Which of _losses is used, and into how many parts it takes the tokens."""
        if self.plan.kernels.liger:
            return "liger", liger_parts(self.step.model, self.tokens)
        return loss_kind(release(self.plan.runtime_version)), 1

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch; for several plans in an array, those of the first."""
        return int(first_of(self.plan.sequence_length) * first_of(self.plan.micro_batch_size))

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        """In a loop that holds the model's outputs, their logits; in the forward pass and its loss they are on the
        tape.
        """
        return [] if point.phase == "forward" else self._outputs(rank)

    def left_over(self, rank: RankView) -> list[Term]:
        return [*super().left_over(rank), *self._outputs(rank)]

    def _outputs(self, rank: RankView) -> list[Term]:
        """The logits as the model gives them: a loss that takes them part by part gives none."""
        if not self.plan.keep_outputs or self.plan.kernels.liger or self.plan.loss == "tiled" or not rank.stage.after:
            return []
        in_model = self.loss_kind()[0] in UPCAST_IN_MODEL
        width = 4 if in_model else self.step.setting.types.compute
        return [
            self.step.sizes.term("logits of this step, which the loop holds", self.step.model.vocab_size, width, LOGITS)
        ]

    def setting(self) -> Setting:
        setting = super().setting()
        return replace(setting, code=LIGER) if self.plan.kernels.liger else setting

    def logits_held(self) -> float:
        """Bytes of a logit in all segments that the loss takes: three in fp32, and where they were narrower, the
        first ones.
        """
        if self.plan.kernels.liger or self.plan.loss == "tiled":
            return 0
        width = self.step.setting.types.compute
        return 12 + (width if width < 4 else 0)

    def reserve(self, rank: RankView, point: Point | None, gradients: Number) -> list[Term] | None:
        """At the loss: what its own tensors leave empty, and the segments of a layer's temporaries, which are too
        small for logits.
        """
        if self._runs_again(rank, point):
            return [self._of_two(rank)]
        if point is None or not point.everything or not rank.stage.after:
            return [self._part(rank, point, gradients)]
        sizes, vocabulary = rank.sizes, self.step.model.vocab_size
        held = sizes.term("", vocabulary, self.logits_held(), LOGITS).value
        most = sizes.total({LOGITS: self._most_logits(rank.stage, point.phase)})
        terms = [Term.of("allocator reserve: logits", f.pool_reserve_bytes, M=held, x=most)]
        if self.plan.expandable_segments:
            return terms
        block = rank.stage.order[-1]
        return [*terms, self._layer(block, self._fullest(rank, self._forward(block)), self.step.kept[block].value)]

    def _forward(self, block: Block) -> tuple[Moment, ...]:
        hidden = next(branch.hidden_size for branch in self.step.model.branches if block in branch.blocks)
        return tapes.block_forward(block, self.step.setting, hidden)

    def _fullest(self, rank: RankView, moments: Sequence[Moment], unit: str = "") -> Number:
        """Bytes of a layer's fullest moment; `unit`: of what grows with this alone."""
        totals = [
            rank.sizes.total(
                {extent: size for extent, size in by_extent(moment.live).items() if unit in ("", extent.unit)}
            )
            for moment in moments
        ]
        return reduce(maximum, totals, 0)

    def _layer(self, block: Block, fullest: Number, left: Number) -> Term:
        return Term.of("allocator reserve: layer temporaries", f.pool_reserve_bytes, source=SEGMENTS, M=fullest, x=left)

    def _runs_again(self, rank: RankView, point: Point | None) -> bool:
        """The loss, or a layer that runs again in backward: what the one leaves is not used by the other."""
        if point is None or not (point.everything or point.position >= 0) or not rank.stage.after:
            return False
        return self.plan.recompute == "full" and bool(self.logits_held()) and not self.plan.expandable_segments

    def _of_two(self, rank: RankView) -> Term:
        """Logits, and a layer's backward, each need segments that the other's do not serve: at the fuller of the two,
        those of the other are empty.

        Matrices of scores that a layer's forward pass does not need at once lie where logits were, if each of them
        is no larger than logits in fp32.
        """
        block = rank.stage.order[-1]
        backward = [moment for moment in self.step.layers[block].moments if not moment.forward]
        fullest, left = self._fullest(rank, backward), self.step.kept[block].value
        pairs = {extent for moment in backward for extent in by_extent(moment.live) if extent.unit == "pair"}
        heads = next((op.heads for op in block.ops if isinstance(op, Attention)), 0)
        if pairs and heads:
            one = rank.sizes.total({next(iter(pairs)): 4 * heads})
            logits = rank.sizes.total({LOGITS: 4 * self.step.model.vocab_size})
            more = self._fullest(rank, backward, "pair") - self._fullest(rank, self._forward(block), "pair")
            left = left + (one <= logits) * 1.0 * maximum(more, 0)
        logits = rank.sizes.total({LOGITS: self._most_logits(rank.stage, "loss")})
        return Term.of(
            "allocator reserve: logits or layer temporaries",
            f.fixed_bytes,
            source=SEGMENTS,
            M=minimum(maximum(fullest - left, 0), logits),
        )

    def reserve_share(self, rank: RankView, point: Point) -> float:
        if self._runs_again(rank, point):
            return 0
        return RESERVE if not point.everything or not rank.stage.after else 0

    def _most_logits(self, stage: Stage, phase: str) -> float:
        """Bytes a token of the logits and what is as large, at the fullest moment of the loss's forward or backward."""
        layer = self.loss(stage)
        moments = layer.moments if layer is not None else ()
        return max(
            (by_extent(moment.live).get(LOGITS, 0) for moment in moments if moment.forward == (phase == "forward")),
            default=0,
        )

    def _part(self, rank: RankView, point: Point | None, gradients: Number) -> Term:
        """Elsewhere: a part of all that stays; a frozen base is read once, block after block, and leaves no holes."""
        held = (
            rank.optimizer.value
            + gradients
            + sum(term.value for term in rank.weights.children if "base weights" not in term.name)
        )
        held = held + (
            rank.step_copies.value + rank.step_buffers.value
            if point is None
            else rank.kept_at(point).value + rank.buffers_at(point).value
        )
        return Term.of(
            "allocator reserve", f.reserve_bytes, basis="measured", source=RESERVE_SOURCE, M=held, rho=RESERVE
        )


FRAMEWORKS.add("transformers", Transformers)

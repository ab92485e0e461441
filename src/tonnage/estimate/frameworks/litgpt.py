"""LitGPT in the walk: its loss, logits that have a name until the next step, and on several accelerators what Fabric
shards.

There its scripts differ: finetune_full and pretrain wrap blocks in FSDP1, finetune_lora does from 0.5.11 on in FSDP2,
and both recompute every block (pretrain none). FSDP1 makes one flat parameter of a block, so that its gradient is whole
where a part of it trains; without synchronisation it is summed whole on every rank (PyTorch,
torch/distributed/fsdp/_flat_param.py: _get_unflat_views; _runtime_utils.py: _post_backward_hook, run on two processes).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Block, Model
from tonnage.estimate.frameworks.base import FRAMEWORKS, Framework, PlanRequest
from tonnage.estimate.frameworks.fsdp2 import Fsdp2
from tonnage.estimate.frameworks.fsdp2_units import Units
from tonnage.estimate.layers.losses import FUSED, LOSSES
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import layer_count
from tonnage.estimate.step.views import RankView, StepView
from tonnage.formulas import memory as f
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.runtimes import HUB
from tonnage.spec import Cluster, TrainingPlan
from tonnage.tape import Code, Extent, Held, Setting, Tensor

# Lightning, fabric/plugins/precision/bitsandbytes.py: quantised from fp16, so that it is made whole in fp16 and then
# cast
WHOLE = 4
PART = 128  # litgpt/finetune/lora.py: lm_head_chunk_size, in tokens of a sequence
UNITS_SINCE = (0, 5, 11)  # wheels 0.5.10 and 0.5.11, litgpt/finetune/lora.py: FSDPStrategy, then ModelParallelStrategy
# Fabric's names of precisions, and what litgpt/finetune/lora.py calls layers that get adapters.
PRECISIONS = {
    "bf16-mixed": "bf16-mixed",
    "fp16-mixed": "16-mixed",
    "bf16": "bf16-true",
    "fp16": "16-true",
    "fp32": "32-true",
}
TARGETS = {
    "query": ("q_proj",),
    "key": ("k_proj",),
    "value": ("v_proj",),
    "projection": ("o_proj",),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
}
QUANTISED = {"nf4": "bnb.nf4", "nf4-double": "bnb.nf4-dq", "fp4": "bnb.fp4", "fp4-double": "bnb.fp4-dq"}


def is_flat(method: str, version: str) -> bool:
    """Whether several accelerators share flat parameters of FSDP1, and not parameters of FSDP2."""
    named = re.search(r"litgpt[ =-]*v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    release = tuple(int(part or 0) for part in named.groups()) if named else UNITS_SINCE
    return method == "full" or release < UNITS_SINCE


class LitGPT(Framework):
    """A run of litgpt finetune or pretrain on one accelerator."""

    @classmethod
    def for_step(cls, step: StepView) -> "LitGPT":
        return Sharded(step) if step.plan.zero_stage else LitGPT(step)

    @classmethod
    def options(cls, request: PlanRequest) -> dict[str, Any]:
        """Refuses what LitGPT's scripts refuse, or cannot do."""
        o, several = request.options, request.sizes["data_parallel_size"] > 1
        if several != bool(request.zero_stage):
            raise InvalidPlan(
                "LitGPT shards its states over several accelerators and nothing on one: {@zero_stage} must be "
                "{right}. Got {stage}.",
                right=3 if several else 0,
                stage=request.zero_stage,
            )
        if several and (o.method == "qlora" or (o.base_weights or "16 bit") not in ("16 bit", "fp32")):
            raise InvalidPlan(
                "LitGPT quantises a base on one accelerator alone: with {size} {@method} must be lora, without "
                "{@base_weights}. Got {base}. (litgpt/finetune/lora.py: Quantization is currently not supported for "
                "multi-GPU training.)",
                size=request.sizes["data_parallel_size"],
                base=o.base_weights or o.method,
            )
        if several and o.precision == "fp16-mixed" and not is_flat(o.method or "full", o.runtime_version or ""):
            raise InvalidPlan(
                "LoRA of LitGPT on several accelerators has no {@precision} fp16-mixed: it must be bf16-mixed, bf16, "
                "fp16 or fp32. (Lightning, fabric/connector.py: mp_precision_supported.)"
            )
        return {}

    @classmethod
    def launch_settings(cls, model: Model, plan: TrainingPlan) -> list[str]:
        """litgpt/finetune/{lora,full}.py and litgpt/pretrain.py; litgpt/args.py: TrainArgs."""
        place = model.place or (model.name if "/" in model.name else HUB)
        several = plan.data_parallel_size > 1
        script = (
            "finetune_lora"
            if plan.tuning.method != "full"
            else "pretrain"
            if several and plan.recompute == "none"
            else "finetune_full"
        )
        flags = [f"litgpt {script} {place}", f"--precision {PRECISIONS.get(plan.precision, plan.precision)}"]
        if plan.tuning.method != "full":
            targets = plan.tuning.lora_targets.split(",")
            flags.append(f"--lora_r {plan.tuning.lora_rank}")
            flags += [] if plan.tuning.lora_dropout else ["--lora_dropout 0"]
            for name, layers in TARGETS.items():
                chosen = not plan.tuning.lora_targets or all(layer in targets for layer in layers)
                flags.append(f"--lora_{name} {str(chosen).lower()}")
        if plan.tuning.base_weights in QUANTISED:
            flags.append(f"--quantize {QUANTISED[plan.tuning.base_weights]}")
        return [
            *flags,
            f"--train.micro_batch_size {plan.micro_batch_size}",
            f"--train.global_batch_size {plan.global_batch_size}",
            f"--train.max_seq_length {plan.sequence_length}",
        ]

    @classmethod
    def launch_machine(cls, cluster: Cluster) -> list[str]:
        nodes = [f"--num_nodes {cluster.num_nodes}"] if cluster.num_nodes > 1 else []
        return [f"--devices {cluster.accelerators_per_node}", *nodes]

    @classmethod
    def launch_lacks(cls, model: Model, plan: TrainingPlan) -> list[str]:
        several, full = plan.data_parallel_size > 1, plan.tuning.method == "full"
        usual = "full" if several else "none"
        is_pretraining = several and full and plan.recompute == "none"
        lacks = [f"recompute {plan.recompute}"] if plan.recompute != usual and not is_pretraining else []
        if is_pretraining:  # HYBRID_SHARD shards within a node, and the model is compiled
            lacks.append(Message("that pretrain compiles the model, which is not estimated"))
            if plan.replicate_size == 1:
                lacks.append(
                    Message("on several nodes {@replicate_size}: pretrain shards within a node (HYBRID_SHARD)")
                )
        elif plan.replicate_size > 1:  # FULL_SHARD
            lacks.append(f"replicate_size {plan.replicate_size}")
        return lacks

    @property
    def adapter_precision(self) -> str:
        """Adapters are made as the layers that they stand beside."""
        return "fp32" if self.recipe.update_bytes == 4 else "bf16"

    def setting(self) -> Setting:
        setting = super().setting()
        if setting.adapters is None or not setting.adapters.base:
            return setting
        return replace(setting, adapters=replace(setting.adapters, base=WHOLE, copies=False))

    @property
    def _head(self) -> float:
        return self.step.model.vocab_size * self.step.model.hidden_size

    @property
    def _casts_frozen_head(self) -> bool:
        """Autocast remembers its casts of weights that train (ATen, autocast_mode.cpp: cached_cast), so that a
        frozen head is cast by every part of the sequence, and each keeps its copy for backward.
        """
        return self.step.setting.adapters is not None and self.step.setting.types.autocast

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        if point.everything and self.plan.tuning.base_weights:
            return [self.step.sizes.term("head made whole", self._head, WHOLE, Extent("parameter", "vocab"))]
        if point.everything and self._casts_frozen_head:
            return [self._cast_head]
        if not point.head_made:
            return []
        return [self._logits]

    @property
    def _cast_head(self) -> Term:
        return self.step.sizes.positions("head, cast for each part of the sequence", self._head / PART, 2)

    @property
    def _logits(self) -> Term:
        return self.step.sizes.term("logits of this step", self.step.model.vocab_size, 4, Extent("token", "gathered"))


class FlatUnits(Units):
    """Units of FSDP1: a block's gradient is that of its whole flat parameter, whatever of it trains."""

    def _trained(self, block: Block) -> Term:
        return self.rank.step.held[block]

    def _reduce_input(self, unit: Term) -> tuple[Term, ...]:
        frozen = unit is self.root and not self.trains
        return (copies("input of the reduce-scatter", self.reduce, unit),) if unit.children and not frozen else ()


class Sharded(LitGPT, Fsdp2):
    """Several accelerators."""

    def __init__(self, step: StepView):
        super().__init__(step)
        self.flat = is_flat(self.plan.tuning.method, self.plan.runtime_version)
        #: FSDP1 gathers and reduces in the type of the precision (Lightning, plugins/precision/fsdp.py:
        #: mixed_precision_config); FSDP2 has no policy here, so that parameters travel as they are.
        self.width = self.recipe.compute_bytes if self.flat else self.recipe.update_bytes
        self.unit_gradient_width = self.width
        self._flat_units: dict[int, Units] = {}

    @property
    def adapter_width(self) -> float:
        return self.width

    @property
    def gathered_width(self) -> float:
        return self.width

    @property
    def reduced_width(self) -> float:
        return self.width

    def base_bytes(self) -> float:
        return self.recipe.update_bytes

    def setting(self) -> Setting:
        """Gathered weights are in the type of the products already, and autocast has nothing left to cast."""
        setting = super().setting()
        if not self.flat:
            return setting
        return replace(setting, types=replace(setting.types, parameter=self.width, autocast=False))

    def units(self, rank: RankView) -> Units:
        units = self._flat_units.get(rank.stage.rank)
        if units is None:
            kind = FlatUnits if self.flat else Units
            units = self._flat_units[rank.stage.rank] = kind(rank, self.width, loss_outside=True)
        return units

    @property
    def _loss_kind(self) -> str:
        return "litgpt" if self.plan.tuning.method != "full" else "litgpt-logits"

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        terms = Fsdp2.temporary(self, rank, point)
        if point.everything and self._casts_frozen_head:
            return [*terms, self._cast_head]
        return terms if point.moment == "loss" else [*terms, self._logits]

    @cached_property
    def _held(self) -> Any:
        """Parameters of a layer whose gradients are made."""
        return self.step.held if self.flat else self.step.trained_held

    def gradients(self, rank: RankView, point: Point) -> Term | None:
        """Whole ones of earlier micro-batches, which the last one's are added to; of a single micro-batch shards."""
        with_gradients = self._parameters(point.made)
        all_parameters = rank.whole if self.step.trains_all else self._parameters(rank.counts)
        shards = Term.of("shards", f.whole_parameters, N=with_gradients.value, z=self.step.sharded.z)
        count = self.plan.num_microbatches
        return Term.sum(
            "gradients",
            Term.product(
                "gradients summed before they are reduced",
                "bytes",
                Term.of("gradients of earlier micro-batches", f.gradients_carried, m=count),
                copies("whole gradients", self.width, all_parameters),
            ),
            Term.product(
                "gradients made so far",
                "bytes",
                Term.of("none of earlier micro-batches", f.gradients_fresh, m=count),
                copies("sharded gradients", self.recipe.update_bytes, shards),
            ),
        )

    def _parameters(self, layers: Mapping[Block, int]) -> Term:
        parts = [
            Term.product(block.name, "parameters", layer_count(count), self._held[block])
            for block, count in layers.items()
        ]
        return Term.sum("parameters", *parts, unit="parameters")

    def notes(self) -> list[str]:
        if not self.flat:
            return [
                Message(
                    "LitGPT loads the base's shards to host memory (litgpt/utils.py: load_checkpoint, "
                    "cpu_offload=True); they are counted on the accelerator, where nobody measured a run."
                )
            ]
        notes: list[str] = [Message("LitGPT wraps blocks in FSDP1 here, whose units are estimated as those of FSDP2.")]
        if not self.step.trains_all:
            notes.append(
                Message("FSDP1 makes gradients of frozen weights too, whose memory is counted and whose time is not.")
            )
        return notes


def whole_head_loss(code: Code, logits: Tensor) -> Tensor:
    """LitGPT's on logits that are made at once: an fp32 copy, which has a name; logarithms of parts of 128 tokens, and
    the gradients of all parts before they are joined.
    """
    wide = code.to(logits, 4)
    logarithms = code.like(wide)
    code.mark()
    shape = wide.elements, wide.width, wide.extent
    out = code.new(0, 4, wide.extent)
    code.note("chunked_cross_entropy", [out], [wide], [wide, logarithms], lambda _: [code.new(*shape)])
    return out


def chunked_loss(code: Code, x: Tensor, held: Sequence[Held], part: float) -> Tensor:
    """LitGPT's, on 128 tokens at a time: Fabric makes the logits fp32 (HalfPrecision.convert_output), in a list that
    has a name until the next step; each part keeps its logarithms, and what backward adds is one part's.
    """
    weights = [code.weight(*weight[:3]) for weight in held]
    shapes = [(weight.elements, weight.width, weight.extent) if weight.slot is not None else None for weight in weights]
    extent, shape = Extent("token", "gathered"), (x.elements, x.width, x.extent)
    narrow, wide = code.new(part, code.types.compute, extent), code.new(part, 4, extent)
    code.mark()
    del narrow
    logarithms = code.new(part, 4, extent)
    code.mark()
    out = code.new(0, 4, x.extent)
    saved = [x if any(shapes) else None, wide, logarithms]
    code.note(
        "chunked_cross_entropy",
        [out],
        [x, *weights],
        saved,
        lambda _: [code.new(*shape), *(code.new(*weight) if weight else None for weight in shapes)],
    )
    return out


FUSED["litgpt"] = chunked_loss
LOSSES["litgpt-logits"] = whole_head_loss
FRAMEWORKS.add("litgpt", LitGPT)

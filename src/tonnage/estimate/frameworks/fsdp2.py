"""FSDP2 in the walk: torchtitan's layers or those of transformers, unit by unit, and the pools of the allocator's
streams.
"""

from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.frameworks import torchtitan_flags as titan
from tonnage.estimate.frameworks.base import FRAMEWORKS, Framework, PlanRequest, dispatcher_of
from tonnage.estimate.frameworks.context_parallel import method_of
from tonnage.estimate.frameworks.fsdp2_units import Units, unit_points
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import Stage, first_of, layer_count
from tonnage.estimate.step.views import RankView, StepView
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan
from tonnage.tape import TOKEN, Extent, Layer, Own, Setting

# Bytes of a number of an operand that is cast, with its scales: of MXFP8 one of 8 bits for 32, of NVFP4 for 16. What
# ranks send stays in 16 bit (torchtitan, components/quantization/mxfp8.md; torchao, prototype/mx_formats/mx_linear.py,
# which keeps inputs and weights in bf16 for backward), and so it does with scales for rows: tensor ranks gather in
# float8 with scales for whole tensors alone (torchtitan, models/llama3/parallelize.py: float8 tensorwise).
CAST_BYTES = {"mxfp8": 1 + 1 / 32, "nvfp4": 1 / 2 + 1 / 16}
# Those whose backward reads what forward has cast (torchao, prototype/moe_training/nvfp4_training/nvfp4_linear.py).
KEEPS_CASTS = ("nvfp4",)
SYMMETRIC = "PyTorch, torch/distributed/_symmetric_memory/__init__.py: get_symm_mem_workspace"


class Compiled(Framework):
    """A framework with layers of its own, which may be compiled."""

    def setting(self) -> Setting:
        return replace(super().setting(), own=self.own())

    def own(self) -> Own | None:
        """What the runtime's own layers ask of the plan; other people's code knows nothing of it."""
        plan, runtime = self.plan, self.runtime
        if runtime.own is None or plan.model_code not in ("", runtime.model_codes[0]):
            return None
        return replace(
            runtime.own,
            compiled=plan.kernels.compile,
            tensor_parallel=_many(plan.tensor_parallel_size),
            ring=_many(plan.context_parallel_size) and plan.megatron.context_parallel_method != "a2a",
            float8=plan.kernels.float8 != "none",
            cast_bytes=CAST_BYTES.get(plan.kernels.float8, 1),
            keeps_casts=plan.kernels.float8 in KEEPS_CASTS,
            gathers_float8=plan.kernels.float8 == "tensorwise",
        )


class Fsdp2(Compiled):
    """A run on FSDP2."""

    @property
    def adapter_width(self) -> float:
        """Gathered parameters are in param_dtype, adapters too (torch, distributed/fsdp/_fully_shard/_fsdp_param.py:
        unsharded_param).
        """
        return self.recipe.compute_bytes if self.recipe.master_bytes else super().adapter_width

    trl_base = (
        "--bnb_4bit_quant_storage bfloat16",
    )  # accelerate, utils/fsdp_utils.py: what is stored as bytes is kept whole on every accelerator

    @classmethod
    def options(cls, request: PlanRequest) -> dict[str, Any]:
        fields = dispatcher_of(request.options, request.question)
        if request.options.context_parallel_method is not None:
            fields |= method_of(
                request.model, request.sizes, ("p2p", "a2a"), "ring attention", request.options, request.question
            )
        return fields

    @classmethod
    def launch_settings(cls, model: Model, plan: TrainingPlan) -> list[str]:
        return [*titan.batch_flags(plan), *titan.parallelism_flags(model, plan), *titan.recompute_flags(plan)]

    @classmethod
    def launch_lacks(cls, model: Model, plan: TrainingPlan) -> list[str]:
        return titan.lacking(model, plan)

    @classmethod
    def trl_sharding(cls, plan: TrainingPlan) -> list[str]:
        flags = ["--fsdp_reshard_after_forward false"] if plan.zero_stage == 2 else []
        return [*flags, *(["--fsdp_offload_params true"] if plan.offload.offload_parameters == "cpu" else [])]

    adds_tied_gradients = False  # gradients of the root's unit are counted with it

    def slower_runs(self) -> str:
        """validation/recent/torchao_blackwell.yaml: torchao-8xb200-bf16, -mxfp8-rceil and -rowwise."""
        cluster = self.step.cluster
        if cluster is None or not cluster.accelerator.name.startswith("B200-") or self.plan.model_code != "torchtitan":
            return ""
        return Message(
            "three published runs of torchtitan on eight B200 with a power limit (torchao) took 1.8 to 2.2 times as "
            "long as estimated, five runs on GB200 1.0 to 1.3 times. {--product-share} says what products reach on "
            "your machine."
        )

    def __init__(self, step: StepView):
        super().__init__(step)
        self.unit_gradient_width = self.recipe.compute_bytes
        self._units: dict[int, Units] = {}

    def units(self, rank: RankView) -> Units:
        units = self._units.get(rank.stage.rank)
        if units is None:
            units = self._units[rank.stage.rank] = Units(rank)
        return units

    @property
    def _loss_kind(self) -> str:
        own = self.step.setting.own
        if own is None:
            return "upcast"
        if own.compiled and own.compiles_loss:
            return "compiled"
        return "loss-parallel" if own.tensor_parallel else "cross-entropy"

    def loss(self, stage: Stage) -> Layer | None:
        if not (stage.is_last and stage.after):
            return None
        if kind := self.loss_of_objective:
            return self.objective_loss(stage, kind)
        chunks = self.runtime.loss_chunks if self.plan.loss == "chunked" else 1
        return tapes.loss_layer(
            stage.after,
            self.step.setting,
            self.step.model.hidden_size,
            self._loss_kind,
            chunks,
            self.runtime.logits_split,
        )

    def points(self, rank: RankView, plain: tuple[Point, ...]) -> tuple[Point, ...]:
        units = self.units(rank)
        return unit_points(plain, units.order, bool(units.head.children), units.accumulates)

    def buffers(self, rank: RankView, point: Point | None) -> Term | None:
        units = self.units(rank)
        if point is not None:
            return units.at(point).buffers
        return units.after_step

    def gradients(self, rank: RankView, point: Point) -> Term | None:
        units = self.units(rank)
        if not units.accumulates:
            return None
        if point.is_later:
            return Term.sum("gradients", units.accumulated)
        above = [
            Term.product(block.name, "parameters", layer_count(count), self.step.trained_held[block])
            for block, count in point.made.items()
        ]
        parameters = Term.sum("parameters", *above, unit="parameters")
        return Term.sum("gradients", copies("gradients summed before they are reduced", units.reduce, parameters))

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        units = self.units(rank)
        results = [units.made(rank.sizes.made(point.bytes))] if point.bytes else []
        return [*results, *units.at(point).gradients, *units.edges]

    def reserve(self, rank: RankView, point: Point | None, gradients: Number) -> list[Term]:
        """What lies idle in the pools of the streams, and around the logits."""
        units = self.units(rank)
        ahead = units.at(point).ahead if point is not None else None
        live = 0 if units.accumulates and point is not None else gradients
        terms = [
            Term.of(
                "allocator reserve: all-gather stream",
                f.pool_reserve_bytes,
                M=units.pool.value,
                x=ahead.value if ahead else 0,
            ),
            Term.of("allocator reserve: reduce-scatter stream", f.pool_reserve_bytes, M=rank.everything.value, x=live),
        ]
        return [*terms, *self._holes(rank)] if point is not None and point.phase == "loss" else terms

    def _holes(self, rank: RankView) -> list[Term]:
        """Where logits and their fp32 copy were is room for one fp32 gradient, and a half is left; segments of a
        layer's temporaries are too small for logits, unless the allocator expands them.
        """
        terms = []
        if self._loss_kind != "compiled" and self.plan.loss == "full":
            split = "tensor" if self.runtime.logits_split else "gathered"
            size = rank.sizes.term("", self.step.model.vocab_size, 2, Extent("token", split))
            terms.append(Term.of("allocator reserve: logits", f.fixed_bytes, M=size.value))
        if not self.plan.expandable_segments and self.units(rank).order:
            block = self.units(rank).order[-1]
            extents = [point.bytes for point in rank.points if point.position == len(self.units(rank).order) - 1]
            most = Term.max(
                "most", *(Term.of("bytes", f.fixed_bytes, M=rank.sizes.total(account)) for account in extents)
            ).value
            terms.append(
                Term.of(
                    "allocator reserve: layer temporaries", f.pool_reserve_bytes, M=most, x=self.step.kept[block].value
                )
            )
        return terms

    def workspaces(self, rank: RankView) -> list[Term]:
        terms = super().workspaces(rank)
        if (
            self.plan.kernels.async_tensor_parallel
        ):  # outside of PyTorch's allocator: shards that others read, and two parts of a sum
            one = rank.sizes.term("", self.step.model.hidden_size, self.recipe.compute_bytes, TOKEN)
            terms.append(
                Term.of("symmetric memory of tensor parallelism", f.workspace_bytes, source=SYMMETRIC, M=one.value, n=2)
            )
        return terms


def _many(size: Number) -> bool:
    """Whether there is more than one rank; plans in an array agree in that (estimate.plan_columns)."""
    return bool(first_of(size) > 1)


FRAMEWORKS.add("fsdp2", Fsdp2)

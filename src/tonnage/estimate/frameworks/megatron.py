"""Megatron-core in the walk: its layers and ends on the tape, and what its schedule and Transformer Engine hold
beside them.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from tonnage.architectures import Block, Model, style_of, wiring
from tonnage.estimate.frameworks.base import (
    FRAMEWORKS,
    Framework,
    HostStates,
    PlanRequest,
    dispatcher_of,
    pinned,
)
from tonnage.estimate.frameworks.context_parallel import METHODS, method_named
from tonnage.estimate.frameworks.megatron_flags import SHARDED, launch_flags
from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.rule import LARGEST
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.communication import copies, width_of
from tonnage.estimate.step.method import adapters_of, linear_parameters
from tonnage.estimate.step.pipeline_layout import with_predictions
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import Stage, first_of
from tonnage.estimate.step.states import leaving, offloaded
from tonnage.estimate.step.views import RankView
from tonnage.formulas import memory as f
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.message import Message, option_name
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.kernel.units import counted
from tonnage.ops import Embedding, Head, LatentAttention, MoE, Op
from tonnage.runtimes.parts.megatron import buffers, ends, pipeline, prediction
from tonnage.runtimes.parts.megatron.layers import MegatronLayers
from tonnage.runtimes.parts.megatron.pipeline import offloadable
from tonnage.spec import TrainingPlan
from tonnage.tape import TOKEN, Account, Extent, Layer, Types, layer
from tonnage.tape.megatron import ContextParallel, MegatronSetting, Recipe, Shape

# ---- Options of Megatron-core that other runtimes do not have: checked, with its own defaults.

# recompute_modules of Megatron-core (transformer_config.py)
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
# Of what changes time alone, the default comes first: of --cuda-graph-impl Megatron's own. Its default of
# --moe-token-dispatcher-type is allgather (arguments.py), which is not estimated: recipes take one of these two, and
# the launch line of a plan names it.
GRAPHS = ("none", "full")
SCOPES = ("attn", "mamba", "mlp", "moe", "moe_router", "moe_preprocess")  # --cuda-graph-scope


def megatron_options(model: Model, sizes: Mapping[str, Any], o: TrainingOptions, q: Question) -> dict[str, Any]:
    """The fields of a plan that they decide."""
    fields: dict[str, Any] = {}
    if o.recompute == "selective" or o.recompute_modules is not None:
        fields["recompute_modules"] = _modules(
            q.take("recompute_modules", o.recompute_modules, "core_attn", "runtime", "megatron's own"), o
        )
    if sizes["context_parallel_size"] > 1:
        method = method_named(o.context_parallel_method, METHODS, "p2p", "--cp-comm-type", q)
        fields["context_parallel_method"] = method
    if o.expert_capacity_factor is not None:
        if not 0 < o.expert_capacity_factor < 1e6:
            raise InvalidPlan(
                "{@expert_capacity_factor} must be above 0 and below 1,000,000. Got {expert_capacity_factor:g}.",
                expert_capacity_factor=o.expert_capacity_factor,
            )
        fields["expert_capacity_factor"] = q.take("expert_capacity_factor", o.expert_capacity_factor, None)
    fields["mtp_layers"] = _predictions(model, o, q)
    return fields | _timing(sizes, o, q)


def _timing(sizes: Mapping[str, Any], o: TrainingOptions, q: Question) -> dict[str, Any]:
    """What changes time alone: noted where it is given, or has something to change."""
    fields = dispatcher_of(o, q)
    if o.cuda_graph is not None:
        scopes = [scope.strip() for scope in o.cuda_graph.split(",")]
        if o.cuda_graph not in GRAPHS and not set(scopes) <= set(SCOPES):
            raise unknown("cuda_graph", o.cuda_graph, (*GRAPHS, *SCOPES))
        fields["cuda_graph"] = q.take("cuda_graph", ",".join(scopes), GRAPHS[0])
    for name, size in (
        ("tp_comm_overlap", "tensor_parallel_size"),
        ("overlap_moe_expert_parallel_comm", "expert_parallel_size"),
    ):
        if (value := getattr(o, name)) is not None:
            if value and sizes[size] == 1:
                raise NotApplicable(
                    Message(
                        "{name} needs {size} above 1: there is nothing to overlap. Got {size} 1.",
                        name=option_name(name),
                        size=option_name(size),
                    ),
                    name,
                    (size,),
                )
            fields[name] = q.take(name, value, False)
    return fields


def _predictions(model: Model, o: TrainingOptions, q: Question) -> int:
    """Layers of multi-token prediction: none unless told, and of models that Megatron gives them to alone."""
    drafts = sum(branch.num_layers for branch in model.branches if branch.kind == "draft")
    if o.mtp_layers is None and not drafts:
        return 0
    why = (
        Message("--mtp-num-layers is unset; the checkpoint has {drafts}", drafts=counted(drafts, "layers"))
        if drafts
        else "--mtp-num-layers is unset"
    )
    count: int = q.take("mtp_layers", o.mtp_layers, 0, "runtime", why)
    if not 0 <= count <= LARGEST:
        raise InvalidPlan("{@mtp_layers} must be from 0 to {largest:,}. Got {count:,}.", largest=LARGEST, count=count)
    main = model.decoder
    if count and sum(isinstance(op, Embedding) for op in main.before) != 1:
        raise InvalidPlan(
            "multi-token prediction of megatron has rotary positions or none: {@mtp_layers} must be "
            "0 with {model}, which has a table of them. Got {count}.",
            model=model.name,
            count=count,
        )
    if count and not any(isinstance(op, Head) for op in main.after):
        raise InvalidPlan(
            "{@mtp_layers} must be 0 with {model}, which has no head. Got {count}.", model=model.name, count=count
        )
    return count


def _modules(text: str, o: TrainingOptions) -> str:
    named = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in named:
        if name not in MODULES:
            raise unknown("module to recompute", name, MODULES)
    if o.recompute not in (None, "selective"):
        raise NotApplicable(
            Message(
                "{@recompute_modules} belong to {@recompute} selective. Got {text} with {@recompute} {recompute}.",
                text=text,
                recompute=o.recompute,
            ),
            "recompute_modules",
            ("recompute",),
        )
    return ",".join(named)


# Beginnings of recipes' names -> how the tape names what Transformer Engine stores. Megatron's default of --fp8-recipe
# is delayed.
SCALES: Mapping[str, Recipe] = {
    "fp8-te": "delayed",
    "fp8-blockwise": "blockwise",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
}
CAPABILITIES = {"Ampere": 80, "Ada": 89, "Hopper": 90, "Blackwell": 100}
LARGE_ON_BLACKWELL = (2, 12)  # PyTorch, pull request 175344
WORKSPACE_SOURCE = "Transformer Engine, transformer_engine/pytorch/module/base.py: get_cublas_workspace_size_bytes"
TORCH_SOURCE = "PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp: parseChosenWorkspaceSize"


class Megatron(Framework):
    """A run of Megatron-LM on Megatron-core and Transformer Engine."""

    @classmethod
    def options(cls, request: PlanRequest) -> dict[str, Any]:
        return megatron_options(request.model, request.sizes, request.options, request.question)

    @classmethod
    def check_offload(cls, places: Mapping[str, Any], zero_stage: int) -> None:
        if places["offload_optimizer"] != "none" and zero_stage == 0:
            raise InvalidPlan(
                Message("{@offload_optimizer} needs Megatron's distributed optimizer: {@zero_stage} must be 1. Got 0.")
            )

    @classmethod
    def launch_settings(cls, model: Model, plan: TrainingPlan) -> list[str]:
        return launch_flags(model, plan)

    adds_tied_gradients = False  # accumulated into the main gradient by each product

    @property
    def adapter_precision(self) -> str:
        """Adapters are parameters of Megatron's optimizer like all others."""
        return self.plan.precision

    @property
    def adapter_width(self) -> float:
        """Bytes of a number of the adapters, as layers see them."""
        return self.recipe.compute_bytes

    @property
    def _setting(self) -> MegatronSetting:
        return cast(MegatronSetting, self.step.setting)

    def setting(self) -> MegatronSetting:
        plan, recipe, runtime = self.plan, self.recipe, self.runtime
        mixture = self._mixture()
        experts = first_of(plan.expert_parallel_size)
        config = self.step.model.config
        return MegatronSetting(
            code="megatron",
            types=Types(recipe.activation_bytes, recipe.activation_bytes),
            style=style_of(self.step.model),
            kernels=runtime.kernels,
            attention=plan.kernels.attention or runtime.kernels.attention,
            dropout=plan.dropout,
            attention_dropout=plan.attention_dropout,
            recompute=plan.recompute,
            recompute_modules=tuple(filter(None, plan.megatron.recompute_modules.split(","))) or ("core_attn",),
            tensor_parallel=first_of(plan.tensor_parallel_size) > 1,
            sequence_parallel=plan.sequence_parallel and first_of(plan.tensor_parallel_size) > 1,
            context_parallel=_method(plan) if first_of(plan.context_parallel_size) > 1 else "",
            expert_parallel=experts > 1,
            local_experts=mixture is not None and mixture.num_experts > experts,
            expert_tensor_parallel=first_of(plan.expert_tensor_parallel_size) > 1,
            fp8=next((scales for word, scales in SCALES.items() if plan.precision.startswith(word)), ""),
            adapters=adapters_of(plan, recipe, self.adapter_width),
            gradient_accumulation_fusion=plan.zero_stage not in SHARDED and plan.tuning.method == "full",
            cross_entropy="te" if plan.loss == "fused" else "unfused",
            capacity=plan.megatron.expert_capacity_factor is not None,
            router_groups=(config.get("n_group") or 1) > 1,
            router_pre_softmax=config.get("model_type") == "deepseek_v2",
            core=self._release("core", (0, 18)),
            engine=self._release("TE", (2, 11)),
        )

    def _release(self, name: str, newest: tuple[int, int]) -> tuple[int, int]:
        match = re.search(rf"{name}[ =]*v?(\d+)\.(\d+)", self.plan.runtime_version, re.IGNORECASE)
        return (int(match[1]), int(match[2])) if match else newest

    @property
    def fuses_experts(self) -> bool:
        """Transformer Engine's fused grouped MLP, which multiplies in MXFP8 on compute capability 10: from core 0.18,
        or NVIDIA's container of June 2026, on, whose recipes turn it on where graphs replay whole steps
        (cutedsl_fused_grouped_mlp in NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs, at commit
        042641823051ce167c52b0ae289941a227c11535).
        """
        if self.plan.megatron.cuda_graph != "full" or not self.plan.precision.startswith("mxfp8"):
            return False
        chip = self.step.cluster.accelerator if self.step.cluster is not None else None
        if chip is None or not (chip.generation.startswith("Blackwell") and chip.memory.kind.startswith("HBM")):
            return False
        container = re.search(r"container (\d+)\.(\d+)", self.plan.runtime_version)
        if container:
            return (int(container[1]), int(container[2])) >= (26, 6)
        return self._release("core", (0, 18)) >= (0, 18)

    def slower_runs(self) -> str:
        """validation/recent/ms_swift.yaml: swift-q330b-lora-fa2 and -fa3. Megatron-Bridge's benchmarks, of which most
        rows are, force equal loads (docs/performance-summary.md: MoE Training Note).
        """
        plan = self.plan
        is_spread = self._mixture() is not None and is_any(plan.expert_parallel_size > 1)
        has_loads = plan.megatron.expert_capacity_factor is not None or plan.imbalance.expert_imbalance != 1
        if plan.tuning.method == "full" or not is_spread or has_loads:
            return ""
        return Message(
            "two published LoRA runs of Qwen3-30B-A3B (ms-swift) took 1.6 and 1.8 times as long as estimated. Experts "
            "are timed with equal loads on all ranks, as benchmarks force them: {--expert-imbalance} says how much "
            "more the fullest rank has."
        )

    def _mixture(self) -> MoE | None:
        return next((op for block in self.step.model.decoder.blocks for op in block.ops if isinstance(op, MoE)), None)

    def layer(self, block: Block, masked: bool, hidden: int) -> Layer:
        return _on_tape(block, self._setting, hidden)[0]

    def loss(self, stage: Stage) -> Layer | None:
        if not (stage.is_last and stage.after):
            return None
        return _loss(
            stage.after,
            self._setting,
            self.step.model.hidden_size,
            self.step.model.vocab_size,
            self.plan.megatron.mtp_layers,
        )

    @property
    def accumulated_bytes(self) -> float:
        """Products read and write main gradients, not gradients in 16 bit of their own."""
        return self.recipe.main_gradient_bytes - 1

    def offloaded_tensors(self, block: Block) -> Term:
        """The inputs of the modules that the user names."""
        modules = tuple(self.plan.offload.offload_modules.split(","))
        width = self.step.setting.types.compute
        parts = [self.step.sizes.term("offloaded", size, width, extent) for size, extent in offloadable(block, modules)]
        return Term.sum("tensors of these modules", *parts, unit="bytes")

    def gradients_to_host(self, rank: RankView) -> tuple[Term, Number]:
        """A step's, as the hybrid optimizer has them."""
        gradients = copies("gradients", width_of("gradient", self.step.updates), rank.trained_shard)
        return leaving(gradients, offloaded(self.plan, "optimizer")), 1

    def host_states(self, rank: RankView) -> HostStates:
        """Megatron-core, optimizer/cpu_offloading/hybrid_optimizer.py: an fp32 copy, its gradient and the moments."""
        share = offloaded(self.plan, "optimizer")
        if self.plan.offload.offload_optimizer == "none":
            return HostStates([], [])
        gradient = copies("gradients", width_of("gradient", self.step.updates), rank.trained_shard)
        return HostStates([leaving(rank.every_state, share), *pinned(leaving(gradient, share))], [])

    def stages(self, split_stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return with_predictions(split_stages, self.step.model, self.plan.megatron.mtp_layers)

    def ends_pipeline(self, block: Block) -> bool:
        return isinstance(block, prediction.FinalNorm | prediction.Prediction)

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        """Gradients that prediction layers leave waiting: of the hidden states that all losses read together, and of
        the table.
        """
        depths = self.plan.megatron.mtp_layers if rank.stage.is_last else 0
        if not depths or point.phase in ("forward", "loss"):
            return []
        hidden, width = self.step.model.hidden_size, self.step.setting.types.compute
        shards, tables = prediction.waiting(len(rank.stage.order), point.position, depths, rank.stage.rank == 0)
        terms = (
            [self.step.sizes.term("gradient of all losses' hidden states", shards * hidden, width, TOKEN)]
            if shards
            else []
        )
        if tables and self.step.trains_all:
            terms.append(copies("gradient of the table, which waits for that of other layers", width, rank.table))
        return terms

    def embedding(self) -> Account:
        model = self.step.model
        live = ends.embedding_backward(model.hidden_size, model.vocab_size, self._setting).live
        return dict(live)

    def rows(self) -> Number:
        mixture, plan = self._mixture(), self.plan
        if mixture is None:
            return 0
        tokens = plan.sequence_length * plan.micro_batch_size / plan.context_parallel_size
        tokens = tokens / plan.tensor_parallel_size if self._setting.sequence_parallel else tokens
        factor = plan.megatron.expert_capacity_factor
        if factor is None:
            return tokens * mixture.top_k * plan.expert_tensor_parallel_size * plan.imbalance.expert_imbalance
        return (
            -(-tokens * mixture.top_k * factor // mixture.num_experts)
            * mixture.num_experts
            * plan.expert_tensor_parallel_size
        )

    def vocabulary_multiple(self) -> int:
        return 128  # --make-vocab-size-divisible-by

    def weights(self, rank: RankView) -> list[Term]:
        """Copies by rows and by columns that Transformer Engine keeps of the weights of linear layers, and 16 bit for
        the weights that are none where a recipe's weights are narrower. A Blackwell multiplies what has one scale a
        tensor either way, and needs no copy by columns.
        """
        recipe = self.recipe
        if not self._setting.fp8 or not self.step.trains_all or self.plan.zero_stage in SHARDED:
            return []
        linear = linear_parameters(rank.stage, self.step.whole)
        chip = self.step.cluster.accelerator if self.step.cluster is not None else None
        once = self._setting.fp8 == "delayed" and chip is not None and chip.generation.startswith("Blackwell")
        terms = [copies("narrow copies of the weights", recipe.cast_bytes - once, linear)]
        if recipe.compute_bytes < recipe.activation_bytes:
            others = Term.of("others", f.parameters_left, N=rank.whole.value, U=linear.value)
            terms.append(copies("16 bit of other weights", recipe.activation_bytes - recipe.compute_bytes, others))
        return terms

    def lasting(self, rank: RankView) -> list[Term]:
        """Dummy gradients of weights, tables of rotary positions, the output layer's gathered input."""
        setting, sizes, model = self._setting, self.step.sizes, self.step.model
        terms = []
        dummies = _dummies(
            rank.stage,
            tuple(_on_tape(block, setting, _hidden(model, block))[1] for block in rank.counts),
            setting,
            model,
        )
        parts = [
            sizes.term(Message("for {name}", name=name), count, buffers.DUMMY, extent)
            for (name, extent), count in dummies
        ]
        if parts:
            terms.append(Term.sum("dummy weight gradients", *parts))
        rotary = self._rotary(rank)
        if rotary:
            terms.append(sizes.positions("RoPE tables", rotary, 1))
        if rank.stage.is_last and setting.sequence_parallel:
            terms.append(
                sizes.term(
                    "output layer's gathered input",
                    model.hidden_size,
                    setting.types.compute,
                    Extent("token", "gathered"),
                )
            )
        return terms

    def _rotary(self, rank: RankView) -> float:
        """Bytes a position."""
        setting = self._setting
        latent = [op for block in rank.counts for op in block.ops if isinstance(op, LatentAttention)]
        layers = sum(
            count for block, count in rank.counts.items() if any(isinstance(op, LatentAttention) for op in block.ops)
        )
        if latent:
            return buffers.rotary_tables(setting, 1, latent[0].qk_rope_head_dim, layers)
        width = next((op.head_dim for block in rank.counts for op in block.ops if hasattr(op, "head_dim")), 0)
        return buffers.rotary_tables(setting, 1, width * setting.style.rotary, 0)

    def passing(self, rank: RankView, point: Point) -> list[Term]:
        """Shards of the stream that the pipeline's schedule still names."""
        stale = pipeline.stale(rank.stage.rank, self.plan.pipeline_parallel_size, self.plan.virtual_pipeline_size)
        count = stale.forward if point.phase == "forward" else stale.backward
        if not count:
            return []
        width = self._setting.types.compute
        return [
            self.step.sizes.term(
                "inputs and gradients that the pipeline names",
                count * self.step.model.hidden_size,
                width,
                Extent("token", "whole"),
            )
        ]

    def workspaces(self, rank: RankView) -> list[Term]:
        cluster, setting = self.step.cluster, self._setting
        generation = cluster.accelerator.generation if cluster is not None else "Hopper"
        capability = next((number for name, number in CAPABILITIES.items() if generation.startswith(name)), 80)
        if cluster is not None and cluster.accelerator.vendor != "NVIDIA":
            return []
        experts = any(isinstance(op, MoE) for block in rank.counts for op in block.ops)
        size = buffers.matmul_workspace(capability, setting, experts)
        terms = [Term.of("Transformer Engine workspaces", f.workspace_bytes, source=WORKSPACE_SOURCE, M=size, n=1)]
        if buffers.multiplies_in_torch(setting, rank.stage.is_last, experts):
            large = self._release("torch", LARGE_ON_BLACKWELL) >= LARGE_ON_BLACKWELL
            terms.append(
                Term.of(
                    "cuBLAS workspaces",
                    f.workspace_bytes,
                    source=TORCH_SOURCE,
                    M=buffers.torch_workspace(capability, large),
                    n=1,
                )
            )
        return terms


def _method(plan: TrainingPlan) -> ContextParallel:
    return cast(ContextParallel, plan.megatron.context_parallel_method or "p2p")


@lru_cache(maxsize=1024)
def _on_tape(block: Block, setting: MegatronSetting, hidden: int) -> tuple[Layer, tuple[Shape, ...]]:
    code = MegatronLayers(setting)
    if isinstance(block, prediction.FinalNorm):
        recorded = layer(code, lambda x: code.run(block.ops[0], x), hidden, setting.types.parameter)
    elif isinstance(block, prediction.Prediction):
        recorded = layer(code, lambda x: prediction.predict(code, block, x), hidden, setting.types.parameter)
    elif setting.recompute == "full":
        recorded = layer(
            code, lambda x: code.checkpoint(lambda x: wiring.run(block, code, x), x), hidden, setting.types.parameter
        )
    else:
        recorded = layer(code, lambda x: wiring.run(block, code, x), hidden, setting.types.parameter)
    return recorded, tuple(code.shapes)


@lru_cache(maxsize=256)
def _loss(after: tuple[Op, ...], setting: MegatronSetting, hidden: int, vocabulary: int, predictions: int) -> Layer:
    return ends.loss_layer(after, setting, hidden, vocabulary, predictions)


@lru_cache(maxsize=1024)
def _dummies(
    stage: Stage, shapes: tuple[tuple[Shape, ...], ...], setting: MegatronSetting, model: Model
) -> tuple[tuple[tuple[str, Extent], float], ...]:
    """Numbers of a dummy gradient for each distinct shape, by what cuts it."""
    distinct = {shape for block_shapes in shapes for shape in block_shapes}
    if stage.is_last and stage.after:
        distinct.add(ends.output_shape(model.hidden_size, model.vocab_size))
    if not setting.gradient_accumulation_fusion or not setting.has("dummy weight gradients persist"):
        return ()
    dummies = []
    for shape in sorted(distinct):  # by all that they are: a tie would stand in the order of hashes
        split = "tensor" if shape.cut else "replicated"
        if shape.of == "expert":
            if not setting.has("dummy weight gradients of grouped linears persist"):
                continue
            split = "expert tensor" if shape.cut else "replicated"
        dummies.append(
            ((f"{shape.rows:,} x {shape.columns:,}", Extent("parameter", split)), shape.rows * shape.columns)
        )
    return tuple(dummies)


def _hidden(model: Model, block: Block) -> int:
    """A prediction layer is in no branch, and as wide as the decoder."""
    return next((branch.hidden_size for branch in model.branches if block in branch.blocks), model.hidden_size)


FRAMEWORKS.add("megatron", Megatron)

"""What differs between frameworks in the walk of a step: how layers are written, what surrounds them, what stays beside
them.

`Framework` is PyTorch's own way; a runtime whose ways differ names a subclass, which its file registers in
`FRAMEWORKS`. Nobody else compares
the name of a runtime: where runtimes differ in a fact it is a field of TrainingRuntime, where they differ in what they
do, a method here.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block, Model, style_of
from tonnage.estimate.inputs import Question
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.layers.losses import HOLD_LOGITS, KINDS, LOG_PROBABILITIES, WHOLE
from tonnage.estimate.plan.rule import Rule
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import RULES
from tonnage.estimate.step.communication import cublas_workspaces
from tonnage.estimate.step.method import adapters_of, bare_base_bytes
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import FIRST, Stage
from tonnage.estimate.step.views import RankView, StepView
from tonnage.formulas import host as h
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.registry import Registry, unknown
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import TRAINING_RECIPES
from tonnage.ops import Attention
from tonnage.runtimes import PEFT_CODE, TrainingRuntime
from tonnage.spec import Cluster, TrainingPlan
from tonnage.tape import TOKEN, Account, Extent, Layer, Setting, Types

# ---- Options of a training command.


def size_flags(plan: TrainingPlan, names: Mapping[str, str]) -> list[str]:
    """An option for each size above 1, by its name there."""
    return [f"{flag} {value}" for name, flag in names.items() if (value := getattr(plan, name)) > 1]


# ---- Blocks of pinned host memory.


def pinned(*blocks: Term) -> list[Term]:
    """Pinned blocks, each with what its size is rounded up by."""
    terms: list[Term] = []
    for block in blocks:
        terms += [
            block,
            Term.of(Message("{block}: rounding of pinned memory", block=block.name), h.pinned_rounding, M=block.value),
        ]
    return terms


# ---- What a framework sees of a run while its plan is made: what the user asked, and what is settled so far.


class PlanRequest(Struct, frozen=True, kw_only=True):
    """`sizes`: of all groups of ranks; `zero_stage`; `offload`: the fields of the plan that say what lives on the
    host; `options`: as the user gave them; `question`: takes each value with where it came from, and warnings.
    """

    model: Model
    runtime: TrainingRuntime
    sizes: Mapping[str, Any]
    zero_stage: int
    offload: Mapping[str, Any]
    options: TrainingOptions
    question: Question


WIDE = 4  # bytes of an fp32 number
# How tokens go to their experts, by Megatron's names, the default first; torchtitan calls them standard and deepep.
DISPATCHERS = ("alltoall", "flex")
SDPA = ("sdpa", "efficient")  # calls of scaled_dot_product_attention


class HostStates(NamedTuple):
    """What one rank keeps outside of the accelerator: in host memory, and on NVMe."""

    host: list[Term]
    stored: list[Term]


def dispatcher_of(o: TrainingOptions, q: Question) -> dict[str, Any]:
    """The field of a plan that says how tokens go to their experts, where it is given."""
    value = o.moe_token_dispatcher_type
    if value is None:
        return {}
    if value not in DISPATCHERS:
        raise unknown("moe_token_dispatcher_type", value, DISPATCHERS)
    return {"moe_token_dispatcher_type": q.take("moe_token_dispatcher_type", value, "alltoall")}


class Framework:
    """One run's framework; `step` has the plan, and what all stages share."""

    # ---- while a plan is made ----

    rules: tuple[Rule, ...] = ()  # what its sizes must hold besides, for single plans and for searches

    @classmethod
    def options(cls, request: PlanRequest) -> dict[str, Any]:
        """The fields of a plan that this framework's own options of layers and parallelism decide."""
        return {}

    @classmethod
    def sharding_options(cls, request: PlanRequest) -> dict[str, Any]:
        """The fields of a plan that its own options of how states are sharded decide."""
        return {}

    @classmethod
    def check_offload(cls, places: Mapping[str, Any], zero_stage: int) -> None:
        """InvalidPlan where it cannot offload so under this ZeRO stage; `places` by the names of our options."""

    @classmethod
    def for_step(cls, step: StepView) -> Self:
        """The framework of one plan."""
        return cls(step)

    @classmethod
    def sizes_of_loss(cls, plan: TrainingPlan) -> tuple[str, ...]:
        """The sizes on whose values it depends into how many parts the loss is cut: plans that are walked together as
        arrays must agree in them.
        """
        return ()

    # ---- how a plan is started ----

    trl_base: tuple[str, ...] = ()  # options of TRL's command for a 4-bit base, beside those of bitsandbytes

    @classmethod
    def launch_settings(cls, model: Model, plan: TrainingPlan) -> list[str]:
        """The settings that the runtime's program is started with, by its own names."""
        return []

    @classmethod
    def launch_machine(cls, cluster: Cluster) -> list[str]:
        """Options that say how many accelerators and nodes there are, where its program starts their processes."""
        return []

    @classmethod
    def launch_lacks(cls, model: Model, plan: TrainingPlan) -> list[str]:
        """The parts of a plan's pipeline that these settings do not say."""
        return []

    @classmethod
    def trl_config(cls, plan: TrainingPlan, usual: str) -> str:
        """TRL's file for accelerate; `usual`: that of the runtime."""
        return usual

    @classmethod
    def trl_sharding(cls, plan: TrainingPlan) -> list[str]:
        """Options of TRL's command that say how states are sharded and offloaded."""
        return []

    # ---- while a step is walked ----

    copies_layer_shards = True  # offloaded weights are copied to the accelerator a layer at a time

    adds_tied_gradients = True  # the gradient of a tied head waits for the embedding's
    keeps_gradients = True  # until the optimizer's step

    @property
    def adapter_precision(self) -> str:
        """The precision of adapters, their gradients and moments (peft, autocast_adapter_dtype)."""
        return "fp32"

    @property
    def adapter_width(self) -> float:
        """Bytes of a number of the adapters as layers see them: what peft casts their inputs to
        (tuners/lora/layer.py: _cast_input_dtype).
        """
        return TRAINING_RECIPES[self.adapter_precision].update_bytes

    @property
    def gathered_width(self) -> float:
        """Bytes of a weight as ranks that share the states send it."""
        return self.recipe.gathered_bytes

    @property
    def reduced_width(self) -> float:
        """Bytes of a gradient as they send it."""
        return self.recipe.reduce_bytes if self.runtime.shards_units else self.recipe.gradient_bytes

    unit_gradient_width: float = 0  # bytes of a gradient of the unit at work, beside the runtime's own copies

    def __init__(self, step: StepView):
        self.step, self.plan, self.runtime, self.recipe = step, step.plan, step.runtime, step.recipe

    def setting(self) -> Setting:
        """How the layers of this run are written and cast."""
        plan, runtime, recipe = self.plan, self.runtime, self.recipe
        adapters = adapters_of(plan, recipe, self.adapter_width)
        autocast = runtime.casts and bool(recipe.master_bytes)
        bare = bare_base_bytes(runtime, recipe, is_wide=plan.tuning.wide_base)
        parameter = recipe.update_bytes if autocast and adapters is None else bare
        compute = recipe.activation_bytes
        if (
            plan.tuning.upcast_base
        ):  # the hidden states take the type of the embedding, and without autocast all but the quantised products does
            parameter, compute = WIDE, compute if autocast else WIDE
        attention = plan.kernels.attention or runtime.kernels.attention
        kernels = replace(
            runtime.kernels, attention=attention, dropout=plan.dropout, attention_dropout=plan.attention_dropout
        )
        return Setting(
            code=self._code(),
            types=Types(parameter, compute, autocast, recipe.compute == "fp16", uniform=not runtime.casts),
            style=style_of(self.step.model),
            kernels=kernels,
            attention=attention,
            dropout=plan.dropout,
            attention_dropout=plan.attention_dropout,
            recompute=plan.recompute,
            adapters=adapters,
            has_cudnn=prefers_cudnn(self.step.cluster),
            packed=plan.packing,
            deals_heads=plan.megatron.context_parallel_method == "a2a",
        )

    def _code(self) -> str:
        """The flavour of the tape that the model's code is."""
        own = self.plan.model_code in ("", self.runtime.model_codes[0])
        return self.runtime.code if own else self.runtime.flavours[self.plan.model_code]

    @property
    def joins_rows(self) -> bool:
        """Packed rows of a micro-batch are one row, of which a mask is as wide as it is long (TRL, sft_trainer.py:
        DataCollatorForLanguageModeling; transformers, data_collator.py: DataCollatorWithFlattening)."""
        return self.plan.packing and self._code() == "eager"

    def layer(self, block: Block, masked: bool, hidden: int) -> Layer:
        """What one layer of this kind computes and keeps."""
        return tapes.block_layer(block, replace(self.step.setting, masked=masked), hidden, block.name != FIRST)

    def loss(self, stage: Stage) -> Layer | None:
        """What comes after the layers, on the last stage."""
        if not (stage.is_last and stage.after):
            return None
        if kind := self.loss_of_objective:
            return self.objective_loss(stage, kind)
        chunks = self.runtime.loss_chunks if self.plan.loss == "chunked" else 1
        return tapes.loss_layer(
            stage.after,
            self.step.setting,
            self.step.model.hidden_size,
            self.runtime.loss,
            chunks,
            self.runtime.logits_split,
        )

    @property
    def loss_of_objective(self) -> str:
        """The loss of post-training, whatever runs the model: TRL's take the logits tile by tile, those of tools of
        reinforcement learning hold them; empty where the loss is the framework's own.
        """
        plan = self.plan
        objective = plan.post_training.objective
        if plan.loss == "tiled":
            return KINDS.get(objective, LOG_PROBABILITIES)
        if objective in WHOLE and plan.model_code == PEFT_CODE:
            return WHOLE[objective]
        is_untiled = objective in HOLD_LOGITS and plan.model_code == PEFT_CODE
        return self.runtime.untiled_losses.get(plan.loss, "") if is_untiled else ""

    def objective_loss(self, stage: Stage, kind: str) -> Layer:
        """The layer of a loss of post-training."""
        teacher = self.plan.post_training.teacher_hidden_size
        return tapes.loss_layer(
            stage.after, self.step.setting, self.step.model.hidden_size, kind, 1, logits_split=False, teacher=teacher
        )

    @property
    def fuses_experts(self) -> bool:
        """Whether one kernel does the products of experts with the activation, casts and permutations around them."""
        return False

    @property
    def accumulated_bytes(self) -> float:
        """Bytes that a product reads and writes more for each gradient of a weight that it adds to the accumulated
        ones.
        """
        return 0

    def notes(self) -> list[str]:
        """What a reader should know of how it runs this plan."""
        return []

    def slower_runs(self) -> str:
        """A note on published runs that took longer than steps of this plan are timed; "": none are known."""
        return ""

    def stages(self, split_stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """The pipeline's stages with what only this framework's options add to them."""
        return split_stages

    def ends_pipeline(self, block: Block) -> bool:
        """Whether layers of this kind stand behind all others, whatever the number of chunks of a stage."""
        return False

    def embedding(self) -> Account:
        """The moment at which the embedding's gradient is made, where it is not what autograd does with a table."""
        return {}

    def rows(self) -> Number:
        """Copies of tokens that arrive at the experts of a rank."""
        return 0

    def vocabulary_multiple(self) -> int:
        """Rows of a table or head on one rank are a multiple of this."""
        return 1

    def base_bytes(self) -> float:
        """Bytes of a weight that does not train and that no library quantised."""
        return self.step.setting.types.parameter

    def points(self, rank: RankView, plain: tuple[Point, ...]) -> tuple[Point, ...]:
        """The moments of a stage; `plain`: those of every framework."""
        return plain

    def buffers(self, rank: RankView, point: Point | None) -> Term | None:
        """Buffers of communication at a moment, or in the optimizer's step; None: as `Communication` has them."""
        return None

    def step_copies(self, rank: RankView) -> Term | None:
        """Copies of the gradients that the optimizer's step makes; None: as `Communication` has them."""
        return None

    def weights(self, rank: RankView) -> list[Term]:
        """Copies of weights on the accelerator beside those that the runtime's states name."""
        return []

    def gradients(self, rank: RankView, point: Point) -> Term | None:
        """The gradients of a moment, where they are others than the runtime's states say."""
        return None

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        """What is held for a moment besides what operations make."""
        return []

    def reserve(self, rank: RankView, point: Point | None, gradients: Number) -> list[Term] | None:
        """What the allocator keeps beside the tensors, where that is known; None: a part of all tensors."""
        return None

    def reserve_share(self, rank: RankView, point: Point) -> float:
        """The part of gradients that `reserve` adds to them at a moment."""
        return 0

    def outside(self, rank: RankView) -> list[Term]:
        """What the model's code makes once for all layers and keeps through backward: masks, tables of rotary
        positions, and where embedded tokens are dropped the mask of that.
        """
        setting, sizes, hidden = self.step.setting, self.step.sizes, self.step.model.hidden_size
        if self._code() != "eager":
            return []
        style = setting.style
        terms = self._masks() if self.plan.recompute != "none" else []  # else the forward pass alone holds them
        head = next((op.head_dim for block in rank.counts for op in block.ops if isinstance(op, Attention)), 0)
        if head * style.rotary:
            terms.append(sizes.positions("RoPE tables", 2 * head * style.rotary, setting.types.compute))
        if setting.dropout and rank.stage.rank == 0:
            terms.append(sizes.term("mask of the embedded tokens' dropout", hidden, 1, TOKEN))
            if setting.adapters is not None and self.plan.recompute == "full":
                terms.append(sizes.term("embedded tokens", hidden, setting.types.parameter, TOKEN))
        return terms

    def _masks(self) -> list[Term]:
        """Masks that are shared by layers, which run again with them (transformers, masking_utils.py)."""
        setting, pairs = self.step.setting, Extent("pair", "gathered")
        if setting.style.runs_eager(setting.attention):
            return [self.step.sizes.term("mask of attention, in numbers", 1, setting.types.compute, pairs)]
        if setting.attention in SDPA and self.plan.packing:
            # one for layers that see all of their sequence, one for those that slide
            kinds = len({tapes.window_of(block) is None for block in self.step.masked})
            return [self.step.sizes.term("masks of packed sequences", kinds, 1, pairs)]
        if setting.attention in SDPA and any(self.step.masked.values()):
            return [self.step.sizes.term("mask of a window", 1, 1, pairs)]
        return []

    def left_over(self, rank: RankView) -> list[Term]:
        """What backward leaves behind: peft asks for gradients of the embedded tokens where layers are checkpointed,
        and nobody lets go of these (transformers, modeling_utils.py: enable_input_require_grads).
        """
        if (
            self._code() != "eager"
            or self.step.setting.adapters is None
            or self.plan.recompute != "full"
            or rank.stage.rank
        ):
            return []
        width = self.step.setting.types.parameter
        return [
            self.step.sizes.term(name, self.step.model.hidden_size, width, TOKEN)
            for name in ("embedded tokens", "gradient of the embedded tokens")
        ]

    # ---- what lives outside of the accelerator ----

    def offloaded_tensors(self, block: Block) -> Term | None:
        """Of what a layer keeps for backward the tensors that leave, where activations are offloaded; None: all of
        them.
        """
        return None

    def gradients_to_host(self, rank: RankView) -> tuple[Term, Number]:
        """Gradients that go to an offloaded optimizer, and how often in a step."""
        return rank.every_gradient, self.plan.num_microbatches

    def host_states(self, rank: RankView) -> HostStates:
        """Offloaded states of one rank (torch, distributed/fsdp/_fully_shard/_fsdp_api.py: CPUOffloadPolicy, pinned
        by default).
        """
        if self.plan.offload.offload_parameters == "none":
            return HostStates([], [])
        weights, gradients = rank.every_weight.named("weights"), rank.every_gradient.named("gradients")
        return HostStates([*pinned(weights), gradients, rank.every_state], [])

    @property
    def loads_on_first_rank(self) -> bool:
        """Rank 0 alone loads a whole model; else every rank does."""
        return False

    def gathered_to_save(self, parameters: Term) -> Term | None:
        """Weights that rank 0 gathers to save them, `parameters` of them; None: it saves them file by file or weight by
        weight.
        """
        return None

    # ---- buffers, workspaces ----

    def lasting(self, rank: RankView) -> list[Term]:
        """Buffers that stay for the whole step."""
        return []

    def passing(self, rank: RankView, point: Point) -> list[Term]:
        """What schedules and streams hold at this moment besides."""
        return []

    def workspaces(self, rank: RankView) -> list[Term]:
        """Workspaces of libraries, which PyTorch's allocator hands out."""
        return cublas_workspaces(self.step.cluster)


def prefers_cudnn(cluster: Cluster | None) -> bool:
    """Whether scaled_dot_product_attention takes cuDNN first: on Hopper and Blackwell (sdp_utils.cpp, since PyTorch
    2.9 with cuDNN 9.15).
    """
    return cluster is None or cluster.accelerator.generation.startswith(("Hopper", "Blackwell"))


FRAMEWORKS: Registry[type[Framework]] = Registry("framework")
FILE = "tonnage.estimate.frameworks.{}"  # where the framework stands that a runtime of this package names


def framework_of(runtime: TrainingRuntime) -> type[Framework]:
    """The framework that a runtime declares; its file is imported only now, and registers it."""
    if not runtime.framework:
        return Framework
    if runtime.framework not in FRAMEWORKS:
        import_module(FILE.format(runtime.framework))
    return FRAMEWORKS[runtime.framework]


def rules_of(runtime: TrainingRuntime) -> tuple[Rule, ...]:
    """The rules that a runtime has for the sizes of a plan."""
    return (*RULES, *framework_of(runtime).rules)

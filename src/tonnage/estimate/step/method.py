"""What trains and what does not: adapters, frozen layers, quantised bases."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from tonnage.architectures import Block, Model
from tonnage.estimate.layers.layers import tower_flops, training_flops
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.pipeline_layout import release_of
from tonnage.estimate.step.rank import Group, Shares, Stage, layer_count, op_parameters, share
from tonnage.estimate.step.views import WalkedStep
from tonnage.formulas import flops as f
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import Recipe, precision
from tonnage.ops import Head, MoE, Weight
from tonnage.runtimes import TrainingRuntime
from tonnage.spec import TrainingPlan
from tonnage.tape import Adapters, Extent

BITSANDBYTES, KEEPS_NO_INPUT = (0, 50), (0, 44)  # autograd/_functions.py of 0.43, 0.44, 0.45 and 0.46
QUANTISED = ("attention", "mlp", "mixer")  # parts whose linear layers bitsandbytes replaces
WITH_EXPERTS = (*QUANTISED, "experts")


def adapters_of(plan: TrainingPlan, recipe: Recipe, width: float) -> Adapters | None:
    """The adapters that stand beside linear layers; None where the weights themselves train."""
    if not plan.tuning.has_adapters:
        return None
    four = plan.tuning.base_weights.startswith(("nf4", "fp4"))
    return Adapters(
        rank=plan.tuning.lora_rank,
        targets=tuple(filter(None, plan.tuning.lora_targets.split(","))),
        dropout=plan.tuning.lora_dropout,
        magnitudes=plan.tuning.method == "dora",
        scales=plan.tuning.method == "ia3",
        scaled_inputs=tuple(filter(None, plan.tuning.scaled_inputs.split(","))),
        base=recipe.activation_bytes if plan.tuning.base_weights else 0,
        compute=recipe.activation_bytes,
        packed=precision(plan.tuning.base_weights).bits_per_weight / 8 if plan.tuning.base_weights else 0,
        copies=four,
        width=width,
        keeps=four and release_of(plan.runtime_version, "bitsandbytes", BITSANDBYTES) < KEEPS_NO_INPUT,
    )


def bare_base_bytes(runtime: TrainingRuntime, recipe: Recipe, *, is_wide: bool = False) -> float:
    """Bytes of a parameter that adapters stand beside, where it is not quantised. `is_wide`: it was loaded in fp32."""
    wide = runtime.casts and (runtime.wide_base or is_wide) and recipe.master_bytes
    return recipe.update_bytes if wide else recipe.activation_bytes


def trained_parameters(trained: Mapping[Extent, float], shares: Shares) -> Term:
    """Parameters of one layer that train, on one rank."""
    groups = (Group(extent.split, extent.heads, round(count)) for extent, count in trained.items())
    return Term.sum("one layer's trained", *(share(group, shares) for group in groups), unit="parameters")


def model_flops(model: Model, plan: TrainingPlan, step: WalkedStep) -> Term:
    """FLOP of one step that the method of this plan must do: what MFU counts."""
    adapters = adapter_parameters(step) if plan.tuning.has_adapters else 0
    language = training_flops(
        model,
        plan.tokens_per_step,
        plan.attended_length,
        method=plan.tuning.method,
        trainable_layers=plan.tuning.trainable_layers,
        adapters=adapters,
    )
    if not plan.vision.sees:
        return language
    passes = Term.of("passes of the tower", f.passes, x=3 if plan.trains_tower else 1)
    tower = Term.product("vision tower", "FLOP", passes, images_flops(model, plan, plan.global_batch_size))
    return Term.sum(language.name, language.named("language model"), tower, unit="FLOP")


def images_flops(model: Model, plan: TrainingPlan, samples: Number) -> Term:
    """FLOP of one forward pass of the vision tower over the images of so many sequences."""
    vision, branch = plan.vision, next(branch for branch in model.branches if branch.kind == "vision")
    patches = samples * vision.image_sequences * vision.image_patches
    return tower_flops(branch, patches, vision.image_patches, samples * vision.image_rows)


def adapter_parameters(step: WalkedStep) -> float:
    """Parameters of all adapters that a token passes through: of experts those of the ones it is sent to."""
    total = 0.0
    for stage in step.stages:
        for block, count in stage.layers:
            mixture = next((op for op in block.ops if isinstance(op, MoE)), None)
            active = mixture.top_k / mixture.num_experts if mixture else 1
            for extent, number in step.layers[block].trained.items():
                total += count * number * (active if extent.split == "expert" else 1)
    return total


def base_weights(
    stage: Stage,
    plan: TrainingPlan,
    shares: Shares,
    width: float,
    weights: Term,
    *,
    head: bool = False,
    experts: bool = False,
) -> list[Term]:
    """The weights that adapters stand beside: those that are quantised, and the rest in 16 bit. `head`, `experts`:
    these are quantised too.
    """
    if not plan.tuning.base_weights:
        return [copies("base weights", width, weights)]
    terms = []
    for name, quantised in (("quantised base weights", True), ("base weights", False)):
        parts = [
            Term.product(block.name, "parameters", layer_count(count), _part(block, quantised, shares, experts))
            for block, count in (*stage.layers, *stage.towers)
        ]
        ends = [op for op in (*stage.ops, *stage.tower_ops) if quantised == (head and isinstance(op, Head))]
        parts += [term for op in ends for term in op_parameters(op, shares)]
        held = Term.sum("parameters", *parts, unit="parameters")
        terms.append(
            copies(name, precision(plan.tuning.base_weights).bits_per_weight / 8 if quantised else width, held)
        )
    return terms


def linear_parameters(stage: Stage, shares: Shares) -> Term:
    """The parameters of the linear layers of a stage on one rank, without its head."""
    parts = [
        Term.product(
            block.name,
            "parameters",
            layer_count(count),
            Term.sum("one layer", *(share(group, shares) for group in _linear_groups(block)), unit="parameters"),
        )
        for block, count in stage.layers
    ]
    return Term.sum("linear layers", *parts, unit="parameters")


def _part(block: Block, quantised: bool, shares: Shares, experts: bool) -> Term:
    groups = _groups(block, quantised, experts)
    return Term.sum("one layer", *(share(group, shares) for group in groups), unit="parameters")


@lru_cache(maxsize=4096)
def _linear_groups(block: Block) -> tuple[Group, ...]:
    return _grouped(weight for weight in block.weights() if weight.linear and weight.part in WITH_EXPERTS)


@lru_cache(maxsize=4096)
def _groups(block: Block, quantised: bool, experts: bool) -> tuple[Group, ...]:
    parts = WITH_EXPERTS if experts else QUANTISED
    return _grouped(weight for weight in block.weights() if (weight.linear and weight.part in parts) == quantised)


def _grouped(weights: Iterable[Weight]) -> tuple[Group, ...]:
    totals: dict[tuple[str, int], int] = {}
    for weight in weights:
        cut = (weight.split, weight.heads if weight.split == "kv" else 0)
        totals[cut] = totals.get(cut, 0) + weight.num_parameters
    return tuple(Group(split, heads, count) for (split, heads), count in totals.items())


def frozen_below(model: Model, plan: TrainingPlan) -> int:
    """Layers, counted from the first, that keep nothing for backward because nothing in or below them trains."""
    return (
        model.num_layers - plan.tuning.trainable_layers
        if plan.tuning.method == "freeze" and plan.tuning.trainable_layers is not None
        else 0
    )

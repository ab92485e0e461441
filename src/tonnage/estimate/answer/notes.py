"""What a reader of a training estimate should know of its assumptions: said where they decide figures, and only
there.
"""

from math import ceil

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import TrainingMemory
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.run.checkpoint import state_bytes
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message
from tonnage.kernel.units import counted, human
from tonnage.numerics.optimizers import optimizer
from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.megatron.pipeline import against_overlap
from tonnage.spec import Cluster, TrainingPlan

# Generations whose units scale blocks of 32 themselves: torchtitan, components/quantization/mx.py.
SCALES_BLOCKS = ("Blackwell", "CDNA 4")
BEFORE_FLOAT8 = ("Pascal", "Volta", "Turing", "Ampere")  # NVIDIA's generations below compute capability 8.9


def check_stored(model: Model, plan: TrainingPlan, question: Question) -> None:
    """InvalidPlan where all weights of a quantised checkpoint are to be trained, which frameworks refuse; a note where
    adapters are, on weights that are counted in the type of the plan.
    """
    if model.quantization is None:  # what serving says of weights is imported only where they are quantised
        return
    from tonnage.estimate.serving.weights.storage import storage, takes_adapters_alone

    stored = storage(model, None)
    if not takes_adapters_alone(stored):
        return
    if plan.tuning.method in ("full", "freeze"):
        raise InvalidPlan(
            "{model} is stored as {stored}, and on quantised weights frameworks train adapters alone. Write {--method} "
            "qlora, or name the model that it was made from.",
            model=model.name,
            stored=stored.name,
        )
    question.warn(
        Message(
            "{model} is stored as {stored}; the base of the adapters is counted in {base}.",
            model=model.name,
            stored=stored.name,
            base=plan.tuning.base_weights or plan.precision,
        )
    )


def warn_of_training(model: Model, plan: TrainingPlan, memory: TrainingMemory, usable: int, question: Question) -> None:
    """Notes on kernels that do not run, layers that are another author's, and bases that stay wide."""
    if plan.kernels.attention in ("sdpa", "flash") and _keeps_scores(memory):
        question.warn(_why_scores_are_kept(model, plan, has_flash=memory.step.setting.style.has_flash))
    own = training_runtime(plan.runtime).model_codes[0]
    if plan.tuning.method != "full" and plan.model_code != own and question.entries["model_code"].origin != "given":
        question.warn(
            Message(
                "method {method} uses the layers of {model_code}, method full those of {own}, which keep other "
                "tensors. To compare, set {--model-code} {model_code} for both.",
                method=plan.tuning.method,
                model_code=plan.model_code,
                own=own,
            )
        )
    for note in memory.step.framework.notes():
        question.warn(note)
    if note := memory.step.framework.slower_runs():
        question.warn(note, first=True)
    if plan.kernels.float8 != "none":
        _warn_of_float8(plan, memory, question)
    if memory.step.recipe.uncounted:
        question.warn(
            Message("{precision}: {uncounted}", precision=plan.precision, uncounted=memory.step.recipe.uncounted)
        )
    if optimizer(plan.optimizer).paged:
        question.warn(
            Message(
                "the states of {optimizer} are in managed memory, whose pages leave a full GPU: they count as host "
                "memory, and the time to move them is not estimated.",
                optimizer=plan.optimizer,
            )
        )
    if plan.tuning.method in ("lora", "dora"):
        _warn_of_rank(model, plan, question)
    if plan.megatron.overlap_moe_expert_parallel_comm:
        _warn_of_overlap(plan, question)
    if plan.tuning.base_weights and expert_counts(model) and not memory.step.runtime.quantises_experts:
        question.warn(
            "experts are not quantised: transformers 5 holds those of a layer in one parameter, and "
            "bitsandbytes replaces linear layers alone. Runtime unsloth, on one accelerator, quantises them.",
            first=memory.needed > usable,
        )


def warn_where_nothing_fits(
    model: Model, plan: TrainingPlan, cluster: Cluster, usable: int, question: Question
) -> None:
    """How many accelerators the states alone need, each kept once: no figure of a run, and said where no move fits."""
    states = ceil(state_bytes(model, plan))
    count = -(-states // usable)
    question.warn(
        Message(
            "weights, gradients and optimizer take {states} in all: kept once, they fill {count} of "
            "{accelerator}; activations and buffers come on top.",
            states=human(states, "bytes"),
            count=counted(count, "accelerators"),
            accelerator=cluster.accelerator.name,
        )
    )


def _warn_of_overlap(plan: TrainingPlan, question: Question) -> None:
    """What Megatron-core asserts of overlap_moe_expert_parallel_comm. DeepSeek's own code does without."""
    against = against_overlap(plan)
    if "recompute" in against:
        question.warn(
            "Megatron-core does not run overlap_moe_expert_parallel_comm with recompute full: the step is "
            "timed as if it did."
        )
    if "virtual_pipeline_size" in against:
        question.warn(
            "Megatron-core runs overlap_moe_expert_parallel_comm under a pipeline only with "
            "virtual_pipeline_size above 1: the step is "
            "timed as if it did with 1."
        )


def _warn_of_float8(plan: TrainingPlan, memory: TrainingMemory, question: Question) -> None:
    """torchtitan, components/quantization/float8.py: SM89 or later, and torch.compile for competitive performance."""
    cluster = memory.step.cluster
    assert cluster is not None
    chip = cluster.accelerator
    if chip.generation in BEFORE_FLOAT8:
        question.warn(
            Message(
                "float8 {float8} does not run on {chip}: {generation} has no fp8 units, and torchao needs "
                "compute capability 8.9 (Ada Lovelace, Hopper) or later. Its products are timed in 16 bit.",
                float8=plan.kernels.float8,
                chip=chip.name,
                generation=chip.generation,
            )
        )
    elif chip.dense_flops and "fp8" not in chip.dense_flops:
        question.warn(
            Message(
                "no source gives an fp8 peak of {chip}: float8 {float8} may not run on it. Its products are "
                "timed in 16 bit.",
                chip=chip.name,
                float8=plan.kernels.float8,
            )
        )
    if plan.kernels.float8 in ("mxfp8", "nvfp4") and chip.dense_flops and not chip.generation.startswith(SCALES_BLOCKS):
        question.warn(
            Message(
                "float8 {float8} does not run on {chip}: torchtitan asks for compute capability 10.0 (Blackwell) or "
                "gfx950 (CDNA 4). It is timed as if it did.",
                float8=plan.kernels.float8,
                chip=chip.name,
            )
        )
    if not plan.kernels.compile:
        question.warn(
            Message(
                "float8 {float8} without compile: torchao asks for torch.compile, which fuses the casts. "
                "Without it they take longer than is timed.",
                float8=plan.kernels.float8,
            )
        )


def narrowest(model: Model, plan: TrainingPlan) -> tuple[int, str]:
    """(rows or columns, name) of the narrowest matrix with an adapter: an update of it has no higher rank. (0, "")
    where none has one.
    """
    targets = plan.tuning.lora_targets.split(",") if plan.tuning.lora_targets else None
    sides = {
        min(weight.rows, weight.columns): weight.name.removesuffix(".weight")
        for block in model.decoder.blocks
        for weight in block.weights()
        if weight.linear
        and weight.part in ("attention", "mlp", "mixer")
        and (targets is None or weight.name.removesuffix(".weight").rpartition(".")[2] in targets)
    }
    least = min(sides, default=0)
    return least, sides.get(least, "")


def _warn_of_rank(model: Model, plan: TrainingPlan, question: Question) -> None:
    """peft takes any rank from 1 on (tuners/lora/layer.py: update_layer); beyond the narrower side of a matrix it
    adds numbers alone.
    """
    least, name = narrowest(model, plan)
    if name and plan.tuning.lora_rank > least:
        question.warn(
            Message(
                "{@lora_rank} {lora_rank:,} is above {least:,}, the narrower side of {name}: an update "
                "of that matrix has no higher rank, so that such adapters take memory and can learn "
                "nothing more.",
                lora_rank=plan.tuning.lora_rank,
                least=least,
                name=name,
            )
        )


def _why_scores_are_kept(model: Model, plan: TrainingPlan, *, has_flash: bool) -> Message:
    """The note that attention which was to be fused is not."""
    if not has_flash:
        return Message(
            "transformers has eager attention alone for {model}: attention {attention} does not run, and the scores of "
            "all pairs of tokens are kept.",
            model=model.name,
            attention=plan.kernels.attention,
        )
    return Message(
        "PyTorch has no fused kernel for the attention of {model} as it is called here (its heads, "
        "mask or type): sdpa falls back on plain products, and the scores of all pairs of tokens are "
        "kept. attention flash keeps none.",
        model=model.name,
    )


def _keeps_scores(memory: TrainingMemory) -> bool:
    """Is anything kept for each pair of tokens that a fused kernel would not keep?"""
    layers = memory.step.layers.values()
    return any(
        tensor.key.extent.unit == "pair" and tensor.name.endswith("softmax")
        for layer in layers
        for tensor in layer.kept
    )

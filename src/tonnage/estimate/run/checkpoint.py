"""Bytes of a training checkpoint: what is needed to go on training (document D, rule D7)."""

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.run import RunDocument, StorageDocument
from tonnage.documents.term import terms_of
from tonnage.estimate.host import storage
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.states import optimizer_states
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import TRAINING_RECIPES, Recipe
from tonnage.runtimes import training_runtime
from tonnage.spec import Cluster, PipelineLayout, TrainingPlan

NEEDED = "checkpoint"
# On one rank a state is whole, however the run shards it.
WHOLE = dict.fromkeys(
    (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "virtual_pipeline_size",
        "context_parallel_size",
        "expert_parallel_size",
        "expert_tensor_parallel_size",
        "data_parallel_size",
        "replicate_size",
    ),
    1,
) | {"layout": PipelineLayout()}


def state_bytes(model: Model, plan: TrainingPlan) -> Number:
    """Weights, gradients and optimizer of the whole run, each kept once: what full sharding deals out."""
    (rank,) = Step(model, replace(plan, **WHOLE), None).walk().ranks
    parts = ("weights", "gradients", "optimizer")
    return max(sum(phase.child(part).value for part in parts) for phase in rank.phases)


def checkpoint_bytes(model: Model, plan: TrainingPlan) -> Term:
    """Weights as the optimizer updates them and the optimizer's states, of all that trains: with adapters not the
    base.
    """
    parameters, recipe = _saved(model, plan)
    weights = copies("weights", recipe.update_bytes, parameters, recipe.source)
    return Term.sum(NEEDED, weights, *optimizer_states(plan.optimizer, recipe, model, parameters))


def saved_bytes(model: Model, plan: TrainingPlan) -> Term:
    """What the runtime writes of it: what lies on disks, and what writing and reading take their time for.

    Megatron-core (dist_checkpointing of the model and of the distributed optimizer) and DeepSpeed below ZeRO-3
    (mp_rank_*_model_states.pt and zero_pp_rank_*_optim_states.pt) save the weights twice: as the model has them, and as
    the optimizer updates them.
    """
    needed = checkpoint_bytes(model, plan)
    parameters, recipe = _saved(model, plan)
    twice = plan.zero_stage < training_runtime(plan.runtime).saves_twice_below
    if not twice or plan.tuning.method != "full" or recipe.update_bytes == recipe.compute_bytes:
        return needed
    second = copies("weights as the model has them", recipe.compute_bytes, parameters, recipe.source)
    return Term.sum(Message("as {runtime} saves it", runtime=plan.runtime), *needed.children, second)


def checkpoint_formats(model: Model, plan: TrainingPlan, saved: Term) -> tuple[Term, ...]:
    """Files with more or less in them than what is needed, of all that trains: what the runtime saves, weights alone
    in two types.
    """
    parameters, recipe = _saved(model, plan)
    widths = dict.fromkeys((recipe.update_bytes, recipe.compute_bytes))
    alone = [
        copies(Message("weights alone in {width:.0f} bit", width=8 * width), width, parameters, recipe.source)
        for width in widths
    ]
    return (*([saved] if saved.name != NEEDED else []), *alone)


def _saved(model: Model, plan: TrainingPlan) -> tuple[Term, Recipe]:
    """Parameters that are saved, and the types they have."""
    if plan.tuning.method == "full":
        return Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1), TRAINING_RECIPES[
            plan.precision
        ]
    step = Step(model, replace(plan, **WHOLE), None)
    (rank,) = step.walk().ranks
    return rank.stage.trained, step.updates


# ---- Disks of a training run, for an answer: what a checkpoint is by what is saved, its time on the storage, the data
# set, drives and cores.


class Disks(Struct, frozen=True, kw_only=True):
    """`cores` of a node and `disk` of the run; `write` and `read` a checkpoint [seconds], `formats` of it [bytes],
    `kept` ones [bytes]; of a run the data set as token ids and as plain text [bytes]; `drives` of the nodes' size
    that hold `disk`, where the catalogue knows them.
    """

    cores: Term
    disk: Term
    formats: tuple[Term, ...]
    write: Term
    read: Term
    kept: Term
    dataset: Term | None
    dataset_text: Term | None
    drives: Term | None

    @property
    def storage(self) -> StorageDocument[Term]:
        """What the document has of it beside the host."""
        return StorageDocument(
            formats=list(self.formats),
            write=self.write,
            read=self.read,
            kept=self.kept,
            dataset=self.dataset or UNSET,
            dataset_text=self.dataset_text or UNSET,
            drives=self.drives or UNSET,
        )

    @property
    def all(self) -> tuple[Term, ...]:
        """Every breakdown, to be opened."""
        return (self.cores, self.disk, *terms_of(self.storage))


def disks(
    model: Model,
    plan: TrainingPlan,
    cluster: Cluster,
    saved: Term,
    run: RunOptions,
    options: BillOptions,
    question: Question,
    figures: RunDocument[Term] | None,
) -> Disks:
    """`saved`: what the runtime writes of a checkpoint. `figures`: of the run, if there is one. What a node has too
    little of is noted.
    """
    times = storage.checkpoint_times(saved, plan.world_size, run)
    storage.note_storage(times, run, question)
    kept_bytes = storage.kept(saved, options.keep_checkpoints)
    dataset, text = _dataset(model, options, figures)
    needs = storage.host_needs(
        cluster,
        checkpoints=kept_bytes,
        datasets=(dataset,) if dataset else (),
        data_loader_workers=int(plan.data_loader_workers),
    )
    for warning in needs.warnings:
        question.warn(warning)
    return Disks(
        cores=needs.cores,
        disk=needs.disk,
        formats=checkpoint_formats(model, plan, saved),
        write=times.write,
        read=times.read,
        kept=kept_bytes,
        dataset=dataset,
        dataset_text=text,
        drives=needs.drives,
    )


def _dataset(model: Model, options: BillOptions, figures: RunDocument[Term] | None) -> tuple[Term | None, Term | None]:
    """The data set once, however often the run sees it."""
    tokens = figures.tokens if figures else UNSET
    if not figures or not tokens:
        storage.raw_text_bytes(1, options.text_bytes_per_token)  # what cannot be is refused without a run too
        return None, None
    size = figures.epochs.inputs["D_set"] if figures.epochs else tokens.value
    return storage.dataset_bytes(size, model.vocab_size), storage.raw_text_bytes(size, options.text_bytes_per_token)

"""Disks of a training run, for an answer: what a checkpoint is by what is saved, its time on the storage, the data
set, drives and cores.
"""

from msgspec import UNSET, Struct

from tonnage.architectures import Model
from tonnage.documents.run import RunDocument, StorageDocument
from tonnage.documents.term import terms_of
from tonnage.estimate.host import storage
from tonnage.estimate.inputs import Question
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.run.checkpoint import checkpoint_formats
from tonnage.kernel.term import Term
from tonnage.spec import Cluster, TrainingPlan


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

"""The form of what an answer says of time, money and storage: a step, and the whole run."""

from typing import Literal

from msgspec import Struct

from tonnage.documents.term import TermDocument


class CountedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """FLOPs of a step, and their share of the peak, as those count them who publish under this name. `recomputes`: a
    second forward pass counts, whether it is run or not; `leaves_out`: in words, and what it counts that is not
    done.
    """

    name: str
    text: str
    leaves_out: str
    recomputes: bool
    source: str
    flops: TermDocument
    utilization: TermDocument


class BestModelDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """The best model for the compute of the run, as one fit of the scaling laws has it: parameters, tokens, and the
    loss where the fit has one.

    Of a dense model that is trained from nothing also what this one costs: `loss_of_this`; `same_loss_compute`: what
    the best model needs to be as good; `factor`: the run's compute over that. Where tokens are more than the best
    model's, it is the price of a smaller model.
    """

    fit: str
    parameters: TermDocument
    tokens: TermDocument
    loss: TermDocument | None = None
    loss_of_this: TermDocument | None = None
    same_loss_compute: TermDocument | None = None
    factor: TermDocument | None = None


class RunDocument(Struct, kw_only=True):
    """How fast a step is, and the whole run where its length, deadline or budget was said. `bound_by`: what takes most
    of a step.

    `step_time_band`: seconds, between which nine in ten measured steps of its kind lie. Other keys are figures by their
    names.
    """

    bound_by: str
    mfu: TermDocument
    hfu: TermDocument
    tokens_per_second: TermDocument
    conventions: list[CountedDocument] | None = None
    step_time_band: tuple[float, float] | None = None
    tokens: TermDocument | None = None
    steps: TermDocument | None = None
    epochs: TermDocument | None = None
    productive_seconds: TermDocument | None = None
    seconds: TermDocument | None = None
    accelerator_hours: TermDocument | None = None
    goodput: TermDocument | None = None
    time_between_failures: TermDocument | None = None
    failures: TermDocument | None = None
    checkpoint_seconds: TermDocument | None = None
    checkpoint_interval: TermDocument | None = None
    checkpoint_interval_by_young: TermDocument | None = None
    restart_seconds: TermDocument | None = None
    deadline_met: bool | None = None
    budget_met: bool | None = None
    accelerators_for_deadline: TermDocument | None = None
    accelerators_by_division: TermDocument | None = None
    budget_accelerator_hours: TermDocument | None = None
    tokens_for_budget: TermDocument | None = None
    best_models: list[BestModelDocument] | None = None


class PlaceDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the same work costs in one place, in US dollars. `cost` and `seconds` are left out where it cannot be
    done or nobody knows, and `note` says why; `first_payment`: before the first hour.
    """

    where: Literal["cloud", "own servers", "edge"]
    what: str
    first_payment: float
    note: str
    cost: TermDocument | None = None
    seconds: float | None = None


class OwnershipDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Buying the machines against renting them, in US dollars: the price, a month of each, an hour of an accelerator
    in use. `break_even` [seconds] is null where rent is not above what owning costs to run; `worn_out`: they are
    written off before that.
    """

    purchase: TermDocument
    own_month: TermDocument
    rent_month: TermDocument
    own_hour: TermDocument
    break_even: TermDocument | None
    break_even_month: int | None
    worn_out: bool
    places: list[PlaceDocument]


class StorageDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Checkpoints and data on the storage. `formats` [bytes]: a checkpoint by what is saved; `write`, `read`
    [seconds] one; `kept` [bytes]: all that lie there. Of a run: the data set, seen once, as token ids and as
    `dataset_text` [bytes]. `drives`: of the size that the node has, which hold all of it; left out where the
    catalogue knows none.
    """

    formats: list[TermDocument]
    write: TermDocument
    read: TermDocument
    kept: TermDocument
    dataset: TermDocument | None = None
    dataset_text: TermDocument | None = None
    drives: TermDocument | None = None


class HostDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Host memory of one node: the largest of loading, training and saving. `capacity_bytes`: of the node, null
    where the catalogue does not know it; `storage`: what a node keeps on NVMe, where something does.
    """

    memory: TermDocument
    capacity_bytes: int | None
    storage: TermDocument | None = None
    cores: TermDocument | None = None
    disk: TermDocument | None = None

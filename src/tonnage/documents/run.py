"""The form of what an answer says of time, money and storage: a step, and the whole run."""

from collections.abc import Sequence
from typing import Generic, Literal

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.term import Figure


class CountedDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """FLOPs of a step, and their share of the peak, as those count them who publish under this name. `recomputes`: a
    second forward pass counts, whether it is run or not; `leaves_out`: in words, and what it counts that is not
    done.
    """

    name: str
    text: str
    leaves_out: str
    recomputes: bool
    source: str
    flops: Figure
    utilization: Figure


class BestModelDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """The best model for the compute of the run, as one fit of the scaling laws has it: parameters, tokens, and the
    loss where the fit has one.

    Of a dense model that is trained from nothing also what this one costs: `loss_of_this`; `same_loss_compute`: what
    the best model needs to be as good; `factor`: the run's compute over that. Where tokens are more than the best
    model's, it is the price of a smaller model.
    """

    fit: str
    parameters: Figure
    tokens: Figure
    loss: Figure | UnsetType = UNSET
    loss_of_this: Figure | UnsetType = UNSET
    same_loss_compute: Figure | UnsetType = UNSET
    factor: Figure | UnsetType = UNSET


class InTimeDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """The smallest larger machine that makes a deadline which is missed: its name, its accelerators, seconds of the run
    on it, and their cost in US dollars, null where no price is known. Where no global batch was given, it grows with
    the machine.
    """

    on: str
    accelerators: int
    seconds: float
    usd: float | None


class RunDocument(Struct, Generic[Figure], frozen=True, kw_only=True):
    """How fast a step is, and the whole run where its length, deadline or budget was said. `bound_by`: what takes most
    of a step.

    `step_time_band`: seconds, between which nine in ten measured steps of its kind lie. `computes_in`: what matrix
    products are timed in, where it is not what the precision says, as runtime or accelerator have no such products.
    `rollout_share`: of a step that generates.
    Other keys are figures by their names.
    """

    bound_by: str
    mfu: Figure
    hfu: Figure
    tokens_per_second: Figure
    rollout_share: Figure | UnsetType = UNSET
    rollout_memory: Figure | UnsetType = UNSET
    conventions: Sequence[CountedDocument[Figure]] | UnsetType = UNSET
    step_time_band: tuple[float, float] | UnsetType = UNSET
    computes_in: str | UnsetType = UNSET
    tokens: Figure | UnsetType = UNSET
    steps: Figure | UnsetType = UNSET
    epochs: Figure | UnsetType = UNSET
    productive_seconds: Figure | UnsetType = UNSET
    seconds: Figure | UnsetType = UNSET
    accelerator_hours: Figure | UnsetType = UNSET
    goodput: Figure | UnsetType = UNSET
    time_between_failures: Figure | UnsetType = UNSET
    failures: Figure | UnsetType = UNSET
    checkpoint_seconds: Figure | UnsetType = UNSET
    checkpoint_interval: Figure | UnsetType = UNSET
    checkpoint_interval_by_young: Figure | UnsetType = UNSET
    restart_seconds: Figure | UnsetType = UNSET
    accelerators_for_deadline: Figure | UnsetType = UNSET
    accelerators_by_division: Figure | UnsetType = UNSET
    budget_accelerator_hours: Figure | UnsetType = UNSET
    tokens_for_budget: Figure | UnsetType = UNSET
    best_models: list[BestModelDocument[Figure]] | UnsetType = UNSET
    meets_deadline: InTimeDocument | UnsetType = UNSET
    deadline_met: bool | UnsetType = UNSET
    budget_met: bool | UnsetType = UNSET


class PlaceDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """What the same work costs in one place, in US dollars. `cost` and `seconds` are left out where it cannot be
    done or nobody knows, and `note` says why; `first_payment`: before the first hour.
    """

    where: Literal["cloud", "own servers", "edge"]
    what: str
    cost: Figure | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    first_payment: float
    note: str


class OwnershipDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """Buying the machines against renting them, in US dollars: the price, a month of each, an hour of an accelerator
    in use. `break_even` [seconds] is null where rent is not above what owning costs to run; `worn_out`: they are
    written off before that.
    """

    purchase: Figure
    own_month: Figure
    rent_month: Figure
    own_hour: Figure
    break_even: Figure | None
    break_even_month: int | None
    worn_out: bool
    places: list[PlaceDocument[Figure]]


class StorageDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """Checkpoints and data on the storage. `formats` [bytes]: a checkpoint by what is saved; `write`, `read`
    [seconds] one; `kept` [bytes]: all that lie there. Of a run: the data set, seen once, as token ids and as
    `dataset_text` [bytes]. `drives`: of the size that the node has, which hold all of it; left out where the
    catalogue knows none.
    """

    formats: list[Figure]
    write: Figure
    read: Figure
    kept: Figure
    dataset: Figure | UnsetType = UNSET
    dataset_text: Figure | UnsetType = UNSET
    drives: Figure | UnsetType = UNSET


class HostDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """Host memory of one node: the largest of loading, training and saving. `capacity_bytes`: of the node, null
    where the catalogue does not know it; `storage`: what a node keeps on NVMe, where something does.
    """

    memory: Figure
    capacity_bytes: int | None
    storage: Figure | UnsetType = UNSET
    cores: Figure | UnsetType = UNSET
    disk: Figure | UnsetType = UNSET

"""The form of what an answer says of time: a step, and the whole run."""

from msgspec import Struct

from tonnage.document_term import TermDocument


class CountedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """FLOPs of a step, and their share of the peak, as those count them who publish under this name. `recomputes`: a second forward pass
    counts, whether it is run or not; `leaves_out`: in words, and what it counts that is not done."""

    name: str
    text: str
    leaves_out: str
    recomputes: bool
    source: str
    flops: TermDocument
    utilization: TermDocument


class RunDocument(Struct, kw_only=True):
    """How fast a step is, and the whole run where its length, deadline or budget was said. `bound_by`: what takes most of a step.

    `step_time_band`: seconds, between which nine in ten measured steps of its kind lie. Other keys are figures by their names.
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
    accelerators_for_deadline: TermDocument | None = None
    accelerators_by_division: TermDocument | None = None
    budget_accelerator_hours: TermDocument | None = None
    tokens_for_budget: TermDocument | None = None


class OwnershipDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Buying the machines against renting them, in US dollars: the price, a month of each, an hour of an accelerator in use. `break_even`
    [seconds] is null where rent is not above what owning costs to run; `worn_out`: they are written off before that."""

    purchase: TermDocument
    own_month: TermDocument
    rent_month: TermDocument
    own_hour: TermDocument
    break_even: TermDocument | None
    break_even_month: int | None
    worn_out: bool

"""The correction by a site's runs as a part of a breakdown."""

from collections.abc import Mapping

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.formulas.memory import calibration_bytes
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, listed
from tonnage.kernel.term import Term
from tonnage.spec import Cluster, TrainingPlan

CALIBRATION = "calibration by own runs"
SOURCE = "own runs: tonnage calibrate"


class Correction(Struct, frozen=True, kw_only=True, eq=False):
    """`factor`: on the estimate. `low`, `high`: between what nine in ten runs lie, over the corrected estimate. `runs`:
    of this quantity that were kept; `alike`: of them those on the same accelerator with the same runtime.
    """

    factor: Number
    low: Number
    high: Number
    runs: int
    alike: int


def training_correction(quantity: str, model: Model, plan: TrainingPlan, cluster: Cluster | None) -> Correction | None:
    """What the site's runs say of a quantity of this run; None where nobody asked, or they say nothing."""
    if plan.site is None or cluster is None:
        return None
    from tonnage.estimate.site.cases import training_case  # nothing of it is needed where nobody asks

    found: Correction | None = plan.site.correction(quantity, training_case(model, plan, cluster))
    return found


def calibration_note(corrections: Mapping[str, Correction | None]) -> str:
    """What own runs corrected of an answer that asked for it, by the names of the quantities."""
    used = [
        Message("{name} by {factor:.2f}", name=name, factor=float(correction.factor))
        for name, correction in corrections.items()
        if correction is not None
    ]
    if not used:
        return Message(
            "no correction by own runs: fewer than six measure it, or they bring it no nearer "
            "(`tonnage calibrate show`)."
        )
    return Message("own runs correct {what}.", what=listed(used))


def calibrated(term: Term, correction: Correction | None) -> Term:
    """The term times what the site's runs say."""
    if correction is None:
        return term
    before = term.named(Message("{name} before calibration", name=term.name))
    return Term.product(term.name, term.unit, _factor(correction), before)


def calibrated_bytes(term: Term, correction: Correction | None) -> Term:
    """The term with a part more that is what the site's runs add or take off."""
    if correction is None:
        return term
    part = Term.of(
        CALIBRATION,
        calibration_bytes,
        basis="calibrated",
        source=Message("{source}: {why}", source=SOURCE, why=_why(correction)),
        M=term.value,
        f_site=correction.factor,
    )
    return Term.sum(term.name, *term.children, part)


def _factor(correction: Correction) -> Term:
    return Term.by(
        CALIBRATION, correction.factor, "", basis="calibrated", source=SOURCE, procedure=_why(correction), version="1"
    )


def _why(correction: Correction) -> str:
    return Message(
        "from {runs} runs, {alike} of them on this accelerator with this runtime, shrunk towards 1",
        runs=correction.runs,
        alike=correction.alike,
    )

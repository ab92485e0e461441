"""Why one plan stands before the next, from their figures."""

from tonnage.kernel.message import Message, joined
from tonnage.kernel.units import counted
from tonnage.search.serving.best import SIMPLER, Plan, significant

EQUAL = {
    "cost": "as cheap",
    "accelerators": "as many accelerators",
    "tpot": "as fast",
    "ttft": "as fast",
    "end-to-end": "as fast",
    "goodput": "as many requests",
    "token-cost": "as cheap",
}
SOONER = SIMPLER[-1]
MIN_FACTOR = 1.05  # times: less is not worth a word


def beats(plan: Plan, other: Plan, objective: str) -> str:
    """The first reason decides; others follow where they are worth a word."""
    reasons = [_decided(plan, other, objective)]
    if objective not in ("cost", "token-cost") and _times(plan.usd, other.usd) > MIN_FACTOR:
        reasons.append(Message("{times:.3g} times cheaper", times=_times(plan.usd, other.usd)))
    fewer = other.accelerators - plan.accelerators
    if objective != "accelerators" and fewer > 0:
        reasons.append(counted(fewer, "fewer accelerators"))
    for name, words in (("tpot", "each token"), ("ttft", "the first token")):
        factor = _times(getattr(plan, name), getattr(other, name))
        if objective != name and factor > MIN_FACTOR and not (name == "tpot" and SOONER in reasons[0]):
            reasons.append(Message("{words} {factor:.3g} times as soon", words=words, factor=factor))
    if other.changes_weights and not plan.changes_weights and not any(SIMPLER[0] in reason for reason in reasons):
        reasons.append(SIMPLER[0])
    return joined("; ", reasons)


def _decided(plan: Plan, other: Plan, objective: str) -> str:
    if significant(plan.value) == significant(other.value):
        pairs = zip(plan.simplicity, other.simplicity, SIMPLER, strict=True)
        words = next((words for mine, its, words in pairs if mine < its), "first by name")
        factor = _times(plan.tpot, other.tpot)
        return (
            Message("{equal}, and {words}, {factor:.3g} times", equal=EQUAL[objective], words=words, factor=factor)
            if words == SOONER and factor > MIN_FACTOR
            else Message("{equal}, and {words}", equal=EQUAL[objective], words=words)
        )
    if objective == "accelerators":
        return counted(other.accelerators - plan.accelerators, "fewer accelerators")
    factor = plan.value / other.value if objective == "goodput" else other.value / plan.value
    words = {"cost": "cheaper", "token-cost": "cheaper a token", "goodput": "as many requests a second"}.get(
        objective, "as soon"
    )
    return Message("{factor:.3g} times {words}", factor=factor, words=words)


def _times(mine: float | None, its: float | None) -> float:
    return its / mine if mine and its else 1.0

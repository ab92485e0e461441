"""The words for a limit that is known twice: by the estimate itself, and at the high end of its error band."""

from tonnage.language import say


def both_limits(estimate: str, safe: str) -> str:
    """As `serve` and `max` say it: "245 requests by the estimate, 237 requests at the high end of the error band"."""
    return say("{estimate} by the estimate, {safe} at the high end of the error band", estimate=estimate, safe=safe)

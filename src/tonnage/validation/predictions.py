"""What a kind of row gives for one metric."""

from msgspec import Struct


class Prediction(Struct, frozen=True, kw_only=True):
    """A value in the metric's unit, or the reason for none.

    `agrees`: for what has no number to compare with, whether it came out as measured; `band`: low and high in the
    metric's unit;
    `notes`: what was assumed, or left out.
    """

    value: float | None = None
    skipped: str | None = None
    agrees: bool | None = None
    band: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

"""The form of one figure in every document."""

from typing import Any, Literal

from msgspec import Struct


class TermDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """One number with everything that made it, in its base unit."""

    name: str
    value: float
    unit: str
    combine: Literal["leaf", "sum", "max", "product", "ratio", "method"]
    basis: Literal["rule", "analytic", "traced", "measured"]
    formula: str | None
    text: str
    source: str
    inputs: dict[str, float]
    children: list["TermDocument"]
    method: dict[str, Any] | None = None

"""One value, estimated: what it needs, whether that fits, or what refuses it."""

from msgspec import Struct

from tonnage.documents.max import By
from tonnage.kernel.errors import TonnageError

REFUSED = float("inf")


class Limit(Struct, frozen=True, kw_only=True):
    """What binds, and the sentence about it."""

    by: By
    text: str


class Outcome(Struct, frozen=True, kw_only=True):
    """`low`, `high`: ends of the error band, or twice what is needed where there is none. `refused`: why the value
    is none, however much memory there is; `error`: the same where an estimate said so.
    """

    value: int
    needed: int | None = None
    low: float = REFUSED
    high: float = REFUSED
    usable: int = 0
    refused: Limit | None = None
    error: TonnageError | None = None

    @property
    def fits(self) -> bool | None:
        """As a verdict has it: None inside the error band."""
        if self.refused is not None or self.low > self.usable:
            return False
        return True if self.high <= self.usable else None

    @property
    def surely_over(self) -> float:
        """Bytes too much of the band's high end, below 0 what is left."""
        return REFUSED if self.refused is not None else self.high - self.usable

    @property
    def perhaps_over(self) -> float:
        """The same of its low end: what is over 0 does not fit for sure."""
        return REFUSED if self.refused is not None else self.low - self.usable

    @property
    def estimate_over(self) -> float:
        """The same of the estimate itself."""
        return REFUSED if self.refused is not None or self.needed is None else self.needed - self.usable

    @property
    def memory_over(self) -> float:
        """As `surely_over`, but no service level and no limit of the engine refuses it."""
        return REFUSED if self.needed is None else self.high - self.usable


def refusal(value: int, error: TonnageError) -> Outcome:
    """Of a value that an estimate does not take."""
    return Outcome(value=value, refused=Limit(by="rule", text=str(error)), error=error)

"""What a search is about: one model on one machine with all options but one, which takes any of the case's values;
and the outcome of one value.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.documents.advice import ChangeDocument
from tonnage.documents.max import By
from tonnage.estimate.answer.form import Answer
from tonnage.kernel.errors import TonnageError
from tonnage.question.subjects.maximum import What
from tonnage.spec import Cluster

REFUSED = float("inf")


class Limit(Struct, frozen=True, kw_only=True):
    """What limits the value, and the sentence about it."""

    by: By
    text: str


class Outcome(Struct, frozen=True, kw_only=True):
    """`low`, `high`: ends of the error band, or twice what is needed where there is none. `refused`: why the value
    is none, however much memory there is; `error`: the same where an estimate said so. `late`: how far a limit on
    waiting is exceeded: at the high end of the error band of its time, by the estimate, at the low end.
    """

    value: int
    needed: int | None = None
    low: float = REFUSED
    high: float = REFUSED
    usable: int = 0
    refused: Limit | None = None
    error: TonnageError | None = None
    late: tuple[Limit | None, Limit | None, Limit | None] = (None, None, None)

    @property
    def fits(self) -> bool | None:
        """Whether it fits and keeps its limits; None inside an error band."""
        if self.perhaps_over > 0:
            return False
        return True if self.surely_over <= 0 else None

    @property
    def limit(self) -> Limit | None:
        """What makes the value none for sure, however much memory there is."""
        return self.refused or self.late[0]

    @property
    def surely_over(self) -> float:
        """Bytes by which the band's high end exceeds the memory; below 0, the bytes left."""
        return REFUSED if self.refused or self.late[0] else self.high - self.usable

    @property
    def perhaps_over(self) -> float:
        """Bytes by which the band's low end exceeds the memory: above 0 it surely does not fit."""
        return REFUSED if self.refused or self.late[2] else self.low - self.usable

    @property
    def estimate_over(self) -> float:
        """Bytes by which the estimate itself exceeds the memory."""
        return REFUSED if self.refused or self.late[1] or self.needed is None else self.needed - self.usable

    @property
    def memory_over(self) -> float:
        """Bytes as `surely_over`, without regard to service levels and limits of the engine."""
        return REFUSED if self.needed is None else self.high - self.usable


def refusal(value: int, error: TonnageError) -> Outcome:
    """The outcome of a value that an estimate refuses."""
    return Outcome(value=value, refused=Limit(by="rule", text=str(error)), error=error)


class Case(Protocol):
    """A case of serving or of training. Each value is estimated once."""

    what: What
    model: Model
    cluster: Cluster
    options: Any  # ServingOptions or TrainingOptions

    @property
    def values(self) -> Sequence[int]:
        """Values that are no contradiction in themselves, the least first."""
        ...

    @property
    def cap(self) -> tuple[int, Limit] | None:
        """The largest value that is of use, whatever memory says, and why."""
        ...

    @property
    def uneven(self) -> bool:
        """Whether a larger value may need less memory: rules that cut work into more and smaller parts."""
        ...

    @property
    def has_bands_of_times(self) -> bool:
        """Whether limits on waiting are kept for sure, by the estimate, or perhaps."""
        ...

    def ask(self, value: int) -> Outcome: ...

    def plan(self, value: int) -> Any:
        """The plan at a value; TonnageError where it is none."""
        ...

    def where(self, value: int) -> str:
        """The rank whose memory is needed most at a value, and when."""
        ...

    def said(self, value: int) -> dict[str, Any]:
        """The options with which a command has this value."""
        ...

    def answer(self, value: int) -> Answer:
        """The whole estimate at a value."""
        ...

    def moves(self, value: int) -> Sequence[ChangeDocument]:
        """Changes that free memory at a value, as estimates advise them."""
        ...

    def changed(self, change: Mapping[str, Any]) -> "Case":
        """The case with these options changed; TonnageError where they contradict."""
        ...

"""What a search is about: one model on one machine with all options but one, which takes any of the case's values."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tonnage.architectures import Model
from tonnage.documents.advice import ChangeDocument
from tonnage.estimate.answer.form import Answer
from tonnage.question.subjects.maximum import What
from tonnage.search.maximum.outcome import Limit, Outcome
from tonnage.spec import Cluster


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

    def ask(self, value: int) -> Outcome: ...

    def plan(self, value: int) -> Any:
        """The plan at a value; TonnageError where it is none."""
        ...

    def where(self, value: int) -> str:
        """Whose memory it is that a value needs most of, and when."""
        ...

    def said(self, value: int) -> dict[str, Any]:
        """The options that say this value."""
        ...

    def answer(self, value: int) -> Answer:
        """The whole estimate at a value."""
        ...

    def moves(self, value: int) -> Sequence[ChangeDocument]:
        """Changes that free memory at a value, as estimates advise them."""
        ...

    def changed(self, change: Mapping[str, Any]) -> "Case":
        """The same question with other options beside; TonnageError where they contradict."""
        ...

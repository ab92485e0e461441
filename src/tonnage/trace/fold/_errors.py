"""The error of a program that is traced in full."""

from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message


class DoesNotFold(TonnageError):
    """The traces do not repeat as layers do; `stage` is where that begins."""

    def __init__(self, stage: str, reason: str):
        super().__init__(Message("stage {stage!r}: {reason}", stage=stage, reason=reason))
        self.stage = stage

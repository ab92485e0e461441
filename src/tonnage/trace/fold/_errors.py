"""Why a program is traced whole."""

from tonnage.kernel.errors import TonnageError


class DoesNotFold(TonnageError):
    """The traces do not repeat as layers do; `stage` says from where on."""

    def __init__(self, stage: str, reason: str):
        super().__init__(f"stage {stage!r}: {reason}")
        self.stage = stage
